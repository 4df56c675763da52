"""Terminal renderer: text cannot contain markup, line ends or escape sequences."""

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
from policygen.untrusted import visible


class Terminal(Console):
    """Console whose only escape sequences are those of its own styles."""

    def __init__(self, stream: TextIO) -> None:
        # No width is forced: a narrow terminal folds lines instead of truncating them.
        # Without a color system there are no escape sequences at all, not even bold or underlined
        # text.
        super().__init__(
            file=stream,
            color_system=None if os.environ.get("NO_COLOR") else "auto",
            highlight=False,
            emoji=False,
            markup=False,
        )

    def render_str(self, text: str, **options: Any) -> Text:
        """Render text of one line or table cell."""
        return super().render_str(visible(text), **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Render segments; text laid out elsewhere may have several lines."""
        return super()._render_buffer(
            segment if segment.control else Segment(visible(segment.text, "\n"), segment.style)
            for segment in buffer
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
        *upper_lines, last_line = fill(block.left, self.width)
        right_text = f"  {block.right.joint.join(block.right.parts)}"
        if len(last_line) + len(right_text) > self.width:
            self._write_words(block.left)
            self._write_words(block.right)
            return
        for row in upper_lines:
            self.print(row, style=block.left.style, soft_wrap=True)
        self.write([Note(((last_line, block.left.style), (right_text, block.right.style)))])


def _text(text: Inline, style: str = "") -> Text:
    """Build one line; rich would drop some control characters."""
    return Text.assemble(
        *((visible(spelled(value)), piece_style) for value, piece_style in pieces(text)),
        style=style,
    )


def _grid(table: Table) -> Grid:
    plain = table.style == "plain"
    grid = Grid(box=None if plain else SIMPLE_HEAD, pad_edge=False, show_edge=False)
    if plain:
        grid.padding, grid.header_style = (0, 2, 0, 0), "bold"
    for item in table.columns:
        column = item if isinstance(item, Column) else Column(item)
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
    styled = cell if isinstance(cell, Styled) else Styled(cell)
    if isinstance(styled.text, Figure):
        raise TypeError("a terminal has no figures")
    return _text(styled.text, styled.style)


LEAST = 20
"""Minimum width of the words after a long prefix."""


def wrap(parts: Iterable[str], joint: str, width: int, first: int | None = None) -> list[str]:
    """Fill lines with unbroken parts; a part longer than a line gets its own line."""
    lines: list[str] = []
    line_width = width if first is None else first
    for part in parts:
        if lines and len(lines[-1]) + len(joint) + len(part) + len(joint.rstrip()) <= line_width:
            lines[-1] += joint + part
            continue
        if lines:
            lines[-1] += joint.rstrip()
            line_width = width
        lines.append(part)
    return lines


def fill(block: Words, width: int) -> list[str]:
    """Wrap words, each line with its prefix."""
    first, later = width - len(block.first), width - len(block.hanging)
    if block.even:
        first = later = max(LEAST, min(first, later))
    elif block.first.strip() and first <= len(next(iter(block.parts), "")):
        # There is no room after the prefix of the first line.
        return [
            block.first,
            *(block.hanging + row for row in wrap(block.parts, block.joint, later)),
        ]
    rows = wrap(block.parts, block.joint, later, first)
    return [(block.hanging if index else block.first) + row for index, row in enumerate(rows)]
