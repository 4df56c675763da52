"""Errors that a user can act on; one class per kind of action.

They are not frozen, because Python stores a traceback in an exception that it propagates.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

from policygen.textdiff import unified
from policygen.untrusted import visible

# A name may contain line breaks: continuation lines are indented so that none looks like a message
_LINE = re.compile(r"\n(?=[^ \n])")
_TAB = "\t"


def _indented(text: str) -> str:
    return _LINE.sub("\n  ", text)


def _message(rows: Sequence[str], remedy: str | None) -> str:
    """Joins the lines of a message; a remedy comes last."""
    return _indented("\n".join(rows if remedy is None else [*rows, f"  {remedy}"]))


class PolicygenError(Exception):
    """The base of all expected errors; `exit_code` is the command's exit status."""

    exit_code: ClassVar[int] = 2

    @property
    def in_line(self) -> str:
        """The error as a reason within another message."""
        return str(self)


@dataclass(eq=False)
class InputError(PolicygenError):
    """An unusable input: a path, an option, a configuration."""

    message: str
    remedy: str | None = None

    def __str__(self) -> str:
        return _message([self.message], self.remedy)

    @property
    def in_line(self) -> str:
        """The message with the remedy on the same line."""
        return str(self).replace("\n  ", ". ")


@dataclass(eq=False)
class SourceError(PolicygenError):
    """Unreadable source at a position; prints file:line:col, the line and a caret."""

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
            # Tabs are kept so that the caret lines up for any tab width.
            prefix, rest = self.text[: self.column - 1], self.text[self.column - 1 :]
            indent = "".join("\t" if char == "\t" else " " for char in visible(prefix, _TAB))
            marked = rest[: self.width]
            growth = len(visible(marked, _TAB)) - len(marked)
            rows.append(f"  {visible(self.text, _TAB)}")
            rows.append(f"  {indent}{'^' * (max(1, self.width) + growth)}")
        return _message(rows, self.remedy)


@dataclass(eq=False)
class EditedError(PolicygenError):
    """A file that was edited after policygen wrote it; shows the edit."""

    LIMIT: ClassVar[int] = 40
    """Maximum number of lines of the edit to show."""
    path: str
    message: str
    written: bytes
    found: bytes
    remedy: str | None = None

    def __str__(self) -> str:
        diff = unified(self.path, self.written, self.found)
        shown = diff.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        edit = shown.split("\n")[3:-1]  # without the file headers
        rows = [f"{self.path}: {self.message}", *(f"  {line}" for line in edit[: self.LIMIT])]
        if (hidden := len(edit) - self.LIMIT) > 0:
            rows.append(f"  ... and {hidden:,} more lines")
        return _message(rows, self.remedy)


@dataclass(eq=False)
class MissingToolError(PolicygenError):
    """A required program or package is missing; the message says what to install."""

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
        message = self.stderr.strip()
        rows += [f"  {line}" for line in message.split("\n")] if message else []
        return _message(rows, self.remedy)

    @property
    def in_line(self) -> str:
        """The program's name and status with the first line of its standard error."""
        message = self.stderr.strip().partition("\n")[0]
        command = PurePath(self.command[0]).name
        return f"{command} failed with status {self.status}" + (f": {message}" if message else "")


@dataclass(eq=False)
class Problems(PolicygenError):  # noqa: N818  it is several errors
    """Independent failures, reported together."""

    errors: Sequence[PolicygenError]

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    @property
    def in_line(self) -> str:
        """All errors on one line."""
        return "; ".join(dict.fromkeys(error.in_line for error in self.errors))


def together(errors: Sequence[PolicygenError]) -> PolicygenError:
    """Combines errors into one to raise; a single error stays as it is."""
    return errors[0] if len(errors) == 1 else Problems(errors)


@contextmanager
def reported_together() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Yields a context for each independent part, and then raises the errors of all parts."""
    errors: list[PolicygenError] = []

    @contextmanager
    def part() -> Iterator[None]:
        try:
            yield
        except PolicygenError as error:
            errors.append(error)

    yield part
    if errors:
        raise together(errors)


@dataclass(eq=False)
class _ListingError(PolicygenError):
    """A failed check that lists what it found."""

    exit_code: ClassVar[int] = 1
    TITLE: ClassVar[str]
    LIMIT: ClassVar[int] = 20
    """Maximum number of rows to show."""
    rows: Sequence[str]

    def __str__(self) -> str:
        rows = [_indented(f"  {text}") for text in self.rows[: self.LIMIT]]
        if len(self.rows) > len(rows):
            rows.append(f"  and {len(self.rows) - len(rows)} more")
        return "\n".join([self.TITLE, *rows])


class UnprovableError(_ListingError):
    """Tunings with dependencies that no proof can cover; lists each place."""

    TITLE = "the tunings are not provable: they depend on more than types and architecture"


class EffectError(_ListingError):
    """A change that does not have the planned effect, or has another one."""

    TITLE = "the effect of the change differs from the plan; nothing was written"


SHOWN = 12
"""Maximum number of names in a message."""


# Hints for names that do not match


def anchored(pattern: re.Pattern[str], names: Iterable[str]) -> str | None:
    """Explains that -R matches from the beginning if the pattern matches later in a name."""
    if not pattern.pattern or not (hits := [name for name in names if pattern.search(name)]):
        return None
    return f"-R matches from the start of a name: -R '.*{pattern.pattern}' matches {listed(hits)}"


def no_such_value(axis: str, unknown: Collection[str], values: Iterable[str]) -> InputError:
    """Reports values of an axis that no workload has, and those that there are."""
    return InputError(
        f"no workload has {axis} = {', '.join(sorted(unknown))}",
        f"{axis} is one of {', '.join(values)}.",
    )


def listed(names: Iterable[str]) -> str:
    """Lists names briefly: `a, b and 48 more`."""
    distinct = list(dict.fromkeys(names))
    suffix = f" and {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    return ", ".join(distinct[:SHOWN]) + suffix


def noun(count: int, singular: str, plural_form: str | None = None) -> str:
    """Returns `entry` for a count of one, else `entries`."""
    return singular if count == 1 else plural_form or f"{singular}s"


def plural(count: int, singular: str, plural_form: str | None = None) -> str:
    """Counts `1 entry`, `7 entries`."""
    return f"{count:,} {noun(count, singular, plural_form)}"
