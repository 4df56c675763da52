"""Is it faster: what a change was worth on a GPU, as a review shows it."""

from collections.abc import Iterator, Sequence

from policygen.model.performance import (
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)
from policygen.model.resolve import Differing
from policygen.model.review import Merged, Review, ReviewedEntry
from policygen.model.workload import in_words
from policygen.report import chart_performance
from policygen.report.blocks import (
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
)
from policygen.report.chart_quantiles import point_name
from policygen.report.console import interval_words, percent_words, plural, ratio_words, short
from policygen.report.views.performance import noise_words, summary, verdict_words

TITLE = "Is it faster?"
ROWS = 500
"""As many rows as a page shows."""
DRAWN = 12
"""Workloads with figures."""
WORST = ("slower", "undecided", "faster", "equal", "same-code")
MICRO = 1e6
LOOKS = {"slower": "warn", "undecided": "warn", "faster": "good"}
MEANING = "The ratio is the time before over the time after: over 1 is faster"


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
    yield from _same(told, page=page)
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
        found, key=lambda one: (not is_slower(one), WORST.index(one.verdict), one.ratio, one.name)
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
    found.sort(key=lambda pair: (WORST.index(pair[0].verdict), pair[0].ratio))
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
    micro = seconds * MICRO
    return f"{micro:,.2f}" if micro < MICRO**2 else f"{micro:.0e}"


def _more(left: int, what: str, which: str = "") -> Iterator[Block]:
    if left > 0:
        yield Note(f"and {plural(left, f'more {what}')}{which}")


def _figures(measured: Sequence[WorkloadPerformance], at: Sequence[float]) -> Iterator[Block]:
    drawn = [one for one in measured if one.runtime][:DRAWN]
    if not drawn:
        return
    yield Chapter(
        [chart_performance.ratios(workload_name(one), one) for one in drawn], "figures", {}
    )
    left = sum(bool(one.runtime) for one in measured) - len(drawn)
    yield from _more(left, "workload", " without figures")
    for one in drawn:
        if panels := list(chart_performance.quantiles(one, at)):
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


def _same(told: VerifyPerformance, *, page: bool) -> Iterator[Block]:
    same = [workload_name(one) for one in told.workloads if one.verdict == "same-code"]
    if not same:
        return
    words = f"{plural(len(same), 'workload')} with the same machine code, equal by construction"
    if not page:
        yield Note(words)
        return
    yield Fold(words, [Listing(same[:ROWS]), *_more(len(same) - ROWS, "workload")])
