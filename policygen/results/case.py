"""One compile-time workload under one key: what can be compared with what."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygen.model.labels import BASE
from policygen.model.results import DataWarning, RunKey
from policygen.results.database import Database, ResultTable
from policygen.results.load import Codes, Floats, Integers, Point, Rows

Warn = Callable[[DataWarning], None]


@dataclass(frozen=True, slots=True)
class Part:
    """One sub-benchmark of a case: variants by runtime workloads, base first."""

    table: ResultTable
    points: tuple[Point, ...]
    centers: Floats
    """NaN where a variant was not measured."""
    rowids: Integers
    origins: Codes
    """Which of the case's databases a row comes from."""


@dataclass(frozen=True, slots=True)
class Case:
    """The measurements that may be compared with each other."""

    algorithm: str
    key: RunKey
    workload: Mapping[str, str]
    databases: tuple[Database, ...]
    variants: tuple[str, ...]
    """`base` first, then all others in the order of their appearance."""
    parts: tuple[Part, ...]
    without_base: tuple[str, ...] = ()
    """Tables where variants were measured, but base was not: they do not count."""

    @property
    def files(self) -> tuple[str, ...]:
        """The databases by name."""
        return tuple(str(database.path) for database in self.databases)

    @property
    def measured(self) -> dict[str, Any]:
        """What every record of a workload says of it: the fields of `Measured`."""
        return {
            **dict(self.key),
            "algorithm": self.algorithm,
            "workload": dict(self.workload),
            "databases": self.files,
        }


@dataclass(frozen=True, slots=True)
class _Slice:
    """The rows of one table that belong to one case."""

    rows: Rows
    index: Integers

    @property
    def identities(self) -> set[tuple[str, str, Point]]:
        rows = self.rows
        return {
            (rows.table.subbench, rows.variants[v], rows.points[p])
            for v, p in zip(rows.variant[self.index], rows.point[self.index], strict=True)
        }


_CaseKey = tuple[str, str, str, str, tuple[tuple[str, str], ...]]


def build_cases(tables: Sequence[Rows], warn: Warn) -> tuple[Case, ...]:
    """All cases, sorted by algorithm, workload and key; those without a base are told."""
    found: dict[_CaseKey, list[_Slice]] = {}
    for rows in tables:
        for key, part in _slices(rows):
            found.setdefault(key, []).append(part)
    cases: list[Case] = []
    for key in sorted(found, key=_natural):
        for slices in _comparable(found[key]):
            case = _case(key, slices)
            if case is not None:
                cases.append(case)
            lost = [s for s in slices if case is None or s.rows.table.name in case.without_base]
            _warn_of_missing_base(key, lost, warn)
    return tuple(cases)


def _natural(key: _CaseKey) -> tuple[object, ...]:
    """I8 comes before I16."""
    algorithm, gpu, ctk, cccl, workload = key
    values = [part for _, value in workload for part in re.split(r"([0-9]+)", value)]
    # As long as digits without zeros before them are, so is their order.
    digits = [v.lstrip("0") if v.isdecimal() else "" for v in values]
    numbers = [
        (0, len(d), d) if v.isdecimal() else (1, 0, v) for v, d in zip(values, digits, strict=True)
    ]
    return algorithm, numbers, gpu, ctk, cccl


def _slices(rows: Rows) -> Iterator[tuple[_CaseKey, _Slice]]:
    if not rows.center.size:
        return
    codes = rows.key.astype(np.int64) * len(rows.workloads) + rows.workload
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for index in np.split(order, starts[1:]):
        first = index[0]
        key, workload = rows.keys[rows.key[first]], rows.workloads[rows.workload[first]]
        named = tuple(zip(rows.table.ct_axes, workload, strict=True))
        yield (rows.table.algorithm, key.gpu, key.ctk, key.cccl, named), _Slice(rows, index)


def _comparable(slices: list[_Slice]) -> Iterator[list[_Slice]]:
    """Databases are pooled only where no row stands in two of them."""
    by_file: dict[int, list[_Slice]] = {}
    axes: dict[str, set[tuple[str, ...]]] = {}
    for part in slices:
        by_file.setdefault(id(part.rows.database), []).append(part)
        axes.setdefault(part.rows.table.subbench, set()).add(part.rows.table.rt_axes)
    if any(len(orders) > 1 for orders in axes.values()):
        # Other axes, or the same ones in another order: another version of the benchmark.
        yield from by_file.values()
        return
    if len(by_file) > 1:
        seen: set[tuple[str, str, Point]] = set()
        total = 0
        for part in slices:
            identities = part.identities
            total += len(identities)
            seen |= identities
        if len(seen) < total:
            yield from by_file.values()
            return
    yield slices


def _case(key: _CaseKey, slices: list[_Slice]) -> Case | None:
    algorithm, gpu, ctk, cccl, workload = key
    databases = tuple({id(s.rows.database): s.rows.database for s in slices}.values())
    names: dict[str, int] = {BASE: 0}
    for part in slices:
        for code in dict.fromkeys(part.rows.variant[part.index].tolist()):
            names.setdefault(part.rows.variants[code], len(names))
    by_table: dict[str, list[_Slice]] = {}
    for part in slices:
        by_table.setdefault(part.rows.table.subbench, []).append(part)
    made = {same[0].rows.table.name: _part(same, names, databases) for same in by_table.values()}
    parts = tuple(part for part in made.values() if part is not None)
    if not parts:
        return None
    run = RunKey(gpu=gpu, ctk=ctk, cccl=cccl)
    without = tuple(name for name, part in made.items() if part is None)
    return Case(algorithm, run, dict(workload), databases, tuple(names), parts, without)


def _part(
    slices: list[_Slice], names: Mapping[str, int], databases: tuple[Database, ...]
) -> Part | None:
    """The runtime workloads are those that base was measured on."""
    points: dict[Point, int] = {}
    for part in slices:
        rows = part.rows
        for variant, point in zip(rows.variant[part.index], rows.point[part.index], strict=True):
            if rows.variants[variant] == BASE:
                points.setdefault(rows.points[point], len(points))
    if not points:
        return None
    shape = (len(names), len(points))
    centers, rowids = np.full(shape, np.nan), np.full(shape, -1, np.int64)
    origins = np.zeros(shape, np.int32)
    for part in slices:
        rows, index = part.rows, part.index
        row_of = np.array([names.get(name, -1) for name in rows.variants], np.int32)
        column_of = np.array([points.get(point, -1) for point in rows.points], np.int32)
        row, column = row_of[rows.variant[index]], column_of[rows.point[index]]
        known = column >= 0
        row, column, index = row[known], column[known], index[known]
        centers[row, column] = rows.center[index]
        rowids[row, column] = rows.rowid[index]
        origins[row, column] = next(i for i, d in enumerate(databases) if d is rows.database)
    return Part(slices[0].rows.table, tuple(points), centers, rowids, origins)


def _warn_of_missing_base(key: _CaseKey, slices: list[_Slice], warn: Warn) -> None:
    algorithm, gpu, ctk, cccl, workload = key
    where = ", ".join(f"{name}={value}" for name, value in workload)
    for part in slices:
        warn(
            DataWarning(
                database=str(part.rows.database.path),
                table=part.rows.table.name,
                message=f"{algorithm}[{where}] on {gpu}, ctk {ctk}, cccl {cccl}:"
                " base was not measured, nothing can be compared",
                count=len(part.index),
            )
        )
