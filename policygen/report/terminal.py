"""Blocks on a terminal, to which no text is markup, a line end or an escape sequence."""

import os
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from policygen.report.blocks import (
    Beside,
    Block,
    Column,
    Figure,
    Inline,
    Note,
    Styled,
    Table,
    Words,
    pieces,
    spelled,
)
from policygen.report.sink import raw
from policygen.untrusted import visible


class Terminal(Console):
    """Shows what it is given; the escape sequences are those of its own styles."""

    def __init__(self, stream: TextIO) -> None:
        # No width is forced: a narrow terminal folds lines, it cuts nothing.
        # Without a colour system there is no bold and no underline either: no escapes at all.
        super().__init__(
            file=raw(stream),
            color_system=None if os.environ.get("NO_COLOR") else "auto",
            highlight=False,
            emoji=False,
            markup=False,
        )

    def render_str(self, text: str, **how: Any) -> Text:
        """Text of one line, or of one cell of a table."""
        return super().render_str(visible(text), **how)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """What was laid out: texts that were made elsewhere have several lines."""
        return super()._render_buffer(
            one if one.control else Segment(visible(one.text, "\n"), one.style) for one in buffer
        )

    def write(self, blocks: Iterable[Block]) -> None:
        """Write blocks one below the other."""
        for block in blocks:
            if isinstance(block, Beside):
                self._write_beside(block)
            elif isinstance(block, Words):
                self._write_words(block)
            elif isinstance(block, Note):
                self.print(_text(block.text, block.style), soft_wrap=not block.folded)
            elif isinstance(block, Table):
                self.print(_grid(block))
            else:
                raise TypeError(f"a terminal has no {type(block).__name__}")

    def _write_words(self, block: Words) -> None:
        for index, row in enumerate(fill(block, self.width)):
            marked = 0 if index or block.mark is None else len(block.first)
            text = _text(((row[:marked], block.mark or ""), (row[marked:], "")))
            self.print(text, style=block.style, soft_wrap=block.even)

    def _write_beside(self, block: Beside) -> None:
        *above, last = fill(block.left, self.width)
        behind = f"  {block.right.joint.join(block.right.parts)}"
        if len(last) + len(behind) > self.width:
            self._write_words(block.left)
            self._write_words(block.right)
            return
        for row in above:
            self.print(row, style=block.left.style, soft_wrap=True)
        self.write([Note(((last, block.left.style), (behind, block.right.style)))])


def _text(text: Inline, style: str = "") -> Text:
    """One line; rich would drop some of its control characters."""
    return Text.assemble(*((visible(spelled(one)), how) for one, how in pieces(text)), style=style)


def _grid(table: Table) -> Grid:
    plain = table.style == "plain"
    grid = Grid(box=None if plain else SIMPLE_HEAD, pad_edge=False, show_edge=False)
    if plain:
        grid.padding, grid.header_style = (0, 2, 0, 0), "bold"
    for one in table.columns:
        column = one if isinstance(one, Column) else Column(one)
        grid.add_column(
            column.title,
            justify="right" if column.style in {"n", "whole"} else "left",
            overflow="ellipsis" if column.style else "fold",
            no_wrap=column.style in {"whole", "name"},
            min_width=column.least,
        )
    for row, style in zip_longest(table.rows, table.styles):
        if table.total and row is table.rows[-1]:
            grid.add_section()
        grid.add_row(*map(_cell, row), style=style)
    return grid


def _cell(cell: Inline | Styled) -> Text:
    found = cell if isinstance(cell, Styled) else Styled(cell)
    if isinstance(found.text, Figure):
        raise TypeError("a terminal has no figures")
    return _text(found.text, found.style)


LEAST = 20
"""Letters for words behind a long beginning."""


# Words on lines of a terminal.


def wrap(parts: Iterable[str], joint: str, width: int, first: int | None = None) -> list[str]:
    """Fill lines with whole parts; a part that is longer than a line has one of its own."""
    lines: list[str] = []
    room = width if first is None else first
    for part in parts:
        if lines and len(lines[-1]) + len(joint) + len(part) + len(joint.rstrip()) <= room:
            lines[-1] += joint + part
            continue
        if lines:
            lines[-1] += joint.rstrip()
            room = width
        lines.append(part)
    return lines


def fill(block: Words, width: int) -> list[str]:
    """Lay words out, each line with what it begins with."""
    first, later = width - len(block.first), width - len(block.hanging)
    if block.even:
        first = later = max(LEAST, min(first, later))
    elif block.first.strip() and first <= len(next(iter(block.parts), "")):
        # There is no room behind what the first line begins with.
        return [
            block.first,
            *(block.hanging + row for row in wrap(block.parts, block.joint, later)),
        ]
    rows = wrap(block.parts, block.joint, later, first)
    return [(block.hanging if index else block.first) + row for index, row in enumerate(rows)]
