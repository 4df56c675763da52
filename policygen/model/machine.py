"""The machine's tools, and the state of trees and applies."""

from typing import Literal

from pydantic import AwareDatetime

from policygen.model.records import Document, Record
from policygen.model.trees import Cub

CheckState = Literal["fine", "optional", "missing", "broken"]
"""`optional`: missing, but only commands that explicitly need it fail."""


class Check(Record):
    """One thing that is here, or is not."""

    name: str
    state: CheckState
    found: str
    """What was found, in words."""
    needed_by: tuple[str, ...] = ()
    """Commands, and options of commands."""
    remedy: str | None = None
    """The command that mends it, or brings it."""

    @property
    def is_problem(self) -> bool:
        """Whether some command fails because of it."""
        return self.state in ("missing", "broken")


class Doctor(Document):
    """What `policygen doctor --json` prints."""

    format: Literal["policygen/doctor/1"] = "policygen/doctor/1"
    version: str
    """That of policygen."""
    installed: Literal["clone", "package"]
    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[Check, ...]:
        """The checks because of which some command fails."""
        return tuple(check for check in self.checks if check.is_problem)


# The state of a tree: what was written to it and proved, and the next steps


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


# Undone applies


class UndoneApply(Record):
    """One apply; `files` are seen from `root`."""

    apply: int
    title: str
    applied_at: AwareDatetime
    root: str
    files: tuple[str, ...]


class Undo(Document):
    """What `policygen undo --json` prints; the newest apply first."""

    format: Literal["policygen/undo/1"] = "policygen/undo/1"
    written: bool
    """The tree has the old contents again; with `--check` nothing is written."""
    applies: tuple[UndoneApply, ...]
