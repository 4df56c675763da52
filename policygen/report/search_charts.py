"""Charts of a search: best score by evaluations and by time, and all scores."""

from collections.abc import Callable, Iterator, Sequence

from policygen.model.searches import (
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
"""Height of the strips that show when each rung was measured."""
At = Callable[[TriedVariant], float | None]
MINUTE, HOUR = 60.0, 3600.0
SHORT, LONG = 5 * MINUTE, 5 * HOUR


def convergence(workload: ReportedWorkload) -> Iterator[Drawing]:
    """Best score by evaluations, and by time if rows record it."""
    if workload.curve is None:
        return
    yield _convergence_over(
        workload,
        workload.curve,
        "evaluations",
        lambda variant: variant.evaluation,
        float(workload.curve.evaluations),
    )
    if workload.curve.seconds and any(variant.seconds is not None for variant in workload.variants):
        yield _convergence_over(
            workload,
            workload.curve,
            "time",
            lambda variant: variant.seconds,
            workload.curve.seconds,
        )


def by_rank(workload: ReportedWorkload) -> Drawing:
    """All scores in descending order, to show whether the best one stands out."""
    scores = sorted((variant.score for variant in workload.variants), reverse=True)
    low, high = charts.score_range(scores)
    shown = [score for score in scores if score >= low]
    panel = Panel(46, 44, WIDTH - 56, HEIGHT - 84, (1, max(2, len(shown))), (low, high))
    faster = sum(score > 1 for score in scores)
    marks = [
        charts.head("All scores, the best first"),
        *charts.y_axis(panel),
        *charts.x_axis(panel, whole=True),
        *charts.unit(panel),
        *charts.dots(
            ((panel.across(rank), panel.up(score)) for rank, score in enumerate(shown, 1)),
            "dots strong",
        ),
        *charts.frame(panel, "score", "rank"),
    ]
    words = (
        f"{len(scores):,} scores from {scores[0]:.3f} down to {scores[-1]:.3f};"
        f" {faster:,} are above 1, where base is; {len(scores) - len(shown):,} are lower than is"
        " drawn."
    )
    return Drawing("All scores, the best first", words, WIDTH, HEIGHT, marks, words)


def _convergence_over(
    workload: ReportedWorkload, curve: SearchCurve, unit_name: str, coordinate: At, end: float
) -> Drawing:
    """Each variant when it was measured, the best score so far, and the last rung."""
    title = f"The best score by {unit_name}"
    finals = workload.finalists if workload.rung == "last" else ()
    points = [
        (x, variant) for variant in workload.variants if (x := coordinate(variant)) is not None
    ]
    scores = [variant.score for _, variant in points]
    ends = [value for final in finals for value in _score_and_interval(final)]
    low, high = charts.score_range(scores, [max(0.9, value) for value in ends])
    scale, unit = _unit(end) if unit_name == "time" else (1.0, "variants measured")
    panel = Panel(46, 62, WIDTH - 56, HEIGHT - 102, (0, end), (low, high))
    best = _rises(
        [(panel.across(x), panel.up(variant.score), variant.score) for x, variant in points]
    )
    right = panel.across(end)
    marks = [
        charts.head(title),
        *charts.legend(_legend(finals), 2, 32),
        *charts.y_axis(panel),
        *charts.x_axis(panel, scale=scale, whole=unit_name == "evaluations"),
        *_rung_strips(panel, curve, unit_name),
        *charts.unit(panel),
        *charts.dots(((panel.across(x), panel.up(variant.score)) for x, variant in points), "dots"),
        *charts.line(charts.stairs([*best, (right, best[-1][1])]) if best else (), "best"),
        *_finalist_marks(panel, finals, {variant.variant: x for x, variant in points}),
        *charts.frame(panel, "score", unit),
    ]
    last_rise = curve.best[-1]
    words = (
        f"{len(points):,} variants; the best so far rose last at {last_rise.evaluation:,} of"
        f" {curve.evaluations:,}, to {last_rise.score:.3f} in the screening."
    )
    note = " ".join(filter(None, [words, charts.outside(scores, low)]))
    return Drawing(title, note, WIDTH, HEIGHT, marks, note)


def _legend(finals: Sequence[ReportedFinalist]) -> list[tuple[str, str]]:
    entries = [("dots", "screening"), ("best", "its best so far")]
    return [*entries, *([("last", "last rung, with its interval")] if finals else [])]


def _rises(points: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Points at which the best score so far rises."""
    rises: list[tuple[float, float]] = []
    top = 0.0
    for x, y, score in points:
        if score > top:
            top = score
            rises.append((x, y))
    return rises


def _score_and_interval(final: ReportedFinalist) -> list[float]:
    interval = final.interval
    return [final.score, *((interval.low, interval.high) if interval else ())]


def _finalist_marks(
    panel: Panel, finals: Sequence[ReportedFinalist], position_by_variant: dict[str, float]
) -> Iterator[Mark]:
    """Mark each finalist where it was found, at its final score, with the best one on top."""
    for rank, final in reversed(list(enumerate(finals))):
        if final.variant not in position_by_variant:
            continue
        x = panel.across(position_by_variant[final.variant])
        look = "last won" if rank == 0 else "last"
        title = f"{final.variant}: {final.score:.3f} in the last rung"
        if final.interval:
            high, low = panel.up(final.interval.high), panel.up(final.interval.low)
            path = f"M{x:.1f} {high:.1f}V{low:.1f}"
            yield Mark("path", "whisker", {"d": path})
            title += f", {final.interval.low:.3f} to {final.interval.high:.3f}"
        if final.screened is not None:
            title += f"; {final.screened:.3f} in the screening"
        yield charts.diamond(x, panel.up(final.score), look, title)


def _rung_strips(panel: Panel, curve: SearchCurve, axis: str) -> Iterator[Mark]:
    """Time span of each rung along the upper edge."""
    if axis != "time":
        return
    for span in curve.spans:
        left, right = panel.across(span.start), panel.across(span.end)
        size = {"x": left, "y": panel.top - STRIP, "width": max(1.5, right - left), "height": STRIP}
        scale, unit = _unit(panel.x[1])
        title = f"{span.rung}: {span.start / scale:.1f} to {span.end / scale:.1f} {unit}"
        yield Mark("rect", f"rung {span.rung}", size, title=title)
        if right - left > len(span.rung) * charts.LETTER:
            attributes = {"x": (left + right) / 2, "y": panel.top - STRIP - 3}
            yield Mark("text", "tick mid", attributes, span.rung)


def _unit(seconds: float) -> tuple[float, str]:
    """Unit of the time axis."""
    if seconds < SHORT:
        return 1.0, "seconds of the search"
    return (MINUTE, "minutes of the search") if seconds < LONG else (HOUR, "hours of the search")


FINALISTS_WIDTH = 420.0
ROW = 34.0
MOST = 12
"""Maximum number of finalists drawn."""
SERIES = 5
KEY = 380.0
Point = tuple[str, tuple[tuple[str, str], ...]]


# Finalists: final scores next to screening scores, and quantiles


def intervals(workload: ReportedWorkload) -> Drawing | None:
    """Each finalist with its interval and its screening score."""
    shown = workload.finalists[:MOST]
    if not shown:
        return None
    title = "Scores with intervals"
    values = [value for final in shown for value in _values(final)]
    low, high = min(values), max(values)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, FINALISTS_WIDTH - 20, ROW * len(shown), (low - room, high + room), (0, 1))
    marks = [charts.head(title), *charts.legend(_interval_legend(workload), 2, 34), *_lines(panel)]
    for rank, final in enumerate(shown):
        marks += _row(panel, final, panel.top + ROW * rank, first=rank == 0)
    marks += [
        *charts.x_axis(panel, 7),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark(
            "text",
            "axis mid",
            {"x": FINALISTS_WIDTH / 2, "y": panel.bottom + 31},
            "score: base is 1",
        ),
    ]
    hidden = len(workload.finalists) - len(shown) + workload.other_finalists
    words = f"{len(shown)} variants with their 95 % intervals, the best one first."
    note = f"and {hidden:,} more" if hidden and workload.rung == "last" else ""
    return Drawing(title, words, FINALISTS_WIDTH, panel.bottom + 36, marks, note)


def quantiles(workload: ReportedWorkload, levels: Sequence[float]) -> Iterator[Drawing]:
    """Base over the best variants at each quantile, one drawing per runtime workload."""
    finals = [final for final in workload.finalists if final.quantiles][:SERIES]
    if not finals:
        return
    yield _quantile_key(finals)
    points = shown_points(workload)
    ratios = [
        ratio
        for final in finals
        for point_quantiles in final.quantiles
        if _point(point_quantiles) in points
        for ratio in point_quantiles.ratios
    ]
    ends = ratio_ends(ratios)
    several = len({bench for bench, _ in points}) > 1
    for point in points:
        name = point_name(point[0], dict(point[1]), several=several)
        yield quantile_panel(name, _lines_at(point, finals), levels, ends)


def shown_points(workload: ReportedWorkload) -> list[Point]:
    """Runtime workloads whose quantiles are drawn, in their original order."""
    weights: dict[Point, float] = {}
    for final in workload.finalists:
        for row in final.runtime:
            weights.setdefault((row.subbench, tuple(row.point.items())), row.weight)
    points_with_quantiles = {
        _point(point_quantiles)
        for final in workload.finalists
        for point_quantiles in final.quantiles
    }
    heaviest = sorted(points_with_quantiles, key=lambda point: -weights.get(point, 0.0))[:PANELS]
    return [point for point in weights if point in heaviest]


def _values(final: ReportedFinalist) -> list[float]:
    ends = [final.interval.low, final.interval.high] if final.interval else []
    screened = [] if final.screened is None else [final.screened]
    return [1.0, final.score, *ends, *screened]


def _interval_legend(workload: ReportedWorkload) -> list[tuple[str, str]]:
    if workload.rung in {"last", "sharper"}:
        words = "last rung, 95 %" if workload.rung == "last" else "more samples"
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
        screening_title = f"{final.variant}: {final.screened:.3f} in the screening"
        attributes = {"cx": panel.across(final.screened), "cy": y, "r": 4.5}
        yield Mark("circle", "ring", attributes, title=screening_title)
    yield charts.diamond(panel.across(final.score), y, "last won" if first else "last", title)


def _quantile_key(finals: Sequence[ReportedFinalist]) -> Drawing:
    """Legend that maps lines to variants."""
    marks = []
    for index, final in enumerate(finals):
        y = 14.0 + 17 * index
        marks.append(Mark("path", f"series s{index}", {"d": f"M0 {y - 4:.1f}h28"}))
        name = charts.cut(final.variant, KEY - 40)
        marks.append(Mark("text", "label", {"x": 36.0, "y": y}, name, final.variant))
    words = ", ".join(final.variant for final in finals)
    return Drawing("Lines of the next figures", words, KEY, 17.0 * len(finals) + 6, marks)


def _lines_at(point: Point, finals: Sequence[ReportedFinalist]) -> Iterator[QuantileLine]:
    for index, final in enumerate(finals):
        point_quantiles = next(
            (candidate for candidate in final.quantiles if _point(candidate) == point), None
        )
        if point_quantiles is not None:
            yield QuantileLine(f"series s{index}", final.variant, point_quantiles.ratios)


def _point(point_quantiles: PointQuantiles) -> Point:
    return point_quantiles.subbench, tuple(point_quantiles.point.items())
