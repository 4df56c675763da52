"""Reports which tools, trees, and folders are present, and how to fix what is missing."""

import os
import platform
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

from policygen import __version__, settings, trees
from policygen.app.session import STORE, readable_store
from policygen.errors import MissingToolError, PolicygenError, ProcessError, plural
from policygen.gpu.measuring_checks import measuring_checks
from policygen.installation import Requirement, add, clone, of_release, requirements
from policygen.libraries import parts
from policygen.model.machine import (
    Check,
    CheckState,
    Doctor,
    failed_check,
    first_error_line,
    passed_check,
)
from policygen.model.trees import CALLED, tree_line
from policygen.paths import cache_folder
from policygen.portable import nearby
from policygen.process import run, which
from policygen.proof.kernel_build import LibraryKernels
from policygen.proof.toolchain import Toolchain, compile_trial, find_disassembler, find_toolchain
from policygen.store.journal import history
from policygen.trees.fetched import current_tree as current
from policygen.trees.fetched import differs, fetched
from policygen.trees.lookup import all_found
from policygen.trees.manifest import shipped

NEEDED_BY = {
    "cuda": ("all commands that run the compiler, if there is no CUDA toolkit",),
    "benchmarks": ("verify-sass --benchmarks",),
    "measure": ("measure",),
    "parquet": ("db export -o FILE.parquet",),
    "dev": ("make test", "make check"),
}
"""Extra → the commands that need it."""
RELEASED = (
    *(f"nvidia-cuda-{name}" for name in ("crt", "cuobjdump", "nvcc", "nvdisasm", "runtime")),
    "nvidia-nvvm",
)
"""Packages that work together if they are of one release of CUDA."""
NOTHING_TO_MEASURE_ON = 3
"""An exit status."""


def examine(cub: str | None = None) -> Doctor:
    """Runs all checks. Missing tools do not raise errors."""
    return _document(_checks(cub))


def examine_measuring() -> Doctor:
    """Checks what this machine can measure, without changing any setting."""
    return _document(measuring_checks())


def measuring_status(document: Doctor) -> int:
    """Returns the exit status: 3 if something required is missing, 1 if it is broken, else 0."""
    states = {check.state for check in document.checks}
    return NOTHING_TO_MEASURE_ON if "missing" in states else int("broken" in states)


def _document(checks: Iterable[Check]) -> Doctor:
    installed: Literal["clone", "package"] = "package" if clone() is None else "clone"
    return Doctor(version=__version__, installed=installed, checks=tuple(checks))


def _checks(cub: str | None) -> Iterator[Check]:
    yield passed_check("Python", f"{platform.python_version()}, {nearby(Path(sys.executable))}")
    required = requirements()
    yield _packages(required.get("", ()))
    for extra in sorted(required.keys() - {""}):
        if extra != "dev" or clone() is not None:
            yield _extra(extra, required[extra])
    yield from check_tools()
    path = settings.named()  # the tree check reports a broken one
    yield (
        passed_check("settings", nearby(path))
        if path
        else _check("settings", "optional", f"no {settings.NAME} in use")
    )
    yield from check_places(cub)


def _check(
    name: str,
    state: CheckState,
    detail: str,
    needed_by: tuple[str, ...] = (),
    remedy: str | None = None,
) -> Check:
    return Check(name=name, state=state, found=detail, needed_by=needed_by, remedy=remedy)


def _packages(required: Sequence[Requirement]) -> Check:
    """Checks the packages that every command needs."""
    unmet, needed_by = [each for each in required if not each.fits], ("every command",)
    if unmet:
        return _check("packages", "missing", _describe_unmet(unmet), needed_by, add(""))
    return passed_check("packages", f"all {len(required)} that policygen needs", needed_by)


def _extra(extra: str, required: Sequence[Requirement]) -> Check:
    unmet = [requirement for requirement in required if not requirement.fits]
    name, needed_by = f"extra {extra}", NEEDED_BY.get(extra, ())
    releases = {
        requirement.name: ".".join(requirement.version.split(".")[:2])
        for requirement in required
        if requirement.version and requirement.name.startswith(RELEASED)
    }
    mixed = sorted({*releases.values()}) if not unmet else []
    is_mixed = len(mixed) > 1
    if not unmet and not is_mixed:
        first, *rest = required
        suffix = f" and {len(rest)} more" if rest else ""
        return passed_check(name, f"{first.name} {first.version}{suffix}", needed_by)
    absent = all(requirement.version is None for requirement in required)
    detail = "not installed" if absent else _describe_unmet(unmet)
    if is_mixed:
        detail = f"wheels of CUDA {' and '.join(mixed)} are mixed"
        remedy = of_release(releases, releases["nvidia-cuda-nvcc"])
        return _check(name, "broken", detail, needed_by, remedy)
    return _check(name, "optional", detail, needed_by, add(extra))


def _describe_unmet(unmet: Sequence[Requirement]) -> str:
    """Describes unmet requirements: `no pyarrow; pandas 2.1 where pandas>=2.2 is needed`."""
    return "; ".join(
        f"no {requirement.name}"
        if requirement.version is None
        else f"{requirement.name} {requirement.version}, but {requirement.asked} is needed"
        for requirement in unmet
    )


COMPILING = (
    *("resolve", "plan", "apply", "emit", "review", "audit", "demo"),
    *("verify-effect", "verify-sass"),
)
"""Commands that run the compiler."""
MEASURING = ("measure", "search", "tune", "verify-performance")
"""Commands that run kernels on a GPU."""
READING = ("scan", "headers path", *COMPILING)
CACHING = (*READING, "headers fetch")
WRITING = ("apply", "undo", "db choose --record")


# Trees that are present, and the folders that policygen itself uses.


def check_places(cub: str | None) -> Iterator[Check]:
    """Checks the selected tree, other trees by kind of place, the cache, and the store."""
    folder = Path.cwd()
    yield probe_check("tree", READING, partial(_selected_tree, cub, folder))
    yield probe_check("fetched", (), partial(_fetched, trees.headers_folder(folder)))
    for kind, where in (
        ("checkout", "around this folder"),
        ("wheel", "installed for this Python"),
        ("toolkit", "in CUDA_HOME, CUDA_PATH, beside nvcc or in /usr/local/cuda"),
    ):
        yield probe_check(kind, (), partial(_other_trees, kind, where, folder))
    yield probe_check("cache", CACHING, _cache)
    yield probe_check("store", WRITING, _store)


def _selected_tree(cub: str | None, folder: Path) -> Check | str:
    if (tree := trees.find_any(cub, folder)) is None:
        return _check("tree", "missing", "no CUB", READING, _fetch())
    return tree_line(tree)


def _fetch() -> str:
    return f"policygen headers fetch {shipped().default}"


def _fetched(folder: Path) -> Check | str:
    versions = fetched(folder, None)
    used = {current(folder, library) for library in shipped().libraries}
    descriptions = [_version(folder, version, used) for version in versions]
    if not descriptions:
        return _check("fetched", "optional", f"none in {nearby(folder)}", (), _fetch())
    return f"{', '.join(descriptions)} in {nearby(folder)}"


def _version(folder: Path, version: str, used: Container[str | None]) -> str:
    notes = ["current"] if version in used else []
    notes += ["changed"] if differs(folder, version) is not None else []
    return f"{version} ({', '.join(notes)})" if notes else version


def _other_trees(kind: str, where: str, folder: Path) -> Check | str:
    cubs = all_found(folder)[kind]
    words = "; ".join(f"{cub.called} {cub.version}, {nearby(Path(cub.root))}" for cub in cubs)
    return words or _check(kind, "optional", f"none {where}")


def _cache() -> Check | str:
    folder = cache_folder()
    place = next(ancestor for ancestor in (folder, *folder.parents) if ancestor.exists())
    try:
        if not place.is_dir():
            raise NotADirectoryError
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        detail = f"{nearby(folder)} cannot be written: {error.strerror or 'it is not a folder'}"
        return _check("cache", "broken", detail, CACHING, "export POLICYGEN_CACHE=FOLDER")
    if place != folder:
        return f"{nearby(folder)}, not made yet, writable"
    count, size = _size(folder)
    amount = f"{_bytes(size)} in {plural(count, 'file')}"
    return f"{nearby(folder)}, {amount}, writable"


def _size(folder: Path) -> tuple[int, int]:
    """Counts files and bytes, ignoring files that disappear meanwhile."""
    count = size = 0
    folders = [os.fspath(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                        count += 1
        except OSError:
            continue
    return count, size


def _bytes(size: float) -> str:
    """Formats a number of bytes: `512 B`, `2.8 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _store() -> Check | str:
    """Checks the store of applies in this folder.

    A store that may belong to someone else is not read.
    """
    path = Path(STORE)
    if not path.exists():
        return _check("store", "optional", f"no {STORE} in this folder")
    if (store := readable_store(None)) is None:
        detail = f"{STORE} may belong to someone else and is not read"
        return _check("store", "optional", detail, (), f"policygen status --store {STORE}")
    applies = [entry.state for entry in history(store)]
    if not all(os.access(path, os.W_OK) for path in (store, store.absolute().parent)):
        detail = f"{STORE} cannot be written"
        return _check("store", "broken", detail, WRITING, f"chmod u+w {STORE} .")
    applies_in_words = plural(len(applies), "apply", "applies")
    summary = f"{applies_in_words}, {applies.count('applied')} of them in a tree"
    size = _bytes(store.stat().st_size)
    return f"{STORE}, {size}, {summary}, writable"


SASS = ("verify-sass", "review --run-sass", "demo")
GIT = ("--base REVISION", "--compare REVISION")
GPU = ("nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version")
NO_GPU = "no GPU on this machine"
SECONDS = 20.0
"""Timeout for a program to print its version."""
_MIB_PER_GIB = 1024
# NVIDIA H200, 9.0, 143771 MiB, 580.159.04
_GPU = re.compile(r"(.+), (\d+)\.(\d+), (\d+) MiB, ([\d.]+)")


# External programs, and GPUs.


def check_tools() -> Iterator[Check]:
    """Checks each program, in the order in which they are needed."""
    toolchain: Toolchain | None = None
    try:
        toolchain = find_toolchain()
    except PolicygenError as error:
        yield failed_check("nvcc", COMPILING, error, add("cuda"))
    else:
        archs = f"{toolchain.archs[0]} to {toolchain.newest}"
        detail = f"{toolchain.version}, {archs}, {nearby(toolchain.nvcc)}"
        yield passed_check("nvcc", detail, COMPILING)
        yield probe_check("compiling", COMPILING, partial(_compile_kernel, toolchain), add("cuda"))
        yield probe_check("cuobjdump", SASS, partial(_disassembler, toolchain), add("cuda"))
    demangler = partial(_program_version, "c++filt")
    yield probe_check("c++filt", SASS, demangler, "apt-get install binutils")
    yield from map(_kernel_compiler, parts(LibraryKernels))
    yield probe_check("git", GIT, partial(_program_version, "git"), "apt-get install git")
    yield _gpu()


def probe_check(
    name: str,
    needed_by: tuple[str, ...],
    probe: Callable[[], Check | str],
    remedy: str | None = None,
) -> Check:
    """Runs a probe, which returns a check, or the details of one that passed."""
    try:
        result = probe()
    except PolicygenError as error:
        return failed_check(name, needed_by, error, remedy)
    return passed_check(name, result, needed_by) if isinstance(result, str) else result


def _compile_kernel(toolchain: Toolchain) -> str:
    compile_trial(toolchain)
    return f"compiles a kernel for {toolchain.newest}"


def _kernel_compiler(kernels: LibraryKernels) -> Check:
    """Checks a library's compiler of kernels; only one command fails without it."""
    name, called, remedy = kernels.compiler, CALLED[kernels.library], kernels.install
    needed_by = (f"verify-sass of {called}",)
    try:
        return passed_check(name, kernels.try_out(), needed_by)
    except PolicygenError as error:
        if not isinstance(error, MissingToolError) or error.tool != name:
            return failed_check(name, needed_by, error, remedy)
    detail = f"no {name}; without it, machine code of {called} cannot be compared"
    return _check(name, "optional", detail, needed_by, remedy)


def _disassembler(toolchain: Toolchain) -> str:
    path = find_disassembler(toolchain)
    output = run([str(path), "--version"], limit=SECONDS, install=add("cuda"))
    # Cuda compilation tools, release 13.2, V13.2.78
    release = re.search(r"\bV([\d.]+)", output)
    return f"{release[1] if release else 'of no known release'}, nvdisasm too, {nearby(path)}"


def _program_version(program: str) -> str:
    """Returns the version number from a program's output, such as `2.39.2`."""
    output = run([program, "--version"], limit=SECONDS, install="")
    # git version 2.39.2; GNU c++filt (GNU Binutils for Debian) 2.40
    number = re.search(r"\d+(?:\.\d+)+", output)
    return number[0] if number else output.partition("\n")[0]


def _gpu() -> Check:
    """Lists the GPUs. Neither a missing GPU nor an unresponsive driver is a failure."""
    program, query = GPU
    absent = _check("GPU", "optional", NO_GPU, MEASURING)
    if which(program) is None:
        return absent
    try:
        output = run([program, query, "--format=csv,noheader"], limit=SECONDS, install="")
    except PolicygenError as error:
        message = first_error_line(error.stderr) if isinstance(error, ProcessError) else str(error)
        return absent.model_copy(update={"found": f"nvidia-smi does not respond: {message}"})
    rows = [row for row in output.splitlines() if row.strip()]
    return passed_check("GPU", "; ".join(map(_describe_gpu, rows)), MEASURING) if rows else absent


def _describe_gpu(row: str) -> str:
    if (match := _GPU.fullmatch(row.strip())) is None:
        return row.strip()
    name, major, minor, memory, driver = match.groups()
    size = int(memory) / _MIB_PER_GIB
    return f"{name} (sm{major}{minor}, {size:.0f} GiB), driver {driver}"
