"""The dialects of trees, and which one a tree has."""

from collections.abc import Mapping
from typing import Final

from policygen.dialects.protocol import Dialect
from policygen.dialects.selectors.dialect import Selectors
from policygen.dialects.specializations.dialect import Specializations
from policygen.model.cub import Cub
from policygen.model.cub import Dialect as Name

DIALECTS: Final[Mapping[Name, Dialect]] = {
    "specializations": Specializations(),
    "selectors": Selectors(),
}


def dialect_of(cub: Cub) -> Dialect:
    """How the tunings of a tree are spelled."""
    return DIALECTS[cub.dialect]
