"""Reads what tuners of kernels write: caches of Kernel Tuner, and T4, which many programs share.

A cache has a header, then one line per configuration, appended during the run. Times are
milliseconds; `time` is the mean of `times`. A failure is `__error__` with the name of its class;
older releases put the name in place of the time.

T4 is the results format of the auto-tuning methodology. It names neither the kernel nor the problem
size; the device since 1.1. KTT writes all parameter values as text: integers among them are
converted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from policygen.errors import InputError
from policygen.results.tuners.documents import (
    LETTERS,
    MOST_ENTRIES,
    MOST_PARAMETERS,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
    TunedValue,
    TunerFormat,
    kind_of,
    lasting,
    listed_at,
    members,
    mentions,
    outcome_of,
    pairs_of,
    parse_json,
    parse_open,
    quoted,
    text_at,
    written,
)
from policygen.untrusted import visible

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


def _read_kernel_tuner(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    return (read_cache(path, *open_cache(path, data)),)


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
    """Returns the parameters in order, each with its declared values."""
    keys = listed_at(path, "tune_params_keys", document.get("tune_params_keys"))
    declared = members(path, "tune_params", document.get("tune_params", {}))
    values_by_parameter: dict[str, tuple[TunedValue, ...]] = {}
    for key in keys[: MOST_PARAMETERS + 1]:
        if not isinstance(key, str) or key in values_by_parameter:
            name = quoted(key) if isinstance(key, str) else kind_of(key)
            raise InputError(f"{path}: tune_params_keys has {name} twice, or without a name")
        place = f"tune_params of {quoted(key)}"
        values = listed_at(path, place, declared.get(key, []))
        values_by_parameter[key] = tuple(_cache_value(path, place, value) for value in values)
    if not values_by_parameter or len(values_by_parameter) > MOST_PARAMETERS:
        raise InputError(
            f"{path}: {len(keys)} parameters, but only 1 to {MOST_PARAMETERS} are possible"
        )
    return values_by_parameter


def _cache_value(path: Path, place: str, cell: object) -> TunedValue:
    value = _value(path, place, cell)
    if isinstance(value, str) and len(value) > LETTERS:
        raise InputError(
            f"{path}: {place}: a string of more than {LETTERS} characters: {quoted(value)}"
        )
    return value


def _cache_entries(
    path: Path, document: Mapping[str, Any], keys: Mapping[str, object]
) -> Iterator[TunedEntry]:
    """Yields each configuration; its own values count, not the name of its line."""
    for line, entry in _limited(path, pairs_of(path, "cache", document.get("cache"))):
        place = f"cache {quoted(line)}"
        cells = members(path, place, entry)
        if missing := [key for key in keys if key not in cells]:
            raise InputError(
                f"{path}: {place} has no value of {quoted(missing[0])}",
                "Each of tune_params_keys needs one.",
            )
        yield TunedEntry(
            values={key: _cache_value(path, f"{place}: {quoted(key)}", cells[key]) for key in keys},
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


def _is_t4(data: bytes) -> bool:
    return mentions(data, "results", "configuration", "invalidity")


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
    for key, value in values.items():
        value_place = f"{place} configuration {quoted(key)}"
        _value(path, value_place, value)
        if isinstance(value, str) and len(value) > LETTERS:
            raise InputError(f"{path}: {value_place}: a string of more than {LETTERS} characters")
    return {
        key: int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value
        for key, value in values.items()
    }


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
    return value


def _failure(program: str, failures: Mapping[str, TunedFailure], state: object) -> TunedFailure:
    """Returns the failure that a file names; an unknown one keeps the file's words."""
    failure = failures.get(state) if isinstance(state, str) else None
    return failure or TunedFailure("error", f"{program}: {visible(str(state)[:LETTERS])}")


FORMATS = (
    TunerFormat("a Kernel Tuner cache", is_cache, _read_kernel_tuner),
    TunerFormat("T4 results", _is_t4, _read_t4),
)
