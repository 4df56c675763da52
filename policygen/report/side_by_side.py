"""A unified diff as two columns of C++, with colours."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import zip_longest

# A comment, a string, a preprocessor line, a number, a word; what is between them has no colour.
_TOKENS = re.compile(
    r"(?P<c>//.*|/\*.*?\*/)|(?P<s>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<p>^\s*#\s*\w+)"
    r"|(?P<n>\b\d[\w.']*)|(?P<k>\b(?:template|typename|class|struct|static|constexpr|using|public"
    r"|private|int|bool|unsigned|auto|const|true|false|namespace|sizeof|return|if|else)\b)"
)
# @@ -7,4 +7,6 @@
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line on both sides; none where a side has no counterpart."""

    kind: str
    """`same`, `changed`, or `gap` between two places."""
    old: tuple[int, str] | None
    new: tuple[int, str] | None


def side_by_side(diff: str) -> Iterator[DiffRow]:
    """The rows of a unified diff; lines that were replaced stand beside each other."""
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    before = after = 0
    begun = False
    for line in diff.removesuffix("\n").split("\n"):
        if hunk := _HUNK.match(line):
            yield from _replaced(removed, added)
            if begun:
                yield DiffRow("gap", None, None)
            begun = True
            before, after = int(hunk[1]), int(hunk[2])
        elif not begun or line.startswith("\\"):
            continue
        elif line.startswith("-"):
            removed.append((before, line[1:]))
            before += 1
        elif line.startswith("+"):
            added.append((after, line[1:]))
            after += 1
        else:
            yield from _replaced(removed, added)
            yield DiffRow("same", (before, line[1:]), (after, line[1:]))
            before, after = before + 1, after + 1
    yield from _replaced(removed, added)


def coloured(text: str) -> str:
    """A line of C++ as HTML."""
    parts, end = [], 0
    for match in _TOKENS.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(f'<span class="{match.lastgroup}">{escape(match[0])}</span>')
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def _replaced(removed: list[tuple[int, str]], added: list[tuple[int, str]]) -> Iterator[DiffRow]:
    for old, new in zip_longest(removed, added):
        yield DiffRow("changed", old, new)
    removed.clear()
    added.clear()
