"""Writes the measurements of both sides of a change in NVBench's format, for its own scripts.

A folder per side has a file per benchmark, as `nvbench_compare.py before after` expects. All
processes of a side share one file, because a database keeps their samples together without order.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import policygen
from policygen.errors import InputError
from policygen.gpu.changes import AFTER, ChangedWorkload
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import GpuFacts
from policygen.gpu.measured_rows import MeasuringSession
from policygen.model.workload import BASE
from policygen.paths import write_atomically
from policygen.results.nvbench import SAMPLES, VERSION
from policygen.results.samples import Samples

PROGRAMS = {"before": (BASE, "base"), "after": (AFTER, "variant")}
"""Side → label of its rows, and suffix that CCCL uses for such a program."""
ENOUGH = 5
"""Minimum number of samples for which NVBench reports noise."""
HIDDEN = "Hidden by default."
JOINED = (
    "NVBench's files combine all processes of a side: one file per side does not show the noise"
    " between processes, which the verdicts here need"
)
MEGA = 1_000_000
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeasuredState:
    """A runtime workload on one side: its samples, or the reason why there are none."""

    spot: RowSpot
    samples: Samples | None
    reason: str = ""


def check_nvbench(folder: Path) -> None:
    """Raise InputError early if the output folder is not empty."""
    try:
        is_taken = next(folder.iterdir(), None) is not None
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    if is_taken:
        raise InputError(f"{folder}: the folder is not empty", "Name a new folder.")


def write_nvbench(
    folder: Path, changes: Sequence[ChangedWorkload], rows: MeasuringSession
) -> tuple[str, ...]:
    """Write the measurements into `before` and `after` of a folder; return remarks."""
    file_count = 0
    for side, (label, program) in PROGRAMS.items():
        states_by_benchmark: dict[str, list[MeasuredState]] = {}
        for change in changes:
            states_by_benchmark.setdefault(change.point[0], []).extend(_states(change, label, rows))
        for name, states in states_by_benchmark.items():
            if states:
                _write(folder / side / f"{name}.json", f"{name}.{program}", states, rows)
                file_count += 1
    return (JOINED if file_count else unwritten(folder),)


def unwritten(folder: Path) -> str:
    """Return the remark for a folder that was not written."""
    return f"{folder}: no measurements to write"


def _write(
    path: Path, program: str, states: Sequence[MeasuredState], rows: MeasuringSession
) -> None:
    document, files = nvbench_document(program, states, rows.about.gpu, f"{path.name}-bin")
    try:
        for file, data in files.items():
            write_atomically(path.parent / file, data)
        text = json.dumps(document, indent=2, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def nvbench_document(
    program: str, states: Sequence[MeasuredState], gpu: GpuFacts, folder: str
) -> tuple[Json, dict[str, bytes]]:
    """Return a benchmark's document and its sample files."""
    states_by_subbench: dict[str, list[MeasuredState]] = {}
    for state in states:
        states_by_subbench.setdefault(state.spot.subbench, []).append(state)
    files: dict[str, bytes] = {}
    benches = []
    for index, (name, subbench_states) in enumerate(states_by_subbench.items()):
        axes = _axes([state.spot for state in subbench_states])
        documents = [_state(state, axes, files, folder) for state in subbench_states]
        benches.append(
            {"name": name, "index": index, "devices": [0], "axes": axes, "states": documents}
        )
    document = {
        "meta": {
            "argv": [program],
            "version": {
                "json": {"major": VERSION, "minor": 0, "patch": 0, "string": f"{VERSION}.0.0"},
                "policygen": {"string": policygen.__version__},
            },
        },
        "devices": [_device(gpu)],
        "benchmarks": benches,
    }
    return document, files


def _states(change: ChangedWorkload, label: str, rows: MeasuringSession) -> Iterator[MeasuredState]:
    for spot in (spot for part in change.parts for spot in part.points):
        if reason := change.skipped.get(str(spot)):
            yield MeasuredState(spot.spot, None, reason)
        elif label in rows.times(spot.spot):
            yield MeasuredState(spot.spot, rows.samples(spot.spot)[label])


def _device(gpu: GpuFacts) -> Json:
    """Return the known facts; NVBench writes more."""
    return {
        "id": 0,
        "name": gpu.name,
        "sm_version": 10 * int(gpu.arch.removeprefix("sm")),
        "sm_default_clock_rate": gpu.sm_clock * MEGA,
        "number_of_sms": gpu.sms,
        "global_memory_size": gpu.memory,
        "global_memory_bus_peak_clock_rate": gpu.memory_clock * MEGA,
        "global_memory_bus_width": gpu.bus_width,
        "l2_cache_size": gpu.l2,
        "ecc_state": gpu.ecc,
    }


def _axes(spots: Sequence[RowSpot]) -> list[Json]:
    """Return the axes of a sub-benchmark with the measured values."""
    axes = []
    for column in spots[0].workload:
        values = list(dict.fromkeys(spot.workload[column] for spot in spots))
        name, _, flags = column.partition("[")
        kind = "type" if "{ct}" in name else "int64" if all(map(_is_whole, values)) else "string"
        flags = flags.removesuffix("]") if kind == "int64" else ""
        axes.append(
            {
                "name": name,
                "type": kind,
                "flags": flags,
                "values": [_axis_value(kind, flags, value) for value in values],
            }
        )
    return axes


def _axis_value(kind: str, flags: str, value: str) -> Json:
    if kind == "type":
        return {"input_string": value, "description": value, "is_active": True}
    if kind == "string":
        return {"input_string": value, "description": "", "value": value}
    number = _number(flags, value)
    description = f"2^{value} = {number}" if flags == "pow2" else ""
    return {"input_string": value, "description": description, "value": number}


def _is_whole(value: str) -> bool:
    return value.isascii() and value.removeprefix("-").isdigit()


def _number(flags: str, value: str) -> int:
    return int(2 ** int(value)) if flags == "pow2" else int(value)


def _state(
    state: MeasuredState, axes: Sequence[Json], files: dict[str, bytes], folder: str
) -> Json:
    names, coordinates = ["Device=0"], []
    for axis, value in zip(axes, state.spot.workload.values(), strict=True):
        pow2 = axis["flags"] == "pow2"
        names.append(f"{axis['name']}={'2^' if pow2 else ''}{value}")
        is_integer = axis["type"] == "int64"
        coordinates.append(
            {
                "name": axis["name"],
                "type": "int64" if is_integer else "string",
                "value": str(_number(axis["flags"], value)) if is_integer else value,
            }
        )
    document: Json = {"name": " ".join(names), "device": 0, "axis_values": coordinates}
    if state.samples is None:
        return document | {"summaries": None, "is_skipped": True, "skip_reason": state.reason}
    file = f"{folder}/{len(files)}.bin"
    files[file] = state.samples.astype("<f4").tobytes()
    return document | {"summaries": _summaries(state.samples, file), "is_skipped": False}


def _summaries(samples: Samples, file: str) -> list[Json]:
    """Return NVBench's summaries; the noise is that of the samples of all processes."""
    count, mean = samples.size, float(samples.mean())
    quartiles = np.quantile(samples, (0.25, 0.5, 0.75), method="nearest")
    low, middle, high = map(float, quartiles)
    deviation = float(samples.std(ddof=1)) if count >= ENOUGH else None
    times: Mapping[str, tuple[str, float | None]] = {
        "min": ("Min GPU Time", float(samples.min())),
        "max": ("Max GPU Time", float(samples.max())),
        "mean": ("GPU Time", mean),
        "stdev/absolute": ("Noise", deviation),
        "stdev/relative": ("Noise", None if deviation is None else deviation / mean),
        "q1": ("Q1 GPU Time", low),
        "median": ("Median GPU Time", middle),
        "q3": ("Q3 GPU Time", high),
        "iqr/absolute": ("IQR", high - low),
        "iqr/relative": ("Rel IQR", (high - low) / middle),
    }
    summaries = [
        _summary("nv/cold/sample_size", "Samples", "sample_size", ("value", "int64", count))
    ]
    for tag, (name, value) in times.items():
        hint = "percentage" if tag.endswith("relative") else "duration"
        summary = _summary(f"nv/cold/time/gpu/{tag}", name, hint, ("value", "float64", value))
        summaries.append(
            summary if tag in {"mean", "stdev/relative"} else summary | {"hide": HIDDEN}
        )
    summaries.append(
        _summary(
            SAMPLES,
            "Sample Times File",
            "file/sample_times",
            ("filename", "string", file),
            ("size", "int64", count),
        )
        | {"hide": HIDDEN}
    )
    return summaries


def _summary(tag: str, name: str, hint: str, *data: tuple[str, str, object]) -> Json:
    return {
        "tag": tag,
        "name": name,
        "hint": hint,
        "data": [
            {"name": field, "type": kind, "value": None if value is None else str(value)}
            for field, kind, value in data
        ],
    }
