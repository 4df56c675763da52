"""Charts of a search: best score by evaluations and time, all scores, finalists, parameters."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import gcd
from statistics import fmean, median, pvariance
from typing import Self

from policygen.model.searches import ReportedFinalist, ReportedWorkload, SearchCurve, TriedVariant
from policygen.model.workload import parse_label
from policygen.report import charts
from policygen.report.blocks import Drawing, Mark
from policygen.report.charts import IntervalRow, Panel, box, path, ring, text
from policygen.report.console import span_words

WIDTH, HEIGHT = 420.0, 250.0
STRIP = 5.0
"""Height of the strips that show when each rung was measured."""
MINUTE, HOUR = 60.0, 3600.0
SHORT, LONG = 5 * MINUTE, 5 * HOUR


def convergence(workload: ReportedWorkload) -> Iterator[Drawing]:
    """Best score by evaluations, and by time if rows record it."""
    curve = workload.curve
    if curve is None:
        return
    end = float(curve.evaluations)
    yield _convergence_over(workload, curve, "evaluations", lambda row: row.evaluation, end)
    if curve.seconds and any(variant.seconds is not None for variant in workload.variants):
        yield _convergence_over(workload, curve, "time", lambda row: row.seconds, curve.seconds)


def by_rank(workload: ReportedWorkload) -> Drawing:
    """All scores in descending order, to show whether the best one stands out."""
    title = "All scores, the best first"
    scores = sorted((variant.score for variant in workload.variants), reverse=True)
    low, high = charts.score_range(scores)
    shown = [score for score in scores if score >= low]
    panel = Panel(46, 44, WIDTH - 56, HEIGHT - 84, (1, max(2, len(shown))), (low, high))
    places = ((panel.across(rank), panel.up(score)) for rank, score in enumerate(shown, 1))
    marks = [
        charts.head(title),
        *charts.y_axis(panel),
        *charts.x_axis(panel, whole=True),
        *charts.unit(panel),
        *charts.dots(places, "dots strong"),
        *charts.frame(panel, "score", "rank"),
    ]
    words = (
        f"{len(scores):,} scores from {scores[0]:.3f} down to {scores[-1]:.3f};"
        f" {sum(score > 1 for score in scores):,} are above 1 (base); {len(scores) - len(shown):,}"
        " are below the drawn range."
    )
    return Drawing(title, words, WIDTH, HEIGHT, marks, words)


def _convergence_over(
    workload: ReportedWorkload,
    curve: SearchCurve,
    axis: str,
    coordinate: Callable[[TriedVariant], float | None],
    end: float,
) -> Drawing:
    """Each variant when it was measured, the best score so far, and the last rung."""
    title = f"The best score by {axis}"
    finals = workload.finalists if workload.rung == "last" else ()
    points = [
        (x, variant) for variant in workload.variants if (x := coordinate(variant)) is not None
    ]
    scores = [variant.score for _, variant in points]
    ends = [max(0.9, value) for final in finals for value in score_and_interval(final)]
    low, high = charts.score_range(scores, ends)
    by_time = axis == "time"
    scale, unit = _time_unit(end) if by_time else (1.0, "variants measured")
    panel = Panel(46, 62, WIDTH - 56, HEIGHT - 102, (0, end), (low, high))
    places = [(panel.across(x), panel.up(variant.score)) for x, variant in points]
    names = [("dots", "screening"), ("best", "best so far")]
    names += [("last", "last rung, with its interval")] if finals else []
    marks = [
        charts.head(title),
        *charts.legend(names, 32),
        *charts.y_axis(panel),
        *charts.x_axis(panel, scale=scale, whole=not by_time),
        *(_rung_strips(panel, curve) if by_time else ()),
        *charts.unit(panel),
        *charts.dots(places, "dots"),
        *charts.line(_best_so_far(places, scores, panel.across(end)), "best"),
        *_finalist_marks(panel, finals, {variant.variant: x for x, variant in points}),
        *charts.frame(panel, "score", unit),
    ]
    last_rise = curve.best[-1]
    rise = f"{last_rise.evaluation:,} of {curve.evaluations:,}, to {last_rise.score:.3f}"
    words = f"{len(points):,} variants; the best score last rose at {rise} in the screening."
    note = " ".join(filter(None, [words, charts.outside(scores, low)]))
    return Drawing(title, note, WIDTH, HEIGHT, marks, note)


def _best_so_far(
    places: Sequence[charts.Place], scores: Sequence[float], end: float
) -> list[charts.Place]:
    """Stairs that rise where a score is the best so far, up to the end."""
    stairs: list[charts.Place] = []
    top = 0.0
    for (x, y), score in zip(places, scores, strict=True):
        if score > top:
            top = score
            stairs += [*((x, height) for _, height in stairs[-1:]), (x, y)]
    return stairs + 2 * [(end, height) for _, height in stairs[-1:]]


def score_and_interval(final: ReportedFinalist) -> list[float]:
    """Score of a finalist, and the ends of its interval."""
    interval = final.interval
    return [final.score, *((interval.low, interval.high) if interval else ())]


def _final_title(final: ReportedFinalist, suffix: str = "") -> str:
    title = f"{final.variant}: {final.score:.3f}{suffix}"
    return f"{title}, {span_words(final.interval)}" if final.interval else title


def _finalist_marks(
    panel: Panel, finals: Sequence[ReportedFinalist], position_by_variant: dict[str, float]
) -> Iterator[Mark]:
    """Mark each finalist where it was found, at its final score, with the best one on top."""
    for rank, final in reversed(list(enumerate(finals))):
        if final.variant not in position_by_variant:
            continue
        x = panel.across(position_by_variant[final.variant])
        if final.interval:
            high, low = panel.up(final.interval.high), panel.up(final.interval.low)
            yield path("whisker", f"M{x:.1f} {high:.1f}V{low:.1f}")
        title = _final_title(final, " in the last rung")
        if final.screened is not None:
            title += f"; {final.screened:.3f} in the screening"
        yield charts.diamond(x, panel.up(final.score), "last" if rank else "last won", title)


def _rung_strips(panel: Panel, curve: SearchCurve) -> Iterator[Mark]:
    """Time span of each rung along the upper edge."""
    scale, unit = _time_unit(panel.x[1])
    for span in curve.spans:
        left, right = panel.across(span.start), panel.across(span.end)
        title = f"{span.rung}: {span.start / scale:.1f} to {span.end / scale:.1f} {unit}"
        width = max(1.5, right - left)
        yield box(f"rung {span.rung}", left, panel.top - STRIP, width, STRIP, title)
        if right - left > len(span.rung) * charts.LETTER:
            yield text("tick mid", (left + right) / 2, panel.top - STRIP - 3, span.rung)


def _time_unit(seconds: float) -> tuple[float, str]:
    if seconds < SHORT:
        return 1.0, "seconds of the search"
    return (MINUTE, "minutes of the search") if seconds < LONG else (HOUR, "hours of the search")


MOST_FINALISTS = 12
"""Maximum number of finalists drawn."""


# Finalists: final scores next to screening scores, and quantiles


def intervals(workload: ReportedWorkload) -> Drawing | None:
    """Each finalist with its interval and its screening score."""
    shown = workload.finalists[:MOST_FINALISTS]
    if not shown:
        return None
    title = "Scores with intervals"
    legend = [("last", "score, 95 %")]
    if workload.rung in {"last", "sharper"}:
        words = "last rung, 95 %" if workload.rung == "last" else "more samples"
        legend = [("last", words), ("ring", "screening score")]
    values = [value for final in shown for value in score_and_interval(final)]
    values += [final.screened for final in shown if final.screened is not None]
    hidden = len(workload.finalists) - len(shown) + workload.other_finalists
    return charts.interval_chart(
        title,
        title,
        [finalist_row(final, rank) for rank, final in enumerate(shown)],
        values,
        legend,
        ("score: base is 1", "base", 7),
        f"{len(shown)} variants with their 95 % intervals, best first.",
        f"and {hidden:,} more" if hidden and workload.rung == "last" else "",
    )


def finalist_row(final: ReportedFinalist, rank: int) -> IntervalRow:
    """Row of an interval chart; a `rank` of 0 marks the winner."""
    interval = (final.interval.low, final.interval.high) if final.interval else None
    screened = None
    if final.screened is not None:
        screened = final.screened, f"{final.variant}: {final.screened:.3f} in the screening"
    look = "last" if rank else "last won"
    title = _final_title(final)
    return IntervalRow(final.variant, final.score, interval, title, look, ring=screened)


SPACE_WIDTH = 360.0
MOST = 12
"""Maximum number of parameters drawn."""
MOST_BINS = 20
"""Maximum number of bins of a parameter."""
PAIRED = 5
"""Number of parameters whose pairs are drawn."""
SHADES = 5
"""Color steps from base to the end of the scale, on either side."""
LEAST_SPAN = 0.02
"""Minimum range of the color scale, so that noise around base is not exaggerated."""
ROOM = 30.0
"""Minimum width, in pixels, of a cell with a number."""
Values = Mapping[str, int]


# Variants by the values of their parameters


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
        scores = (row.score for row in workload.variants if row.variant == workload.best)
        return cls(winner, next(scores, 1.0), today)


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

    @property
    def label_offset(self) -> float:
        """Where in a bin its label is: a range starts at it, a single value is centered on it."""
        return 0.5 if self.bins[0].low == self.bins[0].high else 0.0

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

    measured: Sequence[tuple[Values, float]]
    """Values and score."""
    failed: Sequence[tuple[Values, str]]
    """Values and label."""
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
        cells = {x: cell for (x, _), cell in self.grid(bins, bins).items()}
        return [cells.get(index, ScoredCell()) for index in range(len(bins.bins))]

    def grid(self, x: Bins, y: Bins) -> Grid:
        """Return the cells that are not empty."""
        cells: Grid = {}

        def cell(values: Values) -> ScoredCell:
            if x.name not in values or y.name not in values:
                return ScoredCell()
            place = x.place(values[x.name]), y.place(values[y.name])
            return cells.setdefault(place, ScoredCell())

        for values, score in self.measured:
            cell(values).scores.append(score)
        for values, label in self.failed:
            cell(values).failed.append(label)
        return cells


def space_of(workload: ReportedWorkload) -> Space:
    """Parse the variant labels of a workload."""
    measured = [
        (values, variant.score)
        for variant in workload.variants
        if (values := parse_label(variant.variant)) is not None
    ]
    failed = [
        (values, label)
        for label in workload.failed_variants
        if (values := parse_label(label)) is not None
    ]
    values_by_name: dict[str, set[int]] = {}
    for values, _ in [*measured, *failed]:
        for name, value in values.items():
            values_by_name.setdefault(name, set()).add(value)
    parameters = tuple(
        bins_of(name, values) for name, values in values_by_name.items() if len(values) > 1
    )
    space = Space(measured, failed, parameters, {})
    shares = {bins.name: _share(space.column(bins)) for bins in parameters}
    return Space(measured, failed, parameters, shares)


def bins_of(name: str, values: set[int], most: int = MOST_BINS) -> Bins:
    """Use one bin per value, or ranges of equal width if there are more than `most` values.

    Ranges have 2, 4, 8, … steps, where a step is the common spacing of the values.
    """
    ordered = sorted(values)
    if len(ordered) <= most:
        return Bins(name, tuple(Bin(value, value) for value in ordered))
    low, step = ordered[0], gcd(*(b - a for a, b in pairwise(ordered)))
    steps = (ordered[-1] - low) // step + 1
    width = step * 2 ** (-(-steps // most) - 1).bit_length()
    starts = range(low, ordered[-1] + 1, width)
    return Bins(name, tuple(Bin(start, start + width - step) for start in starts))


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


# Scores against each parameter, and over pairs of parameters


def by_parameter(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw scores against each parameter, all on the same scale."""
    scores = [score for _, score in space.measured]
    if not scores:
        return
    ends = charts.score_range(scores)
    for bins in space.leading(MOST):
        yield _parameter(space, bins, marked, ends, charts.outside(scores, ends[0]))


def by_pair(space: Space, marked: MarkedVariants) -> Iterator[Drawing]:
    """Draw the best score of each pair of values, all with the same color scale."""
    grids = [(x, y, space.grid(x, y)) for x, y in combinations(space.leading(PAIRED), 2)]
    best = [max(cell.scores) for _, _, grid in grids for cell in grid.values() if cell.scores]
    if not best:
        return
    colours = Colours.of(best)
    for x, y, grid in grids:
        yield score_map(x, y, grid, colours, marked)


def _parameter(
    space: Space, bins: Bins, marked: MarkedVariants, ends: tuple[float, float], outside: str
) -> Drawing:
    title = f"Score against {bins.name}"
    panel = Panel(46, 54, SPACE_WIDTH - 56, 160, (0, len(bins.bins)), ends)
    names = [("dots", "variant"), ("best", "best"), ("median", "median")]
    names += [("last won", "winner")] if bins.name in marked.winner else []
    names += [("ring", "CUB today")] if bins.name in marked.today else []
    cells = list(enumerate(space.column(bins)))
    best = {index: max(cell.scores) for index, cell in cells if cell.scores}
    marks = [
        charts.head(title),
        *charts.legend(names, 32),
        *charts.y_axis(panel),
        *_ticks(panel, bins),
        *charts.unit(panel),
        *charts.dots(_score_dots(panel, space, bins), "dots"),
    ]
    for index, cell in cells:
        if cell.scores and (middle := median(cell.scores)) >= ends[0]:
            left, y = panel.across(index + 0.2), panel.up(middle)
            width = panel.across(index + 0.8) - left
            marks.append(path("median", f"M{left:.1f} {y:.1f}h{width:.1f}"))
    places = [(panel.across(index + 0.5), panel.up(score)) for index, score in best.items()]
    marks += charts.line(places, "best")
    for index, cell in cells:
        # Crosses at the lower edge where variants failed.
        if cell.failed:
            x, y = panel.across(index + 0.5), panel.bottom - 7
            outline = f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6"
            marks.append(path("cross", outline))
    marks += charts.frame(panel, "score", bins.name)
    for index, cell in cells:
        if cell.words:
            left, right = panel.across(index), panel.across(index + 1)
            tooltip = f"{bins.name} {bins.bins[index].text}: {cell.words}"
            marks.append(box("hint", left, panel.top, right - left, panel.height, tooltip))
    marks += _variant_marks(panel, bins, marked)
    top = bins.bins[max(best, key=lambda index: best[index])]
    share = f"{space.shares[bins.name] * 100:.0f} %"
    words = f"Best at {bins.name} {top.text}; explains {share} of the variance of scores."
    description = " ".join(filter(None, [words, outside]))
    return Drawing(title, description, SPACE_WIDTH, panel.bottom + 36, marks, words)


def _score_dots(panel: Panel, space: Space, bins: Bins) -> Iterator[charts.Place]:
    """Spread the dots of a value across its bin; order those of a range by value."""
    step = 0.6180339887  # The golden ratio keeps consecutive dots apart.
    for number, (values, score) in enumerate(space.measured):
        if bins.name in values:
            value = values[bins.name]
            index = bins.place(value)
            low, high = bins.bins[index].low, bins.bins[index].high
            offset = 0.2 + 0.6 * (number * step % 1)
            if low != high:
                offset = (value - low + 0.5) / (high - low + 1)
            yield panel.across(index + offset), panel.up(score)


def _variant_marks(panel: Panel, bins: Bins, marked: MarkedVariants) -> Iterator[Mark]:
    """Mark the winner at its score, and the variant that CUB selects at base."""
    if (index := bins.found(marked.today)) is not None:
        title = f"CUB selects {bins.name} {marked.today[bins.name]} today"
        yield ring("ring today", panel.across(index + 0.5), panel.up(1), title)
    if (index := bins.found(marked.winner)) is not None:
        title = f"the winner: {bins.name} {marked.winner[bins.name]}"
        x, y = panel.across(index + 0.5), panel.up(marked.score)
        yield charts.diamond(x, y, "last won", title, 4.5)


def _ticks(panel: Panel, bins: Bins) -> Iterator[Mark]:
    """Values below a panel, as many as fit."""
    texts = [str(value_range.low) for value_range in bins.bins]
    cell_width = panel.width / len(texts)
    stride = max(1, -int(-(max(map(len, texts)) * charts.LETTER + 7) // cell_width))
    for index in range(0, len(texts), stride):
        x = panel.across(index + bins.label_offset)
        yield path("edge", f"M{x:.1f} {panel.bottom:.1f}v4")
        yield text("tick mid", x, panel.bottom + 16, texts[index])


def score_map(
    x: Bins,
    y: Bins,
    grid: Grid,
    colours: Colours,
    marked: MarkedVariants,
    unscored: tuple[str, str] = ("none", "failed"),
    total_width: float = SPACE_WIDTH,
) -> Drawing:
    """Draw the best score in each cell; cells without scores have a look and a name."""
    title = f"Best score over {x.name} and {y.name}"
    height = min(18.0, max(11.0, 200 / len(y.bins)))
    ends = (0, len(x.bins)), (0, len(y.bins))
    panel = Panel(54, 34, total_width - 62, height * len(y.bins), *ends)
    width = panel.width / len(x.bins)
    scored = {place: max(cell.scores) for place, cell in grid.items() if cell.scores}

    def cell_box(look: str, across: int, up: int, tooltip: str = "") -> Mark:
        left, top = panel.across(across), panel.up(up + 1)
        return box(look, left, top, width - 1, height - 1, tooltip)

    def words_of(across: int, up: int) -> str:
        return f"{x.name} {x.bins[across].text}, {y.name} {y.bins[up].text}"

    marks = [charts.head(title), text("axis", 0.0, 28.0, charts.cut(y.name, total_width))]
    for place, cell in sorted(grid.items(), key=lambda item: item[0]):
        look = colours.shade(scored[place]) if cell.scores else unscored[0]
        tooltip = f"{words_of(*place)}: {cell.words or unscored[1]}"
        marks.append(cell_box(look, *place, tooltip))
        if cell.scores and width >= ROOM:
            left, top = panel.across(place[0]), panel.up(place[1] + 1)
            score = f"{scored[place]:.3f}"
            marks.append(text(f"in {look}t", left + width / 2, top + height / 2 + 3, score))
    words = f"{len(scored):,} cells, colored by the best score in each."
    if scored:
        best = max(scored, key=lambda place: (scored[place], place))
        marks.append(cell_box("best", *best))
        words += f" The best, {scored[best]:.3f}, is framed: {words_of(*best)}."
    across, up = x.found(marked.today), y.found(marked.today)
    if across is not None and up is not None:
        left, top = panel.across(across), panel.up(up + 1)
        # If cells show numbers, the ring goes into the corner.
        dx, dy = (width - 6, 5.0) if width >= ROOM else (width / 2 - 0.5, height / 2 - 0.5)
        marks.append(ring("ring today", left + dx, top + dy, "CUB's current choice", 3.0))
        words += " The ring is CUB's current choice."
    for index, value_range in enumerate(y.bins):
        if height >= 11 or index % 2 == 0:
            label_y = panel.up(index + y.label_offset) + 4
            marks.append(text("tick end", panel.left - 4, label_y, str(value_range.low)))
    marks += [*_ticks(panel, x), charts.x_title(panel, x.name)]
    marks += _scale(panel, colours, *unscored)
    return Drawing(title, words, total_width, panel.bottom + 66, marks, words)


def _scale(panel: Panel, colours: Colours, look: str, name: str) -> Iterator[Mark]:
    """Color scale, followed by the look of cells without scores."""
    left, top = panel.left, panel.bottom + 42
    slower, faster = f"≤ {1 - colours.slower:.3f}", f"≥ {1 + colours.faster:.3f}"
    labels = ((0, slower), (SHADES, "1: base"), (2 * SHADES, faster))
    yield from charts.color_scale(left, top, 2 * SHADES, labels)
    width = charts.SHADE_WIDTH
    yield box(look, left + 12.3 * width, top, width, 8.0)
    yield text("tick", left + 13.6 * width, top + 8, name)
