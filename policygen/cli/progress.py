"""What is told on standard error while a command works."""

import os
import sys
from shutil import get_terminal_size

import click

from policygen.app.notes import Progress
from policygen.report.sink import raw
from policygen.untrusted import visible

WIDTH = 24


def warn(text: str) -> None:
    """Says what is no error, and should be known."""
    sys.stderr.write(f"policygen: warning: {text}\n")


def compile_progress(*, quiet: bool) -> Progress | None:
    """A bar on a terminal, a line for each compile elsewhere."""
    if quiet:
        return None
    return _bar if sys.stderr.isatty() else _line


def _line(done: int, total: int, name: str) -> None:
    click.echo(f"[{done}/{total}] {visible(name)}: done", err=True)


def _bar(done: int, total: int, name: str) -> None:
    filled = WIDTH * done // total
    text = f"{'█' * filled}{'·' * (WIDTH - filled)} {done}/{total} {visible(name)}"
    # A line that wraps could not be written over.
    shown = text[: get_terminal_size().columns - 1]
    stream = raw(sys.stderr)
    line = shown if done < total else ""
    if os.environ.get("NO_COLOR"):
        # No escape at all: blanks instead of one that clears the line.
        stream.write(f"\r{' ' * (get_terminal_size().columns - 1)}\r{line}")
    else:
        stream.write(f"\r\x1b[K{line}")
    stream.flush()
