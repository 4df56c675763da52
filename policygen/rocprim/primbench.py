"""Reads primbench results, the JSON of rocPRIM's newer benchmarks, where an object says what ran.

One file holds one algorithm with many types and configurations, and is written run by run.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.results.tuners.formats import (
    LETTERS,
    NO_TIME,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
    TunerFormat,
    is_rate,
    kind_of,
    lasting,
    listed_at,
    members,
    mentions,
    outcome_of,
    parse_open,
    quoted,
    seconds_of,
    text_at,
    written,
)
from policygen.rocprim.result_names import (
    Kernel,
    RocprimName,
    arch_at,
    number_of,
    parse_meta,
    rows_at,
    runs_of,
    split_file,
)

PROGRAM = "primbench"
VERSION = "4."
"""Earlier versions name the GPU and the settings differently."""
BACKEND, RELEASE = "hip", "release"
# 4.0.0
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}", re.ASCII)
_Noise = tuple[str, float | None]
"""The place of a run that was still noisy at the time limit, and the spread in percent."""


def is_it(data: bytes) -> bool:
    """Detects primbench results, of rocPRIM or another library."""
    return mentions(data, "context", "results_version")


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
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
        program=", ".join((PROGRAM, *modes)),
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
        name_facts = _name(path, place, cells)
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


def _name(path: Path, place: str, cells: Mapping[str, Any]) -> RocprimName:
    meta = members(path, f"{place} meta", cells.get("meta"))
    try:
        return parse_meta(meta)
    except ValueError as error:
        raise InputError(
            f"{path}: {place} meta: {str(error)[:LETTERS]}",
            "rocPRIM's benchmarks write lvl, algo and cfg; those of other libraries do not.",
        ) from error


RATES = ("items_per_second", "bytes_per_second")
MILLISECONDS = 1e-3
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
    outcome = outcome_of(path, place, None, calls, MILLISECONDS)
    if isinstance(outcome, TunedFailure):
        return outcome
    means = [MILLISECONDS * sum(batch) / len(batch) for batch in batches]
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


FORMAT = TunerFormat("rocPRIM's primbench results", is_it, read)
