"""Plots of databases: what `app` reads of them, drawn by `report`, for the API and for `cli`."""

from collections.abc import Sequence
from pathlib import Path

from policygen.app.databases import ANYWHERE, MeasuredWhere, workload_plot
from policygen.app.inputs import ResultFiles
from policygen.model.databases import DbCompare
from policygen.model.results import DbPlot
from policygen.outputs import write_output
from policygen.report.pages import render_page
from policygen.report.plots import FORMATS, check_suffix, draw_plot, pairs_plot

PAGE = ".html"
PICTURES = frozenset({".eps", ".gif", ".jpeg", ".jpg", ".pdf", ".ps", ".webp"})


def plot_workload(
    results: ResultFiles,
    out: Path,
    *,
    variants: Sequence[str] = (),
    parameters: str | None = None,
    measured: MeasuredWhere = ANYWHERE,
) -> DbPlot:
    """Plots the ratios of variants to base, or their scores over two `parameters`: `ipt,tpb`."""
    plot = workload_plot(results, out, variants=variants, parameters=parameters, measured=measured)
    draw_plot(plot, out)
    return plot.document


def is_plot(out: Path) -> bool:
    """Returns whether a file is a plot or a page with a plot.

    Raises an error for other image formats.
    """
    suffix = out.suffix.lower()
    if suffix in PICTURES:
        check_suffix(out)
    return suffix in {*FORMATS, PAGE}


def plot_comparison(document: DbCompare, out: Path, *, force: bool = False) -> None:
    """Plots B's scores over A's, one panel per workload. An .html page has all results."""
    if out.suffix.lower() == PAGE:
        write_output(out, render_page(document).encode("utf-8", "surrogateescape"), force=force)
    else:
        pairs_plot(document, out)
