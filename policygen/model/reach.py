"""Entries that no workload can select, and why."""

from typing import Literal

from pydantic import Field

from policygen.model.arch import Arch
from policygen.model.base import Document, Problem
from policygen.model.cub import Cub
from policygen.model.resolve import EntryPlace

Cause = Literal[
    "gate",
    "missing member",
    "inherits without",
    "empty",
    "shadowed",
    "argument",
    "key",
    "condition",
]
"""Why an entry is never selected.

`gate`: the key leads to it, and the policy does not ask the family there. `missing member`: the
selection names a member that it lacks. `inherits without`: so does what it inherits from. `empty`:
it has no member at all, which keeps its key from being tuned. `shadowed`: another entry takes its
keys. `argument`: one of its arguments is always something else. `key`: no workload gives its
arguments together. `condition`: no workload comes to a guarded return.
"""


class Unreachable(EntryPlace):
    """An entry that no workload selects."""

    cause: Cause
    reason: str
    example: str | None = None
    """A workload that has the entry's key, and what it gets instead."""


class CallOnly(EntryPlace):
    """An entry that some call selects, and no benchmark."""

    example: str


class Reach(Document):
    """What `policygen audit reach --json` prints."""

    format: Literal["policygen/audit-reach/1"] = "policygen/audit-reach/1"
    cub: Cub
    toolchain: str
    archs: tuple[Arch, ...]
    workloads: int
    """How many were tried, architectures not counted."""
    entries: int
    reached: int
    unreachable: tuple[Unreachable, ...]
    call_only: tuple[CallOnly, ...] = ()
    unasked: tuple[str, ...] = ()
    """Families that no binding knows, and functions that no workload comes to."""
    unknown: dict[str, int] = Field(default_factory=dict)
    """Header → entries of which nothing is known, as the compiler refused workloads there."""
    remarks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
