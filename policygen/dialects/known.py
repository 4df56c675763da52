"""The dialects of trees, and which one a tree has."""

from collections.abc import Mapping

from policygen.dialects.configs.dialect import Configs
from policygen.dialects.protocol import Dialect, TuningTree
from policygen.dialects.selectors.dialect import Selectors
from policygen.dialects.specializations.dialect import Specializations
from policygen.model.cub import Dialect as Name

DIALECTS: Mapping[Name, type[Selectors] | type[Specializations] | type[Configs]] = {
    "specializations": Specializations,
    "selectors": Selectors,
    "configs": Configs,
}


def dialect_of(sources: TuningTree, arch: str, below: str | None) -> Dialect:
    """How the tunings of a tree are spelled; `below` is the architecture that keeps what it has."""
    return DIALECTS[sources.cub.dialect](sources, arch, below)
