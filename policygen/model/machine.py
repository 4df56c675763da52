"""The machine's tools, and the state of trees and applies."""

import re
from typing import Literal

from pydantic import AwareDatetime

from policygen.errors import InputError, MissingToolError, PolicygenError, ProcessError
from policygen.model.records import Document, Record
from policygen.model.trees import Cub

CheckState = Literal["fine", "optional", "missing", "broken"]
"""`optional`: missing, but only commands that explicitly need it fail."""


class Check(Record):
    """One requirement, present or not."""

    name: str
    state: CheckState
    found: str
    """What was found, as text."""
    needed_by: tuple[str, ...] = ()
    """Commands, with options, that need it."""
    remedy: str | None = None
    """The command that fixes or installs it."""

    @property
    def is_problem(self) -> bool:
        """Whether a command fails because of it."""
        return self.state in ("missing", "broken")


def passed_check(name: str, detail: str, needed_by: tuple[str, ...] = ()) -> Check:
    """Builds a check that passed."""
    return Check(name=name, state="fine", found=detail, needed_by=needed_by)


def failed_check(
    name: str, needed_by: tuple[str, ...], error: PolicygenError, remedy: str | None = None
) -> Check:
    """Builds a failed check: missing, with its install command, or broken, with the error."""
    state: CheckState = "broken"
    message = str(error)
    if isinstance(error, MissingToolError):
        state, message = "missing", f"{error.tool} is missing"
        # If a variable points to the wrong place, installing something does not help.
        remedy = error.remedy if "CUDA_HOME)" in error.tool else remedy
    elif isinstance(error, ProcessError):
        message, remedy = first_error_line(error.stderr), error.remedy or remedy
    elif isinstance(error, InputError):
        message, remedy = error.message, error.remedy or remedy
    message = message.partition("\n")[0]
    return Check(name=name, state=state, found=message, needed_by=needed_by, remedy=remedy)


def first_error_line(text: str) -> str:
    """Returns the line of a program's output that states the error."""
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    return next((row for row in rows if re.search("error|fatal|not found", row)), "".join(rows[:1]))


class Doctor(Document):
    """What `policygen doctor --json` prints."""

    format: Literal["policygen/doctor/1"] = "policygen/doctor/1"
    version: str
    """The version of policygen."""
    installed: Literal["clone", "package"]
    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[Check, ...]:
        """Checks whose failure makes some command fail."""
        return tuple(check for check in self.checks if check.is_problem)


# The state of a tree: what was written to it and proved, and the next steps


class AppliedState(Record):
    """An apply that is in the tree; paths of files are relative to its root."""

    apply: int
    title: str
    applied_at: AwareDatetime
    files: tuple[str, ...]
    edited: tuple[str, ...]
    """Files edited since policygen wrote them."""


class ProofState(Record):
    """The last run of a proving command."""

    command: Literal["apply", "verify-effect", "verify-sass"]
    proved_at: AwareDatetime
    passed: bool
    whole: bool
    """Whether it covered everything that the command compares by default."""
    current: bool
    """Whether CUB's headers are unchanged since then."""
    words: str


class NextStep(Record):
    """A suggested next command and its purpose."""

    purpose: str
    command: str


class Status(Document):
    """What `policygen status --json` prints."""

    format: Literal["policygen/status/1"] = "policygen/status/1"
    cub: Cub
    named: bool
    """Whether writing commands would write to this tree."""
    store: str | None
    """The file that records applies; null if it does not exist."""
    applies: tuple[AppliedState, ...]
    """The applies that are in the tree, newest first."""
    undone: int
    """The number of undone applies."""
    interrupted: str | None
    """A message if an apply or undo was interrupted."""
    uncommitted: tuple[str, ...] | None
    """Tuning headers that differ from the last commit; null if the tree is not in a repository."""
    proofs: tuple[ProofState, ...]
    """The last proof of each command."""
    next: tuple[NextStep, ...]


# Undone applies


class UndoneApply(Record):
    """One apply; `files` are relative to `root`."""

    apply: int
    title: str
    applied_at: AwareDatetime
    root: str
    files: tuple[str, ...]


class Undo(Document):
    """What `policygen undo --json` prints; the newest apply first."""

    format: Literal["policygen/undo/1"] = "policygen/undo/1"
    written: bool
    """Whether the tree was restored; with `--check` nothing is written."""
    applies: tuple[UndoneApply, ...]
