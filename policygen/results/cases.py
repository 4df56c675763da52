"""The measurements of one compile-time workload under one key that can be compared."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from policygen.errors import InputError
from policygen.model.benchmarks import ParameterRange
from policygen.model.records import grouped
from policygen.model.results import Choice, DataWarning, RunKey, ScoredWorkload
from policygen.model.workload import BASE, parse_label, spelled
from policygen.model.workload import axes as axis_texts
from policygen.results.database import Database, Floats, Integers, Point, Rows
from policygen.results.own_tables import are_same, own_weight
from policygen.results.tables import DeclaredAxes, ResultTable, axes_of

Warn = Callable[[DataWarning], None]
TWICE = "rows that appear twice with different centers are ignored"


@dataclass(frozen=True)
class Part:
    """One sub-benchmark of a case: runs by variants by runtime workloads, base first."""

    table: ResultTable
    points: tuple[Point, ...]
    centers: Floats
    """NaN if a variant was not measured; a run is one database."""
    rowids: Integers
    without_base: tuple[Point, ...] = ()
    """Runtime workloads with measured variants but without base."""

    def place(self, column: int) -> dict[str, Any]:
        """The fields of `AtPoint`, which every record of a runtime workload has."""
        return {"subbench": self.table.subbench, "point": self.table.by_axis(self.points[column])}

    @cached_property
    def ratios_by_run(self) -> Floats:
        """Each row's speedup over the base of its own run; above 1 is faster."""
        return np.asarray(self.centers[:, :1] / self.centers)

    @cached_property
    def repeats(self) -> Integers:
        """The number of runs that compare a variant with base on a runtime workload."""
        return np.asarray((~np.isnan(self.ratios_by_run)).sum(axis=0), np.int64)

    @cached_property
    def ratios(self) -> Floats:
        """Variants by runtime workloads: the mean over the runs; NaN where no run has both."""
        ratios, counts = self.ratios_by_run, self.repeats
        if len(ratios) == 1:
            return np.asarray(ratios[0])
        return np.where(counts > 0, np.nansum(ratios, axis=0) / np.maximum(counts, 1), np.nan)


@dataclass(frozen=True, slots=True)
class Case:
    """Measurements that may be compared with each other."""

    algorithm: str
    key: RunKey
    workload: Mapping[str, str]
    databases: tuple[Database, ...]
    variants: tuple[str, ...]
    """`base` first, then all others in order of appearance."""
    parts: tuple[Part, ...]
    without_base: tuple[str, ...] = ()
    """Tables with measured variants but without base: they do not count."""

    @property
    def title(self) -> str:
        """The workload in words: `cub.bench.scan.exclusive.sum[T{ct}=I32]`."""
        return _title(self.algorithm, self.workload)

    @property
    def subject(self) -> tuple[str, frozenset[tuple[str, str]]]:
        """What it is about, wherever it was measured."""
        return self.algorithm, frozenset(self.workload.items())

    @property
    def points(self) -> list[tuple[str, Point]]:
        """All runtime workloads, by sub-benchmark."""
        return [(part.table.subbench, point) for part in self.parts for point in part.points]

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the databases."""
        return tuple(dict.fromkeys(str(database.path) for database in self.databases))

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Whether a run compares each variant with base on every runtime workload."""
        return np.asarray(np.all([(part.repeats > 0).all(axis=1) for part in self.parts], axis=0))

    @property
    def measured(self) -> dict[str, Any]:
        """The fields of `Measured`, which every record of a workload has."""
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
    def is_base(self) -> npt.NDArray[np.bool_]:
        """Which rows are base's, with which the others are compared."""
        labels = self.rows.variants
        base = labels.index(BASE) if BASE in labels else -1
        return np.asarray(self.rows.variant[self.index] == base)


_CaseKey = tuple[str, RunKey, tuple[tuple[str, str], ...]]


def build_cases(tables: Sequence[Rows], warn: Warn) -> tuple[Case, ...]:
    """Builds all cases, sorted by algorithm, workload and key; warns about those without a base."""
    keyed_slices = grouped((pair for rows in tables for pair in _slices(rows)), itemgetter(0))
    cases: list[Case] = []
    for key in sorted(keyed_slices, key=_natural_order):
        for slices in _comparable([part for _, part in keyed_slices[key]]):
            if (case := _case(key, slices, warn)) is not None:
                cases.append(case)
            for part in slices:
                if not part.is_base.any():
                    warn(_missing_base(key, part))
    return tuple(cases)


def _title(algorithm: str, workload: Mapping[str, str]) -> str:
    return f"{algorithm}[{', '.join(axis_texts(workload))}]"


def _missing_base(key: _CaseKey, part: _Slice) -> DataWarning:
    algorithm, run, workload = key
    message = (
        f"{_title(algorithm, dict(workload))} on {run.gpu}, ctk {run.ctk}, cccl {run.cccl}: base"
        " was not measured, so nothing can be compared"
    )
    return part.rows.database.warning(part.rows.table.name, message, len(part.index))


def _natural_order(key: _CaseKey) -> tuple[object, ...]:
    """Returns a sort key that puts I8 before I16."""
    algorithm, run, workload = key
    values = [part for _, value in workload for part in re.split(r"([0-9]+)", value)]
    # Numbers compare by their count of digits, without leading zeros, and then by the digits.
    digits = [value.lstrip("0") if value.isdecimal() else "" for value in values]
    numbers = [
        (0, len(digit_text), digit_text) if value.isdecimal() else (1, 0, value)
        for value, digit_text in zip(values, digits, strict=True)
    ]
    return algorithm, numbers, run.gpu, run.ctk, run.cccl


def _slices(rows: Rows) -> Iterator[tuple[_CaseKey, _Slice]]:
    if not rows.center.size:
        return
    codes = rows.key.astype(np.int64) * len(rows.workloads) + rows.workload
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for index in np.split(order, starts[1:]):
        first = index[0]
        key, workload = rows.keys[rows.key[first]], rows.workloads[rows.workload[first]]
        workload_items = tuple(zip(rows.table.ct_axes, workload, strict=True))
        yield (rows.table.algorithm, key, workload_items), _Slice(rows, index)


def _comparable(slices: list[_Slice]) -> Iterator[list[_Slice]]:
    """Groups databases as runs of one case, unless their benchmarks differ."""
    axes = {(part.rows.table.subbench, part.rows.table.rt_axes) for part in slices}
    if len({subbench for subbench, _ in axes}) < len(axes):
        # Other axes, or the same ones in another order, mean another version of the benchmark.
        yield from grouped(slices, lambda part: id(part.rows.database)).values()
    else:
        yield slices


def _case(key: _CaseKey, slices: list[_Slice], warn: Warn) -> Case | None:
    algorithm, run, workload = key
    databases = tuple({id(part.rows.database): part.rows.database for part in slices}.values())
    names: dict[str, int] = {BASE: 0}
    for part in slices:
        for code in dict.fromkeys(part.rows.variant[part.index].tolist()):
            names.setdefault(part.rows.variants[code], len(names))
    by_table = grouped(slices, lambda part: part.rows.table.subbench)
    parts_by_table = {
        parts_of_table[0].rows.table.name: _part(parts_of_table, names, databases, warn)
        for parts_of_table in by_table.values()
    }
    parts = tuple(part for part in parts_by_table.values() if part.points)
    if not parts:
        return None
    tables_without_base = tuple(name for name, part in parts_by_table.items() if not part.points)
    return Case(algorithm, run, dict(workload), databases, tuple(names), parts, tables_without_base)


def _part(
    slices: list[_Slice], names: Mapping[str, int], databases: tuple[Database, ...], warn: Warn
) -> Part:
    """Builds a part; its runtime workloads are those with a base in any run."""
    points: dict[Point, int] = {}
    seen: dict[Point, None] = {}
    for part in slices:
        rows, measured = part.rows, part.rows.point[part.index]
        for point in dict.fromkeys(measured[part.is_base].tolist()):
            points.setdefault(rows.points[point], len(points))
        seen |= dict.fromkeys(rows.points[point] for point in dict.fromkeys(measured.tolist()))
    shape = (len(databases), len(names), len(points))
    centers, rowids = np.full(shape, np.nan), np.full(shape, -1, np.int64)
    runs = {id(database): run for run, database in enumerate(databases)}
    for part in slices:
        run = runs[id(part.rows.database)]
        _fill(part, names, points, centers[run], rowids[run], warn)
    _drop_copies(centers)
    missing = tuple(point for point in seen if point not in points)
    return Part(slices[0].rows.table, tuple(points), centers, rowids, missing)


def _fill(
    part: _Slice,
    names: Mapping[str, int],
    points: Mapping[Point, int],
    centers: Floats,
    rowids: Integers,
    warn: Warn,
) -> None:
    """Fills in one run's rows; of duplicates that differ, none counts."""
    rows, index = part.rows, part.index
    row_of = np.array([names.get(name, -1) for name in rows.variants], np.int32)
    column_of = np.array([points.get(point, -1) for point in rows.points], np.int32)
    row, column = row_of[rows.variant[index]], column_of[rows.point[index]]
    has_base = column >= 0
    row, column, index = row[has_base], column[has_base], index[has_base]
    centers[row, column] = rows.center[index]
    rowids[row, column] = rows.rowid[index]
    differs = centers[row, column] != rows.center[index]
    if differs.any():
        centers[row[differs], column[differs]] = np.nan
        first = int(rows.rowid[index[differs]][0])
        warn(rows.database.warning(rows.table.name, TWICE, int(differs.sum()), first))


def _drop_copies(centers: Floats) -> None:
    """Removes copied runs: a copy is not a repeat, and its other rows belong to the first base."""
    for later in range(1, len(centers)):
        for earlier in range(later):
            shared = ~np.isnan(centers[later]) & ~np.isnan(centers[earlier])
            if shared[0].any() and np.all(centers[later][shared] == centers[earlier][shared]):
                centers[later][1:][shared[1:]] = np.nan
                # Without a variant to compare with, a base is useless.
                if np.isnan(centers[later][1:]).all():
                    centers[later] = np.nan
                break


# Variants and search spaces: membership and distance.


def fits(label: str, space: Sequence[ParameterRange]) -> bool:
    """Returns whether a variant belongs to a search space."""
    values = parse_label(label)
    if values is None or set(values) != {parameter.label for parameter in space}:
        return False
    return all(values[parameter.label] in parameter.values for parameter in space)


def distance(label: str, current: str) -> float:
    """Returns the distance between variants: the sum of their parameters' relative changes."""
    values, current_values = parse_label(label), parse_label(current)
    if values is None or current_values is None:
        return float("inf")
    total = float(len(values.keys() ^ current_values.keys()))
    for name in values.keys() & current_values.keys():
        scale = max(abs(values[name]), abs(current_values[name]), 1)
        total += abs(values[name] - current_values[name]) / scale
    return total


NOT_ASKED = "left out by -R or -a"
KEPT = Choice(decision="keep base", variant=None, reason=NOT_ASKED)


# Selecting workloads; the others stay known, and nothing is written for them.


def split(
    workloads: Sequence[ScoredWorkload],
    pattern: re.Pattern[str],
    axes: Mapping[str, frozenset[str]],
) -> tuple[tuple[ScoredWorkload, ...], tuple[ScoredWorkload, ...]]:
    """Splits workloads into the selected ones and all others, whose base is kept."""
    known_axis_names = {axis for workload in workloads for axis in workload.workload}
    axes = spelled(axes, known_axis_names)
    for axis in axes:
        if axis not in known_axis_names:
            raise InputError(
                f"-a {axis}: there is no such compile-time axis, and entries are written for whole"
                " workloads",
                f"Available: {', '.join(sorted(known_axis_names))}",
            )
    selected = tuple(
        workload
        for workload in workloads
        if pattern.match(workload.algorithm)
        and all(value in axes.get(axis, {value}) for axis, value in workload.workload.items())
    )
    rest = (workload for workload in workloads if workload not in selected)
    return selected, tuple(workload.model_copy(update={"choice": KEPT}) for workload in rest)


LISTED = 3


# Missing base measurements, which rule out every variant.


def missing_of_base(case: Case, declared: DeclaredAxes) -> tuple[str, ...]:
    """Describes sub-benchmarks and runtime workloads without base, each once."""
    points = [
        (f"{part.table.subbench}: " if len(case.parts) > 1 else "")
        + ", ".join(axis_texts(part.table.by_axis(point)))
        for part in case.parts
        for point in part.without_base
    ]
    return tuple(dict.fromkeys((*_subbenches(case, declared), *points)))


def in_words(missing: tuple[str, ...]) -> str:
    """Explains why nothing is chosen."""
    rest = f" and {len(missing) - LISTED:,} more" if len(missing) > LISTED else ""
    return f"base was not measured in {'; '.join(missing[:LISTED])}{rest}"


def declared_points(case: Case, declared: DeclaredAxes) -> int | None:
    """Counts the runtime workloads that the declared axes make; None if they are unknown."""
    values_by_axis = {**axes_of(case.key.cccl), **known_axes(case.databases, declared)}
    benches = [(case.algorithm, part.table.subbench, part.table.rt_axes) for part in case.parts]
    return count_points(benches, values_by_axis)


def count_points(
    benches: Iterable[tuple[str, str, Iterable[str]]], values_by_axis: DeclaredAxes
) -> int | None:
    """Counts the runtime workloads of sub-benchmarks with their axes; None if any is unknown."""
    counts = []
    for algorithm, subbench, axes in benches:
        values = [values_by_axis.get((algorithm, subbench, axis), ()) for axis in axes]
        counts.append(prod(map(len, values)))
    return sum(counts) if all(counts) else None


def _subbenches(case: Case, declared: DeclaredAxes) -> Iterator[str]:
    """Yields sub-benchmarks with rows but no base, registered ones, and those of the source."""
    present = {part.table.subbench for part in case.parts}
    yield from case.without_base
    for database in case.databases:
        for table in database.tables:
            is_lacking = table.algorithm == case.algorithm and table.subbench not in present
            if is_lacking and {*table.ct_axes} == {*case.workload}:
                yield table.name
        for algorithm, subbench in database.unmeasured:
            if algorithm == case.algorithm and subbench not in present:
                yield f"{algorithm}.{subbench}"
    known_names = {
        subbench for name, subbench, _ in axes_of(case.key.cccl) if name == case.algorithm
    }
    declared_names = {subbench for name, subbench, _ in declared if name == case.algorithm}
    # Unknown sub-benchmark names mean another version of the benchmark.
    if present <= known_names:
        declared_names |= known_names
    yield from (f"{case.algorithm}.{subbench}" for subbench in sorted(declared_names - present))


LEAST, MOST = 0.6, 0.999
"""The importance of the first value of an `{io}` axis, and the limit for the last one."""


# Weights of runtime workloads: large inputs count more than small ones.


def importance(index: int, count: int) -> float:
    """Returns the weight of value `index` of an `{io}` axis with `count` values."""
    begin, end = -math.log(1 - LEAST), -math.log(1 - MOST)
    return 1 - math.exp(-(begin + index * (end - begin) / count))


def weights(case: Case, declared: DeclaredAxes) -> tuple[tuple[Floats, ...], bool]:
    """Returns the weights by part, normalized over all parts, and whether they are approximate."""
    points = [
        (case.algorithm, part.table.subbench, part.table.by_axis(point))
        for part in case.parts
        for point in part.points
    ]
    values_by_axis = known_axes(case.databases, declared)
    weights_of_points, approximate = runtime_weights(points, values_by_axis, case.key.cccl)
    ends = np.cumsum([len(part.points) for part in case.parts])
    return tuple(np.split(weights_of_points, ends[:-1])), approximate


def runtime_weights(
    points: Sequence[tuple[str, str, Mapping[str, str]]],
    values_by_axis: DeclaredAxes | None = None,
    cccl: str = "",
) -> tuple[Floats, bool]:
    """Returns the weights of runtime workloads: algorithm, sub-benchmark, and values by axis.

    They are normalized; the second result says whether they are approximate.
    """
    benchmark, approximate = axes_of(cccl), False
    indices_by_bench: dict[tuple[str, str], list[int]] = {}
    indices_by_axis: dict[tuple[str, str, str], list[int]] = {}
    for index, (algorithm, subbench, axes) in enumerate(points):
        indices_by_bench.setdefault((algorithm, subbench), []).append(index)
        for axis in axes:
            indices_by_axis.setdefault((algorithm, subbench, axis), []).append(index)
    result = np.ones(len(points))
    for key, indices in indices_by_axis.items():
        present = [points[index][2][key[2]] for index in indices]
        declared = (values_by_axis or {}).get(key)
        factors: Sequence[float | None] = [own_weight(declared, value) for value in present]
        if None in factors and "{io}" in key[2]:
            factors, is_unsure = _importances(present, declared, benchmark.get(key, ()))
            approximate |= is_unsure
        if None not in factors:
            result[indices] *= np.array(factors, np.float64)
    total = sum(float(result[indices].sum()) for indices in indices_by_bench.values())
    return result / total, approximate


def _importances(
    present: Sequence[str], declared: Sequence[str] | None, benchmark: Sequence[str]
) -> tuple[list[float], bool]:
    """Ranks values by the declaration, else by the benchmark if all its values are present.

    Otherwise numbers are in their order, and the result is unsure, as the second result says.
    """
    # A search of part of the benchmark's values may declare that part: CCCL ranks by it.
    if declared is None and set(benchmark) == set(present):
        declared = benchmark
    values = list(dict.fromkeys(present))
    is_unsure = declared is None or not set(present) <= set(declared)
    if declared is not None and not is_unsure:
        values = list(declared)
    else:
        with suppress(ValueError):  # names keep their measurement order
            values.sort(key=float)
    order = {value: index for index, value in enumerate(values)}
    return [importance(order[value], len(order)) for value in present], is_unsure


def known_axes(databases: Iterable[Database], declared: DeclaredAxes) -> DeclaredAxes:
    """Returns values declared by databases, else by sources; if databases differ, neither."""
    values_by_axis = dict(declared)
    first_values: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for database in databases:
        for axis, values in database.declared.items():
            values_by_axis[axis] = first_values.setdefault(axis, values)
            if not are_same(first_values[axis], values):
                values_by_axis[axis] = ()
    return values_by_axis
