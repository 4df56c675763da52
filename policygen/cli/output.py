"""Output of results: standard output, or a named file."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Protocol, Self, TextIO, cast

import click

from policygen.errors import PolicygenError, Problems
from policygen.outputs import check_folder, check_free, write_output
from policygen.report.blocks import Block
from policygen.report.console import ShownStream, show

View = Callable[..., Iterable[Block]]
"""Returns the blocks of a document, for the terminal."""


class Printable(Protocol):
    """A document that can be written as JSON."""

    def to_json(self) -> str:
        """Return the JSON text."""

    def to_line(self) -> str:
        """Return the JSON text on one line."""


@dataclass(frozen=True, slots=True)
class Output:
    """Values of `--json`, `-q` and `-v`."""

    as_json: bool
    quiet: bool
    verbose: bool

    def show(self, document: Printable, view: View, *, is_last: bool = False) -> None:
        """Write a document as JSON or text; `-q` omits the header and the notes of the text.

        The JSON of the last of several documents is one line, like those before it.
        """
        if self.as_json:
            click.echo(document.to_line() if is_last else document.to_json())
        else:
            show(view(document, head=not self.quiet, verbose=self.verbose))


@dataclass(frozen=True, slots=True)
class Out:
    """Output file, if any, and whether files of other programs may be overwritten."""

    path: Path | None = None
    force: bool = False

    @classmethod
    def chosen(cls, name: str | None, *, force: bool, makes_folder: bool = False) -> Self:
        """Reject a file that cannot or must not be written, before any long computation."""
        if name is None:
            return cls(None, force)
        path = Path(name)
        check_free(path, force=force)
        if not makes_folder:
            check_folder(path)
        return cls(path, force)

    @property
    def named(self) -> Path:
        """Output file, for commands that require one."""
        assert self.path is not None
        return self.path

    def write(self, text: str) -> None:
        """Write to the file if there is one, else to standard output."""
        if self.path is None:
            sys.stdout.write(text)
        else:
            write_output(self.path, text.encode("utf-8", "surrogateescape"), force=self.force)

    @contextmanager
    def printed(self) -> Iterator[None]:
        """Write what a block prints to the file if there is one, formatted as for a file.

        What was printed before an error is written, too.
        """
        if self.path is None:
            yield
            return
        data, error = BytesIO(), None
        stream = TextIOWrapper(data, "utf-8", "surrogateescape", newline="", write_through=True)
        with redirect_stdout(cast("TextIO", ShownStream(stream))):
            try:
                yield
            except PolicygenError as failure:
                error = failure
        if error is None or data.getvalue():
            self.write(data.getvalue().decode("utf-8", "surrogateescape"))
        if error is not None:
            raise error


def end(errors: Sequence[PolicygenError], *, has_findings: bool = False) -> int:
    """Return the exit status, or raise if anything could not be read or queried."""
    if errors:
        raise Problems(errors)
    return int(has_findings)
