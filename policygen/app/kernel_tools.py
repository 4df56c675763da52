"""The compiler that makes the kernels of a tree, and the architectures that it does so for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policygen.app.reading import read_tree
from policygen.errors import InputError
from policygen.model.arch import UNKNOWN, arch_and_gpu, arch_number
from policygen.model.cub import Cub, Library
from policygen.process import threads
from policygen.proof.hipcc import find_hipcc, find_target
from policygen.proof.sass.build import Tools
from policygen.proof.sass.hip import HipTools
from policygen.proof.sass.unit_job import KernelTools
from policygen.proof.toolchain import Toolchain, find_toolchain

NO_CODE = "it stands for architectures that have no configs of their own"


@dataclass(frozen=True, slots=True)
class CodeMaker:
    """A compiler of kernels."""

    tools: KernelTools
    compiler: str
    """`nvcc`."""
    archs: tuple[str, ...]
    """What it compiles for; where it depends on the tree, of those that are asked about."""
    seconds: float
    """What a unit takes, on one core."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Why it does not compile for others that are asked about."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What nothing is known of, as it cannot be compiled."""
        lost = sorted(self.refusals, key=arch_number)
        return tuple(f"{arch} is not compared: {self.refusals[arch]}" for arch in lost)


def nvcc_maker(toolchain: Toolchain) -> CodeMaker:
    """Takes a toolchain of NVIDIA's."""
    return CodeMaker(Tools.of(toolchain), "nvcc", toolchain.archs, 5.0)


def find_kernel_maker(cub: Cub, archs: Sequence[str] = (), hipcc: Path | None = None) -> CodeMaker:
    """Finds what compiles the kernels of a tree for archs, else for all that it has tunings for."""
    return _MAKERS[cub.library](cub, archs, hipcc)


def _with_nvcc(cub: Cub, _archs: Sequence[str], hipcc: Path | None) -> CodeMaker:
    if hipcc is not None:
        raise InputError(
            f"--hipcc names a compiler for GPUs of AMD, and {cub.root} holds {cub.title}",
            "Leave it out.",
        )
    return nvcc_maker(find_toolchain())


def _with_hipcc(cub: Cub, archs: Sequence[str], named: Path | None) -> CodeMaker:
    hipcc = find_hipcc(named)
    families = (family for header in read_tree(cub).headers for family in header.families)
    wanted = {*archs, *(arch_and_gpu(family.arch)[0] for family in families)}
    asked = sorted(wanted - {UNKNOWN}, key=arch_number)
    with threads() as pool:
        targets = list(pool.map(lambda arch: find_target(hipcc, arch), asked))
    refusals = {
        one.arch: f"{hipcc.name} does not compile for it: {one.refusal}"
        for one in targets
        if not one.identity
    }
    refusals |= {UNKNOWN: NO_CODE} if UNKNOWN in wanted else {}
    tools = HipTools.of(hipcc, targets)
    return CodeMaker(tools, "hipcc", tools.archs, 2.0, refusals)


_MAKERS: Mapping[Library, Callable[[Cub, Sequence[str], Path | None], CodeMaker]] = {
    "cub": _with_nvcc,
    "rocprim": _with_hipcc,
}
