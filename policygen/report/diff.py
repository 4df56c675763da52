"""A diff on standard output, byte for byte; coloured on a terminal."""

import sys

from policygen.report import console
from policygen.report.sink import LINES, raw
from policygen.textdiff import unified
from policygen.untrusted import visible

__all__ = ["coloured", "print_diff", "unified"]

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
# As git colours them.
_COLOURS = {"@": "\x1b[36m", "+": "\x1b[32m", "-": "\x1b[31m"}


def coloured(diff: str) -> str:
    """The diff with git's colours, for a terminal."""
    rows: list[str] = []
    head = True
    for line in diff.split("\n"):
        # A removed line `-- x` looks like the name of a file; the place tells them apart.
        head = line.startswith("diff ") or (head and not line.startswith("@"))
        colour = _BOLD if head else _COLOURS.get(line[:1])
        rows.append(f"{colour}{line}{_RESET}" if line and colour else line)
    return "\n".join(rows)


def print_diff(diff: str) -> None:
    """Writes a diff; a file that it is sent to can be given to `git apply`."""
    out = console.results()
    if out.is_terminal:
        diff = visible(diff, LINES)
    if out.color_system is not None and not out.no_color:
        diff = coloured(diff)
    stream = raw(sys.stdout)
    stream.flush()
    stream.buffer.write(diff.encode("utf-8", "surrogateescape"))
    stream.buffer.flush()
