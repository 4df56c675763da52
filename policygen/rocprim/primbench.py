"""Reads primbench results, the JSON of rocPRIM's newer benchmarks, where an object says what ran.

One file holds one algorithm with many types and configurations, and is written run by run.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.results.tuners.documents import (
    LETTERS,
    MOST_ENTRIES,
    NO_TIME,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
    is_rate,
    kind_of,
    lasting,
    listed_at,
    members,
    outcome_of,
    parse_open,
    quoted,
    seconds_of,
    text_at,
    written,
)
from policygen.rocprim.result_names import LIBRARY, RocprimName, arch_at, number_of, parse_meta

name = "rocPRIM's primbench results"
PROGRAM = "primbench"
VERSION = "4."
"""Earlier versions name the GPU and the settings differently."""
BACKEND, RELEASE = "hip", "release"
# 4.0.0
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}", re.ASCII)
_Key = tuple[str, tuple[tuple[str, str], ...]]
"""An algorithm, and its types."""


@dataclass(slots=True)
class _PrimbenchPart:
    """The runs of one algorithm with one combination of types."""

    parameters: tuple[str, ...] = ()
    entries: list[TunedEntry] = field(default_factory=list)


@dataclass(slots=True)
class _NoisyRuns:
    """Runs that were still noisy at the time limit."""

    count: int = 0
    most: float | None = None
    place: str = ""

    def add(self, place: str, percent: float | None) -> None:
        """Counts a run, and keeps the noisiest one."""
        self.count += 1
        if not self.place or (percent or 0.0) > (self.most or 0.0):
            self.most, self.place = percent, place


def is_it(data: bytes) -> bool:
    """Detects primbench results, of rocPRIM or another library."""
    head = data[: 1 << 22]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and all(
        f'"{key}"'.encode() in head for key in ("context", "results_version")
    )


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
        raise InputError(
            f"{path}: is of a dry run, in which nothing was measured", "Run it without --dry."
        )
    rows = listed_at(path, "specializations", document.get("specializations"))
    if not rows:
        raise InputError(f"{path}: there is no specialization", "Nothing was measured yet.")
    size = number_of(settings.get("size"))
    date = text_at(path, "context general date", general.get("date")) or ""
    modes, notes = _modes(path, context, general, settings)
    noisy = _NoisyRuns()
    parts = _group_runs(path, rows, date, noisy)
    notes = (*_missing_notes(general, rows, note), *notes, *_noise_notes(noisy, len(rows)))
    return tuple(
        TunedFile(
            path=path,
            program=", ".join((PROGRAM, *modes)),
            device=device,
            kernel=algorithm,
            size=str(size) if size else None,
            parameters=dict.fromkeys(part.parameters, ()),
            entries=tuple(part.entries),
            notes=notes,
            library=LIBRARY,
            workload=dict(workload),
            arch=arch,
        )
        for (algorithm, workload), part in parts.items()
    )


def _check_version(path: Path, context: Mapping[str, Any]) -> None:
    version = context.get("results_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        description = quoted(version) if isinstance(version, str) else kind_of(version)
        raise InputError(f"{path}: context results_version, {description}, is no version")
    if not version.startswith(VERSION):
        raise InputError(
            f"{path}: primbench's results of version {version}; policygen knows {VERSION}x",
            "Measure with benchmarks whose primbench writes that version.",
        )


def _check_backend(path: Path, general: Mapping[str, Any]) -> None:
    place = "context general backend"
    backend = members(path, place, general.get("backend", {}))
    backend_name = text_at(path, f"{place} name", backend.get("name"))
    if backend_name not in {None, BACKEND}:
        raise InputError(
            f"{path}: was measured with the backend {quoted(backend_name or '')},"
            f" and rocPRIM runs with"
            f" {BACKEND} alone",
            "Results of other libraries' benchmarks cannot be imported.",
        )


def _flag_at(path: Path, place: str, value: object) -> bool:
    if not isinstance(value, bool | None):
        raise InputError(f"{path}: {place} is {kind_of(value)}, and neither true nor false")
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
    return (*modes, str(build)), (f"a {build} build: others may take other times",)


def _missing_notes(general: Mapping[str, Any], rows: list[Any], note: str | None) -> Iterator[str]:
    """Yields notes about a file with fewer runs than requested."""
    count = number_of(general.get("specialization_count"))
    if note is not None:
        yield note
    if count is not None and count != len(rows):
        yield f"{len(rows):,} of {count:,} specializations are there"


def _noise_notes(noisy: _NoisyRuns, count: int) -> Iterator[str]:
    if noisy.count:
        maximum = "" if noisy.most is None else f", by {noisy.most:.3g} % at most"
        verb = "was" if noisy.count == 1 else "were"
        yield (
            f"{noisy.count:,} of {count:,} runs {verb} still noisy when the time was up{maximum}"
            f" ({noisy.place})"
        )


def _group_runs(
    path: Path, rows: list[Any], date: str, noisy: _NoisyRuns
) -> dict[_Key, _PrimbenchPart]:
    """Groups runs by algorithm and types."""
    parts: dict[_Key, _PrimbenchPart] = {}
    for number, row in enumerate(islice(rows, MOST_ENTRIES + 1)):
        if number == MOST_ENTRIES:
            raise InputError(f"{path}: more than {MOST_ENTRIES:,} specializations")
        place = f"specializations[{number}]"
        cells = members(path, place, row)
        name_facts = _name(path, place, cells)
        part = parts.setdefault(
            (name_facts.algorithm, tuple(sorted(name_facts.workload.items()))), _PrimbenchPart()
        )
        part.parameters = part.parameters or tuple(name_facts.config or ())
        outcome = run_times(path, place, cells)
        if _flag_at(path, f"{place} noise_timeout", cells.get("noise_timeout")):
            noisy.add(place, noise_of(cells))
        elapsed = members(path, f"{place} elapsed_secs", cells.get("elapsed_secs", {}))
        part.entries.append(
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
    return parts


def _name(path: Path, place: str, cells: Mapping[str, Any]) -> RocprimName:
    meta = members(path, f"{place} meta", cells.get("meta"))
    try:
        return parse_meta(meta)
    except ValueError as error:
        raise InputError(
            f"{path}: {place} meta: {str(error)[:LETTERS]}",
            "rocPRIM's benchmarks say lvl, algo and cfg; those of other libraries do not.",
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
            reason = f"its {key}, {written(cells[key])}, is no rate" if key in cells else ""
            return TunedFailure("untimed", reason or f"it has no {key}")
    items = cells.get("items")
    if not isinstance(items, int) or isinstance(items, bool) or not 0 < items < 1 << 63:
        reason = f"its items, {written(items)}, are no number of them"
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
        f"its batches say {min(means):.3g} to {max(means):.3g} seconds a call, and its rate"
        f" {time:.3g}"
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
