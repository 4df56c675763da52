"""What `policygen db export` and `policygen db plot` wrote."""

from collections.abc import Iterator

from policygen.model.results import DbExport, DbPlot
from policygen.report.blocks import Block, Note, Words
from policygen.report.console import plural, printed
from policygen.report.views import db_words


def exported(document: DbExport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show how many rows, and of which files."""
    if not quiet:
        yield Note(f"{document.rows:,} rows written to {document.out}")
    yield from (Note(f"  {name}") for name in (document.databases if verbose else ()))


def plotted(document: DbPlot, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show where the plot is, and what it shows."""
    if verbose:
        where = db_words.key_parts(document.measured_on, " + ".join(document.databases))
        yield db_words.heading(db_words.workload_name(document.algorithm, document.workload), where)
        if document.parameters is None:
            what = f"{', '.join(document.variants)} on "
            yield Words(f"{what}{plural(document.panels, 'runtime workload')}", "", "  ")
        else:
            what = " and ".join(document.parameters)
            yield Words(f"{plural(document.panels, 'score')} over {what}", "", "  ")
    if not quiet:
        yield Note(f"written to {document.out}")


print_export = printed(exported)
print_plot = printed(plotted)
