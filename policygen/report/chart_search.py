"""How a search got to its best, by evaluations and by time; and all of its scores."""

from collections.abc import Callable, Iterator, Sequence

from policygen.model.search_report import (
    ReportedFinalist,
    ReportedWorkload,
    SearchCurve,
    TriedVariant,
)
from policygen.report import chart
from policygen.report.blocks import Drawing, Mark
from policygen.report.chart import Panel

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
    low, high = chart.score_range(scores)
    shown = [score for score in scores if score >= low]
    panel = Panel(46, 44, WIDTH - 56, HEIGHT - 84, (1, max(2, len(shown))), (low, high))
    faster = sum(score > 1 for score in scores)
    marks = [
        chart.head("All scores, the best first"),
        *chart.up_axis(panel),
        *chart.across_axis(panel, whole=True),
        *chart.unit(panel),
        *chart.dots(
            ((panel.across(n), panel.up(s)) for n, s in enumerate(shown, 1)), "dots strong"
        ),
        *chart.frame(panel, "score", "rank"),
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
    low, high = chart.score_range(scores, [max(0.9, value) for value in ends])
    scale, unit = _unit(end) if what == "time" else (1.0, "variants measured")
    panel = Panel(46, 62, WIDTH - 56, HEIGHT - 102, (0, end), (low, high))
    best = _best([(panel.across(x), panel.up(v.score), v.score) for x, v in placed])
    right = panel.across(end)
    marks = [
        chart.head(title),
        *chart.legend(_legend(finals), 2, 32),
        *chart.up_axis(panel),
        *chart.across_axis(panel, scale=scale, whole=what == "evaluations"),
        *_strips(panel, curve, what),
        *chart.unit(panel),
        *chart.dots(((panel.across(x), panel.up(v.score)) for x, v in placed), "dots"),
        *chart.line(chart.stairs([*best, (right, best[-1][1])]) if best else (), "best"),
        *_finals(panel, finals, {v.variant: x for x, v in placed}),
        *chart.frame(panel, "score", unit),
    ]
    last = curve.best[-1]
    words = (
        f"{len(placed):,} variants; the best so far rose last at {last.evaluation:,} of"
        f" {curve.evaluations:,}, to {last.score:.3f} in the screening."
    )
    note = " ".join(filter(None, [words, chart.outside(scores, low)]))
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
        yield chart.diamond(x, panel.up(final.score), look, title)


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
        if right - left > len(span.rung) * chart.LETTER:
            where = {"x": (left + right) / 2, "y": panel.top - STRIP - 3}
            yield Mark("text", "tick mid", where, span.rung)


def _unit(seconds: float) -> tuple[float, str]:
    """What times are counted in."""
    if seconds < SHORT:
        return 1.0, "seconds of the search"
    return (MINUTE, "minutes of the search") if seconds < LONG else (HOUR, "hours of the search")
