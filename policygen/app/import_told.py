"""What an import brought in, as a document: of one kernel, or of a library's benchmarks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from policygen.model.db_import import (
    DbImport,
    ImportedFailure,
    ImportedFile,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
)
from policygen.model.labels import BASE
from policygen.results.tuners.numbered import NumberedSpace
from policygen.results.tuners.points import TunedKernel
from policygen.results.tuners.suite import LeftOut, RefusedRun, TunedSuite
from policygen.results.tuners.tuned import TunedFile

REASONS = 40
"""Reasons why configurations failed, or workloads are left out, that are told."""
NAMED = 3
"""Configurations that are named for each."""
About = Mapping[str, Any]


def about(out: Path, arch: str, ctk: str, cccl: str) -> About:
    """What holds for all of an import."""
    return {"out": str(out), "arch": arch, "ctk": ctk, "cccl": cccl}


def told_kernel(kernel: TunedKernel, said: About) -> DbImport:
    """An import of one kernel."""
    refused = [
        RefusedRun(one.label, "", one.failure) for one in kernel.points if one.failure is not None
    ]
    files = [_file(one, kernel.sizes[place]) for place, one in enumerate(kernel.files)]
    parameters = _parameters(kernel.space, kernel.algorithm)
    return DbImport(**said, **_joined([kernel], files, parameters, refused))


def told_suite(suite: TunedSuite, tuned: Sequence[TunedFile], said: About) -> DbImport:
    """An import of a library's benchmarks."""
    by_path: dict[Path, list[TunedFile]] = {}
    for one in tuned:
        by_path.setdefault(one.path, []).append(one)
    sizes = {
        one.path: kernel.sizes[place]
        for kernel in suite.kernels
        for place, one in enumerate(kernel.files)
    }
    files = [
        _file(parts[0], sizes.get(path) or parts[0].size or "").model_copy(
            update={
                "kernel": parts[0].kernel if len({one.kernel for one in parts}) == 1 else None,
                "configurations": sum(len(one.entries) for one in parts),
            }
        )
        for path, parts in by_path.items()
    ]
    spaces = {one.algorithm: one.space for one in suite.kernels}
    parameters = [one for name, space in spaces.items() for one in _parameters(space, name)]
    joined = _joined(suite.kernels, files, parameters, suite.refused)
    left_out = tuple(_left_out(suite.left_out))
    return DbImport(**said, **joined, library=tuned[0].library, left_out=left_out)


def _joined(
    kernels: Sequence[TunedKernel],
    files: Sequence[ImportedFile],
    parameters: Sequence[ImportedParameter],
    refused: Sequence[RefusedRun],
) -> dict[str, Any]:
    """What is told of one kernel, summed up where there are several."""
    first = kernels[0]
    workloads = tuple(map(_workload, kernels))
    failures = list(_failures(refused))
    measured = [one for kernel in kernels for one in kernel.points if one.failure is None]
    return {
        "algorithm": first.algorithm,
        "gpu": first.gpu,
        "workload": dict(first.workload),
        "base": first.base,
        "base_values": workloads[0].base_values,
        "sizes": tuple(dict.fromkeys(size for one in kernels for size in one.sizes.values())),
        "variants": sum(one.variants for one in workloads),
        "rows": len(measured),
        "without_samples": sum(one.without_samples for one in workloads),
        "joined": sum(one.repeats - 1 for one in measured),
        "warmup": first.warmup,
        "copies": sum(one.copies for one in kernels),
        "parameters": tuple(parameters),
        "files": tuple(files),
        "failures": tuple(failures[:REASONS]),
        "other_failures": len(failures[REASONS:]),
        "workloads": workloads,
    }


def _workload(kernel: TunedKernel) -> ImportedWorkload:
    measured = [one for one in kernel.points if one.failure is None]
    apart = [one.deviation / one.center for one in measured if one.deviation is not None]
    return ImportedWorkload(
        algorithm=kernel.algorithm,
        workload=dict(kernel.workload),
        base=kernel.base,
        base_from=kernel.base_from,
        base_values={} if kernel.base == BASE else kernel.space.spelled(kernel.base),
        sizes=tuple(dict.fromkeys(kernel.sizes.values())),
        variants=len({one.label for one in measured} - {BASE}),
        rows=len(measured),
        without_samples=sum(one.samples is None for one in measured),
        deviation=max(apart, default=None),
    )


def _parameters(space: NumberedSpace, algorithm: str) -> list[ImportedParameter]:
    return [
        ImportedParameter(
            name=one.name, algorithm=algorithm, numbered=not one.plain, values=dict(one.texts)
        )
        for one in space.parameters
    ]


def _file(one: TunedFile, size: str) -> ImportedFile:
    return ImportedFile(
        path=str(one.path),
        sha256=one.sha256,
        program=one.program,
        kernel=one.kernel,
        device=one.device,
        size=size,
        configurations=len(one.entries),
        notes=one.notes,
    )


def _failures(refused: Iterable[RefusedRun]) -> Iterator[ImportedFailure]:
    """The most frequent reasons first."""
    lots: dict[tuple[str, str], list[RefusedRun]] = {}
    for one in refused:
        lots.setdefault((one.failure.kind, one.failure.reason), []).append(one)
    for kind, reason in sorted(lots, key=lambda lot: (-len(lots[lot]), lot)):
        lot = lots[kind, reason]
        yield ImportedFailure(
            kind=kind,
            reason=reason,
            count=len(lot),
            variants=tuple(dict.fromkeys(one.label for one in lot))[:NAMED],
            places=tuple(dict.fromkeys(one.place for one in lot if one.place))[:NAMED],
        )


def _left_out(found: Iterable[LeftOut]) -> Iterator[ImportedLeftOut]:
    """By algorithm and reason, in the order of both."""
    lots: dict[tuple[str, str], list[LeftOut]] = {}
    for one in found:
        lots.setdefault((one.algorithm, one.reason), []).append(one)
    for (algorithm, reason), lot in sorted(lots.items(), key=lambda item: item[0]):
        first = lot[0]
        yield ImportedLeftOut(
            algorithm=algorithm,
            reason=reason,
            count=len(lot),
            workload=dict(first.workload),
            size=first.size,
        )
