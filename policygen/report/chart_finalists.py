"""The finalists: what they were worth at last beside what the screening said, and at quantiles."""

from collections.abc import Iterator, Sequence

from policygen.model.search_report import PointQuantiles, ReportedFinalist, ReportedWorkload
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

WIDTH = 420.0
ROW = 34.0
MOST = 12
"""Finalists that are drawn."""
SERIES = 5
KEY = 380.0
Point = tuple[str, tuple[tuple[str, str], ...]]


def intervals(one: ReportedWorkload) -> Drawing | None:
    """Each finalist with its interval, and where the screening had it."""
    shown = one.finalists[:MOST]
    if not shown:
        return None
    title = "Scores with intervals"
    own = [value for final in shown for value in _values(final)]
    low, high = min(own), max(own)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, WIDTH - 20, ROW * len(shown), (low - room, high + room), (0, 1))
    marks = [chart.head(title), *chart.legend(_entries(one), 2, 34), *_lines(panel)]
    for place, final in enumerate(shown):
        marks += _row(panel, final, panel.top + ROW * place, first=place == 0)
    marks += [
        *chart.across_axis(panel, 7),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark("text", "axis mid", {"x": WIDTH / 2, "y": panel.bottom + 31}, "score: base is 1"),
    ]
    more = len(one.finalists) - len(shown) + one.other_finalists
    words = f"{len(shown)} variants with their 95 % intervals, the best one first."
    note = f"and {more:,} more" if more and one.rung == "last" else ""
    return Drawing(title, words, WIDTH, panel.bottom + 36, marks, note)


def quantiles(one: ReportedWorkload, at: Sequence[float]) -> Iterator[Drawing]:
    """Base over the best variants at each quantile, a drawing for each runtime workload."""
    finals = [final for final in one.finalists if final.quantiles][:SERIES]
    if not finals:
        return
    yield _key(finals)
    points = shown_points(one)
    ratios = [
        ratio
        for final in finals
        for found in final.quantiles
        if _point(found) in points
        for ratio in found.ratios
    ]
    ends = ratio_ends(ratios)
    several = len({bench for bench, _ in points}) > 1
    for point in points:
        name = point_name(point[0], dict(point[1]), several=several)
        yield quantile_panel(name, _lines_at(point, finals), at, ends)


def shown_points(one: ReportedWorkload) -> list[Point]:
    """The runtime workloads whose quantiles are drawn, in their order."""
    weights: dict[Point, float] = {}
    for final in one.finalists:
        for row in final.runtime:
            weights.setdefault((row.subbench, tuple(row.point.items())), row.weight)
    known = {_point(found) for final in one.finalists for found in final.quantiles}
    kept = sorted(known, key=lambda point: -weights.get(point, 0.0))[:PANELS]
    return [point for point in weights if point in kept]


def _values(final: ReportedFinalist) -> list[float]:
    ends = [final.interval.low, final.interval.high] if final.interval else []
    screened = [] if final.screened is None else [final.screened]
    return [1.0, final.score, *ends, *screened]


def _entries(one: ReportedWorkload) -> list[tuple[str, str]]:
    if one.rung in {"last", "sharper"}:
        words = "last rung, 95 %" if one.rung == "last" else "more samples"
        return [("last", words), ("ring", "what the screening said")]
    return [("last", "score, 95 %")]


def _lines(panel: Panel) -> Iterator[Mark]:
    for value in chart.steps(*panel.x, 7):
        x = panel.across(value)
        yield Mark("path", "grid", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"})
    x = panel.across(1)
    yield Mark("path", "unit", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"}, title="base")


def _row(panel: Panel, final: ReportedFinalist, top: float, *, first: bool) -> Iterator[Mark]:
    y = top + 24
    title = f"{final.variant}: {final.score:.3f}"
    name = chart.cut(final.variant, panel.width)
    yield Mark("text", "label", {"x": panel.left, "y": top + 13}, name, final.variant)
    if final.interval:
        left, right = panel.across(final.interval.low), panel.across(final.interval.high)
        title += f", {final.interval.low:.3f} to {final.interval.high:.3f}"
        yield Mark("path", "whisker", {"d": f"M{left:.1f} {y:.1f}H{right:.1f}"}, title=title)
    if final.screened is not None:
        told = f"{final.variant}: {final.screened:.3f} in the screening"
        where = {"cx": panel.across(final.screened), "cy": y, "r": 4.5}
        yield Mark("circle", "ring", where, title=told)
    yield chart.diamond(panel.across(final.score), y, "last won" if first else "last", title)


def _key(finals: Sequence[ReportedFinalist]) -> Drawing:
    """Which line is which variant."""
    marks = []
    for place, final in enumerate(finals):
        y = 14.0 + 17 * place
        marks.append(Mark("path", f"series s{place}", {"d": f"M0 {y - 4:.1f}h28"}))
        name = chart.cut(final.variant, KEY - 40)
        marks.append(Mark("text", "label", {"x": 36.0, "y": y}, name, final.variant))
    words = ", ".join(final.variant for final in finals)
    return Drawing("Lines of the next figures", words, KEY, 17.0 * len(finals) + 6, marks)


def _lines_at(point: Point, finals: Sequence[ReportedFinalist]) -> Iterator[QuantileLine]:
    for place, final in enumerate(finals):
        found = next((one for one in final.quantiles if _point(one) == point), None)
        if found is not None:
            yield QuantileLine(f"series s{place}", final.variant, found.ratios)


def _point(found: PointQuantiles) -> Point:
    return found.subbench, tuple(found.point.items())
