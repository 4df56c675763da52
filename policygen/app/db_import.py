"""Results of other tuners as a database."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from policygen.app.filters import EVERYTHING, parse_target
from policygen.app.resolve import resolve_workloads
from policygen.app.session import open_session
from policygen.bindings.load import bindings, library_types
from policygen.bindings.words import gpu_arch
from policygen.errors import InputError, PolicygenError, listed, together
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.databases import (
    DbImport,
    ImportedFailure,
    ImportedFile,
    ImportedLeftOut,
    ImportedParameter,
    ImportedWorkload,
)
from policygen.model.trees import Cub
from policygen.model.tuning import spell
from policygen.model.workload import BASE, Point, point_of
from policygen.opening import read_document
from policygen.results.database import expand
from policygen.results.tuners import kernel_tuner, t4
from policygen.results.tuners.documents import TunedFile, TunerFormat
from policygen.results.tuners.kernels import TunedFacts, gather, write_kernels
from policygen.results.tuners.points import NumberedSpace, TunedKernel
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
from policygen.rocprim import google_benchmark, primbench, tuner_cache
from policygen.untrusted import is_visible, visible

LETTERS = 60
"""Of the version of a toolkit."""


@dataclass(frozen=True, slots=True)
class ImportedAs:
    """What files do not say, or what is to be said instead; empty where nothing is."""

    name: str = ""
    """What results call the kernel: `own.NAME`; with dots it is what bindings call it."""
    base: str = ""
    """The configuration in use now: `block_size_x=128,tile=2`, or a label."""
    gpu: str = ""
    """The GPU as databases name it."""
    archs: tuple[str, ...] = ()
    """Its architecture, one at most."""
    ctk: str = ""
    """The version of the toolkit."""
    cccl: str = ""
    """The version of CCCL, or of the tree that has the kernel's header."""
    types: tuple[str, ...] = ()
    """Axes of compile time with their values: `T=F32`."""
    size: str = ""
    """The size of the problem."""
    cub: str = ""
    """The tree whose entries are base, of a library that policygen knows."""
    warmup: int = 1
    """As many first launches of each configuration warm up, and do not count."""


def import_results(
    files: Sequence[str],
    out: Path,
    named: ImportedAs | None = None,
    *,
    force: bool = False,
    current: Current = knows_nothing,
) -> DbImport:
    """Writes results of another tuner as a database; what a file is, its content tells.

    `current` says which values a library's entry has now, by benchmark, workload (plain names of
    axes) and architecture: they are base where nothing ran by default.
    """
    named = named or ImportedAs()
    paths = expand(files)
    if out.resolve() in {path.resolve() for path in paths}:
        raise InputError(f"{out}: is one of the inputs", "Name another file.")
    for option, text, such in (("--ctk", named.ctk, "13.0"), ("--cccl", named.cccl, "v3.0.1")):
        if len(text) > LETTERS or not all(map(is_visible, text)):
            raise InputError(
                f"{option} {visible(text[:LETTERS])!r} is no version", f"Such as: {such}"
            )
    tuned = read_tuned(paths)
    if any(one.library for one in tuned):
        return _import_suite(tuned, out, named, force=force, current=current)
    given = (named.name, named.base, named.gpu, named.size, named.types, named.warmup)
    kernel = gather(tuned, TunedFacts(*given))
    arch = _arch(kernel, named)
    write_kernels([kernel], out, arch=arch, ctk=named.ctk, cccl=named.cccl, force=force)
    return told_kernel(kernel, about(out, arch, named.ctk, named.cccl))


def _import_suite(
    tuned: Sequence[TunedFile], out: Path, named: ImportedAs, *, force: bool, current: Current
) -> DbImport:
    """The same of a library's benchmarks, which name themselves."""
    if own := next((one for one in tuned if not one.library), None):
        raise InputError(
            f"{own.path}: is of a kernel of one's own, and other files are of a library",
            "Import each into a database of its own.",
        )
    if named.name or named.types:
        option = "--name" if named.name else "--type"
        raise InputError(f"{option}: files of a library say it themselves", "Leave it out.")
    arch = suite_arch(tuned, parse_target(named.archs) if named.archs else "")
    gpu = suite_gpu(tuned, named.gpu, arch)
    suite_sizes(tuned, named.size)
    release = f"{tuned[0].library}@{named.cccl}"
    if named.cub:
        tree, current = tree_entries(named.cub)
        release = tree.release
    types = library_type_names(tuned[0].library)
    facts = SuiteFacts(gpu, arch, named.size, named.base, current, library_parameters, types)
    suite = gather_suite(tuned, facts)
    write_kernels(suite.kernels, out, arch=arch, ctk=named.ctk, cccl=release, force=force)
    # A version that nobody said is none.
    told = release.rpartition("@")[2] and release
    return told_suite(suite, tuned, about(out, arch, named.ctk, told))


def _arch(kernel: TunedKernel, named: ImportedAs) -> str:
    """As it is said, else as it is known of the GPU."""
    if named.archs:
        return parse_target(named.archs)
    if found := gpu_arch(kernel.gpu):
        return found
    raise InputError(
        f"policygen does not know of which architecture {kernel.gpu} is", "Say it: --arch sm90"
    )


# What a library's bindings and its tree say of results that its own tools wrote.


def library_parameters(benchmark: str) -> LibraryParameters:
    """How parameters of a benchmark are called, and the numbers of their words."""
    found = _bound(benchmark)
    if found is None:
        return LibraryParameters()
    one, (family, *_) = found
    rules = family.members.values()
    words = {r.parameter: r.choices for r in rules if r.parameter and r.choices}
    return LibraryParameters({other: name for name, other in one.called.items()}, words)


def library_type_names(library: str) -> dict[str, str]:
    """What some results of a library call a type → the value of axes that it is."""
    return {other: one.name for one in library_types(library).types for other in one.also}


def tree_entries(cub: str) -> tuple[Cub, Current]:
    """A tree, and the values by parameter that it has for workloads."""
    session = open_session(cub)

    @cache
    def known(arch: str) -> Mapping[Point, Mapping[str, str]]:
        document, _ = resolve_workloads(session, replace(EVERYTHING, archs=(arch,)))
        return {
            row.point: {name: spell(value) for name, value in row.values.items()}
            for row in document.rows
        }

    def current(benchmark: str, workload: Mapping[str, str], arch: str) -> Mapping[str, str] | None:
        found = _bound(benchmark)
        if found is None:
            return None
        one, families = found
        # Which value of an axis that no key depends on is asked for does not matter.
        given = {**{axis: one.axes[axis][0] for axis in one.ignored}, **workload}
        # In the order of the benchmark: files have them in that of the alphabet.
        axes = {axis: given[axis] for axis in one.axes if axis in given}
        entry = known(arch).get(point_of(benchmark, axes))
        if entry is None:
            return None
        rules = max((f.members for f in families), key=lambda one: _fits(entry, one))
        return {r.parameter: entry[m] for m, r in rules.items() if r.parameter and m in entry}

    return session.cub, current


def _fits(entry: Mapping[str, str], members: Mapping[str, object]) -> tuple[bool, int]:
    """How well an entry is of the form that members are of: forms have some names in common."""
    return members.keys() <= entry.keys(), len(members.keys() & entry.keys())


def _bound(benchmark: str) -> tuple[BenchmarkBinding, list[FamilyBinding]] | None:
    """The newest that is bound, and what its parameters mean in each form of its configs."""
    for binding in bindings():
        for one in reversed(binding.benchmarks):
            if one.name == benchmark:
                families = [f for f in reversed(binding.families) if f.site == one.site]
                return (one, families) if families else None
    return None


REASONS = 40
"""Reasons why configurations failed, or workloads are left out, that are told."""
NAMED = 3
"""Configurations that are named for each."""
About = Mapping[str, Any]


# What an import brought in, as a document: of one kernel, or of a library's benchmarks.


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


FORMATS: tuple[TunerFormat, ...] = (
    *(tuner_cache, kernel_tuner, t4),
    *(primbench, google_benchmark),
)
"""rocPRIM's caches are Kernel Tuner's with more in them."""
LARGEST = 128 << 20
"""Bytes of a file; a tuner that repeats its runs writes a kilobyte for each configuration."""
_T1 = (b'"ConfigurationSpace"', b'"KernelSpecification"')


# The formats of other tuners, one row for each; what a file is, its content tells.


def read_tuned(paths: Sequence[Path]) -> tuple[TunedFile, ...]:
    """What all files say, kernel by kernel; what is wrong with any of them is told of all."""
    found: list[TunedFile] = []
    errors: list[PolicygenError] = []
    for path in paths:
        try:
            found += _read(path)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(found)


def _read(path: Path) -> list[TunedFile]:
    try:
        data = read_document(path, LARGEST)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    for form in FORMATS:
        if form.is_it(data):
            sha256 = hashlib.sha256(data).hexdigest()
            return [replace(one, sha256=sha256) for one in form.read(path, data)]
    if all(key in data for key in _T1):
        raise InputError(
            f"{path}: describes a kernel (T1), and holds no results", "Import what its run wrote."
        )
    raise InputError(
        f"{path}: no results of a tuner that policygen can import",
        f"It imports {listed(form.name for form in FORMATS)}; what a file is, its content"
        " tells. Databases and results of NVBench need no import.",
    )
