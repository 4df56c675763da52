"""Reads T4, the results format of the auto-tuning methodology: configurations with their times.

It names neither the kernel nor the problem size; the device since 1.1. KTT writes all parameter
values as text: integers among them are converted.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.results.tuners.documents import (
    LETTERS,
    MOST_ENTRIES,
    MOST_PARAMETERS,
    TunedEntry,
    TunedFailure,
    TunedFailureKind,
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
    parse_json,
    quoted,
    text_at,
    written,
)
from policygen.untrusted import visible

UNITS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
MISSPELLED = {"miliseconds": "milliseconds"}  # as files of the Benchmark Hub have it
SHORT_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
CORRECT = "correct"
INVALID: Mapping[str, tuple[TunedFailureKind, str]] = {
    "timeout": ("hang", "T4: timeout"),
    "compile": ("compile", "T4: it does not compile"),
    "runtime": ("error", "T4: it fails when it runs"),
    "correctness": ("wrong", "T4: its results are wrong"),
    "constraints": ("invalid", "T4: the configuration is not valid"),
}
VERSION = "1."
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


def is_it(data: bytes) -> bool:
    """Detects T4 results."""
    return mentions(data, "results", "configuration", "invalidity")


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads T4 results."""
    document = members(path, "the document", parse_json(path, data))
    # KTT writes no version.
    version = document.get("schema_version", VERSION)
    if not isinstance(version, str) or not version.startswith(VERSION):
        raise InputError(
            f"{path}: T4 results of version {quoted(str(version)[:LETTERS])}; policygen supports"
            f" {VERSION}x"
        )
    facts = members(path, "metadata", document.get("metadata", {}))
    unit = facts.get("timeunit")
    unit = MISSPELLED.get(unit, unit) if isinstance(unit, str) else unit
    if not isinstance(unit, str) or unit not in UNITS:
        raise InputError(
            f"{path}: metadata has no timeunit, so the unit of its times is unknown",
            f"If you know the unit, add it to the file: one of {', '.join(UNITS)}.",
        )
    results = listed_at(path, "results", document.get("results"))
    entries = tuple(_entries(path, results, UNITS[unit]))
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


def _entries(path: Path, results: list[Any], unit: float) -> Iterator[TunedEntry]:
    for number, result in enumerate(islice(results, MOST_ENTRIES + 1)):
        if number == MOST_ENTRIES:
            raise InputError(f"{path}: more than {MOST_ENTRIES:,} configurations")
        place = f"results[{number}]"
        cells = members(path, place, result)
        times = members(path, f"{place} times", cells.get("times"))
        compiling = times.get("compilation", times.get("compilation_time"))
        yield TunedEntry(
            values=_configuration(path, place, cells),
            outcome=_outcome(path, place, cells, times, unit),
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
        prefix = f"{path}: {place} configuration {quoted(key)}"
        if not isinstance(value, bool | int | float | str):
            raise InputError(
                f"{prefix}: {kind_of(value)} cannot be a parameter's value",
                "Allowed are numbers, strings and booleans.",
            )
        if isinstance(value, str) and len(value) > LETTERS:
            raise InputError(f"{prefix}: a string of more than {LETTERS} characters")
    return {
        key: int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value
        for key, value in values.items()
    }


def _outcome(
    path: Path, place: str, cells: Mapping[str, Any], times: Mapping[str, Any], unit: float
) -> TunedTimes | TunedFailure:
    state = cells.get("invalidity")
    if state != CORRECT:
        failure = INVALID.get(state) if isinstance(state, str) else None
        kind, reason = failure or ("error", f"T4: {visible(str(state)[:LETTERS])}")
        return TunedFailure(kind, reason)
    if cells.get("correctness") == 0:
        return TunedFailure("wrong", "T4: its results are wrong")
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


FORMAT = TunerFormat("T4 results", is_it, read)
