"""Markdown renderer: text cannot end its line, cell or fence, or create links or mentions."""

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


def _cell(cell: Inline | Styled) -> str:
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
