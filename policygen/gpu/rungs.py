"""Rungs of a search: what each one measures, and the scores of its results."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from policygen.gpu.control import bases_among
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import LONG, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.pool import GpuPool, RungPoint
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.statistics import spot_weights
from policygen.results.rungs import Rungs
from policygen.results.tables import DeclaredAxes

MEDIAN = 1.2533
"""Ratio of the standard error of a median to that of a mean, for many samples."""
ROBUST = 1.4826
"""Ratio of a standard deviation to the median absolute deviation."""
SURE = 3.0
"""Standard errors by which a ratio may be below its true value."""
RESTART = 2.0
"""Seconds until a fresh process measures, without its inputs."""
WARM, BESIDE = 2.0, 0.00015
"""Duration of a sample: a multiple of one run plus a constant number of seconds."""


@dataclass(frozen=True, slots=True)
class TargetPoint:
    """A runtime workload with the time and noise of the baseline."""

    index: int
    """Index of the sub-benchmark."""
    runtime: RuntimeSpot
    weight: float
    seconds: float
    """Time of the baseline."""
    spread: float
    """Relative standard deviation of a sample."""
    opening: float = 0.0
    """Seconds to create the inputs and the baseline results."""
    cost: float = 0.0
    """Measured seconds of a sample with everything around it; 0 if unknown."""

    @property
    def spot(self) -> RowSpot:
        """Key of the runtime workload in the database."""
        return self.runtime.spot

    @property
    def sample_seconds(self) -> float:
        """Estimated duration of one sample."""
        return max(self.cost, (1 if self.seconds > LONG else WARM) * self.seconds + BESIDE)

    def doubt(self, rounds: int) -> float:
        """Return how far below its true value a ratio of so many samples may be."""
        return SURE * self.spread * MEDIAN / math.sqrt(rounds)


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """A workload whose baseline has run."""

    points: tuple[TargetPoint, ...]
    """The quickest first."""
    skipped: tuple[tuple[RowSpot, str], ...] = ()
    """Runtime workloads that are not measured, with reasons."""

    @property
    def heaviest(self) -> "SearchTarget":
        """Only the runtime workload that counts most; of equals the slowest."""
        return SearchTarget((max(self.points, key=lambda point: (point.weight, point.seconds)),))

    def rungs(self, rows: MeasuringSession) -> Rungs:
        """Return the rungs that the database has."""
        spots = [point.spot for point in self.points]
        return rows.rungs(spots, [point.weight for point in self.points])

    def rounds(self, aim: float, least: int, most: int) -> list[int]:
        """Return the rounds per runtime workload for a standard error of `aim`."""
        share = math.sqrt(len(self.points)) / aim
        return [
            rounds_for(point.weight * point.spread * MEDIAN * share, least, most)
            for point in self.points
        ]

    @property
    def screening_rounds(self) -> list[int]:
        """The rounds of the first rung per runtime workload."""
        return self.rounds(AIM, FEWEST, MOST)

    def error(self, rounds: Sequence[int]) -> float:
        """Return the standard error of a score from these rounds, as far as samples cause it."""
        pairs = zip(self.points, rounds, strict=True)
        variances = ((point.weight * point.spread * MEDIAN) ** 2 / count for point, count in pairs)
        return math.sqrt(sum(variances))

    def seconds(self, rounds: Sequence[int], variants: int, *, fresh: bool) -> float:
        """Estimate how long a rung takes; a fresh process creates all inputs again."""
        samples = variants + bases_among(variants)
        pairs = zip(self.points, rounds, strict=True)
        each = sum(point.sample_seconds * (count * samples + variants) for point, count in pairs)
        return each + (RESTART + sum(point.opening for point in self.points) if fresh else 0.0)


@dataclass(frozen=True, slots=True)
class RungResult:
    """Scores and failures of a rung."""

    scores: Mapping[str, float]
    """Scores of variants that ran on all runtime workloads."""
    least: Mapping[str, float]
    """The lowest ratio of each variant that ran on any."""
    failed: Mapping[str, tuple[str, str]]
    """Kind and reason."""


@dataclass(slots=True)
class Budget:
    """Time budget of a search in seconds, across all of its sessions."""

    seconds: float | None
    before: float
    """Seconds used by earlier sessions."""
    clock: Callable[[], float] = time.monotonic
    kept: float = 0.0
    """Seconds kept for what follows the search."""
    begun: float | None = None
    """When this session began; by default when the budget was made."""

    def __post_init__(self) -> None:
        """Start the clock."""
        self.begun = self.clock() if self.begun is None else self.begun

    @property
    def elapsed(self) -> float:
        """Seconds used by this session."""
        assert self.begun is not None
        return self.clock() - self.begun

    @property
    def spent(self) -> float:
        """Seconds used by all sessions."""
        return self.before + self.elapsed

    @property
    def remaining(self) -> float:
        """Seconds left; infinite without a budget."""
        spent = self.kept + self.spent
        return math.inf if self.seconds is None else max(0.0, self.seconds - spent)


# Baselines and rounds of a search


def rounds_for(error: float, least: int, most: int) -> int:
    """Return the rounds that reduce a relative error to one, within limits."""
    return min(most, max(least, math.ceil(error**2)))


def look(
    gpu: GpuPool,
    bases: Sequence[VariantFunction],
    runtimes: Sequence[Sequence[RuntimeSpot]],
    declared: DeclaredAxes,
    seed: int,
) -> SearchTarget:
    """Run only the baseline on all runtime workloads to find its time, its noise, and failures.

    `bases` and `runtimes` have one entry per sub-benchmark.
    """
    requests = [(index, runtime) for index, part in enumerate(runtimes) for runtime in part]
    results = gpu.look([RungPoint(runtime.case, bases[index]) for index, runtime in requests], seed)
    answered = list(zip(requests, results, strict=True))
    skipped = [(runtime.spot, base.skipped) for (_, runtime), base in answered if base.skipped]
    measured = [(index, runtime, base) for (index, runtime), base in answered if base.samples]
    weights = spot_weights([runtime.spot for _, runtime, _ in measured], declared)
    points = []
    for (index, runtime, base), weight in zip(measured, weights, strict=True):
        times = median(base.samples), _spread(base.samples), base.opening, base.cost
        points.append(TargetPoint(index, runtime, weight, *times))
    points.sort(key=lambda point: point.sample_seconds)
    return SearchTarget(tuple(points), tuple(skipped))


def _spread(samples: Sequence[float]) -> float:
    middle = median(samples)
    return ROBUST * median(abs(sample - middle) for sample in samples) / middle


RUNGS_SURE = 2.0
"""Number of standard errors beyond which a score is ruled out."""
PROCESS = 0.004
"""Standard deviation of a score between processes, which samples of one process do not show."""


@dataclass(frozen=True, slots=True)
class RungRule:
    """Minimum and maximum number of variants in a rung."""

    least: int
    most: int


TO_SHARPER, TO_LAST = RungRule(8, 32), RungRule(3, 6)
ALIKE = 2
"""Finalists that may differ in fine parameters alone."""


# Selection for the next rung


def survivors(
    scores: Mapping[str, float],
    error: float,
    rule: RungRule,
    kind: Callable[[str], object] | None = None,
    clear: Collection[str] = (),
) -> list[str]:
    """Return the variants that may be the best and faster than the baseline.

    Half of them are among those that `clear` the lowest allowed ratio, if so many are faster.

    `error` is the standard error of a score due to its samples. At least `rule.least` variants are
    kept, to confirm that none wins; of those of one `kind`, only the best few.
    """
    order = sorted(scores, key=lambda label: (-scores[label], label))
    if not order:
        return []
    if kind is not None:
        kinds: dict[object, list[str]] = {}
        for label in order:
            kinds.setdefault(kind(label), []).append(label)
        kept = {label for labels in kinds.values() for label in labels[:ALIKE]}
        order = [label for label in order if label in kept]
    margin = RUNGS_SURE * (error**2 + PROCESS**2) ** 0.5
    threshold = max(scores[order[0]] - margin, 1 - margin)
    open_labels = [label for label in order if scores[label] + margin >= threshold]
    count = min(rule.most, max(rule.least, len(open_labels)))
    faster = [label for label in order if label in clear and scores[label] > 1]
    return [*dict.fromkeys([*order[: count - count // 2], *faster, *order])][:count]


AIM, FEWEST, MOST = 0.006, 1, 10
"""Standard error of a score that the first rung aims for, which is about the difference between
processes, and the range of its rounds per runtime workload.
"""
SHARP, LEAST_SHARP, MOST_SHARP = 0.003, 2, 30
"""The same for the sharper rung."""
SURE_ERROR, LEAST_SURE = 0.002, 2
"""The same for each process of the last rung: less than the difference between processes."""


@dataclass(frozen=True, slots=True)
class FinalPlan:
    """How many variants the last rungs measure in which rounds, and how long that takes."""

    sharper: RungRule
    sharper_rounds: Sequence[int]
    last: RungRule
    last_rounds: Sequence[int]
    seconds: float

    @classmethod
    def within(
        cls, remaining: float, target: SearchTarget, processes: int, most_rounds: int
    ) -> "FinalPlan":
        """FinalPlan for so many seconds, with fewer variants where they do not suffice."""
        rounds = target.rounds(SURE_ERROR, min(LEAST_SURE, most_rounds), most_rounds)
        sharp = target.rounds(SHARP, LEAST_SHARP, MOST_SHARP)
        last, sharper = TO_LAST.most, TO_SHARPER.most

        def seconds() -> float:
            fresh = processes * target.seconds(rounds, last, fresh=True)
            return fresh + target.seconds(sharp, sharper, fresh=True)

        while (sharper, last) != (TO_SHARPER.least, TO_LAST.least) and seconds() > remaining:
            sharper = max(TO_SHARPER.least, sharper - 4)
            last = max(TO_LAST.least, last - (sharper < 3 * last))
        rules = RungRule(TO_SHARPER.least, sharper), RungRule(TO_LAST.least, last)
        return cls(rules[0], sharp, rules[1], rounds, seconds())
