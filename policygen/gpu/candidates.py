"""One workload of a search: its space, the variants it has tried, and their outcomes."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

from policygen.errors import InputError, PolicygenError
from policygen.gpu.compiling import MOST
from policygen.gpu.control import PointResult
from policygen.gpu.database_writer import OF_KEY, RowSpot
from policygen.gpu.device import Failure, VariantFunction
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.opened import OpenedWorkload
from policygen.gpu.pool import Asked, GpuPool, RungPoint
from policygen.gpu.rounds import RuntimeSpot
from policygen.gpu.rungs import FinalPlan, RungResult, SearchTarget
from policygen.gpu.space import SearchSpace, SpaceCounts
from policygen.gpu.strategies import FINE, LENIENT, AskedVariant, Strategy, goal_of
from policygen.gpu.tools import Sanitizes, WatchedWorkload, memcheck_of
from policygen.model.results import Rules
from policygen.model.searches import Ended, Memcheck
from policygen.model.workload import BASE, Point, point_name
from policygen.process import threads
from policygen.results.own_tables import LAST, MEMCHECKS, SEARCH_TABLES, SEARCHES, workload_text
from policygen.results.tables import DeclaredAxes
from policygen.steps import Note

Functions = Mapping[str, tuple[VariantFunction, ...]]
"""By label, the functions of a variant: one for each sub-benchmark."""
Reason = tuple[str, str]
"""Kind of failure and reason."""
Reasons = Mapping[str, Reason]
"""By label."""


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """Objects of some variants of a workload."""

    bases: tuple[VariantFunction, ...] = ()
    """Baseline of each sub-benchmark; only where no variants were requested."""
    functions: Functions = field(default_factory=dict)
    runtimes: tuple[tuple[RuntimeSpot, ...], ...] = ()
    failed: Reasons = field(default_factory=dict)
    problem: str | None = None
    """Reason why the workload cannot be compiled at all."""


@dataclass(slots=True)
class WorkloadSearch:
    """Search state of a workload."""

    point: Point
    opened: OpenedWorkload
    space: SearchSpace
    counts: SpaceCounts
    strategy: Strategy
    name: str
    """Name of the strategy."""
    declared: DeclaredAxes
    spots: Sequence[RowSpot]
    """All runtime workloads, as the database names them."""
    base: str | None
    """Label of the variant that equals CUB's default, if there is one."""
    target: SearchTarget | None = None
    made: CompiledBatch = field(default_factory=CompiledBatch)
    """The baseline and the variants that are compiled in this session."""
    tried: set[str] = field(default_factory=set)
    """Labels requested in all sessions."""
    waiting: list[str] = field(default_factory=list)
    """Requested labels that there was no time for."""
    scores: dict[str, float] = field(default_factory=dict)
    """Scores of the first rung."""
    least: dict[str, float] = field(default_factory=dict)
    """The lowest ratio on a runtime workload in the first rung."""
    dropped: dict[str, float] = field(default_factory=dict)
    """Variants that were too slow on a runtime workload to be measured on all, with that ratio."""
    heaviest: dict[str, float] = field(default_factory=dict)
    """First ratios on the heaviest runtime workload."""
    behind: float = 0.0
    """How far behind the best there a variant may be, the further the less it counts."""
    sharper: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    """Scores of the finalists."""
    failed: dict[str, Reason] = field(default_factory=dict)
    exhausted: bool = False
    problem: str | None = None
    weight: float = 1.0
    """How much a gain counts in a campaign."""
    allowed: float = Rules().worst_allowed
    """The lowest ratio on a runtime workload with which a variant may be chosen."""
    seconds: float = 0.0
    """GPU seconds."""
    units: list[tuple[int, float]] = field(default_factory=list)
    """Variants and seconds of each compiled unit; base is one of one variant."""
    compiled: list[CompiledBatch] = field(default_factory=list)
    """Units that wait for the baseline."""
    ready: list[str] = field(default_factory=list)
    """Compiled variants that were not measured."""
    passed: list[str] = field(default_factory=list)
    """Variants that are good enough after their first sample, the best first."""
    refused: dict[str, Reason] = field(default_factory=dict)
    """Variants that do not compile and are not in the database yet."""

    @property
    def title(self) -> str:
        """Name in words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
        return point_name(self.point)

    @property
    def has_base(self) -> bool:
        """Whether the baseline is compiled."""
        return bool(self.made.bases)

    def keep(self, compiled: CompiledBatch) -> None:
        """Add compiled variants."""
        self.made = replace(self.made, functions={**self.made.functions, **compiled.functions})

    @property
    def is_open(self) -> bool:
        """Whether there are variants left to try."""
        return self.problem is None and (bool(self.waiting) or not self.exhausted)

    def kind(self, label: str) -> object:
        """Return what variants have in common that differ in fine parameters alone."""
        values = zip(self.space.ranges.values(), self.space.values(label) or (), strict=False)
        return tuple(value for possible, value in values if len(possible) < FINE)

    @property
    def leading(self) -> tuple[str, float] | None:
        """Variant with the best score of the latest rung, of those that the rules allow if any."""
        if final := self.last or self.sharper:
            return max(final.items(), key=lambda item: item[1])
        label = max(self.scores, key=self.goal, default=None)
        return None if label is None else (label, self.scores[label])

    def goal(self, label: str) -> float:
        """Return what the search maximizes."""
        if label not in self.scores:
            return self.dropped[label] if label in self.dropped else self.heaviest[label]
        return goal_of(self.scores[label], self.least.get(label, 1.0), self.allowed)

    def clear(self, least: Mapping[str, float]) -> set[str]:
        """Return the variants that noise does not bring below the allowed ratio."""
        return {label for label, ratio in least.items() if ratio >= self.allowed + LENIENT}

    @property
    def measured(self) -> set[str]:
        """Return the variants that have a score, or were too slow for one."""
        return {*self.scores, *self.dropped, *self.last}

    @property
    def is_measured(self) -> bool:
        """Whether a variant was measured."""
        return bool(self.scores or self.heaviest) and not self.problem

    @property
    def candidates(self) -> list[str]:
        """Return what may be confirmed; also what only passed, if no score is above base's."""
        labels = [*self.scores]
        if max(self.scores.values(), default=0.0) <= 1:
            labels += self.heaviest.keys() - self.scores.keys() - self.dropped.keys()
        return [label for label in labels or self.dropped if label not in self.failed]

    @property
    def promise(self) -> float:
        """Return what more time for this workload is worth: its weight times its gain so far."""
        gains = [self.goal(label) - 1 for label in self.scores]
        return self.weight * (max([0.0, *gains]) + PROMISE) if self.is_open else 0.0

    @property
    def limit(self) -> float:
        """Return the ratio on the heaviest runtime workload under which nothing can win."""
        best = self.leading
        behind = self.heaviest.get(best[0], 0.0) - self.behind if best else 0.0
        return max(self.allowed - LENIENT, behind)

    @property
    def wrong(self) -> int:
        """Number of variants with wrong results."""
        return sum(kind == "wrong" for kind, _ in self.failed.values())

    def ask(self, count: int) -> list[str]:
        """Return labels to try next; fewer, or none, at the end."""
        labels, self.waiting = self.waiting[:count], self.waiting[count:]
        if (missing := count - len(labels)) > 0:
            variants = self.strategy.ask(missing)
            self.exhausted = len(variants) < missing
            labels += [self.space.label(values) for values in variants]
        self.tried.update(labels)
        return labels

    def put_back(self, labels: Sequence[str]) -> None:
        """Return labels that were not tried to the front of the queue."""
        self.waiting = [*labels, *self.waiting]
        self.tried.difference_update(labels)

    def tell(self, result: RungResult, failed: Reasons) -> None:
        """Record the outcomes of variants of the first rung; those without a score were dropped."""
        self.scores |= result.scores
        self.least |= result.least
        self.dropped |= {k: v for k, v in result.least.items() if k not in self.scores}
        self.failed |= failed
        self._tell_strategy({**result.least, **failed})

    def remember(
        self,
        scores: Mapping[str, float],
        least: Mapping[str, float],
        heaviest: Mapping[str, float],
        failed: Reasons,
    ) -> None:
        """Record the outcomes of earlier sessions; what they did not finish is tried first."""
        in_space = {label for label in (*least, *failed) if self.space.values(label)}
        self.scores |= {label: score for label, score in scores.items() if label in in_space}
        self.least |= {label: ratio for label, ratio in least.items() if label in in_space}
        self.heaviest |= {label: ratio for label, ratio in heaviest.items() if label in in_space}
        slow = {k: v for k, v in least.items() if k not in scores and v < self.limit}
        labels = in_space & {*scores, *slow, *failed}
        self.waiting = [label for label in self.heaviest if label not in labels]
        self.tried |= labels
        self.failed |= {label: failure for label, failure in failed.items() if label in labels}
        self.dropped |= {k: v for k, v in slow.items() if k in labels and k not in self.failed}
        self._tell_strategy([*labels, *self.waiting])

    def _tell_strategy(self, labels: Iterable[str]) -> None:
        outcomes = []
        for label in labels:
            is_scored = label not in self.failed and (label in self.scores or label in self.dropped)
            if values := self.space.values(label):
                outcomes.append(AskedVariant(values, self.goal(label) if is_scored else None))
        self.strategy.tell(outcomes)

    def unit_seconds(self, variants: int) -> float:
        """Estimate how long a unit compiles, from those that were compiled."""
        fixed, each = self._unit_costs
        return fixed + each * variants

    def unit_size(self, seconds: float) -> int:
        """Return how many variants a unit may have to compile in so many seconds."""
        fixed, each = self._unit_costs
        return max(0, min(MOST, int((seconds - fixed) / each)))

    @property
    def _unit_costs(self) -> tuple[float, float]:
        """Return the seconds that the headers of a unit take, and those of each variant."""
        units = self.units or [UNIT]
        mean_size = fmean(size for size, _ in units)
        mean_seconds = fmean(seconds for _, seconds in units)
        variance = sum((size - mean_size) ** 2 for size, _ in units)
        moved = sum((size - mean_size) * (seconds - mean_seconds) for size, seconds in units)
        expected, most = mean_seconds / (mean_size + HEADERS), mean_seconds / mean_size
        each = min(most, max(most / 20, (moved + TRUST * expected) / (variance + TRUST)))
        return mean_seconds - each * mean_size, each


PROMISE = 0.003
"""Gain that a campaign expects where it saw none."""
BEHIND = 0.05
"""How far behind the best a first sample may be, if its runtime workload were the only one."""
HEADERS, TRUST, UNIT = 12.0, 100.0, (1, 20.0)
"""Variants that cost as much as headers; variance of the sizes of units at which their times count
as much as that; variants and seconds of a unit, before any is compiled.
"""


class SearchNotes:
    """The search records of a database."""

    def __init__(self, session: MeasuringSession) -> None:
        """Create the tables of searches if they are missing."""
        self._session = session
        with session.writer.writing() as connection:
            for statement in SEARCH_TABLES:
                connection.execute(statement)

    def begin(self, search: WorkloadSearch, seed: int, budget: float | None) -> None:
        """Record that this session searches a workload."""
        counts = search.counts
        cells = (
            *(self._session.number, *_database_key(search.point), search.name, seed),
            *(str(counts.variants), str(counts.valid), str(counts.distinct)),
            *(search.base, budget),
        )
        self._session.writer.change(
            f"INSERT INTO {SEARCHES} (session, algorithm, workload, strategy, seed, variants,"  # noqa: S608
            f" valid, distinct_, base, budget) VALUES ({', '.join('?' * len(cells))})",
            *cells,
        )

    def spend(self, seconds: float, ended: Ended | None = None) -> None:
        """Record the time that this session has taken so far, and why it ended."""
        self._session.writer.change(
            f"UPDATE {SEARCHES} SET spent = ?, ended = coalesce(?, ended) WHERE session = ?",  # noqa: S608
            *(seconds, ended, self._session.number),
        )

    def skip(self, search: WorkloadSearch, target: SearchTarget) -> None:
        """Record which runtime workloads are not measured."""
        spots = [spot.key[1:] for spot, _ in target.skipped]
        self._session.writer.change(
            f"UPDATE {SEARCHES} SET skipped = ?"  # noqa: S608
            " WHERE (session, algorithm, workload) = (?, ?, ?)",
            *(json.dumps(spots), self._session.number, *_database_key(search.point)),
        )

    def skipped(self, point: Point) -> set[tuple[str, str]]:
        """Return the sub-benchmarks and runtime workloads that earlier sessions skipped."""
        rows = self._session.writer.rows(
            f"SELECT skipped FROM {SEARCHES} WHERE {OF_KEY} AND skipped IS NOT NULL"  # noqa: S608
            " AND (algorithm, workload) = (?, ?)",
            *(*self._session.about.key, *_database_key(point)),
        )
        return {(subbench, axes) for (text,) in rows for subbench, axes in json.loads(text)}

    def keep_memcheck(self, point: Point, memcheck: Memcheck) -> None:
        """Record what memcheck says of a variant."""
        cells = (*_database_key(point), memcheck.variant, memcheck.outcome, memcheck.words)
        self._session.writer.change(
            f"INSERT INTO {MEMCHECKS} VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            *(self._session.number, *cells, int(memcheck.in_cub)),
        )

    def memchecks(self, point: Point) -> dict[str, Memcheck]:
        """Return what memcheck says of variants, by label, over all sessions."""
        rows = self._session.writer.rows(
            f"SELECT variant, outcome, words, in_cub FROM {MEMCHECKS}"  # noqa: S608
            f" WHERE {OF_KEY} AND (algorithm, workload) = (?, ?)",
            *(*self._session.about.key, *_database_key(point)),
        )
        return {
            variant: Memcheck(variant=variant, outcome=outcome, words=words, in_cub=bool(in_cub))
            for variant, outcome, words, in_cub in rows
        }

    def before(self, points: Collection[Point]) -> float:
        """Return the seconds that earlier sessions spent on any of these workloads."""
        names = {_database_key(point) for point in points}
        rows = self._session.writer.rows(
            f"SELECT session, algorithm, workload, spent FROM {SEARCHES}"  # noqa: S608
            f" WHERE {OF_KEY} AND session <> ?",
            *(*self._session.about.key, self._session.number),
        )
        sessions: dict[int, float] = {}
        for session, algorithm, workload, spent in rows:
            if (algorithm, workload) in names:
                sessions[session] = max(spent, sessions.get(session, 0.0))
        return sum(sessions.values())


def _database_key(point: Point) -> tuple[str, str]:
    name, axes = point
    return name, workload_text({f"{axis}{{ct}}": value for axis, value in axes})


Compiles = Callable[[WorkloadSearch, Sequence[str]], CompiledBatch]
"""Compiles variants of a workload, or its baseline if there are none; called in threads."""


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How much to try, and how precise the result should be."""

    slots: int
    """Number of units compiled at once."""
    seed: int = 1
    count: int | None = None
    """Maximum number of variants per workload."""
    processes: int = 5
    """Number of fresh processes in the last rung."""
    rounds: int = 20
    """Maximum number of rounds in each of these."""


@dataclass(slots=True)
class SearchBench:
    """Compiles and measures variants."""

    gpu: GpuPool
    rows: MeasuringSession
    compiles: Compiles
    effort: SearchEffort
    stop_requested: Asked
    sanitizes: Sanitizes | None = None
    """Runs compute-sanitizer on the finalists, if requested."""
    memchecks: Sanitizes | None = None
    """Runs it on variants that failed, where the GPU is on this machine."""
    note: Note = lambda _: None
    processes: int = 0
    """Number of rungs that were measured in this session."""

    def compile(self, search: WorkloadSearch, labels: Sequence[str]) -> tuple[CompiledBatch, float]:
        """Compile a unit; return it with the seconds that it took."""
        started = time.monotonic()
        compiled = self.compiles(search, labels)
        return compiled, time.monotonic() - started

    def final_plan(self, seconds: float, target: SearchTarget) -> FinalPlan:
        """Return what the last rungs of a workload measure in so many seconds."""
        return FinalPlan.within(seconds, target, self.effort.processes, self.effort.rounds)

    def functions(self, search: WorkloadSearch, labels: Sequence[str]) -> tuple[Functions, Reasons]:
        """Return functions and failures, recompiling variants of earlier sessions."""
        failed: dict[str, Reason] = {}
        missing = [label for label in labels if label not in search.made.functions]
        if count := min(self.effort.slots, len(missing)):
            units = [missing[index::count] for index in range(count)]
            with threads(count) as executor:
                for compiled, seconds in executor.map(partial(self.compile, search), units):
                    self.rows.time("compiling", seconds)
                    failed |= compiled.failed
                    search.keep(compiled)
        functions = search.made.functions
        return {label: functions[label] for label in labels if label in functions}, failed

    def measure(
        self,
        search: WorkloadSearch,
        target: SearchTarget,
        rung: int,
        labels: Sequence[str],
        rounds: Sequence[int],
        seed: int,
        *,
        allowed: float = 0.0,
        checks: bool = True,
        fresh: bool = True,
        idle: Callable[[], None] = lambda: None,
    ) -> RungResult:
        """Measure a rung, write each result as it arrives, and return the scores.

        `rounds` are those of each runtime workload. A variant is dropped if its ratio on any is
        under `allowed`, as far as noise allows for it. `fresh` means to begin in fresh processes,
        and `idle` is called after each result.
        """
        functions, refused = self.functions(search, labels)
        failed: dict[str, Reason] = {**refused}
        ratios: dict[str, list[tuple[float, float]]] = {}
        processes: dict[int, int] = {}
        points = [
            RungPoint(
                point.runtime.case,
                search.made.bases[point.index],
                {label: of_variant[point.index] for label, of_variant in functions.items()},
                count,
                max(0.0, allowed - point.doubt(count)),
                checks,
            )
            for point, count in zip(target.points, rounds, strict=True)
        ]
        results = self.gpu.rung(
            points, seed, self.stop_requested, together=rung == LAST, fresh=fresh
        )
        with closing(results):
            for result in results:
                point = target.points[result.point]
                if result.part not in processes:  # each of several GPUs has its own process
                    self.processes += 1
                    processes[result.part] = self.processes
                failed |= result.failed
                of_point = self._write_point(point.spot, result, rung, processes[result.part])
                for label, ratio in of_point.items():
                    ratios.setdefault(label, []).append((point.weight, ratio))
                idle()
        ratios = {label: pairs for label, pairs in ratios.items() if label not in failed}
        complete = {
            label: sum(weight * ratio for weight, ratio in pairs)
            for label, pairs in ratios.items()
            if len(pairs) == len(target.points)
        }
        least = {label: min(ratio for _, ratio in pairs) for label, pairs in ratios.items()}
        return RungResult(complete, least, failed)

    def _write_point(
        self, spot: RowSpot, result: PointResult, rung: int, process: int
    ) -> dict[str, float]:
        """Write a result; return the baseline's time over each variant's."""
        for label, failure in result.failed.items():
            self.rows.fail(spot, label, failure, result.elapsed.get(label, 0.0))
        if not result.samples:
            return {}
        self.rows.note(result.repeated, result.throttled, result.restarts)
        centers = self.rows.write_rung(spot, rung, process, result.samples, result.elapsed)
        if rung == LAST:  # the noise between processes is that of the decision
            self.rows.noise(spot, process, result.samples[BASE])
        return {label: centers[BASE] / center for label, center in centers.items() if label != BASE}

    def refuse(self, target: SearchTarget, failed: Reasons) -> None:
        """Record variants that nvcc or CUB's rules reject, so that they are not compiled again."""
        spot = target.points[0].spot
        for label, (_, reason) in failed.items():
            self.rows.fail(spot, label, Failure("compile", reason), 0.0)

    def harmful(
        self, search: WorkloadSearch, target: SearchTarget, labels: Sequence[str]
    ) -> Reasons:
        """Return variants with invalid memory accesses, and withdraw their measurements."""
        if self.sanitizes is None or not labels:
            return {}
        started = time.monotonic()
        functions, _ = self.functions(search, labels)
        descending = sorted(target.points, key=lambda point: point.runtime.case.axes, reverse=True)
        smallest = {point.index: point for point in descending}  # the last one, the smallest, wins
        watched = [
            WatchedWorkload(
                point.runtime.case,
                search.made.bases[index],
                tuple(of_variant[index] for of_variant in functions.values()),
            )
            for index, point in smallest.items()
        ]
        reasons = {
            label: reason
            for reasons_by_label in self.sanitizes(watched)
            for label, reason in reasons_by_label.items()
        }
        if BASE in reasons:
            raise InputError(f"base of {search.title} cannot run: {reasons[BASE]}")
        for label, reason in reasons.items():
            for point in target.points:
                self.rows.withdraw(point.spot, label, Failure("error", reason))
        self.rows.time("sanitizing", time.monotonic() - started)
        return {label: ("error", reason) for label, reason in reasons.items()}

    def memcheck(
        self, search: WorkloadSearch, target: SearchTarget, labels: Sequence[str]
    ) -> list[Memcheck]:
        """Run variants that failed under memcheck, each where it failed, next to base."""
        if self.memchecks is None:
            words = "compute-sanitizer runs only on GPUs of this machine"
            return [Memcheck(variant=label, outcome="not run", words=words) for label in labels]
        started = time.monotonic()
        try:
            functions, _ = self.functions(search, labels)
            watched = {
                label: self._where_it_failed(search, target, label, functions[label])
                for label in labels
                if label in functions
            }
            results = self.memchecks([*watched.values()]) if watched else ()
        except PolicygenError as error:
            words = error.in_line.replace("\n  ", ". ")
            return [Memcheck(variant=label, outcome="not run", words=words) for label in labels]
        finally:
            self.rows.time("sanitizing", time.monotonic() - started)
        return [memcheck_of(label, errors) for label, errors in zip(watched, results, strict=True)]

    def _where_it_failed(
        self,
        search: WorkloadSearch,
        target: SearchTarget,
        label: str,
        functions: Sequence[VariantFunction],
    ) -> WatchedWorkload:
        """Return the smallest runtime workload on which a variant failed."""
        failing = [point for point in target.points if label in self.rows.failed(point.spot)]
        point = min(failing or target.points, key=lambda point: point.runtime.case.axes)
        base = search.made.bases[point.index]
        return WatchedWorkload(point.runtime.case, base, (functions[point.index],))
