"""Changes to a header: what stands where now, and what shall stand there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policygen.model.records import Record, Span
from policygen.model.tuning import Entry, Family, TuningHeader, Value, spell
from policygen.untrusted import comment


class Edit(Record):
    """One splice. `old` is what the place must hold, so that a changed file is noticed."""

    span: Span
    old: str
    new: str
    reason: str


# What an entry that is to be written shall be, before it is spelled.

Slot = str | None
"""An argument as the header spells it; none where the entry takes any."""


@dataclass(frozen=True, slots=True)
class Content:
    """What an entry gives: values, those of another entry, or none so that CUB falls back."""

    kind: Literal["values", "inherits", "empty"]
    values: dict[str, str] = field(default_factory=dict)
    """Member → its value, as C++ spells it without namespaces."""
    base: str | None = None
    label: str | None = None
    """Its comment: the variant with its scores, or why there is an entry without values."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Member → its type as the compiler knows it; `using` for an alias."""
    added: Mapping[str, "AddedMember"] = field(default_factory=dict)
    """Members among its values that the family's entries do not have yet."""

    def __post_init__(self) -> None:
        """Whatever a label is made of, it is one line of a comment."""
        if self.label is not None:
            object.__setattr__(self, "label", comment(self.label))


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that entries of a family do not have yet."""

    type: str
    """`CacheLoadModifier`; `using` for an alias."""
    default: str
    """What the policy has for entries without it."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A specialization that the header does not have."""

    key: tuple[Slot, ...]
    content: Content
    guard: str | None = None
    alias: tuple[Slot, ...] | None = None
    """The key of an entry for the unsigned type, which inherits from this one."""


# Values before and after a change, in words.


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """`items 4 → 7` for each value that differs; one that only one side has is told, too."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        f"{name} {spell(before.get(name, 'nothing'))} → {spell(after.get(name, 'nothing'))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


STEP = 4096
"""More than what any scaling by a type's size divides by."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The copy; the number of an entry is its place in `entries`."""

    header: TuningHeader
    data: bytes
    entries: tuple[tuple[Family, Entry], ...]
    traits: tuple[str, ...] = ()
    """What a policy selector knows of its types: its members, which the copy tells."""

    def entry(self, items: object) -> int | None:
        """Which entry a count of items in a selected policy comes from, if it is a mark."""
        if not isinstance(items, int) or items < STEP // 16:
            return None
        while items % 2 == 0:
            items //= 2
        number = items // 2
        return number if number < len(self.entries) else None


# A copy of a tuning header in which every entry can be recognised by what is selected.


def mark(number: int) -> int:
    """An odd multiple of a power of two: what is odd survives a scaling by a type's size."""
    return STEP * (2 * number + 1)
