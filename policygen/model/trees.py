"""A tree of CUB, or of rocPRIM: where it is, which version, and how its tunings are written."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from pydantic import Field

from policygen.model.records import Document, Record
from policygen.untrusted import json_text

Dialect = Literal["specializations", "selectors", "configs"]
Library = Literal["cub", "rocprim"]
OTHERS: Mapping[Dialect, Library] = {"configs": "rocprim"}
"""Whose headers are written in a dialect; in all others CUB's are."""
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NAMESPACES: Mapping[Dialect, str] = {"configs": "rocprim"}
"""The outermost namespace of a dialect's headers, where it is not CUB's."""
OF_FUNCTIONS: frozenset[Dialect] = frozenset({"selectors"})
"""Where an entry is a return of a policy selector; elsewhere it belongs to a family."""
OF_TYPES: frozenset[Dialect] = frozenset({"configs"})
"""Where an entry with a condition is for types; elsewhere it is a return of a function."""
COMPILED: frozenset[Library] = frozenset({"cub"})
"""Whose kernels policygen compiles for GPUs, and runs on them."""
CALLED: Mapping[Library, str] = {"cub": "CUB", "rocprim": "rocPRIM"}
UNKNOWN = "unknown"
"""The version of a tree that does not say it."""
FOUND_BY_ITSELF = frozenset({"cub_headers", "wheel", "toolkit"})
"""Places that are looked at when nobody names a tree: what stands there serves other programs."""


def side_by_side(dialect: Dialect) -> tuple[Dialect, ...]:
    """The dialects in which entries of the same library are written."""
    own = OTHERS.get(dialect)
    return tuple(one for one in DIALECTS if OTHERS.get(one) == own)


class Cub(Record):
    """A tree as the outputs name it; `root` is the include folder, with `cub/` or `rocprim/`."""

    root: str
    version: str
    dialect: Dialect
    found: str
    """`--cub`, `policygen.toml`, `checkout`, `cub_headers`, `wheel`, `toolkit` or `header`."""
    includes: tuple[str, ...] = ()
    """Folders that a compiler needs with `-I`, `root` first."""
    changed: bool = False
    """Whether it was fetched, and is not as its wheel has it."""
    read_as: str = Field(default="", exclude=True)
    """The version with the bindings that hold instead of its own, as its headers say."""

    @property
    def bindings(self) -> str:
        """Which bindings hold: those of its version, unless its headers say otherwise.

        Of another library than CUB its name comes first: `rocprim@4.2.0`.
        """
        own = OTHERS.get(self.dialect)
        version = self.read_as or self.version
        return f"{own}@{version}" if own else version

    @property
    def release(self) -> str:
        """Its version as results have it: of another library than CUB with its name."""
        return self.bindings.partition("+")[0]

    @property
    def library(self) -> Library:
        """Whose tree it is."""
        return OTHERS.get(self.dialect, "cub")

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """Those in which entries of its library are written, which a tree may have side by side."""
        return side_by_side(self.dialect)

    @property
    def called(self) -> str:
        """What people call the library: `CUB`."""
        return CALLED[self.library]

    @property
    def title(self) -> str:
        """The library and its version: `CUB 3.2.0`."""
        return f"{self.called} {self.version}"

    @property
    def has_selectors(self) -> bool:
        """Whether policy selectors decide in it."""
        return self.dialect in OF_FUNCTIONS

    @property
    def has_returns(self) -> bool:
        """Whether its entries with conditions are returns of functions."""
        return self.dialect not in OF_TYPES

    @property
    def has_machine_code(self) -> bool:
        """Whether policygen compiles what it selects for GPUs, and compares that."""
        return self.library in COMPILED

    @property
    def is_named(self) -> bool:
        """Whether a person named it, or stands in it: else it is not written to."""
        return self.found not in FOUND_BY_ITSELF

    @property
    def include_folders(self) -> tuple[str, ...]:
        """The same where nobody looked for more than the root."""
        return self.includes or (self.root,)


class Versioned(Record):
    """Something that holds for a range of CUB versions: `since <= version < below`."""

    since: str | None = None
    below: str | None = None

    def covers(self, version: tuple[int, ...]) -> bool:
        """Whether a version lies in the range."""
        return not (self.since and version < numbers(self.since)) and not (
            self.below and version >= numbers(self.below)
        )


# Versions of CUB, and what holds for a range of them.


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """`3.2.0` as (3, 2, 0): versions compare part by part."""
    return tuple(int(part) for part in plain(version).split("."))


def plain(version: str) -> str:
    """A version without the rows that hold instead of its own, and without the library's name.

    `3.6.0+topk/…=1` is 3.6.0, `rocprim@4.2.0` is 4.2.0.
    """
    return version.partition("+")[0].rpartition("@")[2]


def library_of(version: str) -> str:
    """The library of a version, CUB where it names none."""
    return version.partition("@")[0] if "@" in version else "cub"


# The trees that can be had and those that are here.

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
        """As JSON text, with the paths as they are: where trees are is what is asked."""
        return json_text(self.model_dump_json(indent=1, **options))
