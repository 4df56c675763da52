"""Search driver: compiles one batch while measuring another; the finalists decide the result."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from math import inf

from policygen.gpu.candidates import (
    CompiledBatch,
    SearchBench,
    SearchEffort,
    SearchNotes,
    WorkloadSearch,
    failures,
)
from policygen.gpu.measured_rows import named
from policygen.gpu.rung_rows import (
    SCREENING,
    SHARPER,
    WeighedSpot,
    rung_least,
    rung_scores,
    rung_times,
)
from policygen.gpu.rungs import RungTask, SearchTarget, StopAskedError, in_all, look
from policygen.gpu.statistics import spot_weights
from policygen.model.results import Rules
from policygen.model.searches import Ended, RungName
from policygen.process import threads
from policygen.results.own_tables import LAST

NAMES: Mapping[int, RungName] = {SCREENING: "screening", SHARPER: "sharper", LAST: "last"}
CHECKS = 3.0
"""Ratio of a first-batch variant's cost to its samples alone: it is also loaded and checked."""
FEWEST = 4
"""Minimum number of variants of a batch to measure, however little time is left."""
LOOKS = 0.3
"""Seconds between checks for a stop request while a batch compiles."""
Observes = Callable[[str, WorkloadSearch, RungName, float], None]
"""Callback for an event (`begun`, `batch`, `rung`, `ended`) with the seconds left."""
Compiled = Mapping[str, CompiledBatch]


@dataclass(slots=True)
class Budget:
    """Time budget of a search in seconds, across all of its sessions."""

    seconds: float | None
    before: float = 0.0
    """Seconds used by earlier sessions."""
    clock: Callable[[], float] = time.monotonic
    begun: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Start the clock."""
        self.begun = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds used by this session."""
        return self.clock() - self.begun

    @property
    def spent(self) -> float:
        """Seconds used by all sessions."""
        return self.before + self.elapsed

    @property
    def left(self) -> float:
        """Seconds left; infinite without a budget."""
        return inf if self.seconds is None else max(0.0, self.seconds - self.spent)


@dataclass(slots=True)
class SearchDriver:
    """The state of a running search."""

    bench: SearchBench
    notes: SearchNotes
    searches: Mapping[str, WorkloadSearch]
    """Searches by workload name."""
    budget: Budget
    observe: Observes
    screening: float = 0.0
    """Seconds taken to screen the last batch."""

    def run(self) -> Ended:
        """Try variants until the budget or the space is exhausted, then run the finalists."""
        for search in self.searches.values():
            self._recall(search)
        ended = self._screen_batches()
        for name, search in self.searches.items():
            if search.scores and not search.problem:
                self._decide(name, search)
        self.notes.spend(self.budget.elapsed, ended)
        for search in self.searches.values():
            self._notify("ended", search, LAST)
        return ended

    def _recall(self, search: WorkloadSearch) -> None:
        """Load the results of earlier sessions so that they are not measured again."""
        rows = self.bench.rows
        skipped = self.notes.skipped(search.point)
        spots = [spot for spot in search.spots if named(spot)[1:] not in skipped]
        measured = [(spot, rows_of_spot) for spot in spots if (rows_of_spot := rows.of(spot))]
        if not measured or len(measured) < len(spots):
            return  # some runtime workloads have no measurements
        weights = spot_weights([spot for spot, _ in measured], search.declared)
        points = [
            (WeighedSpot(spot, weight), rows_of_spot)
            for (spot, rows_of_spot), weight in zip(measured, weights, strict=True)
        ]
        failed = {
            label: (failure.kind, failure.reason)
            for spot in search.spots
            for label, failure in rows.failed(spot).items()
        }
        search.remember(rung_scores(points, SCREENING), failed)

    def _screen_batches(self) -> Ended:
        ready: Compiled = {}
        with threads(1) as background:
            while True:
                if not (self.bench.effort.beside and self._all_have_targets(ready)):
                    # Before the first batch neither the time per round nor the next batch is known.
                    self._screen_all(ready)
                    ready = {}
                batch, reason = self._next(self.screening if ready else 0.0)
                future = background.submit(self.bench.compile, batch) if batch else None
                self._screen_all(ready)
                if future is None:
                    return reason
                ready = self._wait_for(future)

    def _all_have_targets(self, ready: Compiled) -> bool:
        return all(self.searches[name].target is not None for name in ready)

    def _screen_all(self, ready: Compiled) -> None:
        started = time.monotonic()
        for index, (name, compiled) in enumerate(ready.items()):
            self._screen(name, compiled, len(ready) - index)
        if ready:
            self.screening = time.monotonic() - started

    def _next(self, measuring: float) -> tuple[dict[str, list[str]], Ended]:
        """Return the next batch, or the reason for stopping; `measuring` seconds come before it."""
        if self.bench.asked():
            raise StopAskedError
        compiling = self.bench.compiling
        needed = max(compiling, measuring) + self.screening + self._reserve() if compiling else 0.0
        if self.budget.left <= needed:
            return {}, "budget"
        open_searches = {
            name: search for name, search in self.searches.items() if self._is_open(search)
        }
        histories = {name: search.history for name, search in open_searches.items()}
        limit = self.bench.effort.count
        batch = {}
        for name, count in shares(histories, self.bench.effort.batch).items():
            search = open_searches[name]
            fitting = count if limit is None else min(count, limit - len(search.tried))
            if labels := search.ask(fitting):
                batch[name] = labels
        is_any_open = any(search.is_open for search in self.searches.values())
        return batch, "count" if is_any_open else "exhausted"

    def _is_open(self, search: WorkloadSearch) -> bool:
        limit = self.bench.effort.count
        return search.is_open and (limit is None or len(search.tried) < limit)

    def _reserve(self) -> float:
        """Seconds to reserve for the finalists of all workloads."""
        targets = [search.target for search in self.searches.values() if search.target]
        return sum(decision_seconds(target, self.bench.effort) for target in targets)

    def _wait_for(self, future: "Future[Compiled]") -> Compiled:
        while not wait([future], LOOKS).done:
            if self.bench.asked():
                raise StopAskedError
        return future.result()

    def _screen(self, name: str, compiled: CompiledBatch, workload_count: int) -> None:
        """Measure a batch of a workload within its share of the remaining time."""
        search = self.searches[name]
        if compiled.problem is not None:
            search.problem = compiled.problem
            return
        compiled_so_far = self.bench.keep(name, compiled)
        started = time.monotonic()
        target = self._target(search, compiled_so_far)
        if target is None:
            return
        labels = self._limit_to_budget(search, target, in_all(compiled.functions), workload_count)
        functions = [{label: batch[label] for label in labels} for batch in compiled.functions]
        rounds = [point.rounds for point in target.points]
        seed = self.bench.effort.seed + len(search.history)
        task = RungTask(SCREENING, compiled_so_far.bases, functions, rounds, seed)
        measuring_started = time.monotonic()
        outcome = self.bench.measure(target, task)
        if labels:
            search.pace = (time.monotonic() - measuring_started) / len(labels)
        self.bench.refuse(target, compiled.failed)
        search.tell(outcome.scores, {**compiled.failed, **failures(outcome)})
        self._record_time(f"screening {name}", search, started)
        self._notify("batch", search, SCREENING)

    def _limit_to_budget(
        self,
        search: WorkloadSearch,
        target: SearchTarget,
        labels: Sequence[str],
        workload_count: int,
    ) -> Sequence[str]:
        """Return as many labels as the remaining time allows; put the others back."""
        seconds_left = self.budget.left
        if seconds_left == inf:
            return labels
        pace = search.pace or CHECKS * sum(p.sample_seconds * p.rounds for p in target.points)
        count = max(FEWEST, int((seconds_left - self._reserve()) / workload_count / pace))
        search.put_back(labels[count:])
        return labels[:count]

    def _target(self, search: WorkloadSearch, compiled: CompiledBatch) -> SearchTarget | None:
        """Return what to measure for a workload; None where the baseline cannot run."""
        if search.target is None:
            seed = self.bench.effort.seed
            target = look(self.bench.gpu, compiled.bases, compiled.runtimes, search.declared, seed)
            if not target.points:
                search.problem = next(
                    (reason for _, reason in target.skipped), "it has no runtime workload"
                )
                return None
            search.target = target
            self.notes.skip(search)
            self._notify("begun", search, SCREENING)
        return search.target

    def _decide(self, name: str, search: WorkloadSearch) -> None:
        compiled = self.bench.made.get(name)
        if compiled is None:  # earlier sessions measured everything
            compiled = self.bench.keep(name, self.bench.compile({name: ()})[name])
        started = time.monotonic()
        target = self._target(search, compiled)
        if target is not None:
            decide(
                self.bench, name, search, target, lambda rung: self._notify("rung", search, rung)
            )
            self._record_time(f"deciding {name}", search, started)

    def _record_time(self, step: str, search: WorkloadSearch, started: float) -> None:
        seconds = time.monotonic() - started
        search.seconds += seconds
        self.bench.rows.time(step, seconds)
        self.notes.spend(self.budget.elapsed)

    def _notify(self, event: str, search: WorkloadSearch, rung: int) -> None:
        self.observe(event, search, NAMES[rung], self.budget.left)


SHARP, LEAST_SHARP, MOST_SHARP = 0.003, 4, 30
"""Standard error of a score that the sharper rung aims for, and the range of its rounds per runtime
workload.
"""
SURE, LEAST_SURE = 0.002, 5
"""The same for each process of the last rung: less than the difference between processes."""
WORST = Rules().worst_allowed - 0.005
"""A variant that loses more than this on a runtime workload would not be chosen, whatever its other
gains; includes a margin for noise.
"""
RESTART = 1.0
"""Maximum seconds until a fresh process starts to measure."""
FRESH_SEED = 1000
"""Seed offset that keeps the orders of the last rung distinct from those of the first."""
Tells = Callable[[int], None]
"""Callback for the end of a rung."""


# The last rungs


def decide(
    bench: SearchBench, name: str, search: WorkloadSearch, target: SearchTarget, on_rung: Tells
) -> None:
    """Measure the best variants with more rounds, then the finalists beside the baseline."""
    screening_rounds = [point.rounds for point in target.points]
    scores = {label: score for label, score in search.scores.items() if label not in search.failed}
    sharper_rounds = _sharper_rounds(target)
    candidates = survivors(scores, target.error(screening_rounds), TO_SHARPER)
    search.sharper = _measure_sharper(bench, name, search, target, candidates, sharper_rounds)
    on_rung(SHARPER)
    finalists = _finalists(bench, name, search, target, sharper_rounds)
    for process in range(bench.effort.processes):
        _measure_last(bench, name, search, target, finalists, process)
    final_scores = rung_scores(bench.known(target), LAST)
    search.last = {
        label: final_scores[label]
        for label in finalists
        if label in final_scores and label not in search.failed
    }
    on_rung(LAST)


def _finalists(
    bench: SearchBench,
    name: str,
    search: WorkloadSearch,
    target: SearchTarget,
    rounds: Sequence[int],
) -> Sequence[str]:
    """Return the variants that may still win; a harmful variant is replaced by the next."""
    worst_scores = rung_least(bench.known(target), SHARPER)
    checked: set[str] = set()
    while True:
        scores = {
            label: score for label, score in search.sharper.items() if label not in search.failed
        }
        acceptable = {
            label: s for label, s in scores.items() if worst_scores.get(label, 0.0) >= WORST
        }
        finalists = survivors(acceptable or scores, target.error(rounds), TO_LAST)
        harmful = bench.harmful(
            name, target, [label for label in finalists if label not in checked]
        )
        if not harmful:
            return finalists
        search.failed |= harmful
        checked |= {*finalists}


def decision_seconds(target: SearchTarget, effort: SearchEffort) -> float:
    """Estimate how long `decide` takes."""
    samples = [point.sample_seconds for point in target.points]
    base_runs = max(2, TO_LAST.most // 2)  # runs of the baseline per round
    sharper = sum(map(_seconds, samples, _sharper_rounds(target))) * TO_SHARPER.most
    last = sum(map(_seconds, samples, _last_rounds(target, effort))) * (TO_LAST.most + base_runs)
    return RESTART + sharper + effort.processes * (RESTART + last)


def _seconds(seconds: float, rounds: int) -> float:
    return seconds * rounds


def _sharper_rounds(target: SearchTarget) -> list[int]:
    return target.rounds(SHARP, LEAST_SHARP, MOST_SHARP)


def _last_rounds(target: SearchTarget, effort: SearchEffort) -> list[int]:
    return target.rounds(SURE, min(LEAST_SURE, effort.rounds), effort.rounds)


def _measure_sharper(
    bench: SearchBench,
    name: str,
    search: WorkloadSearch,
    target: SearchTarget,
    labels: Sequence[str],
    rounds: Sequence[int],
) -> dict[str, float]:
    scores = rung_scores(bench.known(target), SHARPER)
    if missing := [label for label in labels if label not in scores]:
        functions, failed = bench.functions(name, missing)
        seed = bench.effort.seed + len(search.history)
        task = RungTask(SHARPER, bench.made[name].bases, functions, rounds, seed)
        outcome = bench.measure(target, task)
        search.failed |= {**failed, **failures(outcome)}
        scores |= outcome.scores
    return {label: scores[label] for label in labels if label in scores}


def _measure_last(
    bench: SearchBench,
    name: str,
    search: WorkloadSearch,
    target: SearchTarget,
    finalists: Sequence[str],
    process: int,
) -> None:
    """Measure the finalists that have run in fewer processes in one more."""
    times = rung_times(bench.known(target), LAST)
    missing = [
        label
        for label in finalists
        if label not in search.failed and len(times[0].variants.get(label, ())) <= process
    ]
    if missing:
        functions, failed = bench.functions(name, missing)
        rounds = _last_rounds(target, bench.effort)
        seed = bench.effort.seed + FRESH_SEED + process
        task = RungTask(LAST, bench.made[name].bases, functions, rounds, seed, noise=True)
        search.failed |= {**failed, **failures(bench.measure(target, task))}


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


# Selection for the next rung


def survivors(scores: Mapping[str, float], error: float, rule: RungRule) -> list[str]:
    """Return the variants that may be the best and faster than the baseline, best first.

    `error` is the standard error of a score due to its samples. At least `rule.least` variants are
    kept, to confirm that none wins.
    """
    order = sorted(scores, key=lambda label: (-scores[label], label))
    if not order:
        return []
    margin = RUNGS_SURE * (error**2 + PROCESS**2) ** 0.5
    threshold = max(scores[order[0]] - margin, 1 - margin)
    open_labels = [label for label in order if scores[label] + margin >= threshold]
    return order[: min(rule.most, max(rule.least, len(open_labels)))]


FLOOR = 0.3
"""Fraction of a batch that is shared equally among all workloads."""
BATCHES = 3
"""Number of recent batches over which the gain of a workload is computed."""


# Shares of the next batch


def shares(histories: Mapping[str, Sequence[float]], count: int) -> dict[str, int]:
    """Return how many of the next variants each open workload gets.

    A fixed fraction is shared equally; the rest goes to workloads whose best score rose recently. A
    workload with too short a history counts like the one that rose most.
    """
    rises = {name: _rise(history) for name, history in histories.items()}
    largest_rise = max((rise for rise in rises.values() if rise is not None), default=0.0)
    weights = {name: largest_rise if rise is None else rise for name, rise in rises.items()}
    total = sum(weights.values())
    counts = {}
    for name, weight in weights.items():
        share = weight / total if total > 0 else 1 / len(weights)
        counts[name] = max(1, round(count * (FLOOR / len(weights) + (1 - FLOOR) * share)))
    return counts


def _rise(history: Sequence[float]) -> float | None:
    """Return the rise of the best score over the last batches; None if there are too few."""
    if len(history) <= BATCHES:
        return None
    return max(0.0, history[-1] - history[-1 - BATCHES])
