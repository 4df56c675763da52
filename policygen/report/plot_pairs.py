"""Scores of two sides against each other, a panel for each workload, with the winners marked."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from policygen.errors import InputError
from policygen.model.db_compare import ComparedSide, ComparedWorkload, DbCompare
from policygen.report import plots
from policygen.report.plots import LEAST_SPAN

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def check_pairs(document: DbCompare) -> None:
    """Refuse more panels than a plot has."""
    if (count := len(document.workloads)) > PANELS:
        raise InputError(
            f"{count} workloads match, a plot shows {PANELS} at most",
            "Choose some with -R and -a, or write a page, which shows all: -o FILE.html",
        )


def pairs_plot(document: DbCompare, path: Path) -> None:
    """Plot all workloads to a file."""
    plots.check_suffix(path)
    check_pairs(document)
    with plots.figure(_title(document.workloads), path) as figure:
        draw_pairs(figure, document.workloads)


def pairs_drawings(document: DbCompare) -> list[bytes]:
    """Draw all workloads, on as many plots as it takes."""
    found = []
    for start in range(0, len(document.workloads), PANELS):
        some, data = document.workloads[start : start + PANELS], BytesIO()
        with plots.figure(_title(some), data) as figure:
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
