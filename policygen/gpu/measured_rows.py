"""Rows of measurements as CCCL has them, each written at once, and where they come from.

A row is a variant on a runtime workload under one GPU, toolkit and CCCL. What is measured again is
joined to its row; what each session found of it stands in `policygen_rows`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np

from policygen.errors import InputError
from policygen.gpu.database_writer import (
    About,
    DatabaseWriter,
    RowSpot,
    begin_session,
    now,
    open_writer,
    prepare_table,
)
from policygen.gpu.device import Failure, Kind, Launch
from policygen.results.imported import ACHIEVED, KERNELS, LAUNCHES, PEAKS
from policygen.results.own_tables import (
    FAILURES,
    NOISE,
    ROWS,
    SESSIONS,
    TIMES,
    VALUE_TABLE,
    VALUES,
    workload_text,
)
from policygen.results.samples import BadSamplesError, Decoder, Samples, encode
from policygen.results.tables import DeclaredAxes, quote

CODES: Mapping[Kind, str] = {
    "wrong": "1",
    "memory": "2",
    "error": "3",
    "crash": "4",
    "compile": "5",
    "hang": "42",
}
"""Of runs that failed; 42 is CCCL's own for one that takes too long."""


@contextmanager
def open_measurements(path: Path, about: About) -> Iterator["MeasuringSession"]:
    """A session that writes into a database; when the block ends it is noted that it has ended."""
    with open_writer(path) as writer, Decoder() as decoder:
        session = MeasuringSession(writer, about, decoder)
        yield session
        session.end()


class MeasuringSession:
    """Writes what is found, row by row; what is there already is asked for first."""

    def __init__(self, writer: DatabaseWriter, about: About, decoder: Decoder) -> None:
        self.about = about
        self.writer, self._decoder = writer, decoder
        self._key = about.key
        self.number = begin_session(writer, about)

    def prepare(self, spot: RowSpot, declared: DeclaredAxes) -> None:
        """Makes the table of a sub-benchmark, and writes the declared values of its axes."""
        prepare_table(self.writer, spot, declared)

    def measured(self, spot: RowSpot) -> frozenset[str]:
        """The variants that have a row, `base` among them."""
        where, values = self._where(spot)
        rows = self.writer.rows(f"SELECT variant FROM {spot.table} WHERE {where}", *values)  # noqa: S608
        return frozenset(str(variant) for (variant,) in rows)

    def times(self, spot: RowSpot) -> dict[str, list[tuple[int, float]]]:
        """What each variant took in each process, with the session, in their order.

        In a session the first, second, … of base and of a variant were taken side by side.
        """
        rows: list[Any] = self.writer.rows(
            f"SELECT r.variant, r.session, r.center FROM {ROWS} AS r JOIN {SESSIONS} AS s"  # noqa: S608
            " ON s.id = r.session WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (r.algorithm, r.bench, r.workload) = (?, ?, ?) ORDER BY r.rowid",
            *self._key,
            *named(spot),
        )
        found: dict[str, list[tuple[int, float]]] = {}
        for variant, number, center in rows:
            found.setdefault(variant, []).append((number, center))
        return found

    def samples(self, spot: RowSpot) -> dict[str, Samples]:
        """All samples of each variant, sorted: those of its processes are not told apart."""
        where, values = self._where(spot)
        rows = self.writer.rows(f"SELECT variant, samples FROM {spot.table} WHERE {where}", *values)  # noqa: S608
        return {str(variant): self._decoded(blob) for variant, blob in rows}

    def failed(self, spot: RowSpot) -> dict[str, Failure]:
        """The variants without a row that this session, or an earlier one, failed to measure."""
        rows = self.writer.rows(
            f"SELECT f.variant, f.kind, f.reason FROM {FAILURES} AS f JOIN {SESSIONS} AS s"  # noqa: S608
            " ON s.id = f.session WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (f.algorithm, f.bench, f.workload) = (?, ?, ?) ORDER BY f.rowid",
            *self._key,
            *named(spot),
        )
        found = {str(variant): Failure(_kind(kind), str(why)) for variant, kind, why in rows}
        there = self.measured(spot) if found else frozenset()
        return {label: failure for label, failure in found.items() if label not in there}

    def record(
        self,
        spot: RowSpot,
        variant: str,
        samples: Sequence[float],
        elapsed: float,
        bandwidth: float | None = None,
    ) -> None:
        """Writes a row, or joins samples to the one that is there; all of it or nothing."""
        where, values = self._where(spot)
        mine = np.asarray(samples, np.float64)
        with self.writer.writing() as connection:
            there = connection.execute(
                f"SELECT elapsed, samples FROM {spot.table} WHERE {where} AND variant = ?",  # noqa: S608
                (*values, variant),
            ).fetchone()
            all_of_them = mine if there is None else self._joined(there[1], mine)
            total = elapsed + (0.0 if there is None else there[0] or 0.0)
            self.put(connection, spot, variant, all_of_them, total, bandwidth)
            connection.execute(
                f"INSERT INTO {ROWS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (self.number, *named(spot), variant, len(mine), center_of(mine), elapsed, now()),
            )
            self.log_run(connection, spot, variant, elapsed)

    def put(
        self,
        connection: Any,
        spot: RowSpot,
        variant: str,
        samples: Samples,
        elapsed: float,
        bandwidth: float | None = None,
    ) -> None:
        """Lets a row have these samples, whatever it had, in a transaction that is open."""
        where, values = self._where(spot)
        cells = (elapsed, center_of(samples), encode(samples), bandwidth)
        changed = connection.execute(
            f"UPDATE {spot.table} SET elapsed = ?, center = ?, samples = ?,"  # noqa: S608
            f" bw = coalesce(?, bw) WHERE {where} AND variant = ?",
            (*cells, *values, variant),
        )
        if not changed.rowcount:
            axes = "".join(f", {quote(axis)}" for axis in spot.workload)
            connection.execute(
                f"INSERT INTO {spot.table}"  # noqa: S608
                f" (elapsed, center, samples, bw, variant, ctk, cccl, gpu{axes})"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?{', ?' * len(spot.workload)})",
                (*cells, variant, *self._key, *spot.workload.values()),
            )

    def drop(self, connection: Any, spot: RowSpot, variant: str) -> None:
        """Deletes a row, in a transaction that is open."""
        where, values = self._where(spot)
        connection.execute(
            f"DELETE FROM {spot.table} WHERE {where} AND variant = ?",  # noqa: S608
            (*values, variant),
        )

    def log_run(self, connection: Any, spot: RowSpot, variant: str, elapsed: float) -> None:
        """Writes into CCCL's own log that a variant ran."""
        self._log(connection, "runs", spot.algorithm, variant, "0", elapsed)

    def fail(self, spot: RowSpot, variant: str, failure: Failure, elapsed: float = 0.0) -> None:
        """Writes that a variant is not measured on a runtime workload, and why."""
        with self.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {FAILURES} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (
                    *(self.number, *named(spot), variant),
                    *(failure.kind, failure.reason, now()),
                ),
            )
            log = "builds" if failure.kind == "compile" else "runs"
            self._log(connection, log, spot.algorithm, variant, CODES[failure.kind], elapsed)

    def built(self, algorithm: str, variant: str, code: str, elapsed: float) -> None:
        """Writes that a variant was compiled, or was not: `0` is fine."""
        with self.writer.writing() as connection:
            self._log(connection, "builds", algorithm, variant, code, elapsed)

    def noise(self, spot: RowSpot, process: int, samples: Sequence[float]) -> None:
        """Writes what base took in a fresh process, once for each: how noisy base is."""
        mine = np.asarray(samples, np.float32)
        pairs = len(mine) // 2
        beside = center_of(mine[::2][:pairs]) / center_of(mine[1::2]) if pairs else 1.0
        with self.writer.writing() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO {NOISE} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (*(self.number, *named(spot), process), len(mine), center_of(mine), beside),
            )

    def beside(self, spot: RowSpot) -> list[float]:
        """Base against itself within each fresh process, of all sessions."""
        return self._noise("beside", spot)

    def noise_centers(self, spot: RowSpot) -> list[float]:
        """What base took in fresh processes, of all sessions."""
        return self._noise("center", spot)

    def _noise(self, column: str, spot: RowSpot) -> list[float]:
        rows: list[Any] = self.writer.rows(
            f"SELECT n.{column} FROM {NOISE} AS n JOIN {SESSIONS} AS s ON s.id = n.session"  # noqa: S608
            " WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (n.algorithm, n.bench, n.workload) = (?, ?, ?) ORDER BY n.rowid",
            *self._key,
            *named(spot),
        )
        return [value for (value,) in rows]

    def time(self, step: str, seconds: float) -> None:
        """Writes how long something took."""
        with self.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {TIMES} VALUES (?, ?, ?)",  # noqa: S608
                (self.number, step, seconds),
            )

    def note(self, repeated: int, throttled: int, restarts: int) -> None:
        """Adds to what is said of throttling, and how many processes there were."""
        with self.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SESSIONS} SET repeated = repeated + ?, throttled = throttled + ?,"  # noqa: S608
                " restarts = ? WHERE id = ?",
                (repeated, throttled, restarts, self.number),
            )

    def launched(self, spot: RowSpot, launches: Mapping[str, Launch]) -> None:
        """Writes how kernels of one's own are launched on a runtime workload."""
        keep_launches(self.writer, self.number, named(spot), launches)

    def achieved(self, spot: RowSpot, shares: Mapping[str, float]) -> None:
        """Writes which share of threads was at work when they ran."""
        keep_achieved(self.writer, self.number, named(spot), shares)

    def end(self) -> None:
        """Notes that the session has ended, and was not killed."""
        with self.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SESSIONS} SET ended = ? WHERE id = ?",  # noqa: S608
                (now(), self.number),
            )

    def _where(self, spot: RowSpot) -> tuple[str, tuple[str, ...]]:
        axes = "".join(f" AND {quote(axis)} = ?" for axis in spot.workload)
        return f"ctk = ? AND cccl = ? AND gpu = ?{axes}", (*self._key, *spot.workload.values())

    def _joined(self, blob: object, mine: Samples) -> Samples:
        return np.concatenate([self._decoded(blob), mine])

    def _decoded(self, blob: object) -> Samples:
        (there,) = self._decoder.decode([blob])
        if isinstance(there, BadSamplesError):
            raise InputError(
                f"{self.writer.path}: samples cannot be read: {there}", "Name another file."
            )
        return there

    def _log(
        self, connection: Any, log: str, algorithm: str, variant: str, code: str, elapsed: float
    ) -> None:
        connection.execute(
            f"INSERT INTO {log} (ctk, cccl, bench, code, elapsed) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            (*self._key[:2], f"{algorithm}.{variant}", code, elapsed),
        )


def named(spot: RowSpot) -> tuple[str, str, str]:
    """How our own tables name a runtime workload."""
    return spot.algorithm, spot.subbench, workload_text(spot.workload)


def center_of(samples: "np.ndarray[Any, Any]") -> float:
    """CCCL's own estimate of what a run takes, of samples as they are kept."""
    return float(np.median(samples.astype(np.float32)))


def _kind(text: object) -> Kind:
    return next((kind for kind in CODES if kind == text), "error")


_COLUMNS = ", ".join(f"{one.name} INTEGER NOT NULL" for one in fields(Launch))
_NAMED = "algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL"


# What a database keeps of kernels of one's own: launches, what words mean, how fast a copy is.


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
