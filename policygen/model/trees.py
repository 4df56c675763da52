"""A tree of CUB or rocPRIM: its location, version and dialect."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from pydantic import Field

from policygen.model.records import Document, Record
from policygen.untrusted import json_text

Dialect = Literal["specializations", "selectors", "configs"]
Library = Literal["cub", "rocprim"]
OTHERS: Mapping[Dialect, Library] = {"configs": "rocprim"}
"""Libraries other than CUB by dialect."""
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NAMESPACES: Mapping[Dialect, str] = {"configs": "rocprim"}
"""The outermost namespace of a dialect's headers if it is not CUB's."""
OF_FUNCTIONS: frozenset[Dialect] = frozenset({"selectors"})
"""Dialects whose entries are returns of a policy selector; elsewhere they belong to families."""
OF_TYPES: frozenset[Dialect] = frozenset({"configs"})
"""Dialects whose conditional entries are for types; elsewhere they are returns of a function."""
COMPILED: frozenset[Library] = frozenset({"cub"})
"""Libraries whose kernels policygen compiles for GPUs and runs."""
CALLED: Mapping[Library, str] = {"cub": "CUB", "rocprim": "rocPRIM"}
UNKNOWN = "unknown"
"""The version of a tree that does not state it."""
FOUND_BY_STORE = "store"
"""How a tree was found that is used because the store has changed no other."""
FOUND_BY_ITSELF = frozenset({FOUND_BY_STORE, "cub_headers", "wheel", "toolkit"})
"""Places that are searched if no tree is named; nothing is written to trees found there."""


def side_by_side(dialect: Dialect) -> tuple[Dialect, ...]:
    """Returns the dialects in which a library's entries are written."""
    library = OTHERS.get(dialect)
    return tuple(
        dialect_of_library
        for dialect_of_library in DIALECTS
        if OTHERS.get(dialect_of_library) == library
    )


class Cub(Record):
    """A tree as the outputs name it; `root` is the include folder, with `cub/` or `rocprim/`."""

    root: str
    version: str
    dialect: Dialect
    found: str
    """How it was found.

    `--cub`, `policygen.toml`, `checkout`, `store`, `cub_headers`, `wheel`, `toolkit` or `header`.
    """
    includes: tuple[str, ...] = ()
    """Folders that a compiler needs with `-I`, `root` first."""
    changed: bool = False
    """Whether it was fetched, and is not as its wheel has it."""
    read_as: str = Field(default="", exclude=True)
    """The version with the bindings that hold instead of its own, as its headers say."""

    @property
    def bindings(self) -> str:
        """The version whose bindings apply, which may be followed by rows that override it.

        For a library other than CUB, its name comes first: `rocprim@4.2.0`.
        """
        library = OTHERS.get(self.dialect)
        version = self.read_as or self.version
        return f"{library}@{version}" if library else version

    @property
    def release(self) -> str:
        """The version as in results: preceded by the library's name unless it is CUB."""
        return self.bindings.partition("+")[0]

    @property
    def library(self) -> Library:
        """The tree's library."""
        return OTHERS.get(self.dialect, "cub")

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The dialects of its library's entries, which a tree may mix."""
        return side_by_side(self.dialect)

    @property
    def called(self) -> str:
        """The library's usual name: `CUB`."""
        return CALLED[self.library]

    @property
    def title(self) -> str:
        """The library and its version: `CUB 3.2.0`."""
        return f"{self.called} {self.version}"

    @property
    def has_selectors(self) -> bool:
        """Whether policy selectors make the decisions."""
        return self.dialect in OF_FUNCTIONS

    @property
    def has_returns(self) -> bool:
        """Whether its conditional entries are returns of functions."""
        return self.dialect not in OF_TYPES

    @property
    def has_machine_code(self) -> bool:
        """Whether policygen compiles its kernels for GPUs and compares their machine code."""
        return self.library in COMPILED

    @property
    def is_named(self) -> bool:
        """Whether a person named it or is inside it; other trees are never written to."""
        return self.found not in FOUND_BY_ITSELF

    @property
    def include_folders(self) -> tuple[str, ...]:
        """The include folders; only the root if no others are known."""
        return self.includes or (self.root,)


class Versioned(Record):
    """Something that holds for a range of CUB versions: `since <= version < below`."""

    since: str | None = None
    below: str | None = None

    def covers(self, version: tuple[int, ...]) -> bool:
        """Returns whether a version lies in the range."""
        return not (self.since and version < numbers(self.since)) and not (
            self.below and version >= numbers(self.below)
        )


# Versions and ranges of versions


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """Parses `3.2.0` to (3, 2, 0) for comparison."""
    return tuple(int(part) for part in plain(version).split("."))


def plain(version: str) -> str:
    """Strips the overriding rows and the library's name from a version.

    `3.6.0+topk/…=1` becomes 3.6.0, `rocprim@4.2.0` becomes 4.2.0.
    """
    return version.partition("+")[0].rpartition("@")[2]


def library_of(version: str) -> str:
    """Returns the library of a version, CUB by default."""
    return version.partition("@")[0] if "@" in version else "cub"


def release_title(version: str) -> str:
    """Returns the usual name of a version's library, and the plain version: `rocPRIM 4.2.0`."""
    names: dict[str, str] = dict(CALLED.items())
    return f"{names[library_of(version)]} {plain(version)}"


# Available and fetched trees

State = Literal["fetched", "current", "absent"]


class HeadersEntry(Record):
    """One release."""

    version: str
    """By which it is named: `3.0.1`, `rocprim@5.7.1`."""
    library: Library = "cub"
    holds: str | None = None
    """What its headers say, where it is named by another version."""
    wheel: str | None
    """`nvidia-cuda-cccl==13.0.85`, or the package `librocprim-dev=5.7.1-2`; none for a tree that
    the manifest does not know."""
    dialect: Dialect
    specializations: int | None
    state: State
    changed: tuple[str, ...] | None = None
    """Files that are not as they were fetched, as far as they can be named; none when all are."""


class Headers(Document):
    """What `policygen headers` prints with `--json`."""

    format: Literal["policygen/headers/1"] = "policygen/headers/1"
    folder: str
    """Where fetched trees are kept."""
    trees: tuple[HeadersEntry, ...]
    used: Cub | None
    """The tree that the command names; for `list`, the one that other commands would use here."""

    def to_json(self, **options: Any) -> str:
        """Returns the document as JSON text with absolute paths, which are its purpose."""
        return json_text(self.model_dump_json(indent=1, **options))
