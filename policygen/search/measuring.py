"""One rung of some variants of a workload: measured by a GPU, written as it comes, scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policygen.measure.device import VariantFunction
from policygen.measure.outcomes import Failure
from policygen.results.provenance import LAST
from policygen.search.gpu import Asked, Functions, MeasuresRungs, PointFound, RungPoint
from policygen.search.rung_rows import RungRows
from policygen.search.target import SearchTarget, TargetPoint


def in_all(functions: Sequence[Functions]) -> list[str]:
    """Variants that all sub-benchmarks have, in the order in which they were asked for."""
    first, *more = functions
    return [label for label in first if all(label in lot for lot in more)]


@dataclass(frozen=True, slots=True)
class RungTask:
    """What a rung measures."""

    rung: int
    bases: Sequence[VariantFunction]
    """One for each sub-benchmark."""
    functions: Sequence[Functions]
    """By label, for each sub-benchmark."""
    rounds: Sequence[int]
    """For each runtime workload of the target."""
    seed: int
    noise: bool = False
    """Whether base tells of the noise from process to process."""

    def points(self, target: SearchTarget) -> list[RungPoint]:
        """What a GPU is asked: variants that all sub-benchmarks have."""
        labels = in_all(self.functions)
        return [
            RungPoint(
                point.case,
                self.bases[point.index],
                {label: self.functions[point.index][label] for label in labels},
                rounds,
            )
            for point, rounds in zip(target.points, self.rounds, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class RungFound:
    """What became of variants."""

    scores: Mapping[str, float]
    """Of those that ran on all runtime workloads."""
    failed: Mapping[str, Failure]


def measure_rung(
    gpu: MeasuresRungs,
    rows: RungRows,
    target: SearchTarget,
    task: RungTask,
    fresh: Callable[[], int],
    asked: Asked,
) -> RungFound:
    """Writes what a GPU finds on each runtime workload when it has it; then the scores.

    `fresh` numbers a process: several GPUs have one each.
    """
    failed: dict[str, Failure] = {}
    scores: dict[str, float] = {}
    processes: dict[int, int] = {}
    together = task.rung == LAST
    for one in gpu.rung(task.points(target), task.seed, asked, together=together):
        point = target.points[one.point]
        if one.part not in processes:
            processes[one.part] = fresh()
        process = processes[one.part]
        failed |= one.failed
        for label, ratio in _written(rows, point, one, task, process).items():
            scores[label] = scores.get(label, 0.0) + point.weight * ratio
    return RungFound(
        {label: score for label, score in scores.items() if label not in failed}, failed
    )


def _written(
    rows: RungRows, point: TargetPoint, found: PointFound, task: RungTask, process: int
) -> dict[str, float]:
    """Base's time over each variant's."""
    spot, base = point.spot, task.bases[point.index].variant
    for label, failure in found.failed.items():
        rows.fail(spot, label, failure, found.elapsed.get(label, 0.0))
    if not found.samples:
        return {}
    rows.note(found.repeated, found.throttled, found.restarts)
    centers = rows.write(spot, task.rung, process, found.samples, found.elapsed)
    if task.noise:
        rows.noise(spot, process, found.samples)
    return {label: centers[base] / center for label, center in centers.items() if label != base}
