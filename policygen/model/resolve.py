"""Which values CUB selects for a workload on an architecture, and where they come from."""

from typing import Any, Literal, Self

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from policygen.model.arch import Arch
from policygen.model.base import Document, Problem, Record
from policygen.model.cub import Cub
from policygen.model.selection import PolicyFields
from policygen.model.tuning import Entry, Family, Value, entry_name
from policygen.model.workload import OnArch

Status = Literal["tuned", "inherited", "default"]


class EntryPlace(Record):
    """An entry, by where it stands."""

    header: str
    namespace: str = ""
    family: str
    args: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        """In words."""
        return entry_name(self.family, self.args)

    @classmethod
    def of(cls, family: Family, entry: Entry, **more: Any) -> Self:
        """The place of an entry; `more` is what a kind of it tells besides."""
        return cls(
            header=family.header,
            namespace=family.namespace,
            family=family.name,
            args=entry.args,
            line=entry.line,
            **more,
        )


class DisabledEntry(EntryPlace):
    """An entry that is commented out, or excluded by `#if 0`."""

    reason: str | None
    """What the header says about it."""

    @property
    def place(self) -> EntryPlace:
        """Where it stands."""
        return EntryPlace(**self.model_dump(include=set(EntryPlace.model_fields)))


class ResolvedRow(OnArch):
    """One workload on one architecture."""

    values: dict[str, Value]
    entry: EntryPlace | None
    status: Status
    since: Arch | None = None
    """The arch that the values were tuned for; none for defaults."""
    note: str | None = None
    """What the headers' text suggests and the compiler does not confirm."""
    passed: EntryPlace | None = None
    """The entry that has the workload's key and is not selected."""
    disabled: DisabledEntry | None = None
    """An entry that would decide the workload if it were not disabled."""
    fields: SkipJsonSchema[PolicyFields | None] = Field(default=None, exclude=True, repr=False)
    """All of the policy, for comparisons; it is no part of the document."""


class Unresolved(Record):
    """A benchmark that could not be asked about, and why."""

    benchmark: str
    reason: str
    header: str = ""
    """The one that decides it."""


class Resolution(Document):
    """What `policygen resolve --json` prints."""

    format: Literal["policygen/resolve/1"] = "policygen/resolve/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    rows: tuple[ResolvedRow, ...]
    remarks: tuple[str, ...] = ()
    """Of the tree and the bindings: a version of CUB that they were not tried with."""
    unresolved: tuple[Unresolved, ...] = ()
    problems: tuple[Problem, ...] = ()


class Differing(OnArch):
    """One workload whose values differ between two trees; none where a tree lacks it."""

    before: dict[str, Value] | None
    after: dict[str, Value] | None
    changed: tuple[str, ...]
    """The names of the values that differ."""
    entry_before: EntryPlace | None = None
    entry_after: EntryPlace | None = None
    passed: SkipJsonSchema[tuple[EntryPlace, ...]] = Field(default=(), exclude=True, repr=False)
    """Entries that have the workload's key before or after, and are not selected; no part of the
    document."""
    legacy: bool = False
    """Whether it is what struct families beside a policy selector give."""


class Comparison(Document):
    """What `policygen resolve --compare TREE --json` prints."""

    format: Literal["policygen/resolve-compare/1"] = "policygen/resolve-compare/1"
    before: Cub
    after: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    compared: int
    """Workloads times architectures."""
    different: tuple[Differing, ...]
    remarks: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
