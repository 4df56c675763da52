"""Parses untrusted JSON: rejects duplicate names, and closes files of interrupted runs."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from policygen.errors import InputError
from policygen.results.database import LONGEST, SHORTEST
from policygen.settings import TOO_LONG
from policygen.untrusted import is_visible, visible

_BOM = b"\xef\xbb\xbf"
NO_TIME = "not a plausible kernel time"


class DoubledNames(tuple[tuple[str, Any], ...]):
    """The members of a JSON object that has a duplicate name."""

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
    """Parses a document; raises InputError with the place if it is invalid."""
    try:
        return _load_json(_text(path, data))
    except ValueError as error:
        raise _invalid_json(path, error) from error


def parse_open(
    path: Path, data: bytes, closings: Sequence[str] = ("}}", "}")
) -> tuple[Any, str | None]:
    """Parses a file to which a run appends entries line by line until it closes it.

    If the run was interrupted, the open brackets are closed and an incomplete last line is dropped;
    the second result describes what was done.
    """
    text = _text(path, data).rstrip()
    try:
        return _load_json(text), None
    except ValueError as error:
        first = error
    text_without_comma = text.removesuffix(",")
    note = "it is not closed: its run was still going, or it was truncated"
    attempts = [(text_without_comma + closing, note) for closing in closings]
    head, newline, last_line = text.rpartition("\n")
    if newline and last_line.strip().startswith('"'):
        complete_lines = head.rstrip().removesuffix(",")
        attempts.append((complete_lines + closings[0], "its last entry is truncated and ignored"))
    for candidate, note in attempts:
        try:
            return _load_json(candidate), note
        except ValueError:
            continue
    raise _invalid_json(path, first) from first


def _text(path: Path, data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not JSON: byte {error.start} is not UTF-8") from error


def _load_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_reject_duplicates)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> Any:
    members_by_name = dict(pairs)
    return members_by_name if len(members_by_name) == len(pairs) else DoubledNames(pairs)


def _invalid_json(path: Path, error: ValueError) -> InputError:
    reason = TOO_LONG
    if isinstance(error, json.JSONDecodeError):
        reason = f"not JSON: line {error.lineno}, column {error.colno}"
    return InputError(f"{path}: {reason}", "It may be damaged or incomplete.")


def mentions(data: bytes, *keys: str) -> bool:
    """Tells whether a file may be a JSON object with keys, even if it is truncated or damaged."""
    head = data[: 1 << 22]
    is_object = head.lstrip(_BOM + b" \t\r\n").startswith(b"{")
    return is_object and all(f'"{key}"'.encode() in head for key in keys)


def members(path: Path, place: str, value: Any) -> dict[str, Any]:
    """Returns an object's members; rejects duplicate names."""
    if isinstance(value, DoubledNames):
        ((name, _),) = Counter(name for name, _ in value).most_common(1)
        raise InputError(f"{path}: {place} has {quoted(name)} twice", "Remove one of them.")
    if not isinstance(value, dict):
        raise InputError(f"{path}: {place} is {kind_of(value)}, not an object")
    return value


def pairs_of(path: Path, place: str, value: Any) -> Iterable[tuple[str, Any]]:
    """Returns an object's members; names may occur twice."""
    if isinstance(value, DoubledNames):
        return value
    return members(path, place, value).items()


def listed_at(path: Path, place: str, value: Any) -> list[Any]:
    """Returns a value that must be a list."""
    if not isinstance(value, list):
        raise InputError(f"{path}: {place} is {kind_of(value)}, not a list")
    return value


def text_at(path: Path, place: str, value: Any) -> str | None:
    """Returns a short printable text, or None if it is absent or empty."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InputError(f"{path}: {place} is {kind_of(value)}, not a string")
    if len(value) > LETTERS or not all(map(is_visible, value)):
        raise InputError(
            f"{path}: {place} is not a name of at most {LETTERS} visible characters:"
            f" {quoted(value)}"
        )
    return value


def kind_of(value: object) -> str:
    """Returns the kind of a value in words."""
    return _KINDS.get(type(value), "a number")


def quoted(text: str) -> str:
    """Quotes untrusted text for a message."""
    ellipsis = "…" if len(text) > 60 else ""
    return f"'{visible(text[:60])}{ellipsis}'"


def seconds_of(value: object, unit: float) -> float | None:
    """Converts a kernel time to seconds; None if it is not plausible. `unit` is in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compare before converting: a JSON int may be larger than any float.
    if not SHORTEST / unit <= value <= LONGEST / unit:
        return None
    return float(value) * unit


def is_rate(value: object) -> bool:
    """Returns whether a value is a plausible number of items or bytes per second."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf and value < 1 << 100  # type: ignore[operator]


def lasting(value: object, unit: float) -> float:
    """Converts a duration other than a kernel time to seconds; 0 if unknown."""
    return seconds_of(value, unit) or 0.0


# The contents of any tuner's file: configurations of kernels, each with its times or its failure.

TunedFailureKind = Literal[
    "invalid", "compile", "wrong", "crash", "hang", "memory", "error", "untimed"
]


@dataclass(frozen=True, slots=True)
class TunedFailure:
    """Why a configuration has no time."""

    kind: TunedFailureKind
    reason: str


@dataclass(frozen=True, slots=True)
class TunedTimes:
    """The times of a configuration, in seconds."""

    mean: float | None
    """The time that the tuner itself reports, if any."""
    samples: tuple[float, ...]
    """Empty if the tuner kept none."""
    deviation: float | None = None
    """Standard deviation, in seconds, of samples that the tuner did not keep, if it states one.

    It counts only if this is the single measurement, even if that has a sample: `mean`.
    """


def outcome_of(
    path: Path, place: str, mean: object, samples: object, unit: float
) -> TunedTimes | TunedFailure:
    """Returns the measured times, if all are plausible kernel times; else the failure."""
    times = [] if samples is None else listed_at(path, f"{place} times", samples)
    if len(times) > MOST_SAMPLES:
        raise InputError(
            f"{path}: {place}: {len(times):,} times, but at most {MOST_SAMPLES:,} are read"
        )
    durations = [seconds_of(time, unit) for time in times]
    if None in durations:
        index = durations.index(None)
        return TunedFailure("untimed", f"{written(times[index])} among its times is {NO_TIME}")
    mean_seconds = None if mean is None else seconds_of(mean, unit)
    if not durations and mean_seconds is None:
        reason = "it has no time" if mean is None else f"its time, {written(mean)}, is {NO_TIME}"
        return TunedFailure("untimed", reason)
    return TunedTimes(
        mean_seconds, tuple(duration for duration in durations if duration is not None)
    )


def written(value: object) -> str:
    """Formats a number, or any other value, for a message."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 63:
        return "a number of more than 63 bits"
    if isinstance(value, bool | int | float | None):
        return json.dumps(value)
    return quoted(value) if isinstance(value, str) else kind_of(value)


TunedValue = int | float | str | bool
"""A parameter's value, as in JSON."""
MOST_PARAMETERS = 64
MOST_AXES = 16
MOST_SAMPLES = 1 << 20
"""Limit per configuration."""
MOST_ENTRIES = 2_000_000
LETTERS = 200
"""Length limit of untrusted text that is kept."""


@dataclass(frozen=True, slots=True)
class TunedEntry:
    """A configuration that was tried."""

    values: Mapping[str, TunedValue]
    outcome: TunedTimes | TunedFailure
    compiling: float = 0.0
    """Seconds."""
    running: float = 0.0
    """Seconds spent measuring it."""
    at: str = ""
    """Timestamp, as the file states it."""
    place: str = ""
    """Position in its file: `benchmarks[12]`."""
    is_default: bool = False
    """Whether it ran with the library's default, which names no values."""
    work: float | None = None
    """The number of items processed in the timed region, if the file states it."""

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields that duplicates of the same measurement share."""
        return self.outcome, self.compiling, self.running, self.at


@dataclass(frozen=True, slots=True)
class TunedFile:
    """The contents of one tuner file about one kernel."""

    path: Path
    program: str
    device: str | None
    """The GPU, if the file names it."""
    kernel: str | None
    size: str | None
    """`1000000` or `4096x4096`, if the file states it."""
    parameters: Mapping[str, Sequence[TunedValue]]
    """Declared values by parameter, in order."""
    entries: Sequence[TunedEntry]
    sha256: str = ""
    notes: tuple[str, ...] = ()
    """Notes to report about it."""
    library: str = ""
    """`rocprim` for files of its benchmarks; empty for a user kernel."""
    absent_type: str = ""
    """The library's value for a type that a benchmark lacks and others of its algorithm have."""
    workload: Mapping[str, str] = field(default_factory=dict)
    """Compile-time axes with their values, if the file states them."""
    arch: str | None = None
    clocks: tuple[int, int] = (0, 0)
    """Clock rates of the processor and of its memory in MHz, if the file states them."""


@dataclass(frozen=True, slots=True)
class TunerFormat:
    """A file format that can be imported; the module of each one ends with it."""

    name: str
    """A description: `a Kernel Tuner cache`."""
    is_it: Callable[[bytes], bool]
    """Detects the format from a file's content, even if it is truncated or damaged."""
    read: Callable[[Path, bytes], Sequence[TunedFile]]
    """Reads the kernels of a file; raises InputError with the place of an error."""
    extends: bool = False
    """Whether it is another format with additional content, and has to be tried before that one."""
