"""Databases on the terminal: what they hold, and how much of the search space that is."""

from collections.abc import Iterator, Sequence

from policygen.model.results import (
    CoveredWorkload,
    DatabaseInfo,
    DbCoverage,
    DbInfo,
    RunKey,
    TableInfo,
)
from policygen.report.bench import wrap
from policygen.report.console import plural
from policygen.report.db_text import (
    DOT,
    Line,
    duration,
    filled,
    heading,
    key_parts,
    line,
    note,
    workload_name,
)

INDENT = "  "
SHOWN = 8
"""Values and workloads that are listed without --verbose."""
UNKNOWN_SPACE = (
    "the search space is not known where a size is missing: give the benchmark's source or the"
    " cccl_meta_bench.csv with --bench"
)


def info_lines(document: DbInfo, width: int, *, verbose: bool, quiet: bool) -> Iterator[Line]:
    """Each file, its tables, and what failed."""
    for index, database in enumerate(document.databases):
        if index:
            yield line("")
        yield from heading([database.path], _facts(database, verbose=verbose), width)
        if not database.tables:
            yield line(f"{INDENT}no measurements")
        for table in database.tables:
            yield from _table(table, width, verbose=verbose)
        for failure in database.failures:
            what = plural(failure.count, f"failed {failure.kind}")
            text = f"{what} of {failure.algorithm}, code {failure.code}"
            yield from filled(text.split(), " ", width, style="yellow", first=INDENT)
    if not quiet and len(document.databases) != 1:
        rows = sum(t.rows for database in document.databases for t in database.tables)
        yield line("")
        yield line(f"{plural(len(document.databases), 'database')}, {plural(rows, 'row')}")


def _facts(database: DatabaseInfo, *, verbose: bool) -> list[str]:
    facts = [f"layout {database.layout}"]
    for kind, seconds in (("builds", database.build_seconds), ("runs", database.run_seconds)):
        facts += [] if seconds is None else [f"{kind} took {duration(seconds)}"]
    return [*facts, f"sha256 {database.sha256 if verbose else database.sha256[:12]}"]


def _table(table: TableInfo, width: int, *, verbose: bool) -> Iterator[Line]:
    counts = [
        plural(table.rows, "row"),
        plural(table.variants, "variant"),
        plural(len(table.workloads), "workload"),
    ]
    if table.unusable:
        counts.insert(1, f"{table.unusable:,} unusable")
    name = f"{INDENT}{table.algorithm}.{table.subbench}"
    if len(name) + 2 + len(DOT.join(counts)) <= width:
        yield ((name, "cyan"), (f"  {DOT.join(counts)}", ""))
    else:
        yield line(name, "cyan")
        yield from filled(counts, DOT, width, first=2 * INDENT)
    for key in table.keys:
        yield from filled(key_parts(key, None), DOT, width, first=2 * INDENT)
    points = [", ".join(f"{axis}={value}" for axis, value in w.items()) for w in table.workloads]
    points = [point for point in points if point]
    yield from _listed("workloads", points, "; ", width, verbose=verbose)
    declared = "declared" if table.declared else "values present"
    for axis, values in table.axes.items():
        title = f"{axis} ({declared})" if "{io}" in axis else axis
        yield from _listed(title, values, " ", width, verbose=verbose)


def _listed(
    title: str, values: Sequence[str], joint: str, width: int, *, verbose: bool
) -> Iterator[Line]:
    """A list; one that is cut says how much was cut."""
    if not values:
        return
    shown = list(values if verbose else values[:SHOWN])
    hidden = len(values) - len(shown)
    more = [f"… {hidden:,} more, see them with -v"] if hidden else []
    first, *rest = wrap([*shown, *more], joint, max(20, width - 3 * len(INDENT) - len(title)))
    yield ((f"{2 * INDENT}{title}: ", "dim"), (first, ""))
    yield from (line(3 * INDENT + row) for row in rest)


def coverage_lines(
    document: DbCoverage, width: int, *, verbose: bool, quiet: bool
) -> Iterator[Line]:
    """Workloads below what they were measured on, each with its share."""
    groups: dict[tuple[RunKey, str], list[CoveredWorkload]] = {}
    for one in document.workloads:
        key = RunKey(gpu=one.gpu, ctk=one.ctk, cccl=one.cccl)
        groups.setdefault((key, one.database), []).append(one)
    files = verbose or len({database for _, database in groups}) > 1
    columns = _columns(document.workloads, width)
    for index, ((key, database), workloads) in enumerate(groups.items()):
        if index:
            yield line("")
        where = key_parts(key, database if files else None)
        yield from filled(where, DOT, width, style="bold")
        for one in workloads:
            yield from _covered(one, columns)
    if not groups:
        yield line("no workload has a base to compare with")
    elif not quiet and any(one.variants is None for one in document.workloads):
        yield line("")
        yield from note(UNKNOWN_SPACE, width)


def _columns(workloads: Sequence[CoveredWorkload], width: int) -> tuple[int, ...]:
    """Widths of name, covered, total and share; long names take more lines."""
    rows = [_cells(one) for one in workloads]
    name, *numbers = (max((len(row[i]) for row in rows), default=0) for i in range(4))
    room = width - len(INDENT) - len("   of   ") - sum(numbers)
    return (max(20, min(name, room)), *numbers)


def _cells(one: CoveredWorkload) -> tuple[str, str, str, str]:
    name = ", ".join(workload_name(one.algorithm, one.workload))
    total = "?" if one.variants is None else f"{one.variants:,}"
    share = "" if one.share is None else f"{one.share * 100:.4f} %"
    return name, f"{one.covered:,}", total, share


def _covered(one: CoveredWorkload, columns: Sequence[int]) -> Iterator[Line]:
    name, *numbers = columns
    _, *cells = _cells(one)
    covered, total, share = (c.rjust(room) for c, room in zip(cells, numbers, strict=True))
    parts = workload_name(one.algorithm, one.workload)
    if len(", ".join(parts)) <= name:
        above, last = [], ", ".join(parts)
    else:
        *above, last = wrap(parts, ", ", name - len(INDENT))
    for index, row in enumerate(above):
        yield line(INDENT * (2 if index else 1) + row)
    lead = (INDENT * (2 if above else 1) + last).ljust(len(INDENT) + name)
    style = "green" if one.share is not None and one.share >= 1 else ""
    yield ((lead, ""), (f"  {covered} of {total}  {share}".rstrip(), style))
