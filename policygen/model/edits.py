"""Changes to a header: present and new text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policygen.model.records import Record, Span
from policygen.model.tuning import Entry, Family, TuningHeader, Value, spell
from policygen.untrusted import comment


class Edit(Record):
    """One splice. `old` is the expected text at the place, so that a changed file is detected."""

    span: Span
    old: str
    new: str
    reason: str


# Entries to write, before they are spelled

Slot = str | None
"""An argument as the header spells it; `None` if the entry accepts any."""


@dataclass(frozen=True, slots=True)
class Content:
    """An entry's contents: values, another entry's values, or none so that CUB falls back."""

    kind: Literal["values", "inherits", "empty"]
    values: dict[str, str] = field(default_factory=dict)
    """Member → value as spelled in C++ without namespaces."""
    base: str | None = None
    label: str | None = None
    """Its comment: the variant with its scores, or the reason for an entry without values."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Member → type according to the compiler; `using` for an alias."""
    added: Mapping[str, "AddedMember"] = field(default_factory=dict)
    """Members with values that the family's entries do not have yet."""

    def __post_init__(self) -> None:
        """Reduces a label to one line that is safe in a comment."""
        if self.label is not None:
            object.__setattr__(self, "label", comment(self.label))


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that entries of a family do not have yet."""

    type: str
    """`CacheLoadModifier`; `using` for an alias."""
    default: str
    """The policy's value for entries without it."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A specialization that the header does not have."""

    key: tuple[Slot, ...]
    content: Content
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None
    """The key of an entry for the unsigned type, which inherits from this one."""


# Values before and after a change


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """Describes each value that differs, including those that only one side has: `items 4 → 7`."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        f"{name} {spell(before.get(name, 'nothing'))} → {spell(after.get(name, 'nothing'))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


ENTRY = "policygen_entry"
"""The member of a marked return's policy that holds its mark."""
STEP = 4096
"""Larger than any divisor in scaling by a type's size."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The copy; an entry's number is its index in `entries`."""

    header: TuningHeader
    data: bytes
    entries: tuple[tuple[Family, Entry], ...]
    traits: tuple[str, ...] = ()
    """A policy selector's facts about its types: the members that the copy reports."""

    def entry(self, items: object) -> int | None:
        """Returns the index of the entry that a policy's item count marks, if it is a mark."""
        if not isinstance(items, int) or items < STEP // 16:
            return None
        while items % 2 == 0:
            items //= 2
        number = items // 2
        return number if number < len(self.entries) else None


# A copy of a tuning header in which each entry is recognizable in the selected policy


def mark(number: int) -> int:
    """Returns an odd multiple of a power of two; its odd factor survives scaling by a size."""
    return STEP * (2 * number + 1)
