"""Building blocks of charts: panels with axes, dots, lines, and the coordinates of values."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import ceil, floor, log10
from statistics import median
from textwrap import wrap

from markupsafe import escape

from policygen.errors import plural
from policygen.model.databases import PointRatios
from policygen.model.measured import KernelMatrix, MatrixCell, RuntimeRatio
from policygen.model.searches import PointQuantiles, ReportedWorkload
from policygen.model.verdicts import RuntimePerformance, WorkloadPerformance
from policygen.model.workload import plain, runtime_name
from policygen.report.blocks import Drawing, Mark
from policygen.report.console import interval_words, ratio_words
from policygen.untrusted import visible

Place = tuple[float, float]
LETTER = 6.4
"""Approximate width of a letter of an axis label."""
BOLD_LETTER = 7.2
"""Approximate width of a letter of a title."""
TITLE_LINE = 15.0
"""Height of a line of a title."""
LEAST = 0.08
"""Minimum range shown below base, as a fraction of base."""
BELOW = 4.0
"""Maximum range shown below base, as a multiple of the gain of the best variant."""
ROOM = 0.04
"""Padding beyond both ends of a range, as a fraction of it."""
SHADE_WIDTH = 18.0
"""Width of a step of a color scale."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a drawing, and the values at its edges."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Horizontal coordinate of a value, clamped to the panel."""
        low, high = self.x
        return self.left + self.width * min(1.0, max(0.0, (value - low) / (high - low)))

    def up(self, value: float) -> float:
        """Vertical coordinate of a value, clamped to the panel."""
        low, high = self.y
        return self.bottom - self.height * min(1.0, max(0.0, (value - low) / (high - low)))


def path(look: str, outline: str, title: str = "") -> Mark:
    """Lines along an outline: `M1 2h10`."""
    return Mark("path", look, {"d": outline}, title=title)


def text(look: str, x: float, y: float, words: str, title: str = "") -> Mark:
    """Words at a place."""
    return Mark("text", look, {"x": x, "y": y}, words, title)


def box(look: str, left: float, top: float, width: float, height: float, title: str = "") -> Mark:
    """Rectangle."""
    return Mark("rect", look, {"x": left, "y": top, "width": width, "height": height}, title=title)


def ring(look: str, x: float, y: float, title: str = "", radius: float = 4.5) -> Mark:
    """Circle."""
    return Mark("circle", look, {"cx": x, "cy": y, "r": radius}, title=title)


def diamond(x: float, y: float, look: str, title: str = "", size: float = 5.0) -> Mark:
    """Diamond-shaped mark."""
    s = number(size)
    return path(look, f"M{number(x)} {number(y - size)}l{s} {s}l-{s} {s}l-{s} -{s}z", title)


def head(words: str) -> Mark:
    """Title inside a drawing."""
    return text("name", 0.0, 13.0, words)


def heads(words: str) -> Iterator[Mark]:
    """Title of a small panel, on as many lines as it needs."""
    for index, shown in enumerate(wrapped(words, SMALL)):
        yield text("name", 0.0, 13.0 + TITLE_LINE * index, shown)


def title_height(titles: Iterable[str]) -> float:
    """Height of the titles of small panels that stand next to each other."""
    return TITLE_LINE * max((len(wrapped(words, SMALL)) for words in titles), default=1)


def wrapped(words: str, room: float, letter: float = BOLD_LETTER) -> list[str]:
    """Break a text, such as a title, into lines of the available width."""
    return wrap(words, int(room / letter), break_on_hyphens=False)


def steps(low: float, high: float, most: int) -> list[float]:
    """Up to `most` round numbers in a range, spaced 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / max(1, most)
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [round(multiple * step, 12) for multiple in range(first, last + 1)]


def spelled_steps(values: Sequence[float]) -> list[str]:
    """Format values with just enough digits to distinguish them."""
    spacing = min((b - a for a, b in pairwise(values)), default=1.0)
    digits = max(0, ceil(-log10(spacing) - 1e-9))
    return [f"{value:,.{digits}f}" for value in values]


def score_range(scores: Sequence[float], extra: Iterable[float] = ()) -> tuple[float, float]:
    """Range of scores to show; scores far below base are left out."""
    high = max(1.01, *scores, *extra)
    low = median(scores)
    if (edge := 1 - max(BELOW * (high - 1), LEAST)) < max(scores):
        low = max(low, edge)
    low = min(0.98, low, *extra)
    return low - ROOM * (high - low), high + ROOM * (high - low)


def outside(scores: Sequence[float], low: float) -> str:
    """Count the variants that are drawn at the lower edge instead of at their score."""
    count = sum(score < low for score in scores)
    return f"{plural(count, 'variant')} below {low:.2f} at the lower edge." if count else ""


def frame(panel: Panel, y_name: str, x_name: str) -> Iterator[Mark]:
    """Lines below and beside a panel, and the names of its axes."""
    start = f"M{number(panel.left)} {number(panel.top)}"
    yield path("edge", f"{start}V{number(panel.bottom)}h{number(panel.width)}")
    yield x_title(panel, x_name)
    yield text("axis", panel.left - 30, panel.top - 7, y_name)


def x_title(panel: Panel, words: str) -> Mark:
    """Name of the axis below a panel."""
    return text("axis mid", panel.left + panel.width / 2, panel.bottom + 31, words)


def y_axis(panel: Panel, most: int = 5) -> Iterator[Mark]:
    """Numbers beside a panel, with grid lines across it."""
    values = steps(*panel.y, most)
    for value, words in zip(values, spelled_steps(values), strict=True):
        y = panel.up(value)
        yield path("grid", f"M{number(panel.left)} {number(y)}h{number(panel.width)}")
        yield text("tick end", panel.left - 5, y + 4, words)


def x_axis(
    panel: Panel, most: int = 6, scale: float = 1.0, *, whole: bool = False
) -> Iterator[Mark]:
    """Numbers below a panel."""
    low, high = panel.x
    values = steps(low / scale, high / scale, most)
    if whole:
        values = [value for value in values if value == round(value)]
    for value, words in zip(values, spelled_steps(values), strict=True):
        x = panel.across(value * scale)
        yield path("edge", f"M{number(x)} {number(panel.bottom)}v4")
        yield text("tick mid", x, panel.bottom + 16, words)


def unit(panel: Panel, title: str = "base") -> Iterator[Mark]:
    """Line where a ratio is 1, which means as fast as base."""
    low, high = panel.y
    if low < 1 < high:
        start = f"M{number(panel.left)} {number(panel.up(1))}"
        yield path("unit", f"{start}h{number(panel.width)}", title)


def dots(places: Iterable[Place], look: str) -> Iterator[Mark]:
    """Points; coinciding points are drawn once."""
    distinct = dict.fromkeys(f"M{number(x)} {number(y)}h0" for x, y in places)
    if distinct:
        yield path(look, "".join(distinct))


def line(places: Sequence[Place], look: str, title: str = "") -> Iterator[Mark]:
    """Line through several points."""
    if places:
        yield path(look, outline(places), title)


def outline(places: Sequence[Place]) -> str:
    """Write a path through several points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)


def legend(entries: Sequence[tuple[str, str]], y: float) -> Iterator[Mark]:
    """Legend of `(look, name)` entries, side by side."""
    x = 2.0
    for look, words in entries:
        mark, room = path(look, f"M{number(x)} {number(y - 4)}h16"), 20.0
        if look.startswith("dots"):
            mark, room = path(look, f"M{number(x + 4)} {number(y - 4)}h0"), 11.0
        elif look.startswith("last"):
            mark, room = diamond(x + 6, y - 4, look), 15.0
        elif look.startswith("ring"):
            mark, room = ring(look, x + 5, y - 4), 15.0
        elif look == "band":
            mark = box(look, x, y - 9, 16, 10)
        yield mark
        yield text("tick", x + room, y, words)
        x += room + len(words) * LETTER + 12


def color_scale(
    left: float, top: float, last: int, labels: Iterable[tuple[int, str]]
) -> Iterator[Mark]:
    """Color scale from shade 0 to the last one, with labels of some of its shades."""
    for shade in range(last + 1):
        yield box(f"h{shade}", left + shade * SHADE_WIDTH, top, SHADE_WIDTH, 8.0)
    for shade, words in labels:
        yield text("tick mid", left + (shade + 0.5) * SHADE_WIDTH, top + 20, words)


def cut(words: str, room: float, letter: float = LETTER) -> str:
    """Truncate a text to the available width."""
    most = max(4, int(room / letter))
    return words if len(words) <= most else f"{words[: most - 1]}…"


# Drawings as SVG, with escaped text, short numbers, and the colors of the page or file


def svg(drawing: Drawing, name: str) -> str:
    """Write a drawing for a page; `name` becomes its ID there."""
    title, words = (_text(f"{name}/{part}") for part in ("title", "words"))
    width, height = number(drawing.width), number(drawing.height)
    return (
        f'<svg id="{_text(name)}" viewBox="0 0 {width} {height}" role="img"'
        f' aria-labelledby="{title}" aria-describedby="{words}" style="--wide:{width}">'
        f'<title id="{title}">{_text(drawing.title)}</title>'
        f'<desc id="{words}">{_text(drawing.words)}</desc>'
        f"{elements(drawing)}</svg>"
    )


def elements(drawing: Drawing) -> str:
    """Write the marks of a drawing."""
    return "".join(map(_element, drawing.marks))


def _element(mark: Mark) -> str:
    attributes = "".join(
        f' {key}="{_text(value) if isinstance(value, str) else number(value)}"'
        for key, value in mark.where.items()
    )
    title = f"<title>{_text(mark.title)}</title>" if mark.title else ""
    return (
        f'<{mark.name} class="{_text(mark.look)}"{attributes}>{title}{_text(mark.text)}'
        f"</{mark.name}>"
    )


def _text(words: str) -> str:
    return str(escape(visible(words)))


def number(value: float) -> str:
    """Write a coordinate with one decimal, because a tenth of a pixel is not visible."""
    return f"{value:.1f}".removesuffix(".0")


LEFT, TOP, HIGH = 12.0, 44.0, 40.0
MATRIX_LEAST, WIDEST = 62.0, 110.0
"""Minimum and maximum width of a cell, in pixels."""
MATRIX_ROOM = 360.0
"""Width of the drawing that cells are sized for; a wider drawing is scaled down on a phone."""
SHADES = 5
FAR = 0.5
"""Ratios this far below 1 or farther share the darkest color."""


# Heat map of strategies and sizes, colored by the distance from the best strategy


def heat_map(matrix: KernelMatrix) -> Drawing:
    """Draw a cell for each strategy and size, with its ratio and time."""
    sizes = matrix.sizes
    left = max((len(name) for name in matrix.strategies), default=0) * LETTER + LEFT
    head_width = max((len(size) for size in sizes), default=0) * LETTER + 8
    cell_width = min(
        WIDEST, max(MATRIX_LEAST, head_width, (MATRIX_ROOM - left) / max(1, len(sizes)))
    )
    bottom = TOP + HIGH * len(matrix.strategies)
    title = f"Best time divided by each {matrix.by}'s time, by size"
    marks = [head(title)]
    marks += [
        text("tick mid", left + (column + 0.5) * cell_width, TOP - 8, size)
        for column, size in enumerate(sizes)
    ]
    for row, strategy in enumerate(matrix.strategies):
        top = TOP + row * HIGH
        marks.append(text("tick end", left - 6, top + HIGH / 2 + 4, strategy))
        for column, size in enumerate(sizes):
            place = (left + column * cell_width, top, cell_width - 1, HIGH - 1)
            if (cell := matrix.cell(strategy, size)) is None:
                marks.append(box("none", *place, f"{strategy}, {size}: not measured"))
            else:
                marks += _cell(cell, place, left + (column + 0.5) * cell_width)
    marks += color_scale(left, bottom + 14, SHADES, ((0, f"≤ {1 - FAR:.1f}"), (SHADES, "1")))
    best = [
        f"{size}: {cell.strategy}"
        for size in sizes
        for cell in matrix.cells
        if cell.size == size and cell.verdict == "best"
    ]
    width = left + cell_width * len(sizes) + LEFT
    return Drawing(title, f"The fastest at {'; '.join(best)}.", width, bottom + 46, marks, "")


def _cell(cell: MatrixCell, place: tuple[float, float, float, float], middle: float) -> list[Mark]:
    """Ratio and time of a strategy at a size; the best one and close ones are framed."""
    loss = min(1.0, max(0.0, (1 - cell.ratio) / FAR))
    look = "h10" if cell.verdict == "best" else f"h{SHADES - round(loss * SHADES)}"
    title = f"{cell.strategy}, {cell.size}: {cell.seconds * 1e6:,.2f} us, {cell.variant}"
    marks = [
        box(look, *place, title),
        text(f"in {look}t", middle, place[1] + 17, f"{cell.ratio:.3f}"),
        text(f"in {look}t", middle, place[1] + 31, f"{cell.seconds * 1e6:,.1f} us"),
    ]
    frame_look = {"best": "best", "close": "edge"}.get(cell.verdict)
    return marks if frame_look is None else [*marks, box(frame_look, *place)]


WIDTH = 420.0
ROW = 34.0


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """A row of an interval chart."""

    name: str
    value: float
    interval: tuple[float, float] | None
    title: str
    """Tooltip of the value and its interval."""
    look: str
    """Style class of the value."""
    whisker: str = "whisker"
    label: str = "label"
    ring: tuple[float, str] | None = None
    """Another value of the row, and its tooltip."""


def interval_chart(
    title: str,
    shown_title: str,
    rows: Sequence[IntervalRow],
    values: Iterable[float],
    legend_entries: Sequence[tuple[str, str]],
    axis: tuple[str, str, int],
    words: str,
    note: str,
) -> Drawing:
    """Draw a row per value; the axis has a name, a tooltip at 1, and so many numbers."""
    axis_title, unit_title, most = axis
    drawn = [1.0, *values]
    low, high = min(drawn), max(drawn)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, WIDTH - 20, ROW * len(rows), (low - room, high + room), (0, 1))
    marks = [head(shown_title), *legend(legend_entries, 34)]
    marks += [upright(panel, "grid", value) for value in steps(*panel.x, most)]
    marks.append(upright(panel, "unit", 1, unit_title))
    for place, row in enumerate(rows):
        marks += _interval_row(panel, panel.top + ROW * place, row)
    marks += x_axis(panel, most)
    marks.append(path("edge", f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"))
    marks.append(x_title(panel, axis_title))
    return Drawing(title, words, WIDTH, panel.bottom + 36, marks, note)


def upright(panel: Panel, look: str, value: float, title: str = "") -> Mark:
    """Vertical line across a panel."""
    return path(look, f"M{panel.across(value):.1f} {panel.top:.1f}V{panel.bottom:.1f}", title)


def _interval_row(panel: Panel, top: float, row: IntervalRow) -> Iterator[Mark]:
    y = top + 24
    yield text(row.label, panel.left, top + 13, cut(row.name, panel.width), row.name)
    if row.interval:
        left, right = map(panel.across, row.interval)
        yield path(row.whisker, f"M{left:.1f} {y:.1f}H{right:.1f}", row.title)
    if row.ring:
        yield ring("ring", panel.across(row.ring[0]), y, row.ring[1])
    yield diamond(panel.across(row.value), y, row.look, row.title)


MOST = 24
"""Maximum number of runtime workloads drawn; the slowest ones are kept."""
FAR_RATIO = 10.0
"""Ratios above this, or below its inverse, are drawn at the edge."""
RATIO = "before over after"


# Before over after: intervals per runtime workload, and quantiles


def ratios(name: str, workload: WorkloadPerformance) -> Drawing:
    """Draw the ratio of a workload, followed by those of its runtime workloads."""
    slowest = {id(row) for row in sorted(workload.runtime, key=lambda row: row.ratio)[:MOST]}
    shown = [row for row in workload.runtime if id(row) in slowest]
    rows = [_ratio_row("all of them, by their weights", workload, "label mean")]
    rows += [_ratio_row(runtime_name(row.subbench, plain(row.point)), row) for row in shown]
    values = [
        min(FAR_RATIO, max(1 / FAR_RATIO, value))
        for value in chain(_ratio_and_interval(workload), *map(_ratio_and_interval, shown))
    ]
    verdicts = [row.verdict for row in workload.runtime]
    counts = [
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in ("faster", "equal", "slower", "undecided")
        if verdict in verdicts
    ]
    return interval_chart(
        f"{RATIO.capitalize()}: {name}",
        cut(name, WIDTH, BOLD_LETTER),
        rows,
        values,
        [("last faster", "faster"), ("last slower", "slower"), ("last", "equal or undecided")],
        (f"{RATIO}: 1 is equal", "as fast as before", 6),
        f"{len(verdicts)} runtime workloads with their intervals: {', '.join(counts) or 'none'}.",
        _omissions(len(verdicts) - len(shown), shown),
    )


def _ratio_row(
    name: str, result: RuntimePerformance | WorkloadPerformance, label: str = "label"
) -> IntervalRow:
    look = f" {result.verdict}" if result.verdict in {"faster", "slower"} else ""
    between = interval_words(result.low, result.high)
    return IntervalRow(
        name,
        result.ratio or 0.0,
        None if result.low is None or result.high is None else (result.low, result.high),
        f"{name}: {ratio_words(result.ratio)}, {between}, {result.verdict}",
        f"last{look}",
        f"whisker{look}",
        label,
    )


def _ratio_and_interval(result: RuntimePerformance | WorkloadPerformance) -> list[float]:
    return [value for value in (result.ratio, result.low, result.high) if value is not None]


def _omissions(hidden: int, shown: Sequence[RuntimePerformance]) -> str:
    notes = [f"and {hidden:,} more, all faster than these"] if hidden else []
    beyond = sum(
        any(not 1 / FAR_RATIO <= value <= FAR_RATIO for value in _ratio_and_interval(row))
        for row in shown
    )
    if beyond:
        ends = f"{1 / FAR_RATIO:g} to {FAR_RATIO:g}"
        notes.append(f"{beyond:,} with an interval beyond {ends}, drawn at the edge")
    return "; ".join(notes)


def quantiles(workload: WorkloadPerformance, levels: Sequence[float]) -> Iterator[Drawing]:
    """Draw before over after at each quantile, one drawing per runtime workload, heaviest first."""
    with_quantiles = sorted(
        (row for row in workload.runtime if row.quantiles), key=lambda row: -row.weight
    )
    shown_ids = {id(row) for row in with_quantiles[:PANELS]}
    shown = [row for row in workload.runtime if id(row) in shown_ids]
    points = [PointRatios(row.subbench, row.point, {RATIO: row.quantiles}) for row in shown]
    yield from quantile_panels([RATIO], points, levels, RATIO)


SMALL = 300.0
PANELS = 12
"""Maximum number of runtime workloads with quantiles; the heaviest ones are kept."""
SERIES = 5
"""Number of line colors, and maximum number of finalists with quantiles."""
STROKES = 4
"""Number of strokes that lines of the same color have."""
KEY = 380.0
Point = tuple[str, tuple[tuple[str, str], ...]]


# Ratios of times at each quantile of the samples, one panel per runtime workload


def ratio_ends(values: Iterable[float]) -> tuple[float, float]:
    """Ends of a ratio axis, shared by panels that stand next to each other."""
    drawn = [0.98, 1.02, *values]
    low, high = min(drawn), max(drawn)
    room = 0.05 * (high - low)
    return low - room, high + room


def quantile_panels(
    names: Sequence[str],
    points: Sequence[PointRatios],
    levels: Sequence[float],
    ratio: str = "base over variant",
) -> Iterator[Drawing]:
    """Draw the named ratios at each quantile, one panel per runtime workload, with equal axes."""
    looks = {name: series(index) for index, name in enumerate(names)}
    drawn = chain.from_iterable(values for point in points for values in point.ratios.values())
    ends = ratio_ends(min(FAR_RATIO, value) for value in drawn)
    titles = [runtime_name(point.subbench, plain(point.point)) for point in points]
    top = 19 + title_height(titles)
    for point, title in zip(points, titles, strict=True):
        panel = Panel(46, top, SMALL - 56, 130, (0, 100), ends)
        marks = [*heads(title), *y_axis(panel, 4)]
        marks += [*x_axis(panel, 4), *unit(panel, ratio.partition(" ")[0])]
        descriptions = []
        for name, values in point.ratios.items():
            places = [
                (panel.across(100 * level), panel.up(value))
                for level, value in zip(levels, values, strict=True)
            ]
            first, middle, last = (ratio_words(values[at]) for at in (0, len(values) // 2, -1))
            descriptions.append(f"{name}: {middle} at the median")
            words = f"{descriptions[-1]}, {first} at the lowest quantile, {last} at the highest"
            marks += line(places, looks[name], words)
        marks += frame(panel, ratio, "quantile of the samples, %")
        name = f"{ratio[:1].upper()}{ratio[1:]}: {title}"
        yield Drawing(name, "; ".join(descriptions), SMALL, panel.bottom + 36, marks)


def finalist_quantiles(workload: ReportedWorkload, levels: Sequence[float]) -> Iterator[Drawing]:
    """Base over the best variants at each quantile, one drawing per runtime workload."""
    finals = [final for final in workload.finalists if final.quantiles][:SERIES]
    if not finals:
        return
    variants = [final.variant for final in finals]
    yield line_key(variants)
    ratios: dict[Point, dict[str, Sequence[float]]] = {
        point: {} for point in shown_points(workload)
    }
    for final in finals:
        for row in final.quantiles:
            ratios.get(_point(row), {}).setdefault(final.variant, row.ratios)
    points = [PointRatios(bench, dict(point), own) for (bench, point), own in ratios.items()]
    yield from quantile_panels(variants, points, levels)


def shown_points(workload: ReportedWorkload) -> list[Point]:
    """Runtime workloads whose quantiles are drawn, in their original order."""
    weights: dict[Point, float] = {}
    for final in workload.finalists:
        for row in final.runtime:
            weights.setdefault(_point(row), row.weight)
    points_with_quantiles = {_point(row) for final in workload.finalists for row in final.quantiles}
    heaviest = sorted(points_with_quantiles, key=lambda point: -weights.get(point, 0.0))[:PANELS]
    return [point for point in weights if point in heaviest]


def _point(row: PointQuantiles | RuntimeRatio) -> Point:
    return row.subbench, tuple(row.point.items())


def line_key(names: Sequence[str], width: float = KEY) -> Drawing:
    """Legend that maps lines to variants, truncated to the available width."""
    marks = []
    for index, name in enumerate(names):
        y = 14.0 + 17 * index
        marks.append(path(series(index), f"M0 {y - 4:.1f}h28"))
        marks.append(text("label", 36.0, y, cut(name, width - 40), name))
    title = "Lines in the figures below"
    return Drawing(title, ", ".join(names), width, 17.0 * len(names) + 6, marks)


def series(index: int) -> str:
    """Style class of a line: other colors first, then other strokes."""
    return f"series s{index % SERIES} t{index // SERIES % STROKES}"
