"""Which commands are for CUB alone, and what one does instead with trees of other libraries."""

from collections.abc import Mapping

from policygen.errors import InputError
from policygen.model.cub import CALLED, Cub

_MEASURED = (
    "Measure with {called}'s own benchmarks: policygen db import reads what they write, and"
    " policygen plan says what it would change."
)
FOR_CUB: Mapping[str, str] = {
    "emit": "{called} takes other values from its headers: policygen apply writes them there.",
    "measure": _MEASURED,
    "search": _MEASURED,
    "tune": _MEASURED,
    "verify-performance": _MEASURED,
}
"""Command that needs nvcc or a GPU of NVIDIA → what one does with a tree of another library."""


def serves(command: str, cub: Cub) -> bool:
    """Whether a command has a meaning for a tree."""
    return command not in FOR_CUB or cub.has_machine_code


def offers_code(cub: Cub) -> bool:
    """Whether a comparison of machine code is offered unasked: not where few have the compiler."""
    return cub.has_machine_code


def check_serves(command: str, cub: Cub) -> None:
    """Refuses a tree that a command has no meaning for."""
    if not serves(command, cub):
        raise InputError(
            f"policygen {command} is for {CALLED['cub']}, and {cub.root} holds {cub.title}",
            FOR_CUB[command].format(called=cub.called),
        )
