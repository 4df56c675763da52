"""Measures the programs of a checkout's benchmark in rounds: each run is a process of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from policygen.errors import InputError
from policygen.measure.checkout import CheckoutBenchmark
from policygen.measure.database import MeasuringSession, Spot
from policygen.measure.device import GpuFacts
from policygen.measure.locks import SESSION, gpu_lock
from policygen.measure.nvbench_program import (
    FLOOR,
    LIMIT,
    TIMES_BASE,
    FailedRunError,
    NvbenchSettings,
    ProgramRun,
    run_arguments,
    run_program,
)
from policygen.measure.order import round_order
from policygen.measure.outcomes import Failure
from policygen.measure.programs import BuiltPrograms
from policygen.measure.statistics import PointSamples
from policygen.model.labels import BASE
from policygen.results.declared import DeclaredAxes
from policygen.results.weights import importance
from policygen.steps import HowFar, Progress
from policygen.stopping import stopping

PHASE = "measuring with NVBench"
PointKey = tuple[str, tuple[tuple[str, str], ...]]
"""A sub-benchmark, and a value for each axis."""


@dataclass(frozen=True, slots=True)
class CheckoutTask:
    """What is measured of one workload, on which GPU."""

    benchmark: CheckoutBenchmark
    workload: Mapping[str, str]
    built: BuiltPrograms
    gpu: GpuFacts
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of runtime axes: the values that are measured, where those are not all."""
    settings: NvbenchSettings = field(default_factory=NvbenchSettings)

    @property
    def arguments(self) -> list[str]:
        """Of each of its programs."""
        return run_arguments(self.benchmark.benchmark, self.workload, self.chosen, self.settings)


@dataclass(slots=True)
class CheckoutFindings:
    """What came of it; results of variants are not compared: these programs show none."""

    declared: DeclaredAxes
    algorithm: str
    samples: dict[PointKey, dict[str, list[list[float]]]] = field(default_factory=dict)
    """By runtime workload and label: seconds, by round."""
    failed: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    """Runtime workloads that base does not run, and why."""

    def points(self) -> list[PointSamples]:
        """As statistics take them: variants that were measured in all rounds."""
        weights = {key: self._weight(key) for key in self.samples}
        total = sum(weights.values())
        return [
            PointSamples(
                subbench=key[0],
                point=dict(key[1]),
                weight=weights[key] / total,
                base=found[BASE],
                variants={
                    label: rounds
                    for label, rounds in found.items()
                    if label != BASE and label not in self.failed
                },
            )
            for key, found in self.samples.items()
        ]

    def _weight(self, key: PointKey) -> float:
        subbench, point = key
        found = 1.0
        for axis, value in point:
            if "{io}" in axis:
                values = self.declared[self.algorithm, subbench, axis]
                found *= importance(values.index(value), len(values))
        return found


def measure_programs(
    task: CheckoutTask,
    *,
    rounds: int,
    seed: int,
    session: MeasuringSession | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
    progress: Progress | None = None,
) -> CheckoutFindings:
    """Runs base and variants in mixed rounds, each second one backwards; rows are written at once.

    The GPU is locked for it. A variant that fails is left out of what follows.
    """
    name = task.benchmark.benchmark.name
    found = CheckoutFindings(task.benchmark.declared, name)
    labels = [label for label in task.built.programs if label != BASE]
    orders = [round_order(BASE, labels, number, seed) for number in range(rounds)]
    total, done = 1 + sum(map(len, orders)), 0
    measuring = _Measuring(task, found, session, task.arguments)
    with gpu_lock(task.gpu.uuid, SESSION, patience, locks), stopping(lambda: _kept(done, total)):
        for number, order in enumerate(orders):
            # How long it takes is known of base, which is the first of all.
            for label in [BASE, *order] if number == 0 else order:
                if progress:
                    progress(HowFar(PHASE, done, total, (f"{label} of {name}",)))
                if label not in found.failed:
                    measuring.one(label, number)
                done += 1
    if progress:
        progress(HowFar(PHASE, total, total))
    return found


@dataclass(slots=True)
class _Measuring:
    task: CheckoutTask
    found: CheckoutFindings
    session: MeasuringSession | None
    arguments: list[str]
    slowest: float | None = None
    """Seconds that base took at most."""

    def one(self, label: str, number: int) -> None:
        """Runs one program, and keeps what it measured."""
        limit = LIMIT if self.slowest is None else max(FLOOR, TIMES_BASE * self.slowest)
        try:
            run = run_program(
                self.task.built.programs[label], self.arguments, self.task.gpu.uuid, limit
            )
        except FailedRunError as error:
            self._fail(label, error.failure, error.elapsed)
            return
        if run.results.gpu != self.task.gpu.label:
            raise InputError(
                f"NVBench measured on {run.results.gpu}, and not on {self.task.gpu.label}"
            )
        measured = _samples(run, number)
        if label == BASE:
            self.slowest = max(self.slowest or 0.0, run.elapsed)
            self.found.skipped |= run.skipped
            if not measured:
                raise InputError(self._words("measured nothing", "; ".join(run.skipped.values())))
        elif lacking := self.found.samples.keys() - measured.keys():
            why = next(iter(run.skipped.values()), "no reason is told")
            words = f"{len(lacking)} runtime workloads were skipped: {why}"
            self._fail(label, Failure("error", words), run.elapsed)
            return
        self._keep(label, number, run, measured)

    def _keep(
        self, label: str, number: int, run: ProgramRun, measured: Mapping[PointKey, list[float]]
    ) -> None:
        bandwidths = {
            (bench.name, tuple(state.point.items())): state.bandwidth
            for bench in run.results.benches
            for state in bench.states
        }
        for key, samples in measured.items():
            lot = self.found.samples.setdefault(key, {}).setdefault(label, [])
            if len(lot) <= number:
                lot.append([])
            lot[number] += samples
            if self.session is not None:
                spot = self._spot(key)
                self.session.prepare(spot, self.found.declared)
                elapsed = run.elapsed / len(measured)
                self.session.record(spot, label, samples, elapsed, bandwidths[key])

    def _fail(self, label: str, failure: Failure, elapsed: float) -> None:
        if label == BASE:
            raise InputError(
                self._words("failed", failure.reason),
                "What was measured is kept. Look at the GPU with nvidia-smi.",
            )
        self.found.failed[label] = failure
        if self.session is not None:
            for key in self.found.samples:
                self.session.fail(self._spot(key), label, failure, elapsed)

    def _words(self, what: str, why: str) -> str:
        return f"base of {self.found.algorithm} {what}: {why or 'no reason is told'}"

    def _spot(self, key: PointKey) -> Spot:
        return Spot(self.found.algorithm, key[0], dict(key[1]))


def _samples(run: ProgramRun, number: int) -> dict[PointKey, list[float]]:
    """By runtime workload; one without samples is none.

    They are read sorted, and are mixed: who compares every second one with the others must not
    find that they are the same.
    """
    found: dict[PointKey, list[float]] = {}
    for bench in run.results.benches:
        for state in bench.states:
            if state.samples is not None and len(state.samples):
                lot = [float(one) for one in state.samples]
                Random(number).shuffle(lot)  # noqa: S311  an order is no secret
                found[bench.name, tuple(state.point.items())] = lot
    return found


def _kept(done: int, total: int) -> str:
    return f"{done:,} of {total:,} runs are done, and their rows are kept."
