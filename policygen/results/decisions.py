"""The store of choices: which rows were chosen when, from which file, and their outcomes."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import AwareDatetime

from policygen.cache import file_sha256
from policygen.errors import InputError
from policygen.model.records import Record
from policygen.model.results import Decision, RunKey
from policygen.store_schema import OpenStore, stamp

State = Literal["chosen", "planned", "applied", "verified", "undone"]


class ChosenFrom(Record):
    """A database, identified as of the time it was read."""

    path: str
    sha256: str

    @classmethod
    def of(cls, name: str) -> Self:
        """Identifies a database by its content now."""
        return cls(path=name, sha256=file_sha256(Path(name)))


class ChosenRow(RunKey):
    """One decision about one workload."""

    chosen_at: AwareDatetime
    sources: tuple[ChosenFrom, ...]
    algorithm: str
    workload: dict[str, str]
    decision: Decision
    variant: str | None
    score: float | None
    reason: str


class Store(OpenStore):
    """The store of choices."""

    def record(self, rows: Sequence[ChosenRow]) -> tuple[int, ...]:
        """Stores decisions, all or none; returns their ids."""
        with self.writing() as connection:
            return tuple(_record(connection, row) for row in rows)

    def outcome(self, ids: Sequence[int], state: State, when: datetime) -> None:
        """Adds an outcome to choices, to all or none of them."""
        if state not in get_args(State):
            raise InputError(f"{state!r} is not a state: {', '.join(get_args(State))}")
        with self.writing() as connection:
            existing = {row[0] for row in connection.execute("SELECT id FROM choices")}
            if unknown := sorted(set(ids) - existing):
                raise InputError(f"{self.path}: has no choice {', '.join(map(str, unknown))}")
            for choice in ids:
                _add_outcome(connection, choice, state, when)


def _record(connection: sqlite3.Connection, row: ChosenRow) -> int:
    cells = row.model_dump(exclude={"sources"})
    cells |= {"chosen_at": stamp(row.chosen_at), "workload": json.dumps(row.workload)}
    marks = ", ".join(f":{name}" for name in cells)
    insert = f"INSERT INTO choices ({', '.join(cells)}) VALUES ({marks})"  # noqa: S608
    number = connection.execute(insert, cells).lastrowid
    assert number is not None
    connection.executemany(
        "INSERT INTO sources VALUES (?, ?, ?)",
        [(number, source.path, source.sha256) for source in row.sources],
    )
    _add_outcome(connection, number, "chosen", row.chosen_at)
    return number


def _add_outcome(connection: sqlite3.Connection, choice: int, state: State, when: datetime) -> None:
    connection.execute(
        "INSERT INTO outcomes (choice, state, at) VALUES (?, ?, ?)", (choice, state, stamp(when))
    )
