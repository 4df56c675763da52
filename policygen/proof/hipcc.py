"""Finds hipcc: which clang it starts, with which options, and what that compiles for.

hipcc is a script that puts some of its arguments into a command of a shell. It is asked about a
file of ours, and what it would start is started for all others: no path of a tree gets to a shell.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen import resources
from policygen.cache import digest
from policygen.environment import named_folder, which
from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.process import run
from policygen.proof.deps import file_digest
from policygen.proof.toolchain import program

PROGRAM = "hipcc"
VARIABLE = "ROCM_PATH"
INSTALLED = Path("/opt/rocm/bin/hipcc")
"""Where AMD's own installers put it."""
DEVICE = "--cuda-device-only"
OFFLOAD = "--offload-arch="
ASKED = "gfx90a"
"""Any architecture that all releases of hipcc know."""
SECONDS = 120.0
# Beside an nvcc it would start that.
_PLATFORM = {"HIP_PLATFORM": "amd"}
_VERBOSE = {"HIPCC_VERBOSE": "1"}
_LOG = "options"
_TO_ASSEMBLY = ("-S", "-o", "unit.s", "-x", "hip", "unit.hip")
# HIP version: 5.2.21153-0
_RELEASE = re.compile(r"^HIP version: ([\d.]+)", re.M)
# Debian clang version 15.0.6; AMD clang version 17.0.0 (https://github.com/…)
_CLANG = re.compile(r"\bclang version ([\d.]+)")
# hipcc-cmd: /usr/bin/clang++-15  --rocm-path=/usr -O3 -E -o "unit.ii" -x hip unit.hip
_COMMAND = re.compile(r"^hipcc-cmd: (.+)$", re.M)
# "-mlink-builtin-bitcode" "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode/ocml.bc"
_BITCODE = re.compile(r'"-mlink-builtin-bitcode" "((?:[^"\\]|\\.)*)"')
_NONE = "it does not say which code it links"


@dataclass(frozen=True, slots=True)
class Hipcc:
    """One hipcc, and the clang that it starts."""

    path: Path
    version: str
    """HIP's."""
    clang_version: str
    clang: str
    options: tuple[str, ...]
    """What hipcc itself gives to clang."""

    @property
    def name(self) -> str:
        """Names it as outputs do: `hipcc 5.2.21153 (clang 15.0.6)`."""
        return f"hipcc {self.version} (clang {self.clang_version})"


@dataclass(frozen=True, slots=True)
class CompileTarget:
    """Whether an architecture is compiled for."""

    arch: str
    identity: str = ""
    """Names what clang links into all code for it; nothing where it does not compile."""
    refusal: str = ""
    """Why it does not."""


def to_install() -> str:
    """What helps where hipcc is missing."""
    return (
        "Install it: apt-get install hipcc, or AMD's ROCm. It is looked for where --hipcc says, in"
        f" {VARIABLE}, on PATH and in {INSTALLED.parent}."
    )


def find_hipcc(named: Path | None = None, environment: Mapping[str, str] | None = None) -> Hipcc:
    """Finds hipcc: what is named, that of `ROCM_PATH`, on PATH, or in `/opt/rocm`."""
    if named is not None:
        if not named.is_file():
            raise MissingToolError(f"{named} (from --hipcc)", "Name the file: --hipcc /…/bin/hipcc")
        return _describe(named.absolute())
    for candidate in _candidates(os.environ if environment is None else environment):
        if candidate.is_file():
            return _describe(candidate)
    raise MissingToolError(PROGRAM, to_install())


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    # The variable may name headers alone.
    if root := named_folder(VARIABLE, environment):
        yield root / "bin" / PROGRAM
    if found := which(PROGRAM, environment):
        yield Path(found)
    yield INSTALLED


@cache
def _describe(path: Path) -> Hipcc:
    told = run([str(path), "--version"], limit=SECONDS, install=to_install(), more=_PLATFORM)
    release, clang = _RELEASE.search(told), _CLANG.search(told)
    if release is None or clang is None:
        raise _broken(path, "does not tell its release")
    command = _command(path)
    return Hipcc(path, release[1], clang[1], command[0], tuple(command[1:]))


def _command(path: Path) -> list[str]:
    """What hipcc starts, without what it was given."""
    given = ["-E", DEVICE, f"{OFFLOAD}{ASKED}"]
    files = ["-o", "unit.ii", "unit.hip"]
    with _trial() as folder:
        told = run(
            [str(path), *given, *files],
            folder=Path(folder),
            limit=SECONDS,
            install=to_install(),
            more={**_PLATFORM, **_VERBOSE},
        )
    match = _COMMAND.search(told)
    try:
        words = shlex.split(match[1]) if match else []
    except ValueError:
        words = []
    left = [word for word in words if word not in {*given, *files, "-x", "hip"}]
    if not left or not left[0].startswith("/") or len(words) - len(left) < len(given) + len(files):
        raise _broken(path, "does not tell what it starts")
    return left


def _trial() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory(prefix="policygen-")
    source = resources.folder("templates") / "probe" / "trial.hip"
    (Path(folder.name) / "unit.hip").write_bytes(source.read_bytes())
    return folder


def _broken(path: Path, why: str) -> MissingToolError:
    return MissingToolError(f"a working hipcc ({path} {why})", to_install())


@cache
def find_target(hipcc: Hipcc, arch: str) -> CompileTarget:
    """Compiles a kernel for an architecture, to see what is linked into it."""
    try:
        return CompileTarget(arch, identity=_linked(hipcc, arch))
    except PolicygenError as error:
        return CompileTarget(arch, refusal=_why(error))


def compile_trial(hipcc: Hipcc) -> str:
    """Compiles a kernel; what fails is raised."""
    return _linked(hipcc, ASKED)


def _linked(hipcc: Hipcc, arch: str) -> str:
    with _trial() as folder:
        log = Path(folder) / _LOG
        run(
            [hipcc.clang, *hipcc.options, DEVICE, f"{OFFLOAD}{arch}", *_TO_ASSEMBLY],
            folder=Path(folder),
            limit=SECONDS,
            install=to_install(),
            more={"CC_PRINT_OPTIONS": "1", "CC_PRINT_OPTIONS_FILE": str(log)},
        )
        told = log.read_text(errors="replace") if log.is_file() else ""
    contents = [file_digest(path) for path in _BITCODE.findall(told)]
    if not contents or None in contents:
        raise InputError(f"{hipcc.name}: {_NONE}")
    parts = [one for one in contents if one is not None]
    clang = program(Path(hipcc.clang).resolve())
    return digest(hipcc.version, hipcc.clang_version, clang, *hipcc.options, *parts)


def _why(error: PolicygenError) -> str:
    words = error.stderr if isinstance(error, ProcessError) else str(error)
    rows = [row.strip() for row in words.splitlines() if row.strip()]
    told = next((row for row in rows if "error" in row), rows[0] if rows else "it says nothing")
    # cannot find ROCm device library for gfx1102; provide its path via …
    return (told.partition("error: ")[2] or told).partition("; ")[0]
