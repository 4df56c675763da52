"""What stands out in a document: the largest facts of each kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policygen.report.blocks import Block, Heading, Inline, Listing

MOST = 10
TITLE = "What stands out"


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that begins with its number, how large it is among those of its kind, and a link."""

    size: float
    text: Inline
    to: str = ""
    """The anchor of what it is about."""


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
