"""Figures into files.

No window is opened, and the same numbers give the same bytes.
"""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.outputs import MAKER
from policygen.paths import write_atomically

if TYPE_CHECKING:
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
def figure(title: str, out: Path | BytesIO) -> "Iterator[Figure]":
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
