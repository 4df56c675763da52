"""Two contents of a file, as a diff that `git apply` takes."""

import difflib
from collections.abc import Iterator


def unified(path: str, before: bytes, after: bytes) -> str:
    """The changed lines with three around them; nothing for equal contents.

    Bytes that are no UTF-8 are surrogate escapes: encode with "surrogateescape" to write it.
    """
    return "".join(_rows(path, before, after))


def _rows(path: str, before: bytes, after: bytes) -> Iterator[str]:
    if before == after:
        return
    # Without this line git takes a file that becomes empty for one that is removed.
    yield f"diff --git a/{path} b/{path}\n"
    # git ends a name that holds a space with a tab, for what reads it finds a date there.
    end = "\t" if " " in path else ""
    names = (f"a/{path}{end}", f"b/{path}{end}")
    for row in difflib.unified_diff(_lines(before), _lines(after), *names):
        yield row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """With their ends; a carriage return is part of a line, as it is for git."""
    *whole, last = data.decode("utf-8", "surrogateescape").split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])
