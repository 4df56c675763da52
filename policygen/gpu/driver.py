"""A search: asks for batches, compiles one while another is measured, and lets finalists decide."""

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
"""What a variant of the first batch takes over its samples alone: it is loaded, and its results
are checked."""
FEWEST = 4
"""Of a batch, so many are measured however little time is left."""
LOOKS = 0.3
"""Seconds between two looks whether to stop, while one compiles."""
Observes = Callable[[str, WorkloadSearch, RungName, float], None]
"""Is told what happened (`begun`, `batch`, `rung`, `ended`), and the seconds that are left."""
Compiled = Mapping[str, CompiledBatch]


@dataclass(slots=True)
class Budget:
    """Seconds that a search may take, over all of its sessions."""

    seconds: float | None
    before: float = 0.0
    """What earlier sessions took."""
    clock: Callable[[], float] = time.monotonic
    begun: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        """Begins to count."""
        self.begun = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds of this session."""
        return self.clock() - self.begun

    @property
    def spent(self) -> float:
        """Seconds of all sessions."""
        return self.before + self.elapsed

    @property
    def left(self) -> float:
        """Seconds; without end where no budget is given."""
        return inf if self.seconds is None else max(0.0, self.seconds - self.spent)


@dataclass(slots=True)
class SearchDriver:
    """What a search consists of while it runs."""

    bench: SearchBench
    notes: SearchNotes
    searches: Mapping[str, WorkloadSearch]
    """By workload in words."""
    budget: Budget
    observe: Observes
    screening: float = 0.0
    """Seconds of the last batch."""

    def run(self) -> Ended:
        """Tries variants until the budget ends or nothing is left; then the finalists decide."""
        for one in self.searches.values():
            self._recall(one)
        ended = self._screen_batches()
        for name, one in self.searches.items():
            if one.scores and not one.problem:
                self._decide(name, one)
        self.notes.spend(self.budget.elapsed, ended)
        for one in self.searches.values():
            self._tell("ended", one, LAST)
        return ended

    def _recall(self, one: WorkloadSearch) -> None:
        """What earlier sessions found is known; it is not measured again."""
        rows = self.bench.rows
        skipped = self.notes.skipped(one.point)
        spots = [spot for spot in one.spots if named(spot)[1:] not in skipped]
        there = [(spot, found) for spot in spots if (found := rows.of(spot))]
        if not there or len(there) < len(spots):
            return  # on some of them nothing was measured
        weights = spot_weights([spot for spot, _ in there], one.declared)
        points = [
            (WeighedSpot(spot, weight), found)
            for (spot, found), weight in zip(there, weights, strict=True)
        ]
        failed = {
            label: (why.kind, why.reason)
            for spot in one.spots
            for label, why in rows.failed(spot).items()
        }
        one.remember(rung_scores(points, SCREENING), failed)

    def _screen_batches(self) -> Ended:
        ready: Compiled = {}
        with threads(1) as background:
            while True:
                if not (self.bench.effort.beside and self._looked(ready)):
                    # What a round takes, and what to try next, is not known before the first.
                    self._screen_all(ready)
                    ready = {}
                batch, why = self._next(self.screening if ready else 0.0)
                future = background.submit(self.bench.compile, batch) if batch else None
                self._screen_all(ready)
                if future is None:
                    return why
                ready = self._waited(future)

    def _looked(self, ready: Compiled) -> bool:
        return all(self.searches[name].target is not None for name in ready)

    def _screen_all(self, ready: Compiled) -> None:
        begun = time.monotonic()
        for before, (name, made) in enumerate(ready.items()):
            self._screen(name, made, len(ready) - before)
        if ready:
            self.screening = time.monotonic() - begun

    def _next(self, before: float) -> tuple[dict[str, list[str]], Ended]:
        """What to compile next; else why nothing is. So many seconds are measured before it."""
        if self.bench.asked():
            raise StopAskedError
        compiling = self.bench.compiling
        need = max(compiling, before) + self.screening + self._reserve() if compiling else 0.0
        if self.budget.left <= need:
            return {}, "budget"
        open_ones = {name: one for name, one in self.searches.items() if self._is_open(one)}
        histories = {name: one.history for name, one in open_ones.items()}
        most = self.bench.effort.count
        batch = {}
        for name, count in shares(histories, self.bench.effort.batch).items():
            one = open_ones[name]
            fitting = count if most is None else min(count, most - len(one.tried))
            if labels := one.ask(fitting):
                batch[name] = labels
        left = any(one.is_open for one in self.searches.values())
        return batch, "count" if left else "exhausted"

    def _is_open(self, one: WorkloadSearch) -> bool:
        most = self.bench.effort.count
        return one.is_open and (most is None or len(one.tried) < most)

    def _reserve(self) -> float:
        """Seconds that the finalists of all workloads need."""
        targets = [one.target for one in self.searches.values() if one.target]
        return sum(decision_seconds(target, self.bench.effort) for target in targets)

    def _waited(self, future: "Future[Compiled]") -> Compiled:
        while not wait([future], LOOKS).done:
            if self.bench.asked():
                raise StopAskedError
        return future.result()

    def _screen(self, name: str, made: CompiledBatch, sharing: int) -> None:
        """Measures a batch of a workload, in its share of the time that is left."""
        one = self.searches[name]
        if made.problem is not None:
            one.problem = made.problem
            return
        known = self.bench.keep(name, made)
        begun = time.monotonic()
        target = self._target(one, known)
        if target is None:
            return
        labels = self._fitting(one, target, in_all(made.functions), sharing)
        functions = [{label: lot[label] for label in labels} for lot in made.functions]
        rounds = [point.rounds for point in target.points]
        seed = self.bench.effort.seed + len(one.history)
        task = RungTask(SCREENING, known.bases, functions, rounds, seed)
        measuring = time.monotonic()
        found = self.bench.measure(target, task)
        if labels:
            one.pace = (time.monotonic() - measuring) / len(labels)
        self.bench.refuse(target, made.failed)
        one.tell(found.scores, {**made.failed, **failures(found)})
        self._took(f"screening {name}", one, begun)
        self._tell("batch", one, SCREENING)

    def _fitting(
        self, one: WorkloadSearch, target: SearchTarget, labels: Sequence[str], sharing: int
    ) -> Sequence[str]:
        """The first of a batch, as many as there is time for; the others wait."""
        left = self.budget.left
        if left == inf:
            return labels
        pace = one.pace or CHECKS * sum(p.sample_seconds * p.rounds for p in target.points)
        count = max(FEWEST, int((left - self._reserve()) / sharing / pace))
        one.put_back(labels[count:])
        return labels[:count]

    def _target(self, one: WorkloadSearch, made: CompiledBatch) -> SearchTarget | None:
        """What is measured of a workload; nothing where base cannot run."""
        if one.target is None:
            seed = self.bench.effort.seed
            found = look(self.bench.gpu, made.bases, made.runtimes, one.declared, seed)
            if not found.points:
                one.problem = next((why for _, why in found.skipped), "it has no runtime workload")
                return None
            one.target = found
            self.notes.skip(one)
            self._tell("begun", one, SCREENING)
        return one.target

    def _decide(self, name: str, one: WorkloadSearch) -> None:
        made = self.bench.made.get(name)
        if made is None:  # all of it was measured by earlier sessions
            made = self.bench.keep(name, self.bench.compile({name: ()})[name])
        begun = time.monotonic()
        target = self._target(one, made)
        if target is not None:
            decide(self.bench, name, one, target, lambda rung: self._tell("rung", one, rung))
            self._took(f"deciding {name}", one, begun)

    def _took(self, step: str, one: WorkloadSearch, begun: float) -> None:
        seconds = time.monotonic() - begun
        one.seconds += seconds
        self.bench.rows.time(step, seconds)
        self.notes.spend(self.budget.elapsed)

    def _tell(self, event: str, one: WorkloadSearch, rung: int) -> None:
        self.observe(event, one, NAMES[rung], self.budget.left)


SHARP, LEAST_SHARP, MOST_SHARP = 0.003, 4, 30
"""The standard error of a score that the second rung is made for, and its rounds on a runtime
workload."""
SURE, LEAST_SURE = 0.002, 5
"""The same of each process of the last rung: less than processes differ by."""
WORST = Rules().worst_allowed - 0.005
"""What loses more than this on a runtime workload would not be chosen, whatever it gains elsewhere;
with what noise may make of it."""
RESTART = 1.0
"""Seconds that a fresh process takes until it measures, at most."""
FRESH_SEED = 1000
"""Orders of the last rung are none of those of the first."""
Tells = Callable[[int], None]
"""Is told that a rung has ended."""


# The end of a search: sharper samples of the best ones, then finalists beside base.


def decide(
    bench: SearchBench, name: str, one: WorkloadSearch, target: SearchTarget, tells: Tells
) -> None:
    """Lets those that may win run again, and those that still may then beside base."""
    first = [point.rounds for point in target.points]
    scores = {label: score for label, score in one.scores.items() if label not in one.failed}
    second = _sharper_rounds(target)
    kept = survivors(scores, target.error(first), TO_SHARPER)
    one.sharper = _sharpened(bench, name, one, target, kept, second)
    tells(SHARPER)
    finalists = _finalists(bench, name, one, target, second)
    for process in range(bench.effort.processes):
        _last(bench, name, one, target, finalists, process)
    last = rung_scores(bench.known(target), LAST)
    one.last = {
        label: last[label] for label in finalists if label in last and label not in one.failed
    }
    tells(LAST)


def _finalists(
    bench: SearchBench, name: str, one: WorkloadSearch, target: SearchTarget, rounds: Sequence[int]
) -> Sequence[str]:
    """Those that may still win; who is found to do harm makes room for the next."""
    least = rung_least(bench.known(target), SHARPER)
    looked: set[str] = set()
    while True:
        known = {label: score for label, score in one.sharper.items() if label not in one.failed}
        fitting = {label: s for label, s in known.items() if least.get(label, 0.0) >= WORST}
        finalists = survivors(fitting or known, target.error(rounds), TO_LAST)
        harmful = bench.harmful(name, target, [one for one in finalists if one not in looked])
        if not harmful:
            return finalists
        one.failed |= harmful
        looked |= {*finalists}


def decision_seconds(target: SearchTarget, effort: SearchEffort) -> float:
    """How long that takes."""
    samples = [point.sample_seconds for point in target.points]
    beside = max(2, TO_LAST.most // 2)  # base runs so often in a round
    sharper = sum(map(_times, samples, _sharper_rounds(target))) * TO_SHARPER.most
    last = sum(map(_times, samples, _last_rounds(target, effort))) * (TO_LAST.most + beside)
    return RESTART + sharper + effort.processes * (RESTART + last)


def _times(seconds: float, rounds: int) -> float:
    return seconds * rounds


def _sharper_rounds(target: SearchTarget) -> list[int]:
    return target.rounds(SHARP, LEAST_SHARP, MOST_SHARP)


def _last_rounds(target: SearchTarget, effort: SearchEffort) -> list[int]:
    return target.rounds(SURE, min(LEAST_SURE, effort.rounds), effort.rounds)


def _sharpened(
    bench: SearchBench,
    name: str,
    one: WorkloadSearch,
    target: SearchTarget,
    kept: Sequence[str],
    rounds: Sequence[int],
) -> dict[str, float]:
    known = rung_scores(bench.known(target), SHARPER)
    if lacking := [label for label in kept if label not in known]:
        functions, failed = bench.functions(name, lacking)
        seed = bench.effort.seed + len(one.history)
        task = RungTask(SHARPER, bench.made[name].bases, functions, rounds, seed)
        found = bench.measure(target, task)
        one.failed |= {**failed, **failures(found)}
        known |= found.scores
    return {label: known[label] for label in kept if label in known}


def _last(
    bench: SearchBench,
    name: str,
    one: WorkloadSearch,
    target: SearchTarget,
    finalists: Sequence[str],
    process: int,
) -> None:
    """One more process of those that were in fewer."""
    times = rung_times(bench.known(target), LAST)
    lacking = [
        label
        for label in finalists
        if label not in one.failed and len(times[0].variants.get(label, ())) <= process
    ]
    if lacking:
        functions, failed = bench.functions(name, lacking)
        rounds = _last_rounds(target, bench.effort)
        seed = bench.effort.seed + FRESH_SEED + process
        task = RungTask(LAST, bench.made[name].bases, functions, rounds, seed, noise=True)
        one.failed |= {**failed, **failures(bench.measure(target, task))}


RUNGS_SURE = 2.0
"""Standard errors, beyond which a score is not thought to be."""
PROCESS = 0.004
"""The standard deviation of a score from process to process: its samples do not tell of it."""


@dataclass(frozen=True, slots=True)
class RungRule:
    """How many a rung has at least and at most."""

    least: int
    most: int


TO_SHARPER, TO_LAST = RungRule(8, 32), RungRule(3, 6)


# Who goes on to the next rung: those that can still win, by what noise leaves open.


def survivors(scores: Mapping[str, float], error: float, rule: RungRule) -> list[str]:
    """Variants that may be the best, and faster than base; the best first.

    `error` is the standard error of a score as far as samples make it. Some are kept in any case,
    so that it is seen that nothing wins.
    """
    order = sorted(scores, key=lambda label: (-scores[label], label))
    if not order:
        return []
    reach = RUNGS_SURE * (error**2 + PROCESS**2) ** 0.5
    sure = max(scores[order[0]] - reach, 1 - reach)
    open_ones = [label for label in order if scores[label] + reach >= sure]
    return order[: min(rule.most, max(rule.least, len(open_ones)))]


FLOOR = 0.3
"""Of a batch, what all workloads share alike, whatever they promise."""
BATCHES = 3
"""Over so many batches it is looked at what a workload gained."""


# The time of a search: what is left of it, and who gets the next batch.


def shares(histories: Mapping[str, Sequence[float]], count: int) -> dict[str, int]:
    """How many of the next variants each open workload gets.

    A part is for all alike; the rest goes where the best score rose of late. Whoever has too short
    a history has risen by as much as the one that rose most.
    """
    rises = {name: _rise(history) for name, history in histories.items()}
    most = max((rise for rise in rises.values() if rise is not None), default=0.0)
    worth = {name: most if rise is None else rise for name, rise in rises.items()}
    total = sum(worth.values())
    found = {}
    for name, one in worth.items():
        share = one / total if total > 0 else 1 / len(worth)
        found[name] = max(1, round(count * (FLOOR / len(worth) + (1 - FLOOR) * share)))
    return found


def _rise(history: Sequence[float]) -> float | None:
    """By how much the best score rose in the last batches; none where there are too few."""
    if len(history) <= BATCHES:
        return None
    return max(0.0, history[-1] - history[-1 - BATCHES])
