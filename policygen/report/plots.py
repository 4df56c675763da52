"""Plots written to files, without a display, byte-identical for the same numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.model.databases import (
    ComparedSide,
    ComparedWorkload,
    DbCompare,
    RatioPanel,
    WorkloadPlot,
)
from policygen.outputs import MAKER
from policygen.paths import write_atomically

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

Numbers = np.ndarray[Any, np.dtype[np.floating[Any]]]
FORMATS = (".svg", ".png")
LEAST_SPAN = 0.02
"""Minimum range around 1, so that noise is not exaggerated."""
# Typed as Any because only newer matplotlib lists all keys in its type stubs.
STYLE: Any = {
    "svg.hashsalt": "policygen",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#808080",
    "xtick.color": "#404040",
    "ytick.color": "#404040",
    "hatch.linewidth": 0.5,
    # Names of axes and variants must not be parsed as formulas.
    "text.parse_math": False,
}


def check_suffix(path: Path) -> None:
    """Reject a file name whose suffix is not a plot format."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"{path}: a plot cannot be written as {path.suffix or 'a file without a suffix'}",
            f"The name must end with {' or '.join(FORMATS)}.",
        )


@contextmanager
def new_figure(title: str, out: Path | BytesIO) -> "Iterator[Figure]":
    """Open an empty figure that is saved to a file or as SVG if the block succeeds."""
    remedy = add("plot")  # before the folder changes
    # When imported, matplotlib reads a `matplotlibrc` in the current folder.
    with TemporaryDirectory(prefix="policygen-") as empty_folder, chdir(empty_folder):
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingToolError("matplotlib", remedy) from error
    with mpl.rc_context():
        # A user's matplotlibrc would change the bytes.
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(layout="constrained")
        yield figure
        _fit_title(figure, title)
        if isinstance(out, BytesIO):
            _draw(figure, "svg", out)
        else:
            _save(figure, out)


def _fit_title(figure: "Figure", title: str) -> None:
    """Wrap a title that is wider than its figure: at double spaces, then at any space."""
    from textwrap import wrap

    # A bold character of 10 points is about 0.088 inches wide.
    room = max(20, int(figure.get_figwidth() / 0.088))
    parts = [title] if len(title) <= room else title.split("  ")
    lines = [
        line
        for part in parts
        for line in wrap(part, room, break_long_words=False, break_on_hyphens=False)
    ]
    figure.suptitle("\n".join(lines), fontsize=10, fontweight="bold")


def _save(figure: "Figure", path: Path) -> None:
    """Write the file atomically."""
    data = BytesIO()
    _draw(figure, path.suffix.lower().removeprefix("."), data)
    try:
        write_atomically(path, data.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _draw(figure: "Figure", kind: str, data: BytesIO) -> None:
    """Draw a figure with its maker in the metadata, which marks it as safe to replace."""
    metadata: dict[str, Any] = {"Software": MAKER}
    if kind == "svg":
        metadata = {"Creator": MAKER, "Date": None}
    figure.savefig(data, format=kind, dpi=150, metadata=metadata)


PANELS = 24
"""Maximum number of panels in a plot."""
ACROSS = 6
LINE = 36
"""Characters per line of a panel's title."""
WORDS = 1.95
"""Width, in inches, of the longest legend entry."""
SURE = 1.96
"""Standard deviations that cover 95 %."""
WINNERS = {"A": ("#0072b2", "^"), "B": ("#e69f00", "v")}
POINTS, BAND = "#8a8a8a", "#dfe8ef"


# Scores of two sides against each other, one panel per workload, with the winners marked


def pairs_plot(document: DbCompare, path: Path) -> None:
    """Plot all workloads to a file, as many as a plot can hold."""
    check_suffix(path)
    if (count := len(document.workloads)) > PANELS:
        raise InputError(
            f"{count} workloads match, but a plot shows at most {PANELS}",
            "Choose some with -R and -a, or write a page that shows all: -o FILE.html",
        )
    with new_figure(_title(document.workloads), path) as figure:
        draw_pairs(figure, document.workloads)


def pairs_drawings(document: DbCompare) -> list[bytes]:
    """Draw all workloads, on as many plots as needed."""
    drawings = []
    for start in range(0, len(document.workloads), PANELS):
        page_workloads, data = document.workloads[start : start + PANELS], BytesIO()
        with new_figure(_title(page_workloads), data) as figure:
            draw_pairs(figure, page_workloads)
        drawings.append(data.getvalue())
    return drawings


def draw_pairs(figure: "Figure", workloads: Sequence[ComparedWorkload]) -> None:
    """Draw a panel per workload; differences within the band are explained by noise."""
    count = len(workloads)
    # A nearly square grid
    columns = min(ACROSS, count if count < 4 else max(2, round(count**0.5 * 1.2)))
    rows = -(-count // columns)
    figure.set_size_inches(max(5.5, 2.6 * columns + 0.4), 2.9 * rows + 0.9)
    grid = figure.subplots(rows, columns, squeeze=False)
    same = len({workload.algorithm for workload in workloads}) == 1
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    drawn: dict[str, Artist] = {}
    for axes, workload in zip(grid.flat, workloads, strict=False):
        drawn |= _panel(axes, workload)
        axes.set_title(_name(workload, short=same))
    for axes in grid[:, 0]:
        axes.set_ylabel("score in B")
    for axes in grid.flat[max(0, count - columns) : count]:
        axes.set_xlabel("score in A")
    figure.legend(
        list(drawn.values()),
        list(drawn),
        loc="outside lower center",
        ncols=max(2, int(figure.get_figwidth() / WORDS)),
        frameon=False,
    )


def _panel(axes: "Axes", workload: ComparedWorkload) -> "dict[str, Artist]":
    """Draw one workload, and return its legend entries."""
    low, high = _limits(value for pair in workload.scores for value in (pair.a, pair.b))
    noise_range = SURE * workload.difference.expected
    shift = workload.difference.shift
    ends = [low, high]
    lower, upper = ([x * (1 + shift + sign * noise_range) for x in ends] for sign in (-1, 1))
    band = axes.fill_between(ends, lower, upper, color=BAND, linewidth=0, zorder=0)
    axes.axhline(1, color="red", linewidth=0.8, alpha=0.6, zorder=1)
    axes.axvline(1, color="red", linewidth=0.8, alpha=0.6, zorder=1)
    equal = axes.plot(ends, ends, color="#404040", linewidth=0.7, linestyle="dashed", zorder=1)[0]
    x, y = [pair.a for pair in workload.scores], [pair.b for pair in workload.scores]
    is_dense = len(x) > 100
    dots = axes.scatter(x, y, s=4 if is_dense else 12, color=POINTS, linewidths=0, zorder=2)
    legend_entries: dict[str, Artist] = {"a variant": dots, "equal": equal, "95 % of noise": band}
    for name, side in (("A", workload.a), ("B", workload.b)):
        position = _winner_position(workload, side)
        colour, marker = WINNERS[name]
        if position is not None:
            # A chosen variant is filled; the best variant is outlined if base is kept.
            chosen = side.winner is not None and side.winner.chosen
            label = f"{name} uses it" if chosen else f"{name}'s best, base is kept"
            legend_entries[label] = axes.scatter(
                position[0],
                position[1],
                s=46,
                marker=marker,
                facecolors=colour if chosen else "white",
                edgecolors=colour,
                linewidths=1.4,
                zorder=3,
            )
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    _draw_grid(axes)
    return legend_entries


def _winner_position(workload: ComparedWorkload, side: ComparedSide) -> tuple[float, float] | None:
    """Scores of a winner on both sides, if both measured it."""
    winner = side.winner
    if winner is None or winner.other_score is None:
        return None
    own, other = winner.score, winner.other_score
    return (own, other) if side is workload.a else (other, own)


def _name(workload: ComparedWorkload, *, short: bool) -> str:
    parts = [f"{axis.partition('{')[0]}={value}" for axis, value in workload.workload.items()]
    if not short:
        parts.insert(0, workload.algorithm.removeprefix("cub.bench."))
    lines = [""]
    for part in parts or [workload.algorithm]:
        if lines[-1] and len(lines[-1]) + len(part) + 2 > LINE:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{part}"
    if workload.order.spearman is not None:
        lines.append(f"order {workload.order.spearman:.2f}")
    return "\n".join(lines)


def _title(workloads: Sequence[ComparedWorkload]) -> str:
    names = list(dict.fromkeys(workload.algorithm for workload in workloads))
    subject = names[0] if len(names) == 1 else f"{len(names)} benchmarks"
    a, b = (
        ", ".join(dict.fromkeys(gpus))
        for gpus in zip(*((workload.a.gpu, workload.b.gpu) for workload in workloads), strict=True)
    )
    return f"{subject}  on {' and '.join(dict.fromkeys((a, b)))}"


# Distinguishable with color vision deficiency; red is reserved for the line at 1.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#7a3e9d", "#56b4e9", "#8c6d31", "#404040")
STROKES = ("solid", "dashed", "dotted", "dashdot")
LABEL = 24
"""Characters per line of a row or column label."""


# Ratio plots as in CUB's tuning documentation: quantiles of base over variant


def draw_plot(plot: WorkloadPlot, path: Path) -> None:
    """Plot a workload: ratios to base, or a map of scores."""
    if plot.document.parameters:
        score_map(plot.title, *plot.document.parameters, plot.cells, path)
    else:
        ratio_plot(plot.title, plot.panels, path)


def ratio_plot(title: str, panels: Sequence[RatioPanel], path: Path) -> None:
    """Plot base's quantiles over the variants', one panel per runtime workload."""
    check_suffix(path)
    if not any(panel.variants for panel in panels):
        raise InputError("nothing to plot: no runtime workload has samples of base and a variant")
    with new_figure(title, path) as figure:
        draw_ratios(figure, panels)


def draw_ratios(figure: "Figure", panels: Sequence[RatioPanel]) -> None:
    """Draw panels that share their axes, one row per size; missing cells stay empty."""
    by_row: dict[str, list[RatioPanel]] = {}
    for panel in panels:
        by_row.setdefault(panel.row, []).append(panel)
    rows = list(by_row)
    titles = [[panel.column for panel in row_panels] for row_panels in by_row.values()]
    width = max(map(len, titles))
    names = list(dict.fromkeys(name for panel in panels for name in panel.variants))
    _size(figure, len(rows), width, names)
    grid = figure.subplots(len(rows), width, sharex=True, sharey=True, squeeze=False)
    drawn: dict[str, Any] = {}
    extremes: list[float] = []
    empty = set(grid.flat)
    placed_panels = [
        (grid[r, c], panel) for r, row in enumerate(rows) for c, panel in enumerate(by_row[row])
    ]
    for axes, panel in placed_panels:
        empty.discard(axes)
        for name, sample in panel.variants.items():
            x, y = quantile_ratios(panel.base, sample)
            extremes += [float(y.min()), float(y.max())]
            drawn[name] = axes.plot(x, y, linewidth=1.2, **_line_style(names.index(name)))[0]
    for axes in grid.flat:
        _style_axes(axes)
        axes.set_visible(axes not in empty)
    for axes, row in zip(grid[:, 0], rows, strict=True):
        axes.set_ylabel(_wrap_label(row))
    same = all(title == titles[0] for title in titles)
    for axes, panel in placed_panels[:width] if same else placed_panels:
        axes.set_title(_wrap_label(panel.column))
    axes.set_xlim(0, 1)
    axes.set_ylim(*_limits(extremes))
    # Figure-level axis labels would overlap the legend, so the legend title describes the axes.
    figure.legend(
        [drawn[name] for name in names],
        names,
        title="base / variant at each quantile of the samples: above 1 is faster",
        loc="outside lower center",
        ncols=_legend_columns(figure, names),
        frameon=False,
    )


def quantile_ratios(base: Numbers, variant: Numbers) -> tuple[Numbers, Numbers]:
    """Return the quantiles 0.01 to 0.99, and base's time over the variant's at each."""
    x = np.arange(1, 100) / 100
    return x, np.quantile(base, x) / np.quantile(variant, x)


def _line_style(index: int) -> dict[str, Any]:
    stroke = STROKES[index // len(COLOURS) % len(STROKES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": stroke}


def _style_axes(axes: "Axes") -> None:
    axes.axhline(1, color="red", linewidth=0.8, alpha=0.8, zorder=1)
    axes.set_xticks([0.25, 0.5, 0.75])
    _draw_grid(axes)


def _draw_grid(axes: "Axes") -> None:
    axes.grid(color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=2)


def _limits(values: Iterable[float]) -> tuple[float, float]:
    """Limits of an axis of ratios."""
    drawn = [1 - LEAST_SPAN, 1 + LEAST_SPAN, *values]
    margin = 0.06 * (max(drawn) - min(drawn))
    return min(drawn) - margin, max(drawn) + margin


def _size(figure: "Figure", rows: int, columns: int, names: list[str]) -> None:
    """Set the figure size: few panels are large, many are small but still readable."""
    width = min(4.5, max(1.9, 10 / columns))
    height = min(2.4, max(1.5, 8 / rows))
    figure.set_size_inches(max(5.5, width * columns + 0.7), height * rows + 0.9)
    lines = 1 + -(-len(names) // _legend_columns(figure, names))
    figure.set_figheight(figure.get_figheight() + 0.17 * lines)


def _legend_columns(figure: "Figure", names: list[str]) -> int:
    # A character of 8 points is about 0.07 inches wide; a stroke and its gaps take half an inch.
    widest = 0.07 * max(len(name) for name in names) + 0.5
    return max(1, min(len(names), int(figure.get_figwidth() / widest)))


def _wrap_label(label: str) -> str:
    """Wrap a long label at its commas and after the sub-benchmark."""
    if len(label) <= LABEL:
        return label
    return label.replace(": ", ":\n").replace(", ", ",\n")


Cells = Mapping[tuple[int, int], float]
ROOM = (0.36, 0.17)
"""Size, in inches, of a number of 7 points."""
LABELS = 40
"""Maximum number of labels along an axis."""


# Score over two parameters as a heat map with colors centered at 1


def score_map(title: str, x_name: str, y_name: str, cells: Cells, path: Path) -> None:
    """Plot the score for each pair of values of two parameters; the best one is framed."""
    check_suffix(path)
    if not cells:
        raise InputError(f"nothing to plot: no variant has both {x_name} and {y_name}")
    with new_figure(title, path) as figure:
        draw_scores(figure, x_name, y_name, cells)


def draw_scores(figure: "Figure", x_name: str, y_name: str, cells: Cells) -> None:
    """Draw one cell per pair of values; missing cells are hatched."""
    xs, ys = sorted({x for x, _ in cells}), sorted({y for _, y in cells})
    cell_width = min(0.62, max(0.12, 12 / len(xs)))
    cell_height = min(0.36, max(0.12, 8 / len(ys)))
    width, height = cell_width * len(xs) + 1.9, cell_height * len(ys) + 1.2
    figure.set_size_inches(max(4.5, width), max(3.0, height))
    values = np.array([[cells.get((x, y), np.nan) for x in xs] for y in ys])
    axes = figure.subplots()
    # The hatch is the background, which shows through cells without a value.
    axes.patch.set(facecolor="#ececec", edgecolor="#b0b0b0", hatch="////")
    mesh = _mesh(axes, values)
    _name_axes(axes, xs, ys, x_name, y_name)
    if cell_width >= ROOM[0] and cell_height >= ROOM[1]:
        _write_scores(axes, mesh, values)
    bar = figure.colorbar(mesh, ax=axes, extend=_colorbar_ends(mesh, values), pad=0.02, aspect=30)
    bar.set_label("score: above 1 is faster than base")
    (best_x, best_y), score = max(sorted(cells.items()), key=lambda item: item[1])
    _frame(axes, xs.index(best_x), ys.index(best_y))
    axes.set_title(f"best: {x_name} {best_x}, {y_name} {best_y}, score {score:.6f}")


def _mesh(axes: "Axes", values: Numbers) -> "QuadMesh":
    """Color scores from red (slower) over white (base) to blue; one in ten may exceed the scale."""
    span = max(LEAST_SPAN, float(np.nanquantile(np.abs(values - 1), 0.9)))
    return axes.pcolormesh(
        np.ma.masked_invalid(values),
        cmap="RdBu",
        vmin=1 - span,
        vmax=1 + span,
        edgecolors="white",
        linewidth=0.4,
    )


def _colorbar_ends(mesh: "QuadMesh", values: Numbers) -> Any:
    """Return which ends of the color scale are exceeded."""
    low, high = mesh.get_clim()
    below, above = np.nanmin(values) < low, np.nanmax(values) > high
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (bool(below), bool(above)), "neither"
    )


def _name_axes(axes: "Axes", xs: list[int], ys: list[int], x_name: str, y_name: str) -> None:
    for axis, values, name in ((axes.xaxis, xs, x_name), (axes.yaxis, ys, y_name)):
        step = -(-len(values) // LABELS)
        axis.set_ticks(
            [i + 0.5 for i in range(0, len(values), step)], [str(value) for value in values[::step]]
        )
        axis.set_label_text(name)
    axes.tick_params(length=0)
    if len(xs) > 20 or max(len(str(x)) for x in xs) > 6:
        axes.tick_params(axis="x", rotation=90)


def _write_scores(axes: "Axes", mesh: "QuadMesh", values: Numbers) -> None:
    low, high = mesh.get_clim()
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            # Both ends of the color scale are dark.
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


def _frame(axes: "Axes", column: int, row: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle((column, row), 1, 1, fill=False, edgecolor="black", linewidth=1.8, clip_on=False)
    )
