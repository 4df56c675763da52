"""Figures into files.

No window is opened, and the same numbers give the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.model.databases import ComparedSide, ComparedWorkload, DbCompare
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
"""What is nearer to 1 is noise, and is not blown up."""
# Any: newer matplotlib lists all names in its types, older does not.
STYLE: Any = {
    "svg.hashsalt": "policygen",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#808080",
    "xtick.color": "#404040",
    "ytick.color": "#404040",
    "hatch.linewidth": 0.5,
    # Names of axes and variants are not formulas, whatever they hold.
    "text.parse_math": False,
}


def check_suffix(path: Path) -> None:
    """Refuse a file name that does not say how to write a plot."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"{path}: a plot cannot be written as {path.suffix or 'a file without a suffix'}",
            f"The name must end with {' or '.join(FORMATS)}.",
        )


@contextmanager
def new_figure(title: str, out: Path | BytesIO) -> "Iterator[Figure]":
    """Open an empty figure, which is saved when the block ends well: to a file, or as SVG."""
    remedy = add("plot")  # as it is from the user's folder
    # Only when it is imported, matplotlib reads a `matplotlibrc` of the current folder.
    with TemporaryDirectory(prefix="policygen-") as empty, chdir(empty):
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingToolError("matplotlib", remedy) from error
    with mpl.rc_context():
        # What a user has in a matplotlibrc would change the bytes.
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        drawn = Figure(layout="constrained")
        yield drawn
        _fit_title(drawn, title)
        if isinstance(out, BytesIO):
            _draw(drawn, "svg", out)
        else:
            _save(drawn, out)


def _fit_title(figure: "Figure", title: str) -> None:
    """Break a title that is wider than its figure: at wide gaps, then at any space."""
    from textwrap import wrap

    # A bold letter of 10 points is about 0.088 inches wide.
    room = max(20, int(figure.get_figwidth() / 0.088))
    parts = [title] if len(title) <= room else title.split("  ")
    lines = [
        line
        for part in parts
        for line in wrap(part, room, break_long_words=False, break_on_hyphens=False)
    ]
    figure.suptitle("\n".join(lines), fontsize=10, fontweight="bold")


def _save(figure: "Figure", path: Path) -> None:
    """Write the file: it appears whole or not at all."""
    data = BytesIO()
    _draw(figure, path.suffix.lower().removeprefix("."), data)
    try:
        write_atomically(path, data.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _draw(figure: "Figure", kind: str, data: BytesIO) -> None:
    """Draw a figure; by its maker a plot is known again, and may be replaced."""
    made: dict[str, Any] = {"Software": MAKER}
    if kind == "svg":
        made = {"Creator": MAKER, "Date": None}
    figure.savefig(data, format=kind, dpi=150, metadata=made)


PANELS = 24
"""As many fit one plot."""
ACROSS = 6
LINE = 36
"""Letters on a line of a panel's title."""
WORDS = 1.95
"""Inches that the longest words of the legend need."""
SURE = 1.96
"""So many standard deviations hold 95 %."""
WINNERS = {"A": ("#0072b2", "^"), "B": ("#e69f00", "v")}
POINTS, BAND = "#8a8a8a", "#dfe8ef"


# Scores of two sides against each other, a panel for each workload, with the winners marked.


def check_pairs(document: DbCompare) -> None:
    """Refuse more panels than a plot has."""
    if (count := len(document.workloads)) > PANELS:
        raise InputError(
            f"{count} workloads match, a plot shows {PANELS} at most",
            "Choose some with -R and -a, or write a page, which shows all: -o FILE.html",
        )


def pairs_plot(document: DbCompare, path: Path) -> None:
    """Plot all workloads to a file."""
    check_suffix(path)
    check_pairs(document)
    with new_figure(_title(document.workloads), path) as figure:
        draw_pairs(figure, document.workloads)


def pairs_drawings(document: DbCompare) -> list[bytes]:
    """Draw all workloads, on as many plots as it takes."""
    found = []
    for start in range(0, len(document.workloads), PANELS):
        some, data = document.workloads[start : start + PANELS], BytesIO()
        with new_figure(_title(some), data) as figure:
            draw_pairs(figure, some)
        found.append(data.getvalue())
    return found


def draw_pairs(figure: "Figure", workloads: Sequence[ComparedWorkload]) -> None:
    """Draw a panel for each workload; what lies in the band is no farther apart than by noise."""
    columns = _columns(len(workloads))
    rows = -(-len(workloads) // columns)
    figure.set_size_inches(max(5.5, 2.6 * columns + 0.4), 2.9 * rows + 0.9)
    grid = figure.subplots(rows, columns, squeeze=False)
    same = len({one.algorithm for one in workloads}) == 1
    for axes in grid.flat[len(workloads) :]:
        axes.set_visible(False)
    drawn: dict[str, Artist] = {}
    for axes, one in zip(grid.flat, workloads, strict=False):
        drawn |= _panel(axes, one)
        axes.set_title(_name(one, short=same))
    for axes in grid[:, 0]:
        axes.set_ylabel("score in B")
    for axes in grid.flat[max(0, len(workloads) - columns) : len(workloads)]:
        axes.set_xlabel("score in A")
    figure.legend(
        list(drawn.values()),
        list(drawn),
        loc="outside lower center",
        ncols=max(2, int(figure.get_figwidth() / WORDS)),
        frameon=False,
    )


def _columns(count: int) -> int:
    """As near to a square as what is wide allows."""
    return min(ACROSS, count if count < 4 else max(2, round(count**0.5 * 1.2)))


def _panel(axes: "Axes", one: ComparedWorkload) -> "dict[str, Artist]":
    """Draw one workload; what stands in the legend is given back."""
    low, high = _limits(one)
    reach = SURE * one.difference.expected
    shift = one.difference.shift
    ends = [low, high]
    band = axes.fill_between(
        ends,
        [x * (1 + shift - reach) for x in ends],
        [x * (1 + shift + reach) for x in ends],
        color=BAND,
        linewidth=0,
        zorder=0,
    )
    axes.axhline(1, color="red", linewidth=0.8, alpha=0.6, zorder=1)
    axes.axvline(1, color="red", linewidth=0.8, alpha=0.6, zorder=1)
    equal = axes.plot(ends, ends, color="#404040", linewidth=0.7, linestyle="dashed", zorder=1)[0]
    x, y = [pair.a for pair in one.scores], [pair.b for pair in one.scores]
    many = len(x) > 100
    dots = axes.scatter(x, y, s=4 if many else 12, color=POINTS, linewidths=0, zorder=2)
    found: dict[str, Artist] = {"a variant": dots, "equal": equal, "95 % of noise": band}
    for name, side in (("A", one.a), ("B", one.b)):
        place = _place(one, side)
        colour, marker = WINNERS[name]
        if place is not None:
            # What is chosen is filled; the best one where base is kept is a frame.
            chosen = side.winner is not None and side.winner.chosen
            found[f"{name} uses it" if chosen else f"{name}'s best, base is kept"] = axes.scatter(
                [place[0]],
                [place[1]],
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
    axes.grid(color="#e4e4e4", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=2)
    return found


def _place(one: ComparedWorkload, side: ComparedSide) -> tuple[float, float] | None:
    """Where a winner stands, if both have measured it."""
    winner = side.winner
    if winner is None or winner.other_score is None:
        return None
    own, other = winner.score, winner.other_score
    return (own, other) if side is one.a else (other, own)


def _limits(one: ComparedWorkload) -> tuple[float, float]:
    """Both ways alike, so that a distance is one."""
    values = [value for pair in one.scores for value in (pair.a, pair.b)]
    low, high = min(*values, 1 - LEAST_SPAN), max(*values, 1 + LEAST_SPAN)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _name(one: ComparedWorkload, *, short: bool) -> str:
    parts = [f"{axis.partition('{')[0]}={value}" for axis, value in one.workload.items()]
    if not short:
        parts.insert(0, one.algorithm.removeprefix("cub.bench."))
    lines = [""]
    for part in parts or [one.algorithm]:
        if lines[-1] and len(lines[-1]) + len(part) + 2 > LINE:
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{part}"
    if one.order.spearman is not None:
        lines.append(f"order {one.order.spearman:.2f}")
    return "\n".join(lines)


def _title(workloads: Sequence[ComparedWorkload]) -> str:
    names = list(dict.fromkeys(one.algorithm for one in workloads))
    what = names[0] if len(names) == 1 else f"{len(names)} benchmarks"
    gpus = [dict.fromkeys(side.gpu for side in sides) for sides in _sides(workloads)]
    on = " and ".join(dict.fromkeys(", ".join(one) for one in gpus))
    return f"{what}  on {on}"


def _sides(workloads: Sequence[ComparedWorkload]) -> tuple[list[ComparedSide], list[ComparedSide]]:
    return [one.a for one in workloads], [one.b for one in workloads]


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


# Variant ratio plots, as CUB's tuning documentation has them: quantiles of base over variant.


def ratio_plot(title: str, panels: Sequence[RatioPanel], path: Path) -> None:
    """Plot base's quantiles over the variants', a panel for each runtime workload."""
    check_suffix(path)
    if not any(panel.variants for panel in panels):
        raise InputError("nothing to plot: no runtime workload has samples of base and a variant")
    with new_figure(title, path) as figure:
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
    axes.set_ylim(*_plot_ratios_limits(extremes))
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


def _plot_ratios_limits(values: list[float]) -> tuple[float, float]:
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


Cells = Mapping[tuple[int, int], float]
ROOM = (0.36, 0.17)
"""Inches that a number of 7 points needs."""
LABELS = 40
"""The most labels along an axis."""


# The score over two parameters as a heat map, with its colours centred at 1.


def score_map(title: str, x_name: str, y_name: str, cells: Cells, path: Path) -> None:
    """Plot the score for each pair of values of two parameters; the best one is framed."""
    check_suffix(path)
    if not cells:
        raise InputError(f"nothing to plot: no variant has both {x_name} and {y_name}")
    with new_figure(title, path) as figure:
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
    _plot_scores_name(axes, xs, ys, x_name, y_name)
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


def _plot_scores_name(axes: "Axes", xs: list[int], ys: list[int], x_name: str, y_name: str) -> None:
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
