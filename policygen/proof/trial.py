"""Whether nvcc, its parts, its headers and the host compiler work together."""

import os

from policygen import resources
from policygen.environment import which
from policygen.errors import ProcessError
from policygen.process import run
from policygen.proof.toolchain import Toolchain, to_install

SECONDS = 120.0
"""On a busy machine; an idle one takes one."""
_HOST = "g++"
_CHOSEN = "NVCC_CCBIN"


def compile_trial(toolchain: Toolchain) -> None:
    """Compiles a kernel for the newest architecture; what fails, and what may help, is raised."""
    source = resources.folder("templates") / "probe" / "trial.cu"
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
