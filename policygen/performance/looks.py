"""Measures changes in fresh processes, look after look: what is clear is not measured again."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from policygen.measure.control import Controller
from policygen.measure.database import MeasuringSession
from policygen.measure.run import RuntimeSpot, WorkloadTask, measure_workload
from policygen.performance.changes import (
    ChangedWorkload,
    ChangePart,
    JudgedWorkload,
    failures_of,
    judge_workload,
    unclear_spots,
)
from policygen.performance.verdicts import Judge
from policygen.steps import Progress

LOOKS = (5, 8, 12, 20)
"""Processes after which it is looked at what is clear."""


@dataclass(slots=True)
class ChangeMeasuring:
    """What measures, and how long it may."""

    controller: Controller
    rows: MeasuringSession
    judge: Judge
    looks: Sequence[int]
    rounds: int
    seed: int
    budget: float | None = None
    """Seconds."""
    progress: Progress | None = None
    _asked: bool = field(init=False, default=False)
    late: bool = field(init=False, default=False)
    """Whether something was left, as there was no time for it."""

    def run(self, changes: Sequence[ChangedWorkload]) -> list[JudgedWorkload | None]:
        """Measures all of them, then again what is not clear; for each what it comes to."""
        begun = time.monotonic()
        for processes in self.looks:
            for change in changes:
                if change.failed is None:
                    self._look(change, processes, begun)
        return [self.judged(change) for change in changes]

    def judged(self, change: ChangedWorkload) -> JudgedWorkload | None:
        """What is known of a workload so far."""
        times = change.times(self.rows)
        return judge_workload(self.judge, times) if times else None

    def _look(self, change: ChangedWorkload, processes: int, begun: float) -> None:
        spots = list(unclear_spots(change, self.judged(change)))
        if not spots:
            return
        if self.budget is not None:
            left = self.budget - (time.monotonic() - begun)
            if left <= change.seconds * len(spots):
                self.late = True
                return
        for part in change.parts:
            mine = [spot for spot in part.points if spot in spots]
            if mine and change.failed is None:
                self._measure(change, part, mine, processes)

    def _measure(
        self, change: ChangedWorkload, part: ChangePart, spots: Sequence[RuntimeSpot], count: int
    ) -> None:
        begun = time.monotonic()
        if self._asked:
            self.controller.restart()  # each look begins with a fresh process, as the first did
        self._asked = True
        task = WorkloadTask(part.before, (part.after, part.copy), tuple(spots), part.declared)
        found = measure_workload(
            self.controller,
            self.rows,
            task,
            rounds=self.rounds,
            seed=self.seed,
            processes=count,
            progress=self.progress,
        )
        change.skipped |= found.skipped
        change.failed = failures_of(found.failed)
        change.seconds = (time.monotonic() - begun) / len(spots)


def looks_until(most: int) -> tuple[int, ...]:
    """When it is looked, with so many processes at most."""
    return (*(one for one in LOOKS if one < most), most)
