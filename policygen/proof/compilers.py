"""The compiler that says what a library selects."""

from collections.abc import Callable, Mapping

from policygen.model.cub import Cub, Library
from policygen.proof.host_compiler import HostCompiler, find_host_compiler
from policygen.proof.toolchain import Toolchain, find_toolchain

COMPILERS: Mapping[Library, Callable[[], Toolchain | HostCompiler]] = {
    "cub": find_toolchain,
    "rocprim": find_host_compiler,
}
IN_PLACE: frozenset[Library] = frozenset({"rocprim"})
"""Whose compilers take other content for files, where headers include each other by place."""


def compiler_of(cub: Cub) -> Toolchain | HostCompiler:
    """Finds the compiler for a tree."""
    return COMPILERS[cub.library]()
