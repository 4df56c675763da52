"""Which programs are here that policygen starts, and which GPU."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from policygen.environment import which
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.installation import add
from policygen.model.doctor import Check
from policygen.paths import nearby
from policygen.process import run
from policygen.proof.hipcc import ASKED, PROGRAM, Hipcc, find_hipcc
from policygen.proof.hipcc import compile_trial as compile_hip
from policygen.proof.toolchain import Toolchain, find_disassembler, find_toolchain
from policygen.proof.trial import compile_trial

COMPILING = (
    *("resolve", "plan", "apply", "emit", "review", "audit", "demo"),
    *("verify-effect", "verify-sass"),
)
"""Commands that ask the compiler."""
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
    yield tried("c++filt", SASS, partial(_version, "c++filt"), "apt-get install binutils")
    yield _hipcc()
    yield tried("git", GIT, partial(_version, "git"), "apt-get install git")
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


def _version(program: str) -> str:
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
