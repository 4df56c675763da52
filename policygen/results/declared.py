"""The declared values of axes, where a database has them.

Newer CCCL keeps them in a table of their own. Its name and layout are not relied on: it is the
table whose rows name a benchmark, one of its axes, and a value.
"""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.results.table import ResultTable, quote

DeclaredAxes = Mapping[tuple[str, str, str], tuple[str, ...]]
"""(algorithm, sub-benchmark, axis column) → the values, in the order of their declaration."""


def find_declared(
    connection: sqlite3.Connection,
    tables: Sequence[ResultTable],
    others: Mapping[str, Sequence[str]],
) -> DeclaredAxes:
    """The declared values that any of the other tables holds."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for name, columns in sorted(others.items()):
        query = f"SELECT * FROM {quote(name)} ORDER BY rowid"  # noqa: S608
        rows = connection.execute(query).fetchall()
        roles = _roles(tables, columns, rows)
        if roles is not None:
            _merge(found, _by_version(tables, rows, roles))
    return {key: values for key, values in found.items() if values}


def _by_version(
    tables: Sequence[ResultTable], rows: Sequence[tuple[object, ...]], roles: "_Roles"
) -> list[dict[tuple[str, str, str], list[str]]]:
    """The declarations of each version of CCCL and the toolkit that the table names."""
    groups: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[i] for i in roles.versions), []).append(row)
    found: list[dict[tuple[str, str, str], list[str]]] = []
    for group in groups.values():
        found.append({})
        _collect(found[-1], tables, group, roles)
    return found


def _merge(
    found: dict[tuple[str, str, str], tuple[str, ...]],
    versions: list[dict[tuple[str, str, str], list[str]]],
) -> None:
    """Where versions declare different values, none is known: scores are then approximate."""
    for declared in versions:
        for key, values in declared.items():
            once = tuple(dict.fromkeys(values))
            found[key] = once if found.get(key, once) == once else ()


_VERSION = re.compile(r"ctk|cccl|cub", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Roles:
    """Which column says what."""

    benchmark: int
    subbench: int | None
    axis: int
    order: int | None
    value: int
    versions: tuple[int, ...]


def _roles(
    tables: Sequence[ResultTable], columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> _Roles | None:
    """Told by what stands in the columns; none when this is no table of axis values."""
    contents = [{row[index] for row in rows} for index in range(len(columns))]
    free = list(range(len(columns)))

    def take(known: set[str]) -> int | None:
        hits = [(len(contents[i] & known), -i) for i in free if contents[i] & known]
        if not hits:
            return None
        index = -max(hits)[1]
        free.remove(index)
        return index

    benchmark = take({t.algorithm for t in tables} | {t.name for t in tables})
    axis = take({name for t in tables for axis in t.axes for name in _names(axis)})
    if benchmark is None or axis is None:
        return None
    subbench = take({t.subbench for t in tables})
    versions = tuple(i for i in free if _VERSION.match(columns[i]))
    free = [i for i in free if i not in versions]
    order = next((i for i in free if all(isinstance(v, int) for v in contents[i])), None)
    left = [i for i in free if i != order] or ([] if order is None else [order])
    named = [i for i in left if re.search("value|input", columns[i], re.IGNORECASE)]
    if not left:
        return None
    value = (named or left)[0]
    return _Roles(benchmark, subbench, axis, None if value == order else order, value, versions)


def _names(axis: str) -> tuple[str, str]:
    """`Elements{io}[pow2]` may be declared with or without its flags."""
    return axis, re.sub(r"\[[^\]]*\]$", "", axis)


def _collect(
    found: dict[tuple[str, str, str], list[str]],
    tables: Sequence[ResultTable],
    rows: Sequence[tuple[object, ...]],
    roles: _Roles,
) -> None:
    if roles.order is not None:
        order = roles.order
        rows = sorted(rows, key=lambda row: (row[order] is None, row[order]))
    for row in rows:
        for table in tables:
            if row[roles.benchmark] not in {table.algorithm, table.name}:
                continue
            if roles.subbench is not None and row[roles.subbench] != table.subbench:
                continue
            for axis in table.axes:
                if row[roles.axis] in _names(axis):
                    key = (table.algorithm, table.subbench, axis)
                    found.setdefault(key, []).extend(_values(row[roles.value]))


def _values(cell: object) -> list[str]:
    """One value, or a list of them: `["16", "20"]`, `[16,20]`, `16,20`."""
    text = str(cell).strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    try:
        return [str(value) for value in json.loads(text)]
    except (ValueError, RecursionError):
        return [part.strip() for part in text.strip("[]").split(",")]
