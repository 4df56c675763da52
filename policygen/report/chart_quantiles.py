"""Ratios of times at each quantile of the samples, a panel for each runtime workload."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policygen.model.workload import axis_name
from policygen.report import chart
from policygen.report.blocks import Drawing
from policygen.report.chart import Panel
from policygen.report.console import ratio_words

SMALL = 300.0
PANELS = 12
"""Runtime workloads whose quantiles are drawn, the heaviest ones."""


@dataclass(frozen=True, slots=True)
class QuantileLine:
    """A line of a panel: its look, what it is called, and its ratios."""

    look: str
    name: str
    ratios: Sequence[float]


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
    marks = [chart.head(chart.cut(name, SMALL, 7.2)), *chart.up_axis(panel, 4)]
    marks += [*chart.across_axis(panel, 4), *chart.unit(panel, what.partition(" ")[0])]
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
        marks += chart.line(places, one.look, title)
    marks += chart.frame(panel, what, "quantile of the samples, %")
    title = f"{what[:1].upper()}{what[1:]}: {name}"
    return Drawing(title, "; ".join(told), SMALL, 200, marks)


def point_name(subbench: str, point: Mapping[str, str], *, several: bool) -> str:
    """Name a runtime workload; `several`: of one of several sub-benchmarks."""
    words = ", ".join(f"{axis_name(axis)}={value}" for axis, value in point.items())
    return f"{subbench}: {words}" if several or not words else words
