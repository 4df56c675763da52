"""What a change is worth on a GPU: each workload, what got slower, and how noisy equal code is."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen.model.performance import (
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)
from policygen.model.plan import Plan
from policygen.model.workload import axes, plain
from policygen.report.blocks import BLANK, Block, Column, Note, Table, Words, remarks
from policygen.report.console import percent_words, plural, printed, tree_line

STYLES = {"faster": "green", "slower": "red", "equal": "dim", "undecided": "yellow"}
MICRO = 1e6
WORST = 4
"""As many runtime workloads of a workload as are shown without -v."""
SHOWN = 12
"""As many workloads with the same code as are named without -v."""


def performance(
    document: VerifyPerformance, *, head: bool, verbose: bool, entries: bool = False
) -> Iterator[Block]:
    """Show a row for each workload; below it its runtime workloads that are not equal."""
    if head:
        if document.cub:
            yield Note(tree_line(document.cub), "dim", folded=True)
        yield Words(f"before: {document.before}", "dim")
        if not document.cub:
            yield Words(f"after: {document.after}", "dim")
        if document.gpu:
            driver = document.driver and f"driver {document.driver}"
            where = [one for one in (document.gpu, driver, document.toolchain) if one]
            yield Note(", ".join(where), "dim", folded=True)
        yield BLANK
    measured = [one for one in document.workloads if one.ratio is not None]
    if measured:
        yield Table(
            (
                *(Column(title, "whole") for title in ("ratio", "between", "verdict")),
                "workload",
            ),
            [
                [*_cells(one.ratio, one.low, one.high), verdict_words(one), one.name]
                for one in measured
            ],
            styles=[STYLES[one.verdict] for one in measured],
            label="before over after, by workload",
        )
    for one in measured:
        yield from _runtime(document, one, verbose=verbose)
    if entries:
        yield from _entries(document)
    yield from _claims(measured)
    for one in document.workloads:
        if one.failed is not None:
            mark = "WRONG RESULTS" if one.failed.kind == "wrong" else one.failed.kind
            yield Words(f"{one.name}: {mark}: {one.failed.reason}", "red", "  ")
        elif one.problem is not None:
            how = "measured" if document.cub else "compared"
            yield Words(f"{one.name}: not {how}: {one.problem}", "yellow", "  ")
        for reason, count in Counter(point.reason for point in one.skipped).items():
            told = plural(count, "runtime workload")
            yield Words(f"{one.name}: {told} skipped: {reason}", "dim", "  ")
    yield from _same(document.workloads, verbose=verbose)
    yield from remarks(document.remarks)
    yield from _noise(document)
    if head:
        yield Words(summary(document), STYLES.get(document.verdict, "dim"))


def summary(document: VerifyPerformance) -> str:
    """Say in a line what it comes to."""
    every = document.workloads
    rows = sum(row.verdict == "slower" for one in every for row in one.runtime)
    verdicts = Counter(one.verdict for one in every)
    counts = {
        "faster": verdicts["faster"],
        "equal": verdicts["equal"],
        "slower": verdicts["slower"],
        "not decided": sum(one.open for one in every),
        "not running as before": sum(one.failed is not None for one in every),
        "not measured": sum(one.problem is not None for one in every),
        "with the same machine code": verdicts["same-code"],
    }
    parts = [f"{count} {words}" for words, count in counts.items() if count]
    told = f"{plural(len(every), 'workload')}: {', '.join(parts) or 'none'}"
    if rows:
        told += f"; {plural(rows, 'runtime workload')} slower"
    return told


def _cells(ratio: float | None, low: float | None, high: float | None) -> list[str | float]:
    between = "not known" if low is None or high is None else f"{low:.3f} to {high:.3f}"
    return [ratio or 0.0, between]


def verdict_words(one: WorkloadPerformance) -> str:
    """Tell by how much both sides differ at most, where neither is faster."""
    if one.verdict in {"equal", "undecided"} and one.within is not None:
        sure = "" if one.verdict == "equal" else "not decided: "
        return f"{sure}within {percent_words(one.within, 1)}"
    return one.verdict


def _runtime(
    document: VerifyPerformance, one: WorkloadPerformance, *, verbose: bool
) -> Iterator[Block]:
    bad = [row for row in one.runtime if row.verdict in {"slower", "undecided"}]
    worst = sorted(bad, key=lambda row: row.ratio)[:WORST]
    shown = [row for row in one.runtime if verbose or row in worst]
    if not shown:
        return
    yield BLANK
    yield Note(one.name, "bold", folded=True)
    yield Table(
        (
            *(
                Column(title, "whole")
                for title in ("us before", "after", "ratio", "between", "noise", "verdict")
            ),
            "runtime workload",
        ),
        [_row(row) for row in shown],
        styles=[STYLES[row.verdict] for row in shown],
        label=f"runtime workloads of {one.name}",
    )
    more, good = len(bad) - len(worst), len(one.runtime) - len(bad)
    if not verbose and (more or good):
        told = [f"{more:,} more slower or not decided"] if more else []
        told += [f"{good:,} faster or equal"] if good else []
        yield Note(f"and {', '.join(told)} (-v)", "dim")
    if document.tolerance is not None and any(map(document.too_slow, one.runtime)):
        yield Note(f"slower by more than the {100 * document.tolerance:g} % that it may be", "red")


def _row(row: RuntimePerformance) -> list[str | float]:
    return [
        f"{row.before_seconds * MICRO:.2f}",
        f"{row.after_seconds * MICRO:.2f}",
        *_cells(row.ratio, row.low, row.high),
        "" if row.noise is None else f"{100 * row.noise:.2f} %",
        row.verdict,
        _short(row),
    ]


def _short(row: RuntimePerformance) -> str:
    """Name a runtime workload by its values: `Elements=16 Entropy=1.000`."""
    return " ".join(axes(plain(row.point))) or row.subbench


def _entries(document: VerifyPerformance) -> Iterator[Block]:
    yield BLANK
    if not document.entries:
        yield Note("which entries decide is not known: nothing was measured, or other files differ")
        return
    yield Table(
        (
            *(Column(title, "whole") for title in ("ratio", "worst", "faster", "slower", "of")),
            "entry",
        ),
        [
            [
                one.ratio,
                one.worst_ratio,
                str(one.faster),
                str(one.slower),
                str(one.workloads),
                "no entry" if one.entry is None else f"{one.entry.header}: {one.entry.name}",
            ]
            for one in document.entries
        ],
        styles=[STYLES[one.verdict] for one in document.entries],
        label="by the entry that decides after the change",
    )


def _claims(measured: Sequence[WorkloadPerformance]) -> Iterator[Block]:
    for one in measured:
        if one.holds is False:
            yield Words(
                f"{one.name}: written for {one.claimed:.3f}, at least {one.least:.3f}; it is"
                f" {one.high:.3f} at most",
                "red",
                "  ",
            )


def _same(workloads: Sequence[WorkloadPerformance], *, verbose: bool) -> Iterator[Block]:
    same = [one for one in workloads if one.verdict == "same-code"]
    if not same:
        return
    yield Note(
        f"{plural(len(same), 'workload')} with the same machine code, equal by construction", "dim"
    )
    for one in same if verbose else same[:SHOWN]:
        yield Note(f"  {one.name}", "dim", folded=True)
    if not verbose and len(same) > SHOWN:
        yield Note(f"  and {len(same) - SHOWN:,} more (-v)", "dim")


def _noise(document: VerifyPerformance) -> Iterator[Block]:
    if words := noise_words(document):
        yield Words(words, "dim")


def noise_words(document: VerifyPerformance) -> str:
    """Tell how far equal code is from itself; nothing where nothing was measured."""
    noise = document.noise
    if noise is None:
        return ""
    what = "equal code" if document.cub else "a side"
    return (
        f"{what} against itself, from process to process: {percent_words(noise.least)} to"
        f" {percent_words(noise.most)}, in the middle {percent_words(noise.median)}; verdicts are"
        f" {100 * document.confidence:g} % sure, all together"
    )


def narrowed(plan: Plan | None, path: Path) -> str:
    """Say what became of a plan whose change was measured."""
    if plan is None:
        return "nothing is slower: there is nothing to narrow"
    written = sum(action.written for action in plan.actions)
    if not written:
        return f"{path}: nothing is left that is faster; take the change back: policygen undo"
    left = plural(written, "workload")
    return (
        f"{path}: {left} left. To write it: policygen undo, then policygen apply --plan"
        f" {shlex.quote(str(path))}"
    )


print_performance = printed(performance)
