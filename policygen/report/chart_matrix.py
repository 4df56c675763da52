"""A heat map of strategies and sizes: how far each is from the best one."""

from collections.abc import Iterator

from policygen.model.matrix import KernelMatrix, MatrixCell
from policygen.report import chart
from policygen.report.blocks import Drawing, Mark

LEFT, TOP, HIGH = 12.0, 44.0, 40.0
LEAST, WIDEST = 62.0, 110.0
"""Pixels of a cell."""
ROOM = 360.0
"""A drawing that is wider is smaller on a telephone."""
SHADES = 5
FAR = 0.5
"""The ratio from which on all are equally dark."""


def heat_map(one: KernelMatrix) -> Drawing:
    """Draw a cell for each strategy and size, with its ratio and time."""
    names = max((len(name) for name in one.strategies), default=0) * chart.LETTER + LEFT
    heads = max((len(size) for size in one.sizes), default=0) * chart.LETTER + 8
    wide = min(WIDEST, max(LEAST, heads, (ROOM - names) / max(1, len(one.sizes))))
    width = names + wide * len(one.sizes) + LEFT
    height = TOP + HIGH * len(one.strategies) + 46
    title = f"Time of the best over each {one.by}'s, by size"
    marks = [chart.head(title), *_heads(one, names, wide), *_rows(one, names, wide)]
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
