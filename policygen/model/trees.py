"""A tree of CUB or rocPRIM: its location, version and dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, InstanceOf

from policygen.model.records import Document, Record
from policygen.portable import nearby
from policygen.untrusted import json_text

Dialect = Literal["specializations", "selectors", "configs"]
Library = Literal["cub", "rocprim"]
OTHERS: Mapping[Dialect, Library] = {"configs": "rocprim"}
"""Libraries other than CUB by dialect; a library's name is also its outermost namespace."""
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
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
    return tuple(candidate for candidate in DIALECTS if OTHERS.get(candidate) == library)


@dataclass(frozen=True, eq=False)
class OwnFile:
    """A user's workload or kernel file that is added to the bindings."""

    path: Path

    @property
    def folder(self) -> Path:
        """The folder of the file, with the files it includes."""
        return self.path.resolve().parent


@dataclass(frozen=True, slots=True)
class BoundVersion:
    """A version whose bindings apply, and what a user adds to them."""

    text: str
    """May be followed by rows that override its own: `3.6.0+topk/…=1`.

    For a library other than CUB, its name comes first: `rocprim@4.2.0`.
    """
    own: OwnFile | None = None

    def at(self, text: str) -> Self:
        """Returns another version, with the same additions."""
        return replace(self, text=text)

    @property
    def release(self) -> Self:
        """The same without rows that override the version's own."""
        return self.at(self.text.partition("+")[0])

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version for comparison: (3, 6, 0)."""
        return numbers(self.text)

    @property
    def library(self) -> str:
        """The library's name: `cub`."""
        return library_of(self.text)

    @property
    def plain(self) -> str:
        """The version without the library's name and the overriding rows: `3.6.0`."""
        return plain(self.text)

    @property
    def title(self) -> str:
        """The library's usual name, and the plain version: `CUB 3.6.0`."""
        names: dict[str, str] = dict(CALLED.items())
        return f"{names[self.library]} {self.plain}"


class Cub(Record):
    """A tree as named in outputs; `root` is the include folder, with `cub/` or `rocprim/`."""

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
    """Whether it was fetched and differs from its wheel."""
    read_as: str = Field(default="", exclude=True)
    """The version of the bindings to use instead of its own, detected from its headers."""
    own: InstanceOf[OwnFile] | None = Field(default=None, exclude=True)
    """A user's workload or kernel, if a command is for one."""

    @property
    def bindings(self) -> BoundVersion:
        """The bindings that apply."""
        library = OTHERS.get(self.dialect)
        version = self.read_as or self.version
        return BoundVersion(f"{library}@{version}" if library else version, self.own)

    @property
    def release(self) -> str:
        """The version as written in results: preceded by the library's name unless it is CUB."""
        return self.bindings.release.text

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


def tree_line(cub: Cub) -> str:
    """Names the tree that an output is about, and how it was found."""
    origin = f"{cub.found}, changed since it was fetched" if cub.changed else cub.found
    return f"{cub.called} {cub.version} ({cub.dialect}), {nearby(Path(cub.root))} [{origin}]"


class Versioned(Record):
    """Something that holds for a range of CUB versions: `since <= version < below`."""

    since: str | None = None
    below: str | None = None

    def covers(self, version: tuple[int, ...]) -> bool:
        """Returns whether a version lies in the range."""
        return not (self.since and version < numbers(self.since)) and not (
            self.below and version >= numbers(self.below)
        )


class GainedMember(Versioned):
    """A member that a policy selector gets, last and with a default, if it has none of its name."""

    type: str
    default: str
    argument: str
    """Its value in terms of the types of `policy_selector_from_types`."""
    template: str
    """C++ before the selector, which the argument uses."""
    includes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """Other members that returns then test, too."""
    axis: str
    values: dict[str, str]
    """Value of the axis → value of the member, without its type."""


# Versions and ranges of versions


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """Parses `3.2.0` to (3, 2, 0) for comparison."""
    return tuple(int(part) for part in plain(version).split("."))


def version_of(number: int) -> str:
    """Spells the number of CUB's and rocPRIM's macros: 300600 is `3.6.0`."""
    return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"


def plain(version: str) -> str:
    """Strips the overriding rows and the library's name from a version.

    `3.6.0+topk/…=1` becomes 3.6.0, `rocprim@4.2.0` becomes 4.2.0.
    """
    return version.partition("+")[0].rpartition("@")[2]


def library_of(version: str) -> str:
    """Returns the library of a version, CUB by default."""
    return version.partition("@")[0] if "@" in version else "cub"


# Available and fetched trees

State = Literal["fetched", "current", "absent"]


class HeadersEntry(Record):
    """One release."""

    version: str
    """The name of the release: `3.0.1`, `rocprim@5.7.1`."""
    library: Library = "cub"
    holds: str | None = None
    """The version in its headers, if it differs from the name."""
    wheel: str | None
    """`nvidia-cuda-cccl==13.0.85`, or the package `librocprim-dev=5.7.1-2`; none for a tree that
    the manifest does not know."""
    dialect: Dialect
    specializations: int | None
    state: State
    changed: tuple[str, ...] | None = None
    """Files that changed since they were fetched, as far as known; null if unchanged."""


class Headers(Document):
    """What `policygen headers` prints with `--json`."""

    format: Literal["policygen/headers/1"] = "policygen/headers/1"
    folder: str
    """Where fetched trees are kept."""
    trees: tuple[HeadersEntry, ...]
    used: Cub | None
    """The named tree; for `list`, the tree that other commands would use here."""

    def to_json(self, **options: Any) -> str:
        """Returns the document as JSON text with absolute paths, which are its purpose."""
        return json_text(self.model_dump_json(indent=1, **options))
