"""What can run variants on a GPU, and what it says of itself: the protocol of a device."""

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, Literal, Protocol, runtime_checkable

from policygen.errors import InputError
from policygen.process import GRACE, PIPE, Child
from policygen.untrusted import visible

MEMORY = 2
"""CUDA's number for a GPU that has no memory left."""
UNSUPPORTED = 801
"""CUDA's number for what is not supported."""
MILD = frozenset({1, MEMORY, 9, 13, 98, 200, 209, 218, 222, 701, 801})
"""CUDA's numbers for launches that are refused before they begin: the process goes on."""


class DeviceError(Exception):
    """A call that failed, with CUDA's number for it, or 0 where it has none."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words

    @property
    def sticky(self) -> bool:
        """Whether every later call in the same process fails, too; of what is not known, yes."""
        return self.code not in MILD


@dataclass(frozen=True, slots=True)
class VariantFunction:
    """A variant that was compiled."""

    variant: str
    """The label as databases have it, `ipt_16.tpb_256`, or `base`."""
    library: str
    """The absolute path of the shared object."""
    function: str
    """`policygen_run_3`."""


@dataclass(frozen=True, slots=True)
class RuntimeCase:
    """A runtime workload of a workload, as a device opens it."""

    inputs: str
    """The absolute path of the inputs unit."""
    axes: tuple[int, ...]
    """As the unit takes them."""
    buffers: int
    sizes: int


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What is known of a GPU."""

    name: str
    """`NVIDIA H200`."""
    uuid: str
    """`GPU-` and hexadecimal digits."""
    arch: str
    """`sm90`."""
    sms: int
    bus_width: int
    """Bits."""
    ecc: bool
    driver: str
    """`580.82.07`."""
    l2: int
    """Bytes."""
    memory: int
    """Bytes."""
    sm_clock: int
    """MHz; the highest that it may have."""
    memory_clock: int
    """MHz; the highest that it may have."""
    power_limit: float | None
    """Watts; none where nobody tells it."""

    @property
    def label(self) -> str:
        """As databases name it: `H200 (6144, 132, eccon)`."""
        ecc = "eccon" if self.ecc else "eccoff"
        name = self.name.replace("NVIDIA ", "")
        return f"{name} ({self.bus_width}, {self.sms}, {ecc})"


@dataclass(frozen=True, slots=True)
class Clocks:
    """How fast a GPU runs now."""

    sm: int
    """MHz."""
    throttled: tuple[str, ...] = ()
    """Why it runs slower than it may, in words: heat, or a brake of the board.

    That it is idle, or has the power that it is allowed to have, is none: long runs all do that.
    """


class Device(Protocol):
    """A GPU with one runtime workload open at a time; each call may raise `DeviceError`."""

    def facts(self) -> GpuFacts:
        """What is known of the GPU; to ask makes nothing on it, as another may measure there."""
        ...

    def open(self, case: RuntimeCase) -> bool:
        """Makes the inputs; false where the benchmark skips this point."""
        ...

    def reference(self, base: VariantFunction) -> None:
        """Runs base, and keeps its results, which all others are compared with."""
        ...

    def check(self, one: VariantFunction) -> str | None:
        """Nothing where a variant has the results of base, else what differs."""
        ...

    def sample(self, one: VariantFunction) -> float:
        """Seconds of one run, begun without anything in the L2."""
        ...

    def clocks(self) -> Clocks:
        """How fast the GPU runs now."""
        ...

    def close(self) -> None:
        """Gives back what the open runtime workload holds."""
        ...


@runtime_checkable
class MeasuresItself(Protocol):
    """A device that leaves it to NVBench how often a function runs, and how it is timed."""

    def nvbench(self, order: Sequence[VariantFunction], around: "AroundPlace") -> None:
        """Measures functions in their order, once in a process."""
        ...


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel of one's own is launched, and what it takes of a multiprocessor."""

    registers: int
    """Of a thread."""
    local: int
    """Bytes of a thread that lie in memory: arrays, and registers that were spilled."""
    static_shared: int
    """Bytes of a block."""
    dynamic_shared: int
    block: int
    """Threads."""
    grid: int
    """Blocks."""
    resident: int
    """Blocks that fit on a multiprocessor at once."""
    room: int
    """Threads that a multiprocessor has room for."""
    traffic: int
    """Bytes that a run reads and writes."""


@runtime_checkable
class TellsLaunches(Protocol):
    """A device that knows how kernels are launched, and how fast memory is copied."""

    def launch(self, one: VariantFunction) -> Launch | None:
        """How a variant is launched; none of what CUB launches."""
        ...

    def bandwidth(self) -> float:
        """Bytes that a copy reads and writes in a second."""
        ...


AroundPlace = Callable[[int, Callable[[], Sequence[float]]], None]
"""Gets each place of the order, and what measures there: seconds, or a `DeviceError`."""
# What comes of asking a GPU: samples, and why there are none of a variant.

Kind = Literal["wrong", "crash", "hang", "memory", "error", "compile"]


class LostGpuError(InputError):
    """A GPU on which base itself fails, again and again."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a variant is not measured on a runtime workload."""

    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether variants have the results of base, by label."""

    right: tuple[str, ...]
    failed: Mapping[str, Failure]
    """The wrong ones, too."""
    elapsed: Mapping[str, float]
    """Seconds that each took of the measuring's time."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What rounds of base and variants gave."""

    samples: Mapping[str, tuple[float, ...]]
    """Seconds by label, in the order in which they were taken; `base` is one."""
    failed: Mapping[str, Failure]
    """Those asked for of which there are no samples."""
    elapsed: Mapping[str, float]
    """Seconds that each took of the measuring's time, its check among them."""
    repeated: int = 0
    """Samples that were taken again, as the GPU was throttled."""
    throttled: int = 0
    """Samples that are throttled still, though they were repeated as often as is allowed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a step may take, in seconds; what takes longer hangs."""

    start: float = 120.0
    """Until a process has a GPU."""
    first: float = 300.0
    """Making inputs, and what base does for the first time."""
    floor: float = 10.0
    factor: float = 50.0
    """Times what base took for the same."""
    attempts: int = 3
    """Times that base may fail in a row; then the GPU is lost."""

    def seconds(self, variant: str | None, base: float | None) -> float:
        """For one run of a variant, where base took so long; for what is no run of one."""
        if variant is None or base is None:
            return self.first
        return max(self.floor, self.factor * base)


@dataclass(frozen=True, slots=True)
class Watch:
    """When samples are repeated."""

    repeats: int = 3
    """Times that the samples of one request are taken again."""
    share: float = 0.25
    """Of all requests of some rounds, how many more may be repeated: some GPUs never cool."""
    slower: float = 0.25
    """Share by which clocks may be below the highest that were seen, as NVBench has it."""
    pause: float = 1.0
    """Seconds in which the GPU cools."""
    warm: int = 10
    """Runs of base for nothing, before what counts begins."""


# The line to a worker: one process, what it is asked, what it tells, and how it ends.

_INSTALL = "Install Python again."
_WORDS = 2_000
"""Bytes of what a worker said at last that are looked at."""
_AT_ONCE = 1 << 16
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""What no variant ends its process with: somebody does, or the system that lacks memory."""
Told = Mapping[str, Any]


class GoneError(Exception):
    """A worker of no more use: it has ended, or was killed as it hung."""

    def __init__(self, words: str, kind: Kind = "crash", *, outside: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.outside = outside
        """Whether somebody else has ended it."""


class WorkerLine:
    """A worker that runs; each side of it speaks lines of JSON."""

    def __init__(self, command: Sequence[str], more: Mapping[str, str]) -> None:
        self._words = TemporaryFile()  # noqa: SIM115  it is closed with the line
        try:
            self._child = Child(
                command,
                install=_INSTALL,
                more=more,
                stdin=PIPE,
                stdout=PIPE,
                stderr=self._words,
            )
        except BaseException:
            self._words.close()
            raise
        source, sink = self._child.process.stdout, self._child.process.stdin
        assert source is not None
        assert sink is not None
        self._source, self._sink = source.fileno(), sink.fileno()
        self._pending = b""
        self._lines: list[bytes] = []

    def send(self, request: Mapping[str, object]) -> None:
        """Asks for something."""
        data = json.dumps(request).encode() + b"\n"
        with suppress(BrokenPipeError):  # that it has ended is seen when it does not answer
            while data:
                data = data[os.write(self._sink, data) :]

    def receive(self, limit: float) -> Told:
        """The next line; one that does not come within so many seconds never does."""
        end = time.monotonic() + limit
        while not self._lines:
            # What is there already counts, however late we look.
            if not select.select([self._source], [], [], max(0.0, end - time.monotonic()))[0]:
                self._child.kill()
                raise GoneError(f"it did not end within {limit:.3g} seconds", "hang")
            if not (data := os.read(self._source, _AT_ONCE)):
                raise self._ended()
            *whole, self._pending = (self._pending + data).split(b"\n")
            self._lines = whole[::-1]
        try:
            told: Told = json.loads(self._lines.pop())
        except ValueError as error:
            self._child.kill()
            raise GoneError("it told what is no answer") from error
        return told

    def close(self) -> None:
        """Ends the worker, which holds nothing that must be put away."""
        process = self._child.process
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        self._child.wait(GRACE)
        self._child.kill()
        self._words.close()

    def _ended(self) -> GoneError:
        """How it ended, and the last line of what it said."""
        self._child.wait(GRACE)
        self._child.kill()
        status = self._child.process.returncode
        how = f"it was ended by signal {-status}" if status < 0 else f"it ended with {status}"
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - _WORDS))
        said = self._words.read().decode(errors="replace").strip().rpartition("\n")[2]
        words = f"{how}: {visible(said)}" if said else how
        return GoneError(words, outside=-status in _OUTSIDE)
