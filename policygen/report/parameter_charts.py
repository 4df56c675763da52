"""Charts of scores against each parameter, and over pairs of parameters."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import gcd
from statistics import fmean, median, pvariance
from typing import Self

from policygen.model.searches import ReportedWorkload
from policygen.model.workload import parse_label
from policygen.report import charts
from policygen.report.blocks import Drawing, Mark
from policygen.report.charts import Panel

WIDTH = 360.0
MOST = 12
"""Maximum number of parameters drawn."""
PAIRED = 5
"""Number of parameters whose pairs are drawn."""
SHADES = 5
"""Color steps from base to the end of the scale, on either side."""
LEAST_SPAN = 0.02
"""Minimum range of the color scale, so that noise around base is not exaggerated."""


@dataclass(frozen=True, slots=True)
class ScoredCell:
    """Scores and failures of the variants with the same values."""

    scores: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Summary of the cell."""
        parts = []
        if self.scores:
            parts += [f"best {max(self.scores):.3f}", f"median {median(self.scores):.3f}"]
            parts += [f"{len(self.scores):,} measured"]
        return ", ".join([*parts, *([f"{len(self.failed):,} failed"] if self.failed else [])])


Grid = dict[tuple[int, int], ScoredCell]
ROOM = 30.0
"""Minimum width, in pixels, of a cell with a number."""
Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MarkedVariants:
    """Two variants that are marked in all figures."""

    winner: Values
    score: float
    """Score of the winner as drawn."""
    today: Values
    """Variant that CUB currently selects."""

    @classmethod
    def of(cls, workload: ReportedWorkload) -> Self:
        """Return the marked variants of a workload; unknown ones are empty."""
        labels = (workload.best, workload.base)
        winner, today = (parse_label(label) or {} if label else {} for label in labels)
        score = next(
            (variant.score for variant in workload.variants if variant.variant == workload.best),
            1.0,
        )
        return cls(winner, score, today)


@dataclass(frozen=True, slots=True)
class Colours:
    """Distances from base to the last color, on either side."""

    faster: float
    slower: float

    @classmethod
    def of(cls, scores: Sequence[float]) -> Self:
        """Scale by the gain of the best variant and the median loss of slower variants."""
        faster = max(LEAST_SPAN, max(scores) - 1)
        losses = [1 - score for score in scores if score < 1]
        return cls(faster, max(faster, median(losses)) if losses else faster)

    def shade(self, score: float) -> str:
        """Style class of a score, with base in the middle."""
        span = self.faster if score > 1 else self.slower
        return f"h{SHADES + max(-SHADES, min(SHADES, round((score - 1) / span * SHADES)))}"


@dataclass(frozen=True, slots=True)
class Bin:
    """A value, or a range of consecutive values."""

    low: int
    high: int

    @property
    def text(self) -> str:
        """Range as text."""
        return f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Bins:
    """Values of a parameter in ascending order, in bins."""

    name: str
    bins: tuple[Bin, ...]

    def place(self, value: int) -> int:
        """Index of the bin of a value."""
        return bisect_right(self.bins, value, key=lambda value_range: value_range.low) - 1

    def found(self, values: Values) -> int | None:
        """Index of the bin of a variant, or None if no bin holds its value."""
        value = values.get(self.name)
        if value is None or not self.bins[0].low <= value <= self.bins[-1].high:
            return None
        index = self.place(value)
        return index if value <= self.bins[index].high else None


@dataclass(frozen=True, slots=True)
class Space:
    """Variants of a workload by the values of their parameters."""

    measured: Sequence[tuple[Values, float, str]]
    """Values, score and label."""
    failed: Sequence[tuple[Values, str]]
    parameters: tuple[Bins, ...]
    """Parameters with several values, in the order of the labels."""
    shares: Mapping[str, float]
    """Share of the score variance explained by each parameter, 0 to 1."""

    def leading(self, count: int) -> tuple[Bins, ...]:
        """Parameters that explain most of the variance, in the order of the labels."""
        leading_names = sorted(self.shares, key=lambda name: -self.shares[name])[:count]
        return tuple(bins for bins in self.parameters if bins.name in leading_names)

    def column(self, bins: Bins) -> list[ScoredCell]:
        """Return a cell for each bin."""
        cells = [ScoredCell() for _ in bins.bins]
        for values, score, _ in self.measured:
            if bins.name in values:
                cells[bins.place(values[bins.name])].scores.append(score)
        for values, label in self.failed:
            if bins.name in values:
                cells[bins.place(values[bins.name])].failed.append(label)
        return cells

    def grid(self, x: Bins, y: Bins) -> dict[tuple[int, int], ScoredCell]:
        """Return the cells that are not empty."""
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
    """Draw scores against each parameter, all on the same scale."""
    scores = [score for _, score, _ in space.measured]
    if not scores:
        return
    ends = charts.score_range(scores)
    for bins in space.leading(MOST):
        yield _parameter(space, bins, marked, ends, scores)


def by_pair(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw the best score of each pair of values, all with the same color scale."""
    leading = space.leading(PAIRED)
    grids = [(x, y, space.grid(x, y)) for x, y in combinations(leading, 2)]
    best = [max(cell.scores) for _, _, grid in grids for cell in grid.values() if cell.scores]
    if not best:
        return
    colours = Colours.of(best)
    for x, y, grid in grids:
        yield _pair(x, y, grid, colours, marked)


def _parameter(
    space: Space,
    bins: Bins,
    marked: MarkedVariants,
    ends: tuple[float, float],
    scores: Sequence[float],
) -> Drawing:
    title = f"Score against {bins.name}"
    panel = Panel(46, 54, WIDTH - 56, 160, (0, len(bins.bins)), ends)
    names = [("dots", "variant"), ("best", "best"), ("median", "median")]
    names += [("last won", "winner")] if bins.name in marked.winner else []
    names += [("ring", "CUB today")] if bins.name in marked.today else []
    cells = space.column(bins)
    best = [
        (panel.across(index + 0.5), panel.up(max(cell.scores)))
        for index, cell in enumerate(cells)
        if cell.scores
    ]
    marks = [
        charts.head(title),
        *charts.legend(names, 2, 32),
        *charts.y_axis(panel),
        *_ticks(panel, bins),
        *charts.unit(panel),
        *charts.dots(_score_dots(panel, space, bins), "dots"),
        *_medians(panel, cells),
        *charts.line(best, "best"),
        *_failure_marks(panel, cells),
        *charts.frame(panel, "score", bins.name),
        *_tooltips(panel, bins, cells),
        *_variant_marks(panel, bins, marked),
    ]
    top = max((cell for cell in cells if cell.scores), key=lambda cell: max(cell.scores))
    index = cells.index(top)
    words = (
        f"Best at {bins.name} {bins.bins[index].text}; {space.shares[bins.name] * 100:.0f} % of the"
        " difference between scores goes with it."
    )
    note = " ".join(filter(None, [words, charts.outside(scores, ends[0])]))
    return Drawing(title, note, WIDTH, panel.bottom + 36, marks, words)


def _score_dots(panel: Panel, space: Space, bins: Bins) -> Iterator[charts.Place]:
    """Spread the dots of a value across its bin; order those of a range by value."""
    step = 0.6180339887  # The golden ratio keeps consecutive dots apart.
    for number, (values, score, _) in enumerate(space.measured):
        if bins.name in values:
            value = values[bins.name]
            index = bins.place(value)
            value_range = bins.bins[index]
            offset = (
                0.2 + 0.6 * (number * step % 1)
                if value_range.low == value_range.high
                else (value - value_range.low + 0.5) / (value_range.high - value_range.low + 1)
            )
            yield panel.across(index + offset), panel.up(score)


def _variant_marks(panel: Panel, bins: Bins, marked: MarkedVariants) -> Iterator[Mark]:
    """Mark the winner at its score, and the variant that CUB selects at base."""
    if (index := bins.found(marked.today)) is not None:
        title = f"CUB selects {bins.name} {marked.today[bins.name]} today"
        attributes = {"cx": panel.across(index + 0.5), "cy": panel.up(1), "r": 4.5}
        yield Mark("circle", "ring today", attributes, title=title)
    if (index := bins.found(marked.winner)) is not None:
        title = f"the winner: {bins.name} {marked.winner[bins.name]}"
        x, y = panel.across(index + 0.5), panel.up(marked.score)
        yield charts.diamond(x, y, "last won", title, 4.5)


def _medians(panel: Panel, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    for index, cell in enumerate(cells):
        if cell.scores and median(cell.scores) >= panel.y[0]:
            left, y = panel.across(index + 0.2), panel.up(median(cell.scores))
            width = panel.across(index + 0.8) - left
            yield Mark("path", "median", {"d": f"M{left:.1f} {y:.1f}h{width:.1f}"})


def _failure_marks(panel: Panel, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    """Crosses at the lower edge where variants failed."""
    for index, cell in enumerate(cells):
        if cell.failed:
            x, y = panel.across(index + 0.5), panel.bottom - 7
            path = f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6"
            yield Mark("path", "cross", {"d": path})


def _tooltips(panel: Panel, bins: Bins, cells: Sequence[ScoredCell]) -> Iterator[Mark]:
    """Tooltips of the values."""
    for index, cell in enumerate(cells):
        if cell.words:
            left, right = panel.across(index), panel.across(index + 1)
            size = {"x": left, "y": panel.top, "width": right - left, "height": panel.height}
            title = f"{bins.name} {bins.bins[index].text}: {cell.words}"
            yield Mark("rect", "hint", size, title=title)


def _ticks(panel: Panel, bins: Bins) -> Iterator[Mark]:
    """Values below a panel, as many as fit."""
    texts = [str(value_range.low) for value_range in bins.bins]
    cell_width = panel.width / len(texts)
    stride = max(1, -int(-(max(map(len, texts)) * charts.LETTER + 7) // cell_width))
    # A range starts at its label; a single value is centered on it.
    offset = 0.5 if bins.bins[0].low == bins.bins[0].high else 0.0
    for index in range(0, len(texts), stride):
        x = panel.across(index + offset)
        yield Mark("path", "edge", {"d": f"M{x:.1f} {panel.bottom:.1f}v4"})
        yield Mark("text", "tick mid", {"x": x, "y": panel.bottom + 16}, texts[index])


def _pair(x: Bins, y: Bins, grid: Grid, colours: Colours, marked: MarkedVariants) -> Drawing:
    title = f"Best score over {x.name} and {y.name}"
    cell_height = min(18.0, max(11.0, 200 / len(y.bins)))
    panel = Panel(54, 34, WIDTH - 62, cell_height * len(y.bins), (0, len(x.bins)), (0, len(y.bins)))
    cell_width = panel.width / len(x.bins)
    scored = {place: max(cell.scores) for place, cell in grid.items() if cell.scores}
    marks = [
        charts.head(title),
        Mark("text", "axis end", {"x": 49.0, "y": 28.0}, charts.cut(y.name, 49)),
    ]
    for (across, up), cell in sorted(grid.items()):
        size = {
            "x": panel.across(across),
            "y": panel.up(up + 1),
            "width": cell_width - 1,
            "height": cell_height - 1,
        }
        tooltip = f"{x.name} {x.bins[across].text}, {y.name} {y.bins[up].text}: {cell.words}"
        look = colours.shade(max(cell.scores)) if cell.scores else "none"
        marks.append(Mark("rect", look, size, title=tooltip))
        if cell.scores and cell_width >= ROOM:
            attributes = {"x": size["x"] + cell_width / 2, "y": size["y"] + cell_height / 2 + 3}
            marks.append(Mark("text", f"in {look}t", attributes, f"{max(cell.scores):.3f}"))
    best = max(scored, key=lambda place: (scored[place], place)) if scored else None
    if best is not None:
        size = {
            "x": panel.across(best[0]),
            "y": panel.up(best[1] + 1),
            "width": cell_width - 1,
            "height": cell_height - 1,
        }
        marks.append(Mark("rect", "best", size))
    ring = x.found(marked.today), y.found(marked.today)
    if ring[0] is not None and ring[1] is not None:
        left, top = panel.across(ring[0]), panel.up(ring[1] + 1)
        # If cells show numbers, the ring goes into the corner.
        offset = (
            (cell_width - 6, 5.0)
            if cell_width >= ROOM
            else (cell_width / 2 - 0.5, cell_height / 2 - 0.5)
        )
        attributes = {"cx": left + offset[0], "cy": top + offset[1], "r": 3.0}
        marks.append(Mark("circle", "ring today", attributes, title="what CUB selects today"))
    marks += [
        *_value_labels(panel, y, cell_height),
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


def _value_labels(panel: Panel, y: Bins, cell_height: float) -> Iterator[Mark]:
    """Values beside a heat map; a range starts at its label."""
    offset = 0.5 if y.bins[0].low == y.bins[0].high else 0.0
    for index, value_range in enumerate(y.bins):
        if cell_height >= 11 or index % 2 == 0:
            attributes = {"x": panel.left - 4, "y": panel.up(index + offset) + 4}
            yield Mark("text", "tick end", attributes, str(value_range.low))


def _scale(panel: Panel, colours: Colours) -> Iterator[Mark]:
    """Color scale."""
    step_width, left, top = 18.0, panel.left, panel.bottom + 42
    for step in range(2 * SHADES + 1):
        size = {"x": left + step * step_width, "y": top, "width": step_width, "height": 8.0}
        yield Mark("rect", f"h{step}", size)
    for step, text in (
        (0, f"≤ {1 - colours.slower:.3f}"),
        (SHADES, "1: base"),
        (2 * SHADES, f"≥ {1 + colours.faster:.3f}"),
    ):
        attributes = {"x": left + (step + 0.5) * step_width, "y": top + 20}
        yield Mark("text", "tick mid", attributes, text)
    size = {"x": left + 12.3 * step_width, "y": top, "width": step_width, "height": 8.0}
    yield Mark("rect", "none", size)
    yield Mark("text", "tick mid", {"x": left + 12.8 * step_width, "y": top + 20}, "failed")


MOST_BINS = 20
"""Maximum number of bins of a parameter."""


# Variants by the values of their parameters


def space_of(workload: ReportedWorkload) -> Space:
    """Parse the variant labels of a workload."""
    measured = [
        (values, variant.score, variant.variant)
        for variant in workload.variants
        if (values := parse_label(variant.variant)) is not None
    ]
    failed = [
        (failed_values, label)
        for label in workload.failed_variants
        if (failed_values := parse_label(label)) is not None
    ]
    values_by_name: dict[str, set[int]] = {}
    for values in (*(v for v, _, _ in measured), *(v for v, _ in failed)):
        for name, value in values.items():
            values_by_name.setdefault(name, set()).add(value)
    parameters = tuple(
        bins_of(name, values) for name, values in values_by_name.items() if len(values) > 1
    )
    space = Space(measured, failed, parameters, {})
    shares = {bins.name: _share(space.column(bins)) for bins in parameters}
    return Space(measured, failed, parameters, shares)


def bins_of(name: str, values: set[int], most: int = MOST_BINS) -> Bins:
    """Use one bin per value, or ranges of equal width if there are more than `most` values."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return Bins(name, tuple(Bin(value, value) for value in ordered))
    return Bins(name, tuple(_ranges(ordered, most)))


def _ranges(ordered: Sequence[int], most: int) -> Iterator[Bin]:
    """Yield ranges of 2, 4, 8, … steps, where a step is the common spacing of the values."""
    low, step = ordered[0], gcd(*(b - a for a, b in pairwise(ordered)))
    steps = (ordered[-1] - low) // step + 1
    width = step * 2 ** (-(-steps // most) - 1).bit_length()
    for start in range(low, ordered[-1] + 1, width):
        yield Bin(start, start + width - step)


def _share(cells: Sequence[ScoredCell]) -> float:
    """Share of the total variance that lies between the bins."""
    scores = [score for cell in cells for score in cell.scores]
    if len(scores) < 2 or not (total := pvariance(scores)):
        return 0.0
    middle = fmean(scores)
    between = sum(
        len(cell.scores) * (fmean(cell.scores) - middle) ** 2 for cell in cells if cell.scores
    )
    return between / len(scores) / total
