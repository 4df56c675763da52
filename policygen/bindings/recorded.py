"""Workloads as a tuning database recorded them, in the words of the CUB version that is asked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from policygen.bindings.load import (
    axis_type,
    axis_values,
    bound,
    is_constant,
    library_types,
)
from policygen.bindings.own_workloads import PREFIX
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding
from policygen.model.trees import OTHERS, library_of
from policygen.model.trees import plain as plain_version
from policygen.model.workload import axis_name, shortened

LIBRARIES = frozenset(OTHERS.values())
# v3.0.3, v3.6.0.dev-204-g571f2fc3bc, 3.2.0-rc1
_VERSION = re.compile(r"v?([0-9]{1,9}\.[0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9])")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was measured: the benchmark as it was then, and the point of its compile-time axes."""

    benchmark: BenchmarkBinding
    version: str
    """Of CUB, then."""
    workload: dict[str, str]
    """By the axes' names of today, without their decoration."""


def recorded(name: str, workload: Mapping[str, str], cccl: str) -> Recorded:
    """A row's benchmark and workload, `T{ct}` and all, understood by the recorded CCCL version."""
    version = version_of(cccl)
    benchmark = benchmark_of(name, version)
    older = {old: axis for axis, old in benchmark.renamed.items()}
    plain = {axis_name(axis): value for axis, value in workload.items()}
    values = {older.get(axis, axis): value for axis, value in plain.items()}
    if unknown := sorted(values.keys() - benchmark.axes.keys()):
        raise InputError(
            f"{name} of CUB {plain_version(version)} has no axis {', '.join(unknown)}",
            f"Its compile-time axes: {', '.join(benchmark.axes) or 'none'}",
        )
    return Recorded(benchmark, version, values)


def version_of(cccl: str) -> str:
    """`v3.6.0.dev-204-g571f2fc3bc` as 3.6.0, `rocprim@4.2.0` as it stands.

    Results of another library may not say its version: the newest that is bound is taken then.
    """
    library, named, version = cccl.rpartition("@")
    if named and library == library_of(cccl) in LIBRARIES:
        return f"{library}@{version or library_types(library).compiled[-1]}"
    match = _VERSION.match(cccl)
    if match is None:
        raise InputError(f"{shortened(cccl)} is no CCCL version", "It looks like v3.0.3.")
    return match[1]


def today(measured: Recorded, version: str) -> dict[str, str]:
    """The same workload as another version of CUB calls it; one that it cannot mean is an error."""
    benchmark = benchmark_of(measured.benchmark.name, version)
    found = {}
    for axis, value in measured.workload.items():
        if axis not in benchmark.axes:
            if axis in measured.benchmark.ignored:
                continue  # no key depended on it
            raise InputError(f"{benchmark.name} of CUB {plain_version(version)} has no axis {axis}")
        found[axis] = _renamed(benchmark, axis, value, measured, version)
    for axis in (axis for axis in benchmark.axes if axis not in found):
        values = axis_values(benchmark, axis, version)
        if len(values) > 1 and axis not in benchmark.ignored:
            raise InputError(
                f"{benchmark.name} of CUB {plain_version(version)} has the axis {axis},"
                " and the database has none",
                f"It is one of {', '.join(values)}.",
            )
        found[axis] = values[0]
    return {axis: found[axis] for axis in benchmark.axes}


def _renamed(
    benchmark: BenchmarkBinding, axis: str, value: str, measured: Recorded, after: str
) -> str:
    """complex<float> was `C64` once, and is `C32` now; names of the same type are one value."""
    known = axis_values(benchmark, axis, after)
    if is_constant(value):
        return value
    then = axis_type(value, measured.version)
    for name in known:
        if not is_constant(name) and axis_type(name, after).cpp == then.cpp != "void":
            return name
    older, newer = benchmark.renamed, measured.benchmark.renamed
    for name in known:
        if value == older.get(name) or name == newer.get(value):
            return name
        if then.cpp == "void" and value == name:
            return name
    raise InputError(
        f"{axis} of {benchmark.name} has no value {value} in CUB {plain_version(after)}",
        f"It has: {', '.join(known)}",
    )


def benchmark_of(name: str, version: str) -> BenchmarkBinding:
    """A benchmark as one version of CUB has it."""
    for algorithm in bound(version):
        for benchmark in algorithm.benchmarks:
            if benchmark.name == name:
                return benchmark
    own = "It is a workload of one's own: name its file with --workload FILE."
    raise InputError(
        f"{name} is not bound for CUB {plain_version(version)}",
        own if name.startswith(PREFIX) else None,
    )
