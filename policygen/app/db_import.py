"""Results of other tuners as a database."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import parse_target
from policygen.app.import_library import library_parameters, library_type_names, tree_entries
from policygen.app.import_told import about, told_kernel, told_suite
from policygen.bindings.archs import gpu_arch
from policygen.errors import InputError
from policygen.model.db_import import DbImport
from policygen.results.load import expand
from policygen.results.tuners.formats import read_tuned
from policygen.results.tuners.gathered import TunedFacts, gather
from policygen.results.tuners.points import TunedKernel
from policygen.results.tuners.suite import SuiteFacts, gather_suite
from policygen.results.tuners.suite_base import Current, knows_nothing
from policygen.results.tuners.suite_place import suite_arch, suite_gpu, suite_sizes
from policygen.results.tuners.tuned import TunedFile
from policygen.results.tuners.writing_kernel import write_kernels
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
