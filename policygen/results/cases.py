"""One compile-time workload under one key: what can be compared with what."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.benchmarks import ParameterRange
from policygen.model.results import Choice, DataWarning, RunKey, ScoredWorkload
from policygen.model.workload import BASE, parse_label, spelled
from policygen.results.database import Database, Floats, Integers, Point, Rows
from policygen.results.own_tables import are_same, own_weight
from policygen.results.tables import DeclaredAxes, ResultTable, axes_of

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


# Variants and search spaces: which belongs to which, and how far two are from each other.


def fits(label: str, space: Sequence[ParameterRange]) -> bool:
    """Whether a variant belongs to a search space."""
    values = parse_label(label)
    if values is None or set(values) != {parameter.label for parameter in space}:
        return False
    return all(values[parameter.label] in parameter.values for parameter in space)


def distance(label: str, current: str) -> float:
    """How far a variant is from another: the sum of its parameters' relative changes."""
    values, others = parse_label(label), parse_label(current)
    if values is None or others is None:
        return float("inf")
    total = 0.0
    for name in values.keys() | others.keys():
        if name not in values or name not in others:
            total += 1.0
            continue
        scale = max(abs(values[name]), abs(others[name]), 1)
        total += abs(values[name] - others[name]) / scale
    return total


NOT_ASKED = "left out by -R or -a"
KEPT = Choice(decision="keep base", variant=None, reason=NOT_ASKED)


# Which workloads are asked for; the others stay known, and nothing is written for them.


def split(
    workloads: Sequence[ScoredWorkload],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
) -> tuple[tuple[ScoredWorkload, ...], tuple[ScoredWorkload, ...]]:
    """Those that are asked for, and all others, whose base is kept."""
    known = {axis for one in workloads for axis in one.workload}
    axes = spelled(axes, known)
    for axis in axes:
        if axis not in known:
            raise InputError(
                f"-a {axis}: there is no such compile-time axis, and what is written is for whole"
                " workloads",
                f"There are: {', '.join(sorted(known))}",
            )
    asked = tuple(one for one in workloads if _is_asked(one, pattern, axes))
    others = (one for one in workloads if one not in asked)
    return asked, tuple(one.model_copy(update={"choice": KEPT}) for one in others)


def _is_asked(
    one: ScoredWorkload, pattern: re.Pattern[str], axes: Mapping[str, frozenset[str]]
) -> bool:
    mine = {axis: values for axis, values in axes.items() if axis in one.workload}
    fits = all(one.workload[axis] in values for axis, values in mine.items())
    return fits and pattern.match(one.algorithm) is not None


LISTED = 3


# What a benchmark has, and base was not measured on: a reason against every variant.


def missing_of_base(case: Case, declared: DeclaredAxes) -> tuple[str, ...]:
    """Sub-benchmarks and runtime workloads in words, each once."""
    return tuple(dict.fromkeys((*_subbenches(case, declared), *_points(case))))


def in_words(missing: tuple[str, ...]) -> str:
    """Why nothing is chosen."""
    more = f" and {len(missing) - LISTED:,} more" if len(missing) > LISTED else ""
    return f"base was not measured in {'; '.join(missing[:LISTED])}{more}"


def declared_points(case: Case, declared: DeclaredAxes) -> int | None:
    """How many runtime workloads the declared axes make; none where they are not known."""
    known = {**axes_of(case.key.cccl), **known_axes(case, declared)}
    counts = [_declared(case, part, known) for part in case.parts]
    return sum(c for c in counts if c is not None) if all(counts) else None


def _declared(case: Case, part: Part, known: DeclaredAxes) -> int | None:
    axes = [(case.algorithm, part.table.subbench, axis) for axis in part.table.rt_axes]
    return prod(len(known[axis]) for axis in axes) if all(known.get(a) for a in axes) else None


def _subbenches(case: Case, declared: DeclaredAxes) -> Iterator[str]:
    """Those that have rows without base, those that are registered, and those of the source."""
    have = {part.table.subbench for part in case.parts}
    yield from case.without_base
    for database in case.databases:
        for table in database.tables:
            same = table.algorithm == case.algorithm and set(table.ct_axes) == set(case.workload)
            if same and table.subbench not in have:
                yield table.name
        for algorithm, subbench in database.unmeasured:
            if algorithm == case.algorithm and subbench not in have:
                yield f"{algorithm}.{subbench}"
    benchmark = {subbench for name, subbench, _ in axes_of(case.key.cccl) if name == case.algorithm}
    named = {subbench for name, subbench, _ in declared if name == case.algorithm}
    # Sub-benchmarks of other names are those of another version.
    for subbench in sorted((named | benchmark if have <= benchmark else named) - have):
        yield f"{case.algorithm}.{subbench}"


def _points(case: Case) -> Iterator[str]:
    """Runtime workloads that variants were measured on."""
    for part in case.parts:
        prefix = f"{part.table.subbench}: " if len(case.parts) > 1 else ""
        for point in part.without_base:
            named = zip(part.table.rt_axes, point, strict=True)
            yield prefix + ", ".join(f"{axis}={value}" for axis, value in named)


LEAST, MOST = 0.6, 0.999
"""The importance of the first value of an `{io}` axis, and what the last one approaches."""


# How much each runtime workload counts: large inputs more than small ones.


def importance(index: int, count: int) -> float:
    """The weight of value `index` of an `{io}` axis with `count` values."""
    begin, end = -math.log(1 - LEAST), -math.log(1 - MOST)
    return 1 - math.exp(-(begin + index * (end - begin) / count))


def weights(case: Case, declared: DeclaredAxes) -> tuple[tuple[Floats, ...], bool]:
    """Weights by part, normalised over all of them; and whether they are approximate."""
    known = known_axes(case, declared)
    benchmark = axes_of(case.key.cccl)
    raw: list[Floats] = []
    approximate = False
    for part in case.parts:
        values = np.ones(len(part.points))
        for position, axis in enumerate(part.table.rt_axes):
            present = [point[position] for point in part.points]
            key = (case.algorithm, part.table.subbench, axis)
            given = [own_weight(known.get(key), value) for value in present]
            if None not in given:
                values = values * np.array(given, np.float64)
                continue
            if "{io}" not in axis:
                continue
            own, unsure = _importances(present, known.get(key), benchmark.get(key, ()))
            approximate |= unsure
            values = values * own
        raw.append(values)
    total = sum(float(values.sum()) for values in raw)
    return tuple(values / total for values in raw), approximate


def result_weights(
    points: Sequence[tuple[str, str, Mapping[str, str]]],
) -> tuple[list[float], bool]:
    """Weights of runtime workloads, by benchmark, sub-benchmark and axes, of an unknown CCCL.

    They are normalised; and whether they are approximate.
    """
    benchmark, found, approximate = axes_of(""), [1.0] * len(points), False
    lots: dict[tuple[str, str, str], list[int]] = {}
    for index, (name, subbench, axes) in enumerate(points):
        for axis in axes:
            if "{io}" in axis:
                lots.setdefault((name, subbench, axis), []).append(index)
    for key, indices in lots.items():
        present = [points[index][2][key[2]] for index in indices]
        own, unsure = _importances(present, None, benchmark.get(key, ()))
        approximate |= unsure
        for index, weight in zip(indices, own, strict=True):
            found[index] *= weight
    total = sum(found)
    return [weight / total for weight in found], approximate


def _importances(
    present: Sequence[str], declared: Sequence[str] | None, benchmark: Sequence[str]
) -> tuple[list[float], bool]:
    """By what is declared, else by the benchmark where all of it is there; and whether unsure."""
    # A search of a part of the benchmark's values may declare that part: CCCL ranks by it.
    if declared is None and set(benchmark) == set(present):
        declared = benchmark
    order = _order(present, declared)
    unsure = declared is None or not set(present) <= set(declared)
    return [importance(order[value], len(order)) for value in present], unsure


def known_axes(case: Case, declared: DeclaredAxes) -> DeclaredAxes:
    """What databases declare, else sources; where databases differ, neither."""
    known = dict(declared)
    first: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for database in case.databases:
        for axis, values in database.declared.items():
            known[axis] = first.setdefault(axis, values)
            if not are_same(first[axis], values):
                known[axis] = ()
    return known


def _order(present: Sequence[str], declared: Sequence[str] | None) -> Mapping[str, int]:
    """The position of each value: as declared, else in numeric order of what is there."""
    if declared is not None and set(present) <= set(declared):
        return {value: index for index, value in enumerate(declared)}
    values = list(dict.fromkeys(present))
    with suppress(ValueError):  # names keep the order in which they were measured
        values.sort(key=float)
    return {value: index for index, value in enumerate(values)}
