"""Scores against each parameter, and over pairs of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Self

from policygen.model.labels import parse_label
from policygen.model.search_report import ReportedWorkload
from policygen.report import chart
from policygen.report.bins import Bins, ScoredCell, Space, Values
from policygen.report.blocks import Drawing, Mark
from policygen.report.chart import Panel

WIDTH = 360.0
MOST = 12
"""Parameters that are drawn."""
PAIRED = 5
"""Parameters whose pairs are drawn."""
SHADES = 5
"""Steps of a colour from base to the end of the scale, on either side."""
LEAST_SPAN = 0.02
"""What is nearer to base is noise, and is not blown up."""
Grid = dict[tuple[int, int], ScoredCell]
ROOM = 30.0
"""Pixels that a number needs in a cell."""


@dataclass(frozen=True, slots=True)
class MarkedVariants:
    """Two variants that are marked in all figures."""

    winner: Values
    score: float
    """The winner's, as it is drawn."""
    today: Values
    """What CUB selects."""

    @classmethod
    def of(cls, one: ReportedWorkload) -> Self:
        """Those of a workload; empty where they are not known."""
        labels = (one.best, one.base)
        winner, today = (parse_label(label) or {} if label else {} for label in labels)
        score = next((v.score for v in one.variants if v.variant == one.best), 1.0)
        return cls(winner, score, today)


@dataclass(frozen=True, slots=True)
class Colours:
    """How far from base the last colour is, on either side."""

    faster: float
    slower: float

    @classmethod
    def of(cls, scores: Sequence[float]) -> Self:
        """By what the best one gains, and what half of the slower ones lose at least."""
        faster = max(LEAST_SPAN, max(scores) - 1)
        losses = [1 - score for score in scores if score < 1]
        return cls(faster, max(faster, median(losses)) if losses else faster)

    def shade(self, score: float) -> str:
        """The look of a score: base is in the middle."""
        span = self.faster if score > 1 else self.slower
        return f"h{SHADES + max(-SHADES, min(SHADES, round((score - 1) / span * SHADES)))}"


def by_parameter(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw scores against each parameter, all at one scale."""
    scores = [score for _, score, _ in space.measured]
    if not scores:
        return
    ends = chart.score_range(scores)
    for one in space.leading(MOST):
        yield _parameter(space, one, marked, ends, scores)


def by_pair(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw the best score of each pair of values, all in the same colours."""
    leading = space.leading(PAIRED)
    grids = [(x, y, space.grid(x, y)) for x, y in combinations(leading, 2)]
    best = [max(c.scores) for _, _, grid in grids for c in grid.values() if c.scores]
    if not best:
        return
    colours = Colours.of(best)
    for x, y, grid in grids:
        yield _pair(x, y, grid, colours, marked)


def _parameter(
    space: Space,
    one: Bins,
    marked: MarkedVariants,
    ends: tuple[float, float],
    scores: Sequence[float],
) -> Drawing:
    title = f"Score against {one.name}"
    panel = Panel(46, 54, WIDTH - 56, 160, (0, len(one.bins)), ends)
    names = [("dots", "variant"), ("best", "best"), ("median", "median")]
    names += [("last won", "winner")] if one.name in marked.winner else []
    names += [("ring", "CUB today")] if one.name in marked.today else []
    cells = space.column(one)
    best = [
        (panel.across(place + 0.5), panel.up(max(cell.scores)))
        for place, cell in enumerate(cells)
        if cell.scores
    ]
    marks = [
        chart.head(title),
        *chart.legend(names, 2, 32),
        *chart.up_axis(panel),
        *_ticks(panel, one),
        *chart.unit(panel),
        *chart.dots(_dots(panel, space, one), "dots"),
        *_medians(panel, cells),
        *chart.line(best, "best"),
        *_failed(panel, cells),
        *chart.frame(panel, "score", one.name),
        *_hints(panel, one, cells),
        *_marked(panel, one, marked),
    ]
    top = max((cell for cell in cells if cell.scores), key=lambda cell: max(cell.scores))
    place = cells.index(top)
    words = (
        f"Best at {one.name} {one.bins[place].text}; {space.shares[one.name] * 100:.0f} % of the"
        " difference between scores goes with it."
    )
    note = " ".join(filter(None, [words, chart.outside(scores, ends[0])]))
    return Drawing(title, note, WIDTH, panel.bottom + 36, marks, words)


def _dots(panel: Panel, space: Space, one: Bins) -> Iterator[chart.Place]:
    """Side by side as far as there is room, so that they can be told apart; ranges in order."""
    step = 0.6180339887  # of a circle: no two that follow each other are near
    for number, (values, score, _) in enumerate(space.measured):
        if one.name in values:
            value = values[one.name]
            place = one.place(value)
            found = one.bins[place]
            inside = (
                0.2 + 0.6 * (number * step % 1)
                if found.low == found.high
                else (value - found.low + 0.5) / (found.high - found.low + 1)
            )
            yield panel.across(place + inside), panel.up(score)


def _marked(panel: Panel, one: Bins, marked: MarkedVariants) -> Iterator[Mark]:
    """The winner at its score, and what CUB selects where base is."""
    if (place := one.found(marked.today)) is not None:
        title = f"CUB selects {one.name} {marked.today[one.name]} today"
        where = {"cx": panel.across(place + 0.5), "cy": panel.up(1), "r": 4.5}
        yield Mark("circle", "ring today", where, title=title)
    if (place := one.found(marked.winner)) is not None:
        title = f"the winner: {one.name} {marked.winner[one.name]}"
        x, y = panel.across(place + 0.5), panel.up(marked.score)
        yield chart.diamond(x, y, "last won", title, 4.5)


def _medians(panel: Panel, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    for place, cell in enumerate(cells):
        if cell.scores and median(cell.scores) >= panel.y[0]:
            left, y = panel.across(place + 0.2), panel.up(median(cell.scores))
            width = panel.across(place + 0.8) - left
            yield Mark("path", "median", {"d": f"M{left:.1f} {y:.1f}h{width:.1f}"})


def _failed(panel: Panel, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    """A cross above the lower edge where variants fail."""
    for place, cell in enumerate(cells):
        if cell.failed:
            x, y = panel.across(place + 0.5), panel.bottom - 7
            path = f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6"
            yield Mark("path", "cross", {"d": path})


def _hints(panel: Panel, one: Bins, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    """What one sees by pointing at a value."""
    for place, cell in enumerate(cells):
        if cell.words:
            left, right = panel.across(place), panel.across(place + 1)
            size = {"x": left, "y": panel.top, "width": right - left, "height": panel.height}
            title = f"{one.name} {one.bins[place].text}: {cell.words}"
            yield Mark("rect", "hint", size, title=title)


def _ticks(panel: Panel, one: Bins) -> Iterator[Mark]:
    """The values below a panel, as many as there is room for."""
    texts = [str(found.low) for found in one.bins]
    wide = panel.width / len(texts)
    every = max(1, -int(-(max(map(len, texts)) * chart.LETTER + 7) // wide))
    # A range begins at its number, a value stands above it.
    inside = 0.5 if one.bins[0].low == one.bins[0].high else 0.0
    for place in range(0, len(texts), every):
        x = panel.across(place + inside)
        yield Mark("path", "edge", {"d": f"M{x:.1f} {panel.bottom:.1f}v4"})
        yield Mark("text", "tick mid", {"x": x, "y": panel.bottom + 16}, texts[place])


def _pair(x: Bins, y: Bins, grid: Grid, colours: Colours, marked: MarkedVariants) -> Drawing:
    title = f"Best score over {x.name} and {y.name}"
    high = min(18.0, max(11.0, 200 / len(y.bins)))
    panel = Panel(54, 34, WIDTH - 62, high * len(y.bins), (0, len(x.bins)), (0, len(y.bins)))
    wide = panel.width / len(x.bins)
    scored = {place: max(cell.scores) for place, cell in grid.items() if cell.scores}
    marks = [
        chart.head(title),
        Mark("text", "axis end", {"x": 49.0, "y": 28.0}, chart.cut(y.name, 49)),
    ]
    for (across, up), cell in sorted(grid.items()):
        size = {
            "x": panel.across(across),
            "y": panel.up(up + 1),
            "width": wide - 1,
            "height": high - 1,
        }
        told = f"{x.name} {x.bins[across].text}, {y.name} {y.bins[up].text}: {cell.words}"
        look = colours.shade(max(cell.scores)) if cell.scores else "none"
        marks.append(Mark("rect", look, size, title=told))
        if cell.scores and wide >= ROOM:
            where = {"x": size["x"] + wide / 2, "y": size["y"] + high / 2 + 3}
            marks.append(Mark("text", f"in {look}t", where, f"{max(cell.scores):.3f}"))
    best = max(scored, key=lambda place: (scored[place], place)) if scored else None
    if best is not None:
        size = {
            "x": panel.across(best[0]),
            "y": panel.up(best[1] + 1),
            "width": wide - 1,
            "height": high - 1,
        }
        marks.append(Mark("rect", "best", size))
    ring = x.found(marked.today), y.found(marked.today)
    if ring[0] is not None and ring[1] is not None:
        left, top = panel.across(ring[0]), panel.up(ring[1] + 1)
        # Where a cell has its number, the ring is in its corner.
        place = (wide - 6, 5.0) if wide >= ROOM else (wide / 2 - 0.5, high / 2 - 0.5)
        where = {"cx": left + place[0], "cy": top + place[1], "r": 3.0}
        marks.append(Mark("circle", "ring today", where, title="what CUB selects today"))
    marks += [
        *_side(panel, y, high),
        *_ticks(panel, x),
        Mark(
            "text", "axis mid", {"x": panel.left + panel.width / 2, "y": panel.bottom + 31}, x.name
        ),
        *_scale(panel, colours),
    ]
    words = f"{len(scored):,} cells, coloured by the best score in them."
    if best is not None:
        words += (
            f" The best, {scored[best]:.3f}, is framed: {x.name} {x.bins[best[0]].text},"
            f" {y.name} {y.bins[best[1]].text}."
        )
    if None not in ring:
        words += " The ring is what CUB selects today."
    return Drawing(title, words, WIDTH, panel.bottom + 66, marks, words)


def _side(panel: Panel, y: Bins, high: float) -> Iterator[Mark]:
    """The values beside a map; a range begins at its number."""
    inside = 0.5 if y.bins[0].low == y.bins[0].high else 0.0
    for place, found in enumerate(y.bins):
        if high >= 11 or place % 2 == 0:
            where = {"x": panel.left - 4, "y": panel.up(place + inside) + 4}
            yield Mark("text", "tick end", where, str(found.low))


def _scale(panel: Panel, colours: Colours) -> Iterator[Mark]:
    """What the colours mean."""
    wide, left, top = 18.0, panel.left, panel.bottom + 42
    for step in range(2 * SHADES + 1):
        size = {"x": left + step * wide, "y": top, "width": wide, "height": 8.0}
        yield Mark("rect", f"h{step}", size)
    for step, text in (
        (0, f"≤ {1 - colours.slower:.3f}"),
        (SHADES, "1: base"),
        (2 * SHADES, f"≥ {1 + colours.faster:.3f}"),
    ):
        where = {"x": left + (step + 0.5) * wide, "y": top + 20}
        yield Mark("text", "tick mid", where, text)
    size = {"x": left + 12.3 * wide, "y": top, "width": wide, "height": 8.0}
    yield Mark("rect", "none", size)
    yield Mark("text", "tick mid", {"x": left + 12.8 * wide, "y": top + 20}, "failed")
