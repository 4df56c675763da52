"""Translates workloads recorded in a tuning database to the names of another CUB version."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from policygen.bindings.load import axis_type, axis_values, bound, is_constant, library_types
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.own_workload import PREFIX
from policygen.model.trees import OTHERS, BoundVersion, library_of
from policygen.model.workload import axis_name, shortened

LIBRARIES = frozenset(OTHERS.values())
# v3.0.3, v3.6.0.dev-204-g571f2fc3bc, 3.2.0-rc1
_VERSION = re.compile(r"v?([0-9]{1,9}\.[0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9])")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A measured benchmark as it was at the time, and the point of its compile-time axes."""

    benchmark: BenchmarkBinding
    version: BoundVersion
    """The CUB version of the measurement."""
    workload: dict[str, str]
    """Value by current axis name, without its decoration."""


def recorded(name: str, workload: Mapping[str, str], version: BoundVersion) -> Recorded:
    """Interprets a row's benchmark and workload, `T{ct}` included, in its CCCL version."""
    benchmark = benchmark_of(name, version)
    current_name = {old: axis for axis, old in benchmark.renamed.items()}
    value_by_name = {axis_name(axis): value for axis, value in workload.items()}
    values = {current_name.get(axis, axis): value for axis, value in value_by_name.items()}
    if unknown := sorted(values.keys() - benchmark.axes.keys()):
        raise InputError(
            f"{name} of {version.title} has no axis {', '.join(unknown)}",
            f"Its compile-time axes: {', '.join(benchmark.axes) or 'none'}",
        )
    return Recorded(benchmark, version, values)


def version_of(cccl: str) -> str:
    """Extracts a version: `v3.6.0.dev-204-g571f2fc3bc` is 3.6.0, `rocprim@4.2.0` is unchanged.

    For results of another library without a version, this is the newest bound version.
    """
    library, has_library, version = cccl.rpartition("@")
    if has_library and library == library_of(cccl) in LIBRARIES:
        return f"{library}@{version or library_types(library).compiled[-1]}"
    match = _VERSION.match(cccl)
    if match is None:
        raise InputError(f"{shortened(cccl)} is not a CCCL version", "Write it like v3.0.3.")
    return match[1]


def translate_workload(measured: Recorded, version: BoundVersion) -> dict[str, str]:
    """Translates a workload to another CUB version; raises if it cannot be expressed there."""
    benchmark = benchmark_of(measured.benchmark.name, version)
    workload = {}
    for axis, value in measured.workload.items():
        if axis not in benchmark.axes:
            if axis in measured.benchmark.ignored:
                continue  # no tuning key depended on it
            raise InputError(f"{benchmark.name} of {version.title} has no axis {axis}")
        workload[axis] = _value_name(benchmark, axis, value, measured, version)
    for axis in (axis for axis in benchmark.axes if axis not in workload):
        values = axis_values(benchmark, axis, version)
        if len(values) > 1 and axis not in benchmark.ignored:
            raise InputError(
                f"{benchmark.name} of {version.title} has the axis {axis}, but the database does"
                " not",
                f"It is one of {', '.join(values)}.",
            )
        workload[axis] = values[0]
    return {axis: workload[axis] for axis in benchmark.axes}


def _value_name(
    benchmark: BenchmarkBinding, axis: str, value: str, measured: Recorded, version: BoundVersion
) -> str:
    """Finds the name of a value's type: complex<float> was once `C64` and is now `C32`."""
    names = axis_values(benchmark, axis, version)
    if is_constant(value):
        return value
    original_type = axis_type(value, measured.version)
    for name in names:
        if not is_constant(name) and axis_type(name, version).cpp == original_type.cpp != "void":
            return name
    older, newer = benchmark.renamed, measured.benchmark.renamed
    for name in names:
        if value == older.get(name) or name == newer.get(value):
            return name
        if original_type.cpp == "void" and value == name:
            return name
    raise InputError(
        f"{axis} of {benchmark.name} has no value {value} in {version.title}",
        f"It has: {', '.join(names)}",
    )


def benchmark_of(name: str, version: BoundVersion) -> BenchmarkBinding:
    """Returns a benchmark of one CUB version."""
    benchmarks = (row for algorithm in bound(version) for row in algorithm.benchmarks)
    for benchmark in benchmarks:
        if benchmark.name == name:
            return benchmark
    is_own = name.startswith(PREFIX)
    remedy = "It is your own workload: name its file with --workload FILE." if is_own else None
    raise InputError(f"{name} is not bound for {version.title}", remedy)
