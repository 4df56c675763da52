"""What databases hold, and how much of the search space that is."""

from collections.abc import Iterator, Sequence

from policygen.model.results import (
    CoveredWorkload,
    DatabaseInfo,
    DbCoverage,
    DbInfo,
    RunKey,
    TableInfo,
)
from policygen.report.blocks import BLANK, Beside, Block, Note, Words
from policygen.report.console import plural
from policygen.report.layout import wrap
from policygen.report.views import db_words

SHOWN = 8
"""Values and workloads that are listed without --verbose."""
UNKNOWN_SPACE = (
    "the search space is not known where a size is missing: give the benchmark's source or the"
    " cccl_meta_bench.csv with --bench"
)


def info(document: DbInfo, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show each file, its tables, and what failed."""
    for index, database in enumerate(document.databases):
        if index:
            yield BLANK
        yield db_words.heading([database.path], _facts(database, verbose=verbose))
        if not database.tables:
            yield Note("  no measurements")
        for table in database.tables:
            yield from _table(table, verbose=verbose)
        for failure in database.failures:
            what = plural(failure.count, f"failed {failure.kind}")
            yield db_words.prose(
                f"{what} of {failure.algorithm}, code {failure.code}", "  ", "yellow"
            )
    if not quiet and len(document.databases) != 1:
        rows = sum(t.rows for database in document.databases for t in database.tables)
        yield BLANK
        yield Note(f"{plural(len(document.databases), 'database')}, {plural(rows, 'row')}")


def _facts(database: DatabaseInfo, *, verbose: bool) -> list[str]:
    facts = [f"layout {database.layout}"]
    for kind, seconds in (("builds", database.build_seconds), ("runs", database.run_seconds)):
        facts += [] if seconds is None else [f"{kind} took {db_words.duration(seconds)}"]
    return [*facts, f"sha256 {database.sha256 if verbose else database.sha256[:12]}"]


def _table(table: TableInfo, *, verbose: bool) -> Iterator[Block]:
    counts = [
        plural(table.rows, "row"),
        plural(table.variants, "variant"),
        plural(len(table.workloads), "workload"),
    ]
    if table.unusable:
        counts.insert(1, f"{table.unusable:,} unusable")
    name = Words([f"{table.algorithm}.{table.subbench}"], "cyan", "  ", even=True)
    yield Beside(name, Words(counts, "", "    ", "    ", db_words.DOT, even=True))
    for key in table.keys:
        yield Words(db_words.key_parts(key, None), "", "    ", "    ", db_words.DOT, even=True)
    points = [", ".join(f"{axis}={value}" for axis, value in w.items()) for w in table.workloads]
    yield from _listed("workloads", list(filter(None, points)), "; ", verbose=verbose)
    declared = "declared" if table.declared else "values present"
    for axis, values in table.axes.items():
        title = f"{axis} ({declared})" if "{io}" in axis else axis
        yield from _listed(title, values, " ", verbose=verbose)
    for parameter, texts in table.values.items():
        told = [f"{number} is {text}" for number, text in texts.items()]
        yield from _listed(parameter, told, db_words.DOT, verbose=verbose)


def _listed(title: str, values: Sequence[str], joint: str, *, verbose: bool) -> Iterator[Block]:
    """List values; a list that is cut says how much was cut."""
    shown = list(values if verbose else values[:SHOWN])
    if hidden := len(values) - len(shown):
        shown.append(f"… {hidden:,} more, see them with -v")
    yield Words(shown, "", f"    {title}: ", "      ", joint, even=True, mark="dim")


def coverage(document: DbCoverage, width: int, *, verbose: bool, quiet: bool) -> Iterator[Block]:
    """Show workloads below what they were measured on, each with its share."""
    groups: dict[tuple[RunKey, str], list[CoveredWorkload]] = {}
    for one in document.workloads:
        key = RunKey(gpu=one.gpu, ctk=one.ctk, cccl=one.cccl)
        groups.setdefault((key, one.database), []).append(one)
    files = verbose or len({database for _, database in groups}) > 1
    rooms = [max(map(len, column)) for column in zip(*map(_cells, document.workloads), strict=True)]
    for index, ((key, database), workloads) in enumerate(groups.items()):
        if index:
            yield BLANK
        where = db_words.key_parts(key, database if files else None)
        yield Words(where, "bold", "", "", db_words.DOT, even=True)
        name, *numbers = rooms
        room = width - len("     of   ") - sum(numbers)
        for one in workloads:
            yield from _covered(one, max(20, min(name, room)), numbers)
    if not groups:
        yield db_words.NOTHING
    elif not quiet and any(one.variants is None for one in document.workloads):
        yield BLANK
        yield db_words.note(UNKNOWN_SPACE)


def _cells(one: CoveredWorkload) -> tuple[str, str, str, str]:
    name = ", ".join(db_words.workload_name(one.algorithm, one.workload))
    total = "?" if one.variants is None else f"{one.variants:,}"
    share = "" if one.share is None else f"{one.share * 100:.4f} %"
    return name, f"{one.covered:,}", total, share


def _covered(one: CoveredWorkload, room: int, numbers: Sequence[int]) -> Iterator[Block]:
    """Show a line for a workload; a long name takes more lines above it."""
    name, *cells = _cells(one)
    covered, total, share = (cell.rjust(n) for cell, n in zip(cells, numbers, strict=True))
    parts = db_words.workload_name(one.algorithm, one.workload)
    *above, last = [name] if len(name) <= room else wrap(parts, ", ", room - 2)
    for index, row in enumerate(above):
        yield Note(f"    {row}" if index else f"  {row}")
    lead = f"{'    ' if above else '  '}{last}".ljust(2 + room)
    style = "green" if one.share is not None and one.share >= 1 else ""
    yield Note(((lead, ""), (f"  {covered} of {total}  {share}".rstrip(), style)))
