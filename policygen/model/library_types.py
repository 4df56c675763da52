"""What stands in the `types.toml` of another library than CUB."""

from policygen.model.base import Record
from policygen.model.bindings import AxisType, Group


class LibraryTypes(Record):
    """`schemas/bindings/LIBRARY/types.toml`: what the axes of another library than CUB have."""

    types: tuple[AxisType, ...]
    groups: tuple[Group, ...] = ()
    compiled: tuple[str, ...]
    """The versions whose headers the bindings were compiled with."""
