"""policygen's own tables in a measured database, for what CCCL's layout cannot hold.

Their names begin with `policygen_`. CCCL's scripts and other readers ignore them.
"""

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygen.model.workload import BASE

OWN = "policygen_"
VERSION = 1
FORMAT = f"{OWN}format"
SESSIONS = f"{OWN}sessions"
ROWS = f"{OWN}rows"
NOISE = f"{OWN}noise"
FAILURES = f"{OWN}failures"
TIMES = f"{OWN}times"
SEARCHES = f"{OWN}searches"
RUNGS = f"{OWN}rungs"
MEMCHECKS = f"{OWN}memchecks"
IMPORTS = f"{OWN}imports"
VALUES = f"{OWN}values"
DEVIATIONS = f"{OWN}deviations"
LAUNCHES = f"{OWN}launches"
KERNELS = f"{OWN}kernels"
PEAKS = f"{OWN}peaks"
ACHIEVED = f"{OWN}achieved"
WEIGHTS = f"{OWN}weights"
STARTS = f"{OWN}starts"
"""Where a search would start: the algorithm, the workload, and the variant."""
IMPORTED = "import"
"""The method of a session that imported other tools' measurements instead of measuring."""
SCREENING, SHARPER, LAST = 1, 2, 3
"""The numbers of the rungs; no choice was based on the samples of the last one."""
FAILURE_CODES: Mapping[str, str] = {
    "wrong": "1",
    "memory": "2",
    "error": "3",
    "crash": "4",
    "compile": "5",
    "untimed": "6",
    "hang": "42",
}
"""Log codes of failures; 42 is CCCL's code for a timeout."""
LAUNCH_COLUMNS = (
    *("registers", "local", "static_shared", "dynamic_shared"),
    *("block", "grid", "resident", "room", "traffic"),
)
_SESSION = f"session INTEGER NOT NULL REFERENCES {SESSIONS}(id)"
_WORKLOAD = "algorithm TEXT NOT NULL, workload TEXT NOT NULL"
_POINT = "algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL"
_VARIANT = f"{_POINT}, variant TEXT NOT NULL"
_ABOUT = (
    f"session INTEGER NOT NULL, {_VARIANT}, {{}},"
    " UNIQUE(session, algorithm, bench, workload, variant)"
)
# `workload` is a JSON object with all axes of the sub-benchmark and their values. `card`
# distinguishes GPUs of the same name without identifying them. Times are UTC, as ISO 8601.
_MEASURED = {
    FORMAT: "version INTEGER NOT NULL",
    SESSIONS: "id INTEGER PRIMARY KEY, started TEXT NOT NULL,"
    " ended TEXT, policygen TEXT NOT NULL, ctk TEXT NOT NULL, cccl TEXT NOT NULL,"
    " gpu TEXT NOT NULL, card TEXT NOT NULL, arch TEXT NOT NULL, driver TEXT NOT NULL,"
    " nvcc TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL, sm_clock INTEGER NOT NULL,"
    " memory_clock INTEGER NOT NULL, power_limit REAL,"
    " repeated INTEGER NOT NULL DEFAULT 0, throttled INTEGER NOT NULL DEFAULT 0,"
    " restarts INTEGER NOT NULL DEFAULT 0",
    # What a session added to a results row.
    ROWS: f"{_SESSION}, {_VARIANT}, samples INTEGER NOT NULL, center REAL NOT NULL,"
    " elapsed REAL NOT NULL, at TEXT NOT NULL",
    # Base in a fresh process; `beside` is every second sample of it divided by the others.
    NOISE: f"{_SESSION}, {_POINT}, process INTEGER NOT NULL, samples INTEGER NOT NULL,"
    " center REAL NOT NULL, beside REAL NOT NULL,"
    " UNIQUE(session, algorithm, bench, workload, process)",
    # Variants that are wrong or fail, and so have no results row.
    FAILURES: f"{_SESSION}, {_VARIANT}, kind TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL",
    TIMES: f"{_SESSION}, step TEXT NOT NULL, seconds REAL NOT NULL",
}
# A search also writes these tables. `variants` and similar counts are text: they exceed SQLite's
# integers.
_SEARCHED = {
    # A workload that a session searched; `workload` has its compile-time axes. `spent` is in
    # seconds. `skipped` is a JSON list: sub-benchmarks with the runtime workloads that are not
    # measured.
    SEARCHES: f"{_SESSION}, {_WORKLOAD}, strategy TEXT NOT NULL,"
    " seed INTEGER NOT NULL, variants TEXT NOT NULL, valid TEXT NOT NULL, distinct_ TEXT NOT NULL,"
    " base TEXT, budget REAL, spent REAL NOT NULL DEFAULT 0, ended TEXT, skipped TEXT,"
    " UNIQUE(session, algorithm, workload)",
    # A variant, or base, on a runtime workload in one process. Rungs: 1 few samples of all, 2 more
    # of the best, 3 the finalists. `samples` are seconds, little-endian float32; `base` is the time
    # of base measured alongside.
    RUNGS: f"{_SESSION}, {_VARIANT}, rung INTEGER NOT NULL, process INTEGER NOT NULL,"
    " center REAL NOT NULL, base REAL NOT NULL, samples BLOB NOT NULL, at TEXT NOT NULL",
    # What compute-sanitizer says of a variant that failed; `workload` has its compile-time axes.
    MEMCHECKS: f"{_SESSION}, {_WORKLOAD}, variant TEXT NOT NULL, outcome TEXT NOT NULL,"
    " words TEXT NOT NULL, in_cub INTEGER NOT NULL",
}
# Of an import: `base` is the label of the variant stored as `base` in the results; the first
# `warmup` launches of each configuration are left out; `text` is the JSON value that a number in a
# label stands for; deviations, in seconds, are of samples that a file did not keep. Then what
# sessions of a user's kernel say, size classes with kernel and baseline, starts, and weights.
_OTHERS = {
    IMPORTS: f"session INTEGER, {_WORKLOAD}, base TEXT NOT NULL,"
    " file TEXT NOT NULL, sha256 TEXT NOT NULL, program TEXT NOT NULL, kernel TEXT, device TEXT,"
    " size TEXT NOT NULL, warmup INTEGER NOT NULL, entries INTEGER NOT NULL",
    VALUES: "algorithm TEXT NOT NULL, parameter TEXT NOT NULL, value INTEGER NOT NULL,"
    " text TEXT NOT NULL, UNIQUE(algorithm, parameter, value)",
    DEVIATIONS: f"{_VARIANT}, deviation REAL NOT NULL",
    LAUNCHES: _ABOUT.format(", ".join(f"{column} INTEGER NOT NULL" for column in LAUNCH_COLUMNS)),
    ACHIEVED: _ABOUT.format("share REAL NOT NULL"),
    PEAKS: "session INTEGER NOT NULL, bytes REAL NOT NULL",
    KERNELS: "algorithm TEXT NOT NULL UNIQUE, kernel TEXT NOT NULL, variant TEXT NOT NULL",
    STARTS: f"{_WORKLOAD}, variant TEXT NOT NULL",
    WEIGHTS: "algorithm TEXT NOT NULL, bench TEXT NOT NULL, axis TEXT NOT NULL,"
    " value TEXT NOT NULL, weight REAL NOT NULL, UNIQUE(algorithm, bench, axis, value)",
}
_INDEX = f"{RUNGS}_of"
CREATES: Mapping[str, str] = {
    **{
        name: f"CREATE TABLE IF NOT EXISTS {name} ({columns})"
        for name, columns in {**_MEASURED, **_SEARCHED, **_OTHERS}.items()
    },
    _INDEX: f"CREATE INDEX IF NOT EXISTS {_INDEX} ON {RUNGS} (algorithm, bench, workload, variant)",
}
"""The statement that creates each table or index; merging keeps all of them."""
SEARCH_TABLES = tuple(CREATES[name] for name in (*_SEARCHED, _INDEX))


def create_own(connection: sqlite3.Connection) -> None:
    """Creates the tables in a database without them."""
    for name in _MEASURED:
        connection.execute(CREATES[name])
    connection.execute(f"INSERT INTO {FORMAT} VALUES (?)", (VERSION,))  # noqa: S608


def own_version(connection: sqlite3.Connection, names: Collection[str]) -> int | None:
    """Returns the version of the tables; None if there are none or it is not a number."""
    if FORMAT not in names:
        return None
    row = connection.execute(f"SELECT version FROM {FORMAT}").fetchone()  # noqa: S608
    return row[0] if row and isinstance(row[0], int) else None


def workload_text(workload: Mapping[str, str]) -> str:
    """Serializes axes and values in canonical form, as the tables store them."""
    return json.dumps(dict(workload), sort_keys=True)


LEAST = 4
"""Minimum number of processes for a noise estimate."""
MOST = 1.0
"""A larger standard deviation is not measurement noise."""
MOST_ROWS = 1_000_000
"""Limit of rows read from a table."""
NoiseKey = tuple[str, str, str, str, str, str]
"""GPU, toolkit, CCCL, algorithm, sub-benchmark and the workload as text."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How much processes of the same code differ."""

    deviation: float
    """The standard deviation of the logarithm of a center, predicted for another process."""
    processes: int
    variants: int = 0
    """The number of variants next to base, if it is a ratio that differs."""

    @property
    def freedom(self) -> int:
        """The degrees of freedom."""
        return self.processes - 1


MeasuredNoise = Mapping[NoiseKey, Spread]


# Measured noise: base against itself in fresh processes.


def spread_of(centers: Sequence[float]) -> Spread | None:
    """Estimates the spread from the centers of processes; None if too few or all equal.

    A small sample underestimates its spread: Student's distribution widens it. Processes that do
    not differ at all only show the clock's resolution.
    """
    freedom = len(centers) - 1
    if len(centers) < LEAST:
        return None
    observed = float(np.std(np.log(centers), ddof=1))
    deviation = observed * math.sqrt(freedom / (freedom - 2))
    return Spread(deviation, len(centers)) if 0 < deviation <= MOST else None


def pool_spreads(spreads: Iterable[Spread]) -> Spread | None:
    """Pools the spreads of several databases for one runtime workload."""
    all_spreads = list(spreads)
    if not all_spreads:
        return None
    freedom = sum(spread.freedom for spread in all_spreads)
    variance = sum(spread.freedom * spread.deviation**2 for spread in all_spreads) / freedom
    return Spread(math.sqrt(variance), sum(spread.processes for spread in all_spreads))


def find_noise(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> MeasuredNoise:
    """Reads the noise of a database; invalid times are ignored."""
    centers: dict[NoiseKey, list[float]] = {}
    for key, center in _rows(connection, names, NOISE, ("center",)):
        if _is_time(center):
            centers.setdefault(key, []).append(center)
    spreads = ((key, spread_of(values)) for key, values in centers.items())
    return {key: spread for key, spread in spreads if spread is not None}


def _rows(
    connection: sqlite3.Connection,
    names: Mapping[str, Sequence[str]],
    table: str,
    columns: Sequence[str],
    rest: str = "",
) -> Iterator[tuple[Any, ...]]:
    """Yields the key of a runtime workload and some cells, for each row of a table with these."""
    is_known = own_version(connection, names) == VERSION and SESSIONS in names
    if not is_known or not {*columns} <= {*names.get(table, ())}:
        return
    cells = ", ".join(f"r.{column}" for column in columns)
    for *texts, workload in connection.execute(
        f"SELECT {cells}, s.gpu, s.ctk, s.cccl, r.algorithm, r.bench, r.workload"  # noqa: S608
        f" FROM {table} AS r JOIN {SESSIONS} AS s ON s.id = r.session {rest} LIMIT {MOST_ROWS}"
    ):
        values, key = texts[: len(columns)], texts[len(columns) :]
        axes = workload_of(workload)
        if axes is not None and all(isinstance(text, str) for text in key):
            yield (*key, workload_text(axes)), *values


def _is_time(value: object) -> bool:
    return isinstance(value, float) and 0 < value < math.inf


def workload_of(cell: object) -> dict[str, str] | None:
    """Parses a cell's workload text into axes and values; None if it is invalid."""
    if not isinstance(cell, str):
        return None
    try:
        axes = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    if not isinstance(axes, dict) or not all(isinstance(value, str) for value in axes.values()):
        return None
    return axes


PAIRED_NOISE_LEAST = 6
"""Minimum number of differences between processes for a noise estimate."""
Side = tuple[int, str]
"""A session, and a variant of it."""
Pairs = Mapping[NoiseKey, Mapping[Side, Sequence[float]]]
"""By runtime workload and side, the logarithm of base over variant in each process."""


# Noise of ratios: base and variants side by side in fresh processes. Drift from process to process
# affects both, so their ratio is more certain than either time.


def find_pairs(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Pairs:
    """Reads the pairs of a database; invalid times are ignored."""
    times: dict[NoiseKey, dict[Side, list[float]]] = {}
    for key, session, variant, center in _rows(
        connection, names, ROWS, ("session", "variant", "center"), "ORDER BY r.rowid"
    ):
        if _is_time(center) and isinstance(variant, str):
            times.setdefault(key, {}).setdefault((session, variant), []).append(center)
    return {key: _log_ratios(sides) for key, sides in times.items()}


def _log_ratios(sides: Mapping[Side, Sequence[float]]) -> dict[Side, Sequence[float]]:
    """Pairs the n-th time of base with the n-th time of a variant in the same session."""
    return {
        (session, variant): [
            math.log(base / time)
            for base, time in zip(sides.get((session, BASE), ()), times, strict=False)
        ]
        for (session, variant), times in sides.items()
        if variant != BASE
    }


def spread_at(pairs_by_database: Iterable[Mapping[Side, Sequence[float]]]) -> Spread | None:
    """Pools several databases for the ratio of a runtime workload; None if too little data."""
    return _paired_spread([logs for pairs in pairs_by_database for logs in pairs.values()])


def spread_of_scores(
    runs: Iterable[Sequence[Mapping[Side, Sequence[float]]]], weights: npt.NDArray[np.float64]
) -> Spread | None:
    """Does the same for a score, from the sides of all runtime workloads by database."""
    scores = []
    for pairs_by_point in runs:
        for side in set.intersection(*(set(pairs) for pairs in pairs_by_point)):
            by_process = zip(*(pairs[side] for pairs in pairs_by_point), strict=False)
            scores.append([math.log(float(weights @ np.exp(ratios))) for ratios in by_process])
    return _paired_spread(scores)


def _paired_spread(observed: Iterable[Sequence[float]]) -> Spread | None:
    """Pools over variants; the base they share makes half of their differences common."""
    samples = [np.asarray(sample) for sample in observed if len(sample) > 1]
    freedom = sum(len(sample) - 1 for sample in samples) / 2
    if freedom < PAIRED_NOISE_LEAST / 2:
        return None
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    # A small sample underestimates its spread: Student's distribution is wider.
    variance = squares / (2 * freedom) * (freedom / (freedom - 2))
    processes = min(len(sample) for sample in samples)
    deviation = math.sqrt(variance / processes)
    return Spread(deviation, processes, len(samples)) if 0 < deviation <= MOST else None


# The last rung of searches: the finalists, and their results in each process.


def find_finals(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Pairs:
    """Reads the finals of a database; invalid times are ignored."""
    finals: dict[NoiseKey, dict[Side, list[float]]] = {}
    columns = ("session", "variant", "base", "center", "rung", "process")
    for key, session, variant, base, center, *_ in _rows(
        connection,
        names,
        RUNGS,
        columns,
        f"WHERE r.rung = {LAST} AND r.variant <> '{BASE}' ORDER BY r.session, r.process",
    ):
        if isinstance(variant, str) and _is_time(base) and _is_time(center):
            ratios = finals.setdefault(key, {}).setdefault((session, variant), [])
            ratios.append(math.log(base / center))
    return finals


def results_table(algorithm: str, subbench: str, run: int = 1) -> str:
    """Returns the name of a results table; CCCL's scripts see those of a file's first run."""
    return f"{algorithm}.{subbench}" if run == 1 else f"{OWN}run_{run}.{algorithm}.{subbench}"


MOST_WEIGHTS = 1e9
"""A larger weight is treated as damage."""


class WeighedValues(tuple[str, ...]):
    """The values of an axis in declaration order, each with its weight relative to the others."""

    weights: Mapping[str, float]

    @classmethod
    def of(cls, values: Sequence[str], weights: Sequence[float] | None) -> tuple[str, ...]:
        """Attaches weights to values; without weights, returns a plain tuple."""
        if weights is None:
            return tuple(values)
        weighed = cls(values)
        weighed.weights = dict(zip(values, weights, strict=True))
        return weighed


# Values of runtime axes with user-defined weights, which replace CCCL's.


def are_same(left: Sequence[str], right: Sequence[str]) -> bool:
    """Returns whether two databases declare an axis identically."""
    same_weights = getattr(left, "weights", None) == getattr(right, "weights", None)
    return tuple(left) == tuple(right) and same_weights


def own_weight(values: Sequence[str] | None, value: str) -> float | None:
    """Returns the user-defined weight of a value, or None if the axis has none."""
    return values.weights.get(value) if isinstance(values, WeighedValues) else None


def keep_weights(
    connection: sqlite3.Connection, key: tuple[str, str, str], values: Sequence[str]
) -> None:
    """Writes the weights of an axis; the key is algorithm, sub-benchmark and axis."""
    if not isinstance(values, WeighedValues):
        return
    connection.execute(CREATES[WEIGHTS])
    connection.executemany(
        f"INSERT OR REPLACE INTO {WEIGHTS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        [(*key, *weighed) for weighed in values.weights.items()],
    )


def find_weights(
    connection: sqlite3.Connection, names: Collection[str]
) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """Reads the weights by axis; an axis with an invalid weight is ignored."""
    if WEIGHTS not in names:
        return {}
    rows: dict[tuple[str, str, str], dict[str, float]] = {}
    for algorithm, bench, axis, value, weight in connection.execute(
        f"SELECT algorithm, bench, axis, value, weight FROM {WEIGHTS} ORDER BY rowid"  # noqa: S608
    ):
        if all(isinstance(cell, str) for cell in (algorithm, bench, axis, value)):
            rows.setdefault((algorithm, bench, axis), {})[value] = weight
    return {
        key: WeighedValues.of([*weights], [*weights.values()])
        for key, weights in rows.items()
        if all(isinstance(item, float) and 0 < item < MOST_WEIGHTS for item in weights.values())
    }
