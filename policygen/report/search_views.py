"""Search results: finalists with their scores, the search report, and replays."""

from collections.abc import Iterator, Sequence
from math import ceil, inf
from statistics import median

from policygen.model.results import Interval
from policygen.model.searches import (
    FailureGroup,
    ReplayedSpace,
    ReplayRun,
    ReportedFinalist,
    ReportedWorkload,
    Searched,
    SearchedWorkload,
    SearchReplay,
    SearchReport,
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
    """Show a table of finalists for each workload; -v adds their runtime workloads."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        yield Note(
            f"{document.gpu}, driver {document.driver}, {document.toolchain}", "dim", folded=True
        )
    for workload in document.workloads:
        yield BLANK
        yield Note(in_words(workload.benchmark, workload.workload), "bold", folded=True)
        if workload.problem:
            yield Words(workload.problem, "red", "  ")
            continue
        yield from _workload(workload, verbose=verbose)
    if head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _workload(workload: SearchedWorkload, *, verbose: bool) -> Iterator[Block]:
    if counts := workload.counts:
        ended = f": {ENDED[workload.ended]}" if workload.ended else ""
        yield Words(
            f"{workload.strategy}: {counts.tried:,} of {counts.distinct:,} distinct variants tried,"
            f" {counts.measured:,} measured, {counts.failed:,} failed{ended}",
            "dim",
        )
    if workload.finalists:
        yield Table(
            (
                *(Column(title, "whole") for title in ("screened", "score", "95 %")),
                *(Column(title, "whole") for title in ("least", "most")),
                Column("", "name"),
                "variant",
            ),
            [
                [
                    finalist.screened,
                    finalist.score,
                    _interval_words(finalist.interval),
                    min(row.ratio for row in finalist.runtime),
                    max(row.ratio for row in finalist.runtime),
                    finalist.verdict or "not sure",
                    finalist.variant,
                ]
                for finalist in workload.finalists
            ],
            styles=[STYLES.get(finalist.verdict or "", "") for finalist in workload.finalists],
            label="finalists beside base",
        )
    if workload.best is None:
        yield Note("no variant is faster than base beyond noise", folded=True)
    for failure in workload.failures:
        style = "red" if failure.kind == "wrong" else "yellow"
        mark = "WRONG RESULTS" if failure.kind == "wrong" else failure.kind
        count = plural(failure.count, "variant")
        yield Words(f"{count}: {mark}: {failure.variant}: {failure.reason}", style, "  ")
    for skipped in workload.skipped:
        name = ", ".join(f"{axis}={value}" for axis, value in skipped.point.items())
        yield Words(f"not measured: {name}: {skipped.reason}", "dim")
    if verbose:
        for finalist in workload.finalists:
            yield BLANK
            yield Note(finalist.variant)
            yield Table(
                ("runtime workload", "weight", "ratio", "95 %"),
                [
                    [
                        ", ".join(f"{axis}={value}" for axis, value in row.point.items())
                        or row.subbench,
                        row.weight,
                        row.ratio,
                        _interval_words(row.interval),
                    ]
                    for row in finalist.runtime
                ],
                label=f"runtime workloads of {finalist.variant}",
            )


def _interval_words(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


print_searched = printed(searched)
SHOWN = 5
"""Finalists shown without -v."""
SEARCH_REPORT_STYLES = {"faster": "green", "better": "green", "slower": "red", "worse": "red"}


# Search report: on a terminal, as Markdown, and as a page with figures


def reported(document: SearchReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show the winner of each workload, its confidence, and what failed."""
    for index, workload in enumerate(document.workloads):
        if index:
            yield BLANK
        yield from _reported_workload(workload, verbose=verbose, quiet=quiet)
    if not document.workloads:
        yield Note("no workload was measured")


def print_reported(document: SearchReport, *, verbose: bool, quiet: bool) -> None:
    """Print the report of a search."""
    show(reported(document, verbose=verbose, quiet=quiet))


def render(document: SearchReport, form: str = "html") -> str:
    """Render a page with figures, or Markdown without; local paths are removed from both."""
    document = portable(document)
    facts = {"measured on": "; ".join(search_words.where(document))} if document.workloads else {}
    facts["databases"] = ", ".join(document.databases)
    blocks = list(page_blocks(document, page=form == "html"))
    page = Page(_title(document), facts, blocks)
    return pages.render(page, "search") if form == "html" else markdown.render(page)


def _title(document: SearchReport) -> str:
    names = list(dict.fromkeys(short(workload.algorithm) for workload in document.workloads))
    searched = any(workload.origin == "search" for workload in document.workloads)
    noun = "Search" if searched or not names else "Measurements"
    if not names:
        return "Search report"
    return f"{noun} of {names[0] if len(names) == 1 else plural(len(names), 'benchmark')}"


def _reported_workload(
    workload: ReportedWorkload, *, verbose: bool, quiet: bool
) -> Iterator[Block]:
    yield ranking_views.prose(search_words.name(workload), style="bold")
    if not quiet:
        yield Words(
            ranking_views.key_parts(workload, None),
            "dim",
            "  ",
            "    ",
            ranking_views.DOT,
            even=True,
        )
    yield ranking_views.prose(search_words.result(workload), "  ")
    shown = workload.finalists if verbose else workload.finalists[:SHOWN]
    if shown:
        yield finalists_table(shown, workload)
    if quiet:
        return
    if len(shown) < len(workload.finalists):
        yield Note(f"the best {SHOWN} of {len(workload.finalists):,}; all: -v", "dim")
    for text in (search_words.today(workload), *search_words.convergence(workload)):
        yield ranking_views.note(text)
    if failure_words := search_words.failures(workload):
        yield ranking_views.prose(failure_words, style="red" if workload.counts.wrong else "")
        yield from map(_failure, workload.failures if verbose else workload.failures[:SHOWN])
    for text in search_words.remarks(workload):
        yield ranking_views.note(text)


def _failure(group: FailureGroup) -> Block:
    style = "red" if group.kind == "wrong" else ""
    example = f", such as {group.variants[0]}" if group.variants else ""
    words = f"{group.count:,} {group.kind}: {group.reason}{example}".split()
    return Words(words, style, "  ", "    ")


def finalists_table(shown: tuple[ReportedFinalist, ...], workload: ReportedWorkload) -> Table:
    """Table of the finalists."""
    has_rungs = workload.rung in {"last", "sharper"}
    head = ["score", "95 %", *(["screened"] if has_rungs else []), "least"]
    return Table(
        [*(Column(title, "whole") for title in head), Column("", "name"), "variant"],
        [
            [
                final.score,
                search_words.between(final),
                *([search_words.number(final.screened)] if has_rungs else []),
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
"""Fractions of the best score."""
QUARTERS = (0.25, 0.5, 0.75)
COUNTS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)
"""Evaluation counts at which the distance from the best score is shown."""


# Replays: how quickly a strategy finds the best variant, and how close it is before


def replayed(document: SearchReplay, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show two tables for each space; -v adds every run."""
    if head:
        source = f"told by {plural(document.samples, 'sample')}" if document.samples else "told all"
        yield Note(
            f"strategy {document.strategy}, {plural(document.batch, 'variant')} at once, {source}",
            "dim",
            folded=True,
        )
    for space in document.spaces:
        yield BLANK
        yield from _space(space, _runs_of(document, space), head=head, verbose=verbose)


def _runs_of(document: SearchReplay, space: ReplayedSpace) -> list[ReplayRun]:
    key = _key(space)
    return [run for run in document.runs if _key(run) == key]


def _key(record: ReplayedSpace | ReplayRun) -> tuple[object, ...]:
    return record.gpu, record.ctk, record.cccl, record.benchmark, tuple(record.workload.items())


def _space(
    space: ReplayedSpace, runs: Sequence[ReplayRun], *, head: bool, verbose: bool
) -> Iterator[Block]:
    yield Note(in_words(space.benchmark, space.workload), "bold", folded=True)
    if head:
        location = f"{space.gpu}, ctk {space.ctk}, cccl {space.cccl}"
        yield Note(f"{location}: {', '.join(space.databases)}", "dim", folded=True)
    yield Note(f"best: {space.best.variant} {space.best.score:.6f}", folded=True)
    if head and space.starts:
        yield Note(f"begins with: {', '.join(space.starts)}", "dim", folded=True)
    yield Note("; ".join(_facts(space, runs)), "dim", folded=True)
    yield Table(
        ("reached", *(Column(name, "n") for name in ("runs", "a quarter", "median", "3 quarters"))),
        [
            [f"{share * 100:g} % of the best", *_evaluations_until(runs, space.best.score * share)]
            for share in SHARES
        ],
        label="evaluations until a share of the best score",
    )
    max_evaluations = max((run.evaluations for run in runs), default=0)
    counts = [count for count in COUNTS if count <= max_evaluations]
    if counts:
        yield BLANK
        yield Table(
            ("evaluations", *(Column(name, "n") for name in ("median", "mean", "worst"))),
            [_distance_from_best(runs, count, space.best.score) for count in counts],
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


def _evaluations_until(runs: Sequence[ReplayRun], score: float) -> list[str]:
    """Number of runs that reach a score, and quartiles of the evaluations until then."""
    evaluations = sorted(_reached(run, score) for run in runs)
    reached_count = sum(count < inf for count in evaluations)
    return [
        f"{reached_count} of {len(runs)}",
        *(_count(_share(evaluations, part)) for part in QUARTERS),
    ]


def _reached(run: ReplayRun, score: float) -> float:
    return next((count for count, best in run.curve if best >= score), inf)


def _share(values: Sequence[float], part: float) -> float:
    """Smallest value that at least a fraction `part` of the sorted values does not exceed."""
    return values[max(0, ceil(part * len(values)) - 1)]


def _count(value: float) -> str:
    return "more" if value == inf else f"{value:,.0f}"


def _distance_from_best(runs: Sequence[ReplayRun], count: int, best: float) -> list[str]:
    distances = [100 * (1 - _best_after(run, count) / best) for run in runs if run.curve]
    statistics = (median(distances), sum(distances) / len(distances), max(distances))
    return [f"{count:,}", *(f"{value:.2f} %" for value in statistics)]


def _best_after(run: ReplayRun, count: int) -> float:
    return max(score for evaluation, score in run.curve if evaluation <= count)


def _run(run: ReplayRun) -> list[str]:
    best = run.best
    cells = ["", "nothing"] if best is None else [f"{best.score:.6f}", best.variant]
    return [str(run.seed), f"{run.evaluations:,}", *cells]


print_replay = printed(replayed)
