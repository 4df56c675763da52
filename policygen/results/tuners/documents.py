"""JSON of strangers: without double names, and closed where a run was cut off."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from policygen.errors import InputError
from policygen.results.database import LONGEST, SHORTEST
from policygen.untrusted import is_visible, visible

_BOM = b"\xef\xbb\xbf"
NO_TIME = "no time that a kernel takes"


class DoubledNames(tuple[tuple[str, Any], ...]):
    """The members of an object of JSON that has a name twice."""

    __slots__ = ()


_KINDS = {
    dict: "an object",
    DoubledNames: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    type(None): "nothing",
}


def parse_json(path: Path, data: bytes) -> Any:
    """The document, or what is wrong with it and where."""
    try:
        return _parsed(_text(path, data))
    except ValueError as error:
        raise _no_json(path, error) from error


def parse_open(
    path: Path, data: bytes, closings: Sequence[str] = ("}}", "}")
) -> tuple[Any, str | None]:
    """The same of a file to which entries are appended, line by line, until it is closed.

    Where a run was cut off, what is open is closed, and the line that was cut is left out; what
    was done about it is told.
    """
    text = _text(path, data).rstrip()
    try:
        return _parsed(text), None
    except ValueError as error:
        first = error
    whole = text.removesuffix(",")
    told = "it was not closed: its run went on, or was cut off"
    tries = [(whole + closing, told) for closing in closings]
    before, end, last = text.rpartition("\n")
    if end and last.strip().startswith('"'):
        rest = before.rstrip().removesuffix(",")
        tries.append((rest + closings[0], "its last entry was cut off, and is left out"))
    for candidate, told in tries:
        try:
            return _parsed(candidate), told
        except ValueError:
            continue
    raise _no_json(path, first) from first


def _text(path: Path, data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no JSON: byte {error.start} is no UTF-8") from error


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    return found if len(found) == len(pairs) else DoubledNames(pairs)


def _no_json(path: Path, error: ValueError) -> InputError:
    told = visible(str(error)[:LETTERS])
    return InputError(
        f"{path}: no JSON that can be read: {told}",
        "It may be damaged, or not all of it was copied.",
    )


def members(path: Path, place: str, found: Any) -> dict[str, Any]:
    """An object without double names."""
    if isinstance(found, DoubledNames):
        ((name, _),) = Counter(name for name, _ in found).most_common(1)
        raise InputError(
            f"{path}: {place} has {quoted(name)} twice", "Take out the one that is not meant."
        )
    if not isinstance(found, dict):
        raise InputError(f"{path}: {place} is {kind_of(found)}, and not an object")
    return found


def pairs_of(path: Path, place: str, found: Any) -> Iterable[tuple[str, Any]]:
    """The members of an object whose names may stand there twice."""
    if isinstance(found, DoubledNames):
        return found
    return members(path, place, found).items()


def listed_at(path: Path, place: str, found: Any) -> list[Any]:
    """A list."""
    if not isinstance(found, list):
        raise InputError(f"{path}: {place} is {kind_of(found)}, and not a list")
    return found


def text_at(path: Path, place: str, found: Any) -> str | None:
    """A short text that shows as it is; none where there is none."""
    if found is None or found == "":
        return None
    if not isinstance(found, str):
        raise InputError(f"{path}: {place} is {kind_of(found)}, and not a text")
    if len(found) > LETTERS or not all(map(is_visible, found)):
        raise InputError(
            f"{path}: {place} is no name of at most {LETTERS} characters that show: {quoted(found)}"
        )
    return found


def kind_of(found: object) -> str:
    """What stands there instead, in words."""
    return _KINDS.get(type(found), "a number")


def quoted(text: str) -> str:
    """A text of strangers within a message."""
    more = "…" if len(text) > 60 else ""
    return f"'{visible(text[:60])}{more}'"


def seconds_of(found: object, unit: float) -> float | None:
    """A time that a kernel may take; none where it is none. `unit` is seconds."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    # Compared first: an int of JSON may be larger than any float.
    if not SHORTEST / unit <= found <= LONGEST / unit:
        return None
    return float(found) * unit


def is_rate(found: object) -> bool:
    """Whether something is a number of items or bytes that may go through a kernel in a second."""
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return is_number and 0 < found < math.inf and found < 1 << 100  # type: ignore[operator]


def lasting(found: object, unit: float) -> float:
    """How long something took that is no kernel; 0 where that is not known."""
    return seconds_of(found, unit) or 0.0


# What any tuner's file says: configurations of kernels, each with what it took, or why not.

TunedFailureKind = Literal[
    "invalid", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]


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


def outcome_of(
    path: Path, place: str, mean: object, samples: object, unit: float
) -> TunedTimes | TunedFailure:
    """What was measured, if all of it is times that a kernel takes."""
    times = [] if samples is None else listed_at(path, f"{place} times", samples)
    if len(times) > MOST_SAMPLES:
        raise InputError(
            f"{path}: {place}: {len(times):,} times, at most {MOST_SAMPLES:,} are read"
        )
    taken = [seconds_of(time, unit) for time in times]
    if None in taken:
        at = taken.index(None)
        return TunedFailure("untimed", f"{written(times[at])} among its times is {NO_TIME}")
    known = None if mean is None else seconds_of(mean, unit)
    if not taken and known is None:
        told = "it has no time" if mean is None else f"its time, {written(mean)}, is {NO_TIME}"
        return TunedFailure("untimed", told)
    return TunedTimes(known, tuple(one for one in taken if one is not None))


def written(found: object) -> str:
    """A number, or what stands in its place, in a message."""
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) >= 1 << 63:
        return "a number of more than 63 bits"
    if isinstance(found, bool | int | float | None):
        return json.dumps(found)
    return quoted(found) if isinstance(found, str) else kind_of(found)


TunedValue = int | float | str | bool
"""Of a parameter, as JSON has it."""
MOST_PARAMETERS = 64
MOST_SAMPLES = 1 << 20
"""Of one configuration."""
MOST_ENTRIES = 2_000_000
LETTERS = 200
"""Of a text of strangers that is kept."""


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
