"""The table of one sub-benchmark in a tuning database."""

import json
import re
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policygen.errors import InputError
from policygen.model.arch import parse_arch
from policygen.model.records import Record
from policygen.rendering import folder
from policygen.settings import load_toml


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The table of one sub-benchmark."""

    name: str
    algorithm: str
    subbench: str
    version: str
    """The name of the version column."""
    axes: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """The name as SQL needs it."""
        return quote(self.name)

    @property
    def ct_axes(self) -> tuple[str, ...]:
        """Compile-time axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" in axis)

    @property
    def rt_axes(self) -> tuple[str, ...]:
        """Runtime axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" not in axis)


def quote(name: str) -> str:
    """A name as SQL needs it; benchmark names hold dots, axis names anything."""
    return '"' + name.replace('"', '""') + '"'


# Databases: opened only where they are files, as a pipe may never end.


def check_regular(path: Path) -> None:
    """Refuses pipes and devices; a file that is not there is an OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path}: not a regular file", "Name a file: pipes and devices are none.")


GPUS = "gpus"
"""Our own table of them."""
GpuArchs = Mapping[str, str]
"""A GPU as the results name it → `sm90`."""
# sm_version, compute_capability, cc, arch
_CAPABILITY = re.compile(r"(?i)sm(_?version)?|compute_?capability|cc|arch(itecture)?")
LEAST = 300
"""From here on a number is a compute capability times a hundred, as NVBench has it: 900."""


# Which architecture a GPU is of, where a database says it.
#
# CCCL's search keeps a GPU's name alone; NVBench tells its compute capability. Whoever keeps that
# keeps it in a table whose rows name a GPU as the results do: it is found by that.


def find_gpus(
    connection: sqlite3.Connection,
    tables: Sequence[ResultTable],
    others: Mapping[str, Sequence[str]],
) -> GpuArchs:
    """What any of the other tables says; nothing of a GPU of which two say different things."""
    found: dict[str, set[str]] = {}
    told = {name: _capability(columns) for name, columns in others.items()}
    measured = _measured(connection, tables) if any(told.values()) else set()
    for name, capability in told.items():
        if capability is None:
            continue
        rows = connection.execute(f"SELECT * FROM {quote(name)}")  # noqa: S608
        place = others[name].index(capability)
        for row in rows:
            for gpu in measured & {cell for cell in row if isinstance(cell, str)}:
                if arch := capability_arch(row[place]):
                    found.setdefault(gpu, set()).add(arch)
    return {gpu: archs.pop() for gpu, archs in found.items() if len(archs) == 1}


def capability_arch(cell: object) -> str | None:
    """`sm90` of 900, `9.0` or `sm_90`; nothing of what is no compute capability."""
    if isinstance(cell, int) and cell >= LEAST:
        cell = cell // 10
    try:
        return parse_arch(str(cell))
    except ValueError:
        return None


def write_gpus(connection: sqlite3.Connection, gpus: GpuArchs) -> None:
    """Writes what is known of GPUs, if anything is."""
    if gpus:
        connection.execute(f"CREATE TABLE {GPUS} (gpu TEXT PRIMARY KEY, arch TEXT NOT NULL)")
        rows = sorted(gpus.items())
        connection.executemany(f"INSERT INTO {GPUS} VALUES (?, ?)", rows)  # noqa: S608


def _capability(columns: Sequence[str]) -> str | None:
    """The column that holds one."""
    return next((column for column in columns if _CAPABILITY.fullmatch(column)), None)


def _measured(connection: sqlite3.Connection, tables: Sequence[ResultTable]) -> set[str]:
    """The GPUs of the results, as they name them."""
    found: set[str] = set()
    for table in tables:
        rows = connection.execute(f"SELECT DISTINCT gpu FROM {table.quoted}")  # noqa: S608
        found |= {row[0] for row in rows if isinstance(row[0], str)}
    return found


DeclaredAxes = Mapping[tuple[str, str, str], tuple[str, ...]]
"""(algorithm, sub-benchmark, axis column) → the values, in the order of their declaration."""


# The declared values of axes, where a database has them.
#
# Newer CCCL keeps them in a table of their own. Its name and layout are not relied on: it is the
# table whose rows name a benchmark, one of its axes, and a value.


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


# v3.0.3, v3.6.0.dev-204-g571f2fc3bc
_KNOWN_AXES_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4})*)")


class _Axes(Record):
    """Sub-benchmarks with the same axes."""

    benchmarks: tuple[str, ...]
    subbench: str
    values: dict[str, tuple[str, ...]]
    since: str = ""


class _AxesFile(Record):
    axes: tuple[_Axes, ...]


# `schemas/axes.toml`: the runtime axes of CUB's benchmarks, by version of CCCL.


@cache
def axes_of(cccl: str) -> DeclaredAxes:
    """What the benchmarks of a version declare; later rows replace older ones."""
    version = _numbers(cccl)
    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for row in sorted(_rows(), key=lambda row: _numbers(row.since)):
        if not row.since or _numbers(row.since) <= version:
            for name in row.benchmarks:
                found[name, row.subbench] = row.values
    return {
        (name, subbench, axis): values
        for (name, subbench), axes in found.items()
        for axis, values in axes.items()
    }


@cache
def _rows() -> tuple[_Axes, ...]:
    return load_toml(folder("schemas") / "axes.toml", _AxesFile).axes


def _numbers(version: str) -> tuple[int, ...]:
    match = _KNOWN_AXES_VERSION.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()
