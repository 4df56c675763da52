"""How a search got to its best, by evaluations and by time; and all of its scores."""

from collections.abc import Callable, Iterator, Sequence

from policygen.model.search_pages import (
    PointQuantiles,
    ReportedFinalist,
    ReportedWorkload,
    SearchCurve,
    TriedVariant,
)
from policygen.report import charts
from policygen.report.blocks import Drawing, Mark
from policygen.report.charts import (
    PANELS,
    Panel,
    QuantileLine,
    point_name,
    quantile_panel,
    ratio_ends,
)

WIDTH, HEIGHT = 420.0, 250.0
STRIP = 5.0
"""The height of what tells when a rung was measured."""
At = Callable[[TriedVariant], float | None]
MINUTE, HOUR = 60.0, 3600.0
SHORT, LONG = 5 * MINUTE, 5 * HOUR


def convergence(one: ReportedWorkload) -> Iterator[Drawing]:
    """The best score by evaluations, and by time where rows tell it."""
    if one.curve is None:
        return
    yield _by(one, one.curve, "evaluations", lambda v: v.evaluation, float(one.curve.evaluations))
    if one.curve.seconds and any(variant.seconds is not None for variant in one.variants):
        yield _by(one, one.curve, "time", lambda v: v.seconds, one.curve.seconds)


def by_rank(one: ReportedWorkload) -> Drawing:
    """All scores, the best first: whether the best one stands alone."""
    scores = sorted((variant.score for variant in one.variants), reverse=True)
    low, high = charts.score_range(scores)
    shown = [score for score in scores if score >= low]
    panel = Panel(46, 44, WIDTH - 56, HEIGHT - 84, (1, max(2, len(shown))), (low, high))
    faster = sum(score > 1 for score in scores)
    marks = [
        charts.head("All scores, the best first"),
        *charts.up_axis(panel),
        *charts.across_axis(panel, whole=True),
        *charts.unit(panel),
        *charts.dots(
            ((panel.across(n), panel.up(s)) for n, s in enumerate(shown, 1)), "dots strong"
        ),
        *charts.frame(panel, "score", "rank"),
    ]
    words = (
        f"{len(scores):,} scores from {scores[0]:.3f} down to {scores[-1]:.3f};"
        f" {faster:,} are above 1, where base is; {len(scores) - len(shown):,} are lower than is"
        " drawn."
    )
    return Drawing("All scores, the best first", words, WIDTH, HEIGHT, marks, words)


def _by(one: ReportedWorkload, curve: SearchCurve, what: str, at: At, end: float) -> Drawing:
    """Each variant where it was measured, the best so far, and what the last rung says."""
    title = f"The best score by {what}"
    finals = one.finalists if one.rung == "last" else ()
    placed = [(x, v) for v in one.variants if (x := at(v)) is not None]
    scores = [variant.score for _, variant in placed]
    ends = [value for final in finals for value in _ends(final)]
    low, high = charts.score_range(scores, [max(0.9, value) for value in ends])
    scale, unit = _unit(end) if what == "time" else (1.0, "variants measured")
    panel = Panel(46, 62, WIDTH - 56, HEIGHT - 102, (0, end), (low, high))
    best = _best([(panel.across(x), panel.up(v.score), v.score) for x, v in placed])
    right = panel.across(end)
    marks = [
        charts.head(title),
        *charts.legend(_legend(finals), 2, 32),
        *charts.up_axis(panel),
        *charts.across_axis(panel, scale=scale, whole=what == "evaluations"),
        *_strips(panel, curve, what),
        *charts.unit(panel),
        *charts.dots(((panel.across(x), panel.up(v.score)) for x, v in placed), "dots"),
        *charts.line(charts.stairs([*best, (right, best[-1][1])]) if best else (), "best"),
        *_finals(panel, finals, {v.variant: x for x, v in placed}),
        *charts.frame(panel, "score", unit),
    ]
    last = curve.best[-1]
    words = (
        f"{len(placed):,} variants; the best so far rose last at {last.evaluation:,} of"
        f" {curve.evaluations:,}, to {last.score:.3f} in the screening."
    )
    note = " ".join(filter(None, [words, charts.outside(scores, low)]))
    return Drawing(title, note, WIDTH, HEIGHT, marks, note)


def _legend(finals: Sequence[ReportedFinalist]) -> list[tuple[str, str]]:
    entries = [("dots", "screening"), ("best", "its best so far")]
    return [*entries, *([("last", "last rung, with its interval")] if finals else [])]


def _best(placed: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Where the best so far rises."""
    found: list[tuple[float, float]] = []
    top = 0.0
    for x, y, score in placed:
        if score > top:
            top = score
            found.append((x, y))
    return found


def _ends(final: ReportedFinalist) -> list[float]:
    interval = final.interval
    return [final.score, *((interval.low, interval.high) if interval else ())]


def _finals(
    panel: Panel, finals: Sequence[ReportedFinalist], found: dict[str, float]
) -> Iterator[Mark]:
    """Each finalist where it was found, at what it was worth at last; the best one on top."""
    for place, final in reversed(list(enumerate(finals))):
        if final.variant not in found:
            continue
        x = panel.across(found[final.variant])
        look = "last won" if place == 0 else "last"
        title = f"{final.variant}: {final.score:.3f} in the last rung"
        if final.interval:
            high, low = panel.up(final.interval.high), panel.up(final.interval.low)
            path = f"M{x:.1f} {high:.1f}V{low:.1f}"
            yield Mark("path", "whisker", {"d": path})
            title += f", {final.interval.low:.3f} to {final.interval.high:.3f}"
        if final.screened is not None:
            title += f"; {final.screened:.3f} in the screening"
        yield charts.diamond(x, panel.up(final.score), look, title)


def _strips(panel: Panel, curve: SearchCurve, what: str) -> Iterator[Mark]:
    """When samples of each rung were taken, along the upper edge."""
    if what != "time":
        return
    for span in curve.spans:
        left, right = panel.across(span.start), panel.across(span.end)
        size = {"x": left, "y": panel.top - STRIP, "width": max(1.5, right - left), "height": STRIP}
        scale, unit = _unit(panel.x[1])
        title = f"{span.rung}: {span.start / scale:.1f} to {span.end / scale:.1f} {unit}"
        yield Mark("rect", f"rung {span.rung}", size, title=title)
        if right - left > len(span.rung) * charts.LETTER:
            where = {"x": (left + right) / 2, "y": panel.top - STRIP - 3}
            yield Mark("text", "tick mid", where, span.rung)


def _unit(seconds: float) -> tuple[float, str]:
    """What times are counted in."""
    if seconds < SHORT:
        return 1.0, "seconds of the search"
    return (MINUTE, "minutes of the search") if seconds < LONG else (HOUR, "hours of the search")


FINALISTS_WIDTH = 420.0
ROW = 34.0
MOST = 12
"""Finalists that are drawn."""
SERIES = 5
KEY = 380.0
Point = tuple[str, tuple[tuple[str, str], ...]]


# The finalists: what they were worth at last beside what the screening said, and at quantiles.


def intervals(one: ReportedWorkload) -> Drawing | None:
    """Each finalist with its interval, and where the screening had it."""
    shown = one.finalists[:MOST]
    if not shown:
        return None
    title = "Scores with intervals"
    own = [value for final in shown for value in _values(final)]
    low, high = min(own), max(own)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, FINALISTS_WIDTH - 20, ROW * len(shown), (low - room, high + room), (0, 1))
    marks = [charts.head(title), *charts.legend(_entries(one), 2, 34), *_lines(panel)]
    for place, final in enumerate(shown):
        marks += _row(panel, final, panel.top + ROW * place, first=place == 0)
    marks += [
        *charts.across_axis(panel, 7),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark(
            "text",
            "axis mid",
            {"x": FINALISTS_WIDTH / 2, "y": panel.bottom + 31},
            "score: base is 1",
        ),
    ]
    more = len(one.finalists) - len(shown) + one.other_finalists
    words = f"{len(shown)} variants with their 95 % intervals, the best one first."
    note = f"and {more:,} more" if more and one.rung == "last" else ""
    return Drawing(title, words, FINALISTS_WIDTH, panel.bottom + 36, marks, note)


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
    for value in charts.steps(*panel.x, 7):
        x = panel.across(value)
        yield Mark("path", "grid", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"})
    x = panel.across(1)
    yield Mark("path", "unit", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"}, title="base")


def _row(panel: Panel, final: ReportedFinalist, top: float, *, first: bool) -> Iterator[Mark]:
    y = top + 24
    title = f"{final.variant}: {final.score:.3f}"
    name = charts.cut(final.variant, panel.width)
    yield Mark("text", "label", {"x": panel.left, "y": top + 13}, name, final.variant)
    if final.interval:
        left, right = panel.across(final.interval.low), panel.across(final.interval.high)
        title += f", {final.interval.low:.3f} to {final.interval.high:.3f}"
        yield Mark("path", "whisker", {"d": f"M{left:.1f} {y:.1f}H{right:.1f}"}, title=title)
    if final.screened is not None:
        told = f"{final.variant}: {final.screened:.3f} in the screening"
        where = {"cx": panel.across(final.screened), "cy": y, "r": 4.5}
        yield Mark("circle", "ring", where, title=told)
    yield charts.diamond(panel.across(final.score), y, "last won" if first else "last", title)


def _key(finals: Sequence[ReportedFinalist]) -> Drawing:
    """Which line is which variant."""
    marks = []
    for place, final in enumerate(finals):
        y = 14.0 + 17 * place
        marks.append(Mark("path", f"series s{place}", {"d": f"M0 {y - 4:.1f}h28"}))
        name = charts.cut(final.variant, KEY - 40)
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
