"""The dialects of trees, and which one a tree has."""

from typing import Final

from policygen.dialects.protocol import Dialect
from policygen.dialects.selectors.dialect import Selectors
from policygen.dialects.specializations.dialect import Specializations
from policygen.model.cub import Cub

SPECIALIZATIONS: Final = Specializations()
SELECTORS: Final = Selectors()


def dialect_of(cub: Cub) -> Dialect:
    """How the tunings of a tree are spelled."""
    return SELECTORS if cub.dialect == "selectors" else SPECIALIZATIONS
