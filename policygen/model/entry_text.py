"""What an entry that is to be written shall be, before it is spelled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policygen.untrusted import comment

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
