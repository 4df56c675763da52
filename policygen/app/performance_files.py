"""`policygen verify-performance --before --after`: results of NVBench, compared without a GPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policygen.app.filters import EVERYTHING, Filter
from policygen.app.performance import noise_of, whole_verdict
from policygen.bindings.words import gpu_arch
from policygen.cache import digest
from policygen.errors import InputError, PolicygenError, anchored, listed, together
from policygen.gpu.comparison import (
    LEAST,
    SURE,
    Axes,
    Judge,
    JudgedTimes,
    Keeps,
    MatchedPoint,
    MatchedWorkload,
    SeparateTimes,
    match_results,
    score_times,
)
from policygen.model.measured import SkippedPoint
from policygen.model.verdicts import (
    PerformanceVerdict,
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)
from policygen.model.workload import axes, plain, spelled
from policygen.opening import read_document
from policygen.results.cases import result_weights
from policygen.results.database import expand
from policygen.results.nvbench import NvbenchRun, read_nvbench

ONE_PROCESS = (
    "one process a side does not tell the noise between processes, and that of samples within one"
    " is another: give at least two results a side (--before A1.json --before A2.json …)"
)
NO_NOISE = (
    "processes of a side take the same time to the last digit, which tells no noise: what differs"
    " there is not decided"
)
SEPARATE = (
    "the sides were not measured side by side: what else differs between their runs, such as"
    " clocks and heat, is taken for the change"
)
APPROXIMATE = (
    "weights of runtime workloads are approximate: the results do not hold all values of {io} axes"
)


def compare_performance(
    before: Sequence[str],
    after: Sequence[str],
    where: Filter = EVERYTHING,
    *,
    tolerance: float | None = None,
) -> VerifyPerformance:
    """Compares what NVBench wrote for two sides of a change; each file is a process of its side."""
    sides = _read(before, after)
    every = [*sides[0], *sides[1]]
    arch = _arch(every)
    matched = match_results(*sides, _keeps(where))
    if not matched:
        hint = anchored(where.pattern, [run.algorithm for run in every])
        raise InputError("nothing matches", hint or "The results hold no state that is asked for.")
    judged = [_ComparedResults.of(one) for one in matched]
    verdicts = sum(1 + len(one.points) for one in judged if one.points)
    judge = Judge(max(1, verdicts), tolerance)
    workloads = tuple(one.document(judge, arch) for one in judged)
    return VerifyPerformance(
        before=_named(sides[0]),
        after=_named(sides[1]),
        arch=arch,
        gpu=every[0].gpu,
        tolerance=tolerance,
        confidence=SURE,
        noise=noise_of(workloads),
        remarks=tuple(_remarks(workloads, judged)),
        verdict=whole_verdict(workloads),
        workloads=workloads,
    )


def _read(before: Sequence[str], after: Sequence[str]) -> tuple[list[NvbenchRun], list[NvbenchRun]]:
    """All files of both sides, or what is wrong with any of them."""
    errors: list[PolicygenError] = []
    known: dict[str, Path] = {}
    sides: tuple[list[NvbenchRun], list[NvbenchRun]] = ([], [])
    for names, runs in zip((before, after), sides, strict=True):
        for path in _files(names):
            try:
                run = read_nvbench(path)
                content = digest("result", read_document(path))
                if (first := known.setdefault(content, path)) is not path:
                    raise InputError(
                        f"{path}: is the same result as {first}", "Each result is a process."
                    )
                runs.append(run)
            except PolicygenError as error:
                errors.append(error)
    if errors:
        raise together(errors)
    return sides


def _files(names: Sequence[str]) -> list[Path]:
    """Each as often as it is named, so that one that is named twice is found to be."""
    return [path for name in names for path in expand([name])]


def _arch(runs: Sequence[NvbenchRun]) -> str:
    """The architecture of the one GPU that all results are of."""
    first = runs[0]
    for run in runs:
        for what in ("gpu", "arch"):
            if getattr(run, what) != getattr(first, what):
                raise InputError(
                    f"{run.path}: measured on {run.gpu}, {run.arch or 'of an unknown arch'}, but"
                    f" {first.path} on {first.gpu}, {first.arch or 'of an unknown arch'}",
                    "Times of different GPUs do not tell what a change is worth.",
                )
    arch = first.arch or gpu_arch(first.gpu)
    if arch is None:
        raise InputError(
            f"{first.path}: does not tell the compute capability of {first.gpu}",
            "NVBench writes it as sm_version of a device.",
        )
    return arch


def _keeps(where: Filter) -> Keeps:
    """What `-R` and `-a` leave; an axis is called `T`, or as databases name it."""
    pattern, values = where.pattern, where.values

    def keeps(algorithm: str, point: Axes) -> bool:
        wanted = spelled(values, point)
        return bool(pattern.match(algorithm)) and all(
            point[axis] in chosen for axis, chosen in wanted.items() if axis in point
        )

    return keeps


def _remarks(
    workloads: Sequence[WorkloadPerformance], judged: Sequence["_ComparedResults"]
) -> Iterator[str]:
    """What the user should know of all results."""
    open_ones = [row for one in workloads for row in one.runtime if row.low is None]
    if any(row.processes < LEAST for row in open_ones):
        yield ONE_PROCESS
    if any(row.processes >= LEAST for row in open_ones):
        yield NO_NOISE
    yield SEPARATE
    if any(one.approximate for one in judged):
        yield APPROXIMATE


def _named(runs: Sequence[NvbenchRun]) -> str:
    return listed(str(run.path) for run in runs)


@dataclass(frozen=True, slots=True)
class _ComparedResults:
    """A workload with those of its runtime workloads that both sides have."""

    workload: MatchedWorkload
    points: tuple[tuple[MatchedPoint, SeparateTimes], ...]
    weights: tuple[float, ...]
    approximate: bool

    @classmethod
    def of(cls, workload: MatchedWorkload) -> "_ComparedResults":
        pairs = [(point, point.separate) for point in workload.points]
        both = [(point, times) for point, times in pairs if times is not None]
        if workload.problem or not both:
            return cls(workload, (), (), approximate=False)
        name = workload.point[0]
        weights, approximate = result_weights([(name, p.subbench, p.axes) for p, _ in both])
        return cls(workload, tuple(both), tuple(weights), approximate)

    def document(self, judge: Judge, arch: str) -> WorkloadPerformance:
        """What is told of it; what one side alone has is a problem of the whole."""
        name, types = self.workload.point
        place: dict[str, Any] = {"benchmark": name, "workload": dict(types), "arch": arch}
        problem = self.workload.problem or self._problem()
        place["skipped"] = tuple(
            SkippedPoint(point=dict(one.axes), reason=one.lacking)
            for one in self.workload.points
            if not self.workload.problem and one.skips
        )
        if not self.points:
            return WorkloadPerformance(**place, verdict="undecided", problem=problem)
        times = score_times(self.weights, [times for _, times in self.points])
        told = judge.judge(times)
        verdict = _verdict(told)
        if problem and verdict != "slower":
            verdict = "undecided"
        return WorkloadPerformance(
            **place,
            **_interval(times, told),
            verdict=verdict,
            problem=problem,
            runtime=tuple(
                _runtime(point, own, weight, judge.judge(own))
                for (point, own), weight in zip(self.points, self.weights, strict=True)
            ),
        )

    def _problem(self) -> str | None:
        alone = [one for one in self.workload.points if one.separate is None and not one.skips]
        if not alone:
            return None if self.points else "each of its runtime workloads is skipped"
        first = alone[0]
        named = " ".join(axes(plain(first.axes))) or first.subbench
        more = f", and {len(alone) - 1} more" if len(alone) > 1 else ""
        return f"not on both sides: {named} ({first.lacking}){more}"


def _runtime(
    point: MatchedPoint, times: SeparateTimes, weight: float, told: JudgedTimes | None
) -> RuntimePerformance:
    before, after = times.middles
    return RuntimePerformance(
        subbench=point.subbench,
        point=dict(point.axes),
        weight=weight,
        before_seconds=before,
        after_seconds=after,
        **_interval(times, told),
        verdict=_verdict(told),
        processes=min(len(times.before), len(times.after)),
    )


def _interval(times: SeparateTimes, told: JudgedTimes | None) -> dict[str, Any]:
    found: dict[str, Any] = {"ratio": times.ratio}
    if told is not None:
        found |= {"low": told.low, "high": told.high, "noise": told.noise}
    return found


def _verdict(told: JudgedTimes | None) -> PerformanceVerdict:
    return "undecided" if told is None else told.verdict
