"""One compile-time workload under one key: what can be compared with what."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygen.model.labels import BASE
from policygen.model.results import DataWarning, RunKey
from policygen.results.database import Database
from policygen.results.load import Floats, Integers, Point, Rows
from policygen.results.table import ResultTable

Warn = Callable[[DataWarning], None]
TWICE = "rows that stand there twice with different centers are left out"


@dataclass(frozen=True, slots=True)
class Part:
    """One sub-benchmark of a case: runs by variants by runtime workloads, base first."""

    table: ResultTable
    points: tuple[Point, ...]
    centers: Floats
    """NaN where a variant was not measured; a run is one database."""
    rowids: Integers
    without_base: tuple[Point, ...] = ()
    """Runtime workloads where variants were measured, but base was not."""

    @property
    def ratios_by_run(self) -> Floats:
        """Each row against the base of its own run; over 1 is faster."""
        return np.asarray(self.centers[:, :1] / self.centers)

    @property
    def repeats(self) -> Integers:
        """How many runs compare a variant with base on a runtime workload."""
        return np.asarray((~np.isnan(self.ratios_by_run)).sum(axis=0), np.int64)

    def repeats_of(self, variant: int) -> Integers:
        """The same of one variant."""
        both = self.centers[:, 0] / self.centers[:, variant]
        return np.asarray((~np.isnan(both)).sum(axis=0), np.int64)

    @property
    def ratios(self) -> Floats:
        """Variants by runtime workloads: the mean over the runs; NaN where no run has both."""
        found, counts = self.ratios_by_run, self.repeats
        if len(found) == 1:
            return np.asarray(found[0])
        total = np.nansum(found, axis=0)
        return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


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
        gpu = self.key.gpu
        return {
            **dict(self.key),
            "arch": next((d.gpus[gpu] for d in self.databases if gpu in d.gpus), None),
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
    def has_base(self) -> bool:
        """Whether something can be compared with it."""
        known = self.rows.variants
        own = known.index(BASE) if BASE in known else -1
        return bool((self.rows.variant[self.index] == own).any())


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
            case = _case(key, slices, warn)
            if case is not None:
                cases.append(case)
            lost = [one for one in slices if not one.has_base]
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
    """Databases are runs of one case, unless their benchmarks are different ones."""
    by_file: dict[int, list[_Slice]] = {}
    axes: dict[str, set[tuple[str, ...]]] = {}
    for part in slices:
        by_file.setdefault(id(part.rows.database), []).append(part)
        axes.setdefault(part.rows.table.subbench, set()).add(part.rows.table.rt_axes)
    if any(len(orders) > 1 for orders in axes.values()):
        # Other axes, or the same ones in another order: another version of the benchmark.
        yield from by_file.values()
    else:
        yield slices


def _case(key: _CaseKey, slices: list[_Slice], warn: Warn) -> Case | None:
    algorithm, gpu, ctk, cccl, workload = key
    databases = tuple({id(s.rows.database): s.rows.database for s in slices}.values())
    names: dict[str, int] = {BASE: 0}
    for part in slices:
        for code in dict.fromkeys(part.rows.variant[part.index].tolist()):
            names.setdefault(part.rows.variants[code], len(names))
    by_table: dict[str, list[_Slice]] = {}
    for part in slices:
        by_table.setdefault(part.rows.table.subbench, []).append(part)
    made = {
        same[0].rows.table.name: _part(same, names, databases, warn) for same in by_table.values()
    }
    parts = tuple(part for part in made.values() if part.points)
    if not parts:
        return None
    run = RunKey(gpu=gpu, ctk=ctk, cccl=cccl)
    without = tuple(name for name, part in made.items() if not part.points)
    return Case(algorithm, run, dict(workload), databases, tuple(names), parts, without)


def _part(
    slices: list[_Slice], names: Mapping[str, int], databases: tuple[Database, ...], warn: Warn
) -> Part:
    """The runtime workloads are those that base was measured on, in any of the runs."""
    points: dict[Point, int] = {}
    others: dict[Point, None] = {}
    for part in slices:
        rows = part.rows
        own, index = rows.variants.index(BASE) if BASE in rows.variants else -1, part.index
        measured = rows.point[index]
        for point in dict.fromkeys(measured[rows.variant[index] == own].tolist()):
            points.setdefault(rows.points[point], len(points))
        others |= dict.fromkeys(rows.points[point] for point in dict.fromkeys(measured.tolist()))
    shape = (len(databases), len(names), len(points))
    centers, rowids = np.full(shape, np.nan), np.full(shape, -1, np.int64)
    for part in slices:
        run = next(i for i, d in enumerate(databases) if d is part.rows.database)
        _fill(part, names, points, centers[run], rowids[run], warn)
    _drop_copies(centers)
    missing = tuple(point for point in others if point not in points)
    return Part(slices[0].rows.table, tuple(points), centers, rowids, missing)


def _fill(
    part: _Slice,
    names: Mapping[str, int],
    points: Mapping[Point, int],
    centers: Floats,
    rowids: Integers,
    warn: Warn,
) -> None:
    """One run's rows; of those that stand there twice and differ, none counts."""
    rows, index = part.rows, part.index
    row_of = np.array([names.get(name, -1) for name in rows.variants], np.int32)
    column_of = np.array([points.get(point, -1) for point in rows.points], np.int32)
    row, column = row_of[rows.variant[index]], column_of[rows.point[index]]
    known = column >= 0
    row, column, index = row[known], column[known], index[known]
    centers[row, column] = rows.center[index]
    rowids[row, column] = rows.rowid[index]
    differs = centers[row, column] != rows.center[index]
    if differs.any():
        centers[row[differs], column[differs]] = np.nan
        warn(
            DataWarning(
                database=str(rows.database.path),
                table=rows.table.name,
                message=TWICE,
                count=int(differs.sum()),
                row=int(rows.rowid[index[differs]][0]),
            )
        )


def _drop_copies(centers: Floats) -> None:
    """A copy of a run is no repeat: what it has besides belongs to the first one's base."""
    for later in range(1, len(centers)):
        for earlier in range(later):
            shared = ~np.isnan(centers[later]) & ~np.isnan(centers[earlier])
            if shared[0].any() and np.all(centers[later][shared] == centers[earlier][shared]):
                centers[later][1:][shared[1:]] = np.nan
                # Without a variant to compare it with, a base says nothing.
                if np.isnan(centers[later][1:]).all():
                    centers[later] = np.nan
                break


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
