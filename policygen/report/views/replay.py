"""A replay: how soon a strategy finds the best of a space, and how far from it it is before."""

from collections.abc import Iterator, Sequence
from math import ceil, inf
from statistics import median

from policygen.model.replay import ReplayedSpace, ReplayRun, SearchReplay
from policygen.model.workload import in_words
from policygen.report.blocks import BLANK, Block, Column, Note, Table
from policygen.report.console import plural, printed

SHARES = (0.99, 0.995, 0.999, 1.0)
"""Of the best score."""
QUARTERS = (0.25, 0.5, 0.75)
COUNTS = (10, 25, 50, 100, 200, 400, 800, 1600, 3200)
"""Evaluations after which is told how far the best one is."""


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
        [[f"{share:.1%} of the best", *_soon(runs, space.best.score * share)] for share in SHARES],
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
