"""Asking a worker: who is at work when it ends is not asked again, and the rest goes on."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field

from policygen.measure.device import (
    MEMORY,
    Clocks,
    GpuFacts,
    Launch,
    RuntimeCase,
    VariantFunction,
)
from policygen.measure.line import GoneError, Told, WorkerLine
from policygen.measure.outcomes import Failure, Kind, Limits, LostGpuError

SKIPPED = "the benchmark skips it"
Take = Callable[[VariantFunction, Told], None]
"""What to do with an answer."""


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


class _RefusedError(GoneError):
    """Base was refused: the process goes on, but not with this runtime workload."""


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
