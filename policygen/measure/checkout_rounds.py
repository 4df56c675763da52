"""Measures the programs of a checkout's benchmark in rounds: each run is a process of its own.

Results of variants are not compared with those of base: these programs show none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random

from policygen.errors import InputError
from policygen.measure.checkout import CheckoutBenchmark
from policygen.measure.database import MeasuringSession
from policygen.measure.device import GpuFacts
from policygen.measure.locks import SESSION, gpu_lock
from policygen.measure.nvbench_program import (
    FLOOR,
    LIMIT,
    TIMES_BASE,
    FailedRunError,
    NvbenchSettings,
    ProgramRun,
    chosen_values,
    run_arguments,
    run_program,
)
from policygen.measure.outcomes import Failure
from policygen.measure.programs import BuiltPrograms
from policygen.measure.run import Findings
from policygen.measure.tables import RowSpot
from policygen.model.labels import BASE
from policygen.results.nvbench import NvbenchState
from policygen.results.provenance import workload_text
from policygen.steps import HowFar, Progress
from policygen.stopping import stopping

PHASE = "measuring with NVBench"
PointKey = tuple[str, str]
"""A sub-benchmark, and the values of all axes."""


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
    def name(self) -> str:
        """The benchmark."""
        return self.benchmark.benchmark.name

    @property
    def arguments(self) -> list[str]:
        """Of each of its programs."""
        return run_arguments(self.benchmark.benchmark, self.workload, self.chosen, self.settings)

    @property
    def spots(self) -> tuple[RowSpot, ...]:
        """All runtime workloads that are asked for; base may skip some of them."""
        return tuple(
            RowSpot(self.name, sub.name, dict(zip((a.name for a in sub.axes), values, strict=True)))
            for sub in self.benchmark.benchmark.subbenches
            for values in product(
                *(
                    (self.workload[axis.name],)
                    if axis.compile_time
                    else chosen_values(self.name, axis, self.chosen)
                    for axis in sub.axes
                )
            )
        )


def measure_programs(
    task: CheckoutTask,
    session: MeasuringSession,
    *,
    rounds: int,
    seed: int,
    patience: float = 0.0,
    locks: Path | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Runs base and variants once in each round, each second one backwards; writes rows at once.

    The GPU is locked for it. What has as many runs already is not run again, and a variant that
    failed is left out.
    """
    measuring = _Measuring(task, session, {_key(spot): spot for spot in task.spots})
    labels = [label for label in task.built.programs if label != BASE]
    orders = _orders(labels, measuring.begin(labels, rounds), seed)
    total, done = sum(map(len, orders)), 0
    with gpu_lock(task.gpu.uuid, SESSION, patience, locks), stopping(lambda: _kept(done, total)):
        for label in (label for order in orders for label in order):
            if progress:
                progress(HowFar(PHASE, done, total, (f"{label} of {task.name}",)))
            if label not in measuring.failed:
                measuring.one(label)
            done += 1
    if progress:
        progress(HowFar(PHASE, total, total))
    failed = {label: why for label, why in measuring.failed.items() if label in labels}
    return Findings(failed, measuring.skipped, measuring.new)


def _orders(labels: Sequence[str], lacking: Mapping[str, int], seed: int) -> list[list[str]]:
    """Base with those that lack a run; it runs beside each, so that there is what to compare."""
    found: list[list[str]] = []
    for number in range(max([0, *lacking.values()])):
        order = [BASE, *(one for one in labels if lacking[one] > number)]
        # Who stands first has a GPU that is cool; each second round is the one before backwards.
        Random(f"{seed}/{number // 2}").shuffle(order)  # noqa: S311  an order is no secret
        found.append(order[::-1] if number % 2 else order)
    return found


@dataclass(slots=True)
class _Measuring:
    """What is known while programs run."""

    task: CheckoutTask
    session: MeasuringSession
    spots: Mapping[PointKey, RowSpot]
    failed: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    slowest: float | None = None
    """Seconds that base took at most."""
    of_base: frozenset[PointKey] | None = None
    """The runtime workloads that base measured."""
    ran: int = 0
    """How often base has run, in all sessions."""
    new: int = 0

    def begin(self, labels: Sequence[str], rounds: int) -> dict[str, int]:
        """Makes the tables; how many runs each label lacks."""
        counts: list[dict[str, int]] = []
        for spot in self.spots.values():
            self.session.prepare(spot, self.task.benchmark.declared)
            self.failed |= self.session.failed(spot)
            times = self.session.times(spot)
            if BASE in times:  # what base skips nobody lacks
                counts.append({one: len(times.get(one, ())) for one in (BASE, *labels)})
        self.ran = max((one[BASE] for one in counts), default=0)
        if not counts:
            return dict.fromkeys([BASE, *labels], rounds)
        return {one: max(0, rounds - min(each[one] for each in counts)) for one in counts[0]}

    def one(self, label: str) -> None:
        """Runs one program, and keeps what it measured."""
        limit = LIMIT if self.slowest is None else max(FLOOR, TIMES_BASE * self.slowest)
        program, uuid = self.task.built.programs[label], self.task.gpu.uuid
        try:
            run = run_program(program, self.task.arguments, uuid, limit)
        except FailedRunError as error:
            self._fail(label, error.failure, error.elapsed)
            return
        if run.results.gpu != self.task.gpu.label:
            raise InputError(
                f"NVBench measured on {run.results.gpu}, and not on {self.task.gpu.label}"
            )
        measured = self._measured(run)
        why = next(iter(run.skipped.values()), "it took no samples")
        if label == BASE:
            self.slowest = max(self.slowest or 0.0, run.elapsed)
            self.of_base = frozenset(measured)
            self.skipped |= {
                in_words(self.spots[key]): why for key in self.spots.keys() - measured.keys()
            }
            if not measured:
                self._fail(label, Failure("error", why), run.elapsed)
        elif self.of_base and (lacking := self.of_base - measured.keys()):
            words = f"{len(lacking)} runtime workloads were skipped: {why}"
            self._fail(label, Failure("error", words), run.elapsed)
            return
        for key, (state, samples) in measured.items():
            elapsed = run.elapsed / len(measured)
            self.session.record(self.spots[key], label, samples, elapsed, state.bandwidth)
            self.new += 1
            if label == BASE:
                # They are read sorted, and every second one is compared with the others.
                Random(self.ran).shuffle(samples)  # noqa: S311  an order is no secret
                self.session.noise(self.spots[key], self.ran, samples)
        self.ran += label == BASE

    def _measured(self, run: ProgramRun) -> dict[PointKey, tuple[NvbenchState, list[float]]]:
        """What has samples, by runtime workload; those that were not asked for are none."""
        found = {}
        for bench in run.results.benches:
            for state in bench.states:
                key = _key(RowSpot(self.task.name, bench.name, state.point))
                if key in self.spots and state.samples is not None and len(state.samples):
                    found[key] = (state, [float(one) for one in state.samples])
        return found

    def _fail(self, label: str, failure: Failure, elapsed: float) -> None:
        if label == BASE:
            raise InputError(
                f"base of {self.task.name} fails: {failure.reason}",
                "What was measured is kept. Look at the GPU with nvidia-smi.",
            )
        self.failed[label] = failure
        for spot in self.spots.values():
            self.session.fail(spot, label, failure, elapsed / len(self.spots))


def _key(spot: RowSpot) -> PointKey:
    return spot.subbench, workload_text(spot.workload)


def in_words(spot: RowSpot) -> str:
    """As what was skipped names it: `base T{ct}=F32 Elements{io}[pow2]=16`."""
    return " ".join([spot.subbench, *(f"{axis}={value}" for axis, value in spot.workload.items())])


def _kept(done: int, total: int) -> str:
    return f"{done:,} of {total:,} runs are done, and their rows are kept."
