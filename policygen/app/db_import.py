"""Results of other tuners as a database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import parse_target
from policygen.bindings.archs import gpu_arch
from policygen.errors import InputError
from policygen.model.db_import import DbImport, ImportedFailure, ImportedFile, ImportedParameter
from policygen.model.labels import BASE
from policygen.results.load import expand
from policygen.results.tuners.formats import read_tuned
from policygen.results.tuners.gathered import TunedFacts, TunedKernel, gather
from policygen.results.tuners.writing_kernel import write_kernel
from policygen.untrusted import is_visible, visible

REASONS = 40
"""Reasons why configurations failed that are told."""
NAMED = 3
"""Configurations that are named for each."""
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
    warmup: int = 1
    """As many first launches of each configuration warm up, and do not count."""


def import_results(
    files: Sequence[str], out: Path, named: ImportedAs | None = None, *, force: bool = False
) -> DbImport:
    """Writes results of another tuner as a database; what a file is, its content tells."""
    named = named or ImportedAs()
    paths = expand(files)
    if out.resolve() in {path.resolve() for path in paths}:
        raise InputError(f"{out}: is one of the inputs", "Name another file.")
    for option, text, such in (("--ctk", named.ctk, "13.0"), ("--cccl", named.cccl, "v3.0.1")):
        if len(text) > LETTERS or not all(map(is_visible, text)):
            raise InputError(
                f"{option} {visible(text[:LETTERS])!r} is no version", f"Such as: {such}"
            )
    given = (named.name, named.base, named.gpu, named.size, named.types, named.warmup)
    facts = TunedFacts(*given)
    kernel = gather(read_tuned(paths), facts)
    arch = _arch(kernel, named)
    write_kernel(kernel, out, arch=arch, ctk=named.ctk, cccl=named.cccl, force=force)
    return _told(kernel, out, arch, named)


def _arch(kernel: TunedKernel, named: ImportedAs) -> str:
    """As it is said, else as it is known of the GPU."""
    if named.archs:
        return parse_target(named.archs)
    if found := gpu_arch(kernel.gpu):
        return found
    raise InputError(
        f"policygen does not know of which architecture {kernel.gpu} is", "Say it: --arch sm90"
    )


def _told(kernel: TunedKernel, out: Path, arch: str, named: ImportedAs) -> DbImport:
    measured = [one for one in kernel.points if one.failure is None]
    failures = list(_failures(kernel))
    return DbImport(
        out=str(out),
        algorithm=kernel.algorithm,
        gpu=kernel.gpu,
        arch=arch,
        ctk=named.ctk,
        cccl=named.cccl,
        workload=dict(kernel.workload),
        base=kernel.base,
        base_values=kernel.space.spelled(kernel.base),
        sizes=tuple(dict.fromkeys(kernel.sizes.values())),
        variants=len({one.label for one in measured} - {BASE}),
        rows=len(measured),
        without_samples=sum(one.samples is None for one in measured),
        joined=sum(one.repeats - 1 for one in measured),
        warmup=kernel.warmup,
        copies=kernel.copies,
        parameters=tuple(
            ImportedParameter(name=one.name, numbered=not one.plain, values=dict(one.texts))
            for one in kernel.space.parameters
        ),
        files=tuple(
            ImportedFile(
                path=str(one.path),
                sha256=one.sha256,
                program=one.program,
                kernel=one.kernel,
                device=one.device,
                size=kernel.sizes[place],
                configurations=len(one.entries),
                notes=one.notes,
            )
            for place, one in enumerate(kernel.files)
        ),
        failures=tuple(failures[:REASONS]),
        other_failures=len(failures[REASONS:]),
    )


def _failures(kernel: TunedKernel) -> Iterator[ImportedFailure]:
    """The most frequent reasons first."""
    lots: dict[tuple[str, str], list[str]] = {}
    for one in kernel.points:
        if one.failure is not None:
            lots.setdefault((one.failure.kind, one.failure.reason), []).append(one.label)
    for kind, reason in sorted(lots, key=lambda lot: (-len(lots[lot]), lot)):
        labels = lots[kind, reason]
        names = tuple(dict.fromkeys(labels))[:NAMED]
        yield ImportedFailure(kind=kind, reason=reason, count=len(labels), variants=names)
