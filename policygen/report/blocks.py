"""Building blocks of reports: plain text, written by one renderer per medium.

Views do not escape anything, because only the renderer knows what is safe in its medium.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from policygen.errors import plural

T = TypeVar("T")
Piece = tuple[str | float, str]
"""Text, or a number shown with three decimals, and its style."""
Inline = str | float | tuple[Piece, ...]
"""Content of a line."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line on a terminal, a paragraph elsewhere."""

    text: Inline = ""
    style: str = ""
    folded: bool = False
    """Whether the line is wrapped at the width of the terminal."""


BLANK = Note()


@dataclass(frozen=True, slots=True)
class Words:
    """Words, or parts that are never broken, wrapped at the width of the terminal."""

    words: str | Sequence[str]
    style: str = ""
    first: str = ""
    """Prefix of the first line."""
    later: str | None = None
    """Prefix of the following lines; None indents them by two more spaces than the first."""
    joint: str = " "
    even: bool = False
    """Whether all lines reserve the same space for the prefix."""
    mark: str | None = None
    """Style of the prefix of the first line; None uses the style of the words."""

    @property
    def parts(self) -> Sequence[str]:
        """Parts that are never broken."""
        return self.words.split(" ") if isinstance(self.words, str) else self.words

    @property
    def hanging(self) -> str:
        """Prefix of the lines after the first."""
        return f"{self.first}  " if self.later is None else self.later


@dataclass(frozen=True, slots=True)
class Beside:
    """Words with further words to their right, or below them if there is no room."""

    left: Words
    right: Words


@dataclass(frozen=True, slots=True)
class Figure:
    """Bars that illustrate values that the text states, too."""

    kind: str
    """`bar` and `stack` show parts of a whole, `strip` a sequence, and `track` starts in the
    middle.
    """
    bars: Sequence[tuple[str, float, str]]
    """Style, percentage, and text of each bar."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; style `n` marks numbers; `whole` and `name` columns never wrap."""

    title: str
    style: str = ""
    least: int | None = None
    """Minimum width on a terminal, in characters."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell with a style, a tooltip, or a link."""

    text: Inline | Figure
    style: str = ""
    why: str = ""
    to: str = ""
    """Anchor on the page that the cell links to."""


Cell = Inline | Styled


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a header."""

    columns: Sequence[str | Column]
    rows: Sequence[Sequence[Cell]]
    style: str = ""
    label: str = ""
    """Description for screen readers."""
    shown: int | None = None
    """Maximum number of rows in Markdown."""
    styles: Sequence[str] = ()
    """Styles of the rows on a terminal."""
    total: bool = False
    """Whether the last row contains totals."""
    anchors: Sequence[str] = ()
    """Anchors of the rows on a page, for links; see `Anchors`."""


@dataclass(frozen=True, slots=True)
class TableRows(Generic[T]):
    """Items that become the rows of a table."""

    items: Sequence[T]

    def table(
        self,
        *fields: tuple[str, str, Callable[[T], Cell | None]] | None,
        style: str = "",
        label: str = "",
        shown: int | None = None,
        look: Callable[[T], str] | None = None,
        anchor: Callable[[T], str] | None = None,
    ) -> Table:
        """Show fields as columns: title, style, and cell of an item.

        None omits a column or leaves a cell empty. `look` is the style of a row on a terminal.
        """
        present = [field for field in fields if field is not None]
        return Table(
            [Column(title, column_style) for title, column_style, _ in present],
            [
                ["" if (value := cell(item)) is None else value for _, _, cell in present]
                for item in self.items
            ],
            style,
            label,
            shown,
            [look(item) for item in self.items] if look else (),
            anchors=[anchor(item) for item in self.items] if anchor else (),
        )


@dataclass(frozen=True, slots=True)
class Mixed:
    """A whole and its parts: `50 %`, `12/24`, text, and style and percentage of each part."""

    answer: str
    count: str
    words: str
    parts: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Row of a matrix, with None for columns that do not apply."""

    name: str
    cells: Sequence[Mixed | None]
    to: str = ""
    """Anchor that the row links to."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Wholes by row and column; narrow screens show a list per column instead."""

    corner: str
    columns: Sequence[Column]
    rows: Sequence[MatrixRow]
    label: str
    anchor: str
    """Prefix of the anchors of the rows."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A section heading."""

    text: Inline
    level: int = 2
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Items of a list."""

    items: Sequence[Inline]
    style: str = ""
    shown: int | None = None
    """Maximum number of items in Markdown."""
    loose: bool = False
    """Whether Markdown separates items by blank lines and does not mention hidden ones."""
    to: Sequence[str] = ()
    """Anchors on the page that the items link to; an empty anchor means no link."""


@dataclass(frozen=True, slots=True)
class Card:
    """An answer at the top of a page: its number first, followed by details."""

    title: str
    answer: str
    lines: Sequence[str]
    rest: str = ""
    """Continuation of the answer."""
    style: str = ""
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a page."""

    hint: str
    choices: Mapping[str, tuple[str, Sequence[str]]]
    """Maps each facet to its title and values."""
    boxes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are collapsed until opened."""

    summary: Inline
    blocks: Sequence["Block"]
    style: str = ""
    figure: Figure | None = None
    open: bool = False
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Related blocks, with the facets that filters match."""

    blocks: Sequence["Block"]
    style: str
    facets: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """Code block."""

    lines: Sequence[str]
    language: str


@dataclass(frozen=True, slots=True)
class Diff:
    """Lines of a unified diff of a file; Markdown shows only the first ones."""

    path: str
    lines: Sequence[str]
    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """An SVG element of a drawing: its name, attributes, and text."""

    name: str
    look: str
    """CSS class; the page defines the colors."""
    where: Mapping[str, float | str]
    text: str = ""
    title: str = ""
    """Tooltip."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure of a page, which follows its light or dark theme, or of an SVG file."""

    title: str
    words: str
    """Description for screen readers."""
    width: float
    height: float
    marks: Sequence[Mark]
    note: str = ""
    """Caption below the figure."""


Block = (
    Note | Words | Beside | Table | Matrix | Heading | Listing | Cards | Filters | Fold | Chapter
    | Code | Diff | Drawing
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """A complete document."""

    title: str
    facts: Mapping[str, str]
    blocks: Sequence[Block]


def pieces(text: Inline) -> tuple[Piece, ...]:
    """Return the pieces of a line."""
    return text if isinstance(text, tuple) else ((text, ""),)


def spelled(value: str | float) -> str:
    """Write a number with three decimals."""
    return value if isinstance(value, str) else f"{value:.3f}"


def remarks(texts: Iterable[str]) -> Iterable[Words]:
    """Format remarks about the whole document."""
    return (Words(f"note: {remark}", "yellow") for remark in texts)


def cut(items: Sequence[T], most: int, *, verbose: bool) -> tuple[Sequence[T], int]:
    """Return the items to list, all of them with -v, and how many are hidden."""
    shown = items if verbose else items[:most]
    return shown, len(items) - len(shown)


def more(count: int, noun: str, suffix: str = "") -> Iterator[Block]:
    """State how many items of a list are not shown, if any."""
    if count > 0:
        yield Note(f"and {plural(count, f'more {noun}')}{suffix}")


def shortened(
    items: Sequence[T], most: int, show: Callable[[T], Iterable[Block]], *, verbose: bool
) -> Iterator[Block]:
    """Show items, all of them with -v; a truncated list states how many are hidden."""
    shown, hidden = cut(items, most, verbose=verbose)
    for item in shown:
        yield from show(item)
    if hidden:
        yield Note(f"  and {hidden:,} more (-v lists them)", "dim", folded=True)


# Notable facts: the largest of each kind

MOST_FACTS = 10


@dataclass(frozen=True, slots=True)
class Fact:
    """A notable fact that starts with a number, with a size to rank it among its kind."""

    size: float
    text: Inline
    to: str = ""
    """Anchor of the subject."""


def fact(size: float, words: str, to: str = "", number: str | None = None) -> Fact:
    """Put the number before the words; it defaults to the size."""
    head = f"{size:,.0f}" if number is None else number
    return Fact(size, ((head, "bold"), (f" {words}", "")), to)


def largest(kinds: Sequence[Iterable[Fact]]) -> list[Fact]:
    """Pick the largest facts of each kind in turn, ten in total, and keep kinds together."""
    ranked = [sorted(facts, key=lambda fact_of_kind: -fact_of_kind.size) for facts in kinds]
    picks = sorted((rank, kind) for kind, facts in enumerate(ranked) for rank in range(len(facts)))
    return [ranked[kind][rank] for kind, rank in sorted((b, a) for a, b in picks[:MOST_FACTS])]


def standing_out(kinds: Sequence[Iterable[Fact]]) -> Iterable[Block]:
    """Show facts under a heading, each linked to its subject."""
    if facts := largest(kinds):
        yield Heading("What stands out")
        yield Listing([shown.text for shown in facts], "largest", to=[shown.to for shown in facts])
