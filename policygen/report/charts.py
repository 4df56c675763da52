"""What charts are made of: a panel with axes, dots, lines, and where they stand."""

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
"""The width of a letter of an axis, about."""
LEAST = 0.08
"""What is shown below base at least, as a share of it."""
BELOW = 4.0
"""As many times what the best one gains is shown below base at most."""
ROOM = 0.04
"""Of the range, beyond its ends."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle of a drawing, and the values at its ends."""

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
        """Where a value stands, from the left; never outside."""
        low, high = self.x
        return self.left + self.width * min(1.0, max(0.0, (value - low) / (high - low)))

    def up(self, value: float) -> float:
        """Where a value stands, from the top; never outside."""
        low, high = self.y
        return self.bottom - self.height * min(1.0, max(0.0, (value - low) / (high - low)))


def steps(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two, as many at most; 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / max(1, most)
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def spelled_steps(values: Sequence[float]) -> list[str]:
    """With as many digits as tell them apart."""
    apart = min((b - a for a, b in pairwise(values)), default=1.0)
    digits = max(0, ceil(-log10(apart) - 1e-9))
    return [f"{value:,.{digits}f}" for value in values]


def score_range(scores: Sequence[float], more: Iterable[float] = ()) -> tuple[float, float]:
    """The range of scores that is worth looking at: what is far below base is not."""
    high = max(1.01, *scores, *more)
    low = median(scores)
    if (edge := 1 - max(BELOW * (high - 1), LEAST)) < max(scores):
        low = max(low, edge)
    low = min(0.98, low, *more)
    return low - ROOM * (high - low), high + ROOM * (high - low)


def outside(scores: Sequence[float], low: float) -> str:
    """Tell how many are not shown where they are."""
    count = sum(score < low for score in scores)
    noun = "variant" if count == 1 else "variants"
    return f"{count:,} {noun} below {low:.2f} at the lower edge." if count else ""


def head(text: str, left: float = 0.0) -> Mark:
    """The title within a drawing."""
    return Mark("text", "name", {"x": left, "y": 13.0}, text)


def frame(panel: Panel, y_name: str, x_name: str) -> Iterator[Mark]:
    """The lines below and beside a panel, the names of its axes."""
    yield Mark(
        "path",
        "edge",
        {"d": f"M{_n(panel.left)} {_n(panel.top)}V{_n(panel.bottom)}h{_n(panel.width)}"},
    )
    middle = panel.left + panel.width / 2
    yield Mark("text", "axis mid", {"x": middle, "y": panel.bottom + 31}, x_name)
    yield Mark("text", "axis", {"x": panel.left - 30, "y": panel.top - 7}, y_name)


def up_axis(panel: Panel, most: int = 5) -> Iterator[Mark]:
    """Numbers beside a panel, with lines across it."""
    values = steps(*panel.y, most)
    for value, text in zip(values, spelled_steps(values), strict=True):
        y = panel.up(value)
        yield Mark("path", "grid", {"d": f"M{_n(panel.left)} {_n(y)}h{_n(panel.width)}"})
        yield Mark("text", "tick end", {"x": panel.left - 5, "y": y + 4}, text)


def across_axis(
    panel: Panel, most: int = 6, scale: float = 1.0, *, whole: bool = False
) -> Iterator[Mark]:
    """Numbers below a panel."""
    low, high = panel.x
    values = steps(low / scale, high / scale, most)
    if whole:
        values = [value for value in values if value == round(value)]
    for value, text in zip(values, spelled_steps(values), strict=True):
        x = panel.across(value * scale)
        yield Mark("path", "edge", {"d": f"M{_n(x)} {_n(panel.bottom)}v4"})
        yield Mark("text", "tick mid", {"x": x, "y": panel.bottom + 16}, text)


def unit(panel: Panel, title: str = "base") -> Iterator[Mark]:
    """The line where a ratio is 1: a variant is as fast as base."""
    low, high = panel.y
    if low < 1 < high:
        path = f"M{_n(panel.left)} {_n(panel.up(1))}h{_n(panel.width)}"
        yield Mark("path", "unit", {"d": path}, title=title)


def dots(places: Iterable[Place], look: str) -> Iterator[Mark]:
    """Points, those at the same place once."""
    once = dict.fromkeys(f"M{_n(x)} {_n(y)}h0" for x, y in places)
    if once:
        yield Mark("path", look, {"d": "".join(once)})


def line(places: Sequence[Place], look: str, title: str = "") -> Iterator[Mark]:
    """A line through some places."""
    if places:
        path = "L".join(f"{_n(x)} {_n(y)}" for x, y in places)
        yield Mark("path", look, {"d": f"M{path}"}, title=title)


def stairs(places: Sequence[Place]) -> list[Place]:
    """A line that rises at once, and not slowly."""
    found: list[Place] = []
    for x, y in places:
        if found:
            found.append((x, found[-1][1]))
        found.append((x, y))
    return found


def diamond(x: float, y: float, look: str, title: str = "", size: float = 5.0) -> Mark:
    """A mark that stands out."""
    s = _n(size)
    path = f"M{_n(x)} {_n(y - size)}l{s} {s}l-{s} {s}l-{s} -{s}z"
    return Mark("path", look, {"d": path}, title=title)


def legend(entries: Sequence[tuple[str, str]], left: float, y: float) -> Iterator[Mark]:
    """Names of what is drawn, side by side: a look and its name."""
    x = left
    for look, text in entries:
        if look.startswith("dots"):
            yield Mark("path", look, {"d": f"M{_n(x + 4)} {_n(y - 4)}h0"})
            room = 11.0
        elif look.startswith("last"):
            yield diamond(x + 6, y - 4, look)
            room = 15.0
        elif look == "ring":
            yield Mark("circle", look, {"cx": x + 5, "cy": y - 4, "r": 4.5})
            room = 15.0
        else:
            yield Mark("path", look, {"d": f"M{_n(x)} {_n(y - 4)}h16"})
            room = 20.0
        yield Mark("text", "tick", {"x": x + room, "y": y}, text)
        x += room + len(text) * LETTER + 12


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def cut(text: str, room: float, letter: float = LETTER) -> str:
    """As much of a text as there is room for."""
    most = max(4, int(room / letter))
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Drawings as SVG within a page: texts are escaped, numbers short, colours those of the page.


def svg(drawing: Drawing, name: str) -> str:
    """Write a drawing; `name` is what the page calls it."""
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
    where = "".join(f' {key}="{_attribute(value)}"' for key, value in mark.where.items())
    title = f"<title>{_text(mark.title)}</title>" if mark.title else ""
    return f'<{mark.name} class="{_text(mark.look)}"{where}>{title}{_text(mark.text)}</{mark.name}>'


def _attribute(value: float | str) -> str:
    return _text(value) if isinstance(value, str) else number(value)


def _text(text: str) -> str:
    return str(escape(visible(text)))


def number(value: float) -> str:
    """Write a coordinate: a tenth of a pixel is not seen."""
    return f"{value:.1f}".removesuffix(".0")


LEFT, TOP, HIGH = 12.0, 44.0, 40.0
MATRIX_LEAST, WIDEST = 62.0, 110.0
"""Pixels of a cell."""
MATRIX_ROOM = 360.0
"""A drawing that is wider is smaller on a telephone."""
SHADES = 5
FAR = 0.5
"""The ratio from which on all are equally dark."""


# A heat map of strategies and sizes: how far each is from the best one.


def heat_map(one: KernelMatrix) -> Drawing:
    """Draw a cell for each strategy and size, with its ratio and time."""
    names = max((len(name) for name in one.strategies), default=0) * LETTER + LEFT
    heads = max((len(size) for size in one.sizes), default=0) * LETTER + 8
    wide = min(WIDEST, max(MATRIX_LEAST, heads, (MATRIX_ROOM - names) / max(1, len(one.sizes))))
    width = names + wide * len(one.sizes) + LEFT
    height = TOP + HIGH * len(one.strategies) + 46
    title = f"Time of the best over each {one.by}'s, by size"
    marks = [head(title), *_heads(one, names, wide), *_rows(one, names, wide)]
    marks += _scale(names, TOP + HIGH * len(one.strategies) + 14)
    words = "; ".join(
        f"{size}: {cell.strategy}"
        for size in one.sizes
        for cell in one.cells
        if cell.size == size and cell.verdict == "best"
    )
    return Drawing(title, f"The fastest at {words}.", width, height, marks, "")


def shade(ratio: float) -> str:
    """The look of a ratio: the best is 1."""
    lost = min(1.0, max(0.0, (1 - ratio) / FAR))
    return f"h{SHADES - round(lost * SHADES)}"


def _heads(one: KernelMatrix, left: float, wide: float) -> Iterator[Mark]:
    for at, size in enumerate(one.sizes):
        yield Mark("text", "tick mid", {"x": left + (at + 0.5) * wide, "y": TOP - 8}, size)


def _rows(one: KernelMatrix, left: float, wide: float) -> Iterator[Mark]:
    for row, strategy in enumerate(one.strategies):
        top = TOP + row * HIGH
        yield Mark("text", "tick end", {"x": left - 6, "y": top + HIGH / 2 + 4}, strategy)
        for at, size in enumerate(one.sizes):
            cell = one.cell(strategy, size)
            place = {"x": left + at * wide, "y": top, "width": wide - 1, "height": HIGH - 1}
            if cell is None:
                yield Mark("rect", "none", place, title=f"{strategy}, {size}: not measured")
                continue
            look = "h10" if cell.verdict == "best" else shade(cell.ratio)
            yield Mark("rect", look, place, title=_told(cell))
            middle = {"x": left + (at + 0.5) * wide}
            yield Mark("text", f"in {look}t", {**middle, "y": top + 17}, f"{cell.ratio:.3f}")
            time = f"{cell.seconds * 1e6:,.1f} us"
            yield Mark("text", f"in {look}t", {**middle, "y": top + 31}, time)
            if cell.verdict in {"best", "close"}:
                yield Mark("rect", "best" if cell.verdict == "best" else "edge", place)


def _scale(left: float, top: float) -> Iterator[Mark]:
    """What the colours mean."""
    wide = 18.0
    for step in range(SHADES + 1):
        yield Mark(
            "rect", f"h{step}", {"x": left + step * wide, "y": top, "width": wide, "height": 8.0}
        )
    for step, text in ((0, f"≤ {1 - FAR:.1f}"), (SHADES, "1")):
        yield Mark("text", "tick mid", {"x": left + (step + 0.5) * wide, "y": top + 20}, text)


def _told(cell: MatrixCell) -> str:
    return f"{cell.strategy}, {cell.size}: {cell.seconds * 1e6:,.2f} us, {cell.variant}"


WIDTH = 420.0
ROW = 34.0
MOST = 24
"""Runtime workloads that are drawn, the slowest ones."""
FAR_RATIO = 10.0
"""Ratios over this, and below one over this, stand at the edge."""
RATIO = "before over after"
COLOURED = frozenset({"faster", "slower"})


# Before over after: each runtime workload of a workload with its interval, and at quantiles.


def ratios(name: str, one: WorkloadPerformance) -> Drawing:
    """The ratio of a workload, and below it those of its runtime workloads."""
    shown = _slowest(one.runtime)
    own = [*_ends(one), *chain.from_iterable(map(_ends, shown))]
    low, high = min(1.0, *own), max(1.0, *own)
    room = max(0.005, 0.06 * (high - low))
    panel = Panel(10, 48, WIDTH - 20, ROW * (1 + len(shown)), (low - room, high + room), (0, 1))
    marks = [head(cut(name, WIDTH, 7.2)), *_legend(), *_lines(panel)]
    marks += _row(panel, panel.top, "all of them, by their weights", one, "mean")
    several = len({row.subbench for row in one.runtime}) > 1
    for place, row in enumerate(shown, 1):
        called = point_name(row.subbench, row.point, several=several)
        marks += _row(panel, panel.top + ROW * place, called, row)
    marks += [
        *across_axis(panel, 6),
        Mark("path", "edge", {"d": f"M{panel.left:.1f} {panel.bottom:.1f}h{panel.width:.1f}"}),
        Mark("text", "axis mid", {"x": WIDTH / 2, "y": panel.bottom + 31}, f"{RATIO}: 1 is equal"),
    ]
    counts = {
        verdict: sum(row.verdict == verdict for row in one.runtime)
        for verdict in ("faster", "equal", "slower", "undecided")
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    words = f"{len(one.runtime)} runtime workloads with their intervals: {told or 'none'}."
    return Drawing(
        f"{RATIO.capitalize()}: {name}", words, WIDTH, panel.bottom + 36, marks, _left(one, shown)
    )


def quantiles(one: WorkloadPerformance, at: Sequence[float]) -> Iterator[Drawing]:
    """Before over after at each quantile, a drawing for each of the heaviest runtime workloads."""
    known = sorted((row for row in one.runtime if row.quantiles), key=lambda row: -row.weight)
    kept = {id(row) for row in known[:PANELS]}
    shown = [row for row in one.runtime if id(row) in kept]
    ends = ratio_ends(min(FAR_RATIO, ratio) for row in shown for ratio in row.quantiles)
    several = len({row.subbench for row in one.runtime}) > 1
    for row in shown:
        name = point_name(row.subbench, row.point, several=several)
        yield quantile_panel(
            name, [QuantileLine("series s0", RATIO, row.quantiles)], at, ends, RATIO
        )


def _slowest(rows: Sequence[RuntimePerformance]) -> list[RuntimePerformance]:
    """As many as fit, in their order."""
    kept = {id(row) for row in sorted(rows, key=lambda row: row.ratio)[:MOST]}
    return [row for row in rows if id(row) in kept]


def _ends(one: RuntimePerformance | WorkloadPerformance) -> Iterator[float]:
    """The ends of what is drawn of it."""
    return (min(FAR_RATIO, max(1 / FAR_RATIO, value)) for value in _known(one))


def _known(one: RuntimePerformance | WorkloadPerformance) -> list[float]:
    return [value for value in (one.ratio, one.low, one.high) if value is not None]


def _left(one: WorkloadPerformance, shown: Sequence[RuntimePerformance]) -> str:
    left = len(one.runtime) - len(shown)
    told = [f"and {left:,} more, all of them faster than these"] if left else []
    far = sum(
        any(not 1 / FAR_RATIO <= value <= FAR_RATIO for value in _known(row)) for row in shown
    )
    told += (
        [f"{far:,} with an interval beyond {1 / FAR_RATIO:g} to {FAR_RATIO:g}: at the edge"]
        if far
        else []
    )
    return "; ".join(told)


def _legend() -> list[Mark]:
    names = [("last faster", "faster"), ("last slower", "slower"), ("last", "equal or not decided")]
    return list(legend(names, 2, 34))


def _lines(panel: Panel) -> Iterator[Mark]:
    for value in steps(*panel.x, 6):
        x = panel.across(value)
        yield Mark("path", "grid", {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"})
    x = panel.across(1)
    where = {"d": f"M{x:.1f} {panel.top:.1f}V{panel.bottom:.1f}"}
    yield Mark("path", "unit", where, title="as fast as before")


def _row(
    panel: Panel,
    top: float,
    name: str,
    one: RuntimePerformance | WorkloadPerformance,
    style: str = "",
) -> Iterator[Mark]:
    if one.ratio is None:
        return
    y, look = top + 24, f" {one.verdict}" if one.verdict in COLOURED else ""
    title = f"{name}: {ratio_words(one.ratio)}, {interval_words(one.low, one.high)}, {one.verdict}"
    where = {"x": panel.left, "y": top + 13}
    yield Mark("text", f"label {style}".strip(), where, cut(name, panel.width), name)
    if one.low is not None and one.high is not None:
        left, right = panel.across(one.low), panel.across(one.high)
        path = f"M{left:.1f} {y:.1f}H{right:.1f}"
        yield Mark("path", f"whisker{look}", {"d": path}, title=title)
    yield diamond(panel.across(one.ratio), y, f"last{look}", title)


SMALL = 300.0
PANELS = 12
"""Runtime workloads whose quantiles are drawn, the heaviest ones."""


@dataclass(frozen=True, slots=True)
class QuantileLine:
    """A line of a panel: its look, what it is called, and its ratios."""

    look: str
    name: str
    ratios: Sequence[float]


# Ratios of times at each quantile of the samples, a panel for each runtime workload.


def ratio_ends(ratios: Iterable[float]) -> tuple[float, float]:
    """The ends of an axis of ratios; panels beside each other have the same."""
    found = list(ratios)
    low, high = min([0.98, *found]), max([1.02, *found])
    room = 0.05 * (high - low)
    return low - room, high + room


def quantile_panel(
    name: str,
    lines: Iterable[QuantileLine],
    at: Sequence[float],
    ends: tuple[float, float],
    what: str = "base over variant",
) -> Drawing:
    """One runtime workload."""
    panel = Panel(46, 34, SMALL - 56, 130, (0, 100), ends)
    marks = [head(cut(name, SMALL, 7.2)), *up_axis(panel, 4)]
    marks += [*across_axis(panel, 4), *unit(panel, what.partition(" ")[0])]
    told = []
    for one in lines:
        places = [
            (panel.across(100 * x), panel.up(ratio))
            for x, ratio in zip(at, one.ratios, strict=True)
        ]
        middle = one.ratios[len(one.ratios) // 2]
        told.append(f"{one.name}: {ratio_words(middle)} at the median")
        first, last = ratio_words(one.ratios[0]), ratio_words(one.ratios[-1])
        title = f"{told[-1]}, {first} at the first, {last} at the last"
        marks += line(places, one.look, title)
    marks += frame(panel, what, "quantile of the samples, %")
    title = f"{what[:1].upper()}{what[1:]}: {name}"
    return Drawing(title, "; ".join(told), SMALL, 200, marks)


def point_name(subbench: str, point: Mapping[str, str], *, several: bool) -> str:
    """Name a runtime workload; `several`: of one of several sub-benchmarks."""
    words = ", ".join(f"{axis_name(axis)}={value}" for axis, value in point.items())
    return f"{subbench}: {words}" if several or not words else words
