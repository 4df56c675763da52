"""Two contents of a file, as a diff that `git apply` takes."""

import difflib
from collections.abc import Iterator, Sequence


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
    yield f"--- a/{path}{end}\n"
    yield f"+++ b/{path}{end}\n"
    old, new = _lines(before), _lines(after)
    # Left to itself difflib does not look at lines that are frequent, as most of a header's are.
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
    """`7,4` for four lines from the seventh; of no lines it is the one before."""
    count = end - start
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        ended = line.endswith("\n")
        yield f"{mark}{line}" if ended else f"{mark}{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    """With their ends; a carriage return is part of a line, as it is for git."""
    *whole, last = data.decode("utf-8", "surrogateescape").split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])
