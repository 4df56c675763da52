"""The real listings of `fixtures/sass`, and kernels out of them."""

from pathlib import Path

from policygen.proof import kernel_build
from policygen.proof.kernel_code import read_listing

FOLDER = Path(__file__).parents[3] / "fixtures" / "sass"
SUM_INT = "_ZN3lib17CUB_300001_SM_9009SumKernelINS0_10policy_hubIiE9Policy900EiEEvPKT0_PS5_i"
SUM_FLOAT = "_ZN3lib17CUB_300001_SM_9009SumKernelINS0_10policy_hubIfE9Policy900EfEEvPKT0_PS5_i"
EMPTY = "_ZN3lib17CUB_300001_SM_90011EmptyKernelEv"
CPP = {
    SUM_INT: "void lib::CUB_300001_SM_900::SumKernel<lib::CUB_300001_SM_900::policy_hub<int>"
    "::Policy900, int>(int const*, int*, int)",
    SUM_FLOAT: "void lib::CUB_300001_SM_900::SumKernel<lib::CUB_300001_SM_900::policy_hub<float>"
    "::Policy900, float>(float const*, float*, int)",
    EMPTY: "lib::CUB_300001_SM_900::EmptyKernel()",
}


def text(arch):
    """What cuobjdump prints."""
    return (FOLDER / f"{arch}.sass").read_text()


def kernels(arch="sm90"):
    """By name."""
    return {kernel.name: kernel for kernel in read_listing(text(arch), f"{arch}.sass")}


def renamed(kernel, **changes):
    """A kernel with other fields."""
    return kernel.model_copy(update=changes)


def build(job, tools, cache):
    """Kernels with a digest of their code."""
    return kernel_build.build(job, tools, cache, listed=False)


def disassemble(job, tools, cache):
    """Kernels with their instructions."""
    return kernel_build.build(job, tools, cache, listed=True)
