"""What is here of what policygen works with."""

from typing import Literal

from policygen.model.base import Document, Record

CheckState = Literal["fine", "optional", "missing", "broken"]
"""`optional`: not here, and no command fails for it that was not asked for it."""


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
        """Whether some command fails for it."""
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
        """What some command fails for."""
        return tuple(check for check in self.checks if check.is_problem)
