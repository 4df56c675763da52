"""The controller of one GPU: a variant that crashes, hangs or asks for too much costs itself alone.

It holds the GPU's lock, starts the worker, and starts another one when that ends or hangs; who was
at work then is not asked again. A GPU on which base itself fails several times in a row is lost.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from policygen.gpu.device import (
    MEMORY,
    Checked,
    Clocks,
    Failure,
    GoneError,
    GpuFacts,
    Kind,
    Launch,
    Limits,
    LostGpuError,
    Rounds,
    RuntimeCase,
    Told,
    VariantFunction,
    Watch,
    WorkerLine,
)
from policygen.gpu.machine import SESSION, gpu_lock
from policygen.process import module

AT_ONCE = 64
"""Runs of one request; after each the clocks are looked at."""


def worker_command(index: int, runner: Path, runtime: Path | None) -> tuple[str, ...]:
    """What starts the worker of a GPU, by its number, with the runner and the CUDA runtime."""
    paths = (str(runner.absolute()), "" if runtime is None else str(runtime.absolute()))
    return (*module("policygen.gpu.worker"), str(index), *paths)


@contextmanager
def controlling(
    command: Sequence[str],
    *,
    limits: Limits | None = None,
    watch: Watch | None = None,
    more: Mapping[str, str] | None = None,
    patience: float = 0.0,
    locks: Path | None = None,
    held: bool = False,
) -> Iterator["Controller"]:
    """Starts a worker, and keeps its GPU for the block; waits so many seconds for one in use.

    `more` is added to what the worker is told of the environment. `held`: this process keeps the
    GPU already.
    """
    workers = Workers(command, more or {}, limits or Limits())
    try:
        with nullcontext() if held else gpu_lock(workers.facts.uuid, SESSION, patience, locks):
            yield Controller(workers, watch or Watch())
    finally:
        workers.close()


@dataclass(slots=True)
class Opened:
    """The runtime workload that is open."""

    case: RuntimeCase
    base: VariantFunction
    verdicts: dict[VariantFunction, Failure | None] = field(default_factory=dict)
    """Nothing of those that have the results of base."""
    launches: dict[str, Launch] = field(default_factory=dict)
    """How kernels of one's own are launched, by label."""
    suspects: set[VariantFunction] = field(default_factory=set)
    """Those who were at work when somebody ended their process: the second time it is them."""
    slowest: dict[str, float] = field(default_factory=dict)
    """By step: the longest that base took, in seconds."""
    made: bool = False
    """Whether the process has the inputs."""
    referenced: bool = False
    """Whether the process has base's results."""
    warm: bool = False
    """Whether base has run in the process."""

    def forget(self) -> None:
        """Another process has nothing of it."""
        self.made = self.referenced = self.warm = False


Take = Callable[[VariantFunction, Told], None]
"""What to do with an answer."""


@dataclass(slots=True)
class _Task:
    """What is asked about an open runtime workload."""

    opened: Opened
    step: str
    left: list[VariantFunction]
    """Those without an answer, in their order."""
    take: Take
    clocks: Clocks | None = None
    at: VariantFunction | None = None
    """Who is at work."""
    begun: float = 0.0

    def shorten(self) -> bool:
        """Leaves out who has failed; whether somebody is left."""
        known = self.opened.verdicts
        bad = {one for one, found in known.items() if found is not None}
        if self.step != "check":  # it is what all are compared with
            bad.discard(self.opened.base)
        self.left = [one for one in self.left if one not in bad]
        return bool(self.left)

    def begin(self, one: VariantFunction) -> None:
        """Notes who is at work now; those before it were refused before."""
        del self.left[: self.left.index(one)]
        self.at, self.begun = one, time.monotonic()


class Workers:
    """A GPU's worker, and those that come after it."""

    def __init__(self, command: Sequence[str], more: Mapping[str, str], limits: Limits) -> None:
        """Starts the first one."""
        self._command, self._more, self._limits = command, more, limits
        self._line = WorkerLine(command, more)
        self._troubles = 0
        self.restarts = 0
        self.opened: Opened | None = None
        self.elapsed: defaultdict[str, float] = defaultdict(float)
        """Seconds by label, since somebody has cleared it."""
        try:
            self.facts = self._first_facts()
        except GoneError as error:
            self.close()
            raise LostGpuError(f"the GPU cannot be used: {error.words}") from error
        except BaseException:
            self.close()
            raise

    def _first_facts(self) -> GpuFacts:
        """What the first process says; one that somebody else has ended is started once more."""
        try:
            return read_facts(self._line, self._limits)
        except GoneError as error:
            if not error.outside:
                raise
        self._line.close()
        self._line = WorkerLine(self._command, self._more)
        return read_facts(self._line, self._limits)

    def close(self) -> None:
        """Ends the process."""
        self._line.close()

    def work(
        self, opened: Opened, step: str, items: Sequence[VariantFunction], take: Take
    ) -> Clocks | None:
        """Asks until each item has an answer, or is known to have none."""
        task = _Task(opened, step, list(items), take)
        while task.shorten():
            try:
                self._need(opened, reference=step == "check")
                self._ask(task)
            except GoneError as error:
                if task.at is None or task.at == opened.base:
                    self.trouble(error.words)
                elif error.outside and task.at not in opened.suspects:
                    opened.suspects.add(task.at)
                else:
                    self._fail(task, Failure(error.kind, error.words))
                self.another()
        return task.clocks

    def bandwidth(self) -> float | None:
        """Asks how fast memory is copied; nothing where the worker cannot tell."""
        self._line.send({"do": "bandwidth"})
        found: float | None = None
        while "done" not in (told := self._line.receive(self._limits.first)):
            if "bandwidth" in told:
                found = float(told["bandwidth"])
        return found

    def reference(self, opened: Opened) -> str | None:
        """Lets the process keep base's results; why not, where base is refused."""
        task = _Task(opened, "reference", [opened.base], nothing)
        try:
            self._ask(task)
        except _RefusedError as error:
            return str(error)
        opened.referenced = True
        return None

    def _need(self, opened: Opened, *, reference: bool) -> None:
        """Lets the process have what it needs."""
        why = None if opened.made else self.make(opened)
        if why is None and reference and not opened.referenced:
            why = self.reference(opened)
        if why is not None:
            raise GoneError(why)

    def _ask(self, task: _Task) -> None:
        """One request; what has an answer is no more left."""
        task.at = None
        functions = list(dict.fromkeys(task.left))
        number = {one: index for index, one in enumerate(functions)}
        order = [number[one] for one in task.left]
        told_of = [astuple(one) for one in functions]
        self._line.send({"do": task.step, "functions": told_of, "order": order})
        while "done" not in (told := self._line.receive(self._limit(task))):
            if "at" in told:
                task.begin(functions[told["at"]])
            elif "clocks" in told:
                task.clocks = Clocks(told["clocks"]["sm"], tuple(told["clocks"]["throttled"]))
            else:
                self._answered(task, told)

    def _answered(self, task: _Task, told: Told) -> None:
        bad, one = _bad(told), task.at
        if bad is not None:
            if one is None or told.get("sticky"):
                raise GoneError(bad.reason, bad.kind)
            if one == task.opened.base and task.step != "check":
                raise _RefusedError(bad.reason, bad.kind)
            self._fail(task, bad)
            return
        assert one is not None
        took = time.monotonic() - task.begun
        if one == task.opened.base:
            self._troubles = 0
            slowest = task.opened.slowest
            slowest[task.step] = max(took, slowest.get(task.step, 0.0))
        self.elapsed[one.variant] += took
        task.left.remove(one)
        task.at = None
        task.take(one, told)

    def _fail(self, task: _Task, failure: Failure) -> None:
        """Notes that who is at work is not to be asked again."""
        assert task.at is not None
        self.elapsed[task.at.variant] += time.monotonic() - task.begun
        task.opened.verdicts[task.at] = failure
        task.at = None

    def _limit(self, task: _Task) -> float:
        known = task.opened.slowest
        # Before base is checked it has made its results, which takes as long.
        base = known.get(task.step, known.get("reference"))
        return self._limits.seconds(task.at.variant if task.at else None, base)

    def make(self, opened: Opened) -> str | None:
        """Lets the process make the inputs; why not, where the benchmark or the GPU refuses."""
        self._line.send({"do": "open", "case": asdict(opened.case)})
        skipped: str | None = None
        while "done" not in (told := self._line.receive(self._limits.first)):
            if (bad := _bad(told)) is not None:
                if told["sticky"]:
                    raise GoneError(bad.reason, bad.kind)
                skipped = bad.reason
            elif not told["open"]:
                skipped = SKIPPED
        opened.made = skipped is None
        return skipped

    def another(self) -> None:
        """Starts another process; what is open is made in it when it is needed."""
        if self.opened is not None:
            self.opened.forget()
        while True:
            self._line.close()
            try:
                self._start()
            except GoneError as error:
                self.trouble(error.words)
            else:
                return

    def _start(self) -> None:
        self._line = WorkerLine(self._command, self._more)
        self.restarts += 1
        if (uuid := read_facts(self._line, self._limits).uuid) != self.facts.uuid:
            raise GoneError(f"another GPU has its number now: {uuid}")

    def trouble(self, words: str) -> None:
        """Something failed that is no variant's fault; not for ever."""
        self._troubles += 1
        if self._troubles >= self._limits.attempts:
            raise LostGpuError(
                f"{self.facts.label}: base itself failed {self._troubles} times in a row: {words}",
                "What was measured is kept. Look at the GPU with nvidia-smi.",
            )


class Controller:
    """What is asked of one GPU; one runtime workload is open at a time."""

    def __init__(self, workers: Workers, watch: Watch) -> None:
        self.facts = workers.facts
        self._workers, self._watch = workers, watch
        self._asked = 0
        self._fastest = 0

    @property
    def restarts(self) -> int:
        """Processes that were started after the first one."""
        return self._workers.restarts

    @property
    def ended(self) -> int:
        """Processes that crashed, hung, or were of no more use."""
        return self.restarts - self._asked

    def open(
        self, case: RuntimeCase, base: VariantFunction, *, checking: bool = True
    ) -> str | None:
        """Makes the inputs and, to check variants, base's results; why not, where that cannot be.

        What is known of variants on the runtime workload that was open is forgotten.
        """
        workers, workers.opened = self._workers, None
        while True:
            opened = Opened(case, base)
            try:
                why = workers.make(opened)
                if why is None and checking:
                    why = workers.reference(opened)
            except GoneError as error:
                workers.trouble(error.words)
                workers.another()
            else:
                workers.opened = opened if why is None else None
                return why

    def check(self, variants: Sequence[VariantFunction], *, again: bool = False) -> Checked:
        """Compares results with those of base; each variant once, if not asked for `again`."""
        opened = self._begin()
        self._check(opened, variants, again=again)
        failed = failed_of(opened, variants)
        right = [one.variant for one in variants if one.variant not in failed]
        return Checked(tuple(right), failed, dict(self._workers.elapsed))

    def rounds(self, variants: Sequence[VariantFunction], count: int, seed: int) -> Rounds:
        """Rounds of base and of those variants that are right; what is not known is checked first.

        Without variants base is measured alone.
        """
        opened = self._begin()
        variants = [one for one in variants if one != opened.base]
        self._check(opened, variants, again=False)
        self._warm(opened)
        samples: dict[VariantFunction, list[float]] = {opened.base: []}
        repeated = throttled = 0
        more = self._watch.repeats + self._watch.share * count * len(variants) / AT_ONCE
        for number in range(count):
            fine = [one for one in variants if opened.verdicts[one] is None]
            order = round_order(opened.base, fine, number, seed)
            for start in range(0, len(order), AT_ONCE):
                some = order[start : start + AT_ONCE]
                taken, times, slow = self._chunk(opened, some, min(int(more), self._watch.repeats))
                more -= times
                repeated += times * len(taken)
                throttled += slow * len(taken)
                for one, seconds in taken:
                    samples.setdefault(one, []).append(seconds)
        failed = failed_of(opened, variants)
        kept = {
            one.variant: tuple(times) for one, times in samples.items() if one.variant not in failed
        }
        return Rounds(kept, failed, dict(self._workers.elapsed), repeated, throttled)

    @property
    def launches(self) -> Mapping[str, Launch]:
        """How kernels of one's own are launched that were checked on the open runtime workload."""
        opened = self._workers.opened
        return {} if opened is None else opened.launches

    def bandwidth(self) -> float | None:
        """Bytes that a copy moves in a second, measured now; nothing where it cannot be."""
        try:
            return self._workers.bandwidth()
        except GoneError as error:
            self._workers.trouble(error.words)
            self._workers.another()
            return None

    def restart(self) -> None:
        """Starts a fresh process; what was open is open in it, and what was found out stays."""
        self._asked += 1
        self._workers.another()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Ends the process for a block, in which another one of this session has the GPU."""
        self._workers.close()
        try:
            yield
        finally:
            self.restart()

    def _begin(self) -> Opened:
        opened = self._workers.opened
        if opened is None:
            raise ValueError("no runtime workload is open")
        self._workers.elapsed.clear()
        return opened

    def _check(self, opened: Opened, variants: Sequence[VariantFunction], *, again: bool) -> None:
        known = opened.verdicts
        asked = [one for one in variants if one not in known or (again and known[one] is None)]

        def take(one: VariantFunction, told: Told) -> None:
            known[one] = Failure("wrong", str(told["words"])) if "wrong" in told else None
            if "launch" in told:
                opened.launches[one.variant] = Launch(**told["launch"])

        for start in range(0, len(asked), AT_ONCE):
            self._workers.work(opened, "check", asked[start : start + AT_ONCE], take)

    def _warm(self, opened: Opened) -> None:
        """Lets base run in a process that is new, so that the clocks are up."""
        if not opened.warm:
            runs = [opened.base] * self._watch.warm
            self._is_slow(self._workers.work(opened, "sample", runs, nothing))
            opened.warm = True

    def _chunk(
        self, opened: Opened, order: Sequence[VariantFunction], most: int
    ) -> tuple[list[tuple[VariantFunction, float]], int, bool]:
        """Samples; how many times they were taken again, and whether they are throttled still."""
        for times in range(most + 1):
            taken: list[tuple[VariantFunction, float]] = []

            def take(one: VariantFunction, told: Told, to: list[Any] = taken) -> None:
                to.append((one, float(told["took"])))

            if not self._is_slow(self._workers.work(opened, "sample", order, take)):
                return taken, times, False
            if times < most:
                time.sleep(self._watch.pause)
        return taken, most, True

    def _is_slow(self, clocks: Clocks | None) -> bool:
        """Whether the GPU ran slower than it can."""
        if clocks is None:  # nobody was left to run
            return False
        self._fastest = max(self._fastest, clocks.sm)
        return bool(clocks.throttled) or clocks.sm < (1 - self._watch.slower) * self._fastest


def failed_of(opened: Opened, variants: Sequence[VariantFunction]) -> dict[str, Failure]:
    """What is known to be wrong with variants, by label."""
    found = ((one.variant, opened.verdicts.get(one)) for one in variants)
    return {label: failure for label, failure in found if failure is not None}


SKIPPED = "the benchmark skips it"


class _RefusedError(GoneError):
    """Base was refused: the process goes on, but not with this runtime workload."""


# Asking a worker: who is at work when it ends is not asked again, and the rest goes on.


def read_facts(line: WorkerLine, limits: Limits) -> GpuFacts:
    """What a process says of its GPU, once it has it."""
    line.send({"do": "facts"})
    told = line.receive(limits.start)
    if "facts" not in told:
        raise GoneError(str(told.get("refused") or told.get("words")))
    line.receive(limits.start)  # that is all
    return GpuFacts(**told["facts"])


def _bad(told: Told) -> Failure | None:
    """What an answer says of a failure, if it does."""
    if "failed" in told:
        kind: Kind = "memory" if told["code"] == MEMORY else "error"
        return Failure(kind, str(told["words"]))
    if "took" in told and not 0 < told["took"] < math.inf:
        return Failure("error", f"it took {told['took']} seconds")
    return None


def nothing(one: VariantFunction, told: Told) -> None:
    """Keeps no answer."""


T = TypeVar("T")


# In which order base and variants run: shuffled rounds, each second one backwards.


def bases_among(variants: int) -> int:
    """How often base runs in a round: what all are compared with needs more samples than each."""
    return max(2, math.ceil(math.sqrt(variants)))


def round_order(base: T, variants: Sequence[T], number: int, seed: int) -> list[T]:
    """A round: each variant once, base several times, evenly among them.

    The place in the order is a bias and no noise. Each second round is the one before backwards,
    so that what drifts, and who stands before whom, weighs on both sides.
    """
    # Text, so that the orders of neighbouring seeds have nothing in common.
    random = Random(f"{seed}/{number // 2}")  # noqa: S311  an order is no secret
    mixed = list(variants)
    random.shuffle(mixed)
    parts = bases_among(len(mixed))
    order: list[T] = []
    for part in range(parts):
        some = mixed[part * len(mixed) // parts : (part + 1) * len(mixed) // parts]
        some.insert(random.randint(0, len(some)), base)
        order += some
    return order[::-1] if number % 2 else order
