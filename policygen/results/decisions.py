"""The store of choices: which rows were chosen when, from which file, and their outcomes."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import AwareDatetime

from policygen.errors import InputError
from policygen.model.records import Record
from policygen.model.results import Decision, RunKey
from policygen.store_schema import open_store, stamp, store_errors, transaction

State = Literal["chosen", "planned", "applied", "verified", "undone"]
PATIENCE = 30.0
"""Seconds that a writer waits for another writer."""


class ChosenFrom(Record):
    """A database, identified as of the time it was read."""

    path: str
    sha256: str


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


class ChoiceOutcome(Record):
    """An outcome of a choice, with its time."""

    state: State
    at: AwareDatetime


class StoredChoice(ChosenRow):
    """A stored decision; `outcomes` grows, nothing else changes."""

    id: int
    outcomes: tuple[ChoiceOutcome, ...]


class Store:
    """An open `policygen.db`; several processes may have it open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> Self:
        """Opens the store, creates it if it does not exist, and migrates an old one."""
        return cls(path, open_store(path, PATIENCE))

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def record(self, rows: Sequence[ChosenRow]) -> tuple[int, ...]:
        """Stores decisions, all or none; returns their ids."""
        with self._writing() as connection:
            return tuple(_record(connection, row) for row in rows)

    def outcome(self, ids: Sequence[int], state: State, when: datetime) -> None:
        """Adds an outcome to choices, to all or none of them."""
        if state not in get_args(State):
            raise InputError(f"{state!r} is no state: {', '.join(get_args(State))}")
        with self._writing() as connection:
            existing = {row[0] for row in connection.execute("SELECT id FROM choices")}
            if unknown := sorted(set(ids) - existing):
                raise InputError(f"{self.path}: has no choice {', '.join(map(str, unknown))}")
            for choice in ids:
                _add_outcome(connection, choice, state, when)

    def history(self, algorithm: str | None = None) -> tuple[StoredChoice, ...]:
        """Returns all decisions in the order they were stored, or those about one benchmark."""
        query = "SELECT * FROM choices WHERE ?1 IS NULL OR algorithm = ?1 ORDER BY id"
        with store_errors(self.path), transaction(self._connection, "BEGIN") as connection:
            rows = list(_rows(connection, query, algorithm))
            sources = _by_choice(
                connection, "SELECT choice, path, sha256 FROM sources ORDER BY rowid"
            )
            outcomes = _by_choice(connection, "SELECT choice, state, at FROM outcomes ORDER BY id")
            return tuple(
                StoredChoice(
                    **row | {"workload": json.loads(row["workload"])},
                    sources=sources.get(row["id"], ()),
                    outcomes=outcomes.get(row["id"], ()),
                )
                for row in rows
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        # IMMEDIATE waits for another writer here, not in the middle of the transaction.
        with (
            store_errors(self.path),
            transaction(self._connection, "BEGIN IMMEDIATE") as connection,
        ):
            yield connection


def _rows(connection: sqlite3.Connection, query: str, *values: object) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def _by_choice(connection: sqlite3.Connection, query: str) -> dict[int, tuple[dict[str, Any], ...]]:
    rows_by_choice: dict[int, tuple[dict[str, Any], ...]] = {}
    for row in _rows(connection, query):
        choice = row.pop("choice")
        rows_by_choice[choice] = (*rows_by_choice.get(choice, ()), row)
    return rows_by_choice


def _record(connection: sqlite3.Connection, row: ChosenRow) -> int:
    names = ("algorithm", "gpu", "ctk", "cccl", "decision", "variant", "score", "reason")
    cells = {name: getattr(row, name) for name in names}
    cells["chosen_at"] = stamp(row.chosen_at)
    cells["workload"] = json.dumps(row.workload)
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
