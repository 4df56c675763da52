"""What the manifest says of a library: where its trees have what, and where they are looked for."""

from typing import Annotated

from pydantic import Field

from policygen.model.base import Record
from policygen.model.cub import Dialect

Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]


class VersionRule(Record):
    """How the version of a tree is told: by a macro of a header."""

    file: str
    macro: str
    """Its number is 100,000 times the first part, 100 times the second, and the third."""
    project: str | None = None
    """What says it in a checkout, where the header is not made yet; from the include folder."""
    variable: str = ""


class TreeFiles(Record):
    """Where things stand below an include folder."""

    folder: str
    """What `#include` names first."""
    sources: str
    """How its files are called."""
    marks: tuple[str, ...]
    checkout_mark: str
    version: VersionRule
    tunings: str
    headers: str
    """How tuning headers are called in their folder."""
    older_tunings: tuple[str, ...] = ()
    """Where that folder is missing."""
    others: tuple[str, ...] = ()
    """Tuning headers elsewhere."""


class Layouts(Record):
    """Where include folders stand below a checkout, a site-packages folder, a toolkit."""

    checkout: tuple[str, ...]
    wheel: tuple[str, ...]
    toolkit: tuple[str, ...]
    beside_checkout: tuple[str, ...]


class Toolkits(Record):
    """What leads to an installed toolkit."""

    variables: tuple[str, ...]
    program: str
    folders: tuple[str, ...]


class DialectRule(Record):
    """How the dialect of a tree is told, where a library has several."""

    header: str
    selectors: str
    since: Version


class FetchedRule(Record):
    """How fetched trees are called and kept: what stands before their version."""

    name: str = ""
    folder: str = ""
    include: str = "."
    """The include folder in that of a tree."""


class LibraryRow(Record):
    """All that is known of a library's trees."""

    default: str
    kinds: str
    """What a person may name."""
    dialect: DialectRule | Dialect
    needs: str | None = None
    """A header of others, without which it cannot be compiled."""
    fetched: FetchedRule = FetchedRule()
    tree: TreeFiles
    layouts: Layouts
    toolkits: Toolkits
