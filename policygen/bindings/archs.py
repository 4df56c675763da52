"""`schemas/archs.toml`: shared memory per architecture, and which GPUs are of it."""

from functools import cache

from pydantic import Field

from policygen.config import load_toml
from policygen.model.arch import Arch
from policygen.model.base import Record
from policygen.resources import folder


class ArchFacts(Record):
    """One architecture."""

    name: Arch
    static: int
    """Bytes of shared memory that a block may declare."""
    opt_in: int
    """Bytes of shared memory that a block may have at all."""
    gpus: tuple[str, ...] = ()


class Archs(Record):
    """The file."""

    archs: tuple[ArchFacts, ...] = Field(alias="arch")


@cache
def archs() -> dict[str, ArchFacts]:
    """What is known, by name."""
    return {arch.name: arch for arch in load_toml(folder("schemas") / "archs.toml", Archs).archs}


@cache
def gpu_archs() -> dict[str, str]:
    """Each GPU's architecture; longer names first, as `L40S` holds `L40`."""
    pairs = [(gpu, arch.name) for arch in archs().values() for gpu in arch.gpus]
    return dict(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[0])))
