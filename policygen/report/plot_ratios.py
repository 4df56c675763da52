"""Variant ratio plots, as CUB's tuning documentation has them: quantiles of base over variant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policygen.errors import InputError
from policygen.report import plots
from policygen.report.plots import LEAST_SPAN, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart also by those who see few colours, and none of them red: that is the line at 1.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#7a3e9d", "#56b4e9", "#8c6d31", "#404040")
STROKES = ("solid", "dashed", "dotted", "dashdot")
LABEL = 24
"""Letters on a line of a row's or column's label."""


@dataclass(frozen=True, slots=True)
class RatioPanel:
    """One runtime workload: its place in the grid, and the samples of base and some variants."""

    row: str
    column: str
    base: Numbers
    variants: Mapping[str, Numbers]


def ratio_plot(title: str, panels: Sequence[RatioPanel], path: Path) -> None:
    """Plot base's quantiles over the variants', a panel for each runtime workload."""
    plots.check_suffix(path)
    if not any(panel.variants for panel in panels):
        raise InputError("nothing to plot: no runtime workload has samples of base and a variant")
    with plots.figure(title, path) as figure:
        draw_ratios(figure, panels)


def draw_ratios(figure: "Figure", panels: Sequence[RatioPanel]) -> None:
    """Draw panels that share their axes, a row for each size; none for what does not exist."""
    by_row: dict[str, list[RatioPanel]] = {}
    for panel in panels:
        by_row.setdefault(panel.row, []).append(panel)
    rows = list(by_row)
    titles = [[panel.column for panel in each] for each in by_row.values()]
    width = max(map(len, titles))
    names = list(dict.fromkeys(name for panel in panels for name in panel.variants))
    _size(figure, len(rows), width, names)
    grid = figure.subplots(len(rows), width, sharex=True, sharey=True, squeeze=False)
    drawn: dict[str, Any] = {}
    extremes: list[float] = []
    empty = set(grid.flat)
    places = [
        (grid[r, c], panel) for r, row in enumerate(rows) for c, panel in enumerate(by_row[row])
    ]
    for axes, panel in places:
        empty.discard(axes)
        for name, sample in panel.variants.items():
            x, y = quantile_ratios(panel.base, sample)
            extremes += [float(y.min()), float(y.max())]
            drawn[name] = axes.plot(x, y, linewidth=1.2, **_look(names.index(name)))[0]
    for axes in grid.flat:
        _dress(axes)
        axes.set_visible(axes not in empty)
    for axes, row in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(_broken(row))
    same = all(title == titles[0] for title in titles)
    for axes, panel in places[:width] if same else places:
        axes.set_title(_broken(panel.column))
    axes.set_xlim(0, 1)
    axes.set_ylim(*_limits(extremes))
    # Labels of the whole figure would lie over a legend outside of the axes: its title says it.
    figure.legend(
        [drawn[name] for name in names],
        names,
        title="base / variant at each quantile of the samples: over 1 is faster",
        loc="outside lower center",
        ncols=_legend_columns(figure, names),
        frameon=False,
    )


def quantile_ratios(base: Numbers, variant: Numbers) -> tuple[Numbers, Numbers]:
    """Take the quantiles 0.01 to 0.99, and base's time over the variant's at each."""
    x = np.arange(1, 100) / 100
    return x, np.quantile(base, x) / np.quantile(variant, x)


def _look(index: int) -> dict[str, Any]:
    stroke = STROKES[index // len(COLOURS) % len(STROKES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": stroke}


def _dress(axes: "Axes") -> None:
    axes.axhline(1, color="red", linewidth=0.8, alpha=0.8, zorder=1)
    axes.grid(color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xticks([0.25, 0.5, 0.75])
    axes.tick_params(length=2)


def _limits(values: list[float]) -> tuple[float, float]:
    low, high = min(*values, 1 - LEAST_SPAN), max(*values, 1 + LEAST_SPAN)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _size(figure: "Figure", rows: int, columns: int, names: list[str]) -> None:
    """Set the size: few panels are large, many are small, and none is too small to read."""
    width = min(4.5, max(1.9, 10 / columns))
    height = min(2.4, max(1.5, 8 / rows))
    figure.set_size_inches(max(5.5, width * columns + 0.7), height * rows + 0.9)
    lines = 1 + -(-len(names) // _legend_columns(figure, names))
    figure.set_figheight(figure.get_figheight() + 0.17 * lines)


def _legend_columns(figure: "Figure", names: list[str]) -> int:
    # A letter of 8 points is about 0.07 inches wide; a stroke and its gaps take half an inch.
    widest = 0.07 * max(len(name) for name in names) + 0.5
    return max(1, min(len(names), int(figure.get_figwidth() / widest)))


def _broken(label: str) -> str:
    """Break a long label into several lines, at its commas and behind a sub-benchmark."""
    if len(label) <= LABEL:
        return label
    return label.replace(": ", ":\n").replace(", ", ",\n")
