"""Reads rocPRIM's benchmark results: JSON of Google Benchmark, with names that say what ran.

One file holds many algorithms, types and configurations. Each row is a repetition of one of them,
whose time is the mean of its iterations; an iteration launches the algorithm several times, after
warm-up launches. Aggregate rows only count if there are no repetitions.
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.results.tuners.formats import (
    LETTERS,
    NO_TIME,
    TunedEntry,
    TunedFailure,
    TunedFailureKind,
    TunedFile,
    TunedTimes,
    TunedValue,
    TunerFormat,
    is_rate,
    kind_of,
    members,
    mentions,
    parse_json,
    quoted,
    seconds_of,
    text_at,
    written,
)
from policygen.results.tuners.points import json_value
from policygen.rocprim.result_names import (
    Kernel,
    RocprimName,
    context_arch,
    context_clocks,
    context_device,
    number_of,
    parse_name,
    rows_at,
    runs_of,
    split_file,
)
from policygen.untrusted import visible

PROGRAM = "Google Benchmark"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
RATES = ("items_per_second", "bytes_per_second")
AGGREGATE, MEAN, DEVIATION = "aggregate", "mean", "stddev"
_FAILURES: tuple[tuple[str, str, TunedFailureKind], ...] = (
    ("error_occurred", "error_message", "error"),
    ("skipped", "skip_message", "invalid"),
)
_Config = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Runs:
    """The rows of one configuration."""

    values: Mapping[str, TunedValue] | None
    first: str
    """The place of the first repetition."""
    samples: list[float] = field(default_factory=list)
    works: list[float] = field(default_factory=list)
    failures: list[tuple[str, TunedFailure]] = field(default_factory=list)
    mean: TunedTimes | TunedFailure | None = None
    deviation: float | None = None


def is_it(data: bytes) -> bool:
    """Detects results of rocPRIM's benchmarks, or of similarly named ones."""
    head = data[: 1 << 22]
    is_named = b'"hdp_' in head or (b"lvl" in head and b"algo" in head)
    return mentions(data, "context", "benchmarks") and is_named


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads the results of each algorithm and combination of types."""
    document = members(path, "the document", parse_json(path, data))
    context = members(path, "context", document.get("context"))
    rows = rows_at(path, "benchmarks", document.get("benchmarks"))
    arch, size = context_arch(path, context), number_of(context.get("size"))
    file = TunedFile(
        path=path,
        program=PROGRAM,
        device=context_device(path, context, arch),
        kernel=None,
        size=str(size) if size else None,
        parameters={},
        entries=(),
        arch=arch,
        clocks=context_clocks(context),
    )
    date = text_at(path, "context date", context.get("date")) or ""
    parts = _group_rows(path, rows)
    return split_file(
        file,
        {
            kernel: [entry for runs in by_config.values() for entry in _entries(runs, date)]
            for kernel, by_config in parts.items()
        },
    )


def _group_rows(path: Path, rows: list[Any]) -> dict[Kernel, dict[_Config | None, _Runs]]:
    """Groups rows by algorithm and types, and by configuration within them."""
    parse_cached = lru_cache(maxsize=1 << 12)(parse_name)
    parts: dict[Kernel, dict[_Config | None, _Runs]] = {}
    for place, cells in runs_of(path, "benchmarks", rows):
        name_facts = _name(path, place, cells, parse_cached)
        by_config = parts.setdefault(name_facts.kernel, {})
        runs = by_config.setdefault(_config(name_facts), _Runs(name_facts.config, place))
        _add_row(runs, place, cells, name_facts.aggregate)
    return parts


def _config(name_facts: RocprimName) -> _Config | None:
    """Returns a configuration as a key: 1 and `true` differ."""
    if name_facts.config is None:
        return None
    return tuple(sorted((key, json_value(value)) for key, value in name_facts.config.items()))


def _name(path: Path, place: str, cells: Mapping[str, Any], parse: Any) -> RocprimName:
    text = cells.get("name")
    if not isinstance(text, str):
        raise InputError(f"{path}: {place} name is {kind_of(text)}, not a string")
    try:
        name_facts: RocprimName = parse(text)
    except ValueError as error:
        raise InputError(
            f"{path}: {place} is called {quoted(text)}: {error}",
            "Names that say it are written with: --name_format json",
        ) from error
    return name_facts


def _add_row(runs: _Runs, place: str, cells: Mapping[str, Any], suffix: str) -> None:
    """Adds a row: a repetition or an aggregate."""
    is_repetition = cells.get("run_type", AGGREGATE if suffix else "") != AGGREGATE
    aggregate = "" if is_repetition else str(cells.get("aggregate_name", suffix))
    if not is_repetition and aggregate not in {MEAN, DEVIATION}:
        return
    unit = cells.get("time_unit", "ns")
    scale = UNITS.get(unit) if isinstance(unit, str) else None
    if aggregate == DEVIATION:
        runs.deviation = seconds_of(cells.get("real_time"), scale) if scale else None
        return
    outcome = _outcome(cells, scale)
    if aggregate == MEAN:
        runs.mean = outcome if isinstance(outcome, TunedFailure) else TunedTimes(outcome, ())
    elif isinstance(outcome, TunedFailure):
        runs.failures.append((place, outcome))
    else:
        runs.first = runs.first if runs.samples else place
        runs.samples.append(outcome)
        if "items_per_second" in cells:
            runs.works.append(cells["items_per_second"] * outcome)


def _outcome(cells: Mapping[str, Any], scale: float | None) -> float | TunedFailure:
    """Returns the seconds, or the failure."""
    for flag, message, kind in _FAILURES:
        if cells.get(flag, False) is not False:
            reason = visible(str(cells.get(message, "it failed"))[:LETTERS])
            return TunedFailure(kind, f"{PROGRAM}: {reason}")
    if "real_time" not in cells:
        return TunedFailure("untimed", "it has no time")
    if scale is None:
        return TunedFailure(
            "untimed", f"its time_unit, {written(cells['time_unit'])}, is not a unit"
        )
    time = seconds_of(cells["real_time"], scale)
    if time is None:
        return TunedFailure("untimed", f"its time, {written(cells['real_time'])}, is {NO_TIME}")
    for key in RATES:
        if key in cells and not is_rate(cells[key]):
            return TunedFailure("untimed", f"its {key}, {written(cells[key])}, is not a rate")
    return time


def _entries(runs: _Runs, date: str) -> Iterator[TunedEntry]:
    """Yields the repetitions as samples of one measurement; if any failed, only the failures.

    Aggregates count if a file kept nothing else.
    """
    failures = list(runs.failures)
    if runs.samples:
        outcome = TunedTimes(None, tuple(runs.samples))
    elif isinstance(runs.mean, TunedTimes):
        outcome = TunedTimes(runs.mean.mean, (), runs.deviation)
    elif not failures:
        failures = [(runs.first, runs.mean or TunedFailure("untimed", "it has no time"))]
    if not failures:
        yield _entry(runs, runs.first, outcome, date)
    for place, failure in failures:
        yield _entry(runs, place, failure, date)


def _entry(runs: _Runs, place: str, outcome: TunedTimes | TunedFailure, date: str) -> TunedEntry:
    return TunedEntry(
        values=runs.values or {},
        outcome=outcome,
        at=f"{date} {place}",
        place=place,
        is_default=runs.values is None,
        work=statistics.median(runs.works) if runs.works else None,
    )


FORMAT = TunerFormat("rocPRIM's benchmark results", is_it, read)
