"""Every failure that a user can do something about; one class per thing to do.

They are not frozen: Python itself writes a traceback into an exception that passes by.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

from policygen.textdiff import unified
from policygen.untrusted import visible

# A name may hold the end of a line: nothing of a message begins a line as messages of ours do
_LINE = re.compile(r"\n(?=[^ \n])")
_TAB = "\t"


def _indented(text: str) -> str:
    return _LINE.sub("\n  ", text)


class PolicygenError(Exception):
    """The base of all expected failures; `exit_code` is the command's exit status."""

    exit_code: ClassVar[int] = 2

    @property
    def in_line(self) -> str:
        """As a reason within another message."""
        return str(self)


@dataclass(eq=False)
class InputError(PolicygenError):
    """An input that cannot be used: a path, an option, a configuration."""

    message: str
    remedy: str | None = None

    def __str__(self) -> str:
        rows = [self.message] if self.remedy is None else [self.message, f"  {self.remedy}"]
        return _indented("\n".join(rows))

    @property
    def in_line(self) -> str:
        """As a reason: the remedy behind it, on the same line."""
        return str(self).replace("\n  ", ". ")


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
        rows = [f"{self.path}:{self.line}:{self.column}: {self.message}"]
        if self.text:
            # Tabs stay, so that the caret stands under its character whatever a tab's width is.
            before, under = self.text[: self.column - 1], self.text[self.column - 1 :]
            lead = "".join("\t" if char == "\t" else " " for char in visible(before, _TAB))
            marked = under[: self.width]
            more = len(visible(marked, _TAB)) - len(marked)
            rows.append(f"  {visible(self.text, _TAB)}")
            rows.append(f"  {lead}{'^' * (max(1, self.width) + more)}")
        if self.remedy:
            rows.append(f"  {self.remedy}")
        return _indented("\n".join(rows))


@dataclass(eq=False)
class EditedError(PolicygenError):
    """A file that somebody edited since policygen wrote it; shows the edit."""

    LIMIT: ClassVar[int] = 40
    """Lines of the edit that are shown."""
    path: str
    message: str
    written: bytes
    found: bytes
    remedy: str | None = None

    def __str__(self) -> str:
        diff = unified(self.path, self.written, self.found)
        shown = diff.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        edit = shown.split("\n")[3:-1]  # the file is named already
        rows = [f"{self.path}: {self.message}", *(f"  {line}" for line in edit[: self.LIMIT])]
        if (cut := len(edit) - self.LIMIT) > 0:
            rows.append(f"  ... and {cut:,} more lines")
        if self.remedy:
            rows.append(f"  {self.remedy}")
        return _indented("\n".join(rows))


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
        told = self.stderr.strip()
        rows += [f"  {line}" for line in told.split("\n")] if told else []
        if self.remedy:
            rows.append(f"  {self.remedy}")
        return _indented("\n".join(rows))

    @property
    def in_line(self) -> str:
        """As a reason: which program, and what it says first."""
        told = self.stderr.strip().partition("\n")[0]
        command = PurePath(self.command[0]).name
        return f"{command} failed with status {self.status}" + (f": {told}" if told else "")


@dataclass(eq=False)
class Problems(PolicygenError):  # noqa: N818  it is several errors
    """Independent failures, reported together."""

    errors: Sequence[PolicygenError]

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    @property
    def in_line(self) -> str:
        """As a reason: one behind the other."""
        return "; ".join(dict.fromkeys(error.in_line for error in self.errors))


def together(errors: Sequence[PolicygenError]) -> PolicygenError:
    """What to raise for all of them: a single one is itself."""
    return errors[0] if len(errors) == 1 else Problems(errors)


@dataclass(eq=False)
class UnprovableError(PolicygenError):
    """Tunings that depend on what no proof can know; each place with what it asks for."""

    exit_code: ClassVar[int] = 1
    LIMIT: ClassVar[int] = 20
    """Places that are shown."""
    places: Sequence[str]

    def __str__(self) -> str:
        rows = [f"  {text}" for text in self.places[: self.LIMIT]]
        if len(self.places) > len(rows):
            rows.append(f"  and {len(self.places) - len(rows)} more")
        head = "the tunings are not provable: they depend on more than types and architecture"
        return "\n".join([head, *rows])


@dataclass(eq=False)
class EffectError(PolicygenError):
    """A change that does not do what was planned, or something else besides."""

    exit_code: ClassVar[int] = 1
    wrong: Sequence[str]

    def __str__(self) -> str:
        rows = [_indented(f"  {text}") for text in self.wrong[:20]]
        if len(self.wrong) > len(rows):
            rows.append(f"  and {len(self.wrong) - len(rows)} more")
        head = "the change has another effect than planned; nothing was written"
        return "\n".join([head, *rows])


SHOWN = 12
"""As many names as a message lists."""


# What a person may have meant who typed what nothing matches.


def anchored(pattern: re.Pattern[str], names: Iterable[str]) -> str | None:
    """That -R matches from the beginning of a name, where it would match further behind."""
    if not pattern.pattern or not (near := [n for n in names if pattern.search(n)]):
        return None
    return (
        f"-R matches from the beginning of a name: -R '.*{pattern.pattern}' matches {listed(near)}"
    )


def listed(names: Iterable[str]) -> str:
    """`a, b and 48 more`."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
