"""Imports results of other tuners as a database."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from policygen.app.filters import EVERYTHING, parse_target
from policygen.app.resolve import resolve_workloads
from policygen.app.session import open_session
from policygen.bindings.load import bindings, library_types
from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, listed, reported_together
from policygen.libraries import parts
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.databases import (
    DbImport,
    ImportedFailure,
    ImportedFile,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
)
from policygen.model.records import grouped
from policygen.model.trees import Cub
from policygen.model.tuning import spell
from policygen.model.workload import BASE, Point, point_of
from policygen.opening import read_document
from policygen.results.database import check_not_input, expand
from policygen.results.tuners.formats import FORMATS, TunedFile, TunerFormat
from policygen.results.tuners.kernels import ImportedAs, gather, write_kernels
from policygen.results.tuners.points import TunedKernel
from policygen.results.tuners.suites import (
    Current,
    LeftOut,
    LibraryParameters,
    RefusedRun,
    SuiteFacts,
    TunedSuite,
    gather_suite,
    knows_nothing,
    suite_arch,
    suite_gpu,
    suite_sizes,
)
from policygen.untrusted import is_visible, visible

__all__ = ["ImportedAs", "import_results"]
LETTERS = 60
"""Maximum length of a toolkit or CCCL version."""


def import_results(
    files: Sequence[str],
    out: Path,
    overrides: ImportedAs | None = None,
    *,
    force: bool = False,
    current: Current = knows_nothing,
) -> DbImport:
    """Writes results of another tuner as a database. The format is detected from the content.

    `current` returns the values that the library's entry has now, given a benchmark, a workload
    (plain axis names), and an architecture. They are the baseline if no run used the default.
    """
    overrides = overrides or ImportedAs()
    paths = expand(files)
    check_not_input(out, paths)
    for option, text, example in (
        ("--ctk", overrides.ctk, "13.0"),
        ("--cccl", overrides.cccl, "v3.0.1"),
    ):
        if len(text) > LETTERS or not all(map(is_visible, text)):
            raise InputError(
                f"{option} {visible(text[:LETTERS])!r} is not a version", f"For example: {example}"
            )
    tuned = read_tuned(paths)
    if any(file.library for file in tuned):
        return _import_suite(tuned, out, overrides, force=force, current=current)
    ctk, cccl = overrides.ctk, overrides.cccl
    kernel = gather(tuned, overrides)
    arch = _arch(kernel, overrides)
    write_kernels([kernel], out, arch=arch, ctk=ctk, cccl=cccl, force=force)
    return _document(TunedSuite.of(kernel), tuned, out, arch, ctk, cccl)


def _import_suite(
    tuned: Sequence[TunedFile], out: Path, overrides: ImportedAs, *, force: bool, current: Current
) -> DbImport:
    """Imports results of a library's benchmarks, which name themselves."""
    if kernel_file := next((file for file in tuned if not file.library), None):
        raise InputError(
            f"{kernel_file.path}: is for your own kernel, but other files are for a library",
            "Import each into its own database.",
        )
    if overrides.name or overrides.types:
        option = "--name" if overrides.name else "--type"
        raise InputError(f"{option}: files of a library already state it", "Omit it.")
    arch = suite_arch(tuned, parse_target(overrides.archs) if overrides.archs else "")
    gpu = suite_gpu(tuned, overrides.gpu, arch)
    suite_sizes(tuned, overrides.size)
    release = f"{tuned[0].library}@{overrides.cccl}"
    if overrides.cub:
        tree, current = tree_entries(overrides.cub)
        release = tree.release
    types = library_type_names(tuned[0].library)
    facts = SuiteFacts(
        gpu, arch, overrides.size, overrides.base, current, library_parameters, types
    )
    suite = gather_suite(tuned, facts)
    write_kernels(suite.kernels, out, arch=arch, ctk=overrides.ctk, cccl=release, force=force)
    # A release without a version counts as unknown.
    known_release = release.rpartition("@")[2] and release
    return _document(suite, tuned, out, arch, overrides.ctk, known_release)


def _arch(kernel: TunedKernel, overrides: ImportedAs) -> str:
    """Returns the given architecture, or else the known architecture of the GPU."""
    if overrides.archs:
        return parse_target(overrides.archs)
    if arch := gpu_arch(kernel.gpu):
        return arch
    raise InputError(f"the architecture of {kernel.gpu} is unknown", "Name it: --arch sm90")


# Bindings and tree entries for results that a library's own tools wrote.


def library_parameters(benchmark: str) -> LibraryParameters:
    """Returns a benchmark's parameter names and the numbers of their words."""
    bound = _find_binding(benchmark)
    if bound is None:
        return LibraryParameters()
    binding, (family, *_) = bound
    rules = family.members.values()
    words = {r.parameter: r.choices for r in rules if r.parameter and r.choices}
    return LibraryParameters({other: name for name, other in binding.called.items()}, words)


def library_type_names(library: str) -> dict[str, str]:
    """Maps alternative type names in a library's results to values of axes."""
    return {
        alias: library_type.name
        for library_type in library_types(library).types
        for alias in library_type.also
    }


def tree_entries(cub: str) -> tuple[Cub, Current]:
    """Opens a tree; also returns a function that looks up a workload's values by parameter."""
    session = open_session(cub)

    @cache
    def entries_for(arch: str) -> Mapping[Point, Mapping[str, str]]:
        document, _ = resolve_workloads(session, replace(EVERYTHING, archs=(arch,)))
        return {
            row.point: {name: spell(value) for name, value in row.values.items()}
            for row in document.rows
        }

    def current(benchmark: str, workload: Mapping[str, str], arch: str) -> Mapping[str, str] | None:
        bound = _find_binding(benchmark)
        if bound is None:
            return None
        binding, families = bound
        # The value given to an axis that no key depends on does not matter.
        workload_values = {**{axis: binding.axes[axis][0] for axis in binding.ignored}, **workload}
        # In the order of the benchmark, because files sort axes alphabetically.
        axes = {axis: workload_values[axis] for axis in binding.axes if axis in workload_values}
        entry = entries_for(arch).get(point_of(benchmark, axes))
        if entry is None:
            return None
        # Forms may share some names of members.
        rules = max(
            (family.members for family in families),
            key=lambda m: (m.keys() <= entry.keys(), len(m.keys() & entry.keys())),
        )
        return {r.parameter: entry[m] for m, r in rules.items() if r.parameter and m in entry}

    return session.cub, current


def _find_binding(benchmark: str) -> tuple[BenchmarkBinding, list[FamilyBinding]] | None:
    """Finds the newest binding of a benchmark, with the families that explain its parameters."""
    for binding in bindings():
        for candidate in reversed(binding.benchmarks):
            if candidate.name == benchmark:
                families = [f for f in reversed(binding.families) if f.site == candidate.site]
                return (candidate, families) if families else None
    return None


LARGEST = 128 << 20
"""Maximum file size in bytes. A tuner that repeats runs writes about a kilobyte per configuration.
"""
_T1_KEYS = (b'"ConfigurationSpace"', b'"KernelSpecification"')


# Detection and reading of the formats of other tuners.


def _formats() -> tuple[TunerFormat, ...]:
    """Returns all formats, in the order in which they are tried."""
    of_libraries = list(parts(TunerFormat))
    return (
        *(form for form in of_libraries if form.extends),
        *FORMATS,
        *(form for form in of_libraries if not form.extends),
    )


def read_tuned(paths: Sequence[Path]) -> tuple[TunedFile, ...]:
    """Reads all files, kernel by kernel, and reports the errors of all files together."""
    tuned: list[TunedFile] = []
    with reported_together() as part:
        for path in paths:
            with part():
                tuned += _read(path)
    return tuple(tuned)


def _read(path: Path) -> list[TunedFile]:
    data = read_document(path, LARGEST)
    for form in _formats():
        if form.is_it(data):
            sha256 = hashlib.sha256(data).hexdigest()
            return [replace(file, sha256=sha256) for file in form.read(path, data)]
    if all(key in data for key in _T1_KEYS):
        raise InputError(
            f"{path}: describes a kernel (T1) and contains no results",
            "Import the file that its tuning run wrote.",
        )
    raise InputError(
        f"{path}: not results of a tuner that policygen can import",
        f"It imports {listed(form.name for form in _formats())}. Databases and NVBench results"
        " need no import.",
    )


REASONS = 40
"""Maximum number of reasons to list for failed configurations or omitted workloads."""
NAMED = 3
"""Configurations to name for each reason."""


# The document: of one kernel, or of a library's benchmarks.


def _document(
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
    sizes = {
        file.path: kernel.sizes[index]
        for kernel in suite.kernels
        for index, file in enumerate(kernel.files)
    }
    for path, kernel_files in grouped(tuned, lambda file: file.path).items():
        file = kernel_files[0]
        yield ImportedFile(
            path=str(path),
            sha256=file.sha256,
            program=file.program,
            kernel=file.kernel if len({part.kernel for part in kernel_files}) == 1 else None,
            device=file.device,
            size=sizes.get(path) or file.size or "",
            configurations=sum(len(part.entries) for part in kernel_files),
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
    groups = grouped(refused, lambda run: (run.failure.kind, run.failure.reason))
    for (kind, reason), runs in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        yield ImportedFailure(
            kind=kind,
            reason=reason,
            count=len(runs),
            variants=tuple(dict.fromkeys(run.label for run in runs))[:NAMED],
            places=tuple(dict.fromkeys(run.place for run in runs if run.place))[:NAMED],
        )


def _left_out(omitted: Iterable[LeftOut]) -> Iterator[ImportedLeftOut]:
    """Groups omitted points by algorithm and reason, sorted by both."""
    groups = grouped(omitted, lambda entry: (entry.algorithm, entry.reason))
    for (algorithm, reason), group in sorted(groups.items(), key=lambda item: item[0]):
        first = group[0]
        yield ImportedLeftOut(
            algorithm=algorithm,
            reason=reason,
            count=len(group),
            workload=dict(first.workload),
            size=first.size,
        )
