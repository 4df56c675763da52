"""What a search measures on: the GPU's controller, the database, and what is compiled so far."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.errors import InputError
from policygen.measure.device import VariantFunction
from policygen.measure.outcomes import Failure
from policygen.measure.run import RuntimeSpot
from policygen.measure.sanitizer import Sanitizes
from policygen.measure.watched import WatchedWorkload
from policygen.model.labels import BASE
from policygen.search.gpu import Asked, Functions, MeasuresRungs
from policygen.search.measuring import RungFound, RungTask, measure_rung
from policygen.search.rung_rows import KeptRung, RungRows
from policygen.search.rung_scores import WeighedSpot
from policygen.search.target import SearchTarget

Reasons = Mapping[str, tuple[str, str]]
"""Label → how it fails, and why."""


@dataclass(frozen=True, slots=True)
class CompiledBatch:
    """The objects of some variants of a workload."""

    bases: tuple[VariantFunction, ...]
    """One for each sub-benchmark."""
    functions: tuple[Functions, ...]
    """By label, for each sub-benchmark."""
    runtimes: tuple[tuple[RuntimeSpot, ...], ...]
    failed: Reasons
    problem: str | None = None
    """Why none of the workload can be compiled."""

    def with_more(self, other: "CompiledBatch") -> "CompiledBatch":
        """The same with the variants of another batch; base stays the one that was first."""
        lots = zip(self.functions, other.functions, strict=True)
        return replace(self, functions=tuple({**old, **new} for old, new in lots))


Batch = Mapping[str, Sequence[str]]
"""Workload in words → labels."""
Compiles = Callable[[Batch], Mapping[str, CompiledBatch]]


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How much is tried, and how sure the result is."""

    batch: int
    """Variants that are compiled together."""
    seed: int = 1
    count: int | None = None
    """As many variants of a workload are tried at most."""
    processes: int = 5
    """Of the last rung, each of them fresh."""
    rounds: int = 20
    """In each of those, at most."""
    beside: bool = False
    """Whether a batch is compiled while another one is screened; never while finalists run."""


@dataclass(slots=True)
class SearchBench:
    """Where variants are compiled and measured."""

    gpu: MeasuresRungs
    rows: RungRows
    compiles: Compiles
    effort: SearchEffort
    asked: Asked
    sanitizes: Sanitizes | None = None
    made: dict[str, CompiledBatch] = field(default_factory=dict)
    """What is compiled of each workload, in this session."""
    compiling: float = 0.0
    """Seconds of the last batch."""
    processes: int = 0
    """Fresh ones that measured, in this session."""

    def compile(self, batch: Batch) -> Mapping[str, CompiledBatch]:
        """The objects of a batch; it may run beside what is measured."""
        begun = time.monotonic()
        made = self.compiles(batch)
        self.compiling = time.monotonic() - begun
        self.rows.time("compiling", self.compiling)
        return made

    def keep(self, name: str, made: CompiledBatch) -> CompiledBatch:
        """Remembers where variants lie; all that is known of the workload."""
        before = self.made.get(name)
        self.made[name] = made if before is None else before.with_more(made)
        return self.made[name]

    def functions(
        self, name: str, labels: Sequence[str]
    ) -> tuple[list[Functions], dict[str, tuple[str, str]]]:
        """Where variants lie, and what fails; those of earlier sessions are compiled again."""
        failed: dict[str, tuple[str, str]] = {}
        lacking = [label for label in labels if label not in self.made[name].functions[0]]
        if lacking:
            made = self.compile({name: lacking})[name]
            failed |= made.failed
            self.keep(name, made)
        lots = self.made[name].functions
        return [{one: lot[one] for one in labels if one in lot} for lot in lots], failed

    def measure(self, target: SearchTarget, task: RungTask) -> RungFound:
        """One rung of some variants, in a fresh process of each GPU."""
        return measure_rung(self.gpu, self.rows, target, task, self._fresh, self.asked)

    def _fresh(self) -> int:
        self.processes += 1
        return self.processes

    def refuse(self, target: SearchTarget, failed: Reasons) -> None:
        """Writes that nvcc, or CUB's own rules, refuse variants; they are not compiled again."""
        spot = target.points[0].spot
        for label, (_, reason) in failed.items():
            self.rows.fail(spot, label, Failure("compile", reason), 0.0)

    def harmful(self, name: str, target: SearchTarget, labels: Sequence[str]) -> Reasons:
        """Variants that read or write where they must not; nothing that they took is kept."""
        if self.sanitizes is None or not labels:
            return {}
        begun = time.monotonic()
        functions, _ = self.functions(name, labels)
        falling = sorted(target.points, key=lambda point: point.case.axes, reverse=True)
        least = {point.index: point for point in falling}  # the last one, the smallest, stays
        asked = [
            WatchedWorkload(point.case, self.made[name].bases[at], tuple(functions[at].values()))
            for at, point in least.items()
        ]
        reasons = {label: why for lot in self.sanitizes(asked) for label, why in lot.items()}
        if BASE in reasons:
            raise InputError(f"base of {name} must not run: {reasons[BASE]}")
        for label, why in reasons.items():
            for point in target.points:
                self.rows.withdraw(point.spot, label, Failure("error", why))
        self.rows.time("sanitizing", time.monotonic() - begun)
        return {label: ("error", why) for label, why in reasons.items()}

    def known(self, target: SearchTarget) -> list[tuple[WeighedSpot, list[KeptRung]]]:
        """What the database has of a workload's rungs."""
        return [(point.weighed, self.rows.of(point.spot)) for point in target.points]


def failures(found: RungFound) -> dict[str, tuple[str, str]]:
    """How variants fail, and why."""
    return {label: (one.kind, one.reason) for label, one in found.failed.items() if label != BASE}
