"""Blocks as a page of one file; the template escapes whatever stands in it."""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from itertools import zip_longest
from typing import Any

from markupsafe import Markup

from policygen.rendering import fill
from policygen.report.blocks import Block, Drawing, Page, pieces, spelled
from policygen.report.charts import svg


def render(page: Page, template: str) -> str:
    """Write a whole document with the styles and the script of its template."""
    anchors = Anchors()
    ways = {
        "pieces": pieces,
        "spelled": spelled,
        "kind": _kind,
        "columns": _columns,
        "inline": _inline,
        "drawn": _drawn,
        "define": anchors.define,
        "link": anchors.link,
    }
    return fill(f"report/{template}.html.j2", {"page": page, **ways})


def _kind(block: Block) -> str:
    """Name the macro that writes a block."""
    return type(block).__name__


def _inline(svg: bytes) -> str:
    """Write a drawing as an address: in an image nothing of it is run."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _drawn(drawing: Drawing, name: str) -> Markup:
    """Write the marks of a drawing; what is in them is escaped there."""
    return Markup(svg(drawing, name))  # noqa: S704  it is escaped


def _columns(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Set a diff side by side, its lines with colours."""
    for row in side_by_side("\n".join(lines)):
        old, new = (
            side and (side[0], Markup(coloured(side[1])))  # noqa: S704  it is escaped
            for side in (row.old, row.new)
        )
        yield {"kind": row.kind, "old": old, "new": new}


# shares/reduce.sum, workloads/reduce.sum/T=I8/OffsetT=I32
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]{1,100}")
_OTHER = re.compile(r"[^A-Za-z0-9._=/-]+")
_KEPT = 60
"""Letters of a text that is not taken as it is."""


# What a page calls its rows: the same as long as they hold the same, and each only once.


def slug(text: str) -> str:
    """Make an identifier that depends on the text alone; two texts never have the same.

    What is more than plain letters is cut down to them, with a digest of the whole behind it.
    """
    if _PLAIN.fullmatch(text):
        return text
    plain = _OTHER.sub("-", text)[:_KEPT].strip("-")
    return f"{plain}~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:10]}"


@dataclass(slots=True)
class Anchors:
    """The identifiers of one page, in the order in which it has them."""

    seen: Counter[str] = field(default_factory=Counter)

    def define(self, text: str) -> str:
        """Give the identifier of a row; that of a second one with the same text has a number."""
        name = slug(text)
        self.seen[name] += 1
        return name if self.seen[name] == 1 else f"{name}~{self.seen[name]}"

    def link(self, text: str) -> str:
        """Give the address of the first row with a text."""
        return f"#{slug(text)}"


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


# A unified diff as two columns of C++, with colours.


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
