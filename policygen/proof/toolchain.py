"""Finds the CUDA compiler, its release, and the architectures that it supports."""

import os
import re
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policygen import rendering
from policygen.cache import digest
from policygen.errors import MissingToolError, ProcessError
from policygen.installation import add
from policygen.model.arch import arch_number
from policygen.process import named_folder, run, which

INSTALLED = Path("/usr/local/cuda/bin/nvcc")
"""Where NVIDIA's installers put it."""
# Cuda compilation tools, release 13.2, V13.2.51
_RELEASE = re.compile(r"release [\d.]+, V([\d.]+)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """An nvcc."""

    nvcc: Path
    version: str
    archs: tuple[str, ...]

    def __str__(self) -> str:
        return f"nvcc {self.version} ({self.nvcc})"

    @property
    def name(self) -> str:
        """Its name in outputs: `nvcc 13.2.51`."""
        return f"nvcc {self.version}"

    @property
    def identity(self) -> str:
        """Identifies its output: the same for the same compiler at another path."""
        return f"{self.version} {program(self.nvcc)}"

    @property
    def roots(self) -> tuple[str, ...]:
        """The toolkit's folder, which identifies its headers."""
        root = self.nvcc.parent.parent
        return tuple(dict.fromkeys((str(root), str(root.resolve()))))

    @property
    def newest(self) -> str:
        """The newest architecture that it supports."""
        return self.archs[-1]


def to_install() -> str:
    """Tells how to install nvcc and what comes with it."""
    return f"Install it: {add('cuda')}; or set CUDA_HOME to an installed toolkit."


def find_toolchain(environment: Mapping[str, str] | None = None) -> Toolchain:
    """Finds nvcc: in `CUDA_HOME`, the extra `cuda`, PATH, or `/usr/local/cuda`."""
    for candidate in _candidates(os.environ if environment is None else environment):
        if candidate.is_file():
            return _describe(candidate)
    raise MissingToolError("nvcc", to_install())


def find_disassembler(toolchain: Toolchain) -> Path:
    """Finds cuobjdump next to nvcc, or on PATH; it needs nvdisasm, which must exist, too."""
    find_tool("nvdisasm", toolchain, to_install())
    return find_tool("cuobjdump", toolchain, to_install())


def find_tool(name: str, toolchain: Toolchain, remedy: str) -> Path:
    """Finds a program next to nvcc, or on PATH."""
    beside = toolchain.nvcc.with_name(name)
    if beside.is_file():
        return beside
    if path := which(name):
        return Path(path)
    raise MissingToolError(name, remedy)


def _candidates(environment: Mapping[str, str]) -> Iterable[Path]:
    if home := named_folder("CUDA_HOME", environment):
        nvcc = home / "bin" / "nvcc"
        if not nvcc.is_file():
            raise MissingToolError(f"{nvcc} (from CUDA_HOME)", "Unset CUDA_HOME or correct it.")
        yield nvcc
    yield from sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin/nvcc"), reverse=True)
    if path := which("nvcc", environment):
        yield Path(path)
    yield INSTALLED


@cache
def program(path: Path) -> str:
    """Identifies a program by its size and first bytes, because hashing megabytes takes long."""
    try:
        with path.open("rb") as file:
            return digest(str(path.stat().st_size), file.read(1 << 16))
    except OSError:
        return str(path)


@cache
def _describe(nvcc: Path) -> Toolchain:
    release = _RELEASE.search(run([str(nvcc), "--version"], install=to_install()))
    # compute_90
    numbers = re.findall(
        r"compute_(\d+)$", run([str(nvcc), "--list-gpu-arch"], install=to_install()), re.M
    )
    if release is None or not numbers:
        raise MissingToolError(f"a working nvcc ({nvcc} does not report its release)", to_install())
    archs = sorted((f"sm{number}" for number in numbers), key=arch_number)
    return Toolchain(nvcc, release[1], tuple(archs))


SECONDS = 120.0
"""Limit for a busy machine; an idle one takes one second."""
_HOST_COMPILER = "g++"
_HOST_VARIABLE = "NVCC_CCBIN"


# Checks that nvcc, its parts, its headers and the host compiler work together.


def compile_trial(toolchain: Toolchain) -> None:
    """Compiles a kernel for the newest architecture; raises with a remedy if that fails."""
    source = rendering.folder("templates") / "probe" / "trial.cu"
    arch = f"-arch={toolchain.newest.replace('sm', 'sm_')}"
    command = [str(toolchain.nvcc), "-cubin", arch, "-o", "trial.cubin", str(source)]
    try:
        run(command, limit=SECONDS, install=to_install())
    except ProcessError as error:
        words = error.stderr.strip() or "nvcc prints nothing"
        remedy = f"apt-get install {_HOST_COMPILER}"
        if os.environ.get(_HOST_VARIABLE):
            remedy = f"unset {_HOST_VARIABLE}"
        elif which(_HOST_COMPILER):
            remedy = f"export {_HOST_VARIABLE}=COMPILER"
        raise ProcessError(command, error.status, words, remedy) from error
