"""Scores against each parameter, and over pairs of them."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import gcd
from statistics import fmean, median, pvariance
from typing import Self

from policygen.model.search_pages import ReportedWorkload
from policygen.model.workload import parse_label
from policygen.report import charts
from policygen.report.blocks import Drawing, Mark
from policygen.report.charts import Panel

WIDTH = 360.0
MOST = 12
"""Parameters that are drawn."""
PAIRED = 5
"""Parameters whose pairs are drawn."""
SHADES = 5
"""Steps of a colour from base to the end of the scale, on either side."""
LEAST_SPAN = 0.02
"""What is nearer to base is noise, and is not blown up."""


@dataclass(frozen=True, slots=True)
class ScoredCell:
    """Variants of the same values."""

    scores: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """What is in it."""
        told = []
        if self.scores:
            told += [f"best {max(self.scores):.3f}", f"median {median(self.scores):.3f}"]
            told += [f"{len(self.scores):,} measured"]
        return ", ".join([*told, *([f"{len(self.failed):,} failed"] if self.failed else [])])


Grid = dict[tuple[int, int], ScoredCell]
ROOM = 30.0
"""Pixels that a number needs in a cell."""
Values = Mapping[str, int]


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


@dataclass(frozen=True, slots=True)
class Bin:
    """A value, or some that follow each other."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Bins:
    """The values of a parameter, in their order."""

    name: str
    bins: tuple[Bin, ...]

    def place(self, value: int) -> int:
        """Where a value belongs."""
        return bisect_right(self.bins, value, key=lambda one: one.low) - 1

    def found(self, values: Values) -> int | None:
        """Where a variant belongs; none where it has no such value."""
        value = values.get(self.name)
        if value is None or not self.bins[0].low <= value <= self.bins[-1].high:
            return None
        place = self.place(value)
        return place if value <= self.bins[place].high else None


@dataclass(frozen=True, slots=True)
class Space:
    """The variants of a workload by their values."""

    measured: Sequence[tuple[Values, float, str]]
    """Values, score and label."""
    failed: Sequence[tuple[Values, str]]
    parameters: tuple[Bins, ...]
    """Those that have several values, in the order in which labels have them."""
    shares: Mapping[str, float]
    """How much of the difference between scores goes with the value of a parameter, 0 to 1."""

    def leading(self, count: int) -> tuple[Bins, ...]:
        """Those that scores depend on most, in the order of labels."""
        kept = sorted(self.shares, key=lambda name: -self.shares[name])[:count]
        return tuple(one for one in self.parameters if one.name in kept)

    def column(self, one: Bins) -> list[ScoredCell]:
        """A cell for each bin."""
        cells = [ScoredCell() for _ in one.bins]
        for values, score, _ in self.measured:
            if one.name in values:
                cells[one.place(values[one.name])].scores.append(score)
        for values, label in self.failed:
            if one.name in values:
                cells[one.place(values[one.name])].failed.append(label)
        return cells

    def grid(self, x: Bins, y: Bins) -> dict[tuple[int, int], ScoredCell]:
        """The cells that hold something."""
        cells: dict[tuple[int, int], ScoredCell] = {}

        def cell(values: Values) -> ScoredCell:
            place = x.place(values[x.name]), y.place(values[y.name])
            return cells.setdefault(place, ScoredCell())

        for values, score, _ in self.measured:
            if x.name in values and y.name in values:
                cell(values).scores.append(score)
        for values, label in self.failed:
            if x.name in values and y.name in values:
                cell(values).failed.append(label)
        return cells


def by_parameter(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw scores against each parameter, all at one scale."""
    scores = [score for _, score, _ in space.measured]
    if not scores:
        return
    ends = charts.score_range(scores)
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
        charts.head(title),
        *charts.legend(names, 2, 32),
        *charts.up_axis(panel),
        *_ticks(panel, one),
        *charts.unit(panel),
        *charts.dots(_dots(panel, space, one), "dots"),
        *_medians(panel, cells),
        *charts.line(best, "best"),
        *_failed(panel, cells),
        *charts.frame(panel, "score", one.name),
        *_hints(panel, one, cells),
        *_marked(panel, one, marked),
    ]
    top = max((cell for cell in cells if cell.scores), key=lambda cell: max(cell.scores))
    place = cells.index(top)
    words = (
        f"Best at {one.name} {one.bins[place].text}; {space.shares[one.name] * 100:.0f} % of the"
        " difference between scores goes with it."
    )
    note = " ".join(filter(None, [words, charts.outside(scores, ends[0])]))
    return Drawing(title, note, WIDTH, panel.bottom + 36, marks, words)


def _dots(panel: Panel, space: Space, one: Bins) -> Iterator[charts.Place]:
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
        yield charts.diamond(x, y, "last won", title, 4.5)


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
    every = max(1, -int(-(max(map(len, texts)) * charts.LETTER + 7) // wide))
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
        charts.head(title),
        Mark("text", "axis end", {"x": 49.0, "y": 28.0}, charts.cut(y.name, 49)),
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


MOST_BINS = 20
"""Values of a parameter that stand side by side."""


# Variants by the values of their parameters; many values of a parameter are put into ranges.


def space_of(one: ReportedWorkload) -> Space:
    """Take the labels of a workload apart."""
    measured = [
        (values, variant.score, variant.variant)
        for variant in one.variants
        if (values := parse_label(variant.variant)) is not None
    ]
    failed = [(v, label) for label in one.failed_variants if (v := parse_label(label)) is not None]
    found: dict[str, set[int]] = {}
    for values in (*(v for v, _, _ in measured), *(v for v, _ in failed)):
        for name, value in values.items():
            found.setdefault(name, set()).add(value)
    parameters = tuple(bins_of(name, values) for name, values in found.items() if len(values) > 1)
    space = Space(measured, failed, parameters, {})
    shares = {one.name: _share(space.column(one)) for one in parameters}
    return Space(measured, failed, parameters, shares)


def bins_of(name: str, values: set[int], most: int = MOST_BINS) -> Bins:
    """Each value by itself; where there are more than `most`, ranges of one width."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return Bins(name, tuple(Bin(value, value) for value in ordered))
    return Bins(name, tuple(_ranges(ordered, most)))


def _ranges(ordered: Sequence[int], most: int) -> Iterator[Bin]:
    """Ranges of 2, 4, 8, … steps of the values: as a parameter is counted."""
    low, step = ordered[0], gcd(*(b - a for a, b in pairwise(ordered)))
    steps = (ordered[-1] - low) // step + 1
    width = step * 2 ** (-(-steps // most) - 1).bit_length()
    for start in range(low, ordered[-1] + 1, width):
        yield Bin(start, start + width - step)


def _share(cells: Sequence[ScoredCell]) -> float:
    """The variance between bins as a share of the whole."""
    scores = [score for cell in cells for score in cell.scores]
    if len(scores) < 2 or not (whole := pvariance(scores)):
        return 0.0
    middle = fmean(scores)
    between = sum(len(c.scores) * (fmean(c.scores) - middle) ** 2 for c in cells if c.scores)
    return between / len(scores) / whole
