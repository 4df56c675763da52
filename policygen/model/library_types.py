"""`schemas/bindings/LIBRARY/types.toml`: what the axes of another library than CUB have."""

from policygen.model.base import Record
from policygen.model.bindings import AxisType, Group
from policygen.model.versions import Versioned


class LibraryTypes(Record):
    """`schemas/bindings/LIBRARY/types.toml`: what the axes of another library than CUB have."""

    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    tested: Versioned = Versioned()
    """The versions whose benchmarks the bindings were compared with; all where it says none."""
    compiled: tuple[str, ...]
    """The versions whose headers the bindings were compiled with."""
