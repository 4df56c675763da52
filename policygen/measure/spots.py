"""The runtime workloads of a sub-benchmark: as its table names them, and as a device opens them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from policygen.measure.device import RuntimeCase
from policygen.measure.run import RuntimeSpot
from policygen.measure.runs import RuntimePoint, WorkloadRun
from policygen.measure.tables import RowSpot
from policygen.results.declared import DeclaredAxes
from policygen.results.weighed import WeighedValues

Keeps = Callable[[Mapping[str, str]], bool]
"""Whether a runtime workload is meant, by the values of its axes."""


def all_points(_: Mapping[str, str]) -> bool:
    """Each of them is meant."""
    return True


def row_spots(run: WorkloadRun, keeps: Keeps = all_points) -> list[RowSpot]:
    """How the database names them."""
    return [_row_spot(run, point) for point in run.points if keeps(point.values)]


def runtime_spots(run: WorkloadRun, inputs: Path, keeps: Keeps = all_points) -> list[RuntimeSpot]:
    """With the object that makes their inputs."""
    buffers, sizes = len(run.binding.buffers), len(run.binding.sizes)
    return [
        RuntimeSpot(_row_spot(run, point), RuntimeCase(str(inputs), point.numbers, buffers, sizes))
        for point in run.points
        if keeps(point.values)
    ]


def declared_axes(run: WorkloadRun) -> DeclaredAxes:
    """All values of the runtime axes, as the benchmark declares them, with weights of their own."""
    name, subbench = run.benchmark.name, run.binding.subbench
    weights = run.binding.weights
    return {
        (name, subbench, axis): WeighedValues.of(values, weights.get(axis))
        for axis, values in run.axes.items()
    }


def _row_spot(run: WorkloadRun, point: RuntimePoint) -> RowSpot:
    types = {f"{axis}{{ct}}": value for axis, value in run.workload.values.items()}
    return RowSpot(run.benchmark.name, run.binding.subbench, {**types, **point.values})
