"""Guarded returns that are new, as whole lines: those of one block come together."""

from collections.abc import Iterator, Sequence

from policygen.dialects.selectors.additions import (
    Addition,
    Returned,
    add_beside,
    add_inside,
    sizes_of,
    take_over,
)
from policygen.dialects.selectors.fronts import Front, add_in_front
from policygen.dialects.selectors.nearest import Inside, Left
from policygen.dialects.selectors.twins import Twin, add_twin
from policygen.model.arch import arch_number
from policygen.planning.decide import Write
from policygen.source.text import Text


def added_returns(text: Text, writes: Sequence[Write]) -> Iterator[tuple[Addition, str]]:
    """What is added, and for which variants; at one place what asks for more comes first."""
    fronts: dict[tuple[int, str | None], list[tuple[Front, Write]]] = {}
    twins: dict[tuple[str, str | None], list[tuple[Twin, Write]]] = {}
    for write in sorted(writes, key=_order):
        new = write.spots[0].to.new
        assert new is not None, "it is a return that is not there yet"
        at = new.at
        if isinstance(at, Twin):
            twins.setdefault((at.function.name, at.below), []).append((at, write))
        elif isinstance(at, Front):
            fronts.setdefault((at.block.start, at.below), []).append((at, write))
        elif isinstance(at, Inside):
            yield add_inside(text, at, _returned(write)), write.reason
        elif isinstance(at, Left):
            yield take_over(text, at, _returned(write)), write.reason
        else:
            yield add_beside(text, at, _returned(write)), write.reason
    for pairs in twins.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        for addition in add_twin(text, [(at, _returned(write)) for at, write in pairs]):
            yield addition, reasons
    for group in fronts.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in group))
        yield add_in_front(text, [(at, _returned(write)) for at, write in group]), reasons


def _order(write: Write) -> tuple[object, ...]:
    """By sizes; of what asks for the same sizes, the one that asks for more comes first.

    What is like a return of a later architecture comes before what is like one of an earlier.
    """
    facts = write.spots[0].args
    newest = -arch_number(write.spots[0].to.family.arch)
    return newest, sizes_of(facts), -len(facts), facts


def _returned(write: Write) -> Returned:
    names = write.spots[0].to.fields
    values = {names[name]: value for name, value in write.content.values.items()}
    return Returned(values, write.content.label)
