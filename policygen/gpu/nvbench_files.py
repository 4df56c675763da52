"""Both sides of a change in NVBench's format: written for its own scripts, and compared.

A folder per side has a file per benchmark, as `nvbench_compare.py before after` expects. All
processes of a side share one file, because a database keeps their samples together without order.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import policygen
from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, listed
from policygen.gpu.changes import AFTER, ChangedWorkload, noise_of, whole_verdict
from policygen.gpu.database_writer import RowSpot
from policygen.gpu.device import GpuFacts
from policygen.gpu.measured_rows import MeasuringSession
from policygen.gpu.statistics import LEAST, SURE, Judge, SeparateTimes, score_times
from policygen.model.measured import SkippedPoint
from policygen.model.verdicts import RuntimePerformance, VerifyPerformance, WorkloadPerformance
from policygen.model.workload import BASE, Point, axes, axis_name, in_words, plain
from policygen.paths import write_atomically
from policygen.results.cases import runtime_weights
from policygen.results.database import LONGEST, SHORTEST
from policygen.results.nvbench import SAMPLES, VERSION, NvbenchBench, NvbenchRun, NvbenchState
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
    version = {
        "json": {"major": VERSION, "minor": 0, "patch": 0, "string": f"{VERSION}.0.0"},
        "policygen": {"string": policygen.__version__},
    }
    meta = {"argv": [program], "version": version}
    return {"meta": meta, "devices": [_device(gpu)], "benchmarks": benches}, files


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
        is_whole = all(v.isascii() and v.removeprefix("-").isdigit() for v in values)
        kind = "type" if "{ct}" in name else "int64" if is_whole else "string"
        flags = flags.removesuffix("]") if kind == "int64" else ""
        documents = [_axis_value(kind, flags, value) for value in values]
        axes.append({"name": name, "type": kind, "flags": flags, "values": documents})
    return axes


def _axis_value(kind: str, flags: str, value: str) -> Json:
    if kind == "type":
        return {"input_string": value, "description": value, "is_active": True}
    if kind == "string":
        return {"input_string": value, "description": "", "value": value}
    number = _number(flags, value)
    description = f"2^{value} = {number}" if flags == "pow2" else ""
    return {"input_string": value, "description": description, "value": number}


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
        kind = "int64" if is_integer else "string"
        text = str(_number(axis["flags"], value)) if is_integer else value
        coordinates.append({"name": axis["name"], "type": kind, "value": text})
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
    data = (("filename", "string", file), ("size", "int64", count))
    times_file = _summary(SAMPLES, "Sample Times File", "file/sample_times", *data)
    return [*summaries, times_file | {"hide": HIDDEN}]


def _summary(tag: str, name: str, hint: str, *data: tuple[str, str, object]) -> Json:
    fields = [
        {"name": field, "type": kind, "value": None if value is None else str(value)}
        for field, kind, value in data
    ]
    return {"tag": tag, "name": name, "hint": hint, "data": fields}


# Comparing NVBench's results of both sides, without a GPU

ONE_PROCESS = (
    "one process per side does not show the noise between processes, which differs from the noise"
    " of samples within one: give at least two results per side (--before A1.json --before"
    " A2.json …)"
)
NO_NOISE = (
    "processes of one side report exactly the same time, which shows no noise: differences there"
    " are undecided"
)
SEPARATE = (
    "the two sides were not measured side by side: other differences between their runs, such as"
    " clocks and temperature, count as part of the change"
)
APPROXIMATE = (
    "weights of runtime workloads are approximate: the results lack some values of {io} axes"
)
SIDES = ("before", "after")
NO_TIME = "NVBench reports no time"
Axes = Mapping[str, str]
"""Axes with values, as named in databases."""
Keeps = Callable[[str, Axes], bool]
"""Whether to include a runtime workload, by benchmark and all axes."""


def compare_results(
    before: Sequence[NvbenchRun],
    after: Sequence[NvbenchRun],
    keeps: Keeps,
    tolerance: float | None = None,
) -> VerifyPerformance | None:
    """Compares the results of two sides of a change; None if nothing is selected."""
    all_runs = [*before, *after]
    arch = _arch(all_runs)
    matched = match_results(before, after, keeps)
    if not matched:
        return None
    verdicts = sum(1 + len(workload.shared) for workload in matched if workload.shared)
    judge = Judge(max(1, verdicts), tolerance)
    workloads = tuple(workload.document(judge, arch) for workload in matched)
    return VerifyPerformance(
        before=listed(str(run.path) for run in before),
        after=listed(str(run.path) for run in after),
        arch=arch,
        gpu=all_runs[0].gpu,
        tolerance=tolerance,
        confidence=SURE,
        noise=noise_of(workloads),
        remarks=tuple(_remarks(workloads, matched)),
        verdict=whole_verdict(workloads),
        workloads=workloads,
    )


def _arch(runs: Sequence[NvbenchRun]) -> str:
    """Returns the architecture of the GPU, which must be the same in all results."""
    first = runs[0]
    for run in runs:
        for attribute in ("gpu", "arch"):
            if getattr(run, attribute) != getattr(first, attribute):
                raise InputError(
                    f"{run.path}: measured on {run.gpu}, {run.arch or 'of an unknown arch'}, but"
                    f" {first.path} on {first.gpu}, {first.arch or 'of an unknown arch'}",
                    "Times of different GPUs are not comparable.",
                )
    arch = first.arch or gpu_arch(first.gpu)
    if arch is None:
        raise InputError(
            f"{first.path}: does not state the compute capability of {first.gpu}",
            "NVBench writes it as the sm_version of a device.",
        )
    return arch


def _remarks(
    workloads: Sequence[WorkloadPerformance], matched: Sequence["MatchedWorkload"]
) -> Iterator[str]:
    """Yields remarks about the results as a whole."""
    undecided = [row for workload in workloads for row in workload.runtime if row.low is None]
    if any(row.processes < LEAST for row in undecided):
        yield ONE_PROCESS
    if any(row.processes >= LEAST for row in undecided):
        yield NO_NOISE
    yield SEPARATE
    if any(is_approximate for _, is_approximate in (workload.weights for workload in matched)):
        yield APPROXIMATE


# Matching the results of both sides


@dataclass(slots=True)
class MatchedPoint:
    """Process times of a runtime workload by side, and reasons for missing ones."""

    subbench: str
    axes: Axes
    times: Mapping[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    skipped: dict[str, str] = field(default_factory=dict)
    """Reasons by side."""
    step: float = 0.0

    @property
    def separate(self) -> SeparateTimes | None:
        """Times of both sides; None if a side has no measurement."""
        before, after = (self.times[side] for side in SIDES)
        return SeparateTimes(before, after, self.step) if before and after else None

    @property
    def skips(self) -> bool:
        """Whether NVBench skips it and neither side has measured it."""
        reasons = self.skipped.values()
        return bool(reasons) and NO_TIME not in reasons and not any(self.times.values())

    @property
    def lacking(self) -> str:
        """The sides without a measurement, with reasons."""
        missing = [side for side in SIDES if not self.times[side]]
        reasons = [self.skipped.get(side, "there is no result") for side in missing]
        return "; ".join(map(": ".join, zip(missing, reasons, strict=True)))


@dataclass
class MatchedWorkload:
    """A workload with the results of both sides."""

    point: Point
    points: list[MatchedPoint] = field(default_factory=list)
    problem: str | None = None
    """Reason why its runtime workloads cannot be matched."""

    @cached_property
    def shared(self) -> list[tuple[MatchedPoint, SeparateTimes]]:
        """The runtime workloads that both sides have."""
        pairs = [(point, point.separate) for point in self.points if not self.problem]
        return [(point, times) for point, times in pairs if times is not None]

    @cached_property
    def weights(self) -> tuple[list[float], bool]:
        """The weights of those, and whether they are approximate."""
        name = self.point[0]
        weights, approximate = runtime_weights(
            [(name, point.subbench, point.axes) for point, _ in self.shared]
        )
        return weights.tolist(), approximate

    def document(self, judge: Judge, arch: str) -> WorkloadPerformance:
        """Builds the document.

        A runtime workload on one side only is a problem of the whole workload.
        """
        problem = self.problem or self._problem()
        skips = (point for point in self.points if not self.problem and point.skips)
        skipped = tuple(SkippedPoint(point=dict(row.axes), reason=row.lacking) for row in skips)
        fields: dict[str, Any] = {"arch": arch, "skipped": skipped, "problem": problem}
        if not self.shared:
            return WorkloadPerformance.of(self.point, **fields, verdict="undecided")
        weights, _ = self.weights
        fields |= _judged(judge, score_times(weights, [times for _, times in self.shared]))
        if problem and fields["verdict"] != "slower":
            fields["verdict"] = "undecided"
        return WorkloadPerformance.of(
            self.point,
            **fields,
            runtime=tuple(
                _runtime(matched, point_times, weight, judge)
                for (matched, point_times), weight in zip(self.shared, weights, strict=True)
            ),
        )

    def _problem(self) -> str | None:
        unmatched = [point for point in self.points if point.separate is None and not point.skips]
        if not unmatched:
            return None if self.shared else "each of its runtime workloads is skipped"
        first = unmatched[0]
        description = " ".join(axes(plain(first.axes))) or first.subbench
        suffix = f", and {len(unmatched) - 1} more" if len(unmatched) > 1 else ""
        return f"not on both sides: {description} ({first.lacking}){suffix}"


def match_results(
    before: Sequence[NvbenchRun], after: Sequence[NvbenchRun], keeps: Keeps
) -> list[MatchedWorkload]:
    """Return the workloads of both sides in order of appearance."""
    problems = _different_axes((*before, *after))
    workloads: dict[tuple[str, frozenset[tuple[str, str]]], MatchedWorkload] = {}
    points: dict[tuple[str, str, frozenset[tuple[str, str]]], MatchedPoint] = {}
    for side, run in [*((SIDES[0], run) for run in before), *((SIDES[1], run) for run in after)]:
        seen = set()
        for bench, state in _states_of(run):
            if not keeps(run.algorithm, state.point):
                continue
            key = (run.algorithm, bench.name, frozenset(state.point.items()))
            if key in seen:
                name = in_words(bench.name, state.point)
                raise InputError(f"{run.path}: {name}: appears twice")
            seen.add(key)
            if key not in points:
                axes = {axis: state.point[axis] for axis in bench.axes}
                types = {axis: value for axis, value in axes.items() if "{ct}" in axis}
                runtime_axes = {axis: value for axis, value in axes.items() if "{ct}" not in axis}
                points[key] = MatchedPoint(bench.name, runtime_axes)
                point = run.algorithm, tuple((axis_name(axis), types[axis]) for axis in types)
                workload = MatchedWorkload(point, problem=problems.get(run.algorithm))
                workload_key = (run.algorithm, frozenset(types.items()))
                workloads.setdefault(workload_key, workload).points.append(points[key])
            _add(points[key], side, state)
    return list(workloads.values())


def step_of(samples: Samples | None) -> float:
    """Return the relative clock step around the median; 0 if none is visible.

    Two medians that are one step apart may belong to equal code.
    """
    if samples is None or not samples.size:
        return 0.0
    center = float(np.median(samples.astype(np.float64)))
    below, above = samples[samples < center], samples[samples > center]
    low = float(below.max()) if below.size else center
    high = float(above.min()) if above.size else center
    step = (high - low) / 2
    return step / (center - step) if step < center else 1.0


def _states_of(run: NvbenchRun) -> Iterator[tuple[NvbenchBench, NvbenchState | SkippedPoint]]:
    for bench in run.benches:
        yield from ((bench, state) for state in bench.states)
        yield from ((bench, state) for state in bench.skipped)


def _add(point: MatchedPoint, side: str, state: NvbenchState | SkippedPoint) -> None:
    if isinstance(state, SkippedPoint):
        point.skipped[side] = state.reason
    elif not (math.isfinite(state.center) and SHORTEST <= state.center <= LONGEST):
        point.skipped[side] = NO_TIME
    else:
        point.times[side].append(state.center)
        point.step = max(point.step, step_of(state.samples))


def _different_axes(runs: Sequence[NvbenchRun]) -> dict[str, str]:
    """Return the benchmarks whose results have different axes, with a message."""
    first_by_name: dict[tuple[str, str], tuple[NvbenchRun, NvbenchBench]] = {}
    problems: dict[str, str] = {}
    for run in runs:
        for bench in run.benches:
            first_run, first_bench = first_by_name.setdefault(
                (run.algorithm, bench.name), (run, bench)
            )
            if set(first_bench.axes) != set(bench.axes):
                problems.setdefault(
                    run.algorithm,
                    f"{bench.name} has the axes {_axis_names(first_bench)} in {first_run.path}, and"
                    f" {_axis_names(bench)} in {run.path}",
                )
    return problems


def _axis_names(bench: NvbenchBench) -> str:
    return ", ".join(bench.axes) or "none"


def _runtime(
    point: MatchedPoint, times: SeparateTimes, weight: float, judge: Judge
) -> RuntimePerformance:
    before, after = times.middles
    return RuntimePerformance(
        subbench=point.subbench,
        point=dict(point.axes),
        weight=weight,
        before_seconds=before,
        after_seconds=after,
        **_judged(judge, times),
        processes=min(len(times.before), len(times.after)),
    )


def _judged(judge: Judge, times: SeparateTimes) -> dict[str, Any]:
    """Returns the verdict with its interval; undecided if the noise cannot be estimated."""
    judgment = judge.judge(times)
    fields = {"verdict": "undecided"} if judgment is None else judgment.fields
    return fields | {"ratio": times.ratio}
