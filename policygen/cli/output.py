"""Where results go: standard output, or a file that was named."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Protocol, Self, TextIO, cast

import click

from policygen.errors import PolicygenError, Problems
from policygen.outputs import check_free, write_output
from policygen.report.sink import ShownStream


class Printable(Protocol):
    """What is one JSON document."""

    def to_json(self) -> str:
        """Its text."""


@dataclass(frozen=True, slots=True)
class Output:
    """What `--json`, `-q` and `-v` ask for."""

    as_json: bool
    quiet: bool
    verbose: bool

    def show(self, document: Printable, print_text: Callable[..., None]) -> None:
        """Writes one document to standard output, or what it says."""
        if self.as_json:
            click.echo(document.to_json())
        else:
            print_text(document, head=not self.quiet, verbose=self.verbose)

    def tell(self, document: Printable, print_text: Callable[..., None]) -> None:
        """The same, of what leaves more away than a head when it is to be quiet."""
        if self.as_json:
            click.echo(document.to_json())
        else:
            print_text(document, verbose=self.verbose, quiet=self.quiet)


@dataclass(frozen=True, slots=True)
class Out:
    """The file that the user named, if one was, and whether what others made may go."""

    path: Path | None = None
    force: bool = False

    @classmethod
    def chosen(cls, name: str | None, *, force: bool) -> Self:
        """Refuses a file that would be lost, before anybody waits for what shall replace it."""
        path = None if name is None else Path(name)
        if path is not None:
            check_free(path, force=force)
        return cls(path, force)

    @property
    def named(self) -> Path:
        """The file, where there is always one."""
        assert self.path is not None
        return self.path

    def write(self, text: str) -> None:
        """Writes to the file, if there is one, else to standard output."""
        if self.path is None:
            sys.stdout.write(text)
        else:
            write_output(self.path, text.encode("utf-8", "surrogateescape"), force=self.force)


@contextmanager
def printed() -> Iterator[BytesIO]:
    """What is printed in the block, as it would stand in a file."""
    data = BytesIO()
    stream = TextIOWrapper(data, "utf-8", "surrogateescape", newline="", write_through=True)
    before, own = sys.stdout, cast("TextIO", ShownStream(stream))
    sys.stdout = own
    try:
        yield data
    finally:
        sys.stdout = before
        stream.detach()  # else it would close what it has written to


def end(errors: Sequence[PolicygenError], *, found: bool = False) -> int:
    """The exit status; what could not be read or asked is told last."""
    if errors:
        raise Problems(errors)
    return int(found)
