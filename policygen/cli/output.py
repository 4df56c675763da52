"""Where results go: standard output, or a file that was named."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import click

from policygen.errors import InputError, PolicygenError, Problems
from policygen.paths import write_atomically


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


def write_out(text: str, out: str | None) -> None:
    """Writes to the file, if there is one, else to standard output."""
    if out is None:
        sys.stdout.write(text)
    else:
        write_file(Path(out), text.encode())


def write_file(path: Path, data: bytes) -> None:
    """Writes a file that the user named."""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def end(errors: Sequence[PolicygenError], *, found: bool = False) -> int:
    """The exit status; what could not be read or asked is told last."""
    if errors:
        raise Problems(errors)
    return int(found)
