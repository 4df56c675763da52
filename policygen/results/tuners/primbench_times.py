"""What a run of primbench took: its rate, or the times of its calls.

A run is batches of calls, until the last few differ little enough, or too much time has passed. Its
rate is that of its last batch alone, its noise how far the last few are apart. With
`--output-batches` it keeps what every call took, in all batches.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from policygen.results.tuners.tuned import TunedFailure, TunedTimes
from policygen.results.tuners.tuner_json import (
    NO_TIME,
    is_rate,
    listed_at,
    members,
    outcome_of,
    seconds_of,
    written,
)

RATES = ("items_per_second", "bytes_per_second")
MILLISECONDS = 1e-3
NEAR = 0.01
"""What is written is rounded to six digits."""


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
