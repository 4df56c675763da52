"""What `schemas/benchmarks.toml` says about CCCL, NVBench and the build."""

import tomllib
from functools import cache

from pydantic import Field

from policygen.model.base import Record
from policygen.resources import folder


class Files(Record):
    """Where things stand in a checkout."""

    folders: tuple[str, ...]
    version: str
    helper: str
    helpers: tuple[str, ...]


class Build(Record):
    """The macros that the build itself sets, and those that it leaves out."""

    defined: dict[str, int]
    undefined: frozenset[str]
    undefined_prefixes: tuple[str, ...]


class Lists(Record):
    """The templates that make type lists, by what they do."""

    plain: frozenset[str]
    values: frozenset[str]
    joins: frozenset[str]
    choices: frozenset[str]


class TypeStrings(Record):
    """NVBench's input strings of the built-in types."""

    namespaces: tuple[str, ...]
    constants: frozenset[str]
    same: dict[str, str]
    strings: dict[str, str]


class Helper(Record):
    """The predefined lists of CUB versions below `below` (0: of all later ones)."""

    below: int
    source: str


class WrittenFill(Record):
    """How a vector of a source gets its contents."""

    call: str
    """The generator as bindings call it: `uniform({0})`."""
    init: str
    then: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    entropy: int | None = None
    """Which argument is one."""


class WrittenNames(Record):
    """What sources that are written call things."""

    types: dict[str, str]
    words: dict[str, str]
    fills: tuple[WrittenFill, ...]


class Knowledge(Record):
    """The whole file."""

    files: Files
    build: Build
    platform: dict[str, int]
    lists: Lists
    types: TypeStrings
    helpers: tuple[Helper, ...] = Field(alias="helper")
    written: WrittenNames

    def helper(self, version: int | None) -> Helper:
        """The predefined lists of a CUB version; of the newest when that is unknown."""
        for helper in self.helpers:
            if version is not None and version < helper.below:
                return helper
        return self.helpers[-1]


@cache
def knowledge() -> Knowledge:
    """Read once."""
    path = folder("schemas") / "benchmarks.toml"
    return Knowledge.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
