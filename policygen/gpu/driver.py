"""Search driver: compiles units while it measures others; the finalists decide the result."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from math import inf, isinf

from policygen.gpu.candidates import (
    BEHIND,
    CompiledBatch,
    Reasons,
    SearchBench,
    SearchNotes,
    WorkloadSearch,
)
from policygen.gpu.finalists import RUNGS
from policygen.gpu.pool import StopAskedError
from policygen.gpu.rungs import Budget, RungResult, RungRule, SearchTarget, look, survivors
from policygen.gpu.statistics import spot_weights
from policygen.gpu.strategies import LENIENT, Values
from policygen.model.searches import Ended, RungName
from policygen.process import ending, threads
from policygen.results.own_tables import LAST, SCREENING, SHARPER
from policygen.results.rungs import Rungs
from policygen.steps import spelled

LOOKS = 0.3
"""Seconds between checks for a stop request while nothing is measured."""
STORED = 1.0
"""Seconds in which no unit compiles: a quicker one was in the store, and says nothing of others."""
QUEUED = 2
"""Units that wait for a core, so that none is idle while the GPU measures."""
FIRST, UNSCORED = (2, 8, 8, 8), 12
"""Variants in the first units by turns, so that a few come soon; the most before a first score."""
SHARE, LAST_SHARE, SPAN = 0.5, 0.75, 4.0
"""A unit's share of the remaining time, and a last unit's; at most so many times its headers."""
TOGETHER, BATCH, BACKLOG = 6, 16, 8.0
"""Variants that passed their first sample and are measured further together, if others follow; the
most that are measured at once; and seconds of measuring that may wait before compiling does.
"""
LOOK, BESIDE = 32, 4
"""Variants of each workload that a campaign looks at, and workloads whose inputs the GPU keeps."""
FIRST_PACE, MOST_VARIANTS = 0.3, 1e9
"""Seconds per variant before any is measured, and the most variants, if there is no budget."""
LOOK_SHARE, SLOW = 0.3, 4.0
"""Part of its equal share of the budget that a workload's look may take on the GPU, and how many
times its share the confirmation of a workload may take.
"""
Observes = Callable[[str, WorkloadSearch, RungName, float], None]
"""Callback for an event (`begun`, `batch`, `rung`, `ended`) with the seconds left."""
Unit = tuple[WorkloadSearch, tuple[str, ...]]
"""Workload and labels; no labels mean the baseline."""


@dataclass(slots=True)
class SearchDriver:
    """The state of a running search."""

    bench: SearchBench
    notes: SearchNotes
    searches: Mapping[str, WorkloadSearch]
    """Searches by workload name."""
    budget: Budget
    observe: Observes
    later: Callable[[], Mapping[str, Sequence[Values]] | None] = lambda: None
    """Returns more starts by workload once they are known."""
    units: "dict[Future[tuple[CompiledBatch, float]], Unit]" = field(default_factory=dict)
    """Units that are compiled or wait for it."""
    measured: int = 0
    """Variants measured in this session."""
    measuring: float = 0.0
    """Seconds that this took."""
    executor: Executor | None = None
    reason: Ended = "exhausted"
    is_campaign: bool = False
    """Whether workloads get time by what they promise, not equal shares."""
    quotas: dict[str, float] = field(default_factory=dict)
    """How many variants to try of each workload that is not decided, in the order to begin them."""
    look_seconds: float = inf
    """GPU seconds after which a workload is not looked at further."""
    begun: set[str] = field(default_factory=set)
    """Workloads whose baseline was requested."""

    def run(self) -> Ended:
        """Try variants until the budget or the space is exhausted, then run the finalists."""
        searches = self.searches.values()
        for search in searches:
            self._recall(search)
        self.quotas = dict.fromkeys(self.searches, LOOK if self.is_campaign else inf)
        with threads(self.bench.effort.slots) as self.executor:
            ended = self._campaign() if self.is_campaign else self._together()
            if any(future.running() for future in self.units):
                with ending():
                    self.executor.shutdown()
        self.notes.spend(self.budget.elapsed, ended)
        for search in searches:
            self._notify("ended", search, LAST)
        return ended

    def _together(self) -> Ended:
        """Search all workloads with equal shares of the time, then decide them."""
        ended = self._stream()
        self._put_back()
        measured = [search for search in self.searches.values() if search.is_measured]
        for place, search in enumerate(measured):
            end = self.budget.elapsed + self.budget.remaining / (len(measured) - place)
            self._decide(search, end, fills=ended == "budget")
        return ended

    def _campaign(self) -> Ended:
        """Look at each workload, then search and decide one after another, by their promise.

        While one is decided, variants of the next are compiled.
        """
        if self.budget.seconds is not None:
            self.look_seconds = LOOK_SHARE * self.budget.seconds / len(self.searches)
        self._stream()
        waiting = [*self.searches.values()]
        slow: list[WorkloadSearch] = []
        while waiting:
            waiting.sort(key=lambda search: -search.promise)
            self._divide(waiting)
            search = waiting.pop(0)
            self._stream(search)
            self.quotas[search.title] = 0  # nothing more of it is compiled while it is decided
            if search.is_measured and not self._final_seconds(search):
                slow.append(search)
            elif search.is_measured:
                share = min(self._final_share, self.budget.remaining / (1 + len(waiting)))
                self._decide(search, self.budget.elapsed + share)
            del self.quotas[search.title]
        self._put_back()
        for search in self.searches.values():
            if not search.is_measured and not search.problem:
                self.bench.note(f"there was no time to search {search.title}")
        for search in slow:
            remaining, target = self.budget.remaining, search.target
            if target and self.bench.final_plan(0.0, target).seconds <= remaining:
                self._decide(search, self.budget.elapsed + remaining)
            else:
                self.bench.note(f"there was no time to confirm {search.title}: its calls are slow")
        return "budget" if any(search.is_open for search in self.searches.values()) else "exhausted"

    def _divide(self, waiting: Sequence[WorkloadSearch]) -> None:
        """Divide the variants that there is time for among workloads, by their promise."""
        pace = self.budget.elapsed / self.measured if self.measured else FIRST_PACE
        promised = sum(search.promise for search in waiting) or 1.0
        seconds = min(max(0.0, self._search_seconds), pace * MOST_VARIANTS)
        self.look_seconds = inf

        def quota(search: WorkloadSearch) -> int:
            tried = len(search.tried)
            own_pace = max(pace, search.seconds / max(1, tried))
            return tried + int(seconds * search.promise / promised / own_pace)

        self.quotas = {search.title: quota(search) for search in waiting}

    def _recall(self, search: WorkloadSearch) -> None:
        """Load the results of earlier sessions so that they are not measured again."""
        rows = self.bench.rows
        skipped = self.notes.skipped(search.point)
        spots = [spot for spot in search.spots if spot.key[1:] not in skipped]
        weights = spot_weights(spots, search.declared)
        search.behind = BEHIND / max(weights, default=1.0) ** 0.5
        rungs = rows.rungs(spots, weights)
        failed = dict(pair for spot in search.spots for pair in rows.failed(spot).items())
        search.remember(
            rungs.means(SCREENING),
            rungs.least(SCREENING),
            rungs.least(SCREENING, rungs.heaviest),
            failed,
        )

    def _put_back(self) -> None:
        """Stop compiling, and count nothing as tried that there was no time for."""
        for future, (search, labels) in self.units.items():
            future.cancel()
            search.put_back(labels)
        for search in self.searches.values():
            early = (label for each in search.compiled for label in (*each.functions, *each.failed))
            search.put_back([*early, *search.ready, *search.passed])
            search.compiled, search.ready, search.passed = [], [], []

    def _stream(self, awaited: WorkloadSearch | None = None) -> Ended:
        """Compile and measure until nothing more may be tried, or no time is left for it.

        If a workload is `awaited`, stop when nothing more of it may be tried.
        """
        while True:
            if self.bench.stop_requested():
                raise StopAskedError
            self._feed()
            pending = {search.title for search, _ in self.units.values()}
            pending |= {each.title for each in self.searches.values() if each.ready or each.passed}
            current = {search.title for search in self._current}
            if not pending or (awaited is not None and awaited.title not in pending | current):
                return self.reason
            is_begun = all(each.is_measured or each.problem for each in self.searches.values())
            is_over = (is_begun or self.is_campaign) and self._search_seconds <= 0
            if is_over and not (awaited is not None and (awaited.ready or awaited.passed)):
                return "budget"
            if not self._measure_next():
                wait([*self.units], LOOKS, FIRST_COMPLETED)

    @property
    def _search_seconds(self) -> float:
        """Seconds until the finalists must begin."""
        remaining = self.budget.remaining
        if isinf(remaining):
            return remaining
        undecided = (self.searches[title] for title in self.quotas)
        return remaining - sum(map(self._final_seconds, undecided))

    def _final_seconds(self, search: WorkloadSearch) -> float:
        """Return the seconds that the last rungs of a workload take; 0 if they are left out."""
        if search.target is None:
            return 0.0 if search.problem else self._final_share
        share = self._final_share
        seconds = self.bench.final_plan(share, search.target).seconds
        if self.is_campaign and seconds > SLOW * share:
            return 0.0
        # What exceeds the budget anyway gets something to confirm.
        return share if seconds > MOST_FINAL * share else seconds

    @property
    def _final_share(self) -> float:
        """Seconds that the last rungs of a workload may take."""
        seconds = self.budget.seconds
        return inf if seconds is None else FINAL_SHARE * seconds / len(self.searches)

    @property
    def _current(self) -> list[WorkloadSearch]:
        """Return the workloads that are searched now."""
        current = [
            search
            for search in (self.searches[title] for title in self.quotas)
            if search.is_open
            and len(search.tried) < self._quota(search)
            and search.seconds < self.look_seconds
        ]
        return current[:BESIDE] if self.is_campaign else current

    def _quota(self, search: WorkloadSearch) -> float:
        """Return how many variants of a workload to try."""
        count = self.bench.effort.count
        return min(inf if count is None else count, self.quotas[search.title])

    def _feed(self) -> None:
        """Take what was compiled, and keep all cores busy."""
        for name, starts in (self.later() or {}).items():
            self.searches[name].strategy.start(starts)
        for future in [future for future in self.units if future.done()]:
            self._take(future)
        if self.budget.remaining > 0:
            for search in self._current:
                if search.title not in self.begun:
                    self.begun.add(search.title)
                    self._submit(search, ())
        slots = self.bench.effort.slots
        is_begun = any(search.has_base for search in self.searches.values())
        most = slots + QUEUED if is_begun else (slots + 1) // 2  # base compiles sooner
        while (
            len(self.units) < most
            and self._waiting < BACKLOG
            and not self.bench.stop_requested()
            and (unit := self._next()) is not None
        ):
            self._submit(*unit)

    @property
    def _pace(self) -> float:
        """Seconds per variant."""
        return self.measuring / self.measured if self.measured else 0.0

    @property
    def _waiting(self) -> float:
        """Seconds that the measuring of compiled variants takes."""
        searches = self.searches.values()
        return self._pace * sum(len(search.ready) + len(search.passed) for search in searches)

    def _submit(self, search: WorkloadSearch, labels: tuple[str, ...]) -> None:
        assert self.executor is not None
        self.units[self.executor.submit(self.bench.compile, search, labels)] = search, labels

    def _take(self, future: "Future[tuple[CompiledBatch, float]]") -> None:
        search, labels = self.units.pop(future)
        compiled, seconds = future.result()
        self.bench.rows.time("compiling", seconds)
        if compiled.problem is not None:
            search.problem = compiled.problem
            return
        if seconds > STORED:
            search.units.append((max(1, len(labels)), seconds))
        if labels:
            search.compiled.append(compiled)
        else:
            search.made = compiled
            if self.budget.kept:  # the header of a result compiles as long
                self.budget.kept = max(self.budget.kept, seconds)
        if search.has_base:
            for batch in search.compiled:
                search.keep(batch)
                search.ready.extend(batch.functions)
                search.tell(RungResult({}, {}, {}), batch.failed)
                search.refused |= batch.failed
            search.compiled.clear()

    def _next(self) -> Unit | None:
        """Return the next unit to compile; None if there is none now, with the reason."""
        searches = self.searches.values()
        while current := self._current:
            search = min(current, key=lambda search: len(search.tried))
            size = self._size(search)
            if size < 1 or self.budget.remaining <= 0:
                self.reason = "budget"
                return None
            if labels := search.ask(int(min(size, self._quota(search) - len(search.tried)))):
                return search, tuple(labels)
        self.reason = "count" if any(search.is_open for search in searches) else "exhausted"
        return None

    def _size(self, search: WorkloadSearch) -> int:
        """Return how many variants the next unit has, so that it is measured in time."""
        # In a campaign the GPU has other workloads: fewer units cost fewer headers.
        size = LOOK // 2 if self.is_campaign else FIRST[len(self.units) % len(FIRST)]
        remaining = self._search_seconds - self._waiting
        if search.units:
            headers = max(1.0, search.unit_seconds(0))
            share = SHARE if SHARE * remaining >= 2 * headers else LAST_SHARE
            fitting = max(1, search.unit_size(min(share * remaining, SPAN * headers)))
            size = fitting if search.target else min(fitting, max(size, UNSCORED))
        elif search.target is None:
            return size
        while size and search.unit_seconds(size) + size * self._pace > remaining:
            size //= 2
        return size

    def _measure_next(self) -> bool:
        """Measure what waits; return whether there was anything.

        Base comes first, then first samples, unless enough variants passed theirs.
        """
        for search in self.searches.values():
            if search.has_base and search.target is None and search.problem is None:
                self._target(search)
                return True
        passed = max(self.searches.values(), key=lambda search: len(search.passed))
        ready = max(self.searches.values(), key=lambda search: len(search.ready))
        if ready.ready and len(passed.passed) < TOGETHER:
            self._first_sample(ready)
        elif passed.passed:
            self._screen(passed)
        else:
            return False
        return True

    def _first_sample(self, search: WorkloadSearch) -> None:
        """Sample each ready variant once, on the heaviest runtime workload; drop the bad ones."""
        target = self._target(search)
        if target is None:
            search.ready = []
            return
        labels, search.ready = search.ready[:BATCH], search.ready[BATCH:]
        started = self.budget.elapsed
        self.bench.refuse(target, search.refused)
        search.refused.clear()
        result = self._measure(search, target.heaviest, labels, [1], checks=False)
        search.heaviest |= result.least
        search.passed += result.least
        self._drop_slow(search, target, result.failed)
        self._record(search, started, len(labels))

    def _drop_slow(self, search: WorkloadSearch, target: SearchTarget, failed: Reasons) -> None:
        """Drop what cannot win by its first sample and what is known by now; sort the others."""
        limit = search.limit - target.heaviest.points[0].doubt(1)
        ratios = {label: search.heaviest[label] for label in search.passed}
        slow = {label: ratio for label, ratio in ratios.items() if ratio < limit}
        search.passed = sorted(ratios.keys() - slow.keys(), key=lambda k: (-ratios[k], k))
        search.tell(RungResult({}, slow, {}), failed)

    def _screen(self, search: WorkloadSearch) -> None:
        """Measure the best of what passed on all runtime workloads, with results checked."""
        target = search.target
        assert target is not None
        started, rounds = self.budget.elapsed, target.screening_rounds
        count = min(BATCH, len(search.passed))
        while count > 1 and 0 < self._search_seconds < target.seconds(rounds, count, fresh=False):
            count //= 2
        labels, search.passed = search.passed[:count], search.passed[count:]
        result = self._measure(search, target, labels, rounds)
        search.tell(result, result.failed)
        self._drop_slow(search, target, {})
        self._record(search, started, 0)

    def _measure(
        self,
        search: WorkloadSearch,
        target: SearchTarget,
        labels: Sequence[str],
        rounds: Sequence[int],
        *,
        checks: bool = True,
    ) -> RungResult:
        return self.bench.measure(
            *(search, target, SCREENING, labels, rounds),
            self.bench.effort.seed + self.bench.processes,
            allowed=search.allowed - LENIENT if checks else 0.0,
            checks=checks,
            fresh=False,
            idle=self._feed,
        )

    def _target(self, search: WorkloadSearch) -> SearchTarget | None:
        """Return what to measure for a workload; None if the baseline cannot run."""
        if search.target is None:
            seed, made = self.bench.effort.seed, search.made
            target = look(self.bench.gpu, made.bases, made.runtimes, search.declared, seed)
            if not target.points:
                search.problem = next(
                    (reason for _, reason in target.skipped), "it has no runtime workload"
                )
                return None
            search.target = target
            self.notes.skip(search, target)
            self._warn(search, target)
            self._notify("begun", search, SCREENING)
        return search.target

    def _warn(self, search: WorkloadSearch, target: SearchTarget) -> None:
        """Note how much time a workload needs at least, if the budget of its search is less."""
        plan = self.bench.final_plan(0.0, target)
        needed = self.budget.spent + search.unit_seconds(1) + plan.seconds + self.budget.kept
        seconds = self.budget.seconds
        if seconds is not None and needed > seconds and not self.is_campaign:
            self.bench.note(
                f"a budget of {spelled(seconds)} is too short for {search.title}: a"
                f" first unit and its confirmation take about {spelled(needed)}"
            )

    def _decide(self, search: WorkloadSearch, end: float, *, fills: bool = False) -> None:
        if not search.has_base:  # earlier sessions measured everything
            compiled, _ = self.bench.compile(search, ())
            if compiled.problem is not None:
                search.problem = compiled.problem
                return
            search.made = compiled
        started = self.budget.elapsed
        if (target := self._target(search)) is not None:
            idle = self._feed if self.is_campaign else lambda: None
            decision = Decision(self.bench, search, target, self.budget, end, fills, idle)
            decision.run(lambda rung: self._notify("rung", search, rung))
            self._record(search, started, 0, "deciding")

    def _record(
        self, search: WorkloadSearch, started: float, count: int, step: str = "screening"
    ) -> None:
        seconds = self.budget.elapsed - started
        search.seconds += seconds
        if step == "screening":
            self.measured += count
            self.measuring += seconds
            self._notify("batch", search, SCREENING)
        self.bench.rows.time(f"{step} {search.title}", seconds)
        self.notes.spend(self.budget.elapsed)

    def _notify(self, event: str, search: WorkloadSearch, rung: int) -> None:
        self.observe(event, search, RUNGS[rung], self.budget.remaining)


FRESH_SEED = 1000
"""Seed offset that keeps the orders of the last rung distinct from those of the first."""
MOST_PROCESSES = 3
"""Maximum number of processes of the last rung, as a multiple of what is requested."""
FINAL_SHARE, MOST_FINAL = 0.35, 2.0
"""Share of the budget that the last rungs may take, if they can be that short, and how many times
as much is kept for them if they cannot.
"""


@dataclass(slots=True)
class Decision:
    """The last rungs of a workload."""

    bench: SearchBench
    search: WorkloadSearch
    target: SearchTarget
    budget: Budget
    end: float
    """Seconds of the session until which it may go on."""
    fills: bool
    """Whether time that is left gives the finalists more processes."""
    idle: Callable[[], None]
    """Called after each result."""

    def run(self, on_rung: Callable[[int], None]) -> None:
        """Measure the best variants with more rounds, then the finalists beside the baseline."""
        search, is_late = self.search, self.end <= self.budget.elapsed
        decided = self._rungs.means(LAST)  # by earlier sessions
        if is_late and decided:
            search.last = {k: v for k, v in decided.items() if k not in search.failed}
            return
        plan = self.bench.final_plan(self.end - self.budget.elapsed, self.target)
        screening_error = self.target.error(self.target.screening_rounds)
        goals = {label: search.goal(label) for label in search.candidates}
        if is_late and max(goals.values(), default=0.0) < 1 - LENIENT:
            return  # there is no time to confirm what cannot win
        if decided and not search.seconds:  # nothing is new
            candidates = list(self._rungs.means(SHARPER))
        else:
            clear = search.clear(search.least)
            candidates = survivors(goals, screening_error, plan.sharper, clear=clear)
        search.tried.update(candidates)
        is_new = self._measure_sharper(candidates, plan.sharper_rounds)
        on_rung(SHARPER)
        sharper_error = self.target.error(plan.sharper_rounds)
        finalists = self._finalists(sharper_error, plan.last, () if is_new else decided)
        fixed, process, taken = self.bench.effort.processes, 0, 0.0
        while process < fixed or (
            self.fills
            and process < MOST_PROCESSES * fixed
            and self.budget.elapsed + taken < self.end
        ):
            begun = self.budget.elapsed
            if not self._measure_last(finalists, process, plan.last_rounds) and process >= fixed:
                break
            taken = self.budget.elapsed - begun
            process += 1
        scores = self._rungs.means(LAST)
        search.last = {k: scores[k] for k in finalists if k in scores and k not in search.failed}
        on_rung(LAST)

    @property
    def _rungs(self) -> Rungs:
        """The rungs that the database has."""
        return self.target.rungs(self.bench.rows)

    def _finalists(self, error: float, rule: RungRule, decided: Collection[str]) -> Sequence[str]:
        """Return the variants that may still win; a harmful variant is replaced by the next."""
        allowed, least = self.search.allowed, self._rungs.least(SHARPER)
        checked: set[str] = set()
        while True:
            scores = {k: v for k, v in self.search.sharper.items() if k not in self.search.failed}
            acceptable = {k: v for k, v in scores.items() if least.get(k, 0.0) >= allowed - 0.005}
            finalists = [label for label in scores if label in decided] or survivors(
                acceptable or scores, error, rule, self.search.kind, self.search.clear(least)
            )
            unchecked = [label for label in finalists if label not in checked]
            harmful = self.bench.harmful(self.search, self.target, unchecked)
            if not harmful:
                return finalists
            self.search.failed |= harmful
            checked |= {*finalists}

    def _measure_sharper(self, labels: Sequence[str], rounds: Sequence[int]) -> bool:
        """Measure those that have no sharper score; return whether there were any."""
        scores = self._rungs.means(SHARPER)
        if missing := [label for label in labels if label not in scores]:
            seed = self.bench.effort.seed + self.bench.processes
            scores |= self._measure(SHARPER, missing, rounds, seed)
        self.search.sharper = {label: scores[label] for label in labels if label in scores}
        return bool(missing)

    def _measure_last(
        self, finalists: Sequence[str], process: int, rounds: Sequence[int]
    ) -> Mapping[str, float]:
        """Measure the finalists that have run in fewer processes in one more."""
        runs = self._rungs.scores(LAST)
        missing = [
            label
            for label in finalists
            if label not in self.search.failed and len(runs.get(label, ())) <= process
        ]
        if not missing:
            return {}
        return self._measure(LAST, missing, rounds, self.bench.effort.seed + FRESH_SEED + process)

    def _measure(
        self, rung: int, labels: Sequence[str], rounds: Sequence[int], seed: int
    ) -> Mapping[str, float]:
        """Measure a rung, record its failures, and return the scores."""
        outcome = self.bench.measure(
            self.search, self.target, rung, labels, rounds, seed, idle=self.idle
        )
        self.search.failed |= outcome.failed
        return outcome.scores
