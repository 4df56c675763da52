"""`schemas/words.toml`: what CUB calls the same things in all of its headers."""

from functools import cache

from policygen.config import load_toml
from policygen.model.base import Record
from policygen.resources import folder


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
