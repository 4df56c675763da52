"""What a search found: the finalists with what they are worth, and how they were found."""

from collections.abc import Iterator

from policygen.model.results import Interval
from policygen.model.search import Searched, SearchedWorkload
from policygen.model.workload import in_words
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words
from policygen.report.console import plural, printed, tree_line

STYLES = {"faster": "green", "slower": "red", "equal": "dim"}
ENDED = {
    "exhausted": "all of them were tried",
    "budget": "the budget ended",
    "count": "as many as were asked for",
    "stopped": "it was stopped",
}


def searched(document: Searched, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table of finalists for each workload; -v shows their runtime workloads."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        yield Note(
            f"{document.gpu}, driver {document.driver}, {document.toolchain}", "dim", folded=True
        )
    for one in document.workloads:
        yield BLANK
        yield Note(in_words(one.benchmark, one.workload), "bold", folded=True)
        if one.problem:
            yield Words(one.problem, "red", "  ")
            continue
        yield from _workload(one, verbose=verbose)
    if head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _workload(one: SearchedWorkload, *, verbose: bool) -> Iterator[Block]:
    if counts := one.counts:
        ended = f": {ENDED[one.ended]}" if one.ended else ""
        yield Words(
            f"{one.strategy}: {counts.tried:,} of {counts.distinct:,} distinct variants tried,"
            f" {counts.measured:,} measured, {counts.failed:,} failed{ended}",
            "dim",
        )
    if one.finalists:
        yield Table(
            (
                *(Column(title, "whole") for title in ("screened", "score", "95 %")),
                *(Column(title, "whole") for title in ("least", "most")),
                Column("", "name"),
                "variant",
            ),
            [
                [
                    each.screened,
                    each.score,
                    _between(each.interval),
                    min(row.ratio for row in each.runtime),
                    max(row.ratio for row in each.runtime),
                    each.verdict or "not sure",
                    each.variant,
                ]
                for each in one.finalists
            ],
            styles=[STYLES.get(each.verdict or "", "") for each in one.finalists],
            label="finalists beside base",
        )
    if one.best is None:
        yield Note("no variant is faster than base beyond noise", folded=True)
    for failure in one.failures:
        style = "red" if failure.kind == "wrong" else "yellow"
        mark = "WRONG RESULTS" if failure.kind == "wrong" else failure.kind
        count = plural(failure.count, "variant")
        yield Words(f"{count}: {mark}: {failure.variant}: {failure.reason}", style, "  ")
    for skipped in one.skipped:
        name = ", ".join(f"{axis}={value}" for axis, value in skipped.point.items())
        yield Words(f"not measured: {name}: {skipped.reason}", "dim")
    if verbose:
        for each in one.finalists:
            yield BLANK
            yield Note(each.variant)
            yield Table(
                ("runtime workload", "weight", "ratio", "95 %"),
                [
                    [
                        ", ".join(f"{axis}={v}" for axis, v in row.point.items()) or row.subbench,
                        row.weight,
                        row.ratio,
                        _between(row.interval),
                    ]
                    for row in each.runtime
                ],
                label=f"runtime workloads of {each.variant}",
            )


def _between(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


print_searched = printed(searched)
