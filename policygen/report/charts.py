"""Building blocks of charts: panels with axes, dots, lines, and the coordinates of values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import ceil, floor, log10
from statistics import median

from markupsafe import escape

from policygen.model.measured import KernelMatrix, MatrixCell
from policygen.model.verdicts import RuntimePerformance, WorkloadPerformance
from policygen.model.workload import axis_name
from policygen.report.blocks import Drawing, Mark
from policygen.report.console import interval_words, ratio_words
from policygen.untrusted import visible

Place = tuple[float, float]
LETTER = 6.4
"""Approximate width of a letter of an axis label."""
LEAST = 0.08
"""Minimum range shown below base, as a fraction of base."""
BELOW = 4.0
"""Maximum range shown below base, as a multiple of the gain of the best variant."""
ROOM = 0.04
"""Padding beyond both ends of a range, as a fraction of it."""


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
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

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
    noun = "variant" if count == 1 else "variants"
    return f"{count:,} {noun} below {low:.2f} at the lower edge." if count else ""


def head(text: str, left: float = 0.0) -> Mark:
    """Title inside a drawing."""
    return Mark("text", "name", {"x": left, "y": 13.0}, text)


def frame(panel: Panel, y_name: str, x_name: str) -> Iterator[Mark]:
    """Lines below and beside a panel, and the names of its axes."""
    yield Mark(
        "path",
        "edge",
        {
            "d": f"M{number(panel.left)} {number(panel.top)}"
            f"V{number(panel.bottom)}h{number(panel.width)}"
        },
    )
    middle = panel.left + panel.width / 2
    yield Mark("text", "axis mid", {"x": middle, "y": panel.bottom + 31}, x_name)
    yield Mark("text", "axis", {"x": panel.left - 30, "y": panel.top - 7}, y_name)


def y_axis(panel: Panel, most: int = 5) -> Iterator[Mark]:
    """Numbers beside a panel, with grid lines across it."""
    values = steps(*panel.y, most)
    for value, text in zip(values, spelled_steps(values), strict=True):
        y = panel.up(value)
        yield Mark(
            "path", "grid", {"d": f"M{number(panel.left)} {number(y)}h{number(panel.width)}"}
        )
        yield Mark("text", "tick end", {"x": panel.left - 5, "y": y + 4}, text)


def x_axis(
    panel: Panel, most: int = 6, scale: float = 1.0, *, whole: bool = False
) -> Iterator[Mark]:
    """Numbers below a panel."""
    low, high = panel.x
    values = steps(low / scale, high / scale, most)
    if whole:
        values = [value for value in values if value == round(value)]
    for value, text in zip(values, spelled_steps(values), strict=True):
        x = panel.across(value * scale)
        yield Mark("path", "edge", {"d": f"M{number(x)} {number(panel.bottom)}v4"})
        yield Mark("text", "tick mid", {"x": x, "y": panel.bottom + 16}, text)


def unit(panel: Panel, title: str = "base") -> Iterator[Mark]:
    """Line where a ratio is 1, which means as fast as base."""
    low, high = panel.y
    if low < 1 < high:
        path = f"M{number(panel.left)} {number(panel.up(1))}h{number(panel.width)}"
        yield Mark("path", "unit", {"d": path}, title=title)


def dots(places: Iterable[Place], look: str) -> Iterator[Mark]:
    """Points; coinciding points are drawn once."""
    distinct = dict.fromkeys(f"M{number(x)} {number(y)}h0" for x, y in places)
    if distinct:
        yield Mark("path", look, {"d": "".join(distinct)})


def line(places: Sequence[Place], look: str, title: str = "") -> Iterator[Mark]:
    """Line through several points."""
    if places:
        path = "L".join(f"{number(x)} {number(y)}" for x, y in places)
        yield Mark("path", look, {"d": f"M{path}"}, title=title)


def stairs(places: Sequence[Place]) -> list[Place]:
    """Turn points into a step function."""
    points: list[Place] = []
    for x, y in places:
        if points:
            points.append((x, points[-1][1]))
        points.append((x, y))
    return points


def diamond(x: float, y: float, look: str, title: str = "", size: float = 5.0) -> Mark:
    """Diamond-shaped mark."""
    s = number(size)
    path = f"M{number(x)} {number(y - size)}l{s} {s}l-{s} {s}l-{s} -{s}z"
    return Mark("path", look, {"d": path}, title=title)


def legend(entries: Sequence[tuple[str, str]], left: float, y: float) -> Iterator[Mark]:
    """Legend of `(look, name)` entries, side by side."""
    x = left
    for look, text in entries:
        if look.startswith("dots"):
            yield Mark("path", look, {"d": f"M{number(x + 4)} {number(y - 4)}h0"})
            room = 11.0
        elif look.startswith("last"):
            yield diamond(x + 6, y - 4, look)
            room = 15.0
        elif look == "ring":
            yield Mark("circle", look, {"cx": x + 5, "cy": y - 4, "r": 4.5})
            room = 15.0
        else:
            yield Mark("path", look, {"d": f"M{number(x)} {number(y - 4)}h16"})
            room = 20.0
        yield Mark("text", "tick", {"x": x + room, "y": y}, text)
        x += room + len(text) * LETTER + 12


def cut(text: str, room: float, letter: float = LETTER) -> str:
    """Truncate a text to the available width."""
    most = max(4, int(room / letter))
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Drawings as inline SVG, with escaped text, short numbers, and the colors of the page


def svg(drawing: Drawing, name: str) -> str:
    """Write a drawing as SVG; `name` becomes its ID on the page."""
    return "".join(_parts(drawing, name))


def _parts(drawing: Drawing, name: str) -> Iterator[str]:
    title, words = f"{name}/title", f"{name}/words"
    yield (
        f'<svg id="{_text(name)}" viewBox="0 0 {number(drawing.width)} {number(drawing.height)}"'
        f' role="img" aria-labelledby="{_text(title)}" aria-describedby="{_text(words)}"'
        f' style="--wide:{number(drawing.width)}">'
    )
    yield f'<title id="{_text(title)}">{_text(drawing.title)}</title>'
    yield f'<desc id="{_text(words)}">{_text(drawing.words)}</desc>'
    for mark in drawing.marks:
        yield _mark(mark)
    yield "</svg>"


def _mark(mark: Mark) -> str:
    attributes = "".join(f' {key}="{_attribute(value)}"' for key, value in mark.where.items())
    title = f"<title>{_text(mark.title)}</title>" if mark.title else ""
    return (
        f'<{mark.name} class="{_text(mark.look)}"{attributes}>{title}{_text(mark.text)}'
        f"</{mark.name}>"
    )


def _attribute(value: float | str) -> str:
    return _text(value) if isinstance(value, str) else number(value)


def _text(text: str) -> str:
    return str(escape(visible(text)))


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
    name_width = max((len(name) for name in matrix.strategies), default=0) * LETTER + LEFT
    head_width = max((len(size) for size in matrix.sizes), default=0) * LETTER + 8
    cell_width = min(
        WIDEST,
        max(MATRIX_LEAST, head_width, (MATRIX_ROOM - name_width) / max(1, len(matrix.sizes))),
    )
    width = name_width + cell_width * len(matrix.sizes) + LEFT
    height = TOP + HIGH * len(matrix.strategies) + 46
    title = f"Time of the best over each {matrix.by}'s, by size"
    marks = [
        head(title),
        *_heads(matrix, name_width, cell_width),
        *_rows(matrix, name_width, cell_width),
    ]
    marks += _scale(name_width, TOP + HIGH * len(matrix.strategies) + 14)
    words = "; ".join(
        f"{size}: {cell.strategy}"
        for size in matrix.sizes
        for cell in matrix.cells
        if cell.size == size and cell.verdict == "best"
    )
    return Drawing(title, f"The fastest at {words}.", width, height, marks, "")


def shade(ratio: float) -> str:
    """Style class of a ratio; the best ratio is 1."""
    loss = min(1.0, max(0.0, (1 - ratio) / FAR))
    return f"h{SHADES - round(loss * SHADES)}"


def _heads(matrix: KernelMatrix, left: float, cell_width: float) -> Iterator[Mark]:
    for column, size in enumerate(matrix.sizes):
        yield Mark(
            "text", "tick mid", {"x": left + (column + 0.5) * cell_width, "y": TOP - 8}, size
        )


def _rows(matrix: KernelMatrix, left: float, cell_width: float) -> Iterator[Mark]:
    for row, strategy in enumerate(matrix.strategies):
        top = TOP + row * HIGH
        yield Mark("text", "tick end", {"x": left - 6, "y": top + HIGH / 2 + 4}, strategy)
        for column, size in enumerate(matrix.sizes):
            cell = matrix.cell(strategy, size)
            box = {
                "x": left + column * cell_width,
                "y": top,
                "width": cell_width - 1,
                "height": HIGH - 1,
            }
            if cell is None:
                yield Mark("rect", "none", box, title=f"{strategy}, {size}: not measured")
                continue
            look = "h10" if cell.verdict == "best" else shade(cell.ratio)
            yield Mark("rect", look, box, title=_cell_tooltip(cell))
            middle = {"x": left + (column + 0.5) * cell_width}
            yield Mark("text", f"in {look}t", {**middle, "y": top + 17}, f"{cell.ratio:.3f}")
            time = f"{cell.seconds * 1e6:,.1f} us"
            yield Mark("text", f"in {look}t", {**middle, "y": top + 31}, time)
            if cell.verdict in {"best", "close"}:
                yield Mark("rect", "best" if cell.verdict == "best" else "edge", box)


def _scale(left: float, top: float) -> Iterator[Mark]:
    """Color scale."""
    step_width = 18.0
    for step in range(SHADES + 1):
        yield Mark(
            "rect",
            f"h{step}",
            {"x": left + step * step_width, "y": top, "width": step_width, "height": 8.0},
        )
    for step, text in ((0, f"≤ {1 - FAR:.1f}"), (SHADES, "1")):
        yield Mark("text", "tick mid", {"x": left + (step + 0.5) * step_width, "y": top + 20}, text)


def _cell_tooltip(cell: MatrixCell) -> str:
    return f"{cell.strategy}, {cell.size}: {cell.seconds * 1e6:,.2f} us, {cell.variant}"


WIDTH = 420.0
ROW = 34.0
MOST = 24
"""Maximum number of runtime workloads drawn; the slowest ones are kept."""
FAR_RATIO = 10.0
"""Ratios above this, or below its inverse, are drawn at the edge."""
RATIO = "before over after"
COLOURED = frozenset({"faster", "slower"})


# Before over after: intervals per runtime workload, and quantiles


def ratios(name: str, workload: WorkloadPerformance) -> Drawing:
    """Draw the ratio of a workload, followed by those of its runtime workloads."""
    shown = _slowest(workload.runtime)
    values = [*_ends(workload), *chain.from_iterable(map(_ends, shown))]
    low, high = min(1.0, *values), max(1.0, *values)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, WIDTH - 20, ROW * (1 + len(shown)), (low - room, high + room), (0, 1))
    marks = [head(cut(name, WIDTH, 7.2)), *_legend(), *_lines(panel)]
    marks += _row(panel, panel.top, "all of them, by their weights", workload, "mean")
    several = len({row.subbench for row in workload.runtime}) > 1
    for position, row in enumerate(shown, 1):
        label = point_name(row.subbench, row.point, several=several)
        marks += _row(panel, panel.top + ROW * position, label, row)
    marks += [
        *x_axis(panel, 6),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark("text", "axis mid", {"x": WIDTH / 2, "y": panel.bottom + 31}, f"{RATIO}: 1 is equal"),
    ]
    counts = {
        verdict: sum(row.verdict == verdict for row in workload.runtime)
        for verdict in ("faster", "equal", "slower", "undecided")
    }
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    words = f"{len(workload.runtime)} runtime workloads with their intervals: {verdicts or 'none'}."
    return Drawing(
        f"{RATIO.capitalize()}: {name}",
        words,
        WIDTH,
        panel.bottom + 36,
        marks,
        _omissions(workload, shown),
    )


def quantiles(workload: WorkloadPerformance, levels: Sequence[float]) -> Iterator[Drawing]:
    """Draw before over after at each quantile, one drawing per runtime workload, heaviest first."""
    with_quantiles = sorted(
        (row for row in workload.runtime if row.quantiles), key=lambda row: -row.weight
    )
    shown_ids = {id(row) for row in with_quantiles[:PANELS]}
    shown = [row for row in workload.runtime if id(row) in shown_ids]
    ends = ratio_ends(min(FAR_RATIO, ratio) for row in shown for ratio in row.quantiles)
    several = len({row.subbench for row in workload.runtime}) > 1
    for row in shown:
        name = point_name(row.subbench, row.point, several=several)
        yield quantile_panel(
            name, [QuantileLine("series s0", RATIO, row.quantiles)], levels, ends, RATIO
        )


def _slowest(rows: Sequence[RuntimePerformance]) -> list[RuntimePerformance]:
    """Keep the slowest runtime workloads that fit, in their original order."""
    slowest_ids = {id(row) for row in sorted(rows, key=lambda row: row.ratio)[:MOST]}
    return [row for row in rows if id(row) in slowest_ids]


def _ends(result: RuntimePerformance | WorkloadPerformance) -> Iterator[float]:
    """Drawn values, clamped to the edges."""
    return (min(FAR_RATIO, max(1 / FAR_RATIO, value)) for value in _ratio_and_interval(result))


def _ratio_and_interval(result: RuntimePerformance | WorkloadPerformance) -> list[float]:
    return [value for value in (result.ratio, result.low, result.high) if value is not None]


def _omissions(workload: WorkloadPerformance, shown: Sequence[RuntimePerformance]) -> str:
    hidden = len(workload.runtime) - len(shown)
    notes = [f"and {hidden:,} more, all of them faster than these"] if hidden else []
    out_of_range = sum(
        any(not 1 / FAR_RATIO <= value <= FAR_RATIO for value in _ratio_and_interval(row))
        for row in shown
    )
    notes += (
        [
            f"{out_of_range:,} with an interval beyond {1 / FAR_RATIO:g} to {FAR_RATIO:g}:"
            " at the edge"
        ]
        if out_of_range
        else []
    )
    return "; ".join(notes)


def _legend() -> list[Mark]:
    names = [("last faster", "faster"), ("last slower", "slower"), ("last", "equal or not decided")]
    return list(legend(names, 2, 34))


def _lines(panel: Panel) -> Iterator[Mark]:
    for value in steps(*panel.x, 6):
        x = panel.across(value)
        yield Mark("path", "grid", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"})
    x = panel.across(1)
    line_through_one = {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"}
    yield Mark("path", "unit", line_through_one, title="as fast as before")


def _row(
    panel: Panel,
    top: float,
    name: str,
    result: RuntimePerformance | WorkloadPerformance,
    style: str = "",
) -> Iterator[Mark]:
    if result.ratio is None:
        return
    y, look = top + 24, f" {result.verdict}" if result.verdict in COLOURED else ""
    title = (
        f"{name}: {ratio_words(result.ratio)}, {interval_words(result.low, result.high)},"
        f" {result.verdict}"
    )
    position = {"x": panel.left, "y": top + 13}
    yield Mark("text", f"label {style}".strip(), position, cut(name, panel.width), name)
    if result.low is not None and result.high is not None:
        left, right = panel.across(result.low), panel.across(result.high)
        path = f"M{left:.1f} {y:.1f}H{right:.1f}"
        yield Mark("path", f"whisker{look}", {"d": path}, title=title)
    yield diamond(panel.across(result.ratio), y, f"last{look}", title)


SMALL = 300.0
PANELS = 12
"""Maximum number of runtime workloads with quantiles; the heaviest ones are kept."""


@dataclass(frozen=True, slots=True)
class QuantileLine:
    """A line of a panel with its look, name, and ratios."""

    look: str
    name: str
    ratios: Sequence[float]


# Ratios of times at each quantile of the samples, one panel per runtime workload


def ratio_ends(ratios: Iterable[float]) -> tuple[float, float]:
    """Ends of a ratio axis, shared by panels that stand next to each other."""
    values = list(ratios)
    low, high = min([0.98, *values]), max([1.02, *values])
    room = 0.05 * (high - low)
    return low - room, high + room


def quantile_panel(
    name: str,
    lines: Iterable[QuantileLine],
    levels: Sequence[float],
    ends: tuple[float, float],
    what: str = "base over variant",
) -> Drawing:
    """Draw the quantiles of one runtime workload."""
    panel = Panel(46, 34, SMALL - 56, 130, (0, 100), ends)
    marks = [head(cut(name, SMALL, 7.2)), *y_axis(panel, 4)]
    marks += [*x_axis(panel, 4), *unit(panel, what.partition(" ")[0])]
    descriptions = []
    for series in lines:
        points = [
            (panel.across(100 * level), panel.up(ratio))
            for level, ratio in zip(levels, series.ratios, strict=True)
        ]
        middle = series.ratios[len(series.ratios) // 2]
        descriptions.append(f"{series.name}: {ratio_words(middle)} at the median")
        first, last = ratio_words(series.ratios[0]), ratio_words(series.ratios[-1])
        title = f"{descriptions[-1]}, {first} at the first, {last} at the last"
        marks += line(points, series.look, title)
    marks += frame(panel, what, "quantile of the samples, %")
    title = f"{what[:1].upper()}{what[1:]}: {name}"
    return Drawing(title, "; ".join(descriptions), SMALL, 200, marks)


def point_name(subbench: str, point: Mapping[str, str], *, several: bool) -> str:
    """Name a runtime workload; `several` adds its sub-benchmark."""
    words = ", ".join(f"{axis_name(axis)}={value}" for axis, value in point.items())
    return f"{subbench}: {words}" if several or not words else words
