"""Before over after: each runtime workload of a workload with its interval, and at quantiles."""

from collections.abc import Iterator, Sequence
from itertools import chain

from policygen.model.performance import RuntimePerformance, WorkloadPerformance
from policygen.report import chart
from policygen.report.blocks import Drawing, Mark
from policygen.report.chart import Panel
from policygen.report.chart_quantiles import (
    PANELS,
    QuantileLine,
    point_name,
    quantile_panel,
    ratio_ends,
)
from policygen.report.console import interval_words, ratio_words

WIDTH = 420.0
ROW = 34.0
MOST = 24
"""Runtime workloads that are drawn, the slowest ones."""
FAR = 10.0
"""Ratios over this, and below one over this, stand at the edge."""
RATIO = "before over after"
COLOURED = frozenset({"faster", "slower"})


def ratios(name: str, one: WorkloadPerformance) -> Drawing:
    """The ratio of a workload, and below it those of its runtime workloads."""
    shown = _slowest(one.runtime)
    own = [*_ends(one), *chain.from_iterable(map(_ends, shown))]
    low, high = min(1.0, *own), max(1.0, *own)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, WIDTH - 20, ROW * (1 + len(shown)), (low - room, high + room), (0, 1))
    marks = [chart.head(chart.cut(name, WIDTH, 7.2)), *_legend(), *_lines(panel)]
    marks += _row(panel, panel.top, "all of them, by their weights", one, "mean")
    several = len({row.subbench for row in one.runtime}) > 1
    for place, row in enumerate(shown, 1):
        called = point_name(row.subbench, row.point, several=several)
        marks += _row(panel, panel.top + ROW * place, called, row)
    marks += [
        *chart.across_axis(panel, 6),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark("text", "axis mid", {"x": WIDTH / 2, "y": panel.bottom + 31}, f"{RATIO}: 1 is equal"),
    ]
    counts = {
        verdict: sum(row.verdict == verdict for row in one.runtime)
        for verdict in ("faster", "equal", "slower", "undecided")
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    words = f"{len(one.runtime)} runtime workloads with their intervals: {told or 'none'}."
    return Drawing(
        f"{RATIO.capitalize()}: {name}", words, WIDTH, panel.bottom + 36, marks, _left(one, shown)
    )


def quantiles(one: WorkloadPerformance, at: Sequence[float]) -> Iterator[Drawing]:
    """Before over after at each quantile, a drawing for each of the heaviest runtime workloads."""
    known = sorted((row for row in one.runtime if row.quantiles), key=lambda row: -row.weight)
    kept = {id(row) for row in known[:PANELS]}
    shown = [row for row in one.runtime if id(row) in kept]
    ends = ratio_ends(min(FAR, ratio) for row in shown for ratio in row.quantiles)
    several = len({row.subbench for row in one.runtime}) > 1
    for row in shown:
        name = point_name(row.subbench, row.point, several=several)
        yield quantile_panel(
            name, [QuantileLine("series s0", RATIO, row.quantiles)], at, ends, RATIO
        )


def _slowest(rows: Sequence[RuntimePerformance]) -> list[RuntimePerformance]:
    """As many as fit, in their order."""
    kept = {id(row) for row in sorted(rows, key=lambda row: row.ratio)[:MOST]}
    return [row for row in rows if id(row) in kept]


def _ends(one: RuntimePerformance | WorkloadPerformance) -> Iterator[float]:
    """The ends of what is drawn of it."""
    return (min(FAR, max(1 / FAR, value)) for value in _known(one))


def _known(one: RuntimePerformance | WorkloadPerformance) -> list[float]:
    return [value for value in (one.ratio, one.low, one.high) if value is not None]


def _left(one: WorkloadPerformance, shown: Sequence[RuntimePerformance]) -> str:
    left = len(one.runtime) - len(shown)
    told = [f"and {left:,} more, all of them faster than these"] if left else []
    far = sum(any(not 1 / FAR <= value <= FAR for value in _known(row)) for row in shown)
    told += [f"{far:,} with an interval beyond {1 / FAR:g} to {FAR:g}: at the edge"] if far else []
    return "; ".join(told)


def _legend() -> list[Mark]:
    names = [("last faster", "faster"), ("last slower", "slower"), ("last", "equal or not decided")]
    return list(chart.legend(names, 2, 34))


def _lines(panel: Panel) -> Iterator[Mark]:
    for value in chart.steps(*panel.x, 6):
        x = panel.across(value)
        yield Mark("path", "grid", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"})
    x = panel.across(1)
    where = {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"}
    yield Mark("path", "unit", where, title="as fast as before")


def _row(
    panel: Panel,
    top: float,
    name: str,
    one: RuntimePerformance | WorkloadPerformance,
    style: str = "",
) -> Iterator[Mark]:
    if one.ratio is None:
        return
    y, look = top + 24, f" {one.verdict}" if one.verdict in COLOURED else ""
    title = f"{name}: {ratio_words(one.ratio)}, {interval_words(one.low, one.high)}, {one.verdict}"
    where = {"x": panel.left, "y": top + 13}
    yield Mark("text", f"label {style}".strip(), where, chart.cut(name, panel.width), name)
    if one.low is not None and one.high is not None:
        left, right = panel.across(one.low), panel.across(one.high)
        path = f"M{left:.1f} {y:.1f}H{right:.1f}"
        yield Mark("path", f"whisker{look}", {"d": path}, title=title)
    yield chart.diamond(panel.across(one.ratio), y, f"last{look}", title)
