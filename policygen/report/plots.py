"""Plots into files: samples against base's by quantile, scores over two parameters.

No window is opened, and the same numbers give the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from policygen.errors import InputError, MissingToolError
from policygen.paths import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    Numbers = np.ndarray[Any, np.dtype[np.floating[Any]]]

FORMATS = (".svg", ".png")
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


@dataclass(frozen=True, slots=True)
class RatioPanel:
    """One runtime workload: its place in the grid, and the samples of base and some variants."""

    row: str
    column: str
    base: "Numbers"
    variants: Mapping[str, "Numbers"]


def ratio_plot(title: str, panels: Sequence[RatioPanel], path: Path) -> None:
    """Base's quantiles over the variants', a panel for each runtime workload, a red line at 1."""
    check_suffix(path)
    if not any(panel.variants for panel in panels):
        raise InputError("nothing to plot: no runtime workload has samples of base and a variant")
    with _figure(title, path) as figure:
        from policygen.report.plot_ratios import draw_ratios

        draw_ratios(figure, panels)


def score_map(
    title: str, x_name: str, y_name: str, cells: Mapping[tuple[int, int], float], path: Path
) -> None:
    """The score for each pair of values of two parameters; the best one is framed."""
    check_suffix(path)
    if not cells:
        raise InputError(f"nothing to plot: no variant has both {x_name} and {y_name}")
    with _figure(title, path) as figure:
        from policygen.report.plot_scores import draw_scores

        draw_scores(figure, x_name, y_name, cells)


def check_suffix(path: Path) -> None:
    """Refuses a file name that does not say how to write a plot."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"{path}: a plot cannot be written as {path.suffix or 'a file without a suffix'}",
            f"The name must end with {' or '.join(FORMATS)}.",
        )


@contextmanager
def _figure(title: str, path: Path) -> "Iterator[Figure]":
    """An empty figure, which is saved when the block ends well."""
    # Only when it is imported, matplotlib reads a `matplotlibrc` of the current folder.
    with TemporaryDirectory(prefix="policygen-") as empty, chdir(empty):
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingToolError("matplotlib", "pip install 'policygen[plot]'") from error
    with mpl.rc_context():
        # What a user has in a matplotlibrc would change the bytes.
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(layout="constrained")
        yield figure
        _fit_title(figure, title)
        _save(figure, path)


def _fit_title(figure: "Figure", title: str) -> None:
    """Breaks a title that is wider than its figure: at wide gaps, then at any space."""
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
    """The file appears whole or not at all."""
    kind = path.suffix.lower().removeprefix(".")
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    data = BytesIO()
    figure.savefig(data, format=kind, dpi=150, metadata=metadata)
    try:
        write_atomically(path, data.getvalue())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
