"""Documents about imported results: of one kernel, or of a library's benchmarks."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from policygen.model.databases import (
    DbImport,
    ImportedFailure,
    ImportedFile,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
)
from policygen.model.workload import BASE
from policygen.results.tuners.documents import TunedFile
from policygen.results.tuners.points import TunedKernel
from policygen.results.tuners.suites import LeftOut, RefusedRun, TunedSuite

REASONS = 40
"""Maximum number of reasons to list for failed configurations or omitted workloads."""
NAMED = 3
"""Configurations to name for each reason."""


def import_document(
    suite: TunedSuite, tuned: Sequence[TunedFile], out: Path, arch: str, ctk: str, cccl: str
) -> DbImport:
    """Builds the document; `algorithm` and `base` are the first kernel's, and counts are sums."""
    kernels, first = suite.kernels, suite.kernels[0]
    workloads = tuple(map(_workload, kernels))
    failures = list(_failures(suite.refused))
    measured = [point for kernel in kernels for point in kernel.points if point.failure is None]
    spaces = {kernel.algorithm: kernel.space for kernel in kernels}
    return DbImport(
        out=str(out),
        algorithm=first.algorithm,
        workload=dict(first.workload),
        gpu=first.gpu,
        arch=arch,
        ctk=ctk,
        cccl=cccl,
        base=first.base,
        base_values=workloads[0].base_values,
        sizes=tuple(dict.fromkeys(size for kernel in kernels for size in kernel.sizes.values())),
        variants=sum(workload.variants for workload in workloads),
        rows=len(measured),
        without_samples=sum(workload.without_samples for workload in workloads),
        joined=sum(point.repeats - 1 for point in measured),
        warmup=first.warmup,
        copies=sum(kernel.copies for kernel in kernels),
        parameters=tuple(
            ImportedParameter(
                name=parameter.name,
                algorithm=algorithm,
                numbered=not parameter.plain,
                values=dict(parameter.texts),
            )
            for algorithm, space in spaces.items()
            for parameter in space.parameters
        ),
        files=tuple(_files(suite, tuned)),
        failures=tuple(failures[:REASONS]),
        other_failures=len(failures[REASONS:]),
        library=tuned[0].library,
        workloads=workloads,
        left_out=tuple(_left_out(suite.left_out)),
    )


def _files(suite: TunedSuite, tuned: Sequence[TunedFile]) -> Iterator[ImportedFile]:
    """Yields each file once; it may be of several kernels."""
    by_path: dict[Path, list[TunedFile]] = {}
    for file in tuned:
        by_path.setdefault(file.path, []).append(file)
    sizes = {
        file.path: kernel.sizes[index]
        for kernel in suite.kernels
        for index, file in enumerate(kernel.files)
    }
    for path, parts in by_path.items():
        file = parts[0]
        yield ImportedFile(
            path=str(path),
            sha256=file.sha256,
            program=file.program,
            kernel=file.kernel if len({part.kernel for part in parts}) == 1 else None,
            device=file.device,
            size=sizes.get(path) or file.size or "",
            configurations=sum(len(part.entries) for part in parts),
            notes=file.notes,
        )


def _workload(kernel: TunedKernel) -> ImportedWorkload:
    measured = [point for point in kernel.points if point.failure is None]
    relative_deviations = [
        point.deviation / point.center for point in measured if point.deviation is not None
    ]
    return ImportedWorkload(
        algorithm=kernel.algorithm,
        workload=dict(kernel.workload),
        base=kernel.base,
        base_from=kernel.base_from,
        base_values={} if kernel.base == BASE else kernel.space.spelled(kernel.base),
        sizes=tuple(dict.fromkeys(kernel.sizes.values())),
        variants=len({point.label for point in measured} - {BASE}),
        rows=len(measured),
        without_samples=sum(point.samples is None for point in measured),
        deviation=max(relative_deviations, default=None),
    )


def _failures(refused: Iterable[RefusedRun]) -> Iterator[ImportedFailure]:
    """Groups failures by reason, most frequent first."""
    runs_by_reason: dict[tuple[str, str], list[RefusedRun]] = {}
    for run in refused:
        runs_by_reason.setdefault((run.failure.kind, run.failure.reason), []).append(run)
    for kind, reason in sorted(runs_by_reason, key=lambda key: (-len(runs_by_reason[key]), key)):
        runs = runs_by_reason[kind, reason]
        yield ImportedFailure(
            kind=kind,
            reason=reason,
            count=len(runs),
            variants=tuple(dict.fromkeys(run.label for run in runs))[:NAMED],
            places=tuple(dict.fromkeys(run.place for run in runs if run.place))[:NAMED],
        )


def _left_out(omitted: Iterable[LeftOut]) -> Iterator[ImportedLeftOut]:
    """Groups omitted points by algorithm and reason, sorted by both."""
    groups: dict[tuple[str, str], list[LeftOut]] = {}
    for entry in omitted:
        groups.setdefault((entry.algorithm, entry.reason), []).append(entry)
    for (algorithm, reason), group in sorted(groups.items(), key=lambda item: item[0]):
        first = group[0]
        yield ImportedLeftOut(
            algorithm=algorithm,
            reason=reason,
            count=len(group),
            workload=dict(first.workload),
            size=first.size,
        )
