"""Finds the CUDA compiler: where it is, which release, which architectures it compiles for."""

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
"""Where NVIDIA's own installers put it."""
# Cuda compilation tools, release 13.2, V13.2.51
_RELEASE = re.compile(r"release [\d.]+, V([\d.]+)")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One nvcc."""

    nvcc: Path
    version: str
    archs: tuple[str, ...]

    def __str__(self) -> str:
        return f"nvcc {self.version} ({self.nvcc})"

    @property
    def replaces_files(self) -> bool:
        """Whether it takes other content for a file: it is given folders before a tree."""
        return False

    @property
    def name(self) -> str:
        """Names it as outputs do: `nvcc 13.2.51`."""
        return f"nvcc {self.version}"

    @property
    def identity(self) -> str:
        """Names what it makes: the same for the same compiler at another place."""
        return f"{self.version} {program(self.nvcc)}"

    @property
    def roots(self) -> tuple[str, ...]:
        """The folder of the toolkit, by which its headers are told from others."""
        root = self.nvcc.parent.parent
        return tuple(dict.fromkeys((str(root), str(root.resolve()))))

    @property
    def newest(self) -> str:
        """The newest architecture that it compiles for."""
        return self.archs[-1]


def to_install() -> str:
    """What helps where nvcc or what comes with it is missing."""
    return f"Install it: {add('cuda')}; or set CUDA_HOME to an installed toolkit."


def find_toolchain(environment: Mapping[str, str] | None = None) -> Toolchain:
    """Finds nvcc: of `CUDA_HOME`, of the extra `cuda`, on PATH, or in `/usr/local/cuda`."""
    for candidate in _candidates(os.environ if environment is None else environment):
        if candidate.is_file():
            return _describe(candidate)
    raise MissingToolError("nvcc", to_install())


def find_disassembler(toolchain: Toolchain) -> Path:
    """Finds cuobjdump beside nvcc, else on PATH; it starts nvdisasm, which must be there, too."""
    find_tool("nvdisasm", toolchain, to_install())
    return find_tool("cuobjdump", toolchain, to_install())


def find_tool(name: str, toolchain: Toolchain, remedy: str) -> Path:
    """Finds a program beside nvcc, else on PATH."""
    beside = toolchain.nvcc.with_name(name)
    if beside.is_file():
        return beside
    if found := which(name):
        return Path(found)
    raise MissingToolError(name, remedy)


def _candidates(environment: Mapping[str, str]) -> Iterable[Path]:
    if home := named_folder("CUDA_HOME", environment):
        nvcc = home / "bin" / "nvcc"
        if not nvcc.is_file():
            raise MissingToolError(f"{nvcc} (from CUDA_HOME)", "Unset CUDA_HOME or correct it.")
        yield nvcc
    yield from sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin/nvcc"), reverse=True)
    if found := which("nvcc", environment):
        yield Path(found)
    yield INSTALLED


@cache
def program(path: Path) -> str:
    """Names a program: by its size and its beginning, as one of megabytes takes long to read."""
    try:
        with path.open("rb") as file:
            return digest(str(path.stat().st_size), file.read(1 << 16))
    except OSError:
        return str(path)


@cache
def _describe(nvcc: Path) -> Toolchain:
    release = _RELEASE.search(run([str(nvcc), "--version"], install=to_install()))
    # compute_90
    listed = re.findall(
        r"compute_(\d+)$", run([str(nvcc), "--list-gpu-arch"], install=to_install()), re.M
    )
    if release is None or not listed:
        raise MissingToolError(f"a working nvcc ({nvcc} does not tell its release)", to_install())
    archs = sorted((f"sm{number}" for number in listed), key=arch_number)
    return Toolchain(nvcc, release[1], tuple(archs))


SECONDS = 120.0
"""On a busy machine; an idle one takes one."""
_HOST = "g++"
_CHOSEN = "NVCC_CCBIN"


# Whether nvcc, its parts, its headers and the host compiler work together.


def compile_trial(toolchain: Toolchain) -> None:
    """Compiles a kernel for the newest architecture; what fails, and what may help, is raised."""
    source = rendering.folder("templates") / "probe" / "trial.cu"
    arch = f"-arch={toolchain.newest.replace('sm', 'sm_')}"
    command = [str(toolchain.nvcc), "-cubin", arch, "-o", "trial.cubin", str(source)]
    try:
        run(command, limit=SECONDS, install=to_install())
    except ProcessError as error:
        words = error.stderr.strip() or "nvcc says nothing"
        raise ProcessError(command, error.status, words, _remedy()) from error


def _remedy() -> str:
    if os.environ.get(_CHOSEN):
        return f"unset {_CHOSEN}"
    return f"export {_CHOSEN}=COMPILER" if which(_HOST) else f"apt-get install {_HOST}"
