"""`schemas/archs.toml`: shared memory per architecture, and which GPUs are of it."""

import re
from functools import cache

from pydantic import Field

from policygen.config import load_toml
from policygen.model.arch import Arch, arch_and_gpu, arch_number
from policygen.model.base import Record
from policygen.resources import folder


class ArchFacts(Record):
    """One architecture."""

    name: Arch
    static: int
    """Bytes of shared memory that a block may declare."""
    opt_in: int | None = None
    """Bytes of shared memory that a block may have at all, where it is known."""
    gpus: tuple[str, ...] = ()


class Archs(Record):
    """The file."""

    archs: tuple[ArchFacts, ...] = Field(alias="arch")
    older: tuple[Arch, ...] = ()
    """Architectures of which nothing needs to be known, and which trees may still name."""
    amd: tuple[Arch, ...] = ()
    """AMD's, of which none comes after another."""
    generations: dict[str, tuple[Arch, ...]] = Field(default_factory=dict)
    """Those of AMD's that are of one generation, as rocPRIM calls it."""
    numbers: dict[Arch, int] = Field(default_factory=dict)
    """Those of AMD's whose number is not the one that they are called by."""


@cache
def _known() -> Archs:
    return load_toml(folder("schemas") / "archs.toml", Archs)


def ladder() -> tuple[str, ...]:
    """The architectures that are known, from the oldest to the newest."""
    return tuple(archs())


def older() -> tuple[str, ...]:
    """Other architectures that there were."""
    return _known().older


def amd_archs() -> tuple[str, ...]:
    """AMD's architectures."""
    return _known().amd


def generation(arch: str) -> str | None:
    """What rocPRIM calls the generation of one of AMD's architectures."""
    plain, _ = arch_and_gpu(arch)
    return next((name for name, lot in _known().generations.items() if plain in lot), None)


def table_number(arch: str) -> int:
    """The number of one of AMD's architectures in a table that is written by hand."""
    plain, _ = arch_and_gpu(arch)
    known = _known().numbers.get(plain)
    digits = plain.removeprefix("gfx")
    return known or (int(digits) if digits.isdigit() else 0)


@cache
def of_table(number: int) -> str | None:
    """The architecture whose number there is not the one that it is called by."""
    return next((arch for arch, own in _known().numbers.items() if own == number), None)


def next_arch(arch: str) -> str | None:
    """The architecture that comes after one: its policy keeps what it had."""
    later = (name for name in ladder() if arch_number(name) > arch_number(arch))
    return next(later, None)


@cache
def archs() -> dict[str, ArchFacts]:
    """What is known, by name."""
    return {arch.name: arch for arch in _known().archs}


@cache
def gpu_archs() -> dict[str, str]:
    """Each GPU's architecture; longer names first, as `L40S` holds `L40`."""
    pairs = [(gpu, arch.name) for arch in archs().values() for gpu in arch.gpus]
    return dict(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[0])))


def gpu_arch(gpu: str) -> str | None:
    """The architecture of a GPU as a database names it: `H200 (6144, 132, eccon)`."""
    name = gpu.partition("(")[0]
    for known, arch in gpu_archs().items():
        if re.search(rf"\b{re.escape(known)}\b", name, re.IGNORECASE):
            return arch
    return None
