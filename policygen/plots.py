"""Plots of databases: what `app` reads of them, drawn by `report`, for the API and for `cli`."""

from collections.abc import Sequence
from pathlib import Path

from policygen.app.databases import ANYWHERE, MeasuredWhere, workload_plot
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError
from policygen.model.databases import DbCompare
from policygen.model.results import DbPlot
from policygen.outputs import write_output
from policygen.report.pages import render_page
from policygen.report.plots import draw_comparison, draw_plot

PLOT, PAGE = ".svg", ".html"
PICTURES = frozenset({".eps", ".gif", ".jpeg", ".jpg", ".pdf", ".png", ".ps", ".webp"})


def plot_workload(
    results: ResultFiles,
    out: Path,
    *,
    variants: Sequence[str] = (),
    parameters: str | None = None,
    measured: MeasuredWhere = ANYWHERE,
) -> DbPlot:
    """Plots the ratios of variants to base, or their scores over two `parameters`: `ipt,tpb`."""
    check_suffix(out, PLOT)
    plot = workload_plot(results, out, variants=variants, parameters=parameters, measured=measured)
    write_output(out, draw_plot(plot), force=True)
    return plot.document


def is_plot(out: Path) -> bool:
    """Returns whether a file is a plot or a page with a plot.

    Raises an error for other image formats.
    """
    suffix = out.suffix.lower()
    if suffix in PICTURES:
        check_suffix(out, PLOT, PAGE)
    return suffix in {PLOT, PAGE}


def check_suffix(path: Path, *suffixes: str) -> None:
    """Rejects a file name with another suffix."""
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"{path}: a plot cannot be written as {path.suffix or 'a file without a suffix'}",
            f"The name must end with {' or '.join(suffixes)}.",
        )


def plot_comparison(document: DbCompare, out: Path, *, force: bool = False) -> None:
    """Plots B's scores over A's, one panel per workload. An .html page has all results."""
    check_suffix(out, PLOT, PAGE)
    if out.suffix.lower() == PAGE:
        data = render_page(document).encode("utf-8", "surrogateescape")
    else:
        data = draw_comparison(document)
    write_output(out, data, force=force)
