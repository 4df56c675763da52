"""What reports are made of: blocks of plain text, which one renderer for each medium writes.

Views make them and escape nothing: what is safe in a medium is known to its renderer alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Piece = tuple[str | float, str]
"""A text, or a number that has three digits behind the point, and its style."""
Inline = str | float | tuple[Piece, ...]
"""What stands on a line."""


@dataclass(frozen=True, slots=True)
class Note:
    """A line, elsewhere a paragraph."""

    text: Inline = ""
    style: str = ""
    folded: bool = False
    """Whether it is as wide as a terminal at most."""


BLANK = Note()


@dataclass(frozen=True, slots=True)
class Words:
    """Words, or given parts that stay whole, as many on a line of a terminal as there is room."""

    words: str | Sequence[str]
    style: str = ""
    first: str = ""
    """What the first line begins with."""
    later: str | None = None
    """What the others begin with; none: they are indented by two blanks more."""
    joint: str = " "
    even: bool = False
    """Whether the first line leaves the room that the indentation takes from the others."""
    mark: str | None = None
    """The style of what the first line begins with; none: that of the words."""

    @property
    def parts(self) -> Sequence[str]:
        """What stays whole."""
        return self.words.split(" ") if isinstance(self.words, str) else self.words

    @property
    def hanging(self) -> str:
        """What the later lines begin with."""
        return f"{self.first}  " if self.later is None else self.later


@dataclass(frozen=True, slots=True)
class Beside:
    """Words, and behind them further ones; where there is no room for these, they go below."""

    left: Words
    right: Words


@dataclass(frozen=True, slots=True)
class Figure:
    """Bars that show what is told in words, too."""

    kind: str
    """`bar` and `stack`: parts of a whole; `strip`; `track`: from the middle."""
    bars: Sequence[tuple[str, float, str]]
    """Style, percent and text of each."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `n` is the style of numbers; a `whole` one and a `name` stay whole."""

    title: str
    style: str = ""
    least: int | None = None
    """Letters that it has at least on a terminal."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A cell that is more than its text."""

    text: Inline | Figure
    style: str = ""
    why: str = ""
    to: str = ""
    """The anchor on a page to which it leads."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head."""

    columns: Sequence[str | Column]
    rows: Sequence[Sequence[Inline | Styled]]
    style: str = ""
    label: str = ""
    """What it holds, for those who cannot see it."""
    shown: int | None = None
    """As many rows as Markdown shows."""
    styles: Sequence[str] = ()
    """Of the rows on a terminal."""
    total: bool = False
    """Whether the last row sums up the others."""
    anchors: Sequence[str] = ()
    """What a page calls each row, so that a link leads there; see `Anchors`."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A whole and its parts: `50 %`, `12/24`, in words, and style and percent of each part."""

    answer: str
    count: str
    words: str
    parts: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What each column has of a thing; none where it does not have it."""

    name: str
    cells: Sequence[Mixed | None]
    to: str = ""
    """The anchor of what is behind it."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Wholes by row and column; a narrow page has a list for each column instead."""

    corner: str
    columns: Sequence[Column]
    rows: Sequence[MatrixRow]
    label: str
    anchor: str
    """What the anchors of its rows begin with."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What the following is about."""

    text: Inline
    level: int = 2
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Items, one below the other."""

    items: Sequence[Inline]
    style: str = ""
    shown: int | None = None
    """As many as Markdown shows."""
    loose: bool = False
    """Whether they are apart in Markdown, which then does not tell that there are more."""
    to: Sequence[str] = ()
    """The anchors on a page to which the items lead; an empty one: nowhere."""


@dataclass(frozen=True, slots=True)
class Card:
    """An answer at the head of a page, its number first, and what is behind it."""

    title: str
    answer: str
    lines: Sequence[str]
    rest: str = ""
    """Of the answer."""
    style: str = ""
    figure: Figure | None = None


@dataclass(frozen=True, slots=True)
class Cards:
    """Answers side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reader looks for in a page."""

    hint: str
    choices: Mapping[str, tuple[str, Sequence[str]]]
    """By what is chosen: its name in words, and what there is."""
    boxes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that a reader opens."""

    summary: Inline
    blocks: Sequence["Block"]
    style: str = ""
    figure: Figure | None = None
    open: bool = False
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Blocks that belong together, and what filters find them by."""

    blocks: Sequence["Block"]
    style: str
    facets: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that stay as they are."""

    lines: Sequence[str]
    language: str


@dataclass(frozen=True, slots=True)
class Diff:
    """How a file differs: the lines of a unified diff, of which Markdown shows the first."""

    path: str
    lines: Sequence[str]
    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of a page; its words are for those who cannot see it."""

    svg: bytes
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An element of a drawing: its name in SVG, its attributes, and its text."""

    name: str
    look: str
    """Its class: colours are those of the page."""
    where: Mapping[str, float | str]
    text: str = ""
    title: str = ""
    """What is shown where one points at it."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure that is part of a page, light and dark as it is."""

    title: str
    words: str
    """What it shows, for those who cannot see it."""
    width: float
    height: float
    marks: Sequence[Mark]
    note: str = ""
    """What stands below it."""


Block = (
    Note | Words | Beside | Table | Matrix | Heading | Listing | Cards | Filters | Fold | Chapter
    | Code | Diff | Picture | Drawing
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """A whole document."""

    title: str
    facts: Mapping[str, str]
    blocks: Sequence[Block]


def pieces(text: Inline) -> tuple[Piece, ...]:
    """Take a line apart."""
    return text if isinstance(text, tuple) else ((text, ""),)


def spelled(one: str | float) -> str:
    """Write a number with three digits behind its point."""
    return one if isinstance(one, str) else f"{one:.3f}"


def remarks(texts: Iterable[str]) -> Iterable[Words]:
    """What the user should know of the whole."""
    return (Words(f"note: {remark}", "yellow") for remark in texts)


MOST = 10
TITLE = "What stands out"


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that begins with its number, how large it is among those of its kind, and a link."""

    size: float
    text: Inline
    to: str = ""
    """The anchor of what it is about."""


# What stands out in a document: the largest facts of each kind.


def fact(size: float, words: str, to: str = "", number: str | None = None) -> Fact:
    """Put the number before the words: it is the size, unless another one is given."""
    return Fact(
        size, ((f"{size:,.0f}" if number is None else number, "bold"), (f" {words}", "")), to
    )


def largest(kinds: Sequence[Iterable[Fact]]) -> list[Fact]:
    """Take the largest of each kind in turns until there are ten; the kinds stay together."""
    lots = [sorted(kind, key=lambda one: -one.size) for kind in kinds]
    rounds = range(max(map(len, lots), default=0))
    turns = [(at, kind) for at in rounds for kind, lot in enumerate(lots) if at < len(lot)]
    return [lots[kind][at] for kind, at in sorted((k, a) for a, k in turns[:MOST])]


def standing_out(kinds: Sequence[Iterable[Fact]]) -> Iterable[Block]:
    """Show them under a heading, each as a link to what it is about."""
    if found := largest(kinds):
        yield Heading(TITLE)
        yield Listing([one.text for one in found], "largest", to=[one.to for one in found])
