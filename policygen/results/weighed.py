"""Values of runtime axes that somebody gave weights, in place of those that CCCL gives them."""

import sqlite3
from collections.abc import Collection, Sequence

from policygen.results.provenance import OWN

WEIGHTS = f"{OWN}weights"
MOST = 1e9
"""A weight above it is damage."""


class WeighedValues(tuple[str, ...]):
    """The values of an axis, in the order of their declaration, each with its weight."""

    weights: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[str], weights: Sequence[float] | None) -> tuple[str, ...]:
        """Values with weights; without any they are what they are."""
        if weights is None:
            return tuple(values)
        found = cls(values)
        found.weights = tuple(weights)
        return found

    def weight(self, value: str) -> float:
        """How much a value counts beside the others."""
        return self.weights[self.index(value)]


def are_same(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two databases say the same of an axis."""
    weights = [one.weights if isinstance(one, WeighedValues) else None for one in (left, right)]
    return tuple(left) == tuple(right) and weights[0] == weights[1]


def own_weight(values: Sequence[str] | None, value: str) -> float | None:
    """What somebody gave a value; nothing where nobody gave the axis any."""
    if isinstance(values, WeighedValues) and value in values:
        return values.weight(value)
    return None


def keep_weights(
    connection: sqlite3.Connection, key: tuple[str, str, str], values: Sequence[str]
) -> None:
    """Writes the weights of an axis: of an algorithm, a sub-benchmark, and its name."""
    if not isinstance(values, WeighedValues):
        return
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {WEIGHTS} (algorithm TEXT NOT NULL, bench TEXT NOT NULL,"
        " axis TEXT NOT NULL, value TEXT NOT NULL, weight REAL NOT NULL,"
        " UNIQUE(algorithm, bench, axis, value))"
    )
    connection.executemany(
        f"INSERT OR REPLACE INTO {WEIGHTS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        [(*key, value, values.weight(value)) for value in values],
    )


def find_weights(
    connection: sqlite3.Connection, names: Collection[str]
) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """The axes whose values have weights; one with a weight that is none has none."""
    if WEIGHTS not in names:
        return {}
    rows: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for algorithm, bench, axis, value, weight in connection.execute(
        f"SELECT algorithm, bench, axis, value, weight FROM {WEIGHTS} ORDER BY rowid"  # noqa: S608
    ):
        if all(isinstance(one, str) for one in (algorithm, bench, axis, value)):
            rows.setdefault((algorithm, bench, axis), []).append((value, weight))
    return {
        key: WeighedValues.of([value for value, _ in lot], [weight for _, weight in lot])
        for key, lot in rows.items()
        if all(isinstance(weight, float) and 0 < weight < MOST for _, weight in lot)
    }
