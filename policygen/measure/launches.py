"""What a database keeps of kernels of one's own: launches, what words mean, how fast a copy is."""

import json
from collections.abc import Mapping
from dataclasses import astuple, fields

from policygen.measure.device import Launch
from policygen.measure.writer import DatabaseWriter
from policygen.results.launched import ACHIEVED, KERNELS, LAUNCHES, PEAKS
from policygen.results.provenance import VALUE_TABLE, VALUES

_COLUMNS = ", ".join(f"{one.name} INTEGER NOT NULL" for one in fields(Launch))
_NAMED = "algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL"


def keep_launches(
    writer: DatabaseWriter,
    session: int,
    spot: tuple[str, str, str],
    launches: Mapping[str, Launch],
) -> None:
    """Writes those of a runtime workload; what the session has of a variant is replaced."""
    if not launches:
        return
    places = ", ".join("?" * (5 + len(fields(Launch))))
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {LAUNCHES} (session INTEGER NOT NULL, {_NAMED},"
            f" variant TEXT NOT NULL, {_COLUMNS},"
            " UNIQUE(session, algorithm, bench, workload, variant))"
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {LAUNCHES} VALUES ({places})",  # noqa: S608
            [(session, *spot, label, *astuple(one)) for label, one in sorted(launches.items())],
        )


def keep_achieved(
    writer: DatabaseWriter,
    session: int,
    spot: tuple[str, str, str],
    shares: Mapping[str, float],
) -> None:
    """Writes which share of a multiprocessor's threads were at work in a run of a variant."""
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {ACHIEVED} (session INTEGER NOT NULL, {_NAMED},"
            " variant TEXT NOT NULL, share REAL NOT NULL,"
            " UNIQUE(session, algorithm, bench, workload, variant))"
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {ACHIEVED} VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608
            [(session, *spot, label, share) for label, share in sorted(shares.items())],
        )


def keep_words(
    writer: DatabaseWriter, algorithm: str, words: Mapping[str, tuple[str, ...]]
) -> None:
    """Writes what the numbers of a parameter stand for."""
    with writer.writing() as connection:
        connection.execute(VALUE_TABLE)
        connection.executemany(
            f"INSERT OR REPLACE INTO {VALUES} VALUES (?, ?, ?, ?)",  # noqa: S608
            [
                (algorithm, parameter, value, json.dumps(word))
                for parameter, lot in words.items()
                for value, word in enumerate(lot)
            ],
        )


def keep_start(writer: DatabaseWriter, algorithm: str, kernel: str, variant: str) -> None:
    """Writes of which kernel something is a class of sizes, and which variant base is."""
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {KERNELS} (algorithm TEXT NOT NULL UNIQUE,"
            " kernel TEXT NOT NULL, variant TEXT NOT NULL)"
        )
        connection.execute(
            f"INSERT OR REPLACE INTO {KERNELS} VALUES (?, ?, ?)",  # noqa: S608
            (algorithm, kernel, variant),
        )


def keep_peak(writer: DatabaseWriter, session: int, bandwidth: float) -> None:
    """Writes how many bytes a copy moved in a second."""
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {PEAKS} (session INTEGER NOT NULL, bytes REAL NOT NULL)"
        )
        connection.execute(f"INSERT INTO {PEAKS} VALUES (?, ?)", (session, bandwidth))  # noqa: S608
