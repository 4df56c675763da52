"""Measures the programs of a checkout's benchmark in rounds; each run is a separate process.

The results of variants are not compared with the baseline, because these programs do not output
any.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from policygen.errors import InputError, ProcessError
from policygen.gpu.checkout import BuiltPrograms, CheckoutBenchmark
from policygen.gpu.control import Controller, FunctionSamples, Opened, PointResult, round_order
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import Failure, GpuFacts, VariantFunction
from policygen.gpu.machine import SESSION, gpu_lock
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.rounds import Findings
from policygen.model.benchmarks import Axis, Benchmark
from policygen.model.workload import BASE, axis_name
from policygen.process import ENDLESS, run, stopping
from policygen.results.nvbench import NvbenchRun, NvbenchState, read_nvbench
from policygen.steps import Progress, counted
from policygen.untrusted import visible

PHASE = "measuring with NVBench"
CRITERION = ("--stopping-criterion", "entropy")
"""When NVBench stops sampling, as in CCCL's search: for programs and for `cuda.bench`."""
PointKey = tuple[str, str, str]
"""Key of a runtime workload in policygen's own tables."""


@dataclass(frozen=True, slots=True)
class CheckoutTask:
    """What to measure of one workload, and on which GPU."""

    benchmark: CheckoutBenchmark
    workload: Mapping[str, str]
    built: BuiltPrograms
    gpu: GpuFacts
    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Runtime axis → the values to measure, if not all."""

    @property
    def name(self) -> str:
        """Name of the benchmark."""
        return self.benchmark.benchmark.name

    @property
    def spots(self) -> tuple[RowSpot, ...]:
        """All requested runtime workloads; the baseline may skip some of them."""
        spots: list[RowSpot] = []
        for subbench in self.benchmark.benchmark.subbenches:
            values_by_axis = {
                axis.name: [self.workload[axis.name]]
                if axis.compile_time
                else chosen_values(self.name, axis, self.chosen)
                for axis in subbench.axes
            }
            points = (
                dict(zip(values_by_axis, p, strict=True)) for p in product(*values_by_axis.values())
            )
            spots += [RowSpot(self.name, subbench.name, point) for point in points]
        return tuple(spots)


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
    """Run the baseline and variants once per round, reversing each second round.

    Rows are written immediately, and the GPU is locked meanwhile. Runs from earlier sessions count,
    and failed variants are left out.
    """
    measuring = _Measuring(task, session, {spot.key: spot for spot in task.spots})
    labels = [label for label in task.built.programs if label != BASE]
    orders = _orders(labels, measuring.begin(labels, rounds), seed)
    steps, done = [label for order in orders for label in order], 0
    with (
        gpu_lock(task.gpu.uuid, SESSION, patience, locks),
        stopping(lambda: f"{done:,} of {len(steps):,} runs are done, and their rows are kept."),
    ):
        for label in counted(steps, PHASE, progress, lambda label: f"{label} of {task.name}"):
            if label not in measuring.failed:
                measuring.run_program_of(label)
            done += 1
    failed = {label: failure for label, failure in measuring.failed.items() if label in labels}
    return Findings(failed, measuring.skipped, measuring.new_rows)


def _orders(labels: Sequence[str], missing_runs: Mapping[str, int], seed: int) -> list[list[str]]:
    """Return the order of each round: the baseline and the variants that lack runs."""
    orders: list[list[str]] = []
    for index in range(max([0, *missing_runs.values()])):
        order = [BASE, *(label for label in labels if missing_runs[label] > index)]
        # The first program runs on a cool GPU, so each second round is reversed.
        Random(f"{seed}/{index // 2}").shuffle(order)  # noqa: S311  an order is not a secret
        orders.append(order[::-1] if index % 2 else order)
    return orders


@dataclass(slots=True)
class _Measuring:
    """State of the measurement while programs run."""

    task: CheckoutTask
    session: MeasuringSession
    spots: Mapping[PointKey, RowSpot]
    failed: dict[str, Failure] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    slowest: float | None = None
    """Longest duration of the baseline in seconds."""
    measured_by_base: frozenset[PointKey] | None = None
    """Runtime workloads that the baseline measured."""
    base_runs: int = 0
    """Number of runs of the baseline in all sessions."""
    new_rows: int = 0

    def begin(self, labels: Sequence[str], rounds: int) -> dict[str, int]:
        """Create the tables; return how many runs each label lacks."""
        counts: list[dict[str, int]] = []
        for spot in self.spots.values():
            self.session.prepare(spot, self.task.benchmark.declared)
            self.failed |= self.session.failed(spot)
            times = self.session.times(spot)
            if BASE in times:  # variants need no runs where the baseline is skipped
                counts.append({name: len(times.get(name, ())) for name in (BASE, *labels)})
        self.base_runs = max((spot_counts[BASE] for spot_counts in counts), default=0)
        if not counts:
            return dict.fromkeys([BASE, *labels], rounds)
        return {
            name: max(0, rounds - min(spot_counts[name] for spot_counts in counts))
            for name in counts[0]
        }

    def run_program_of(self, label: str) -> None:
        """Run one program and store its measurements."""
        limit = LIMIT if self.slowest is None else max(FLOOR, TIMES_BASE * self.slowest)
        task, program = self.task, self.task.built.programs[label]
        arguments = run_arguments(task.benchmark.benchmark, task.workload, task.chosen)
        started = time.monotonic()
        try:
            results = run_program(program, arguments, task.gpu.uuid, limit)
        except ProcessError as error:
            self._fail(label, _failure(error), time.monotonic() - started)
            return
        program_seconds = time.monotonic() - started
        if results.gpu != self.task.gpu.label:
            raise InputError(f"NVBench measured on {results.gpu}, not on {self.task.gpu.label}")
        measured = self._samples_by_point(results)
        skipped = (state.reason for bench in results.benches for state in bench.skipped)
        reason = visible(next(skipped, "it took no samples"))
        if label == BASE:
            self.slowest = max(self.slowest or 0.0, program_seconds)
            self.measured_by_base = frozenset(measured)
            self.skipped |= {
                in_words(self.spots[key]): reason for key in self.spots.keys() - measured.keys()
            }
            if not measured:
                self._fail(label, Failure("error", reason), program_seconds)
        elif self.measured_by_base and (missing := self.measured_by_base - measured.keys()):
            message = f"{len(missing)} runtime workloads were skipped: {reason}"
            self._fail(label, Failure("error", message), program_seconds)
            return
        for key, (state, samples) in measured.items():
            elapsed = program_seconds / len(measured)
            self.session.record(self.spots[key], label, samples, elapsed, state.bandwidth)
            self.new_rows += 1
            if label == BASE:
                # NVBench sorts samples; the noise estimate compares every second one with the rest.
                Random(self.base_runs).shuffle(samples)  # noqa: S311  an order is not a secret
                self.session.noise(self.spots[key], self.base_runs, samples)
        self.base_runs += label == BASE

    def _samples_by_point(
        self, results: NvbenchRun
    ) -> dict[PointKey, tuple[NvbenchState, list[float]]]:
        """Return the samples of the requested runtime workloads."""
        measured = {}
        for bench in results.benches:
            for state in bench.states:
                key = RowSpot(self.task.name, bench.name, state.point).key
                if key in self.spots and state.samples is not None and len(state.samples):
                    measured[key] = (state, [float(sample) for sample in state.samples])
        return measured

    def _fail(self, label: str, failure: Failure, elapsed: float) -> None:
        if label == BASE:
            raise InputError(
                f"base of {self.task.name} fails: {failure.reason}",
                "All measurements so far are kept. Check the GPU with nvidia-smi.",
            )
        self.failed[label] = failure
        for spot in self.spots.values():
            self.session.fail(spot, label, failure, elapsed / len(self.spots))


def in_words(spot: RowSpot) -> str:
    """Describe a runtime workload as `base T{ct}=F32 Elements{io}[pow2]=16`."""
    return " ".join([spot.subbench, *(f"{axis}={value}" for axis, value in spot.workload.items())])


# Rounds with NVBench samples


class NvbenchController(Controller):
    """Controller whose processes run NVBench once each."""

    _spent: int | None = None
    """Restart count of the process in which NVBench has run."""

    def rounds(
        self, variants: Sequence[VariantFunction], count: int, seed: int, *, checks: bool = True
    ) -> PointResult:
        """Run rounds of the baseline and the correct variants, all in one NVBench process."""
        if self._spent == self.restarts:
            self.restart()
        return super().rounds(variants, count, seed, checks=checks)

    def _sample(
        self, opened: Opened, variants: Sequence[VariantFunction], count: int, seed: int
    ) -> tuple[FunctionSamples, int, int]:
        """Return the samples of rounds; NVBench itself discards those of a throttled GPU."""
        correct = [function for function in variants if opened.verdicts[function] is None]
        rounds = (round_order(opened.base, correct, number, seed) for number in range(count))
        order = [function for functions in rounds for function in functions]
        samples: FunctionSamples = {opened.base: []}
        for function, message in self._work(opened, "nvbench", order).answers:
            samples.setdefault(function, []).extend(map(float, message["samples"]))
        self._spent = self.restarts
        return samples, 0, 0


RESULT = "result.json"
VISIBLE = "CUDA_VISIBLE_DEVICES"
INSTALL = "Build the benchmarks again."
LIMIT = 3600.0
"""Time limit of the baseline in seconds, before its duration is known."""
TIMES_BASE = 50.0
"""Time limit of a variant relative to the baseline, as in CCCL's search."""
FLOOR = 60.0


# Running benchmark programs


def run_arguments(
    benchmark: Benchmark, workload: Mapping[str, str], chosen: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return program arguments for one workload and the chosen values of its runtime axes."""
    arguments = [part for axis, value in workload.items() for part in ("-a", f"{axis}={value}")]
    # Only one GPU is visible to the program, so it is device 0.
    arguments += ["--jsonbin", RESULT, *CRITERION, "-d", "0"]
    for subbench in benchmark.subbenches:
        arguments += ["-b", subbench.name]
        for axis in subbench.axes:
            if not axis.compile_time:
                values = chosen_values(benchmark.name, axis, chosen)
                arguments += ["-a", f"{axis.name}=[{','.join(values)}]"]
    return arguments


def chosen_values(benchmark: str, axis: Axis, chosen: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the requested values of an axis; by default all."""
    names = (axis.name, axis_name(axis.name))
    requested = next((chosen[name] for name in names if name in chosen), None)
    if requested is None:
        return axis.values
    if unknown := [value for value in requested if value not in axis.values]:
        raise InputError(
            f"{benchmark}: {names[1]} has no value {unknown[0]}",
            f"It has: {', '.join(axis.values)}",
        )
    return requested


def run_program(
    program: Path, arguments: Sequence[str], uuid: str, limit: float = LIMIT
) -> NvbenchRun:
    """Run a program on one GPU and read its results; raise ProcessError if it fails."""
    with TemporaryDirectory(prefix="policygen-") as temporary:
        folder, command, more = Path(temporary), [str(program), *arguments], {VISIBLE: uuid}
        run(command, folder=folder, limit=limit, install=INSTALL, more=more)
        return read_nvbench(folder / RESULT)


def _failure(error: ProcessError) -> Failure:
    last_line = visible(error.stderr.strip().rpartition("\n")[2])
    if error.status >= 0:
        return Failure("error", f"it ended with {error.status}: {last_line}")
    if error.stderr.startswith(ENDLESS):
        return Failure("hang", error.stderr)
    return Failure("crash", f"it was ended by signal {-error.status}: {last_line}".rstrip(": "))
