"""A benchmark's tuning parameters and workloads."""

from math import prod
from typing import Literal

from pydantic import Field, computed_field

from policygen.model.records import Derived, Document, Problem, Record


class ParameterRange(Record):
    """One `%RANGE%` line; `end` belongs to the range."""

    macro: str
    label: str
    start: int
    end: int
    step: int = Field(ge=1)

    @property
    def values(self) -> range:
        """The points of the range."""
        return range(self.start, self.end + 1, self.step)


class Axis(Record):
    """One axis of a sub-benchmark; its database column is named `Elements{io}[pow2]`."""

    name: str
    kind: Literal["type", "int64", "float64", "string"]
    flags: str = ""
    """`pow2` when the values are exponents."""
    values: tuple[str, ...]
    """NVBench's input strings; type axes give the type's short name: `I8`, `F32`."""
    spelling: str
    """The list as the source has it: `integral_types`, `nvbench::range(16, 28, 4)`."""
    complete: bool = True
    """False if the source alone does not show the values."""
    conditions: tuple[str, ...] = ()
    """Preprocessor conditions, taken as true, under which the values are these."""

    @property
    def compile_time(self) -> bool:
        """Whether each value needs its own binary."""
        return "{ct}" in self.name


class SubBenchmark(Record):
    """One `NVBENCH_BENCH…` registration."""

    name: str
    axes: tuple[Axis, ...]
    source: str
    line: int
    conditions: tuple[str, ...] = ()
    """Preprocessor conditions, taken as true, under which it is registered."""


class Benchmark(Derived):
    """One benchmark: its search space and its sub-benchmarks."""

    name: str
    source: str
    parameters: tuple[ParameterRange, ...]
    subbenches: tuple[SubBenchmark, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def variants(self) -> int:
        """The number of variants in the search space, without base."""
        return (
            prod(len(parameter.values) for parameter in self.parameters) if self.parameters else 0
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ct_axes(self) -> dict[str, tuple[str, ...]]:
        """Compile-time axes; CCCL requires that all sub-benchmarks have the same."""
        return self._axes(compile_time=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rt_axes(self) -> dict[str, tuple[str, ...]]:
        """Runtime axes of all sub-benchmarks; the first declaration of an axis counts."""
        return self._axes(compile_time=False)

    @property
    def workloads(self) -> int:
        """The number of points of the compile-time axes."""
        return prod(len(values) for values in self.ct_axes.values())

    @property
    def runtime_workloads(self) -> int:
        """The number of points of the runtime axes in all sub-benchmarks."""
        return sum(
            prod(len(axis.values) for axis in sub.axes if not axis.compile_time)
            for sub in self.subbenches
        )

    def _axes(self, *, compile_time: bool) -> dict[str, tuple[str, ...]]:
        values_by_axis: dict[str, tuple[str, ...]] = {}
        for sub in self.subbenches:
            for axis in sub.axes:
                if axis.compile_time is compile_time:
                    values_by_axis.setdefault(axis.name, axis.values)
        return values_by_axis


class BenchmarkList(Document):
    """What `policygen bench --json` prints."""

    format: Literal["policygen/bench/1"] = "policygen/bench/1"
    ctk: str | None = None
    cccl: str | None = None
    benchmarks: tuple[Benchmark, ...]
    problems: tuple[Problem, ...] = ()
