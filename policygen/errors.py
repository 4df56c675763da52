"""Every failure that a user can do something about; one class per thing to do.

They are not frozen: Python itself writes a traceback into an exception that passes by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class PolicygenError(Exception):
    """The base of all expected failures; `exit_code` is the command's exit status."""

    exit_code: ClassVar[int] = 2


@dataclass(eq=False)
class InputError(PolicygenError):
    """An input that cannot be used: a path, an option, a configuration."""

    message: str
    remedy: str | None = None

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  {self.remedy}"


@dataclass(eq=False)
class SourceError(PolicygenError):
    """A place in a source file that cannot be read; prints file:line:col, the line and a caret."""

    path: str
    line: int
    column: int
    message: str
    text: str = ""
    width: int = 1
    remedy: str | None = None

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}: {self.message}"
        rows = [place]
        if self.text:
            # Tabs stay, so that the caret stands under its character whatever a tab's width is.
            lead = "".join("\t" if char == "\t" else " " for char in self.text[: self.column - 1])
            rows += [f"  {self.text}", f"  {lead}{'^' * max(1, self.width)}"]
        if self.remedy:
            rows.append(f"  {self.remedy}")
        return "\n".join(rows)


@dataclass(eq=False)
class MissingToolError(PolicygenError):
    """A program or package that is needed and not there; the message names what to install."""

    exit_code: ClassVar[int] = 3
    tool: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.tool} is missing\n  {self.remedy}"


@dataclass(eq=False)
class ProcessError(PolicygenError):
    """An external program that failed; shows its command, status and standard error."""

    command: Sequence[str]
    status: int
    stderr: str
    remedy: str | None = None

    def __str__(self) -> str:
        rows = [f"command failed with status {self.status}: {' '.join(self.command)}"]
        rows += [f"  {line}" for line in self.stderr.strip().splitlines()]
        if self.remedy:
            rows.append(f"  {self.remedy}")
        return "\n".join(rows)


@dataclass(eq=False)
class Problems(PolicygenError):  # noqa: N818  it is several errors
    """Independent failures, reported together."""

    errors: Sequence[PolicygenError]

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)
