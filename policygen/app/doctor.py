"""What is here of what policygen works with, and what mends what is not."""

import os
import platform
import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from policygen import __version__, settings, trees
from policygen.app.session import STORE, heard_store
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
"""Extra → what needs it."""


def examine(cub: str | None = None) -> Doctor:
    """Looks at everything; what is missing is no error here."""
    return Doctor(
        version=__version__,
        installed="package" if clone() is None else "clone",
        checks=tuple(_checks(cub)),
    )


def _checks(cub: str | None) -> Iterator[Check]:
    yield fine("Python", f"{platform.python_version()}, {nearby(Path(sys.executable))}")
    asked = requirements()
    yield _packages(asked.get("", ()))
    for extra in sorted(asked.keys() - {""}):
        if extra != "dev" or clone() is not None:
            yield _extra(extra, asked[extra])
    yield from check_tools()
    yield _settings()
    yield from check_places(cub)


def _packages(asked: Sequence[Requirement]) -> Check:
    """What every command needs."""
    lacking = [one for one in asked if not one.fits]
    if not lacking:
        return fine("packages", f"all {len(asked)} that policygen needs", ("every command",))
    return Check(
        name="packages",
        state="missing",
        found=_lacking(lacking),
        needed_by=("every command",),
        remedy=again(),
    )


def _extra(extra: str, asked: Sequence[Requirement]) -> Check:
    lacking = [one for one in asked if not one.fits]
    name, needed_by = f"extra {extra}", NEEDED_BY.get(extra, ())
    if not lacking:
        first, *others = asked
        more = f" and {len(others)} more" if others else ""
        return fine(name, f"{first.name} {first.version}{more}", needed_by)
    none = all(one.version is None for one in asked)
    return Check(
        name=name,
        state="optional",
        found="not installed" if none else _lacking(lacking),
        needed_by=needed_by,
        remedy=add(extra),
    )


def _lacking(lot: Sequence[Requirement]) -> str:
    """`no pyarrow; pandas 2.1 where pandas>=2.2 is needed`."""
    return "; ".join(
        f"no {one.name}"
        if one.version is None
        else f"{one.name} {one.version} where {one.asked} is needed"
        for one in lot
    )


def _settings() -> Check:
    """One that is broken is told by the tree that it names."""
    if path := settings.named():
        return fine("settings", nearby(path))
    return Check(name="settings", state="optional", found=f"no {settings.NAME} is named")


COMPILING = (
    *("resolve", "plan", "apply", "emit", "review", "audit", "demo"),
    *("verify-effect", "verify-sass"),
)
"""Commands that ask the compiler."""
READING = ("scan", "headers path", *COMPILING)
CACHING = (*READING, "headers fetch")
WRITING = ("apply", "undo", "db choose --record")


# Which trees are here, and where policygen keeps what is its own.


def check_places(cub: str | None) -> Iterator[Check]:
    """The tree that is used, the others by kind of place, the cache, the store."""
    here = Path.cwd()
    yield _used(cub, here)
    yield _fetched(trees.headers_folder(here))
    for kind, words in (
        ("checkout", "around this folder"),
        ("wheel", "installed for this Python"),
        ("toolkit", "in CUDA_HOME, CUDA_PATH, beside nvcc or in /usr/local/cuda"),
    ):
        yield _others(kind, words, here)
    yield _cache()
    yield _store()


def _used(cub: str | None, here: Path) -> Check:
    try:
        found = trees.find_any(cub, here)
    except PolicygenError as error:
        return failed("tree", READING, error)
    if found is None:
        return Check(
            name="tree", state="missing", found="no CUB", needed_by=READING, remedy=_fetch()
        )
    return fine("tree", tree_line(found), READING)


def _fetch() -> str:
    return f"policygen headers fetch {shipped().default}"


def _named(cub: Cub) -> str:
    return f"{cub.called} {cub.version}, {nearby(Path(cub.root))}"


def _fetched(folder: Path) -> Check:
    try:
        versions = fetched(folder, None)
        used = {current(folder, library) for library in shipped().libraries}
        words = [_version(folder, one, used) for one in versions]
    except PolicygenError as error:
        return failed("fetched", (), error)
    if not words:
        found = f"none in {nearby(folder)}"
        return Check(name="fetched", state="optional", found=found, remedy=_fetch())
    return fine("fetched", f"{', '.join(words)} in {nearby(folder)}")


def _version(folder: Path, version: str, used: Container[str | None]) -> str:
    more = ["current"] if version in used else []
    more += ["changed"] if differs(folder, version) else []
    return f"{version} ({', '.join(more)})" if more else version


def _others(kind: str, words: str, here: Path) -> Check:
    try:
        found = all_found(here)[kind]
    except PolicygenError as error:
        return failed(kind, (), error)
    if not found:
        return Check(name=kind, state="optional", found=f"none {words}")
    return fine(kind, "; ".join(map(_named, found)))


def _cache() -> Check:
    try:
        folder = cache_folder()
    except PolicygenError as error:
        return failed("cache", CACHING, error)
    place = next(one for one in (folder, *folder.parents) if one.exists())
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
        return fine("cache", f"{nearby(folder)}, not made yet, writable", CACHING)
    count, size = _size(folder)
    return fine(
        "cache", f"{nearby(folder)}, {_bytes(size)} in {plural(count, 'file')}, writable", CACHING
    )


def _size(folder: Path) -> tuple[int, int]:
    """Files and bytes; what goes meanwhile does not count."""
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
    """`512 B`, `2.8 GiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _store() -> Check:
    """What was applied from here; one that could be a stranger's is not looked into."""
    path = Path(STORE)
    if not path.exists():
        return Check(name="store", state="optional", found=f"no {STORE} in this folder")
    if (store := heard_store(None)) is None:
        return Check(
            name="store",
            state="optional",
            found=f"{STORE} is not known to be yours: it is not read",
            remedy=f"policygen status --store {STORE}",
        )
    try:
        applies = [one.state for one in history(store)]
    except PolicygenError as error:
        return failed("store", WRITING, error)
    writable = os.access(store, os.W_OK) and os.access(store.absolute().parent, os.W_OK)
    if not writable:
        return Check(
            name="store",
            state="broken",
            found=f"{STORE} cannot be written",
            needed_by=WRITING,
            remedy=f"chmod u+w {STORE} .",
        )
    count, there = len(applies), applies.count("applied")
    known = f"{plural(count, 'apply', 'applies')}, {there} of them in a tree"
    return fine("store", f"{STORE}, {_bytes(store.stat().st_size)}, {known}, writable", WRITING)


SASS = ("verify-sass", "review --run-sass", "demo")
ISA = ("verify-sass of rocPRIM",)
HIP_REMEDY = "apt-get install hipcc"
GIT = ("--base REVISION", "--compare REVISION")
GPU = ("nvidia-smi", "--query-gpu=name,compute_cap,memory.total,driver_version")
NO_GPU = "no GPU here; no command needs one"
SECONDS = 20.0
"""For a program to tell its version."""
_MIB_PER_GIB = 1024
# NVIDIA H200, 9.0, 143771 MiB, 580.159.04
_GPU = re.compile(r"(.+), (\d+)\.(\d+), (\d+) MiB, ([\d.]+)")


# Which programs are here that policygen starts, and which GPU.


def check_tools() -> Iterator[Check]:
    """Each program, in the order in which they are needed."""
    toolchain: Toolchain | None = None
    try:
        toolchain = find_toolchain()
    except PolicygenError as error:
        yield failed("nvcc", COMPILING, error, add("cuda"))
    else:
        archs = f"{toolchain.archs[0]} to {toolchain.newest}"
        yield fine("nvcc", f"{toolchain.version}, {archs}, {nearby(toolchain.nvcc)}", COMPILING)
        yield tried("compiling", COMPILING, partial(_compiled, toolchain), add("cuda"))
        yield tried("cuobjdump", SASS, partial(_disassembler, toolchain), add("cuda"))
    yield tried(
        "c++filt", SASS, partial(_check_tools_version, "c++filt"), "apt-get install binutils"
    )
    yield _hipcc()
    yield tried("git", GIT, partial(_check_tools_version, "git"), "apt-get install git")
    yield _gpu()


def fine(name: str, found: str, needed_by: tuple[str, ...] = ()) -> Check:
    """What is as it should be."""
    return Check(name=name, state="fine", found=found, needed_by=needed_by)


def tried(
    name: str, needed_by: tuple[str, ...], look: Callable[[], str], remedy: str | None = None
) -> Check:
    """What looking for something comes to."""
    try:
        return fine(name, look(), needed_by)
    except PolicygenError as error:
        return failed(name, needed_by, error, remedy)


def failed(
    name: str, needed_by: tuple[str, ...], error: PolicygenError, remedy: str | None = None
) -> Check:
    """What is missing, with the command that installs it; or broken, as the error says."""
    state, words = "broken", str(error)
    if isinstance(error, MissingToolError):
        state, words = "missing", f"{error.tool} is missing"
        # A variable leads astray, which an installation would not mend.
        remedy = error.remedy if "CUDA_HOME)" in error.tool else remedy
    elif isinstance(error, ProcessError):
        words, remedy = _first_line(error.stderr), error.remedy or remedy
    elif isinstance(error, InputError):
        words, remedy = error.message, error.remedy or remedy
    return Check.model_validate(
        {
            "name": name,
            "state": state,
            "found": words.partition("\n")[0],
            "needed_by": needed_by,
            "remedy": remedy,
        }
    )


def _first_line(words: str) -> str:
    rows = [row.strip() for row in words.splitlines() if row.strip()]
    return next((row for row in rows if re.search("error|fatal|not found", row)), "".join(rows[:1]))


def _compiled(toolchain: Toolchain) -> str:
    compile_trial(toolchain)
    return f"a kernel compiles for {toolchain.newest}"


def _hipcc() -> Check:
    """The compiler for GPUs of AMD, which one command can use; none is no failure."""
    try:
        found = find_hipcc()
    except MissingToolError as error:
        if error.tool != PROGRAM:
            return failed(PROGRAM, ISA, error, HIP_REMEDY)
        words = "no hipcc here; machine code of rocPRIM is not compared without it"
        return Check(name=PROGRAM, state="optional", found=words, needed_by=ISA, remedy=HIP_REMEDY)
    except PolicygenError as error:
        return failed(PROGRAM, ISA, error, HIP_REMEDY)
    return tried(PROGRAM, ISA, partial(_tried, found), HIP_REMEDY)


def _tried(found: Hipcc) -> str:
    compile_hip(found)
    told = f"{found.version} (clang {found.clang_version})"
    return f"{told}, a kernel compiles for {ASKED}, {nearby(found.path)}"


def _disassembler(toolchain: Toolchain) -> str:
    path = find_disassembler(toolchain)
    told = run([str(path), "--version"], limit=SECONDS, install=add("cuda"))
    # Cuda compilation tools, release 13.2, V13.2.78
    release = re.search(r"\bV([\d.]+)", told)
    return f"{release[1] if release else 'of no known release'}, nvdisasm too, {nearby(path)}"


def _check_tools_version(program: str) -> str:
    """`2.39.2`, of what a program says of itself."""
    told = run([program, "--version"], limit=SECONDS, install="")
    # git version 2.39.2; GNU c++filt (GNU Binutils for Debian) 2.40
    number = re.search(r"\d+(?:\.\d+)+", told)
    return number[0] if number else told.partition("\n")[0]


def _gpu() -> Check:
    """The GPUs; none is no failure, nor is a driver that does not answer."""
    program, query = GPU
    absent = Check(name="GPU", state="optional", found=NO_GPU)
    if which(program) is None:
        return absent
    try:
        told = run([program, query, "--format=csv,noheader"], limit=SECONDS, install="")
    except PolicygenError as error:
        words = _first_line(error.stderr) if isinstance(error, ProcessError) else str(error)
        return absent.model_copy(update={"found": f"nvidia-smi does not answer: {words}"})
    rows = [row for row in told.splitlines() if row.strip()]
    return fine("GPU", "; ".join(map(_spelled, rows))) if rows else absent


def _spelled(row: str) -> str:
    if (match := _GPU.fullmatch(row.strip())) is None:
        return row.strip()
    name, major, minor, memory, driver = match.groups()
    size = int(memory) / _MIB_PER_GIB
    return f"{name} (sm{major}{minor}, {size:.0f} GiB), driver {driver}"
