"""Describes databases: algorithms, workloads, GPUs, versions, rows, failures, time spent."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from policygen.cache import file_sha256
from policygen.model.benchmarks import ParameterRange
from policygen.model.results import (
    CoveredWorkload,
    DatabaseInfo,
    DataWarning,
    DbCoverage,
    DbInfo,
    FailureCount,
    TableInfo,
)
from policygen.model.workload import BASE
from policygen.results.cases import Case, fits
from policygen.results.database import Database, Rows, open_all, read_rows
from policygen.results.imported import imported_facts
from policygen.results.ranking import ANY, Warnings, open_cases
from policygen.results.sessions import split


def describe(paths: Sequence[Path], pattern: re.Pattern[str] = ANY) -> DbInfo:
    """Describes some databases."""
    warnings = Warnings()
    with open_all(paths) as databases:
        infos = tuple(_database(database, pattern, warnings) for database in databases)
    return DbInfo(databases=infos, warnings=warnings.all)


def _database(database: Database, pattern: re.Pattern[str], warnings: Warnings) -> DatabaseInfo:
    tables = tuple(
        _table(database, read_rows(database, table, {}, warnings.add))
        for run in (database, *database.merged)
        for table in run.tables
        if pattern.match(table.algorithm)
    )
    return DatabaseInfo(
        path=str(database.path),
        sha256=file_sha256(database.path),
        layout=database.layout,
        tables=tables,
        failures=tuple(
            failure for failure in _failures(database) if pattern.match(failure.algorithm)
        ),
        build_seconds=_seconds(database, "builds"),
        run_seconds=_seconds(database, "runs"),
    )


def _table(database: Database, rows: Rows) -> TableInfo:
    table = rows.table
    axes = {
        axis: tuple(dict.fromkeys(point[index] for point in rows.points))
        for index, axis in enumerate(table.rt_axes)
    }
    keys = sorted(rows.keys, key=lambda key: (key.gpu, key.ctk, key.cccl))
    return TableInfo(
        algorithm=table.algorithm,
        subbench=table.subbench,
        rows=int(np.size(rows.center)) + rows.unusable,
        unusable=rows.unusable,
        variants=len(set(rows.variants) - {BASE}),
        workloads=tuple(dict(zip(table.ct_axes, values, strict=True)) for values in rows.workloads),
        keys=tuple(keys),
        axes=axes,
        declared=any(key[:2] == (table.algorithm, table.subbench) for key in database.declared),
        values={
            name: dict(texts)
            for (algorithm, name), texts in imported_facts(database).values.items()
            if algorithm == table.algorithm
        },
    )


def _failures(database: Database) -> Iterator[FailureCount]:
    for log in database.logs:
        rows = database.connection.execute(f"SELECT bench, code FROM {log}")  # noqa: S608  fixed
        counts = Counter(
            (split(str(bench))[0], str(code)) for bench, code in rows if str(code) != "0"
        )
        for (algorithm, code), count in sorted(counts.items()):
            kind = "build" if log == "builds" else "run"
            yield FailureCount(kind=kind, algorithm=algorithm, code=code, count=count)


def _seconds(database: Database, log: str) -> float | None:
    if log not in database.logs:
        return None
    rows = database.connection.execute(f"SELECT elapsed FROM {log}")  # noqa: S608
    finite = [cell for (cell,) in rows if isinstance(cell, float | int) and math.isfinite(cell)]
    total = float(sum(finite))
    return total if finite and math.isfinite(total) else None


Spaces = Mapping[str, Sequence[ParameterRange]]


# Coverage of the search space by workload.


def cover(
    paths: Sequence[Path],
    spaces: Spaces,
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
) -> DbCoverage:
    """Compares the complete variants with the size of the search space, without base."""
    warnings = Warnings()
    with open_cases(paths, warnings, pattern, axes) as cases:
        covered = tuple(_workload(case, spaces.get(case.algorithm), warnings) for case in cases)
    return DbCoverage(workloads=covered, warnings=warnings.all)


def _workload(
    case: Case, space: Sequence[ParameterRange] | None, warnings: Warnings
) -> CoveredWorkload:
    measured = [
        label
        for label, is_complete in zip(case.variants, case.complete, strict=True)
        if is_complete and label != BASE
    ]
    inside = measured if space is None else [label for label in measured if fits(label, space)]
    if len(inside) < len(measured):
        misfit = next(label for label in measured if label not in set(inside))
        warnings.add(
            DataWarning(
                database=" + ".join(case.files),
                table=case.algorithm,
                message=f"variants like {misfit} do not fit the search space",
                count=len(measured) - len(inside),
            )
        )
    total = None if space is None else prod(len(parameter.values) for parameter in space)
    return CoveredWorkload(
        **case.measured,
        covered=len(inside),
        variants=total,
        share=len(inside) / total if total else None,
    )
