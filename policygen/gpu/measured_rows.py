"""Measurement rows in CCCL's format, written immediately, with their sources.

A row is a variant on a runtime workload for one GPU, toolkit, and CCCL. Repeated measurements are
merged into the row; `policygen_rows` holds those of each session.
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
"""Log codes of failed runs; 42 is CCCL's code for a timeout."""


@contextmanager
def open_measurements(path: Path, about: About) -> Iterator["MeasuringSession"]:
    """Open a session that writes into a database; its end is recorded after the block."""
    with open_writer(path) as writer, Decoder() as decoder:
        session = MeasuringSession(writer, about, decoder)
        yield session
        session.end()


class MeasuringSession:
    """Writes results row by row, and reads what the database already has."""

    def __init__(self, writer: DatabaseWriter, about: About, decoder: Decoder) -> None:
        self.about = about
        self.writer, self._decoder = writer, decoder
        self._key = about.key
        self.number = begin_session(writer, about)

    def prepare(self, spot: RowSpot, declared: DeclaredAxes) -> None:
        """Create the table of a sub-benchmark and write the declared values of its axes."""
        prepare_table(self.writer, spot, declared)

    def measured(self, spot: RowSpot) -> frozenset[str]:
        """Return the variants that have a row, including `base`."""
        where, values = self._where(spot)
        rows = self.writer.rows(f"SELECT variant FROM {spot.table} WHERE {where}", *values)  # noqa: S608
        return frozenset(str(variant) for (variant,) in rows)

    def times(self, spot: RowSpot) -> dict[str, list[tuple[int, float]]]:
        """Return the time of each variant in each process, with the session, in order.

        The n-th times of the baseline and of a variant in a session belong together.
        """
        rows: list[Any] = self.writer.rows(
            f"SELECT r.variant, r.session, r.center FROM {ROWS} AS r JOIN {SESSIONS} AS s"  # noqa: S608
            " ON s.id = r.session WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (r.algorithm, r.bench, r.workload) = (?, ?, ?) ORDER BY r.rowid",
            *self._key,
            *named(spot),
        )
        times: dict[str, list[tuple[int, float]]] = {}
        for variant, session_id, center in rows:
            times.setdefault(variant, []).append((session_id, center))
        return times

    def samples(self, spot: RowSpot) -> dict[str, Samples]:
        """Return all samples of each variant, sorted and merged over processes."""
        where, values = self._where(spot)
        rows = self.writer.rows(f"SELECT variant, samples FROM {spot.table} WHERE {where}", *values)  # noqa: S608
        return {str(variant): self._decoded(blob) for variant, blob in rows}

    def failed(self, spot: RowSpot) -> dict[str, Failure]:
        """Return the failures of all sessions, for variants without a row."""
        rows = self.writer.rows(
            f"SELECT f.variant, f.kind, f.reason FROM {FAILURES} AS f JOIN {SESSIONS} AS s"  # noqa: S608
            " ON s.id = f.session WHERE (s.ctk, s.cccl, s.gpu) = (?, ?, ?)"
            " AND (f.algorithm, f.bench, f.workload) = (?, ?, ?) ORDER BY f.rowid",
            *self._key,
            *named(spot),
        )
        failures = {
            str(variant): Failure(_kind(kind), str(reason)) for variant, kind, reason in rows
        }
        measured = self.measured(spot) if failures else frozenset()
        return {label: failure for label, failure in failures.items() if label not in measured}

    def record(
        self,
        spot: RowSpot,
        variant: str,
        samples: Sequence[float],
        elapsed: float,
        bandwidth: float | None = None,
    ) -> None:
        """Write a row, or merge samples into the existing one, in one transaction."""
        where, values = self._where(spot)
        new_samples = np.asarray(samples, np.float64)
        with self.writer.writing() as connection:
            row = connection.execute(
                f"SELECT elapsed, samples FROM {spot.table} WHERE {where} AND variant = ?",  # noqa: S608
                (*values, variant),
            ).fetchone()
            all_samples = new_samples if row is None else self._joined(row[1], new_samples)
            total = elapsed + (0.0 if row is None else row[0] or 0.0)
            self.put(connection, spot, variant, all_samples, total, bandwidth)
            connection.execute(
                f"INSERT INTO {ROWS} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (
                    self.number,
                    *named(spot),
                    variant,
                    len(new_samples),
                    center_of(new_samples),
                    elapsed,
                    now(),
                ),
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
        """Replace the samples of a row within an open transaction."""
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
        """Delete a row within an open transaction."""
        where, values = self._where(spot)
        connection.execute(
            f"DELETE FROM {spot.table} WHERE {where} AND variant = ?",  # noqa: S608
            (*values, variant),
        )

    def log_run(self, connection: Any, spot: RowSpot, variant: str, elapsed: float) -> None:
        """Log a run in CCCL's own table."""
        self._log(connection, "runs", spot.algorithm, variant, "0", elapsed)

    def fail(self, spot: RowSpot, variant: str, failure: Failure, elapsed: float = 0.0) -> None:
        """Write why a variant is not measured on a runtime workload."""
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
        """Log whether a variant was compiled; code `0` means success."""
        with self.writer.writing() as connection:
            self._log(connection, "builds", algorithm, variant, code, elapsed)

    def noise(self, spot: RowSpot, process: int, samples: Sequence[float]) -> None:
        """Write the time and noise of the baseline once per fresh process."""
        times = np.asarray(samples, np.float32)
        pairs = len(times) // 2
        self_ratio = center_of(times[::2][:pairs]) / center_of(times[1::2]) if pairs else 1.0
        with self.writer.writing() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO {NOISE} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (*(self.number, *named(spot), process), len(times), center_of(times), self_ratio),
            )

    def beside(self, spot: RowSpot) -> list[float]:
        """Return the baseline against itself within each fresh process, over all sessions."""
        return self._noise("beside", spot)

    def noise_centers(self, spot: RowSpot) -> list[float]:
        """Return the baseline times in fresh processes, over all sessions."""
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
        """Write the duration of a step."""
        with self.writer.writing() as connection:
            connection.execute(
                f"INSERT INTO {TIMES} VALUES (?, ?, ?)",  # noqa: S608
                (self.number, step, seconds),
            )

    def note(self, repeated: int, throttled: int, restarts: int) -> None:
        """Add to the throttling counts, and store the number of restarts."""
        with self.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SESSIONS} SET repeated = repeated + ?, throttled = throttled + ?,"  # noqa: S608
                " restarts = ? WHERE id = ?",
                (repeated, throttled, restarts, self.number),
            )

    def launched(self, spot: RowSpot, launches: Mapping[str, Launch]) -> None:
        """Write the launch configurations of user kernels on a runtime workload."""
        keep_launches(self.writer, self.number, named(spot), launches)

    def achieved(self, spot: RowSpot, shares: Mapping[str, float]) -> None:
        """Write the achieved occupancy of variants."""
        keep_achieved(self.writer, self.number, named(spot), shares)

    def end(self) -> None:
        """Record that the session ended normally."""
        with self.writer.writing() as connection:
            connection.execute(
                f"UPDATE {SESSIONS} SET ended = ? WHERE id = ?",  # noqa: S608
                (now(), self.number),
            )

    def _where(self, spot: RowSpot) -> tuple[str, tuple[str, ...]]:
        axes = "".join(f" AND {quote(axis)} = ?" for axis in spot.workload)
        return f"ctk = ? AND cccl = ? AND gpu = ?{axes}", (*self._key, *spot.workload.values())

    def _joined(self, blob: object, new_samples: Samples) -> Samples:
        return np.concatenate([self._decoded(blob), new_samples])

    def _decoded(self, blob: object) -> Samples:
        (samples,) = self._decoder.decode([blob])
        if isinstance(samples, BadSamplesError):
            raise InputError(
                f"{self.writer.path}: samples cannot be read: {samples}", "Name another file."
            )
        return samples

    def _log(
        self, connection: Any, log: str, algorithm: str, variant: str, code: str, elapsed: float
    ) -> None:
        connection.execute(
            f"INSERT INTO {log} (ctk, cccl, bench, code, elapsed) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            (*self._key[:2], f"{algorithm}.{variant}", code, elapsed),
        )


def named(spot: RowSpot) -> tuple[str, str, str]:
    """Return the key of a runtime workload in policygen's own tables."""
    return spot.algorithm, spot.subbench, workload_text(spot.workload)


def center_of(samples: "np.ndarray[Any, Any]") -> float:
    """Return CCCL's estimate of a time: the median of the stored samples."""
    return float(np.median(samples.astype(np.float32)))


def _kind(text: object) -> Kind:
    return next((kind for kind in CODES if kind == text), "error")


_COLUMNS = ", ".join(f"{launch_field.name} INTEGER NOT NULL" for launch_field in fields(Launch))
_SPOT_COLUMNS = "algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL"


# Tables for user kernels


def keep_launches(
    writer: DatabaseWriter,
    session: int,
    spot: tuple[str, str, str],
    launches: Mapping[str, Launch],
) -> None:
    """Write the launches on a runtime workload, replacing those of this session."""
    if not launches:
        return
    places = ", ".join("?" * (5 + len(fields(Launch))))
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {LAUNCHES} (session INTEGER NOT NULL, {_SPOT_COLUMNS},"
            f" variant TEXT NOT NULL, {_COLUMNS},"
            " UNIQUE(session, algorithm, bench, workload, variant))"
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {LAUNCHES} VALUES ({places})",  # noqa: S608
            [
                (session, *spot, label, *astuple(launch))
                for label, launch in sorted(launches.items())
            ],
        )


def keep_achieved(
    writer: DatabaseWriter,
    session: int,
    spot: tuple[str, str, str],
    shares: Mapping[str, float],
) -> None:
    """Write the achieved occupancy of variants."""
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {ACHIEVED} (session INTEGER NOT NULL, {_SPOT_COLUMNS},"
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
    """Write the names of a parameter's values."""
    with writer.writing() as connection:
        connection.execute(VALUE_TABLE)
        connection.executemany(
            f"INSERT OR REPLACE INTO {VALUES} VALUES (?, ?, ?, ?)",  # noqa: S608
            [
                (algorithm, parameter, value, json.dumps(word))
                for parameter, value_words in words.items()
                for value, word in enumerate(value_words)
            ],
        )


def keep_start(writer: DatabaseWriter, algorithm: str, kernel: str, variant: str) -> None:
    """Write the kernel of a size class and the variant that is its baseline."""
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
    """Write the measured copy bandwidth in bytes per second."""
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {PEAKS} (session INTEGER NOT NULL, bytes REAL NOT NULL)"
        )
        connection.execute(f"INSERT INTO {PEAKS} VALUES (?, ?)", (session, bandwidth))  # noqa: S608
