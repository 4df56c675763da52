"""Measures the programs of a checkout's benchmark in rounds: each run is a process of its own.

Results of variants are not compared with those of base: these programs show none.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from policygen.errors import InputError, ProcessError
from policygen.gpu.checkout import BuiltPrograms, CheckoutBenchmark
from policygen.gpu.control import Controller, controlling, failed_of, round_order
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, GpuFacts, Limits, Rounds, Told, VariantFunction, Watch
from policygen.gpu.machine import SESSION, gpu_lock
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import Findings
from policygen.model.benchmarks import Axis, Benchmark
from policygen.model.workload import BASE, axis_name
from policygen.opening import read_document
from policygen.process import ENDLESS, run, stopping
from policygen.results.nvbench import NvbenchRun, NvbenchState, parse, read_nvbench
from policygen.results.own_tables import workload_text
from policygen.steps import HowFar, Progress
from policygen.untrusted import visible

PHASE = "measuring with NVBench"
PointKey = tuple[str, str]
"""A sub-benchmark, and the values of all axes."""


@dataclass(frozen=True, slots=True)
class NvbenchSettings:
    """When NVBench has enough samples; those of CCCL's search, where nothing else is said."""

    criterion: str = "entropy"
    min_samples: int | None = None
    timeout: float | None = None
    """Seconds for each runtime workload."""

    @property
    def arguments(self) -> list[str]:
        """As NVBench's programs, and `cuda.bench`, take them."""
        found = ["--stopping-criterion", self.criterion]
        if self.min_samples is not None:
            found += ["--min-samples", str(self.min_samples)]
        if self.timeout is not None:
            found += ["--timeout", f"{self.timeout:g}"]
        return found


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


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a program measured."""

    results: NvbenchRun
    elapsed: float
    """Seconds, of the whole program."""
    skipped: Mapping[str, str]
    """Runtime workloads by NVBench's name that were not measured, and why."""


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


# Rounds in which NVBench measures: each place of the order gives all the samples it takes.


def nvbench_options(settings: NvbenchSettings) -> tuple[str, ...]:
    """What stands behind a worker's command for samples that are NVBench's own."""
    return ("nvbench", *settings.arguments)


@contextmanager
def controlling_nvbench(
    command: Sequence[str],
    *,
    limits: Limits | None = None,
    watch: Watch | None = None,
    more: Mapping[str, str] | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
) -> Iterator["NvbenchController"]:
    """Starts a worker of such a command, and keeps its GPU for the block."""
    with controlling(
        command, limits=limits, watch=watch, more=more, patience=patience, locks=locks
    ) as controller:
        yield NvbenchController(controller)


class NvbenchController(Controller):
    """What is asked of one GPU; NVBench runs once in a process, so that each has its own."""

    def __init__(self, controller: Controller) -> None:
        super().__init__(controller._workers, controller._watch)
        self._spent: int | None = None
        """The process in which NVBench has run."""

    def rounds(self, variants: Sequence[VariantFunction], count: int, seed: int) -> Rounds:
        """Rounds of base and of those variants that are right, all in one process of NVBench.

        NVBench itself leaves out samples of a GPU that is throttled.
        """
        opened = self._begin()
        variants = [one for one in variants if one != opened.base]
        if self._spent == self.restarts:
            self.restart()
        self._check(opened, variants, again=False)
        fine = [one for one in variants if opened.verdicts[one] is None]
        order = [
            one for number in range(count) for one in round_order(opened.base, fine, number, seed)
        ]
        samples: dict[VariantFunction, list[float]] = {opened.base: []}

        def take(one: VariantFunction, told: Told) -> None:
            samples.setdefault(one, []).extend(map(float, told["samples"]))

        self._workers.work(opened, "nvbench", order, take)
        self._spent = self.restarts
        failed = failed_of(opened, variants)
        kept = {
            one.variant: tuple(times) for one, times in samples.items() if one.variant not in failed
        }
        return Rounds(kept, failed, dict(self._workers.elapsed))


RESULT = "result.json"
VISIBLE = "CUDA_VISIBLE_DEVICES"
INSTALL = "Build the benchmarks again."
LIMIT = 3600.0
"""Seconds that base may take; nobody knows before."""
TIMES_BASE = 50.0
"""As many times as long may a variant take, as in CCCL's search."""
FLOOR = 60.0


class FailedRunError(Exception):
    """A program that measured nothing."""

    def __init__(self, failure: Failure, elapsed: float) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.elapsed = elapsed


# Runs a benchmark's program as CCCL's search does, and reads what NVBench wrote.


def run_arguments(
    benchmark: Benchmark,
    workload: Mapping[str, str],
    chosen: Mapping[str, Sequence[str]],
    settings: NvbenchSettings,
) -> list[str]:
    """What a program is called with: one workload, and of its runtime axes the chosen values."""
    found = [part for axis, value in workload.items() for part in ("-a", f"{axis}={value}")]
    # One GPU is shown to it, which is its first.
    found += ["--jsonbin", RESULT, *settings.arguments, "-d", "0"]
    for sub in benchmark.subbenches:
        found += ["-b", sub.name]
        for axis in sub.axes:
            if not axis.compile_time:
                values = chosen_values(benchmark.name, axis, chosen)
                found += ["-a", f"{axis.name}=[{','.join(values)}]"]
    return found


def chosen_values(benchmark: str, axis: Axis, chosen: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The values of an axis that are asked for; all, where nothing is said of it."""
    names = (axis.name, axis_name(axis.name))
    asked = next((chosen[name] for name in names if name in chosen), None)
    if asked is None:
        return axis.values
    if unknown := [value for value in asked if value not in axis.values]:
        raise InputError(
            f"{benchmark}: {names[1]} has no value {unknown[0]}",
            f"It has: {', '.join(axis.values)}",
        )
    return asked


def run_program(
    program: Path, arguments: Sequence[str], uuid: str, limit: float = LIMIT
) -> ProgramRun:
    """Runs a program on one GPU, and reads its results."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="policygen-") as temporary:
        folder = Path(temporary)
        try:
            run(
                [str(program), *arguments],
                folder=folder,
                limit=limit,
                install=INSTALL,
                more={VISIBLE: uuid},
            )
        except ProcessError as error:
            raise FailedRunError(_failure(error), time.monotonic() - begun) from error
        elapsed = time.monotonic() - begun
        path = folder / RESULT
        return ProgramRun(read_nvbench(path), elapsed, _skipped(path))


def _failure(error: ProcessError) -> Failure:
    said = visible(error.stderr.strip().rpartition("\n")[2])
    if error.status >= 0:
        return Failure("error", f"it ended with {error.status}: {said}")
    if error.stderr.startswith(ENDLESS):
        return Failure("hang", error.stderr)
    return Failure("crash", f"it was ended by signal {-error.status}: {said}".rstrip(": "))


def _skipped(path: Path) -> dict[str, str]:
    document = parse(path, read_document(path))
    return {
        f"{bench.name} {state.name}": visible(state.skip_reason or "NVBench skips it")
        for bench in document.benchmarks
        for state in bench.states
        if state.is_skipped
    }
