"""Compares NVBench results of both sides of a change, without a GPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, listed
from policygen.gpu.changes import noise_of, whole_verdict
from policygen.gpu.judgments import (
    LEAST,
    SURE,
    Judge,
    Keeps,
    MatchedPoint,
    MatchedWorkload,
    SeparateTimes,
    match_results,
    score_times,
)
from policygen.model.measured import SkippedPoint
from policygen.model.verdicts import (
    RuntimePerformance,
    VerifyPerformance,
    WorkloadPerformance,
)
from policygen.model.workload import axes, plain
from policygen.results.cases import runtime_weights
from policygen.results.nvbench import NvbenchRun

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
    compared = [_ComparedResults.of(workload) for workload in matched]
    verdicts = sum(1 + len(workload.points) for workload in compared if workload.points)
    judge = Judge(max(1, verdicts), tolerance)
    workloads = tuple(workload.document(judge, arch) for workload in compared)
    return VerifyPerformance(
        before=_file_list(before),
        after=_file_list(after),
        arch=arch,
        gpu=all_runs[0].gpu,
        tolerance=tolerance,
        confidence=SURE,
        noise=noise_of(workloads),
        remarks=tuple(_remarks(workloads, compared)),
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
    workloads: Sequence[WorkloadPerformance], compared: Sequence["_ComparedResults"]
) -> Iterator[str]:
    """Yields remarks about the results as a whole."""
    undecided = [row for workload in workloads for row in workload.runtime if row.low is None]
    if any(row.processes < LEAST for row in undecided):
        yield ONE_PROCESS
    if any(row.processes >= LEAST for row in undecided):
        yield NO_NOISE
    yield SEPARATE
    if any(result.approximate for result in compared):
        yield APPROXIMATE


def _file_list(runs: Sequence[NvbenchRun]) -> str:
    return listed(str(run.path) for run in runs)


@dataclass(frozen=True, slots=True)
class _ComparedResults:
    """A workload with the runtime workloads that both sides have."""

    workload: MatchedWorkload
    points: tuple[tuple[MatchedPoint, SeparateTimes], ...]
    weights: tuple[float, ...]
    approximate: bool

    @classmethod
    def of(cls, workload: MatchedWorkload) -> "_ComparedResults":
        pairs = [(point, point.separate) for point in workload.points]
        shared = [(point, times) for point, times in pairs if times is not None]
        if workload.problem or not shared:
            return cls(workload, (), (), approximate=False)
        name = workload.point[0]
        weights, approximate = runtime_weights([(name, p.subbench, p.axes) for p, _ in shared])
        return cls(workload, tuple(shared), tuple(weights.tolist()), approximate)

    def document(self, judge: Judge, arch: str) -> WorkloadPerformance:
        """Builds the document.

        A runtime workload on one side only is a problem of the whole workload.
        """
        name, types = self.workload.point
        fields: dict[str, Any] = {"benchmark": name, "workload": dict(types), "arch": arch}
        problem = self.workload.problem or self._problem()
        fields["skipped"] = tuple(
            SkippedPoint(point=dict(point.axes), reason=point.lacking)
            for point in self.workload.points
            if not self.workload.problem and point.skips
        )
        if not self.points:
            return WorkloadPerformance(**fields, verdict="undecided", problem=problem)
        fields |= _judged(judge, score_times(self.weights, [times for _, times in self.points]))
        if problem and fields["verdict"] != "slower":
            fields["verdict"] = "undecided"
        return WorkloadPerformance(
            **fields,
            problem=problem,
            runtime=tuple(
                _runtime(matched, point_times, weight, judge)
                for (matched, point_times), weight in zip(self.points, self.weights, strict=True)
            ),
        )

    def _problem(self) -> str | None:
        unmatched = [
            point for point in self.workload.points if point.separate is None and not point.skips
        ]
        if not unmatched:
            return None if self.points else "each of its runtime workloads is skipped"
        first = unmatched[0]
        description = " ".join(axes(plain(first.axes))) or first.subbench
        suffix = f", and {len(unmatched) - 1} more" if len(unmatched) > 1 else ""
        return f"not on both sides: {description} ({first.lacking}){suffix}"


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
