"""Reads files with results of rocPRIM: of its benchmarks, older and newer, and of its tuner."""

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.results.tuners import formats
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
    lasting,
    listed_at,
    members,
    mentions,
    outcome_of,
    parse_json,
    parse_open,
    quoted,
    seconds_of,
    text_at,
    written,
)
from policygen.results.tuners.points import json_value
from policygen.rocprim.result_names import (
    EMPTY,
    LIBRARY,
    Kernel,
    RocprimName,
    algorithm_name,
    arch_at,
    checked_workload,
    context_arch,
    context_clocks,
    context_device,
    number_of,
    parse_meta,
    parse_name,
    rows_at,
    runs_of,
    split_file,
)
from policygen.untrusted import visible

# primbench: JSON of rocPRIM's newer benchmarks, where an object says what ran
#
# One file holds one algorithm with many types and configurations, and is written run by run.

PRIMBENCH_PROGRAM = "primbench"
VERSION = "4."
"""Earlier versions name the GPU and the settings differently."""
BACKEND, RELEASE = "hip", "release"
# 4.0.0
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}", re.ASCII)
_Noise = tuple[str, float | None]
"""The place of a run that was still noisy at the time limit, and the spread in percent."""


def read_primbench(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads the results of each combination of types."""
    parsed, note = parse_open(path, data, ("]}",))
    document = members(path, "the document", parsed)
    context = members(path, "context", document.get("context"))
    _check_version(path, context)
    general = members(path, "context general", context.get("general"))
    settings = members(path, "context settings", context.get("settings"))
    gpu = members(path, "context general gpu", general.get("gpu"))
    _check_backend(path, general)
    arch = arch_at(path, "context general gpu arch", gpu.get("arch"))
    device = text_at(path, "context general gpu name", gpu.get("name")) or arch
    if _flag_at(path, "context settings dry", settings.get("dry")):
        raise InputError(f"{path}: is a dry run without measurements", "Run it without --dry.")
    rows = rows_at(path, "specializations", document.get("specializations"))
    size = number_of(settings.get("size"))
    date = text_at(path, "context general date", general.get("date")) or ""
    modes, notes = _modes(path, context, general, settings)
    parts, noisy = _group_runs(path, rows, date)
    file = TunedFile(
        path=path,
        program=", ".join((PRIMBENCH_PROGRAM, *modes)),
        device=device,
        kernel=None,
        size=str(size) if size else None,
        parameters={},
        entries=(),
        notes=(*_missing_notes(general, rows, note), *notes, *_noise_notes(noisy, len(rows))),
        arch=arch,
    )
    return split_file(file, parts)


def _check_version(path: Path, context: Mapping[str, Any]) -> None:
    version = context.get("results_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        description = quoted(version) if isinstance(version, str) else kind_of(version)
        raise InputError(f"{path}: context results_version, {description}, is not a version")
    if not version.startswith(VERSION):
        raise InputError(
            f"{path}: primbench's results of version {version}; policygen supports {VERSION}x",
            "Measure with benchmarks whose primbench writes that version.",
        )


def _check_backend(path: Path, general: Mapping[str, Any]) -> None:
    place = "context general backend"
    backend = members(path, place, general.get("backend", {}))
    backend_name = text_at(path, f"{place} name", backend.get("name"))
    if backend_name not in {None, BACKEND}:
        raise InputError(
            f"{path}: was measured with the backend {quoted(backend_name or '')}, but rocPRIM runs"
            f" only with {BACKEND}",
            "Results of other libraries' benchmarks cannot be imported.",
        )


def _flag_at(path: Path, place: str, value: object) -> bool:
    if not isinstance(value, bool | None):
        raise InputError(f"{path}: {place} is {kind_of(value)}, not true or false")
    return bool(value)


def _modes(
    path: Path, context: Mapping[str, Any], general: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns unusual measurement modes, which make times incomparable, and notes about them."""
    flags = members(path, "context flags", context.get("flags", {}))
    build = text_at(path, "context general library_build_type", general.get("library_build_type"))
    modes = []
    if _flag_at(path, "context settings hot", settings.get("hot")):
        modes.append("hot")
    if _flag_at(path, "context flags sync", flags.get("sync")):
        modes.append("sync")
    if build in {None, RELEASE}:
        return tuple(modes), ()
    return (*modes, str(build)), (f"a {build} build: times of other builds may differ",)


def _missing_notes(general: Mapping[str, Any], rows: list[Any], note: str | None) -> Iterator[str]:
    """Yields notes about a file with fewer runs than requested."""
    count = number_of(general.get("specialization_count"))
    if note is not None:
        yield note
    if count is not None and count != len(rows):
        yield f"{len(rows):,} of {count:,} specializations are there"


def _noise_notes(noisy: Sequence[_Noise], count: int) -> Iterator[str]:
    if noisy:
        place, percent = max(noisy, key=lambda noise: noise[1] or 0.0)
        maximum = "" if percent is None else f", by {percent:.3g} % at most"
        verb = "was" if len(noisy) == 1 else "were"
        yield (
            f"{len(noisy):,} of {count:,} runs {verb} still noisy at the time limit{maximum}"
            f" ({place})"
        )


def _group_runs(
    path: Path, rows: list[Any], date: str
) -> tuple[dict[Kernel, list[TunedEntry]], list[_Noise]]:
    """Groups runs by algorithm and types; also returns those that were noisy."""
    parts: dict[Kernel, list[TunedEntry]] = {}
    noisy: list[_Noise] = []
    for place, cells in runs_of(path, "specializations", rows):
        name_facts = _meta_name(path, place, cells)
        entries = parts.setdefault(name_facts.kernel, [])
        outcome = run_times(path, place, cells)
        if _flag_at(path, f"{place} noise_timeout", cells.get("noise_timeout")):
            noisy.append((place, noise_of(cells)))
        elapsed = members(path, f"{place} elapsed_secs", cells.get("elapsed_secs", {}))
        entries.append(
            TunedEntry(
                values=name_facts.config or {},
                outcome=outcome,
                running=lasting(elapsed.get("host"), 1.0),
                at=f"{date} {place}",
                place=place,
                is_default=name_facts.config is None,
                work=float(cells["items"]) if isinstance(outcome, TunedTimes) else None,
            )
        )
    return parts, noisy


def _meta_name(path: Path, place: str, cells: Mapping[str, Any]) -> RocprimName:
    meta = members(path, f"{place} meta", cells.get("meta"))
    try:
        return parse_meta(meta)
    except ValueError as error:
        raise InputError(
            f"{path}: {place} meta: {str(error)[:LETTERS]}",
            "rocPRIM's benchmarks write lvl, algo and cfg; those of other libraries do not.",
        ) from error


RATES = ("items_per_second", "bytes_per_second")
NEAR = 0.01
"""Relative tolerance: written values are rounded to six digits."""


# Times of a primbench run: from its rate, or from its calls. A run consists of batches of calls,
# until the last few differ little enough or a time limit is reached. Its rate is that of its last
# batch alone, its noise the spread of the last few. With `--output-batches` it keeps the time of
# every call, in all batches.


def run_times(path: Path, place: str, cells: Mapping[str, Any]) -> TunedTimes | TunedFailure:
    """Returns the seconds per call, or the failure."""
    time = _time_from_rate(cells)
    if isinstance(time, TunedFailure):
        return time
    batches = _batches(path, place, cells.get("batches", []))
    if batches:
        return _times_from_batches(path, place, batches, time)
    noise = noise_of(cells)
    deviation = None if noise is None else seconds_of(time * noise / 100, 1.0)
    return TunedTimes(time, (time,), deviation)


def noise_of(cells: Mapping[str, Any]) -> float | None:
    """Returns the spread of the last batches in percent; None if it is not stated."""
    percent = cells.get("noise_percent")
    return float(percent) if percent is not None and is_rate(percent) else None


def _time_from_rate(cells: Mapping[str, Any]) -> float | TunedFailure:
    """Returns the seconds per call according to the rate of the last batch."""
    for key in RATES:
        if not is_rate(cells.get(key)):
            reason = f"its {key}, {written(cells[key])}, is not a rate" if key in cells else ""
            return TunedFailure("untimed", reason or f"it has no {key}")
    items = cells.get("items")
    if not isinstance(items, int) or isinstance(items, bool) or not 0 < items < 1 << 63:
        reason = f"its items, {written(items)}, are not a count"
        return TunedFailure("untimed", reason)
    estimate = items / cells["items_per_second"]
    time = seconds_of(estimate, 1.0)
    reason = f"its time, {estimate:.3g} seconds, is {NO_TIME}"
    return TunedFailure("untimed", reason) if time is None else time


def _times_from_batches(
    path: Path, place: str, batches: list[list[Any]], time: float
) -> TunedTimes | TunedFailure:
    """Returns the seconds of all calls, if they agree with the rate."""
    calls = [time_of_call for batch in batches for time_of_call in batch]
    outcome = outcome_of(path, place, None, calls, formats.MILLISECONDS)
    if isinstance(outcome, TunedFailure):
        return outcome
    means = [formats.MILLISECONDS * sum(batch) / len(batch) for batch in batches]
    if min(means) * (1 - NEAR) <= time <= max(means) * (1 + NEAR):
        return outcome
    reason = (
        f"its batches imply {min(means):.3g} to {max(means):.3g} seconds per call, but its rate"
        f" implies {time:.3g}"
    )
    return TunedFailure("untimed", reason)


def _batches(path: Path, place: str, value: object) -> list[list[Any]]:
    """Returns the raw times of each call by batch; batches without calls are skipped."""
    batches = []
    for number, cells in enumerate(listed_at(path, f"{place} batches", value)):
        batch_place = f"{place} batches[{number}]"
        calls = members(path, batch_place, cells).get("iterations_ms")
        batches.append(listed_at(path, f"{batch_place} iterations_ms", calls))
    return [calls_of_batch for calls_of_batch in batches if calls_of_batch]


PRIMBENCH = TunerFormat(
    "rocPRIM's primbench results",
    # Those of other libraries, too, which the reader refuses.
    lambda data: mentions(data, "context", "results_version"),
    read_primbench,
)


# Google Benchmark: JSON of rocPRIM's older benchmarks, with names that say what ran
#
# One file holds many algorithms, types and configurations. Each row is a repetition of one of them,
# whose time is the mean of its iterations; an iteration launches the algorithm several times, after
# warm-up launches. Aggregate rows only count if there are no repetitions.

GOOGLE = "Google Benchmark"
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


def is_google_benchmark(data: bytes) -> bool:
    """Detects results of rocPRIM's benchmarks, or of similarly named ones."""
    head = data[: 1 << 22]
    is_named = b'"hdp_' in head or (b"lvl" in head and b"algo" in head)
    return mentions(data, "context", "benchmarks") and is_named


def read_google_benchmark(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads the results of each algorithm and combination of types."""
    document = members(path, "the document", parse_json(path, data))
    context = members(path, "context", document.get("context"))
    rows = rows_at(path, "benchmarks", document.get("benchmarks"))
    arch, size = context_arch(path, context), number_of(context.get("size"))
    file = TunedFile(
        path=path,
        program=GOOGLE,
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
            kernel: [entry for runs in by_config.values() for entry in _run_entries(runs, date)]
            for kernel, by_config in parts.items()
        },
    )


def _group_rows(path: Path, rows: list[Any]) -> dict[Kernel, dict[_Config | None, _Runs]]:
    """Groups rows by algorithm and types, and by configuration within them."""
    parse_cached = lru_cache(maxsize=1 << 12)(parse_name)
    parts: dict[Kernel, dict[_Config | None, _Runs]] = {}
    for place, cells in runs_of(path, "benchmarks", rows):
        name_facts = _parsed_name(path, place, cells, parse_cached)
        by_config = parts.setdefault(name_facts.kernel, {})
        runs = by_config.setdefault(_config(name_facts), _Runs(name_facts.config, place))
        _add_row(runs, place, cells, name_facts.aggregate)
    return parts


def _config(name_facts: RocprimName) -> _Config | None:
    """Returns a configuration as a key: 1 and `true` differ."""
    if name_facts.config is None:
        return None
    return tuple(sorted((key, json_value(value)) for key, value in name_facts.config.items()))


def _parsed_name(path: Path, place: str, cells: Mapping[str, Any], parse: Any) -> RocprimName:
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
    is_repetition = cells.get("run_type", AGGREGATE if suffix else "") != AGGREGATE
    aggregate = "" if is_repetition else str(cells.get("aggregate_name", suffix))
    if not is_repetition and aggregate not in {MEAN, DEVIATION}:
        return
    unit = cells.get("time_unit", "ns")
    scale = formats.SHORT_UNITS.get(unit) if isinstance(unit, str) else None
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
    for flag, message, kind in _FAILURES:
        if cells.get(flag, False) is not False:
            reason = visible(str(cells.get(message, "it failed"))[:LETTERS])
            return TunedFailure(kind, f"{GOOGLE}: {reason}")
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


def _run_entries(runs: _Runs, date: str) -> Iterator[TunedEntry]:
    """Yields the repetitions as samples of one measurement; if any failed, only the failures.

    Aggregates count if a file kept nothing else.
    """
    outcome: TunedTimes | TunedFailure = TunedFailure("untimed", "it has no time")
    if runs.samples:
        outcome = TunedTimes(None, tuple(runs.samples))
    elif isinstance(runs.mean, TunedTimes):
        outcome = TunedTimes(runs.mean.mean, (), runs.deviation)
    elif runs.mean:
        outcome = runs.mean
    outcomes: list[tuple[str, TunedTimes | TunedFailure]] = [*runs.failures]
    for place, outcome_at_place in outcomes or [(runs.first, outcome)]:
        yield TunedEntry(
            values=runs.values or {},
            outcome=outcome_at_place,
            at=f"{date} {place}",
            place=place,
            is_default=runs.values is None,
            work=statistics.median(runs.works) if runs.works else None,
        )


GOOGLE_BENCHMARK = TunerFormat(
    "rocPRIM's benchmark results", is_google_benchmark, read_google_benchmark
)


# Caches of rocPRIM's tuner: Kernel Tuner caches with the algorithm, its types, and the GPU
#
# Each is of one algorithm with one combination of types. Times are milliseconds per GiB, one for
# each configuration: the timed code warms up and repeats internally. The layout of segments is
# listed as a parameter, but is treated as a size.

MARKS = ("algo_name", "arch_name")
TYPES = ("key_type", "value_type", "data_type", "flag_type", "input_type", "output_type")
LAYOUT = ("segment_count", "segment_length")


def read_tuner_cache(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads the results of the algorithm, for each layout of segments."""
    document, note = formats.open_cache(path, data)
    cache = formats.read_cache(path, document, note)
    if not all(key in document for key in MARKS):
        return (cache,)  # a user kernel may have parameters of these names
    arch = arch_at(path, "arch_name", document["arch_name"])
    gpu = text_at(path, "gpu", document.get("gpu"))
    algorithm = text_at(path, "algo_name", document["algo_name"])
    types = {key: text_at(path, key, document.get(key)) for key in TYPES}
    try:
        rocprim_cache = replace(
            cache,
            # Kernel Tuner names the CPU here, as the compiler that it calls is for C.
            device=gpu or None,
            kernel=algorithm_name(algorithm or ""),
            library=LIBRARY,
            absent_type=EMPTY,
            workload=checked_workload({key: text for key, text in types.items() if text}),
            arch=arch,
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}", "Its tuner writes names like device_merge.") from error
    return tuple(_by_layout(path, rocprim_cache))


def _by_layout(path: Path, cache: TunedFile) -> list[TunedFile]:
    """Returns one file for each layout of segments, which is a size; other files are unchanged."""
    layout_keys = [key for key in LAYOUT if key in cache.parameters]
    if not layout_keys:
        return [cache]
    parameters = {key: values for key, values in cache.parameters.items() if key not in layout_keys}
    if not parameters:
        raise InputError(f"{path}: it has no parameter besides {' and '.join(layout_keys)}")
    sizes: dict[str, list[TunedEntry]] = {}
    for entry in cache.entries:
        size = "x".join(_length(path, entry, key) for key in layout_keys)
        values = {key: value for key, value in entry.values.items() if key not in layout_keys}
        sizes.setdefault(size, []).append(replace(entry, values=values))
    return [
        replace(cache, size=size, parameters=parameters, entries=tuple(entries))
        for size, entries in sizes.items()
    ]


def _length(path: Path, entry: TunedEntry, key: str) -> str:
    value = entry.values[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise InputError(
            f"{path}: {entry.place}: {key}, {quoted(str(value))}, is not a valid number for it"
        )
    return str(value)


TUNER_CACHE = TunerFormat(
    "a cache of rocPRIM's tuner",
    lambda data: formats.is_cache(data) and mentions(data, *MARKS),
    read_tuner_cache,
    extends=True,
)
