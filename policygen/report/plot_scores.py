"""The score over two parameters as a heat map, with its colours centred at 1."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policygen.errors import InputError
from policygen.report import plots
from policygen.report.plots import LEAST_SPAN, Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

Cells = Mapping[tuple[int, int], float]

ROOM = (0.36, 0.17)
"""Inches that a number of 7 points needs."""
LABELS = 40
"""The most labels along an axis."""


def score_map(title: str, x_name: str, y_name: str, cells: Cells, path: Path) -> None:
    """Plot the score for each pair of values of two parameters; the best one is framed."""
    plots.check_suffix(path)
    if not cells:
        raise InputError(f"nothing to plot: no variant has both {x_name} and {y_name}")
    with plots.figure(title, path) as figure:
        draw_scores(figure, x_name, y_name, cells)


def draw_scores(figure: "Figure", x_name: str, y_name: str, cells: Cells) -> None:
    """Draw one cell for each pair of values; what was not measured is hatched."""
    xs, ys = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    wide, high = _cell_size(len(xs), len(ys))
    figure.set_size_inches(max(4.5, wide * len(xs) + 1.9), max(3.0, high * len(ys) + 1.2))
    values = np.array([[cells.get((x, y), np.nan) for x in xs] for y in ys])
    axes = figure.subplots()
    # The hatch is the background: cells without a value let it through.
    axes.patch.set(facecolor="#ececec", edgecolor="#b0b0b0", hatch="////")
    mesh = _mesh(axes, values)
    _name(axes, xs, ys, x_name, y_name)
    if wide >= ROOM[0] and high >= ROOM[1]:
        _write(axes, mesh, values)
    bar = figure.colorbar(mesh, ax=axes, extend=_beyond(mesh, values), pad=0.02, aspect=30)
    bar.set_label("score: over 1 is faster than base")
    _mark_best(axes, cells, xs, ys)
    best_x, best_y = _best(cells)
    score = cells[best_x, best_y]
    axes.set_title(f"best: {x_name} {best_x}, {y_name} {best_y}, score {score:.6f}")


def _best(cells: Cells) -> tuple[int, int]:
    return max(sorted(cells), key=lambda cell: cells[cell])


def _cell_size(columns: int, rows: int) -> tuple[float, float]:
    return min(0.62, max(0.12, 12 / columns)), min(0.36, max(0.12, 8 / rows))


def _mesh(axes: "Axes", values: Numbers) -> "QuadMesh":
    """Colour scores: blue is faster, red slower, white is base; one in ten may be beyond."""
    span = max(LEAST_SPAN, float(np.nanquantile(np.abs(values - 1), 0.9)))
    return axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap="RdBu",
        vmin=1 - span,
        vmax=1 + span,
        edgecolors="white",
        linewidth=0.4,
    )


def _beyond(mesh: "QuadMesh", values: Numbers) -> Any:
    """Say which ends of the colours have scores beyond them."""
    low, high = mesh.get_clim()
    below, above = np.nanmin(values) < low, np.nanmax(values) > high
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(below), bool(above)), "neither"
    )


def _name(axes: "Axes", xs: list[int], ys: list[int], x_name: str, y_name: str) -> None:
    for axis, values, name in ((axes.xaxis, xs, x_name), (axes.yaxis, ys, y_name)):
        step = -(-len(values) // LABELS)
        axis.set_ticks(
            [i + 0.5 for i in range(0, len(values), step)], [str(value) for value in values[::step]]
        )
        axis.set_label_text(name)
    axes.tick_params(length=0)
    if len(xs) > 20 or max(len(str(x)) for x in xs) > 6:
        axes.tick_params(axis="x", rotation=90)


def _write(axes: "Axes", mesh: "QuadMesh", values: Numbers) -> None:
    low, high = mesh.get_clim()
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            # The two ends of the colours are dark.
            dark = abs(value - 1) > 0.6 * (high - low) / 2
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{value:.3f}",
                ha="center",
                va="center_baseline",
                fontsize=7,
                color="white" if dark else "black",
            )


def _mark_best(axes: "Axes", cells: Cells, xs: Sequence[int], ys: Sequence[int]) -> None:
    from matplotlib.patches import Rectangle

    x, y = _best(cells)
    corner = (xs.index(x), ys.index(y))
    axes.add_patch(
        Rectangle(corner, 1, 1, fill=False, edgecolor="black", linewidth=1.8, clip_on=False)
    )
