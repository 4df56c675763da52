"""Controller of one GPU: a variant that crashes, hangs, or runs out of memory fails alone.

The controller holds the GPU lock and starts the worker process. When the worker ends or hangs, the
controller starts another one and does not run the offending variant again. A GPU on which the
baseline itself fails several times in a row is reported as lost.
"""

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

from policygen.gpu.device import (
    MEMORY,
    Clocks,
    Failure,
    GoneError,
    GpuFacts,
    Kind,
    Launch,
    Limits,
    LostGpuError,
    RuntimeCase,
    VariantFunction,
    Watch,
    WorkerLine,
    WorkerMessage,
)
from policygen.gpu.machine import SESSION, device_environment, gpu_lock
from policygen.model.workload import BASE
from policygen.process import module

AT_ONCE = 64
"""Maximum number of runs per request; the clocks are checked after each request."""
WARM_SECONDS, IDLE = 0.1, 1.0
"""After a pause of `IDLE` seconds, the baseline runs for a while to let the clocks ramp up."""
FunctionSamples = dict[VariantFunction, list[float]]
"""Seconds in measurement order."""


def worker_command(index: int, runner: Path, runtime: Path | None) -> tuple[str, ...]:
    """Return the command that starts the worker of GPU `index` with a runner and a CUDA runtime."""
    paths = (str(runner.absolute()), "" if runtime is None else str(runtime.absolute()))
    return (*module("policygen.gpu.worker"), str(index), *paths)


@dataclass(frozen=True, slots=True)
class PointResult:
    """Result of rounds of the baseline and variants on one runtime workload."""

    samples: Mapping[str, Sequence[float]]
    """Seconds by label in measurement order, including `base`; empty if it cannot be opened."""
    failed: Mapping[str, Failure]
    """Requested variants without samples."""
    elapsed: Mapping[str, float]
    """GPU seconds by variant, including its check."""
    repeated: int = 0
    """Samples that were repeated because the GPU was throttled."""
    throttled: int = 0
    """Samples that are still throttled after all allowed repeats."""
    restarts: int = 0
    """Number of processes so far that were started after the first one of each GPU."""
    point: int = 0
    """Index of the runtime workload in a rung."""
    part: int = 0
    """Index of the process of a rung; each process measures the baseline."""

    def below(self, least: float) -> set[str]:
        """Return the variants whose ratio to the baseline is lower."""
        if not least or not self.samples:
            return set()
        base = median(self.samples[BASE])
        return {label for label, times in self.samples.items() if base < least * median(times)}


@dataclass(slots=True)
class Opened:
    """The runtime workload that is currently open."""

    case: RuntimeCase
    base: VariantFunction
    verdicts: dict[VariantFunction, Failure | None] = field(default_factory=dict)
    """Failure of each checked variant, or None if its results match the baseline."""
    launches: dict[str, Launch] = field(default_factory=dict)
    """Launch configurations of own kernels, by label, with the baseline's."""
    suspects: set[VariantFunction] = field(default_factory=set)
    """Variants that ran when the process was killed from outside; the second time they fail."""
    slowest: dict[str, float] = field(default_factory=dict)
    """Longest duration of the baseline by step, in seconds."""
    made: bool = False
    """Whether the process has created the inputs."""
    referenced: bool = False
    """Whether the process holds the baseline results."""
    warm: bool = False
    """Whether the baseline has run in the process."""

    def forget(self) -> None:
        """Reset the state that belongs to one process."""
        self.made = self.referenced = self.warm = False

    def keep_launch(self, function: VariantFunction, message: WorkerMessage) -> None:
        """Keep the launch configuration that comes with a right answer of an own kernel."""
        if "launch" in message:
            self.launches[function.variant] = Launch(**message["launch"])

    def failed(self, variants: Sequence[VariantFunction]) -> dict[str, Failure]:
        """Return the failures of variants by label."""
        verdicts = ((function.variant, self.verdicts.get(function)) for function in variants)
        return {label: failure for label, failure in verdicts if failure is not None}


@dataclass(slots=True)
class _Task:
    """A request for one step of an open runtime workload."""

    opened: Opened
    step: str
    pending: list[VariantFunction]
    """Variants without an answer, in order."""
    answers: list[tuple[VariantFunction, WorkerMessage]] = field(default_factory=list)
    clocks: Clocks | None = None
    current: VariantFunction | None = None
    """Variant that is currently running."""
    started: float = 0.0

    def shorten(self) -> bool:
        """Drop variants that have failed; return whether any are left."""
        verdicts = self.opened.verdicts
        failed = {function for function, failure in verdicts.items() if failure is not None}
        if self.step != "check":  # every variant is compared with the baseline
            failed.discard(self.opened.base)
        self.pending = [function for function in self.pending if function not in failed]
        return bool(self.pending)

    def begin(self, function: VariantFunction) -> None:
        """Record that `function` is running now; the variants before it were refused."""
        del self.pending[: self.pending.index(function)]
        self.current, self.started = function, time.monotonic()


class Controller:
    """Interface to one GPU, with one runtime workload open at a time."""

    def __init__(self, command: Sequence[str], limits: Limits, watch: Watch) -> None:
        """Start the first worker process."""
        self._command, self._limits, self._watch = command, limits, watch
        self._opened: Opened | None = None
        self._kept: dict[tuple[RuntimeCase, VariantFunction], Opened] = {}
        """Runtime workloads that were open before, with their verdicts."""
        self._elapsed: defaultdict[str, float] = defaultdict(float)
        """Seconds by label since the last clear."""
        self._troubles = self._requested_restarts = self._fastest = 0
        self._idle_since = 0.0
        self.restarts = 0
        """Number of processes started after the first one."""
        self.facts = self._first_facts()

    def close(self) -> None:
        """End the process."""
        self._line.close()

    @property
    def ended(self) -> int:
        """Number of processes that crashed, hung, or became unusable."""
        return self.restarts - self._requested_restarts

    def open(self, case: RuntimeCase, base: VariantFunction) -> str | None:
        """Create the inputs and the baseline results; return the reason on failure.

        The process may have them from before. Verdicts about variants are kept.
        """
        opened = self._kept.setdefault((case, base), Opened(case, base))
        self._opened = None
        while True:
            try:
                problem = self._make(opened) or (
                    None if opened.referenced else self._reference(opened)
                )
            except GoneError as error:
                self._trouble(error.words)
                self._another()
            else:
                self._opened = opened if problem is None else None
                return problem

    def open_checked(self, case: RuntimeCase, base: VariantFunction) -> str | None:
        """Open a runtime workload anew; return a reason also if base differs from itself."""
        self._kept.pop((case, base), None)
        if (problem := self.open(case, base)) is not None:
            return problem
        if (failure := self.check([base]).get(base.variant)) is None:
            return None
        differs = failure.kind == "wrong"
        return f"base differs from itself: {failure.reason}" if differs else failure.reason

    def check(self, variants: Sequence[VariantFunction]) -> dict[str, Failure]:
        """Compare results with the baseline, a variant once; return the failures by label."""
        opened = self._begin()
        self._check(opened, variants)
        return opened.failed(variants)

    def rounds(
        self, variants: Sequence[VariantFunction], count: int, seed: int, *, checks: bool = True
    ) -> PointResult:
        """Measure rounds of the baseline and the variants; those that `checks` finds wrong are not.

        Without variants only the baseline is measured.
        """
        opened = self._begin()
        variants = [function for function in variants if function != opened.base]
        if checks:
            self._check(opened, variants)
        samples, repeated, throttled = self._sample(opened, variants, count, seed)
        failed = opened.failed(variants)
        measured = ((function.variant, tuple(seconds)) for function, seconds in samples.items())
        kept = {label: seconds for label, seconds in measured if label not in failed}
        elapsed = dict(self._elapsed)
        return PointResult(kept, failed, elapsed, repeated, throttled, self.restarts)

    def _sample(
        self, opened: Opened, variants: Sequence[VariantFunction], count: int, seed: int
    ) -> tuple[FunctionSamples, int, int]:
        """Return the samples of rounds, how many were repeated, and how many are throttled."""
        self._warm(opened)
        samples: FunctionSamples = {opened.base: []}
        repeated = throttled = 0
        repeats_left = self._watch.repeats + self._watch.share * count * len(variants) / AT_ONCE
        for number in range(count):
            correct = [function for function in variants if opened.verdicts.get(function) is None]
            for chunk in _chunks(round_order(opened.base, correct, number, seed)):
                most_repeats = min(int(repeats_left), self._watch.repeats)
                taken, repeats, is_slow = self._chunk(opened, chunk, most_repeats)
                repeats_left -= repeats
                repeated += repeats * len(taken)
                throttled += is_slow * len(taken)
                for function, seconds in taken:
                    samples.setdefault(function, []).append(seconds)
        return samples, repeated, throttled

    @property
    def launches(self) -> Mapping[str, Launch]:
        """Launch configurations of own kernels that were checked on the open runtime workload."""
        return {} if self._opened is None else self._opened.launches

    def bandwidth(self) -> float | None:
        """Measured copy bandwidth in bytes per second; None if it cannot be measured."""
        bandwidth: float | None = None
        try:
            for message in self._line.answers(lambda: self._limits.first, {"do": "bandwidth"}):
                if "bandwidth" in message:
                    bandwidth = float(message["bandwidth"])
        except GoneError as error:
            self._trouble(error.words)
            self._another()
            return None
        return bandwidth

    def restart(self) -> None:
        """Start a fresh process, reopening the workload and keeping all verdicts."""
        self._requested_restarts += 1
        self._another()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """End the process for the block so that another process of this session can use the GPU."""
        self.close()
        try:
            yield
        finally:
            self.restart()

    def _begin(self) -> Opened:
        if self._opened is None:
            raise ValueError("no runtime workload is open")
        self._elapsed.clear()
        return self._opened

    def _check(self, opened: Opened, variants: Sequence[VariantFunction]) -> None:
        verdicts = opened.verdicts
        for chunk in _chunks([function for function in variants if function not in verdicts]):
            for function, message in self._work(opened, "check", chunk).answers:
                is_wrong = "wrong" in message
                verdicts[function] = Failure("wrong", str(message["words"])) if is_wrong else None
                opened.keep_launch(function, message)

    def _warm(self, opened: Opened) -> None:
        """Run the baseline in a new process, or after a pause, so that the clocks ramp up."""
        if not opened.warm or time.monotonic() - self._idle_since > IDLE:
            seconds = opened.slowest.get("reference", 0.0)
            most = self._watch.warm if seconds <= 0 else math.ceil(WARM_SECONDS / seconds)
            runs = [opened.base] * max(2, min(self._watch.warm, most))
            self._is_slow(self._work(opened, "sample", runs).clocks)
            opened.warm = True

    def _chunk(
        self, opened: Opened, order: Sequence[VariantFunction], most_repeats: int
    ) -> tuple[list[tuple[VariantFunction, float]], int, bool]:
        """Return samples, the number of repeats, and whether the GPU is still throttled."""
        for repeats in range(most_repeats + 1):
            task = self._work(opened, "sample", order)
            taken = [(function, float(message["took"])) for function, message in task.answers]
            if not self._is_slow(task.clocks):
                return taken, repeats, False
            if repeats < most_repeats:
                time.sleep(self._watch.pause)
        return taken, most_repeats, True

    def _is_slow(self, clocks: Clocks | None) -> bool:
        """Whether the GPU ran below its usual clocks."""
        if clocks is None:  # no variant was left to run
            return False
        self._fastest = max(self._fastest, clocks.sm)
        return bool(clocks.throttled) or clocks.sm < (1 - self._watch.slower) * self._fastest

    # The worker process and its successors

    def _first_facts(self) -> GpuFacts:
        """Start a process and read the GPU facts, twice if it was killed from outside."""
        is_first = True
        while True:
            self._line = WorkerLine(self._command, device_environment())
            try:
                return read_facts(self._line, self._limits)
            except GoneError as error:
                self.close()
                if not (error.outside and is_first):
                    raise LostGpuError(f"the GPU cannot be used: {error.words}") from error
                is_first = False
            except BaseException:
                self.close()
                raise

    def _work(self, opened: Opened, step: str, items: Sequence[VariantFunction]) -> _Task:
        """Send requests until each item has an answer or has failed."""
        task = _Task(opened, step, list(items))
        while task.shorten():
            try:
                self._prepare(opened, reference=step == "check")
                self._ask(task)
            except GoneError as error:
                if task.current is None or task.current == opened.base:
                    self._trouble(error.words)
                elif error.outside and task.current not in opened.suspects:
                    opened.suspects.add(task.current)
                else:
                    self._record_failure(task, Failure(error.kind, error.words))
                self._another()
        self._idle_since = time.monotonic()
        return task

    def _reference(self, opened: Opened) -> str | None:
        """Record the baseline results; return the reason if the baseline is refused."""
        task = _Task(opened, "reference", [opened.base])
        try:
            self._ask(task)
        except _RefusedError as error:
            return str(error)
        for function, message in task.answers:
            opened.keep_launch(function, message)
        opened.referenced = True
        return None

    def _prepare(self, opened: Opened, *, reference: bool) -> None:
        """Make sure that the process has the inputs and, if needed, the baseline results."""
        problem = None if opened.made else self._make(opened)
        if problem is None and reference and not opened.referenced:
            problem = self._reference(opened)
        if problem is not None:
            raise GoneError(problem)

    def _ask(self, task: _Task) -> None:
        """Send one request; variants with an answer are removed from `pending`."""
        task.current = None
        functions = list(dict.fromkeys(task.pending))
        indexes = {function: index for index, function in enumerate(functions)}
        order = [indexes[function] for function in task.pending]
        fields = [astuple(function) for function in functions]
        request = {"do": task.step, "functions": fields, "order": order}
        for message in self._line.answers(lambda: self._limit(task), request):
            if "at" in message:
                task.begin(functions[message["at"]])
            elif "clocks" in message:
                task.clocks = Clocks(message["clocks"]["sm"], tuple(message["clocks"]["throttled"]))
            else:
                self._handle_answer(task, message)

    def _handle_answer(self, task: _Task, message: WorkerMessage) -> None:
        failure, function = _message_failure(message), task.current
        if failure is not None:
            if function is None or message.get("sticky"):
                raise GoneError(failure.reason, failure.kind)
            if function == task.opened.base and task.step != "check":
                raise _RefusedError(failure.reason, failure.kind)
            self._record_failure(task, failure)
            return
        assert function is not None
        seconds = time.monotonic() - task.started
        if function == task.opened.base:
            self._troubles = 0
            slowest = task.opened.slowest
            slowest[task.step] = max(seconds, slowest.get(task.step, 0.0))
        self._elapsed[function.variant] += seconds
        task.pending.remove(function)
        task.current = None
        task.answers.append((function, message))

    def _record_failure(self, task: _Task, failure: Failure) -> None:
        """Record that the current variant failed and must not run again."""
        assert task.current is not None
        self._elapsed[task.current.variant] += time.monotonic() - task.started
        task.opened.verdicts[task.current] = failure
        task.current = None

    def _limit(self, task: _Task) -> float:
        slowest = task.opened.slowest
        # The check of the baseline reuses the time of making its results, which takes as long.
        base_seconds = slowest.get(task.step, slowest.get("reference"))
        return self._limits.seconds(task.current.variant if task.current else None, base_seconds)

    def _make(self, opened: Opened) -> str | None:
        """Let the process create the inputs; return the reason if the benchmark or GPU refuses."""
        problem: str | None = None
        request = {"do": "open", "case": asdict(opened.case)}
        for message in self._line.answers(lambda: self._limits.first, request):
            if (failure := _message_failure(message)) is not None:
                if message["sticky"]:
                    raise GoneError(failure.reason, failure.kind)
                problem = failure.reason
            elif not message["open"]:
                problem = SKIPPED
            elif not message["kept"]:
                opened.forget()
        opened.made = problem is None
        return problem

    def _another(self) -> None:
        """Start another process; the open workload is recreated in it on demand."""
        for opened in self._kept.values():
            opened.forget()
        while True:
            self._line.close()
            try:
                self._start()
            except GoneError as error:
                self._trouble(error.words)
            else:
                return

    def _start(self) -> None:
        self._line = WorkerLine(self._command, device_environment())
        self.restarts += 1
        if (uuid := read_facts(self._line, self._limits).uuid) != self.facts.uuid:
            raise GoneError(f"a different GPU has its number now: {uuid}")

    def _trouble(self, reason: str) -> None:
        """Count a failure that no variant caused; raise LostGpuError after too many in a row."""
        self._troubles += 1
        if self._troubles >= self._limits.attempts:
            raise LostGpuError(
                f"{self.facts.label}: base failed {self._troubles} times in a row: {reason}",
                "All measurements so far are kept. Check the GPU with nvidia-smi.",
            )


@contextmanager
def controlling(
    command: Sequence[str],
    *,
    kind: type[Controller] = Controller,
    limits: Limits | None = None,
    watch: Watch | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
    held: bool = False,
) -> Iterator[Controller]:
    """Start a worker and hold its GPU for the block; `patience` is how long to wait for a busy GPU.

    `held` means that this process already holds the GPU.
    """
    controller = kind(command, limits or Limits(), watch or Watch())
    try:
        with nullcontext() if held else gpu_lock(controller.facts.uuid, SESSION, patience, locks):
            yield controller
    finally:
        controller.close()


def _chunks(functions: Sequence[VariantFunction]) -> Iterator[Sequence[VariantFunction]]:
    for start in range(0, len(functions), AT_ONCE):
        yield functions[start : start + AT_ONCE]


SKIPPED = "the benchmark skips it"


class _RefusedError(GoneError):
    """The baseline was refused: the process goes on, but without this runtime workload."""


# Worker messages


def read_facts(line: WorkerLine, limits: Limits) -> GpuFacts:
    """Read the GPU facts that a process reports once it holds its GPU."""
    line.send({"do": "facts"})
    message = line.receive(limits.start)
    if "facts" not in message:
        raise GoneError(str(message.get("refused") or message.get("words")))
    line.receive(limits.start)  # the closing message
    return GpuFacts(**message["facts"])


def _message_failure(message: WorkerMessage) -> Failure | None:
    """Return the failure that a message reports, if any."""
    if "failed" in message:
        kind: Kind = "memory" if message["code"] == MEMORY else "error"
        return Failure(kind, str(message["words"]))
    if "took" in message and not 0 < message["took"] < math.inf:
        return Failure("error", f"it took {message['took']} seconds")
    return None


T = TypeVar("T")


# Order of baseline and variants in a round


def bases_among(variants: int) -> int:
    """Return how often the baseline runs per round; all variants are compared with it."""
    return max(2, math.ceil(math.sqrt(variants)))


def round_order(base: T, variants: Sequence[T], number: int, seed: int) -> list[T]:
    """Return a round: each variant once and the baseline several times, evenly spread.

    The position in the order is a bias, not noise. Each second round reverses the one before, so
    that drift and neighbor effects cancel out.
    """
    # Seed with text so that the orders of neighboring seeds are unrelated.
    random = Random(f"{seed}/{number // 2}")  # noqa: S311  an order is not a secret
    shuffled = list(variants)
    random.shuffle(shuffled)
    parts = bases_among(len(shuffled))
    order: list[T] = []
    for part in range(parts):
        part_order = shuffled[part * len(shuffled) // parts : (part + 1) * len(shuffled) // parts]
        part_order.insert(random.randint(0, len(part_order)), base)
        order += part_order
    return order[::-1] if number % 2 else order
