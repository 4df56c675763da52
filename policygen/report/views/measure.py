"""What was measured: each variant beside base, with its interval, and how noisy the GPU is."""

from collections.abc import Iterator

from policygen.model.measured import MeasuredVariant, MeasuredVariants, MeasuredWorkload
from policygen.model.results import Interval
from policygen.model.workload import in_words
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words
from policygen.report.console import plural, printed, tree_line

STYLES = {"faster": "green", "slower": "red", "equal": "dim"}
MICRO = 1e6
SHOWN = 20
"""Variants of a workload that are shown without -v, the best ones."""


def measured(document: MeasuredVariants, *, head: bool, verbose: bool) -> Iterator[Block]:
    """Show a table for each workload; -v shows every runtime workload."""
    if head:
        yield Note(tree_line(document.cub), "dim", folded=True)
        how = f"{plural(document.processes, 'process', 'processes')} of {document.rounds} rounds"
        yield Note(
            f"{document.gpu}, driver {document.driver}, {document.toolchain}: {how}",
            "dim",
            folded=True,
        )
    for workload in document.workloads:
        yield BLANK
        yield Note(in_words(workload.benchmark, workload.workload), "bold", folded=True)
        if workload.problem:
            yield Words(workload.problem, "red", "  ")
            continue
        yield from _workload(workload, verbose=verbose)
    if document.database and head:
        yield BLANK
        yield Note(f"written: {document.database}", folded=True)


def _workload(workload: MeasuredWorkload, *, verbose: bool) -> Iterator[Block]:
    scored = [one for one in workload.variants if one.score is not None]
    best = sorted(scored, key=lambda one: -(one.score or 0))[:SHOWN]
    shown = scored if verbose or len(scored) <= SHOWN else best
    if scored:
        yield Table(
            # Names are long, and fold where they stand last.
            (
                *(Column(title, "whole") for title in ("score", "95 %", "least", "most")),
                Column("", "name"),
                "variant",
            ),
            [_row(one) for one in shown],
            styles=[STYLES.get(one.verdict or "", "") for one in shown],
            label="variants beside base",
        )
    if len(shown) < len(scored):
        yield Note(f"the best {SHOWN} of {len(scored):,}; all: -v, or policygen db top", "dim")
    for one in workload.variants:
        if one.failed is not None:
            style = "red" if one.failed.kind == "wrong" else "yellow"
            mark = "WRONG RESULTS" if one.failed.kind == "wrong" else one.failed.kind
            yield Words(f"{one.variant}: {mark}: {one.failed.reason}", style, "  ")
    yield from _noise(workload)
    if verbose:
        for one in scored:
            yield BLANK
            yield Note(one.variant)
            yield _runtime(one)


def _row(one: MeasuredVariant) -> list[str | float]:
    assert one.score is not None
    ratios = [row.ratio for row in one.runtime]
    return [
        one.score,
        _between(one.interval),
        min(ratios),
        max(ratios),
        one.verdict or "not sure",
        one.variant,
    ]


def _runtime(one: MeasuredVariant) -> Block:
    return Table(
        ("runtime workload", "weight", "base us", "us", "ratio", "95 %"),
        [
            [
                ", ".join(f"{axis}={value}" for axis, value in row.point.items()) or row.subbench,
                row.weight,
                f"{row.base_seconds * MICRO:.2f}",
                f"{row.seconds * MICRO:.2f}",
                row.ratio,
                _between(row.interval),
            ]
            for row in one.runtime
        ],
        label=f"runtime workloads of {one.variant}",
    )


def _between(interval: Interval | None) -> str:
    return "not known" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"


def _noise(workload: MeasuredWorkload) -> Iterator[Block]:
    if workload.noise:
        told = [
            f"{', '.join(row.point.values()) or row.subbench}: {_percent(row.between)}"
            for row in workload.noise
        ]
        yield Words(
            [f"{one}," for one in told[:-1]] + told[-1:],
            "dim",
            "base from process to process: ",
            later="  ",
        )
    if workload.score_noise is not None:
        yield Note(f"score of base against itself: {_percent(workload.score_noise)}", "dim")
    for one in workload.skipped:
        name = ", ".join(f"{axis}={value}" for axis, value in one.point.items())
        yield Words(f"not measured: {name}: {one.reason}", "dim")
    if workload.repeated or workload.throttled:
        yield Note(
            f"{plural(workload.repeated, 'sample')} taken again as the GPU was slowed down,"
            f" {workload.throttled:,} taken so",
            "yellow",
            folded=True,
        )
    if workload.restarts:
        yield Note(f"{plural(workload.restarts, 'process', 'processes')} started again", "yellow")


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.2f} %"


print_measured = printed(measured)
