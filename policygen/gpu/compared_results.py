"""Compares NVBench results of both sides of a change, without a GPU."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, listed
from policygen.gpu.changes import noise_of, whole_verdict
from policygen.gpu.judgments import LEAST, SURE, Judge, SeparateTimes, score_times
from policygen.model.measured import SkippedPoint
from policygen.model.verdicts import RuntimePerformance, VerifyPerformance, WorkloadPerformance
from policygen.model.workload import Point, axes, axis_name, in_words, plain
from policygen.results.cases import runtime_weights
from policygen.results.database import LONGEST, SHORTEST
from policygen.results.nvbench import NvbenchBench, NvbenchRun, NvbenchState
from policygen.results.samples import Samples

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
        return "; ".join(
            f"{side}: {self.skipped.get(side, 'there is no result')}"
            for side in SIDES
            if not self.times[side]
        )


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
        skipped = tuple(
            SkippedPoint(point=dict(point.axes), reason=point.lacking)
            for point in self.points
            if not self.problem and point.skips
        )
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
        for bench, state in _states(run):
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
                workload = MatchedWorkload(
                    (run.algorithm, tuple((axis_name(axis), types[axis]) for axis in types)),
                    problem=problems.get(run.algorithm),
                )
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


def _states(run: NvbenchRun) -> Iterator[tuple[NvbenchBench, NvbenchState | SkippedPoint]]:
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
