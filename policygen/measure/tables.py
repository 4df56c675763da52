"""The tables of results: made once, with the axes of a benchmark and what it declares of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policygen.errors import InputError
from policygen.measure.writer import DatabaseWriter
from policygen.results.declared import DeclaredAxes
from policygen.results.table import quote
from policygen.results.weighed import keep_weights
from policygen.results.writing import DECLARED, create_results, declare, declared_cell

_OTHER = "It is of another version of the benchmark: name another file."


@dataclass(frozen=True, slots=True)
class RowSpot:
    """A runtime workload of a sub-benchmark, as its table names it."""

    algorithm: str
    subbench: str
    workload: Mapping[str, str]
    """All axes with their values, in the order of the columns."""

    @property
    def table(self) -> str:
        """The table as SQL needs it."""
        return quote(f"{self.algorithm}.{self.subbench}")


def prepare_table(writer: DatabaseWriter, spot: RowSpot, declared: DeclaredAxes) -> None:
    """Makes the table of a sub-benchmark, and writes the declared values of its axes.

    One that is there has the same axes, with the same values, or is refused.
    """
    axes = list(spot.workload)
    name = f"{spot.algorithm}.{spot.subbench}"
    own = {key: v for key, v in declared.items() if key[:2] == (spot.algorithm, spot.subbench)}
    cells = {key[2]: tuple(map(declared_cell, values)) for key, values in own.items()}
    with writer.writing() as connection:
        create_results(connection, spot.algorithm, spot.subbench, axes)
        info = connection.execute(f"PRAGMA table_info({spot.table})")
        if (there := [row[1] for row in info][8:]) != axes:
            raise InputError(
                f"{writer.path}: {name} has the axes {', '.join(there) or 'none'} there, and not"
                f" {', '.join(axes) or 'none'}",
                _OTHER,
            )
        known = _declared(connection, spot)
        if known and cells and known != cells:
            raise InputError(
                f"{writer.path}: the axes of {name} were declared with other values there", _OTHER
            )
        if not known:
            declare(connection, own)
        for key, values in own.items():
            keep_weights(connection, key, values)


def _declared(connection: Any, spot: RowSpot) -> dict[str, tuple[str, ...]]:
    """The declared values that are there for a sub-benchmark, by axis."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (DECLARED,)).fetchone():
        return {}
    rows = connection.execute(
        f"SELECT axis, value FROM {DECLARED} WHERE (algorithm, bench) = (?, ?)"  # noqa: S608
        " ORDER BY axis, idx",
        (spot.algorithm, spot.subbench),
    )
    found: dict[str, tuple[str, ...]] = {}
    for axis, value in rows:
        found[axis] = (*found.get(axis, ()), value)
    return found
