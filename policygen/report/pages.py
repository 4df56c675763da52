"""HTML renderer: a page in a single file, escaped by its template."""

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
    """Render a whole document with the styles and script of its template."""
    anchors = Anchors()
    helpers = {
        "pieces": pieces,
        "spelled": spelled,
        "kind": _kind,
        "columns": _diff_columns,
        "inline": _data_url,
        "drawn": _drawing_html,
        "define": anchors.define,
        "link": anchors.link,
    }
    return fill(f"report/{template}.html.j2", {"page": page, **helpers})


def _kind(block: Block) -> str:
    """Return the name of the macro that renders a block."""
    return type(block).__name__


def _data_url(svg: bytes) -> str:
    """Encode a drawing as a data URL; scripts in an image are not executed."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _drawing_html(drawing: Drawing, name: str) -> Markup:
    """Render a drawing as SVG, which is already escaped."""
    return Markup(svg(drawing, name))  # noqa: S704  escaped by svg


def _diff_columns(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Set a diff side by side, with highlighted lines."""
    for row in side_by_side("\n".join(lines)):
        old, new = (
            side and (side[0], Markup(coloured(side[1])))  # noqa: S704  escaped by coloured
            for side in (row.old, row.new)
        )
        yield {"kind": row.kind, "old": old, "new": new}


# shares/reduce.sum, workloads/reduce.sum/T=I8/OffsetT=I32
_PLAIN_SLUG = re.compile(r"[A-Za-z0-9._=/-]{1,100}")
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9._=/-]+")
_SLUG_PREFIX = 60
"""Characters kept of a text that cannot be used unchanged."""


# Stable, unique anchors of rows


def slug(text: str) -> str:
    """Make an identifier from the text alone, distinct for distinct texts.

    Other characters are replaced, and a digest of the whole text is appended.
    """
    if _PLAIN_SLUG.fullmatch(text):
        return text
    plain = _NOT_IN_SLUG.sub("-", text)[:_SLUG_PREFIX].strip("-")
    return f"{plain}~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:10]}"


@dataclass(slots=True)
class Anchors:
    """Identifiers of a page, in order of definition."""

    seen: Counter[str] = field(default_factory=Counter)

    def define(self, text: str) -> str:
        """Return the identifier of a row; repeated texts get a numeric suffix."""
        name = slug(text)
        self.seen[name] += 1
        return name if self.seen[name] == 1 else f"{name}~{self.seen[name]}"

    def link(self, text: str) -> str:
        """Return the address of the first row with a text."""
        return f"#{slug(text)}"


# Comments, strings, preprocessor directives, numbers, and keywords; the rest is not colored.
_TOKENS = re.compile(
    r"(?P<c>//.*|/\*.*?\*/)|(?P<s>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<p>^\s*#\s*\w+)"
    r"|(?P<n>\b\d[\w.']*)|(?P<k>\b(?:template|typename|class|struct|static|constexpr|using|public"
    r"|private|int|bool|unsigned|auto|const|true|false|namespace|sizeof|return|if|else)\b)"
)
# @@ -7,4 +7,6 @@
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A line on both sides, or None on the side without a counterpart."""

    kind: str
    """`same`, `changed`, or `gap` between two hunks."""
    old: tuple[int, str] | None
    new: tuple[int, str] | None


# Unified diffs as two columns of highlighted C++


def side_by_side(diff: str) -> Iterator[DiffRow]:
    """Yield the rows of a unified diff; replaced lines are paired with their replacements."""
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    old_line = new_line = 0
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n"):
        if hunk := _HUNK.match(line):
            yield from _pair_replaced_lines(removed, added)
            if in_hunk:
                yield DiffRow("gap", None, None)
            in_hunk = True
            old_line, new_line = int(hunk[1]), int(hunk[2])
        elif not in_hunk or line.startswith("\\"):
            continue
        elif line.startswith("-"):
            removed.append((old_line, line[1:]))
            old_line += 1
        elif line.startswith("+"):
            added.append((new_line, line[1:]))
            new_line += 1
        else:
            yield from _pair_replaced_lines(removed, added)
            yield DiffRow("same", (old_line, line[1:]), (new_line, line[1:]))
            old_line, new_line = old_line + 1, new_line + 1
    yield from _pair_replaced_lines(removed, added)


def coloured(text: str) -> str:
    """Highlight a line of C++ as HTML."""
    parts, end = [], 0
    for match in _TOKENS.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(f'<span class="{match.lastgroup}">{escape(match[0])}</span>')
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def _pair_replaced_lines(
    removed: list[tuple[int, str]], added: list[tuple[int, str]]
) -> Iterator[DiffRow]:
    for old, new in zip_longest(removed, added):
        yield DiffRow("changed", old, new)
    removed.clear()
    added.clear()
