"""What rocPRIM's newer benchmarks write: JSON of primbench, with an object that says what ran.

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
"""Earlier ones name the GPU and the settings otherwise."""
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
    """Runs that were still noisy when their time was up."""

    count: int = 0
    most: float | None = None
    place: str = ""

    def add(self, place: str, percent: float | None) -> None:
        """Counts one more, and keeps the noisiest."""
        self.count += 1
        if not self.place or (percent or 0.0) > (self.most or 0.0):
            self.most, self.place = percent, place


def is_it(data: bytes) -> bool:
    """Whether a file is such results, of rocPRIM's benchmarks or of another library's."""
    head = data[: 1 << 22]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and all(
        f'"{key}"'.encode() in head for key in ("context", "results_version")
    )


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """What it says of each combination of types."""
    parsed, told = parse_open(path, data, ("]}",))
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
    ways, notes = _ways(path, context, general, settings)
    noisy = _NoisyRuns()
    parts = _gathered(path, rows, date, noisy)
    notes = (*_missing(general, rows, told), *notes, *_noise(noisy, len(rows)))
    return tuple(
        TunedFile(
            path=path,
            program=", ".join((PROGRAM, *ways)),
            device=device,
            kernel=algorithm,
            size=str(size) if size else None,
            parameters=dict.fromkeys(one.parameters, ()),
            entries=tuple(one.entries),
            notes=notes,
            library=LIBRARY,
            workload=dict(workload),
            arch=arch,
        )
        for (algorithm, workload), one in parts.items()
    )


def _check_version(path: Path, context: Mapping[str, Any]) -> None:
    found = context.get("results_version")
    if not isinstance(found, str) or not _VERSION.fullmatch(found):
        told = quoted(found) if isinstance(found, str) else kind_of(found)
        raise InputError(f"{path}: context results_version, {told}, is no version")
    if not found.startswith(VERSION):
        raise InputError(
            f"{path}: primbench's results of version {found}; policygen knows {VERSION}x",
            "Measure with benchmarks whose primbench writes that version.",
        )


def _check_backend(path: Path, general: Mapping[str, Any]) -> None:
    place = "context general backend"
    backend = members(path, place, general.get("backend", {}))
    found = text_at(path, f"{place} name", backend.get("name"))
    if found not in {None, BACKEND}:
        raise InputError(
            f"{path}: was measured with the backend {quoted(found or '')}, and rocPRIM runs with"
            f" {BACKEND} alone",
            "Results of other libraries' benchmarks cannot be imported.",
        )


def _flag_at(path: Path, place: str, found: object) -> bool:
    if not isinstance(found, bool | None):
        raise InputError(f"{path}: {place} is {kind_of(found)}, and neither true nor false")
    return bool(found)


def _ways(
    path: Path, context: Mapping[str, Any], general: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """In which ways times are not as usual, so that they are not compared; and what is told."""
    flags = members(path, "context flags", context.get("flags", {}))
    build = text_at(path, "context general library_build_type", general.get("library_build_type"))
    ways = []
    if _flag_at(path, "context settings hot", settings.get("hot")):
        ways.append("hot")
    if _flag_at(path, "context flags sync", flags.get("sync")):
        ways.append("sync")
    if build in {None, RELEASE}:
        return tuple(ways), ()
    return (*ways, str(build)), (f"a {build} build: others may take other times",)


def _missing(general: Mapping[str, Any], rows: list[Any], told: str | None) -> Iterator[str]:
    """What is told of a file that has fewer runs than were asked for."""
    count = number_of(general.get("specialization_count"))
    if told is not None:
        yield told
    if count is not None and count != len(rows):
        yield f"{len(rows):,} of {count:,} specializations are there"


def _noise(noisy: _NoisyRuns, count: int) -> Iterator[str]:
    if noisy.count:
        most = "" if noisy.most is None else f", by {noisy.most:.3g} % at most"
        verb = "was" if noisy.count == 1 else "were"
        yield (
            f"{noisy.count:,} of {count:,} runs {verb} still noisy when the time was up{most}"
            f" ({noisy.place})"
        )


def _gathered(
    path: Path, rows: list[Any], date: str, noisy: _NoisyRuns
) -> dict[_Key, _PrimbenchPart]:
    """Runs by algorithm and types."""
    found: dict[_Key, _PrimbenchPart] = {}
    for number, one in enumerate(islice(rows, MOST_ENTRIES + 1)):
        if number == MOST_ENTRIES:
            raise InputError(f"{path}: more than {MOST_ENTRIES:,} specializations")
        place = f"specializations[{number}]"
        cells = members(path, place, one)
        told = _name(path, place, cells)
        part = found.setdefault(
            (told.algorithm, tuple(sorted(told.workload.items()))), _PrimbenchPart()
        )
        part.parameters = part.parameters or tuple(told.config or ())
        outcome = run_times(path, place, cells)
        if _flag_at(path, f"{place} noise_timeout", cells.get("noise_timeout")):
            noisy.add(place, noise_of(cells))
        elapsed = members(path, f"{place} elapsed_secs", cells.get("elapsed_secs", {}))
        part.entries.append(
            TunedEntry(
                values=told.config or {},
                outcome=outcome,
                running=lasting(elapsed.get("host"), 1.0),
                at=f"{date} {place}",
                place=place,
                is_default=told.config is None,
                work=float(cells["items"]) if isinstance(outcome, TunedTimes) else None,
            )
        )
    return found


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
"""What is written is rounded to six digits."""


# What a run of primbench took: its rate, or the times of its calls.
#
# A run is batches of calls, until the last few differ little enough, or too much time has passed.
# Its
# rate is that of its last batch alone, its noise how far the last few are apart. With
# `--output-batches` it keeps what every call took, in all batches.


def run_times(path: Path, place: str, cells: Mapping[str, Any]) -> TunedTimes | TunedFailure:
    """Seconds of a call, or why there are none."""
    time = _of_rate(cells)
    if isinstance(time, TunedFailure):
        return time
    batches = _batches(path, place, cells.get("batches", []))
    if batches:
        return _of_batches(path, place, batches, time)
    noise = noise_of(cells)
    apart = None if noise is None else seconds_of(time * noise / 100, 1.0)
    return TunedTimes(time, (time,), apart)


def noise_of(cells: Mapping[str, Any]) -> float | None:
    """How far the last batches were apart, in percent; none where nothing says it."""
    found = cells.get("noise_percent")
    return float(found) if found is not None and is_rate(found) else None


def _of_rate(cells: Mapping[str, Any]) -> float | TunedFailure:
    """Seconds of a call as the rate of the last batch has it."""
    for key in RATES:
        if not is_rate(cells.get(key)):
            told = f"its {key}, {written(cells[key])}, is no rate" if key in cells else ""
            return TunedFailure("untimed", told or f"it has no {key}")
    items = cells.get("items")
    if not isinstance(items, int) or isinstance(items, bool) or not 0 < items < 1 << 63:
        told = f"its items, {written(items)}, are no number of them"
        return TunedFailure("untimed", told)
    found = items / cells["items_per_second"]
    time = seconds_of(found, 1.0)
    told = f"its time, {found:.3g} seconds, is {NO_TIME}"
    return TunedFailure("untimed", told) if time is None else time


def _of_batches(
    path: Path, place: str, batches: list[list[Any]], time: float
) -> TunedTimes | TunedFailure:
    """Seconds of all calls, if the rate says the same."""
    calls = [one for batch in batches for one in batch]
    outcome = outcome_of(path, place, None, calls, MILLISECONDS)
    if isinstance(outcome, TunedFailure):
        return outcome
    means = [MILLISECONDS * sum(batch) / len(batch) for batch in batches]
    if min(means) * (1 - NEAR) <= time <= max(means) * (1 + NEAR):
        return outcome
    told = (
        f"its batches say {min(means):.3g} to {max(means):.3g} seconds a call, and its rate"
        f" {time:.3g}"
    )
    return TunedFailure("untimed", told)


def _batches(path: Path, place: str, found: object) -> list[list[Any]]:
    """What each call of each batch took, as it stands there; a batch without calls is none."""
    batches = []
    for number, one in enumerate(listed_at(path, f"{place} batches", found)):
        where = f"{place} batches[{number}]"
        calls = members(path, where, one).get("iterations_ms")
        batches.append(listed_at(path, f"{where} iterations_ms", calls))
    return [one for one in batches if one]
