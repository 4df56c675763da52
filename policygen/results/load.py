"""Tables of a database as columns of numbers: one pass, strings kept once, samples left alone."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.model.labels import is_label, shortened
from policygen.model.results import DataWarning, RunKey
from policygen.results.database import Database, open_database
from policygen.results.table import ResultTable, quote

Codes = np.ndarray[Any, np.dtype[np.int32]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]
Point = tuple[str, ...]

Cells = tuple[Any, ...]

BATCH = 20_000
NO_CENTER = "rows whose center is no time that a kernel takes are left out"
SHORTEST, LONGEST = 1e-12, 1e9
"""Seconds; a ratio of two such times is a number."""
NO_LABEL = "rows whose variant is no label such as ipt_19.tpb_512 are left out"
NO_TEXT = "rows with bytes where text should be are left out"


@dataclass(frozen=True, slots=True)
class Rows:
    """The usable rows of one table; each code is an index into the list of the same name."""

    database: Database
    table: ResultTable
    keys: list[RunKey]
    variants: list[str]
    workloads: list[Point]
    points: list[Point]
    key: Codes
    variant: Codes
    workload: Codes
    point: Codes
    center: Floats
    rowid: Integers
    unusable: int


def expand(patterns: Sequence[str]) -> tuple[Path, ...]:
    """The files that are meant, each once; a glob that matches nothing is an error."""
    found: dict[Path, Path] = {}
    for pattern in patterns:
        matches = [pattern]
        if has_magic(pattern) and not Path(pattern).exists():
            matches = sorted(glob(pattern, recursive=True))  # noqa: PTH207  absolute ones too
            if not matches:
                raise InputError(f"no file matches {pattern!r}")
        for match in matches:
            path = Path(match)
            if path.is_dir():
                raise InputError(f"{path} is a folder", f"Name the databases: '{path}/*.db'")
            found.setdefault(path.resolve(), path)
    return tuple(found.values())


@contextmanager
def open_all(paths: Sequence[Path]) -> Iterator[tuple[Database, ...]]:
    """All databases, opened for reading only."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(open_database(path)) for path in paths)


def read_rows(
    database: Database,
    table: ResultTable,
    chosen: Mapping[str, frozenset[str]],
    warn: Callable[[DataWarning], None],
) -> Rows:
    """One table; rows without a positive, finite center are counted and left out."""
    reader = _Reader(len(table.ct_axes))
    reader.read(database.connection.execute(*_query(table, chosen)))
    rows = reader.rows(database, table)
    for refused in reader.refused:
        warn(
            DataWarning(
                database=str(database.path),
                table=table.name,
                message=refused.message,
                count=refused.count,
                row=refused.row,
            )
        )
    return rows


def _query(table: ResultTable, chosen: Mapping[str, frozenset[str]]) -> tuple[str, list[str]]:
    columns = ["gpu", "ctk", table.version, "variant", "center", *table.ct_axes, *table.rt_axes]
    wanted = ", ".join(quote(column) for column in columns)
    sql = f"SELECT rowid, {wanted} FROM {table.quoted}"  # noqa: S608  names are quoted
    conditions: list[str] = []
    values: list[str] = []
    for axis, allowed in chosen.items():
        if axis in table.axes:
            conditions.append(f"{quote(axis)} IN ({', '.join('?' * len(allowed))})")
            values += sorted(allowed)
    return sql + (" WHERE " + " AND ".join(conditions) if conditions else ""), values


class _Labels(dict[Any, bool]):
    """Whether a cell is a variant label; there are few, and many rows of each."""

    def __missing__(self, cell: Any) -> bool:
        self[cell] = found = isinstance(cell, str) and is_label(cell)
        return found


@dataclass(slots=True)
class _Refused:
    """Rows of a table that are left out for one reason."""

    kind: str
    message: str
    row: int
    count: int = 0


class _Index(dict[Any, int]):
    """Numbers what it is asked for, in the order in which it is asked."""

    def __missing__(self, key: Any) -> int:
        self[key] = found = len(self)
        return found


class _Reader:
    """Turns rows into codes, as they come."""

    def __init__(self, ct_axes: int) -> None:
        self._split = 6 + ct_axes
        self._keys, self._variants = _Index(), _Index()
        self._workloads, self._points = _Index(), _Index()
        self._codes = tuple(array("i") for _ in range(4))
        self._centers = array("d")
        self._rowids = array("q")
        self._labels = _Labels()
        self.refused: list[_Refused] = []

    def read(self, cursor: Any) -> None:
        while batch := cursor.fetchmany(BATCH):
            columns = list(zip(*batch, strict=True))
            if (centers := self._fine(columns)) is None:
                columns = list(zip(*self._usable(batch), strict=True))
                centers = array("d", columns[5]) if columns else array("d")
            if columns:
                self._take(columns, centers)

    def _fine(self, columns: list[Cells]) -> "array[float] | None":
        """The centers, where nothing is wrong with any row; looked at column by column."""
        try:
            centers = array("d", columns[5])
        except TypeError:
            return None
        seconds = np.frombuffer(centers, np.float64)
        in_range = bool(((seconds >= SHORTEST) & (seconds <= LONGEST)).all())
        others = (*columns[1:4], *columns[6:])
        text = not any(bytes in set(map(type, set(column))) for column in others)
        labels = in_range and text and all(self._labels[cell] for cell in set(columns[4]))
        return centers if labels else None

    def _usable(self, batch: list[Cells]) -> list[Cells]:
        """The rows with which nothing is wrong; the others are counted."""
        usable = self._all(batch, NO_CENTER, _center)
        usable = self._all(usable, NO_LABEL, lambda row: self._labels[row[4]], _variant)
        return self._all(usable, NO_TEXT, _is_text)

    @property
    def unusable(self) -> int:
        """How many rows were left out."""
        return sum(one.count for one in self.refused)

    def _all(
        self,
        rows: list[Cells],
        message: str,
        is_fine: Callable[[Cells], bool],
        example: Callable[[Cells], str] = lambda _: "",
    ) -> list[Cells]:
        """Those that are fine; the others are counted."""
        fine = [row for row in rows if is_fine(row)]
        if len(fine) < len(rows):
            first = next(row for row in rows if not is_fine(row))
            known = next((one for one in self.refused if one.kind == message), None)
            if known is None:
                known = _Refused(message, f"{message}{example(first)}", first[0])
                self.refused.append(known)
            known.count += len(rows) - len(fine)
        return fine

    def _take(self, columns: list[Cells], centers: "array[float]") -> None:
        """Column by column: the loops run inside the interpreter."""
        split, count = self._split, len(centers)
        points = zip(*columns[split:], strict=True) if columns[split:] else [()] * count
        workloads = zip(*columns[6:split], strict=True) if split > 6 else [()] * count
        key, variant, workload, point = self._codes
        key.extend(map(self._keys.__getitem__, zip(*columns[1:4], strict=True)))
        variant.extend(map(self._variants.__getitem__, columns[4]))
        workload.extend(map(self._workloads.__getitem__, workloads))
        point.extend(map(self._points.__getitem__, points))
        self._centers.extend(centers)
        self._rowids.extend(columns[0])

    def rows(self, database: Database, table: ResultTable) -> Rows:
        key, variant, workload, point = (np.frombuffer(c, np.int32) for c in self._codes)
        return Rows(
            database=database,
            table=table,
            keys=[RunKey(gpu=_text(g), ctk=_text(c), cccl=_text(v)) for g, c, v in self._keys],
            variants=list(self._variants),
            workloads=[tuple(map(_text, w)) for w in self._workloads],
            points=[tuple(map(_text, p)) for p in self._points],
            key=key,
            variant=variant,
            workload=workload,
            point=point,
            center=np.frombuffer(self._centers, np.float64),
            rowid=np.frombuffer(self._rowids, np.int64),
            unusable=self.unusable,
        )


def _center(row: Cells) -> bool:
    return isinstance(row[5], float | int) and SHORTEST <= row[5] <= LONGEST


def _is_text(row: Cells) -> bool:
    return not any(isinstance(cell, bytes) for cell in row)


def _variant(row: Cells) -> str:
    return f": {shortened(row[4] if isinstance(row[4], str) else repr(row[4]))}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
