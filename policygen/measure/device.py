"""What can run variants on a GPU, and what it says of itself: the protocol of a device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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
