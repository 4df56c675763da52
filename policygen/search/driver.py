"""A search: asks for batches, compiles one while another is measured, and lets finalists decide."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from math import inf

from policygen.measure.database import named
from policygen.measure.times import spot_weights
from policygen.model.search import Ended, RungName
from policygen.process import threads
from policygen.results.provenance import LAST
from policygen.search.bench import CompiledBatch, SearchBench, failures
from policygen.search.budget import Budget, shares
from policygen.search.deciding import decide, decision_seconds
from policygen.search.gpu import StopAskedError
from policygen.search.measuring import RungTask, in_all
from policygen.search.notes import SearchNotes
from policygen.search.rung_rows import SCREENING, SHARPER
from policygen.search.rung_scores import WeighedSpot, rung_scores
from policygen.search.target import SearchTarget, look
from policygen.search.workload import WorkloadSearch

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
