"""Compares two versions of a file as a diff for `git apply`."""

import difflib
from collections.abc import Iterator, Sequence


def unified(path: str, before: bytes, after: bytes) -> str:
    """Returns the changes with three lines of context; empty for equal contents.

    Bytes that are not UTF-8 are surrogate escapes: write the diff with "surrogateescape".
    """
    return "".join(_rows(path, before, after))


def _rows(path: str, before: bytes, after: bytes) -> Iterator[str]:
    if before == after:
        return
    # Without this line git treats a file that becomes empty as a removed one.
    yield f"diff --git a/{path} b/{path}\n"
    # git appends a tab to a name with a space, so that what follows is not taken for a date.
    suffix = "\t" if " " in path else ""
    yield f"--- a/{path}{suffix}\n"
    yield f"+++ b/{path}{suffix}\n"
    old, new = _lines(before), _lines(after)
    # autojunk would ignore frequent lines, which most lines of a header are.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from _marked(" ", old[i1:i2])
            else:
                yield from _marked("-", old[i1:i2])
                yield from _marked("+", new[j1:j2])


def _range(start: int, end: int) -> str:
    """Formats four lines from the seventh as `7,4`; for no lines, the line before them."""
    count = end - start
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        is_complete = line.endswith("\n")
        yield f"{mark}{line}" if is_complete else f"{mark}{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """Splits lines, keeping their ends; a carriage return is part of the line, as in git."""
    *complete, last = data.decode("utf-8", "surrogateescape").split("\n")
    return [f"{line}\n" for line in complete] + ([last] if last else [])
