"""Reads what tuners of kernels write: caches of Kernel Tuner, and T4, which many programs share.

JSON is untrusted: duplicate names are rejected, and files of interrupted runs are closed.

A cache has a header, then one line per configuration, appended during the run. Times are
milliseconds; `time` is the mean of `times`. A failure is `__error__` with the name of its class;
older releases put the name in place of the time.

T4 is the results format of the auto-tuning methodology. It names neither the kernel nor the problem
size; the device since 1.1. KTT writes all parameter values as text: integers among them are
converted.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from policygen.errors import InputError
from policygen.opening import TOO_LONG
from policygen.results.database import LONGEST, SHORTEST
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


VERSION = "1."
"""Prefix of the versions of both formats; a file without one is accepted."""
MILLISECONDS = 1e-3
ERROR = "__error__"
ERRORS = {
    "InvalidConfig": TunedFailure("invalid", "Kernel Tuner: the configuration is not valid"),
    "CompilationFailedConfig": TunedFailure("compile", "Kernel Tuner: it does not compile"),
    "RuntimeFailedConfig": TunedFailure("error", "Kernel Tuner: it fails when it runs"),
    "ErrorConfig": TunedFailure("error", "Kernel Tuner: it failed"),
}
Item = TypeVar("Item")


# Kernel Tuner


def is_cache(data: bytes) -> bool:
    """Detects a cache, even a truncated one."""
    return mentions(data, "kernel_name", "tune_params_keys")


def open_cache(path: Path, data: bytes) -> tuple[Mapping[str, Any], str | None]:
    """Returns the document, and a note if an interrupted run was repaired."""
    parsed, note = parse_open(path, data)
    return members(path, "the document", parsed), note


def read_cache(path: Path, document: Mapping[str, Any], note: str | None) -> TunedFile:
    """Reads the kernel of a document."""
    if (version := document.get("schema_version")) is not None:
        _check_version(path, "a cache of schema", version)
    keys = _parameters(path, document)
    entries = tuple(_cache_entries(path, document, keys))
    if not entries:
        raise InputError(f"{path}: the cache has no configuration", "Nothing was measured yet.")
    return TunedFile(
        path=path,
        program="Kernel Tuner",
        device=text_at(path, "device_name", document.get("device_name")),
        kernel=text_at(path, "kernel_name", document.get("kernel_name")),
        size=size_of(document.get("problem_size")),
        parameters=keys,
        entries=entries,
        notes=(note,) if note else (),
    )


def size_of(problem_size: object) -> str | None:
    """Formats a size, `1000000` or `4096x4096`; None if a function computed it during tuning."""
    sizes = problem_size if isinstance(problem_size, list) else [problem_size]
    valid_sizes = [size for size in sizes if type(size) is int and 0 < size < 1 << 63]
    if len(valid_sizes) != len(sizes) or not 0 < len(sizes) <= 3:
        return None
    while len(valid_sizes) > 1 and valid_sizes[-1] == 1:
        valid_sizes.pop()
    return "x".join(map(str, valid_sizes))


def _parameters(path: Path, document: Mapping[str, Any]) -> dict[str, tuple[TunedValue, ...]]:
    keys = listed_at(path, "tune_params_keys", document.get("tune_params_keys"))
    declared = members(path, "tune_params", document.get("tune_params", {}))
    values_by_parameter: dict[str, tuple[TunedValue, ...]] = {}
    for key in keys[: MOST_PARAMETERS + 1]:
        if not isinstance(key, str) or key in values_by_parameter:
            name = quoted(key) if isinstance(key, str) else kind_of(key)
            raise InputError(f"{path}: tune_params_keys has {name} twice, or without a name")
        place = f"tune_params of {quoted(key)}"
        values = listed_at(path, place, declared.get(key, []))
        values_by_parameter[key] = tuple(_value(path, place, value) for value in values)
    if not values_by_parameter or len(values_by_parameter) > MOST_PARAMETERS:
        raise InputError(
            f"{path}: {len(keys)} parameters, but only 1 to {MOST_PARAMETERS} are possible"
        )
    return values_by_parameter


def _cache_entries(
    path: Path, document: Mapping[str, Any], keys: Mapping[str, object]
) -> Iterator[TunedEntry]:
    """Yields each configuration; its own values count, not the name of its line."""
    cache = document.get("cache")
    # Lines may have the same name.
    lines = cache if isinstance(cache, DoubledNames) else members(path, "cache", cache).items()
    for line, entry in _limited(path, lines):
        place = f"cache {quoted(line)}"
        cells = members(path, place, entry)
        if missing := [key for key in keys if key not in cells]:
            raise InputError(
                f"{path}: {place} has no value of {quoted(missing[0])}",
                "Each of tune_params_keys needs one.",
            )
        yield TunedEntry(
            values={key: _value(path, f"{place}: {quoted(key)}", cells[key]) for key in keys},
            outcome=_cache_outcome(path, place, cells, keys),
            compiling=lasting(cells.get("compile_time"), MILLISECONDS),
            running=lasting(cells.get("benchmark_time"), MILLISECONDS),
            at=str(cells.get("timestamp", ""))[:LETTERS],
            place=place,
        )


def _cache_outcome(
    path: Path, place: str, cells: Mapping[str, Any], keys: Mapping[str, object]
) -> TunedTimes | TunedFailure:
    error = cells.get(ERROR)
    if error is None:
        other_cells = (cell for key, cell in cells.items() if key not in keys)
        error = next(
            (cell for cell in other_cells if isinstance(cell, str) and cell in ERRORS), None
        )
    if error is not None:
        return _failure("Kernel Tuner", ERRORS, error)
    return outcome_of(path, place, cells.get("time"), cells.get("times"), MILLISECONDS)


UNITS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
MISSPELLED = {"miliseconds": "milliseconds"}  # as files of the Benchmark Hub have it
SHORT_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
CORRECT = "correct"
WRONG = TunedFailure("wrong", "T4: its results are wrong")
INVALID = {
    "timeout": TunedFailure("hang", "T4: timeout"),
    "compile": TunedFailure("compile", "T4: it does not compile"),
    "runtime": TunedFailure("error", "T4: it fails when it runs"),
    "correctness": WRONG,
    "constraints": TunedFailure("invalid", "T4: the configuration is not valid"),
}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


# T4


def _read_t4(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    document = members(path, "the document", parse_json(path, data))
    # KTT writes no version.
    _check_version(path, "T4 results of version", document.get("schema_version", VERSION))
    facts = members(path, "metadata", document.get("metadata", {}))
    unit = facts.get("timeunit")
    unit = MISSPELLED.get(unit, unit) if isinstance(unit, str) else unit
    if not isinstance(unit, str) or unit not in UNITS:
        raise InputError(
            f"{path}: metadata has no timeunit, so the unit of its times is unknown",
            f"If you know the unit, add it to the file: one of {', '.join(UNITS)}.",
        )
    results = listed_at(path, "results", document.get("results"))
    entries = tuple(_t4_entries(path, results, UNITS[unit]))
    if not entries:
        raise InputError(f"{path}: there is no configuration", "Nothing was measured yet.")
    tuned = TunedFile(
        path=path,
        program=text_at(path, "autotuner", facts.get("autotuner")) or "T4",
        device=text_at(path, "device", facts.get("device")),
        kernel=None,
        size=None,
        parameters=dict.fromkeys(entries[0].values, ()),
        entries=entries,
    )
    return (tuned,)


def _t4_entries(path: Path, results: list[Any], unit: float) -> Iterator[TunedEntry]:
    for number, result in enumerate(_limited(path, results)):
        place = f"results[{number}]"
        cells = members(path, place, result)
        times = members(path, f"{place} times", cells.get("times"))
        compiling = times.get("compilation", times.get("compilation_time"))
        yield TunedEntry(
            values=_configuration(path, place, cells),
            outcome=_t4_outcome(path, place, cells, times, unit),
            compiling=lasting(compiling, unit),
            running=lasting(times.get("benchmark"), unit),
            at=str(cells.get("timestamp", ""))[:LETTERS],
            place=place,
        )


def _configuration(path: Path, place: str, cells: Mapping[str, Any]) -> dict[str, TunedValue]:
    values = members(path, f"{place} configuration", cells.get("configuration"))
    if not 0 < len(values) <= MOST_PARAMETERS:
        raise InputError(
            f"{path}: {place}: {len(values)} parameters, but only 1 to {MOST_PARAMETERS} are"
            " possible"
        )
    for key, cell in values.items():
        value = _value(path, f"{place} configuration {quoted(key)}", cell)
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            values[key] = int(value)
    return values


def _t4_outcome(
    path: Path, place: str, cells: Mapping[str, Any], times: Mapping[str, Any], unit: float
) -> TunedTimes | TunedFailure:
    state = cells.get("invalidity")
    if state != CORRECT:
        return _failure("T4", INVALID, state)
    if cells.get("correctness") == 0:
        return WRONG
    samples = times.get("runtimes") or None
    if samples:
        return outcome_of(path, place, None, samples, unit)
    mean, scale = _mean(path, place, cells, unit)
    return outcome_of(path, place, mean, None, scale)


def _mean(path: Path, place: str, cells: Mapping[str, Any], unit: float) -> tuple[object, float]:
    """Returns the measurement named `time`, and its unit."""
    for measurement in listed_at(path, f"{place} measurements", cells.get("measurements", [])):
        cells_of_measurement = members(path, f"{place} measurements", measurement)
        if cells_of_measurement.get("name") == "time":
            unit_name = cells_of_measurement.get("unit", "")
            value = cells_of_measurement.get("value")
            if unit_name == "" or (isinstance(unit_name, str) and unit_name in SHORT_UNITS):
                return value, SHORT_UNITS.get(unit_name, unit)
            return f"{written(value)} {written(unit_name)}", unit
    return None, unit


# What both formats share


def _check_version(path: Path, what: str, version: object) -> None:
    if not isinstance(version, str) or not version.startswith(VERSION):
        raise InputError(
            f"{path}: {what} {quoted(str(version)[:LETTERS])}; policygen supports {VERSION}x"
        )


def _limited(path: Path, configurations: Iterable[Item]) -> Iterator[Item]:
    for number, configuration in enumerate(configurations):
        if number == MOST_ENTRIES:
            raise InputError(f"{path}: more than {MOST_ENTRIES:,} configurations")
        yield configuration


def _value(path: Path, place: str, value: object) -> TunedValue:
    if not isinstance(value, bool | int | float | str):
        raise InputError(
            f"{path}: {place}: {kind_of(value)} cannot be a parameter's value",
            "Allowed are numbers, strings and booleans.",
        )
    if isinstance(value, str) and len(value) > LETTERS:
        raise InputError(
            f"{path}: {place}: a string of more than {LETTERS} characters: {quoted(value)}"
        )
    return value


def _failure(program: str, failures: Mapping[str, TunedFailure], state: object) -> TunedFailure:
    """Returns the failure that a file names; an unknown one keeps the file's words."""
    failure = failures.get(state) if isinstance(state, str) else None
    return failure or TunedFailure("error", f"{program}: {visible(str(state)[:LETTERS])}")


FORMATS = (
    TunerFormat(
        "a Kernel Tuner cache",
        is_cache,
        lambda path, data: (read_cache(path, *open_cache(path, data)),),
    ),
    TunerFormat(
        "T4 results",
        lambda data: mentions(data, "results", "configuration", "invalidity"),
        _read_t4,
    ),
)
