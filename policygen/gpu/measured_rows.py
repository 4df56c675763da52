"""Measurement rows in CCCL's format, written immediately, with their sources.

A row is a variant on a runtime workload for one GPU, toolkit, and CCCL. Repeated measurements are
merged into the row; `policygen_rows` holds those of each session.

Variants are selected by their luck in the first rungs of a search. Therefore CCCL's own table holds
only the samples of the last rung, and those of the others are kept separately.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, get_args

import numpy as np

from policygen.errors import InputError
from policygen.gpu.database_writer import (
    OF_KEY,
    About,
    DatabaseWriter,
    RowSpot,
    begin_session,
    insert,
    now,
    open_writer,
)
from policygen.gpu.device import Failure, Kind, Launch
from policygen.model.workload import BASE
from policygen.results.merge import DECLARED, create_results, declare, declared_cell
from policygen.results.own_tables import (
    ACHIEVED,
    CREATES,
    FAILURE_CODES,
    FAILURES,
    LAST,
    LAUNCHES,
    NOISE,
    ROWS,
    RUNGS,
    SESSIONS,
    TIMES,
    VALUES,
    keep_weights,
)
from policygen.results.rungs import Rungs, rungs_at
from policygen.results.samples import BadSamplesError, Decoder, Samples, encode
from policygen.results.sessions import PointSpot, RungRow
from policygen.results.tables import DeclaredAxes, quote

_OTHER = "The rows belong to another version of the benchmark; name another file."
_OWN_SPOT = f"(algorithm, bench, workload) = (?, ?, ?) AND {OF_KEY}"


@contextmanager
def open_measurements(path: Path, about: About) -> Iterator["MeasuringSession"]:
    """Open a session that writes into a database; its end is recorded after the block."""
    with open_writer(path) as writer, Decoder() as decoder:
        session = MeasuringSession(writer, about, decoder)
        yield session
        writer.change(f"UPDATE {SESSIONS} SET ended = ? WHERE id = ?", now(), session.number)  # noqa: S608


class MeasuringSession:
    """Writes results row by row, and reads what the database already has."""

    def __init__(self, writer: DatabaseWriter, about: About, decoder: Decoder) -> None:
        self.about = about
        self.writer, self._decoder = writer, decoder
        self._key = about.key
        self.number = begin_session(writer, about)

    def prepare(self, spot: RowSpot, declared: DeclaredAxes) -> None:
        """Create the table of a sub-benchmark and write the declared values of its axes.

        An existing table must have the same axes with the same values.
        """
        axes = list(spot.workload)
        name = f"{spot.algorithm}.{spot.subbench}"
        place = spot.algorithm, spot.subbench
        own_axes = {key: values for key, values in declared.items() if key[:2] == place}
        cells = {key[2]: tuple(map(declared_cell, values)) for key, values in own_axes.items()}
        with self.writer.writing() as connection:
            create_results(connection, spot.algorithm, spot.subbench, axes)
            info = connection.execute(f"PRAGMA table_info({spot.table})")
            if (columns := [row[1] for row in info][8:]) != axes:
                raise InputError(
                    f"{self.writer.path}: {name} has the axes {', '.join(columns) or 'none'}"
                    f" there, not {', '.join(axes) or 'none'}",
                    _OTHER,
                )
            declared_cells = _declared_values(connection, spot)
            if declared_cells and cells and declared_cells != cells:
                raise InputError(
                    f"{self.writer.path}: the axes of {name} have different declared values there",
                    _OTHER,
                )
            if not declared_cells:
                declare(connection, own_axes)
            for key, values in own_axes.items():
                keep_weights(connection, key, values)

    def measured(self, spot: RowSpot) -> frozenset[str]:
        """Return the variants that have a row, including `base`."""
        return frozenset(str(variant) for (variant,) in self._results("variant", spot))

    def times(self, spot: RowSpot) -> dict[str, list[tuple[int, float]]]:
        """Return the time of each variant in each process, with the session, in order.

        The n-th times of the baseline and of a variant in a session belong together.
        """
        times: dict[str, list[tuple[int, float]]] = {}
        for variant, session_id, center in self._own(ROWS, "variant, session, center", spot):
            times.setdefault(variant, []).append((session_id, center))
        return times

    def samples(self, spot: RowSpot) -> dict[str, Samples]:
        """Return all samples of each variant, sorted and merged over processes."""
        rows = self._results("variant, samples", spot)
        return {str(variant): self._decoded(blob) for variant, blob in rows}

    def failed(self, spot: RowSpot) -> dict[str, Failure]:
        """Return the failures of all sessions, for variants without a row."""
        failures = {
            str(variant): Failure(kind if kind in get_args(Kind) else "error", str(reason))
            for variant, kind, reason in self._own(FAILURES, "variant, kind, reason", spot)
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
        new_samples = np.asarray(samples, np.float64)
        with self.writer.writing() as connection:
            all_samples, total = new_samples, elapsed
            for seconds, blob in self._results("elapsed, samples", spot, variant):
                all_samples = np.concatenate([self._decoded(blob), new_samples])
                total += seconds or 0.0
            self._put(connection, spot, variant, all_samples, total, bandwidth)
            counted = len(new_samples), center_of(new_samples), elapsed
            insert(connection, ROWS, self.number, *spot.key, variant, *counted, now())
            self._log(connection, "runs", spot.algorithm, variant, "0", elapsed)

    def fail(self, spot: RowSpot, variant: str, failure: Failure, elapsed: float = 0.0) -> None:
        """Write why a variant is not measured on a runtime workload."""
        cells = (self.number, *spot.key, variant, failure.kind, failure.reason, now())
        with self.writer.writing() as connection:
            insert(connection, FAILURES, *cells)
            log = "builds" if failure.kind == "compile" else "runs"
            code = FAILURE_CODES[failure.kind]
            self._log(connection, log, spot.algorithm, variant, code, elapsed)

    def noise(self, spot: RowSpot, process: int, samples: Sequence[float]) -> None:
        """Write the time and noise of the baseline once per fresh process."""
        times = np.asarray(samples, np.float32)
        pairs = len(times) // 2
        self_ratio = center_of(times[::2][:pairs]) / center_of(times[1::2]) if pairs else 1.0
        cells = (self.number, *spot.key, process, len(times), center_of(times), self_ratio)
        with self.writer.writing() as connection:
            insert(connection, NOISE, *cells, verb="INSERT OR IGNORE")

    def beside(self, spot: RowSpot) -> list[float]:
        """Return the baseline against itself within each fresh process, over all sessions."""
        return [ratio for (ratio,) in self._own(NOISE, "beside", spot)]

    def noise_centers(self, spot: RowSpot) -> list[float]:
        """Return the baseline times in fresh processes, over all sessions."""
        return [center for (center,) in self._own(NOISE, "center", spot)]

    def time(self, step: str, seconds: float) -> None:
        """Write the duration of a step."""
        with self.writer.writing() as connection:
            insert(connection, TIMES, self.number, step, seconds)

    def note(self, repeated: int, throttled: int, restarts: int) -> None:
        """Add to the throttling counts, and store the number of restarts."""
        self.writer.change(
            f"UPDATE {SESSIONS} SET repeated = repeated + ?, throttled = throttled + ?,"  # noqa: S608
            " restarts = ? WHERE id = ?",
            *(repeated, throttled, restarts, self.number),
        )

    def launched(self, spot: RowSpot, launches: Mapping[str, Launch]) -> None:
        """Write the launch configurations of user kernels on a runtime workload."""
        rows = [(label, *astuple(launch)) for label, launch in sorted(launches.items())]
        if rows:
            self._keep_about(LAUNCHES, spot, rows)

    def achieved(self, spot: RowSpot, shares: Mapping[str, float]) -> None:
        """Write the achieved occupancy of variants."""
        self._keep_about(ACHIEVED, spot, sorted(shares.items()))

    def write_rung(
        self,
        spot: RowSpot,
        rung: int,
        process: int,
        samples: Mapping[str, Sequence[float]],
        elapsed: Mapping[str, float],
    ) -> dict[str, float]:
        """Write the times of one process in one transaction; return the centers.

        The result row of a variant comes from its highest rung.
        """
        samples_by_label = {label: np.asarray(times, "<f4") for label, times in samples.items()}
        centers = {label: center_of(times) for label, times in samples_by_label.items()}
        with self.writer.writing() as connection:
            for label, times in samples_by_label.items():
                seconds = elapsed.get(label, 0.0)
                cells = (rung, process, centers[label], centers[BASE], times.tobytes(), now())
                insert(connection, RUNGS, self.number, *spot.key, label, *cells)
                self._put(connection, spot, label, self._rung_samples(spot, label), seconds)
                self._log(connection, "runs", spot.algorithm, label, "0", seconds)
        return centers

    def rungs(self, spots: Sequence[RowSpot], weights: Sequence[float]) -> Rungs:
        """Return the rungs on the runtime workloads of a workload."""
        columns = "session, process, rung, variant, center, base, NULL, rowid"
        rows = {}
        for spot in spots:
            point = PointSpot(spot.subbench, tuple(spot.runtime_axes.items()))
            rows[point] = [RungRow(*cells) for cells in self._own(RUNGS, columns, spot)]
        return rungs_at(rows, weights)

    def withdraw(self, spot: RowSpot, variant: str, failure: Failure) -> None:
        """Write that a variant must not be used, with the reason, and delete its measurements."""
        where, values = self._where(spot, variant)
        with self.writer.writing() as connection:
            connection.execute(
                f"DELETE FROM {RUNGS} WHERE {_OWN_SPOT} AND variant = ?",  # noqa: S608
                (*spot.key, *self._key, variant),
            )
            connection.execute(f"DELETE FROM {spot.table} WHERE {where}", values)  # noqa: S608
        self.fail(spot, variant, failure)

    def _results(self, columns: str, spot: RowSpot, variant: str | None = None) -> list[Any]:
        """Return cells of the result rows of a runtime workload."""
        where, values = self._where(spot, variant)
        return self.writer.rows(f"SELECT {columns} FROM {spot.table} WHERE {where}", *values)  # noqa: S608

    def _own(
        self, table: str, columns: str, spot: RowSpot, variant: str | None = None
    ) -> list[Any]:
        """Return cells of policygen's own rows about a runtime workload, in order of writing."""
        suffix, values = (" AND variant = ?", [variant]) if variant else ("", [])
        return self.writer.rows(
            f"SELECT {columns} FROM {table} WHERE {_OWN_SPOT}{suffix} ORDER BY rowid",  # noqa: S608
            *(*spot.key, *self._key, *values),
        )

    def _where(self, spot: RowSpot, variant: str | None) -> tuple[str, tuple[str, ...]]:
        """Return the condition for result rows, with its values."""
        cells = {"ctk": self._key[0], "cccl": self._key[1], "gpu": self._key[2], **spot.workload}
        if variant is not None:
            cells["variant"] = variant
        return " AND ".join(f"{quote(column)} = ?" for column in cells), tuple(cells.values())

    def _put(
        self,
        connection: Any,
        spot: RowSpot,
        variant: str,
        samples: Samples,
        elapsed: float,
        bandwidth: float | None = None,
    ) -> None:
        """Write or replace the samples of a row within an open transaction."""
        where, values = self._where(spot, variant)
        cells = (elapsed, center_of(samples), encode(samples), bandwidth)
        changed = connection.execute(
            f"UPDATE {spot.table} SET elapsed = ?, center = ?, samples = ?,"  # noqa: S608
            f" bw = coalesce(?, bw) WHERE {where}",
            (*cells, *values),
        )
        if not changed.rowcount:
            axes = "".join(f", {quote(axis)}" for axis in spot.workload)
            connection.execute(
                f"INSERT INTO {spot.table}"  # noqa: S608
                f" (elapsed, center, samples, bw, ctk, cccl, gpu{axes}, variant)"
                f" VALUES ({', '.join('?' * (len(cells) + len(values)))})",
                (*cells, *values),
            )

    def _rung_samples(self, spot: RowSpot, label: str) -> Samples:
        """Return the samples of the last rung, or all samples if there are none."""
        rows = self._own(RUNGS, "rung, samples", spot, label)
        last = [blob for rung, blob in rows if rung == LAST]
        parts = [np.frombuffer(blob, "<f4") for blob in last or [blob for _, blob in rows]]
        return np.concatenate(parts).astype(np.float64)

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
        """Log a run or a build in CCCL's own table."""
        connection.execute(
            f"INSERT INTO {log} (ctk, cccl, bench, code, elapsed) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            (*self._key[:2], f"{algorithm}.{variant}", code, elapsed),
        )

    def _keep_about(self, table: str, spot: RowSpot, rows: Iterable[tuple[object, ...]]) -> None:
        """Keep rows of this session about variants on a runtime workload."""
        keep_rows(self.writer, table, [(self.number, *spot.key, *cells) for cells in rows])


def center_of(samples: "np.ndarray[Any, Any]") -> float:
    """Return CCCL's estimate of a time: the median of the stored samples."""
    return float(np.median(samples.astype(np.float32)))


def _declared_values(connection: Any, spot: RowSpot) -> dict[str, tuple[str, ...]]:
    """Return the declared values of a sub-benchmark in the database, by axis."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (DECLARED,)).fetchone():
        return {}
    rows = connection.execute(
        f"SELECT axis, value FROM {DECLARED} WHERE (algorithm, bench) = (?, ?)"  # noqa: S608
        " ORDER BY axis, idx",
        (spot.algorithm, spot.subbench),
    )
    values_by_axis: dict[str, tuple[str, ...]] = {}
    for axis, value in rows:
        values_by_axis[axis] = (*values_by_axis.get(axis, ()), value)
    return values_by_axis


# Tables for user kernels


def keep_words(
    writer: DatabaseWriter, algorithm: str, words: Mapping[str, tuple[str, ...]]
) -> None:
    """Write the names of a parameter's values."""
    rows = [
        (algorithm, parameter, value, json.dumps(word))
        for parameter, value_words in words.items()
        for value, word in enumerate(value_words)
    ]
    keep_rows(writer, VALUES, rows)


def keep_rows(writer: DatabaseWriter, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Create a table if it is missing, and write rows, replacing those with the same key."""
    with writer.writing() as connection:
        connection.execute(CREATES[table])
        for cells in rows:
            insert(connection, table, *cells, verb="INSERT OR REPLACE")
