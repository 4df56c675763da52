"""Reports which tools, trees, and folders are present, and how to fix what is missing."""

import os
import platform
import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from policygen import __version__, settings, trees
from policygen.app.session import STORE, readable_store
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.installation import Requirement, add, again, clone, requirements
from policygen.model.machine import Check, Doctor
from policygen.model.trees import Cub
from policygen.paths import cache_folder, nearby
from policygen.process import run, which
from policygen.proof.toolchain import Toolchain, compile_trial, find_disassembler, find_toolchain
from policygen.report.console import plural, tree_line
from policygen.rocprim.hipcc import ASKED, PROGRAM, Hipcc, find_hipcc
from policygen.rocprim.hipcc import compile_trial as compile_hip
from policygen.store.journal import history
from policygen.trees.fetched import current_tree as current
from policygen.trees.fetched import differs, fetched
from policygen.trees.lookup import all_found
from policygen.trees.manifest import shipped

NEEDED_BY = {
    "cuda": ("whatever asks the compiler, where there is no CUDA toolkit",),
    "benchmarks": ("verify-sass --benchmarks",),
    "measure": ("measure",),
    "plot": ("db plot",),
    "parquet": ("db export -o FILE.parquet",),
    "dev": ("make test", "make check"),
}
"""Extra → the commands that need it."""


def examine(cub: str | None = None) -> Doctor:
    """Runs all checks. Missing tools do not raise errors."""
    return Doctor(
        version=__version__,
        installed="package" if clone() is None else "clone",
        checks=tuple(_checks(cub)),
    )


def _checks(cub: str | None) -> Iterator[Check]:
    yield passed_check("Python", f"{platform.python_version()}, {nearby(Path(sys.executable))}")
    required = requirements()
    yield _packages(required.get("", ()))
    for extra in sorted(required.keys() - {""}):
        if extra != "dev" or clone() is not None:
            yield _extra(extra, required[extra])
    yield from check_tools()
    yield _settings()
    yield from check_places(cub)


def _packages(required: Sequence[Requirement]) -> Check:
    """Checks the packages that every command needs."""
    unmet = [requirement for requirement in required if not requirement.fits]
    if not unmet:
        return passed_check(
            "packages", f"all {len(required)} that policygen needs", ("every command",)
        )
    return Check(
        name="packages",
        state="missing",
        found=_describe_unmet(unmet),
        needed_by=("every command",),
        remedy=again(),
    )


def _extra(extra: str, required: Sequence[Requirement]) -> Check:
    unmet = [requirement for requirement in required if not requirement.fits]
    name, needed_by = f"extra {extra}", NEEDED_BY.get(extra, ())
    if not unmet:
        first, *rest = required
        suffix = f" and {len(rest)} more" if rest else ""
        return passed_check(name, f"{first.name} {first.version}{suffix}", needed_by)
    absent = all(requirement.version is None for requirement in required)
    return Check(
        name=name,
        state="optional",
        found="not installed" if absent else _describe_unmet(unmet),
        needed_by=needed_by,
        remedy=add(extra),
    )


def _describe_unmet(unmet: Sequence[Requirement]) -> str:
    """Describes unmet requirements: `no pyarrow; pandas 2.1 where pandas>=2.2 is needed`."""
    return "; ".join(
        f"no {requirement.name}"
        if requirement.version is None
        else f"{requirement.name} {requirement.version} where {requirement.asked} is needed"
        for requirement in unmet
    )


def _settings() -> Check:
    """Reports the settings file. The tree check reports a broken one."""
    if path := settings.named():
        return passed_check("settings", nearby(path))
    return Check(name="settings", state="optional", found=f"no {settings.NAME} is named")


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
    yield _selected_tree(cub, folder)
    yield _fetched(trees.headers_folder(folder))
    for kind, where in (
        ("checkout", "around this folder"),
        ("wheel", "installed for this Python"),
        ("toolkit", "in CUDA_HOME, CUDA_PATH, beside nvcc or in /usr/local/cuda"),
    ):
        yield _other_trees(kind, where, folder)
    yield _cache()
    yield _store()


def _selected_tree(cub: str | None, folder: Path) -> Check:
    try:
        tree = trees.find_any(cub, folder)
    except PolicygenError as error:
        return failed_check("tree", READING, error)
    if tree is None:
        return Check(
            name="tree", state="missing", found="no CUB", needed_by=READING, remedy=_fetch()
        )
    return passed_check("tree", tree_line(tree), READING)


def _fetch() -> str:
    return f"policygen headers fetch {shipped().default}"


def _describe_tree(cub: Cub) -> str:
    return f"{cub.called} {cub.version}, {nearby(Path(cub.root))}"


def _fetched(folder: Path) -> Check:
    try:
        versions = fetched(folder, None)
        used = {current(folder, library) for library in shipped().libraries}
        descriptions = [_version(folder, version, used) for version in versions]
    except PolicygenError as error:
        return failed_check("fetched", (), error)
    if not descriptions:
        detail = f"none in {nearby(folder)}"
        return Check(name="fetched", state="optional", found=detail, remedy=_fetch())
    return passed_check("fetched", f"{', '.join(descriptions)} in {nearby(folder)}")


def _version(folder: Path, version: str, used: Container[str | None]) -> str:
    notes = ["current"] if version in used else []
    notes += ["changed"] if differs(folder, version) else []
    return f"{version} ({', '.join(notes)})" if notes else version


def _other_trees(kind: str, where: str, folder: Path) -> Check:
    try:
        cubs = all_found(folder)[kind]
    except PolicygenError as error:
        return failed_check(kind, (), error)
    if not cubs:
        return Check(name=kind, state="optional", found=f"none {where}")
    return passed_check(kind, "; ".join(map(_describe_tree, cubs)))


def _cache() -> Check:
    try:
        folder = cache_folder()
    except PolicygenError as error:
        return failed_check("cache", CACHING, error)
    place = next(ancestor for ancestor in (folder, *folder.parents) if ancestor.exists())
    try:
        if not place.is_dir():
            raise NotADirectoryError
        with TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Check(
            name="cache",
            state="broken",
            found=f"{nearby(folder)} cannot be written: {error.strerror or 'it is no folder'}",
            needed_by=CACHING,
            remedy="export POLICYGEN_CACHE=FOLDER",
        )
    if place != folder:
        return passed_check("cache", f"{nearby(folder)}, not made yet, writable", CACHING)
    count, size = _size(folder)
    return passed_check(
        "cache", f"{nearby(folder)}, {_bytes(size)} in {plural(count, 'file')}, writable", CACHING
    )


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


def _store() -> Check:
    """Checks the store of applies in this folder.

    A store that may belong to someone else is not read.
    """
    path = Path(STORE)
    if not path.exists():
        return Check(name="store", state="optional", found=f"no {STORE} in this folder")
    if (store := readable_store(None)) is None:
        return Check(
            name="store",
            state="optional",
            found=f"{STORE} is not known to be yours: it is not read",
            remedy=f"policygen status --store {STORE}",
        )
    try:
        applies = [entry.state for entry in history(store)]
    except PolicygenError as error:
        return failed_check("store", WRITING, error)
    writable = os.access(store, os.W_OK) and os.access(store.absolute().parent, os.W_OK)
    if not writable:
        return Check(
            name="store",
            state="broken",
            found=f"{STORE} cannot be written",
            needed_by=WRITING,
            remedy=f"chmod u+w {STORE} .",
        )
    count, in_tree = len(applies), applies.count("applied")
    summary = f"{plural(count, 'apply', 'applies')}, {in_tree} of them in a tree"
    return passed_check(
        "store", f"{STORE}, {_bytes(store.stat().st_size)}, {summary}, writable", WRITING
    )


SASS = ("verify-sass", "review --run-sass", "demo")
ISA = ("verify-sass of rocPRIM",)
HIP_REMEDY = "apt-get install hipcc"
GIT = ("--base REVISION", "--compare REVISION")
GPU = ("nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version")
NO_GPU = "no GPU here"
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
        yield passed_check(
            "nvcc", f"{toolchain.version}, {archs}, {nearby(toolchain.nvcc)}", COMPILING
        )
        yield probe_check("compiling", COMPILING, partial(_compile_kernel, toolchain), add("cuda"))
        yield probe_check("cuobjdump", SASS, partial(_disassembler, toolchain), add("cuda"))
    yield probe_check(
        "c++filt", SASS, partial(_program_version, "c++filt"), "apt-get install binutils"
    )
    yield _hipcc()
    yield probe_check("git", GIT, partial(_program_version, "git"), "apt-get install git")
    yield _gpu()


def passed_check(name: str, detail: str, needed_by: tuple[str, ...] = ()) -> Check:
    """Builds a check that passed."""
    return Check(name=name, state="fine", found=detail, needed_by=needed_by)


def probe_check(
    name: str, needed_by: tuple[str, ...], probe: Callable[[], str], remedy: str | None = None
) -> Check:
    """Builds a check from the result of a probe."""
    try:
        return passed_check(name, probe(), needed_by)
    except PolicygenError as error:
        return failed_check(name, needed_by, error, remedy)


def failed_check(
    name: str, needed_by: tuple[str, ...], error: PolicygenError, remedy: str | None = None
) -> Check:
    """Builds a failed check: missing, with its install command, or broken, with the error."""
    state, message = "broken", str(error)
    if isinstance(error, MissingToolError):
        state, message = "missing", f"{error.tool} is missing"
        # If a variable points to the wrong place, installing something does not help.
        remedy = error.remedy if "CUDA_HOME)" in error.tool else remedy
    elif isinstance(error, ProcessError):
        message, remedy = _first_line(error.stderr), error.remedy or remedy
    elif isinstance(error, InputError):
        message, remedy = error.message, error.remedy or remedy
    return Check.model_validate(
        {
            "name": name,
            "state": state,
            "found": message.partition("\n")[0],
            "needed_by": needed_by,
            "remedy": remedy,
        }
    )


def _first_line(text: str) -> str:
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    return next((row for row in rows if re.search("error|fatal|not found", row)), "".join(rows[:1]))


def _compile_kernel(toolchain: Toolchain) -> str:
    compile_trial(toolchain)
    return f"a kernel compiles for {toolchain.newest}"


def _hipcc() -> Check:
    """Checks the compiler for AMD GPUs. Its absence is no failure, as only one command uses it."""
    try:
        hipcc = find_hipcc()
    except MissingToolError as error:
        if error.tool != PROGRAM:
            return failed_check(PROGRAM, ISA, error, HIP_REMEDY)
        detail = "no hipcc here; machine code of rocPRIM is not compared without it"
        return Check(name=PROGRAM, state="optional", found=detail, needed_by=ISA, remedy=HIP_REMEDY)
    except PolicygenError as error:
        return failed_check(PROGRAM, ISA, error, HIP_REMEDY)
    return probe_check(PROGRAM, ISA, partial(_compile_with_hipcc, hipcc), HIP_REMEDY)


def _compile_with_hipcc(hipcc: Hipcc) -> str:
    compile_hip(hipcc)
    version = f"{hipcc.version} (clang {hipcc.clang_version})"
    return f"{version}, a kernel compiles for {ASKED}, {nearby(hipcc.path)}"


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
    absent = Check(name="GPU", state="optional", found=NO_GPU, needed_by=MEASURING)
    if which(program) is None:
        return absent
    try:
        output = run([program, query, "--format=csv,noheader"], limit=SECONDS, install="")
    except PolicygenError as error:
        message = _first_line(error.stderr) if isinstance(error, ProcessError) else str(error)
        return absent.model_copy(update={"found": f"nvidia-smi does not answer: {message}"})
    rows = [row for row in output.splitlines() if row.strip()]
    return passed_check("GPU", "; ".join(map(_describe_gpu, rows)), MEASURING) if rows else absent


def _describe_gpu(row: str) -> str:
    if (match := _GPU.fullmatch(row.strip())) is None:
        return row.strip()
    name, major, minor, memory, driver = match.groups()
    size = int(memory) / _MIB_PER_GIB
    return f"{name} (sm{major}{minor}, {size:.0f} GiB), driver {driver}"
