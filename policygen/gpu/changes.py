"""A workload before and after a change: its functions and its measurements."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from policygen.gpu.control import Controller
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.judgments import ComparedTimes, Judge, JudgedTimes
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import RuntimeSpot, WorkloadTask, measure_workload
from policygen.gpu.statistics import PointTimes, times_of
from policygen.model.workload import BASE, Point
from policygen.results.export import quantile_ratios
from policygen.results.tables import DeclaredAxes
from policygen.steps import Progress

AFTER, COPY = "after_1", "before_1"
"""Labels beside `base`, the side before; databases require variant labels."""


@dataclass(frozen=True, slots=True)
class ChangePart:
    """A sub-benchmark of a workload, compiled with the headers of both sides."""

    before: VariantFunction
    after: VariantFunction
    copy: VariantFunction
    """Copy of the side before in its own file, for the noise of equal code."""
    points: tuple[RuntimeSpot, ...]
    declared: DeclaredAxes


@dataclass(slots=True)
class ChangedWorkload:
    """Measurement state of a workload."""

    point: Point
    parts: tuple[ChangePart, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    """Runtime workloads that are not measured, with reasons."""
    failed: Failure | None = None
    """Failure of the side after."""
    seconds: float = 0.0
    """Recent duration of one process per runtime workload."""

    @property
    def spots(self) -> list[RuntimeSpot]:
        """Runtime workloads that can be measured."""
        spots = (spot for part in self.parts for spot in part.points)
        return [spot for spot in spots if str(spot) not in self.skipped]

    def times(self, rows: MeasuringSession) -> list[PointTimes]:
        """Return the times in the database; empty until all runtime workloads are measured."""
        spots = [spot.spot for spot in self.spots]
        if any(AFTER not in rows.times(spot) for spot in spots):
            return []
        declared = {key: values for part in self.parts for key, values in part.declared.items()}
        return times_of(rows, spots, declared)


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A runtime workload with its weight, times, and verdict."""

    times: PointTimes
    judged: JudgedTimes

    @property
    def seconds(self) -> tuple[float, float]:
        """Median seconds before and after."""
        before, after = zip(*self.times.variants[AFTER], strict=True)
        return median(before), median(after)


@dataclass(frozen=True, slots=True)
class JudgedWorkload:
    """Verdicts on the score and on each runtime workload."""

    score: JudgedTimes
    points: tuple[JudgedPoint, ...]

    @property
    def clear(self) -> bool:
        """Whether more processes would not change the verdicts."""
        return self.score.clear and all(point.judged.clear for point in self.points)


def judge_workload(judge: Judge, times: Sequence[PointTimes]) -> JudgedWorkload | None:
    """Judge a workload; None until each runtime workload has two processes."""
    compared = [_compared_times(point_times) for point_times in times]
    judged = [judge.judge(ratios) for ratios in compared]
    decided = [point for point in judged if point is not None]
    if not decided or len(decided) < len(judged):
        return None
    weights = [point_times.weight for point_times in times]
    score = judge.judge(
        ComparedTimes(
            _weighted(weights, [ratios.ratios for ratios in compared]),
            _weighted(weights, [ratios.selves for ratios in compared]),
            sum(weight * ratios.step for weight, ratios in zip(weights, compared, strict=True)),
        )
    )
    assert score is not None
    points = (
        JudgedPoint(point_times, verdict)
        for point_times, verdict in zip(times, decided, strict=True)
    )
    return JudgedWorkload(score, tuple(points))


def unclear_spots(change: ChangedWorkload, judged: JudgedWorkload | None) -> Iterator[RuntimeSpot]:
    """Yield the runtime workloads that need more processes."""
    if judged is None:
        yield from change.spots
        return
    unclear = [not point.judged.clear for point in judged.points]
    # If each of them is clear but their mean is not, all of them contribute to it.
    measure_all = not any(unclear) and not judged.score.clear
    for spot, is_open in zip(change.spots, unclear, strict=True):
        if is_open or measure_all:
            yield spot


def _compared_times(times: PointTimes) -> ComparedTimes:
    selves = times.ratios(COPY) if COPY in times.variants else ()
    return ComparedTimes(times.ratios(AFTER), selves, _step(times))


def _step(times: PointTimes) -> float:
    """Return the smallest relative difference between two times: the clock resolution.

    Without rounding, this approaches zero as the number of times grows.
    """
    pairs = (pair for label in (AFTER, COPY) for pair in times.variants.get(label, ()))
    centers = sorted({seconds for pair in pairs for seconds in pair})
    steps = [later - earlier for earlier, later in pairwise(centers)]
    return min(steps) / centers[0] if steps else 0.0


def _weighted(weights: Sequence[float], ratios_by_point: Sequence[Sequence[float]]) -> list[float]:
    """Return scores by process; runtime workloads that became clear early have fewer processes."""
    if not all(ratios_by_point):
        return []
    process_count = min(map(len, ratios_by_point))
    processes = zip(*(ratios[:process_count] for ratios in ratios_by_point), strict=True)
    return [
        sum(weight * ratio for weight, ratio in zip(weights, process_ratios, strict=True))
        for process_ratios in processes
    ]


def quantiles_of(rows: MeasuringSession, spot: RuntimeSpot) -> tuple[float, ...]:
    """Return the ratio before over after at each quantile, over the samples of all processes."""
    samples = rows.samples(spot.spot)
    if not {BASE, AFTER} <= samples.keys():
        return ()
    return quantile_ratios(samples[BASE], samples[AFTER])


def failures_of(failed: Mapping[str, Failure]) -> Failure | None:
    """Return the failure of the side after; a failure of the copy concerns the side before."""
    return failed.get(AFTER)


LOOKS = (5, 8, 12, 20)
"""Numbers of processes after which to check which verdicts are clear."""


@dataclass(slots=True)
class ChangeMeasuring:
    """Measures changes within a time budget."""

    controller: Controller
    rows: MeasuringSession
    judge: Judge
    looks: Sequence[int]
    rounds: int
    seed: int
    budget: float | None = None
    """Seconds."""
    progress: Progress | None = None
    _has_measured: bool = field(init=False, default=False)
    late: bool = field(init=False, default=False)
    """Whether something was skipped for lack of time."""

    def run(self, changes: Sequence[ChangedWorkload]) -> list[JudgedWorkload | None]:
        """Measure all changes, repeat those that are not clear, and return the verdicts."""
        started = time.monotonic()
        for processes in self.looks:
            for change in changes:
                if change.failed is None:
                    self._look(change, processes, started)
        return [self.judged(change) for change in changes]

    def judged(self, change: ChangedWorkload) -> JudgedWorkload | None:
        """Judge a workload by the measurements so far."""
        times = change.times(self.rows)
        return judge_workload(self.judge, times) if times else None

    def _look(self, change: ChangedWorkload, processes: int, started: float) -> None:
        spots = list(unclear_spots(change, self.judged(change)))
        if not spots:
            return
        if self.budget is not None:
            remaining = self.budget - (time.monotonic() - started)
            if remaining <= change.seconds * len(spots):
                self.late = True
                return
        for part in change.parts:
            part_spots = [spot for spot in part.points if spot in spots]
            if part_spots and change.failed is None:
                self._measure(change, part, part_spots, processes)

    def _measure(
        self, change: ChangedWorkload, part: ChangePart, spots: Sequence[RuntimeSpot], count: int
    ) -> None:
        started = time.monotonic()
        if self._has_measured:
            self.controller.restart()  # each look begins with a fresh process, as the first did
        self._has_measured = True
        task = WorkloadTask(part.before, (part.after, part.copy), tuple(spots), part.declared)
        findings = measure_workload(
            self.controller,
            self.rows,
            task,
            rounds=self.rounds,
            seed=self.seed,
            processes=count,
            progress=self.progress,
        )
        change.skipped |= findings.skipped
        change.failed = failures_of(findings.failed)
        change.seconds = (time.monotonic() - started) / len(spots)


# Numbers of processes


def looks_until(most: int) -> tuple[int, ...]:
    """Return the numbers of processes after which to check, up to `most`."""
    return (*(count for count in LOOKS if count < most), most)
