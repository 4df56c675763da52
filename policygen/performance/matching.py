"""Results of both sides, matched by benchmark, sub-benchmark and the values of axes."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policygen.errors import InputError
from policygen.model.workload import Point, axis_name, in_words
from policygen.performance.separate import SeparateTimes
from policygen.results.load import LONGEST, SHORTEST
from policygen.results.nvbench import NvbenchBench, NvbenchRun, NvbenchState, SkippedState
from policygen.results.samples import Samples

SIDES = ("before", "after")
NO_TIME = "NVBench tells no time"
Axes = Mapping[str, str]
"""With their values; as databases name them."""
Keeps = Callable[[str, Axes], bool]
"""Whether a runtime workload is meant, by its benchmark and all its axes."""


@dataclass(slots=True)
class MatchedPoint:
    """A runtime workload: what each process took, by side, and why others did not."""

    subbench: str
    axes: Axes
    times: Mapping[str, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    skipped: dict[str, str] = field(default_factory=dict)
    """By side."""
    step: float = 0.0

    @property
    def separate(self) -> SeparateTimes | None:
        """Nothing where a side has not measured it."""
        before, after = (self.times[side] for side in SIDES)
        return SeparateTimes(before, after, self.step) if before and after else None

    @property
    def skips(self) -> bool:
        """Whether NVBench skips it, and neither side has measured it."""
        told = self.skipped.values()
        return bool(told) and NO_TIME not in told and not any(self.times.values())

    @property
    def lacking(self) -> str:
        """Which side has not measured it, and why."""
        return "; ".join(
            f"{side}: {self.skipped.get(side, 'there is no result')}"
            for side in SIDES
            if not self.times[side]
        )


@dataclass(slots=True)
class MatchedWorkload:
    """A workload, and what either side has of it."""

    point: Point
    points: list[MatchedPoint] = field(default_factory=list)
    problem: str | None = None
    """Why its runtime workloads cannot be matched."""


def match_results(
    before: Sequence[NvbenchRun], after: Sequence[NvbenchRun], keeps: Keeps
) -> list[MatchedWorkload]:
    """The workloads of both sides, in the order in which they are first named."""
    different = _different_axes((*before, *after))
    workloads: dict[tuple[str, frozenset[tuple[str, str]]], MatchedWorkload] = {}
    points: dict[tuple[str, str, frozenset[tuple[str, str]]], MatchedPoint] = {}
    for side, run in [*((SIDES[0], run) for run in before), *((SIDES[1], run) for run in after)]:
        seen = set()
        for bench, state in _states(run):
            if not keeps(run.algorithm, state.point):
                continue
            key = (run.algorithm, bench.name, frozenset(state.point.items()))
            if key in seen:
                told = in_words(bench.name, state.point)
                raise InputError(f"{run.path}: {told}: is there twice")
            seen.add(key)
            if key not in points:
                types, rest = _parts(bench, state.point)
                points[key] = MatchedPoint(bench.name, rest)
                workload = MatchedWorkload(
                    (run.algorithm, tuple((axis_name(axis), types[axis]) for axis in types)),
                    problem=different.get(run.algorithm),
                )
                place = (run.algorithm, frozenset(types.items()))
                workloads.setdefault(place, workload).points.append(points[key])
            _add(points[key], side, state)
    return list(workloads.values())


def step_of(samples: Samples | None) -> float:
    """The step of the clock around the median, as a share of what is a step less than it.

    0 where none can be seen. Two medians that are a step apart may be those of equal code.
    """
    if samples is None or not samples.size:
        return 0.0
    center = float(np.median(samples.astype(np.float64)))
    below, above = samples[samples < center], samples[samples > center]
    low = float(below.max()) if below.size else center
    high = float(above.min()) if above.size else center
    step = (high - low) / 2
    return step / (center - step) if step < center else 1.0


def _states(run: NvbenchRun) -> Iterator[tuple[NvbenchBench, NvbenchState | SkippedState]]:
    for bench in run.benches:
        yield from ((bench, state) for state in bench.states)
        yield from ((bench, state) for state in bench.skipped)


def _parts(bench: NvbenchBench, point: Axes) -> tuple[dict[str, str], dict[str, str]]:
    """What tells a workload, and what tells its runtime workloads: as databases part them."""
    types = {axis: point[axis] for axis in bench.axes if "{ct}" in axis}
    return types, {axis: point[axis] for axis in bench.axes if "{ct}" not in axis}


def _add(point: MatchedPoint, side: str, state: NvbenchState | SkippedState) -> None:
    if isinstance(state, SkippedState):
        point.skipped[side] = state.reason
    elif not (math.isfinite(state.center) and SHORTEST <= state.center <= LONGEST):
        point.skipped[side] = NO_TIME
    else:
        point.times[side].append(state.center)
        point.step = max(point.step, step_of(state.samples))


def _different_axes(runs: Sequence[NvbenchRun]) -> dict[str, str]:
    """Benchmarks whose results have different axes, and which."""
    first: dict[tuple[str, str], tuple[NvbenchRun, NvbenchBench]] = {}
    found: dict[str, str] = {}
    for run in runs:
        for bench in run.benches:
            one, known = first.setdefault((run.algorithm, bench.name), (run, bench))
            if set(known.axes) != set(bench.axes):
                found.setdefault(
                    run.algorithm,
                    f"{bench.name} has the axes {_named(known)} in {one.path}, and"
                    f" {_named(bench)} in {run.path}",
                )
    return found


def _named(bench: NvbenchBench) -> str:
    return ", ".join(bench.axes) or "none"
