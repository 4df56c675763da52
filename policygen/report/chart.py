"""What charts are made of: a panel with axes, dots, lines, and where they stand."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10
from statistics import median

from policygen.report.blocks import Mark

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
