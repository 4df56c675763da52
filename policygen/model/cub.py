"""A tree of CUB, or of rocPRIM: where it is, which version, and how its tunings are written."""

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import Field

from policygen.model.base import Record

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
