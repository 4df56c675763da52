"""Variants by the values of their parameters; many values of a parameter are put into ranges."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd
from statistics import fmean, median, pvariance

from policygen.model.labels import parse_label
from policygen.model.search_report import ReportedWorkload

MOST = 20
"""Values of a parameter that stand side by side."""
Values = Mapping[str, int]


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


def bins_of(name: str, values: set[int], most: int = MOST) -> Bins:
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
