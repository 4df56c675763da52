"""What any tuner's file says: configurations of kernels, each with what it took, or why not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

TunedValue = int | float | str | bool
"""Of a parameter, as JSON has it."""
TunedFailureKind = Literal[
    "invalid", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]
MOST_PARAMETERS = 64
MOST_SAMPLES = 1 << 20
"""Of one configuration."""
MOST_ENTRIES = 2_000_000
LETTERS = 200
"""Of a text of strangers that is kept."""


@dataclass(frozen=True, slots=True)
class TunedFailure:
    """Why there is no time of a configuration."""

    kind: TunedFailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class TunedTimes:
    """What a configuration took, in seconds."""

    mean: float | None
    """What the tuner itself says it took, where it says that."""
    samples: tuple[float, ...]
    """None of them, where it kept none."""
    deviation: float | None = None
    """Seconds that samples which it did not keep were apart, where it says that.

    It counts where there is nothing but this measurement, also if that has a sample: `mean`.
    """


@dataclass(frozen=True, slots=True)
class TunedEntry:
    """A configuration that was tried."""

    values: Mapping[str, TunedValue]
    outcome: TunedTimes | TunedFailure
    compiling: float = 0.0
    """Seconds."""
    running: float = 0.0
    """Seconds that measuring it took."""
    at: str = ""
    """When, as the file says it."""
    place: str = ""
    """Where it stands in its file: `benchmarks[12]`."""
    is_default: bool = False
    """Whether it ran with what the library itself has, which names no values."""
    work: float | None = None
    """How many items went through what was timed, where the file says it."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What a copy of the same measurement has in common with it."""
        return self.outcome, self.compiling, self.running, self.at


@dataclass(frozen=True, slots=True)
class TunedFile:
    """What one file of a tuner says of one kernel."""

    path: Path
    program: str
    device: str | None
    """The GPU, where the file names it."""
    kernel: str | None
    size: str | None
    """`1000000` or `4096x4096`, where the file says it."""
    parameters: Mapping[str, Sequence[TunedValue]]
    """Each with the values that are declared, in their order."""
    entries: Sequence[TunedEntry]
    sha256: str = ""
    notes: tuple[str, ...] = ()
    """What is to be told of it."""
    library: str = ""
    """`rocprim`, whose benchmarks files name; else a kernel of one's own."""
    workload: Mapping[str, str] = field(default_factory=dict)
    """Axes of compile time with their values, where the file says them."""
    arch: str | None = None
    clocks: tuple[int, int] = (0, 0)
    """MHz of the processor and of its memory, where the file says them."""


class TunerFormat(Protocol):
    """A kind of file that can be imported: a module for each, and a row in `formats.py`."""

    name: str
    """In words: `a Kernel Tuner cache`."""

    def is_it(self, data: bytes) -> bool:
        """Whether a file's content is of this kind, also where it is cut off or damaged."""

    def read(self, path: Path, data: bytes) -> Sequence[TunedFile]:
        """What it says of each kernel; what is wrong is an InputError that names the place."""
