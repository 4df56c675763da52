"""The dialect interface: all other code goes through it and never sees how entries are spelled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policygen.bindings.variants import (
    by_print,
    expected_values,
    member_values,
    type_name,
    value_name,
)
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.comments import SourceFile
from policygen.libraries import library_of_header, part_of
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.plans import Target
from policygen.model.records import Span
from policygen.model.selection import ANY_OTHER, DeltaRow, Selected, Values
from policygen.model.trees import Cub
from policygen.model.tuning import (
    AddedMember,
    Content,
    Edit,
    Entry,
    Family,
    Marked,
    Slot,
    TuningHeader,
    Value,
    spell,
)
from policygen.model.workload import Point

SelectionQuery = Callable[[Sequence[Point], str], Mapping[Point, Selected]]
"""Queries the compiler: the selection for each workload on an architecture."""
TypeName = int | str
"""A type that distinguishes workloads: a template argument index, or the name of a type trait."""


@dataclass(frozen=True, slots=True)
class TuningTree:
    """A CUB tree: its tunings by header, and the header bytes."""

    cub: Cub
    headers: Mapping[str, TuningHeader]
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Spot(ABC):
    """The place for a workload's values: its current entry, or a new one."""

    selected: Selected

    @property
    @abstractmethod
    def target(self) -> Target:
        """The entry that serves the workload, now or after the change."""

    @property
    @abstractmethod
    def header(self) -> str:
        """The header that holds the entry."""

    @property
    @abstractmethod
    def entry(self) -> Entry | None:
        """The entry whose values change, or None if one is added."""

    @property
    @abstractmethod
    def place(self) -> object:
        """A key that is equal for all workloads of one entry."""

    @property
    def types(self) -> Mapping[TypeName, str]:
        """The types that can distinguish the workload from others."""
        return {}

    def naming(self, name: TypeName) -> "Spot":
        """Restricts the entry to one type of the workload."""
        raise NotImplementedError(name)

    @property
    def named(self) -> str:
        """The type that the entry names in addition to its usual arguments."""
        return ""

    @property
    def general(self) -> "Spot":
        """The same spot without a type named for one workload alone."""
        return self

    @property
    def narrower(self) -> "Spot | None":
        """A spot that names the types, where the current entry serves other workloads, too."""
        return None

    @property
    def ahead(self) -> bool:
        """Whether a new entry precedes the current one and takes all workloads that it matches."""
        return False

    @property
    def unsure(self) -> bool:
        """Whether the header may fail to compile with the new entry."""
        return self.ahead

    @property
    def too_broad(self) -> str | None:
        """Why no entry can be added, if it would serve other workloads, too."""
        return None

    @property
    def alone(self) -> bool:
        """Whether a reason can omit the other workloads that the entry serves."""
        return False

    @abstractmethod
    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns an entry's values for a variant, under the benchmark's parameters as measured."""

    @abstractmethod
    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """Returns the values that the policy reports with these members."""

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """Returns the variant's values that the policy reports but no entry member states."""
        del measured, variant
        return {}

    def saying(self, measured: BenchmarkBinding, reported: Values) -> "Spot | None":
        """Returns a spot whose entry states more of a variant's values, or None.

        `reported` maps values to what the policy uses for entries that do not state them.
        """
        del measured, reported
        return None

    def afterwards(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the values that the policy reports after the change."""
        return {**self.selected.values, **changed}

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """Builds the content of an entry with these values."""
        return Content("values", members, label=label)

    def kept(self, name: str) -> Content:
        """Builds content that keeps the workload's values where a broader entry would take over."""
        raise InputError(f"no entry can keep the values of {name}")

    def takes(self, other: "Spot") -> bool:
        """Tells whether this spot's entry serves, or may serve, another workload."""
        return other.place == self.place

    def lost(self, outcome: str) -> str:
        """Describes what the workload gets instead of the values written for it."""
        return f"would have {outcome}"


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """An entry to write and the workloads that it is for."""

    spots: tuple[Spot, ...]
    content: Content
    reason: str
    points: frozenset[Point] = frozenset()
    """The measured workloads."""

    @property
    def header(self) -> str:
        """The header that holds the entry."""
        return self.spots[0].header


@dataclass(slots=True)
class HeaderEdits:
    """The changes to one header."""

    edits: list[Edit] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dialect(ABC):
    """A notation for tunings in one tree's headers, for one architecture."""

    sources: TuningTree
    arch: str
    below: str | None = None
    """The later architecture that keeps its values; None if later ones may take the new ones."""

    @staticmethod
    @abstractmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Reads the entries of a header in this notation, by family."""

    @staticmethod
    @abstractmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Marks each entry in a copy of a header; `members` names the members that carry marks."""

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark whose workloads can have no place, whatever is selected for them."""
        del benchmark

    @abstractmethod
    def place(self, benchmark: BenchmarkBinding, selected: Selected, point: Point) -> Spot:
        """Finds the entry of a workload, or the place for a new one."""

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> Spot | None:
        """Returns the spot with an upper bound on architectures, or None if there is none."""
        del benchmark, spot
        return None

    @abstractmethod
    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Turns entries into edits of a header; writes to one place form one edit."""

    @abstractmethod
    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Builds entries that shield later architectures from a change; all or NotKeptError."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How the tuning headers of a library besides CUB are read and written."""

    read: Callable[[SourceFile, str, Mapping[str, bytes]], TuningHeader]
    """Reads a header, given its name and the headers that declare what it uses."""
    declaring: Callable[[Path], dict[str, bytes]]
    """Finds the headers that declare what a header uses, by name."""
    dialect: type[Dialect]
    archs: Callable[[Path], tuple[str, ...]]
    """Returns the architectures that the tree in a folder can be tuned for."""
    gpus: Callable[[Path], tuple[str, ...]]
    """Returns the GPUs by which a tree divides architectures; none if it does not."""


def notation_of(data: bytes) -> Notation | None:
    """Returns the notation of a header; None for one of CUB."""
    return part_of(library_of_header(data), Notation)


class NotKeptError(Exception):
    """Workloads that cannot keep their values on later architectures, each with the reason."""

    def __init__(self, reasons: Sequence[tuple[DeltaRow[Values], str]]) -> None:
        super().__init__(reasons[0][1])
        self.reasons = reasons


# Spots in families


@dataclass(frozen=True, slots=True)
class FamilySpot(Spot, ABC):
    """A place in a family of a header."""

    site: Site
    binding: FamilyBinding
    family: Family
    """The family in the header; for a new family, the one it is modeled on."""
    name: str
    """`sm120_tuning`."""
    unsaid_members: Mapping[str, MemberRule] = field(default_factory=dict, kw_only=True)
    """Members of newer families that this one leaves to its policy: sm90's load modifier."""
    added: Mapping[str, AddedMember] = field(default_factory=dict, kw_only=True)
    """Members that entries gain and that the policy does not read yet."""

    @property
    def header(self) -> str:
        """The header that holds the family."""
        return self.family.header

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """The arguments or conditions of an added entry."""

    @property
    def target(self) -> Target:
        """The entry that serves the workload, now or after the change."""
        entry = self.entry
        return Target(
            header=self.family.header,
            namespace=self.family.namespace,
            family=self.name,
            args=tuple(slot or "·" for slot in (entry.args if entry else self.slots)),
            line=entry.line if entry else None,
        )

    @property
    def place(self) -> object:
        """A key that is equal for all workloads of one entry."""
        entry = self.entry
        return *self.in_family, entry.span if entry else self.slots

    @property
    def in_family(self) -> tuple[str, str, str]:
        """A key that is equal for all entries of the family."""
        return self.family.header, self.family.namespace, self.name

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns an entry's values for a variant, under the benchmark's parameters as measured."""
        rules = (*self.unsaid_members.values(), *self.binding.members.values())
        represented = {name for rule in rules for name in rule.parameters}
        placed = represented | measured.fixed.keys()
        if unrepresented := [name for name in variant if name not in placed]:
            raise InputError(f"{self.header} has no place for {', '.join(unrepresented)}")
        for name, value in measured.fixed.items():
            if name not in represented and variant.get(name, value) != value:
                raise InputError(
                    f"{self.header} has no member for {name} and implies {name}_{value}"
                )
        return member_values(self.binding, measured, variant, self.selected.sizes)

    def unsaid(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, Value]:
        """Returns the variant's values that the policy reports but no entry member states."""
        unsaid = self.unsaid_members.items()
        rules = {member: rule for member, rule in unsaid if rule.parameters <= variant.keys()}
        binding = self.binding.model_copy(update={"members": rules})
        members = member_values(binding, measured, variant, self.selected.sizes)
        expected = expected_values(self.site, binding, members, self.selected.sizes)
        represented = {value_name(self.site, *rule) for rule in self.binding.members.items()}
        names = self.selected.values.keys() - represented
        return {n: value for n, value in {**measured.always, **expected}.items() if n in names}

    def afterwards(self, changed: Mapping[str, Value]) -> dict[str, Value]:
        """Drops the values that the chosen algorithm does not use."""
        values = {**self.selected.values, **changed}
        used = self.site.used_by.get(str(changed.get(words().values.algorithm)))
        if used is None:
            return values
        unused = {name for names in self.site.used_by.values() for name in names} - {*used}
        return {name: value for name, value in values.items() if name not in unused}

    def rule_for(self, measured: BenchmarkBinding, name: str) -> tuple[str, MemberRule | None]:
        """Returns the member and rule by which an entry can state a value left to the policy."""
        for member, rule in self.unsaid_members.items():
            if value_name(self.site, member, rule) == name:
                return member, rule
        constant = measured.always.get(name)
        return name, None if constant is None else MemberRule(constant=spell(constant))

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """Returns the values that the policy reports with these members."""
        return expected_values(self.site, self.binding, members, self.selected.sizes)


def can_name(arg: str) -> bool:
    """Tells whether an entry can name a type, or a number, that the compiler printed."""
    word = arg.replace(" ", "")
    is_word = word.isidentifier() or word.isdecimal()
    return (is_word or type_name(arg) in by_print()) and arg != ANY_OTHER


Insertion = tuple[int, str, str]
"""An insertion: offset, text and reason."""


# Merging of insertions


def with_insertions(edits: Iterable[Edit], insertions: Iterable[Insertion]) -> list[Edit]:
    """Merges insertions into the edits, in header order."""
    merged = list(edits)
    added: dict[int, list[tuple[str, str]]] = {}
    for offset, text, reason in insertions:
        added.setdefault(offset, []).append((text, reason))
    for offset, texts in added.items():
        # A label that an update adds above its entry goes behind a new entry at that place.
        edits_there = [edit for edit in merged if edit.span == (offset, offset)]
        merged = [edit for edit in merged if edit not in edits_there]
        for edit in edits_there:
            _add_edit(texts, edit)
        joined = _join([text for text, _ in texts])
        reason = "; ".join(dict.fromkeys(reason for _, reason in texts))
        merged.append(Edit(span=Span(offset, offset), old="", new=joined, reason=reason))
    return sorted(merged, key=lambda edit: edit.span)


def _add_edit(texts: list[tuple[str, str]], edit: Edit) -> None:
    """Adds an edit's text to the insertions at its offset without doubling a blank line."""
    first, last = texts[0][0], texts[-1][0]
    blank = not edit.new.strip()
    if blank and (first.startswith(edit.new * 2) or last.endswith(edit.new * 2)):
        return
    index = 0 if blank and first.startswith(edit.new) else len(texts)
    texts.insert(index, (edit.new, edit.reason))


def _join(texts: Iterable[str]) -> str:
    """Concatenates texts without doubling the blank line between two."""
    joined = ""
    for text in texts:
        newline = "\r\n" if text.startswith("\r\n") else "\n"
        if text.startswith(newline * 2) and joined.endswith(newline):
            joined = joined.removesuffix(newline)
        joined += text
    return joined


def points_of(writes: Sequence[EntryWrite]) -> set[Point]:
    """Returns the measured workloads that the entries are written for."""
    return {point for write in writes for point in write.points}
