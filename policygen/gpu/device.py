"""What a device runs and measures on a GPU, and the connection to its worker process."""

import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple

from policygen.errors import InputError
from policygen.process import GRACE, PIPE, Child
from policygen.untrusted import visible

MEMORY = 2
"""CUDA's error code for exhausted memory."""
UNSUPPORTED = 801
"""CUDA's error code for unsupported operations."""
LONG = 0.02
"""Seconds of a long call: its code need not be warm, and fewer samples tell its noise."""
MILD = frozenset({1, MEMORY, 9, 13, 98, 200, 209, 218, 222, 701, 801})
"""CUDA error codes of launches that are refused before they begin; the process can continue."""


class DeviceError(Exception):
    """A failed call with its CUDA error code, or 0 if there is none."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words

    @property
    def sticky(self) -> bool:
        """Whether all later calls in the process fail, too; assumed for unknown codes."""
        return self.code not in MILD


@dataclass(frozen=True, slots=True)
class VariantFunction:
    """A compiled variant."""

    variant: str
    """Label as in databases, such as `ipt_16.tpb_256`, or `base`."""
    library: str
    """Absolute path of the shared object."""
    function: str
    """Symbol, such as `policygen_run_3`."""


@dataclass(frozen=True, slots=True)
class RuntimeCase:
    """A runtime workload, as a device opens it."""

    inputs: str
    """Absolute path of the inputs unit."""
    axes: tuple[int, ...]
    """Axis values in the unit's numbers."""
    buffers: int
    sizes: int


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Facts about a GPU."""

    name: str
    """The model: `NVIDIA H200`."""
    uuid: str
    """`GPU-` and hexadecimal digits."""
    arch: str
    """The architecture: `sm90`."""
    sms: int
    bus_width: int
    """Bits."""
    ecc: bool
    driver: str
    """The driver's version: `580.82.07`."""
    l2: int
    """Bytes."""
    memory: int
    """Bytes."""
    sm_clock: int
    """Maximum in MHz."""
    memory_clock: int
    """Maximum in MHz."""
    power_limit: float | None
    """Watts; None if unknown."""

    @property
    def label(self) -> str:
        """Name in databases, such as `H200 (6144, 132, eccon)`."""
        ecc = "eccon" if self.ecc else "eccoff"
        name = self.name.replace("NVIDIA ", "")
        return f"{name} ({self.bus_width}, {self.sms}, {ecc})"


@dataclass(frozen=True, slots=True)
class Clocks:
    """Current clocks of a GPU."""

    sm: int
    """MHz."""
    throttled: tuple[str, ...] = ()
    """Reasons for a slowdown, such as heat or a power brake of the board.

    Idle clocks and the power limit do not count, because all long runs reach them.
    """


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch configuration and resource use of a user kernel."""

    registers: int
    """Per thread."""
    local: int
    """Local memory per thread in bytes: arrays and spilled registers."""
    static_shared: int
    """Bytes per block."""
    dynamic_shared: int
    block: int
    """Threads per block."""
    grid: int
    """Number of blocks."""
    resident: int
    """Maximum number of resident blocks per multiprocessor."""
    room: int
    """Maximum number of threads per multiprocessor."""
    traffic: int
    """Bytes read and written by a run."""


AroundPlace = Callable[[int, Callable[[], Sequence[float]]], None]
"""Called for each place of the order with the measuring function, which returns seconds or raises
DeviceError.
"""
# Results of measurements: samples and failures

Kind = Literal["wrong", "crash", "hang", "memory", "error", "compile"]


class LostGpuError(InputError):
    """The baseline fails repeatedly on a GPU."""

    exit_code = 3


class Failure(NamedTuple):
    """Why a variant is not measured on a runtime workload."""

    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of steps in seconds; a step that takes longer counts as hung."""

    start: float = 120.0
    """Start of a process until it has a GPU."""
    first: float = 300.0
    """Creating inputs, and first runs of the baseline."""
    floor: float = 10.0
    factor: float = 50.0
    """Multiple of the baseline's time for the same step."""
    attempts: int = 3
    """Number of baseline failures in a row after which the GPU is lost."""

    def seconds(self, variant: str | None, base: float | None) -> float:
        """Return the limit for a run, given the baseline's time, or for a step other than a run."""
        if variant is None or base is None:
            return self.first
        return max(self.floor, self.factor * base)


@dataclass(frozen=True, slots=True)
class Watch:
    """When to repeat samples."""

    repeats: int = 3
    """Maximum number of repeats per request."""
    share: float = 0.25
    """Maximum fraction of extra requests in a measurement, because some GPUs never cool down."""
    slower: float = 0.25
    """Fraction by which clocks may be below their observed maximum, as in NVBench."""
    pause: float = 1.0
    """Seconds to let the GPU cool."""
    warm: int = 10
    """Number of warm-up runs of the baseline."""


# Connection to a worker process

_INSTALL = "Install Python again."
_WORDS = 2_000
"""Number of final bytes of the worker's output that are read."""
_AT_ONCE = 1 << 16
_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""Signals that come from outside, not from a variant: from a user, or when memory runs out."""
WorkerMessage = Mapping[str, Any]


class GoneError(Exception):
    """The worker has ended or was killed because it hung."""

    def __init__(self, words: str, kind: Kind = "crash", *, outside: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.outside = outside
        """Whether it was ended from outside."""


class WorkerLine:
    """A running worker that exchanges lines of JSON."""

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
        """Send a request."""
        data = json.dumps(request).encode() + b"\n"
        with suppress(BrokenPipeError):  # its end is noticed when it does not answer
            while data:
                data = data[os.write(self._sink, data) :]

    def receive(self, limit: float) -> WorkerMessage:
        """Return the next message; kill a worker that sends none within `limit` seconds."""
        end = time.monotonic() + limit
        while not self._lines:
            # Data that has already arrived counts, even after the deadline.
            if not select.select([self._source], [], [], max(0.0, end - time.monotonic()))[0]:
                self._child.kill()
                raise GoneError(f"it did not finish within {limit:.3g} seconds", "hang")
            if not (data := os.read(self._source, _AT_ONCE)):
                raise self._end_reason()
            *complete_lines, self._pending = (self._pending + data).split(b"\n")
            self._lines = complete_lines[::-1]
        try:
            message: WorkerMessage = json.loads(self._lines.pop())
        except ValueError as error:
            self._child.kill()
            raise GoneError("its output cannot be parsed") from error
        return message

    def answers(
        self, limit: Callable[[], float], request: Mapping[str, object]
    ) -> Iterator[WorkerMessage]:
        """Send a request and yield its answers but the closing one, each within its limit."""
        self.send(request)
        while "done" not in (message := self.receive(limit())):
            yield message

    def close(self) -> None:
        """End the worker, which holds nothing that needs cleanup."""
        process = self._child.process
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        self._child.wait(GRACE)
        self._child.kill()
        self._words.close()

    def _end_reason(self) -> GoneError:
        """Describe how it ended, with the last line of its output."""
        self._child.wait(GRACE)
        self._child.kill()
        status = self._child.process.returncode
        outcome = f"it was ended by signal {-status}" if status < 0 else f"it ended with {status}"
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - _WORDS))
        last_line = self._words.read().decode(errors="replace").strip().rpartition("\n")[2]
        reason = f"{outcome}: {visible(last_line)}" if last_line else outcome
        return GoneError(reason, outside=-status in _OUTSIDE)
