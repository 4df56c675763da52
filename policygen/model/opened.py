"""What a header asks for before it holds anything."""

from policygen.model.base import Record


class Opening(Record):
    """What a header asks for, and holds nothing without; a question says that it is so."""

    macro: str
    """Without its parentheses: `_CCCL_CUB_HAS_TILE_TRANSFORM`."""
    header: str
    """The one that defines it."""
