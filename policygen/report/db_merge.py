"""What `policygen db merge` did, on the terminal."""

from collections.abc import Iterator

from policygen.model.results import MergeReport
from policygen.report import console
from policygen.report.console import plural


def print_merge(report: MergeReport, *, verbose: bool, quiet: bool) -> None:
    """Prints what came together, and what contradicts each other."""
    out = console.results()
    for line in merge_lines(report, verbose=verbose, quiet=quiet):
        out.print(line, soft_wrap=True)


def merge_lines(report: MergeReport, *, verbose: bool, quiet: bool) -> Iterator[str]:
    """One line a table, then the conflicts: the first ten, or all of those that are listed."""
    if not quiet:
        for table in report.tables:
            counts = [
                f"{number:,} {what}"
                for number, what in (
                    (table.duplicates, "duplicate"),
                    (table.conflicts, "in conflict"),
                    (table.unusable, "unusable"),
                )
                if number
            ]
            more = f" ({', '.join(counts)})" if counts else ""
            yield f"{table.table}: {plural(table.rows, 'row')}{more}"
    shown = report.conflicts if verbose else report.conflicts[:10]
    for conflict in shown:
        yield f"conflict in {conflict.table}: {conflict.what}"
        yield f"  kept {conflict.kept}, refused {conflict.refused} of {conflict.path}"
    hidden = len(report.conflicts) - len(shown) + report.unlisted
    if hidden:
        yield f"and {plural(hidden, 'more conflict')}"
    if not quiet:
        yield f"{plural(len(report.databases), 'database')} merged into {report.out}"
