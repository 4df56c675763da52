"""Loads `schemas/words.toml`, the vocabulary that all CUB headers share, and related tables."""

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field

from policygen.model.arch import Arch, arch_and_gpu, arch_number
from policygen.model.records import Record
from policygen.opening import load_toml
from policygen.rendering import folder


class Members(Record):
    """Members of families and fields of policies, by what they count."""

    threads: tuple[str, ...]
    items: tuple[str, ...]
    vectors: tuple[str, ...]

    def counts_threads(self, path: str) -> bool:
        """Returns whether a member, named by the last component of its path, counts threads."""
        return path.rpartition(".")[2] in self.threads


class Values(Record):
    """The names of policy values in all bindings."""

    algorithm: str
    delay: str


class SelectorWords(Record):
    """The names related to policy selectors."""

    name: str
    of_types: str
    types: str
    counts: str
    fancy: str
    fancy_header: str


class Tiles(Record):
    """The names related to a tile's elements."""

    sizes: str
    exchanges: frozenset[str]
    scatters: frozenset[str]
    algorithms: frozenset[str]
    static: dict[str, tuple[str, ...]]
    paired: dict[str, tuple[str, ...]]
    shortened: frozenset[str]
    outside: frozenset[str]
    channels: str


class Benchmarks(Record):
    """The naming of CUB's benchmarks."""

    prefix: str


class NamespaceHeader(Record):
    """A header that defines the macros with which a library opens its namespace."""

    library: str
    """As the names of its macros begin."""
    header: str
    version: str
    """The header with the library's version."""
    opening: str
    """The macro that opens the library's own inline namespace."""
    closing: str
    only_if: str = ""
    """The condition under which the library's symbols depend on CUB."""


class Vocabulary(Record):
    """The contents of `words.toml`."""

    members: Members
    values: Values
    selectors: SelectorWords
    tiles: Tiles
    benchmarks: Benchmarks
    older: dict[str, tuple[str, ...]]
    """Policy member or enumerator → former names; an empty name means that there was none."""
    namespaces: tuple[NamespaceHeader, ...]


@cache
def words() -> Vocabulary:
    """Loads the vocabulary."""
    return load_toml(folder("schemas") / "words.toml", Vocabulary)


class ArchFacts(Record):
    """Facts about one architecture."""

    name: Arch
    static: int
    """Bytes of static shared memory that a block may declare."""
    opt_in: int | None = None
    """Maximum bytes of shared memory for a block, if known."""
    gpus: tuple[str, ...] = ()


class Archs(Record):
    """The contents of `archs.toml`."""

    archs: tuple[ArchFacts, ...] = Field(alias="arch")
    older: tuple[Arch, ...] = ()
    """Architectures without facts that trees may still name."""
    amd: tuple[Arch, ...] = ()
    """AMD's architectures, which have no order."""
    generations: dict[str, tuple[Arch, ...]] = Field(default_factory=dict)
    """AMD's architectures by generation, as rocPRIM names it."""
    numbers: dict[Arch, int] = Field(default_factory=dict)
    """Numbers of those AMD architectures that are not numbered by their name."""


# Architectures (`schemas/archs.toml`): shared memory and GPUs


@cache
def archs_file() -> Archs:
    """Loads the file."""
    return load_toml(folder("schemas") / "archs.toml", Archs)


def ladder() -> tuple[str, ...]:
    """Returns the known architectures from oldest to newest."""
    return tuple(archs())


def generation(arch: str) -> str | None:
    """Returns rocPRIM's name for the generation of an AMD architecture."""
    plain_arch, _ = arch_and_gpu(arch)
    return next(
        (name for name, archs in archs_file().generations.items() if plain_arch in archs), None
    )


def table_number(arch: str) -> int:
    """Returns the number of an AMD architecture in a handwritten table."""
    plain_arch, _ = arch_and_gpu(arch)
    number = archs_file().numbers.get(plain_arch)
    digits = plain_arch.removeprefix("gfx")
    return number or (int(digits) if digits.isdigit() else 0)


@cache
def of_table(number: int) -> str | None:
    """Returns the AMD architecture with an explicit number in a handwritten table."""
    return next(
        (arch for arch, own_number in archs_file().numbers.items() if own_number == number), None
    )


def next_arch(arch: str) -> str | None:
    """Returns the next newer architecture, whose policy must stay the same."""
    newer = (name for name in ladder() if arch_number(name) > arch_number(arch))
    return next(newer, None)


def known_arch(arch: str) -> str:
    """Returns the last known architecture up to one that may be unknown."""
    older = [name for name in ladder() if arch_number(name) <= arch_number(arch)]
    return older[-1] if older else arch


@cache
def archs() -> dict[str, ArchFacts]:
    """Returns the facts about known architectures by name."""
    return {arch.name: arch for arch in archs_file().archs}


@cache
def gpu_archs() -> dict[str, str]:
    """Maps each GPU to its architecture; longer names come first, since `L40S` contains `L40`."""
    pairs = [(gpu, arch.name) for arch in archs().values() for gpu in arch.gpus]
    return dict(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[0])))


def gpu_arch(gpu: str) -> str | None:
    """Returns the architecture of a GPU as a database names it: `H200 (6144, 132, eccon)`."""
    name = gpu.partition("(")[0]
    for known_gpu, arch in gpu_archs().items():
        if re.search(rf"\b{re.escape(known_gpu)}\b", name, re.IGNORECASE):
            return arch
    return None


# Dependencies on the compile environment (`schemas/outside.toml`) and where they are allowed


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]


class Places(Record):
    """Words that the compiler expands by their position, after preprocessing."""

    words: tuple[str, ...]
    known: tuple[str, ...]
    """Files that contain them but that no tuning uses."""


class Allowed(Record):
    """The dependencies allowed in the files of one part of a tree."""

    conditions: tuple[Pattern, ...]
    """Macros that may be tested without a definition in the tree."""
    macros: tuple[Pattern, ...]
    """Macros that may be used although they depend on the environment."""


class LibraryPart(Allowed):
    """A part of another library's tree, selected by a prefix of file names."""

    prefix: str
    beneath: bool = False
    """Whether no tuning lies in it, so that only the `nowhere` words are forbidden."""


class Outside(Record):
    """The contents of `outside.toml`."""

    words: dict[str, str]
    """What each word reveals about the compile."""
    nowhere: tuple[str, ...]
    """Words forbidden in all files of a tree; the others are forbidden in `cub/` only."""
    own: tuple[Pattern, ...]
    """The naming of the tree's own macros."""
    known: dict[str, tuple[str, ...]]
    """File → words that its macros may contain."""
    files: tuple[str, ...]
    """Headers whose presence may be tested, since it follows from the compiler."""
    tunings: Allowed
    cub: Allowed
    beneath: Allowed
    parts: tuple[LibraryPart, ...] = Field(alias="part", default=())
    """Parts of libraries other than CUB; the first match applies."""
    places: Places


@cache
def outside() -> Outside:
    """Loads the rules for dependencies on the environment."""
    return load_toml(folder("schemas") / "outside.toml", Outside)
