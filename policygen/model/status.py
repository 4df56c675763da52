"""Where a tree stands: what was written to it, what was proved of that, what is left to do."""

from typing import Literal

from pydantic import AwareDatetime

from policygen.model.base import Document, Record
from policygen.model.cub import Cub


class AppliedState(Record):
    """An apply that is in the tree; files are seen from its root."""

    apply: int
    title: str
    applied_at: AwareDatetime
    files: tuple[str, ...]
    edited: tuple[str, ...]
    """Those that do not hold any more what policygen wrote."""


class ProofState(Record):
    """The last run of a command that proves something."""

    command: Literal["apply", "verify-effect", "verify-sass"]
    proved_at: AwareDatetime
    passed: bool
    whole: bool
    """Whether all was compared that the command compares when it is not told otherwise."""
    current: bool
    """Whether the headers of CUB are still what they were then."""
    words: str


class NextStep(Record):
    """What to type next, and what for."""

    purpose: str
    command: str


class Status(Document):
    """What `policygen status --json` prints."""

    format: Literal["policygen/status/1"] = "policygen/status/1"
    cub: Cub
    named: bool
    """Whether commands that write would write to this tree."""
    store: str | None
    """Where applies are recorded; none where there is no such file."""
    applies: tuple[AppliedState, ...]
    """Those that are in the tree, newest first."""
    undone: int
    """How many were taken back."""
    interrupted: str | None
    """That an apply or an undo was not ended, in words."""
    uncommitted: tuple[str, ...] | None
    """Tuning headers that differ from the last commit; none where no repository is around them."""
    proofs: tuple[ProofState, ...]
    """The last one of each command."""
    next: tuple[NextStep, ...]
