"""Blocks as Markdown: no text ends its line, cell or fence, links or mentions."""

from collections.abc import Iterable, Iterator, Sequence

from policygen.report.blocks import (
    Block,
    Cards,
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
from policygen.untrusted import code, fenced, html, markdown


def render(page: Page) -> str:
    """Write a whole document."""
    facts = "; ".join(f"{name}: {text}" for name, text in page.facts.items())
    return "\n\n".join(_blocks([Heading(page.title, 1), Note(facts), *page.blocks])) + "\n"


def _blocks(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _blocks(block.blocks) if isinstance(block, Fold | Chapter) else _block(block)


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
        case _:
            raise TypeError(f"Markdown has no {type(block).__name__}")


def _line(text: Inline) -> str:
    return "".join(_piece(one, style) for one, style in pieces(text))


def _piece(one: str | float, style: str) -> str:
    if not isinstance(one, str):
        return spelled(one)
    if style == "code":
        return code(one)
    # The blanks at its ends are between it and its neighbours.
    text = f"{' ' * one.startswith(' ')}{markdown(one)}{' ' * one.endswith(' ')}"
    return f"**{text}**" if style == "bold" else text


def _more(found: Sequence[object], shown: int | None, what: str = "") -> Iterator[str]:
    if shown is not None and len(found) > shown:
        yield f"and {len(found) - shown} more{what}"


def _table(table: Table) -> Iterator[str]:
    columns = [one if isinstance(one, Column) else Column(one) for one in table.columns]
    yield "|" + "".join(f" {_line(one.title)} |" if one.title else " |" for one in columns)
    yield "|" + "".join(" ---: |" if one.style not in {"", "name"} else " --- |" for one in columns)
    for row in table.rows[: table.shown]:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(cell: Inline | Styled) -> str:
    found = cell if isinstance(cell, Styled) else Styled(cell)
    if isinstance(found.text, Figure):
        raise TypeError("Markdown has no figures")
    text = found.text
    return code(text) if found.style == "code" and isinstance(text, str) else _line(text)


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
