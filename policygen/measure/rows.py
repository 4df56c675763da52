"""Measures the variants of a workload in fresh processes, and writes each row when it is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policygen.measure.device import RuntimeCase, VariantFunction
from policygen.measure.outcomes import Failure, Rounds
from policygen.measure.runs import RuntimePoint
from policygen.measure.statistics import PointTimes
from policygen.model.labels import BASE

Told = Callable[[int, int], None]
"""Is told how many steps of how many are done."""


class Asks(Protocol):
    """What is asked of one GPU: a `Controller`."""

    @property
    def restarts(self) -> int:
        """Processes that were started after the first one."""

    def open(
        self, case: RuntimeCase, base: VariantFunction, *, checking: bool = True
    ) -> str | None:
        """Makes the inputs; why not, where that cannot be."""

    def rounds(self, variants: Sequence[VariantFunction], count: int, seed: int) -> Rounds:
        """Rounds of base and of those variants that are right."""

    def restart(self) -> None:
        """Starts a fresh process."""


class Keeps(Protocol):
    """What is written of a runtime workload: a database, or nothing."""

    def record(self, point: "PointToMeasure", variant: str, rounds: Rounds) -> None:
        """A row, or more samples of one."""

    def noise(self, point: "PointToMeasure", process: int, samples: Sequence[float]) -> None:
        """What base took in a fresh process."""

    def fail(self, point: "PointToMeasure", variant: str, failure: Failure) -> None:
        """Why there is no row."""


@dataclass(frozen=True, slots=True)
class PointToMeasure:
    """A runtime workload, with the functions that run it."""

    subbench: str
    point: RuntimePoint
    weight: float
    case: RuntimeCase
    base: VariantFunction
    functions: Mapping[str, VariantFunction]
    """By label, without base."""

    @property
    def name(self) -> str:
        """As a table shows it."""
        return ", ".join(f"{axis}={value}" for axis, value in self.point.values.items())


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    processes: int
    rounds: int
    seed: int


@dataclass
class MeasuredPoints:
    """What came of it."""

    samples: dict[int, dict[str, list[tuple[float, ...]]]] = field(default_factory=dict)
    """By place of the point and label what each process took."""
    failed: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    """Points that base does not run, and why."""
    repeated: int = 0
    throttled: int = 0

    def points(self, asked: Sequence[PointToMeasure]) -> list[PointTimes]:
        """As statistics take them; weights are those of what was measured."""
        there = [number for number in range(len(asked)) if number not in self.skipped]
        total = sum(asked[number].weight for number in there)
        return [
            PointTimes(
                asked[number].subbench,
                asked[number].point.values,
                asked[number].weight / total,
                self.samples[number][BASE],
                {
                    label: times
                    for label, times in self.samples[number].items()
                    if label != BASE and label not in self.failed
                },
            )
            for number in there
        ]


def measure_points(
    gpu: Asks, asked: Sequence[PointToMeasure], effort: Effort, keeps: Keeps, told: Told
) -> MeasuredPoints:
    """Measures all points in each of several processes; a variant that fails once is left out.

    Rows are written as soon as a process has them, and grow with the next one.
    """
    found = MeasuredPoints(samples={number: {} for number in range(len(asked))})
    done = 0
    for process in range(effort.processes):
        if process:
            gpu.restart()
        for number, point in enumerate(asked):
            told(done, effort.processes * len(asked))
            done += 1
            if number not in found.skipped:
                _measure(gpu, number, point, process, effort, keeps, found)
    told(done, done)
    return found


def _measure(
    gpu: Asks,
    number: int,
    point: PointToMeasure,
    process: int,
    effort: Effort,
    keeps: Keeps,
    found: MeasuredPoints,
) -> None:
    if why := gpu.open(point.case, point.base):
        found.skipped[number] = why
        return
    left = [one for label, one in point.functions.items() if label not in found.failed]
    # Another order in each process; a seed of its own for each point.
    rounds = gpu.rounds(left, effort.rounds, effort.seed + 1000 * process + number)
    found.repeated += rounds.repeated
    found.throttled += rounds.throttled
    for label, failure in rounds.failed.items():
        found.failed[label] = failure
        keeps.fail(point, label, failure)
    for label, times in rounds.samples.items():
        found.samples[number].setdefault(label, []).append(times)
        keeps.record(point, label, rounds)
    keeps.noise(point, process, rounds.samples[BASE])


class Forgets:
    """Keeps nothing."""

    def record(self, point: PointToMeasure, variant: str, rounds: Rounds) -> None:
        """Nothing."""

    def noise(self, point: PointToMeasure, process: int, samples: Sequence[float]) -> None:
        """Nothing."""

    def fail(self, point: PointToMeasure, variant: str, failure: Failure) -> None:
        """Nothing."""


def cases(
    inputs: str, points: Sequence[RuntimePoint], buffers: int, sizes: int
) -> Iterator[RuntimeCase]:
    """Makes what a device opens of runtime workloads."""
    return (RuntimeCase(inputs, point.numbers, buffers, sizes) for point in points)
