"""What was measured of both sides of a change, as NVBench writes it: for its own scripts.

A folder for each side has a file for each benchmark, as `nvbench_compare.py before after` takes
them. All processes of a side are one file: a database keeps their samples together, in no order.
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
"""By side: what its rows are called, and how CCCL calls such a benchmark's program."""
ENOUGH = 5
"""Samples from which on NVBench tells their noise."""
HIDDEN = "Hidden by default."
JOINED = (
    "NVBench's files have all processes of a side together: one file a side tells no noise between"
    " processes, on which the verdicts here rest"
)
MEGA = 1_000_000
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeasuredState:
    """A runtime workload on a side: its samples, or why there are none."""

    spot: RowSpot
    samples: Samples | None
    reason: str = ""


def check_nvbench(folder: Path) -> None:
    """Refuses a folder where something stands, before anybody waits for what is written there."""
    try:
        taken = next(folder.iterdir(), None) is not None
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    if taken:
        raise InputError(f"{folder}: the folder is not empty", "Name a new folder.")


def write_nvbench(
    folder: Path, changes: Sequence[ChangedWorkload], rows: MeasuringSession
) -> tuple[str, ...]:
    """Writes what was measured into `before` and `after` of a folder; remarks on what is there."""
    written = 0
    for side, (label, program) in PROGRAMS.items():
        lots: dict[str, list[MeasuredState]] = {}
        for change in changes:
            lots.setdefault(change.point[0], []).extend(_states(change, label, rows))
        for name, states in lots.items():
            if states:
                _write(folder / side / f"{name}.json", f"{name}.{program}", states, rows)
                written += 1
    return (JOINED if written else unwritten(folder),)


def unwritten(folder: Path) -> str:
    """Why a folder that was asked for is not there."""
    return f"{folder}: nothing was measured that could be written"


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
    """A benchmark's file, and the files of samples that it names."""
    lots: dict[str, list[MeasuredState]] = {}
    for state in states:
        lots.setdefault(state.spot.subbench, []).append(state)
    files: dict[str, bytes] = {}
    benches = []
    for index, (name, own) in enumerate(lots.items()):
        axes = _axes([state.spot for state in own])
        written = [_state(state, axes, files, folder) for state in own]
        benches.append(
            {"name": name, "index": index, "devices": [0], "axes": axes, "states": written}
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
        if why := change.skipped.get(str(spot)):
            yield MeasuredState(spot.spot, None, why)
        elif label in rows.times(spot.spot):
            yield MeasuredState(spot.spot, rows.samples(spot.spot)[label])


def _device(gpu: GpuFacts) -> Json:
    """What is known of it; NVBench knows more."""
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
    """The axes of a sub-benchmark, with the values that were asked for."""
    found = []
    for column in spots[0].workload:
        values = list(dict.fromkeys(spot.workload[column] for spot in spots))
        name, _, flags = column.partition("[")
        kind = "type" if "{ct}" in name else "int64" if all(map(_is_whole, values)) else "string"
        flags = flags.removesuffix("]") if kind == "int64" else ""
        found.append(
            {
                "name": name,
                "type": kind,
                "flags": flags,
                "values": [_axis_value(kind, flags, value) for value in values],
            }
        )
    return found


def _axis_value(kind: str, flags: str, value: str) -> Json:
    if kind == "type":
        return {"input_string": value, "description": value, "is_active": True}
    if kind == "string":
        return {"input_string": value, "description": "", "value": value}
    number = _number(flags, value)
    told = f"2^{value} = {number}" if flags == "pow2" else ""
    return {"input_string": value, "description": told, "value": number}


def _is_whole(value: str) -> bool:
    return value.isascii() and value.removeprefix("-").isdigit()


def _number(flags: str, value: str) -> int:
    return int(2 ** int(value)) if flags == "pow2" else int(value)


def _state(
    state: MeasuredState, axes: Sequence[Json], files: dict[str, bytes], folder: str
) -> Json:
    named, coordinates = ["Device=0"], []
    for axis, value in zip(axes, state.spot.workload.values(), strict=True):
        pow2 = axis["flags"] == "pow2"
        named.append(f"{axis['name']}={'2^' if pow2 else ''}{value}")
        whole = axis["type"] == "int64"
        coordinates.append(
            {
                "name": axis["name"],
                "type": "int64" if whole else "string",
                "value": str(_number(axis["flags"], value)) if whole else value,
            }
        )
    told: Json = {"name": " ".join(named), "device": 0, "axis_values": coordinates}
    if state.samples is None:
        return told | {"summaries": None, "is_skipped": True, "skip_reason": state.reason}
    file = f"{folder}/{len(files)}.bin"
    files[file] = state.samples.astype("<f4").tobytes()
    return told | {"summaries": _summaries(state.samples, file), "is_skipped": False}


def _summaries(samples: Samples, file: str) -> list[Json]:
    """NVBench's own, of what is known; its noise is that of samples, of all processes."""
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
    found = [_summary("nv/cold/sample_size", "Samples", "sample_size", ("value", "int64", count))]
    for tag, (name, value) in times.items():
        hint = "percentage" if tag.endswith("relative") else "duration"
        own = _summary(f"nv/cold/time/gpu/{tag}", name, hint, ("value", "float64", value))
        found.append(own if tag in {"mean", "stdev/relative"} else own | {"hide": HIDDEN})
    found.append(
        _summary(
            SAMPLES,
            "Sample Times File",
            "file/sample_times",
            ("filename", "string", file),
            ("size", "int64", count),
        )
        | {"hide": HIDDEN}
    )
    return found


def _summary(tag: str, name: str, hint: str, *data: tuple[str, str, object]) -> Json:
    return {
        "tag": tag,
        "name": name,
        "hint": hint,
        "data": [
            {"name": called, "type": kind, "value": None if value is None else str(value)}
            for called, kind, value in data
        ],
    }
