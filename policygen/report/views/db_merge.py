"""What `policygen db merge` did."""

from collections.abc import Iterator

from policygen.model.results import MergeReport
from policygen.report.blocks import Block, Note
from policygen.report.console import plural, printed

SHOWN = 10
"""As many conflicts as are listed without -v."""


def merged(report: MergeReport, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show one line a table, then the conflicts."""
    for table in () if quiet else report.tables:
        counts = {
            "duplicate": table.duplicates,
            "in conflict": table.conflicts,
            "unusable": table.unusable,
        }
        told = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
        yield Note(f"{table.table}: {plural(table.rows, 'row')}{told and f' ({told})'}")
    shown = report.conflicts if verbose else report.conflicts[:SHOWN]
    for conflict in shown:
        yield Note(f"conflict in {conflict.table}: {conflict.what}")
        yield Note(f"  kept {conflict.kept}, refused {conflict.refused} of {conflict.path}")
    if hidden := len(report.conflicts) - len(shown) + report.unlisted:
        yield Note(f"and {plural(hidden, 'more conflict')}")
    if not quiet:
        yield Note(f"{plural(len(report.databases), 'database')} merged into {report.out}")


print_merge = printed(merged)
