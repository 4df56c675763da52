"""What a search found: the finalists with what they are worth, and how they were found."""

from collections.abc import Iterator, Sequence
from math import ceil, inf
from statistics import median

from policygen.model.results import Interval
from policygen.model.search_pages import (
    FailureGroup,
    ReportedFinalist,
    ReportedWorkload,
    SearchReport,
)
from policygen.model.searches import (
    ReplayedSpace,
    ReplayRun,
    Searched,
    SearchedWorkload,
    SearchReplay,
)
from policygen.model.workload import in_words
from policygen.portable import portable
from policygen.report import markdown, pages, ranking_views, search_words
from policygen.report.blocks import BLANK, Block, Column, Note, Page, Table, Words
from policygen.report.console import plural, printed, short, show, tree_line
from policygen.report.search_page import page_blocks

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
SHOWN = 5
"""Finalists that are shown without -v."""
SEARCH_REPORT_STYLES = {"faster": "green", "better": "green", "slower": "red", "worse": "red"}


# The report of a search: on a terminal, as Markdown, and as a page with figures.


def reported(document: SearchReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show what won for each workload, how sure that is, and what failed."""
    for place, one in enumerate(document.workloads):
        if place:
            yield BLANK
        yield from _search_report_workload(one, verbose=verbose, quiet=quiet)
    if not document.workloads:
        yield Note("no workload was measured")


def print_reported(document: SearchReport, *, verbose: bool, quiet: bool) -> None:
    """Print what a search found."""
    show(reported(document, verbose=verbose, quiet=quiet))


def render(document: SearchReport, form: str = "html") -> str:
    """Write a page with figures, or Markdown without; neither names a path of a machine."""
    document = portable(document)
    facts = {"measured on": "; ".join(search_words.where(document))} if document.workloads else {}
    facts["databases"] = ", ".join(document.databases)
    blocks = list(page_blocks(document, page=form == "html"))
    page = Page(_title(document), facts, blocks)
    return pages.render(page, "search") if form == "html" else markdown.render(page)


def _title(document: SearchReport) -> str:
    names = list(dict.fromkeys(short(one.algorithm) for one in document.workloads))
    searched = any(one.origin == "search" for one in document.workloads)
    what = "Search" if searched or not names else "Measurements"
    if not names:
        return "Search report"
    return f"{what} of {names[0] if len(names) == 1 else plural(len(names), 'benchmark')}"


def _search_report_workload(
    one: ReportedWorkload, *, verbose: bool, quiet: bool
) -> Iterator[Block]:
    yield ranking_views.prose(search_words.name(one), style="bold")
    if not quiet:
        yield Words(
            ranking_views.key_parts(one, None), "dim", "  ", "    ", ranking_views.DOT, even=True
        )
    yield ranking_views.prose(search_words.result(one), "  ")
    shown = one.finalists if verbose else one.finalists[:SHOWN]
    if shown:
        yield finalists_table(shown, one)
    if quiet:
        return
    if len(shown) < len(one.finalists):
        yield Note(f"the best {SHOWN} of {len(one.finalists):,}; all: -v", "dim")
    for text in (search_words.today(one), *search_words.convergence(one)):
        yield ranking_views.note(text)
    if told := search_words.failures(one):
        yield ranking_views.prose(told, style="red" if one.counts.wrong else "")
        yield from map(_failure, one.failures if verbose else one.failures[:SHOWN])
    for text in search_words.remarks(one):
        yield ranking_views.note(text)


def _failure(group: FailureGroup) -> Block:
    style = "red" if group.kind == "wrong" else ""
    such = f", such as {group.variants[0]}" if group.variants else ""
    words = f"{group.count:,} {group.kind}: {group.reason}{such}".split()
    return Words(words, style, "  ", "    ")


def finalists_table(shown: tuple[ReportedFinalist, ...], one: ReportedWorkload) -> Table:
    """The finalists in numbers."""
    rungs = one.rung in {"last", "sharper"}
    head = ["score", "95 %", *(["screened"] if rungs else []), "least"]
    return Table(
        [*(Column(title, "whole") for title in head), Column("", "name"), "variant"],
        [
            [
                final.score,
                search_words.between(final),
                *([search_words.number(final.screened)] if rungs else []),
                search_words.number(min((row.ratio for row in final.runtime), default=None)),
                final.verdict or "not sure",
                final.variant,
            ]
            for final in shown
        ],
        "plain",
        styles=[SEARCH_REPORT_STYLES.get(final.verdict or "", "") for final in shown],
        label="finalists",
    )


SHARES = (0.99, 0.995, 0.999, 1.0)
"""Of the best score."""
QUARTERS = (0.25, 0.5, 0.75)
COUNTS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)
"""Evaluations after which is told how far the best one is."""


# A replay: how soon a strategy finds the best of a space, and how far from it it is before.


def replayed(document: SearchReplay, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show two tables for each space; -v shows every run."""
    if head:
        how = f"told by {plural(document.samples, 'sample')}" if document.samples else "told all"
        yield Note(
            f"strategy {document.strategy}, {plural(document.batch, 'variant')} at once, {how}",
            "dim",
            folded=True,
        )
    for space in document.spaces:
        yield BLANK
        yield from _space(space, _runs_of(document, space), head=head, verbose=verbose)


def _runs_of(document: SearchReplay, space: ReplayedSpace) -> list[ReplayRun]:
    key = _key(space)
    return [run for run in document.runs if _key(run) == key]


def _key(one: ReplayedSpace | ReplayRun) -> tuple[object, ...]:
    return one.gpu, one.ctk, one.cccl, one.benchmark, tuple(one.workload.items())


def _space(
    space: ReplayedSpace, runs: Sequence[ReplayRun], *, head: bool, verbose: bool
) -> Iterator[Block]:
    yield Note(in_words(space.benchmark, space.workload), "bold", folded=True)
    if head:
        where = f"{space.gpu}, ctk {space.ctk}, cccl {space.cccl}"
        yield Note(f"{where}: {', '.join(space.databases)}", "dim", folded=True)
    yield Note(f"best: {space.best.variant} {space.best.score:.6f}", folded=True)
    if head and space.starts:
        yield Note(f"begins with: {', '.join(space.starts)}", "dim", folded=True)
    yield Note("; ".join(_facts(space, runs)), "dim", folded=True)
    yield Table(
        ("reached", *(Column(name, "n") for name in ("runs", "a quarter", "median", "3 quarters"))),
        [
            [f"{share * 100:g} % of the best", *_soon(runs, space.best.score * share)]
            for share in SHARES
        ],
        label="evaluations until a share of the best score",
    )
    most = max((run.evaluations for run in runs), default=0)
    counts = [count for count in COUNTS if count <= most]
    if counts:
        yield BLANK
        yield Table(
            ("evaluations", *(Column(name, "n") for name in ("median", "mean", "worst"))),
            [_far(runs, count, space.best.score) for count in counts],
            label="how far the best score is then, in percent of it",
        )
    if verbose:
        yield BLANK
        yield Table(
            (Column("seed", "n"), Column("evaluations", "n"), "score", Column("best", "name")),
            [_run(run) for run in runs],
            label="the runs",
        )


def _facts(space: ReplayedSpace, runs: Sequence[ReplayRun]) -> Iterator[str]:
    yield f"{space.recorded:,} of {space.product:,} variants are there"
    if space.others:
        yield f"{plural(space.others, 'variant')} with other parameters left out"
    if space.incomplete:
        yield f"{plural(space.incomplete, 'variant')} not measured whole"
    if not space.sampled:
        yield "no samples: told by recorded scores"
    if space.approximate:
        yield "scores are approximate"
    invalid = sum(run.invalid for run in runs)
    if invalid:
        yield f"{plural(invalid, 'variant')} asked for that are not there"
    yield plural(len(runs), "run")


def _soon(runs: Sequence[ReplayRun], score: float) -> list[str]:
    """How many runs get there, and after how many evaluations; who never does comes last."""
    found = sorted(_reached(run, score) for run in runs)
    there = sum(one < inf for one in found)
    return [f"{there} of {len(runs)}", *(_count(_share(found, part)) for part in QUARTERS)]


def _reached(run: ReplayRun, score: float) -> float:
    return next((count for count, best in run.curve if best >= score), inf)


def _share(values: Sequence[float], part: float) -> float:
    """The least of the sorted values that so large a part of them does not exceed."""
    return values[max(0, ceil(part * len(values)) - 1)]


def _count(value: float) -> str:
    return "more" if value == inf else f"{value:,.0f}"


def _far(runs: Sequence[ReplayRun], count: int, best: float) -> list[str]:
    lost = [100 * (1 - _after(run, count) / best) for run in runs if run.curve]
    told = (median(lost), sum(lost) / len(lost), max(lost))
    return [f"{count:,}", *(f"{one:.2f} %" for one in told)]


def _after(run: ReplayRun, count: int) -> float:
    return max(score for at, score in run.curve if at <= count)


def _run(run: ReplayRun) -> list[str]:
    best = run.best
    told = ["", "nothing"] if best is None else [f"{best.score:.6f}", best.variant]
    return [str(run.seed), f"{run.evaluations:,}", *told]


print_replay = printed(replayed)
