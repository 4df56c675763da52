"""What a change is worth on a GPU: each workload, what got slower, and how noisy equal code is."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from policygen.model.plans import Plan
from policygen.model.reviews import Merged, Review, ReviewedEntry
from policygen.model.selection import Differing
from policygen.model.verdicts import RuntimePerformance, VerifyPerformance, WorkloadPerformance
from policygen.model.workload import axes, in_words, plain
from policygen.report import charts
from policygen.report.blocks import (
    BLANK,
    Block,
    Chapter,
    Column,
    Fold,
    Heading,
    Inline,
    Listing,
    Note,
    Styled,
    Table,
    Words,
    remarks,
)
from policygen.report.charts import point_name
from policygen.report.console import (
    interval_words,
    percent_words,
    plural,
    printed,
    ratio_words,
    short,
    tree_line,
)

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
TITLE = "Is it faster?"
ROWS = 500
"""As many rows as a page shows."""
DRAWN = 12
"""Workloads with figures."""
REVIEW_WORST = ("slower", "undecided", "faster", "equal", "same-code")
REVIEW_MICRO = 1e6
LOOKS = {"slower": "warn", "undecided": "warn", "faster": "good"}
MEANING = "The ratio is the time before over the time after: over 1 is faster"


# Is it faster: what a change was worth on a GPU, as a review shows it.


def performance_blocks(document: Review, level: int, rows: int | None) -> Iterator[Block]:
    """Show what was measured; nothing where nobody gave it."""
    told = document.performance
    if told is None:
        return
    page, most = rows is None, rows or ROWS
    yield Heading(TITLE, level, "performance" if page else "")
    yield Note(_where(told), "soft")
    yield Note(((f"{summary(told)}.", "bold"),))
    yield from (Note(text, "warn") for text in _doubts(document, told))
    measured = _ordered(one for one in told.workloads if one.ratio is not None)
    if measured:
        noise = noise_words(told)
        yield Note(f"{MEANING}{noise and f'; {noise}'}.", "soft")
        yield _table(measured[:most])
        yield from _more(len(measured) - most, "workload")
    yield from _slow_runtime(measured, most)
    if page:
        yield from _figures(measured, told.quantiles)
    yield from _unmeasured(told, most)
    yield from _review_performance_same(told, page=page)
    yield from (Note(remark, "soft") for remark in told.remarks[:most])


def measured_as_merged(entry: ReviewedEntry, document: Review) -> int:
    """Count the workloads of an entry that were measured before and after."""
    merged = document.merged
    return sum(is_merged(row, merged) for row in entry.reached)


def is_merged(row: Differing, merged: Merged) -> bool:
    """Whether a workload with other values is among those; an older dispatcher's is not."""
    return (row.point, row.arch) in merged and not row.legacy


def worst_runtime(one: WorkloadPerformance) -> RuntimePerformance | None:
    """The slowest one of those that are slower."""
    lost = (row for row in one.runtime if row.verdict == "slower")
    return min(lost, key=lambda row: row.ratio, default=None)


def is_slower(one: WorkloadPerformance) -> bool:
    """Whether it is slower, or one of its runtime workloads is."""
    return one.verdict == "slower" or worst_runtime(one) is not None


def workload_name(one: WorkloadPerformance) -> str:
    """Name a workload as the page does."""
    return in_words(short(one.benchmark), one.workload)


def runtime_name(one: WorkloadPerformance, row: RuntimePerformance) -> str:
    """Name a runtime workload; its sub-benchmark where there are several."""
    several = len({other.subbench for other in one.runtime}) > 1
    return point_name(row.subbench, row.point, several=several)


def performance_anchor(one: WorkloadPerformance) -> str:
    """Name the row of a workload on a page."""
    return f"performance/{one.arch}/{workload_name(one)}"


def slower_words(one: WorkloadPerformance) -> str:
    """Tell how much slower it is, and where it is worst."""
    told = f"before over after {ratio_words(one.ratio)}"
    told += f" ({interval_words(one.low, one.high)})"
    worst = worst_runtime(one)
    if worst is None:
        return told
    where = runtime_name(one, worst)
    return f"{told}, worst {ratio_words(worst.ratio)} for {where}" if where else told


def claim_words(one: WorkloadPerformance) -> str:
    """Tell what the change was written for, and whether that holds."""
    least = f"{ratio_words(one.claimed)}, at least {ratio_words(one.least)}"
    return f"{least}: {'holds' if one.holds else 'does not hold'}"


def _ordered(found: Iterator[WorkloadPerformance]) -> list[WorkloadPerformance]:
    """What got slower first."""
    return sorted(
        found,
        key=lambda one: (not is_slower(one), REVIEW_WORST.index(one.verdict), one.ratio, one.name),
    )


def _where(told: VerifyPerformance) -> str:
    """What it was measured on, and what was compared."""
    driver = f"driver {told.driver}" if told.driver else ""
    parts = [one for one in (told.gpu, told.arch, driver, told.toolchain) if one]
    return f"{', '.join(parts) or 'no GPU is named'}; {told.after}, compared with {told.before}"


def _doubts(document: Review, told: VerifyPerformance) -> Iterator[str]:
    """What it does not say of the change that is reviewed."""
    if told.before != document.base:
        yield (
            f"It was compared with {told.before}, and this review compares with {document.base}:"
            " whether that is the same is not known."
        )
    if told.cub is None:
        yield "Which tree was measured is not known."
    there = {(one.point, one.arch) for one in told.workloads}
    archs = {one.arch for one in told.workloads}
    reached = [row for entry in document.entries for row in entry.reached] + [*document.others]
    asked = {(row.point, row.arch) for row in reached if row.arch in archs and not row.legacy}
    if lost := len(asked - there):
        others = plural(lost, "workload")
        yield f"{others} with other values on {', '.join(sorted(archs))} not measured."


def _table(measured: Sequence[WorkloadPerformance]) -> Table:
    claims = any(one.claimed is not None for one in measured)
    numbers = [Column(title, "n") for title in ("ratio", "between", "noise")]
    columns: list[str | Column] = ["workload", "verdict", *numbers]
    columns += ["claim"] if claims else []
    rows: list[list[Inline | Styled]] = []
    for one in measured:
        cells: list[Inline | Styled] = [workload_name(one), _verdict(one), *_numbers(one)]
        rows.append([*cells, _claim(one)] if claims else cells)
    anchors = [performance_anchor(one) for one in measured]
    return Table(columns, rows, "speed", "Workloads before and after", anchors=anchors)


def _verdict(one: WorkloadPerformance) -> Styled:
    words, look = verdict_words(one), LOOKS.get(one.verdict, "")
    words = "not decided" if words == "undecided" else words
    if one.verdict != "slower" and is_slower(one):
        count = sum(row.verdict == "slower" for row in one.runtime)
        words, look = f"{words}; {plural(count, 'runtime workload')} slower", "warn"
    return Styled(words, look)


def _numbers(one: WorkloadPerformance | RuntimePerformance) -> list[Inline | Styled]:
    return [ratio_words(one.ratio), interval_words(one.low, one.high), percent_words(one.noise)]


def _claim(one: WorkloadPerformance) -> Styled:
    if one.claimed is None:
        return Styled("none")
    return Styled(claim_words(one), "" if one.holds else "warn")


def _slow_runtime(measured: Sequence[WorkloadPerformance], most: int) -> Iterator[Block]:
    """Runtime workloads that are slower, and those that are not decided."""
    found = [
        (row, one)
        for one in measured
        for row in one.runtime
        if row.verdict in {"slower", "undecided"}
    ]
    if not found:
        if any(one.runtime for one in measured):
            yield Note("No runtime workload is slower, and none is not decided.")
        return
    found.sort(key=lambda pair: (REVIEW_WORST.index(pair[0].verdict), pair[0].ratio))
    columns: list[str | Column] = [
        *("runtime workload", "workload", "verdict"),
        *(Column(n, "n") for n in ("µs before", "after", "ratio", "between", "noise")),
    ]
    rows: list[list[Inline | Styled]] = [
        [
            runtime_name(one, row),
            workload_name(one),
            Styled("not decided" if row.verdict == "undecided" else row.verdict, "warn"),
            *(_micro(seconds) for seconds in (row.before_seconds, row.after_seconds)),
            *_numbers(row),
        ]
        for row, one in found[:most]
    ]
    yield Note("Runtime workloads that are slower or not decided:")
    yield Table(columns, rows, "speed", "Runtime workloads that are slower or not decided")
    yield from _more(len(found) - most, "runtime workload")


def _micro(seconds: float) -> str:
    micro = seconds * REVIEW_MICRO
    return f"{micro:,.2f}" if micro < REVIEW_MICRO**2 else f"{micro:.0e}"


def _more(left: int, what: str, which: str = "") -> Iterator[Block]:
    if left > 0:
        yield Note(f"and {plural(left, f'more {what}')}{which}")


def _figures(measured: Sequence[WorkloadPerformance], at: Sequence[float]) -> Iterator[Block]:
    drawn = [one for one in measured if one.runtime][:DRAWN]
    if not drawn:
        return
    yield Chapter([charts.ratios(workload_name(one), one) for one in drawn], "figures", {})
    left = sum(bool(one.runtime) for one in measured) - len(drawn)
    yield from _more(left, "workload", " without figures")
    for one in drawn:
        if panels := list(charts.quantiles(one, at)):
            name = workload_name(one)
            summary = ((name, "bold"), (": at each quantile of the samples", ""))
            more = sum(bool(row.quantiles) for row in one.runtime) - len(panels)
            told = [*_more(more, "runtime workload", " of less weight")]
            yield Fold(summary, [Chapter(panels, "figures small", {}), *told])


def _unmeasured(told: VerifyPerformance, most: int) -> Iterator[Block]:
    """What runs otherwise after the change, and what could not be measured."""
    lost = []
    for one in told.workloads:
        if one.failed is not None:
            kind = "wrong results" if one.failed.kind == "wrong" else one.failed.kind
            lost.append(f"{workload_name(one)}: {kind}: {one.failed.reason}")
        elif one.problem is not None:
            lost.append(f"{workload_name(one)}: not measured: {one.problem}")
        elif one.ratio is None and one.open:
            lost.append(f"{workload_name(one)}: not measured, and nothing says why")
    if lost:
        yield Listing(lost[:most], "warn")
        yield from _more(len(lost) - most, "workload")


def _review_performance_same(told: VerifyPerformance, *, page: bool) -> Iterator[Block]:
    same = [workload_name(one) for one in told.workloads if one.verdict == "same-code"]
    if not same:
        return
    words = f"{plural(len(same), 'workload')} with the same machine code, equal by construction"
    if not page:
        yield Note(words)
        return
    yield Fold(words, [Listing(same[:ROWS]), *_more(len(same) - ROWS, "workload")])
