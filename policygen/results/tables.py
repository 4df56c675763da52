"""Tables of a tuning database: results, GPU architectures, and declared axes."""

import json
import re
import sqlite3
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.model.arch import parse_arch
from policygen.model.records import Record
from policygen.opening import load_toml
from policygen.rendering import folder


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
        """The name, quoted for SQL."""
        return quote(self.name)

    @property
    def ct_axes(self) -> tuple[str, ...]:
        """Compile-time axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" in axis)

    @property
    def rt_axes(self) -> tuple[str, ...]:
        """Runtime axes, in the order of the columns."""
        return tuple(axis for axis in self.axes if "{ct}" not in axis)

    def by_axis(self, point: Sequence[str]) -> dict[str, str]:
        """Returns the values of a runtime workload by axis."""
        return dict(zip(self.rt_axes, point, strict=True))


def quote(name: str) -> str:
    """Quotes a name for SQL; benchmark names contain dots, axis names anything."""
    return '"' + name.replace('"', '""') + '"'


# Databases must be regular files, as a pipe may never end.


def check_regular(path: Path) -> None:
    """Refuses pipes and devices; a missing file raises OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(
            f"{path}: not a regular file", "Name a file: pipes and devices are not accepted."
        )


GPUS = "gpus"
"""policygen's table of GPU architectures."""
GpuArchs = Mapping[str, str]
"""GPU as named in the results → `sm90`."""
# sm_version, compute_capability, cc, arch
_CAPABILITY = re.compile(r"(?i)sm(_?version)?|compute_?capability|cc|arch(itecture)?")
LEAST = 300
"""From here on a number is a compute capability times a hundred, as in NVBench: 900."""


# The architecture of a GPU, if a database has it. CCCL's search only keeps a GPU's name; NVBench
# reports its compute capability. A table that keeps it has rows that name a GPU as the results do,
# and is detected by that.


def find_gpus(
    connection: sqlite3.Connection,
    tables: Sequence[ResultTable],
    other_tables: Mapping[str, Sequence[str]],
) -> GpuArchs:
    """Finds the architectures in any of the other tables; contradictory ones are dropped."""
    archs_by_gpu: dict[str, set[str]] = {}
    capability_columns = {
        name: next(filter(_CAPABILITY.fullmatch, columns), None)
        for name, columns in other_tables.items()
    }
    measured = _measured(connection, tables) if any(capability_columns.values()) else set()
    for name, capability in capability_columns.items():
        if capability is None:
            continue
        rows = connection.execute(f"SELECT * FROM {quote(name)}")  # noqa: S608
        place = other_tables[name].index(capability)
        for row in rows:
            for gpu in measured & {cell for cell in row if isinstance(cell, str)}:
                if arch := capability_arch(row[place]):
                    archs_by_gpu.setdefault(gpu, set()).add(arch)
    return {gpu: archs.pop() for gpu, archs in archs_by_gpu.items() if len(archs) == 1}


def capability_arch(cell: object) -> str | None:
    """Parses 900, `9.0` or `sm_90` as `sm90`; None if it is not a compute capability."""
    if isinstance(cell, int) and cell >= LEAST:
        cell = cell // 10
    try:
        return parse_arch(str(cell))
    except ValueError:
        return None


def write_gpus(connection: sqlite3.Connection, gpus: GpuArchs) -> None:
    """Writes the known GPU architectures, if any, besides those that are there."""
    if gpus:
        columns = "gpu TEXT PRIMARY KEY, arch TEXT NOT NULL"
        connection.execute(f"CREATE TABLE IF NOT EXISTS {GPUS} ({columns})")
        rows = sorted(gpus.items())
        connection.executemany(f"INSERT OR IGNORE INTO {GPUS} VALUES (?, ?)", rows)  # noqa: S608


def _measured(connection: sqlite3.Connection, tables: Sequence[ResultTable]) -> set[str]:
    """Returns the GPUs of the results, as named there."""
    gpus: set[str] = set()
    for table in tables:
        rows = connection.execute(f"SELECT DISTINCT gpu FROM {table.quoted}")  # noqa: S608
        gpus |= {row[0] for row in rows if isinstance(row[0], str)}
    return gpus


DeclaredAxes = Mapping[tuple[str, str, str], tuple[str, ...]]
"""(algorithm, sub-benchmark, axis column) → the values, in declaration order."""


# The declared values of axes, if a database has them. Newer CCCL keeps them in a separate table.
# Its name and layout are not relied on: it is the table whose rows name a benchmark, one of its
# axes, and a value.


def find_declared(
    connection: sqlite3.Connection,
    tables: Sequence[ResultTable],
    other_tables: Mapping[str, Sequence[str]],
) -> DeclaredAxes:
    """Finds the declared values in any of the other tables.

    Contradictory declarations are dropped, and scores are then approximate.
    """
    declared: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for name, columns in sorted(other_tables.items()):
        query = f"SELECT * FROM {quote(name)} ORDER BY rowid"  # noqa: S608
        rows = connection.execute(query).fetchall()
        roles = _roles(tables, columns, rows)
        if roles is None:
            continue
        # The CCCL and toolkit versions that the table names
        groups: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
        for row in rows:
            groups.setdefault(tuple(row[i] for i in roles.versions), []).append(row)
        for group in groups.values():
            for key, values in _collected(tables, group, roles).items():
                unique_values = tuple(dict.fromkeys(values))
                is_same = declared.get(key, unique_values) == unique_values
                declared[key] = unique_values if is_same else ()
    return {key: values for key, values in declared.items() if values}


_VERSION_COLUMN = re.compile(r"ctk|cccl|cub", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Roles:
    benchmark: int
    subbench: int | None
    axis: int
    order: int | None
    value: int
    versions: tuple[int, ...]


def _roles(
    tables: Sequence[ResultTable], columns: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> _Roles | None:
    """Detects the roles by the columns' contents; None if this is not a table of axis values."""
    contents = [{row[index] for row in rows} for index in range(len(columns))]
    free_columns = list(range(len(columns)))

    def take_column(known_names: set[str]) -> int | None:
        """Takes the column with the most of these names, the first among equal ones."""
        common = {column: len(contents[column] & known_names) for column in free_columns}
        index = max(free_columns, key=lambda column: common[column], default=None)
        if index is None or not common[index]:
            return None
        free_columns.remove(index)
        return index

    benchmark = take_column(
        {table.algorithm for table in tables} | {table.name for table in tables}
    )
    axis = take_column(
        {name for table in tables for axis in table.axes for name in _spellings(axis)}
    )
    if benchmark is None or axis is None:
        return None
    subbench = take_column({table.subbench for table in tables})
    versions = tuple(column for column in free_columns if _VERSION_COLUMN.match(columns[column]))
    free_columns = [column for column in free_columns if column not in versions]
    if not free_columns:
        return None
    integers = (
        column for column in free_columns if all(isinstance(cell, int) for cell in contents[column])
    )
    order = next(integers, None)
    value = min(
        [column for column in free_columns if column != order] or free_columns,
        key=lambda column: not re.search("value|input", columns[column], re.IGNORECASE),
    )
    return _Roles(benchmark, subbench, axis, None if value == order else order, value, versions)


def _spellings(axis: str) -> tuple[str, str]:
    """Returns an axis name with and without its flags, as in `Elements{io}[pow2]`."""
    return axis, re.sub(r"\[[^\]]*\]$", "", axis)


def _collected(
    tables: Sequence[ResultTable], rows: Sequence[tuple[Any, ...]], roles: _Roles
) -> dict[tuple[str, str, str], list[str]]:
    """Returns the values of each axis, in declaration order."""
    if (order := roles.order) is not None:
        rows = sorted(rows, key=lambda row: (row[order] is None, row[order]))
    declared: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for table in tables:
            is_subbench = roles.subbench is None or row[roles.subbench] == table.subbench
            if row[roles.benchmark] in {table.algorithm, table.name} and is_subbench:
                for axis in table.axes:
                    if row[roles.axis] in _spellings(axis):
                        key = (table.algorithm, table.subbench, axis)
                        declared.setdefault(key, []).extend(_values(row[roles.value]))
    return declared


def _values(cell: object) -> list[str]:
    """Parses one value or a list: `["16", "20"]`, `[16,20]`, `16,20`."""
    text = str(cell).strip()
    if not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    try:
        return [str(value) for value in json.loads(text)]
    except (ValueError, RecursionError):
        return [part.strip() for part in text.strip("[]").split(",")]


# v3.0.3, v3.6.0.dev-204-g571f2fc3bc
_CCCL_VERSION = re.compile(r"v?([0-9]{1,4}(?:\.[0-9]{1,4})*)")


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
    """Returns what the benchmarks of a version declare; later rows replace older ones."""
    version = _numbers(cccl)
    values_by_subbench: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for row in sorted(_axes_rows(), key=lambda row: _numbers(row.since)):
        if not row.since or _numbers(row.since) <= version:
            for name in row.benchmarks:
                values_by_subbench[name, row.subbench] = row.values
    return {
        (name, subbench, axis): values
        for (name, subbench), axes in values_by_subbench.items()
        for axis, values in axes.items()
    }


@cache
def _axes_rows() -> tuple[_Axes, ...]:
    return load_toml(folder("schemas") / "axes.toml", _AxesFile).axes


def _numbers(version: str) -> tuple[int, ...]:
    match = _CCCL_VERSION.match(version)
    return tuple(map(int, match[1].split("."))) if match else ()
