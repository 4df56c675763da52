"""Reads Kernel Tuner caches: a header, then one line per configuration, appended during the run.

Times are milliseconds; `time` is the mean of `times`. A failure is `__error__` with the name of its
class; older releases put the name in place of the time.
"""

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
    pairs_of,
    parse_open,
    quoted,
    text_at,
)
from policygen.untrusted import visible

PROGRAM = "Kernel Tuner"
MILLISECONDS = 1e-3
ERROR = "__error__"
ERRORS: Mapping[str, tuple[TunedFailureKind, str]] = {
    "InvalidConfig": ("invalid", "Kernel Tuner: the configuration is not valid"),
    "CompilationFailedConfig": ("compile", "Kernel Tuner: it does not compile"),
    "RuntimeFailedConfig": ("error", "Kernel Tuner: it fails when it runs"),
    "ErrorConfig": ("error", "Kernel Tuner: it failed"),
}
VERSION = "1."
"""Prefix of the schema versions that some releases state; a file without one is accepted."""


def is_it(data: bytes) -> bool:
    """Detects a cache, even a truncated one."""
    return mentions(data, "kernel_name", "tune_params_keys")


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads a cache."""
    return (read_cache(path, *open_cache(path, data)),)


def open_cache(path: Path, data: bytes) -> tuple[Mapping[str, Any], str | None]:
    """Returns the document, and a note if an interrupted run was repaired."""
    parsed, note = parse_open(path, data)
    return members(path, "the document", parsed), note


def read_cache(path: Path, document: Mapping[str, Any], note: str | None) -> TunedFile:
    """Reads the kernel of a document."""
    version = document.get("schema_version")
    if version is not None and not (isinstance(version, str) and version.startswith(VERSION)):
        raise InputError(
            f"{path}: a cache of schema {quoted(str(version)[:LETTERS])}; policygen supports"
            f" {VERSION}x"
        )
    keys = _parameters(path, document)
    entries = tuple(_entries(path, document, keys))
    if not entries:
        raise InputError(f"{path}: the cache has no configuration", "Nothing was measured yet.")
    return TunedFile(
        path=path,
        program=PROGRAM,
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
        values = listed_at(path, f"tune_params of {quoted(key)}", declared.get(key, []))
        values_by_parameter[key] = tuple(
            _value(path, f"tune_params of {quoted(key)}", value) for value in values
        )
    if not values_by_parameter or len(values_by_parameter) > MOST_PARAMETERS:
        raise InputError(
            f"{path}: {len(keys)} parameters, but only 1 to {MOST_PARAMETERS} are possible"
        )
    return values_by_parameter


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


def _entries(
    path: Path, document: Mapping[str, Any], keys: Mapping[str, object]
) -> Iterator[TunedEntry]:
    """Yields each configuration; its own values count, not the name of its line."""
    lines = pairs_of(path, "cache", document.get("cache"))
    for number, (line, entry) in enumerate(islice(lines, MOST_ENTRIES + 1)):
        if number == MOST_ENTRIES:
            raise InputError(f"{path}: more than {MOST_ENTRIES:,} configurations")
        place = f"cache {quoted(line)}"
        cells = members(path, place, entry)
        if missing := [key for key in keys if key not in cells]:
            raise InputError(
                f"{path}: {place} has no value of {quoted(missing[0])}",
                "Each of tune_params_keys needs one.",
            )
        yield TunedEntry(
            values={key: _value(path, f"{place}: {quoted(key)}", cells[key]) for key in keys},
            outcome=_outcome(path, place, cells, keys),
            compiling=lasting(cells.get("compile_time"), MILLISECONDS),
            running=lasting(cells.get("benchmark_time"), MILLISECONDS),
            at=str(cells.get("timestamp", ""))[:LETTERS],
            place=place,
        )


def _outcome(
    path: Path, place: str, cells: Mapping[str, Any], keys: Mapping[str, object]
) -> TunedTimes | TunedFailure:
    error = cells.get(ERROR)
    if error is None:
        other_cells = (cell for key, cell in cells.items() if key not in keys)
        error = next(
            (cell for cell in other_cells if isinstance(cell, str) and cell in ERRORS), None
        )
    if error is None:
        return outcome_of(path, place, cells.get("time"), cells.get("times"), MILLISECONDS)
    failure = ERRORS.get(error) if isinstance(error, str) else None
    kind, reason = failure or ("error", f"Kernel Tuner: {visible(str(error)[:LETTERS])}")
    return TunedFailure(kind, reason)


FORMAT = TunerFormat("a Kernel Tuner cache", is_it, read)
