"""`schemas/words.toml`: what CUB calls the same things in all of its headers."""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field

from policygen.model.arch import Arch, arch_and_gpu, arch_number
from policygen.model.records import Record
from policygen.rendering import folder
from policygen.settings import load_toml


class Members(Record):
    """Members of families, and fields of policies, by what they count."""

    threads: tuple[str, ...]
    items: tuple[str, ...]
    vectors: tuple[str, ...]

    def counts_threads(self, path: str) -> bool:
        """Whether a member, by the last part of its path, has the threads of a block."""
        return path.rpartition(".")[2] in self.threads


class Values(Record):
    """What values of a policy are called in all bindings."""

    algorithm: str
    delay: str


class SelectorWords(Record):
    """The names around policy selectors."""

    name: str
    of_types: str
    types: str
    counts: str


class Tiles(Record):
    """What tells of a tile's elements."""

    sizes: str
    exchanges: frozenset[str]
    algorithms: frozenset[str]
    static: dict[str, tuple[str, ...]]
    outside: frozenset[str]
    channels: str


class Benchmarks(Record):
    """How CUB calls its benchmarks."""

    prefix: str


class Vocabulary(Record):
    """The file."""

    members: Members
    values: Values
    selectors: SelectorWords
    tiles: Tiles
    benchmarks: Benchmarks
    older: dict[str, tuple[str, ...]]
    """Member of a policy, or enumerator → what it was called before; nothing where none was."""


@cache
def words() -> Vocabulary:
    """What is known."""
    return load_toml(folder("schemas") / "words.toml", Vocabulary)


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


# `schemas/archs.toml`: shared memory per architecture, and which GPUs are of it.


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


# `schemas/outside.toml`: what a header can ask of a compile beside its types, and who may.


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]


class Places(Record):
    """Words that a compiler answers by where they stand, after the preprocessor."""

    words: tuple[str, ...]
    known: tuple[str, ...]
    """Files that hold them and are used by no tuning."""


class Allowed(Record):
    """What the files of one part of a tree may ask."""

    conditions: tuple[Pattern, ...]
    """Macros that may be tested without being defined before, in the tree."""
    macros: tuple[Pattern, ...]
    """Macros that may be used although they ask."""


class LibraryPart(Allowed):
    """A part of another library's tree, by the beginning of the names of its files."""

    prefix: str
    beneath: bool = False
    """Whether no tuning stands in it, so that it may ask for all but what no file needs."""


class Outside(Record):
    """The file."""

    words: dict[str, str]
    """What each tells."""
    nowhere: tuple[str, ...]
    """Words that no file of a tree needs; others are refused in `cub/` alone."""
    own: tuple[Pattern, ...]
    """What macros of the tree are called."""
    known: dict[str, tuple[str, ...]]
    files: tuple[str, ...]
    """Words that the macros of a file may mention."""
    tunings: Allowed
    cub: Allowed
    beneath: Allowed
    parts: tuple[LibraryPart, ...] = Field(alias="part", default=())
    """Of other libraries than CUB; the first that fits counts."""
    places: Places


@cache
def outside() -> Outside:
    """What is known."""
    return load_toml(folder("schemas") / "outside.toml", Outside)
