"""Rows of the same name in a binding, and which of them hold for a tree.

A version tells it: `3.6.0`. Where a tree's headers are not what its version says, the version is
followed by the rows that hold instead: `3.6.0+topk/site/topk/selectors=1`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar, cast

from policygen.bindings.spelled import respelled
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.versions import Versioned, numbers

Row = TypeVar("Row", bound=Versioned)
NONE = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives(Generic[Row]):
    """Rows of the same name: at most one of them holds."""

    name: str
    rows: tuple[Row, ...]


def groups(algorithm: str, rows: Iterable[Row]) -> Iterator[Alternatives[Row]]:
    """The rows of a kind, by what they are called, in the order in which they stand."""
    lots: dict[str, list[Row]] = {}
    for row in rows:
        lots.setdefault(f"{algorithm}/{_name(row)}", []).append(row)
    for name, lot in lots.items():
        yield Alternatives(name, tuple(lot))


def _name(row: Versioned) -> str:
    if isinstance(row, Site):
        return f"site/{row.name}/{row.dialect}"
    if isinstance(row, FamilyBinding):
        return f"family/{row.site}/{row.name}"
    assert isinstance(row, BenchmarkBinding)
    return f"benchmark/{row.name}"


def guess(rows: Iterable[Row], at: tuple[int, ...]) -> Row | None:
    """The row of a version."""
    return next((row for row in rows if row.covers(at)), None)


def nearest_first(rows: Sequence[Row], at: tuple[int, ...]) -> list[Row]:
    """The version's own, then older ones, then newer ones: `main` is not yet what it is called."""
    ordered = sorted(rows, key=lambda row: numbers(row.since or "0"))
    own = [row for row in ordered if row.covers(at)]
    newer = [row for row in ordered if row.since and numbers(row.since) > at]
    older = [row for row in ordered if row not in own and row not in newer]
    return [*own, *reversed(older), *newer]


@dataclass(frozen=True, slots=True)
class Other:
    """A row that holds instead of a version's own, or none."""

    row: int | None
    """Its place in its group."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Member → what the tree calls it."""

    def __str__(self) -> str:
        names = [f"{old}>{new}" for old, new in sorted(self.renamed.items())]
        return "|".join([NONE if self.row is None else str(self.row), *names])


def as_read(version: str, others: Mapping[str, Other]) -> str:
    """A version with the rows that hold instead of its own."""
    told = [f"{name}={row}" for name, row in sorted(others.items())]
    return f"{version}+{','.join(told)}" if told else version


@lru_cache(maxsize=64)
def read(version: str) -> dict[str, Other]:
    """The rows that hold instead of the version's own, by group."""
    found = {}
    for one in filter(None, version.partition("+")[2].split(",")):
        name, _, told = one.partition("=")
        row, *names = told.split("|")
        pairs = (pair.partition(">") for pair in names)
        found[name] = Other(None if row == NONE else int(row), {old: new for old, _, new in pairs})
    return found


def chosen(
    algorithm: str, rows: Sequence[Row], at: tuple[int, ...], version: str
) -> tuple[Row, ...]:
    """The rows that hold, in the order in which they stand."""
    others = read(version)
    if not others:
        return tuple(row for row in rows if row.covers(at))
    kept: dict[int, Row] = {}
    for group in groups(algorithm, rows):
        other = others.get(group.name)
        if other is None:
            kept |= {id(row): row for row in group.rows if row.covers(at)}
        elif other.row is not None:
            kept[id(group.rows[other.row])] = _respelled(group.rows[other.row], other)
    return tuple(kept[id(row)] for row in rows if id(row) in kept)


def _respelled(row: Row, other: Other) -> Row:
    if not isinstance(row, Site) or not other.renamed:
        return row
    return cast("Row", respelled(row, other.renamed))
