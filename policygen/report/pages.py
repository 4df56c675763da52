"""Renderers of whole documents: a page in a single HTML file, escaped by its template, or Markdown.

Text in Markdown cannot end its line, cell or fence, or create links or mentions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from itertools import zip_longest
from typing import Literal

from markupsafe import Markup

from policygen.model.audits import Coverage
from policygen.model.databases import DbCompare
from policygen.model.measured import StrategyMatrix
from policygen.model.reviews import Review
from policygen.model.searches import SearchReport
from policygen.portable import portable
from policygen.rendering import fill
from policygen.report import (
    coverage_views,
    database_views,
    measure_views,
    review_views,
    search_page,
)
from policygen.report.blocks import (
    Block,
    Cards,
    Cell,
    Chapter,
    Code,
    Column,
    Diff,
    Figure,
    Fold,
    Heading,
    Inline,
    Listing,
    Note,
    Page,
    Styled,
    Table,
    pieces,
    spelled,
)
from policygen.report.charts import svg
from policygen.untrusted import code, fenced, html, markdown

COMMENT = 65_536
"""Maximum length of a pull request comment, in characters."""


def render_page(
    document: Coverage | DbCompare | Review | SearchReport | StrategyMatrix,
    form: Literal["json", "csv", "md", "html"] = "html",
) -> str:
    """Renders a document as `md` or `html`, a review as `json` and coverage as `csv`, too.

    Only JSON names paths of this machine.
    """
    if form == "json":
        return document.to_json() + "\n"
    document = portable(document)
    is_page = form == "html"
    match document:
        case Review():
            if not is_page:
                return _comment(document)
            page, template = review_views.page(document, None), "review"
        case Coverage():
            if form == "csv":
                return coverage_views.csv_lines(document)
            page, template = coverage_views.page(document, is_page=is_page), "coverage"
        case DbCompare():
            page, template = database_views.page(document, is_page=is_page), "compare"
        case SearchReport():
            page, template = search_page.page(document, is_page=is_page), "search"
        case StrategyMatrix():
            page, template = measure_views.page(document, is_page=is_page), "search"
    return render(page, template) if is_page else render_markdown(page)


def _comment(document: Review) -> str:
    """Write Markdown whose lists are shortened until it fits into a comment."""
    for rows in (400, 200, 100, 50, 20, 10, 5, 2, 1):
        text = render_markdown(review_views.page(document, rows))
        if len(text) <= COMMENT:
            return text
    notice = "\n\nThe rest does not fit into a comment.\n"
    return text[: COMMENT - len(notice)] + notice


def render(page: Page, template: str) -> str:
    """Render a page with the styles and script of its template."""
    anchors = Anchors()
    helpers = {
        "pieces": pieces,
        "spelled": spelled,
        "kind": lambda block: type(block).__name__,
        "columns": lambda lines: side_by_side("\n".join(lines)),
        "coloured": lambda text: Markup(coloured(text)),  # noqa: S704  escaped by coloured
        "drawn": lambda drawing, name: Markup(svg(drawing, name)),  # noqa: S704  escaped by svg
        "define": anchors.define,
        "link": anchors.link,
    }
    return fill(f"report/{template}.html.j2", {"page": page, **helpers})


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
    yield from (DiffRow("changed", *pair) for pair in zip_longest(removed, added))
    removed.clear()
    added.clear()


def render_markdown(page: Page) -> str:
    """Write a whole document."""
    facts = "; ".join(f"{name}: {text}" for name, text in page.facts.items())
    return "\n\n".join(_blocks([Heading(page.title, 1), Note(facts), *page.blocks])) + "\n"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Note():
            yield _line(block.text)
        case Heading():
            yield f"{'#' * block.level} {_line(block.text)}"
        case Listing():
            items = (f"- {_line(item)}" for item in block.items[: block.shown])
            yield ("\n\n" if block.loose else "\n").join(items)
            yield from () if block.loose else _more(block.items, block.shown)
        case Table():
            yield "\n".join(_table(block))
            yield from _more(block.rows, block.shown)
        case Cards():
            yield "\n".join(_cards(block))
        case Code():
            yield fenced("\n".join(block.lines), block.language)
        case Diff():
            yield from _diff(block)
        case Chapter():
            yield from _blocks(block.blocks)
        case Fold():
            yield f"<details><summary>{_line(block.summary)}</summary>"
            yield from _blocks(block.blocks)
            yield "</details>"
        case _:
            raise TypeError(f"Markdown has no {type(block).__name__}")


def _line(text: Inline) -> str:
    return "".join(_piece(value, style) for value, style in pieces(text))


def _piece(value: str | float, style: str) -> str:
    if not isinstance(value, str):
        return spelled(value)
    if style == "code":
        return code(value)
    # Leading and trailing spaces separate a piece from its neighbors.
    text = f"{' ' * value.startswith(' ')}{markdown(value)}{' ' * value.endswith(' ')}"
    return f"**{text}**" if style == "bold" else text


def _more(items: Sequence[object], shown: int | None, noun: str = "") -> Iterator[str]:
    if shown is not None and len(items) > shown:
        yield f"and {len(items) - shown} more{noun}"


def _table(table: Table) -> Iterator[str]:
    columns = [column if isinstance(column, Column) else Column(column) for column in table.columns]
    yield "|" + "".join(f" {_line(column.title)} |" if column.title else " |" for column in columns)
    yield "|" + "".join(
        " ---: |" if column.style not in {"", "name"} else " --- |" for column in columns
    )
    for row in table.rows[: table.shown]:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(cell: Cell) -> str:
    styled = cell if isinstance(cell, Styled) else Styled(cell)
    if isinstance(styled.text, Figure):
        raise TypeError("Markdown has no figures")
    text = styled.text
    return code(text) if styled.style == "code" and isinstance(text, str) else _line(text)


def _cards(block: Cards) -> Iterator[str]:
    yield "| | |\n| --- | --- |"
    for card in block.cards:
        lines = "".join(f"<br>{markdown(line)}" for line in card.lines)
        answer = markdown(f"{card.answer} {card.rest}".strip())
        yield f"| **{markdown(card.title)}** | **{answer}**{lines} |"


def _diff(block: Diff) -> Iterator[str]:
    yield f"<details><summary>{html(block.path)}</summary>"
    yield fenced("\n".join(block.lines[: block.shown]), "diff")
    yield from _more(block.lines, block.shown, " lines")
    yield "</details>"
