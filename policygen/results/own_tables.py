"""Tables of our own in a database that policygen measured: what CCCL's layout has no place for.

Their names begin with `policygen_`. CCCL's scripts and other readers never look at them.
"""

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policygen.model.results import RunKey
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
IMPORTS = f"{OWN}imports"
VALUES = f"{OWN}values"
DEVIATIONS = f"{OWN}deviations"
IMPORTED = "import"
"""The method of a session that measured nothing: what others measured was brought in."""
LAST = 3
"""The number of the rung whose samples nothing was chosen by."""
# `workload` is an object of JSON: all axes of the sub-benchmark with their values. `card` tells one
# GPU from another of the same name, and not which it is. Times are UTC, as ISO 8601.
TABLES = (
    f"CREATE TABLE {FORMAT} (version INTEGER NOT NULL)",
    f"CREATE TABLE {SESSIONS} (id INTEGER PRIMARY KEY, started TEXT NOT NULL, ended TEXT,"
    " policygen TEXT NOT NULL, ctk TEXT NOT NULL, cccl TEXT NOT NULL, gpu TEXT NOT NULL,"
    " card TEXT NOT NULL, arch TEXT NOT NULL, driver TEXT NOT NULL, nvcc TEXT NOT NULL,"
    " method TEXT NOT NULL, seed INTEGER NOT NULL, sm_clock INTEGER NOT NULL,"
    " memory_clock INTEGER NOT NULL, power_limit REAL,"
    " repeated INTEGER NOT NULL DEFAULT 0, throttled INTEGER NOT NULL DEFAULT 0,"
    " restarts INTEGER NOT NULL DEFAULT 0)",
    # What a session added to a row of results.
    f"CREATE TABLE {ROWS} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL, variant TEXT NOT NULL,"
    " samples INTEGER NOT NULL, center REAL NOT NULL, elapsed REAL NOT NULL, at TEXT NOT NULL)",
    # Base in a fresh process; `beside` is each second sample of it over the others.
    f"CREATE TABLE {NOISE} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL,"
    " process INTEGER NOT NULL, samples INTEGER NOT NULL, center REAL NOT NULL,"
    " beside REAL NOT NULL, UNIQUE(session, algorithm, bench, workload, process))",
    # What is wrong, or fails, and so has no row of results.
    f"CREATE TABLE {FAILURES} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL, variant TEXT NOT NULL,"
    " kind TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL)",
    f"CREATE TABLE {TIMES} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " step TEXT NOT NULL, seconds REAL NOT NULL)",
)
# A search writes these besides. `variants` and its like are text: they exceed what SQLite counts.
SEARCH_TABLES = (
    # A workload that a session searched; `workload` has its compile-time axes. `spent` is seconds.
    # `skipped` is a list of JSON: sub-benchmarks with the runtime workloads that are not measured.
    f"CREATE TABLE IF NOT EXISTS {SEARCHES} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " algorithm TEXT NOT NULL, workload TEXT NOT NULL, strategy TEXT NOT NULL,"
    " seed INTEGER NOT NULL, variants TEXT NOT NULL, valid TEXT NOT NULL, distinct_ TEXT NOT NULL,"
    " base TEXT, budget REAL, spent REAL NOT NULL DEFAULT 0, ended TEXT, skipped TEXT,"
    " UNIQUE(session, algorithm, workload))",
    # A variant, or base, on a runtime workload in one process. Rungs: 1 few samples of all, 2 more
    # of the best, 3 the finalists. `samples` are seconds, little-endian float32; `base` is what
    # base took beside it.
    f"CREATE TABLE IF NOT EXISTS {RUNGS} (session INTEGER NOT NULL REFERENCES {SESSIONS}(id),"
    " algorithm TEXT NOT NULL, bench TEXT NOT NULL, workload TEXT NOT NULL, variant TEXT NOT NULL,"
    " rung INTEGER NOT NULL, process INTEGER NOT NULL, center REAL NOT NULL, base REAL NOT NULL,"
    " samples BLOB NOT NULL, at TEXT NOT NULL)",
    f"CREATE INDEX IF NOT EXISTS {RUNGS}_of ON {RUNGS} (algorithm, bench, workload, variant)",
)
VALUE_TABLE = (
    f"CREATE TABLE IF NOT EXISTS {VALUES} (algorithm TEXT NOT NULL, parameter TEXT NOT NULL,"
    " value INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE(algorithm, parameter, value))"
)
# An import writes these besides, and merging keeps them. `base` is the label of what stands as
# `base` among the results; `warmup` first launches of each configuration are left out; `text` is
# what a number in a label stands for, as JSON.
IMPORT_TABLES = (
    f"CREATE TABLE IF NOT EXISTS {IMPORTS} (session INTEGER, algorithm TEXT NOT NULL,"
    " workload TEXT NOT NULL, base TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL,"
    " program TEXT NOT NULL, kernel TEXT, device TEXT, size TEXT NOT NULL,"
    " warmup INTEGER NOT NULL, entries INTEGER NOT NULL)",
    VALUE_TABLE,
)
DEVIATION_TABLE = (
    f"CREATE TABLE IF NOT EXISTS {DEVIATIONS} (algorithm TEXT NOT NULL, bench TEXT NOT NULL,"
    " workload TEXT NOT NULL, variant TEXT NOT NULL, deviation REAL NOT NULL)"
)
"""Seconds that samples were apart which a file has not kept: no interval is made of them."""


def create_own(connection: sqlite3.Connection) -> None:
    """Makes the tables in a database that has none of them."""
    for statement in TABLES:
        connection.execute(statement)
    connection.execute(f"INSERT INTO {FORMAT} VALUES (?)", (VERSION,))  # noqa: S608


def own_version(connection: sqlite3.Connection, names: Collection[str]) -> int | None:
    """The version of the tables; none where there are none, or they say no number."""
    if FORMAT not in names:
        return None
    row = connection.execute(f"SELECT version FROM {FORMAT}").fetchone()  # noqa: S608
    return row[0] if row and isinstance(row[0], int) else None


def workload_text(workload: Mapping[str, str]) -> str:
    """Axes and values as the tables have them, in one spelling."""
    return json.dumps(dict(workload), sort_keys=True)


LEAST = 4
"""Processes, from which on they tell of noise."""
MOST = 1.0
"""A standard deviation over this is no noise of a measurement."""
_ROWS = 1_000_000
NoiseKey = tuple[str, str, str, str, str, str]
"""GPU, toolkit, CCCL, algorithm, sub-benchmark and the workload as text."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far processes of the same code are from each other."""

    deviation: float
    """The standard deviation of the logarithm of a center, another process seen from these."""
    processes: int

    @property
    def freedom(self) -> int:
        """As many differences between processes as they make."""
        return self.processes - 1


MeasuredNoise = Mapping[NoiseKey, Spread]


# Noise that was measured: base against itself in fresh processes, as a database has it.


def spread_of(centers: Sequence[float]) -> Spread | None:
    """From the centers of some processes; none where they are too few, or all the same.

    Few processes know their own spread badly: another one is further off, by Student's
    distribution. Processes that do not differ at all tell of the clock's steps.
    """
    freedom = len(centers) - 1
    if len(centers) < LEAST:
        return None
    seen = float(np.std(np.log(centers), ddof=1))
    found = seen * math.sqrt(freedom / (freedom - 2))
    return Spread(found, len(centers)) if 0 < found <= MOST else None


def together(spreads: Iterable[Spread]) -> Spread | None:
    """What several databases say of one runtime workload."""
    known = list(spreads)
    if not known:
        return None
    freedom = sum(one.freedom for one in known)
    variance = sum(one.freedom * one.deviation**2 for one in known) / freedom
    return Spread(math.sqrt(variance), sum(one.processes for one in known))


def noise_key(key: RunKey, algorithm: str, subbench: str, workload: Mapping[str, str]) -> NoiseKey:
    """Names a runtime workload that was measured under a key."""
    return key.gpu, key.ctk, key.cccl, algorithm, subbench, workload_text(workload)


def find_noise(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> MeasuredNoise:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {NOISE, SESSIONS} <= names.keys():
        return {}
    centers: dict[NoiseKey, list[float]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, n.algorithm, n.bench, n.workload, n.center"  # noqa: S608
        f" FROM {NOISE} AS n JOIN {SESSIONS} AS s ON s.id = n.session LIMIT {_ROWS}"
    )
    for *texts, center in rows:
        if (key := key_of(texts)) and isinstance(center, float) and 0 < center < math.inf:
            centers.setdefault(key, []).append(center)
    found = ((key, spread_of(values)) for key, values in centers.items())
    return {key: spread for key, spread in found if spread is not None}


def key_of(cells: Sequence[object]) -> NoiseKey | None:
    """The key that cells of a row name, spelled as we do, whoever wrote it."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    if len(texts) != 6:
        return None
    gpu, ctk, cccl, algorithm, subbench, workload = texts
    axes = workload_of(workload)
    return None if axes is None else (gpu, ctk, cccl, algorithm, subbench, workload_text(axes))


def workload_of(cell: object) -> dict[str, str] | None:
    """The axes and values that a cell has as text; none where it has something else."""
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
"""Differences between processes, from which on they tell of noise."""
_PAIRED_NOISE_ROWS = 1_000_000
Side = tuple[int, str]
"""A session, and a variant of it."""
Pairs = Mapping[NoiseKey, Mapping[Side, Sequence[float]]]
"""By runtime workload and side the logarithm of base over variant in each process."""


@dataclass(frozen=True, slots=True)
class PairedSpread:
    """How far the ratio that a database has may be from the truth."""

    deviation: float
    processes: int
    variants: int


# Noise of ratios: base and variants side by side in fresh processes, as a database has them.
#
# What drifts from process to process drifts for both: their ratio is surer than either time.


def find_pairs(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Pairs:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {ROWS, SESSIONS} <= names.keys():
        return {}
    times: dict[NoiseKey, dict[Side, list[float]]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, r.algorithm, r.bench, r.workload, r.variant, r.session,"  # noqa: S608
        f" r.center FROM {ROWS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"
        f" ORDER BY r.rowid LIMIT {_PAIRED_NOISE_ROWS}"
    )
    for *texts, variant, session, center in rows:
        key = key_of(texts)
        fine = isinstance(center, float) and 0 < center < math.inf and isinstance(variant, str)
        if key and fine:
            times.setdefault(key, {}).setdefault((session, variant), []).append(center)
    return {key: _logs(sides) for key, sides in times.items()}


def _logs(sides: Mapping[Side, Sequence[float]]) -> dict[Side, Sequence[float]]:
    """The first of a session beside its first, and so on: so they were taken."""
    return {
        (session, variant): [
            math.log(base / time)
            for base, time in zip(sides.get((session, BASE), ()), own, strict=False)
        ]
        for (session, variant), own in sides.items()
        if variant != BASE
    }


def spread_at(lots: Iterable[Mapping[Side, Sequence[float]]]) -> PairedSpread | None:
    """What several databases say of the ratio of a runtime workload; none where they say little."""
    return _spread([logs for lot in lots for logs in lot.values()])


def spread_of_scores(
    runs: Iterable[Sequence[Mapping[Side, Sequence[float]]]], weights: npt.NDArray[np.float64]
) -> PairedSpread | None:
    """The same of a score: by database the sides of all runtime workloads, and their weights."""
    scores = []
    for lots in runs:
        for side in set.intersection(*(set(lot) for lot in lots)):
            by_process = zip(*(lot[side] for lot in lots), strict=False)
            scores.append([math.log(float(weights @ np.exp(each))) for each in by_process])
    return _spread(scores)


def _spread(observed: Iterable[Sequence[float]]) -> PairedSpread | None:
    """Pooled over variants; base, which all share, makes half of their differences the same."""
    known = [np.asarray(one) for one in observed if len(one) > 1]
    freedom = sum(len(one) - 1 for one in known) / 2
    if freedom < PAIRED_NOISE_LEAST / 2:
        return None
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in known)
    # Few differences know their spread badly: Student's distribution is wider.
    variance = squares / (2 * freedom) * (freedom / (freedom - 2))
    processes = min(len(one) for one in known)
    found = math.sqrt(variance / processes)
    return PairedSpread(found, processes, len(known)) if 0 < found <= MOST else None


_FINALS_ROWS = 1_000_000
_NEEDED = {
    "algorithm",
    "bench",
    "workload",
    "variant",
    "session",
    "rung",
    "process",
    "base",
    "center",
}
Finals = Mapping[NoiseKey, Mapping[tuple[int, str], Sequence[float]]]
"""By runtime workload, session and variant: the logarithm of base over variant in each process."""


# The last rung of searches: who was a finalist, and how each process found it.


def find_finals(connection: sqlite3.Connection, names: Mapping[str, Sequence[str]]) -> Finals:
    """What a database has; what is no time of a process counts for nothing."""
    if own_version(connection, names) != VERSION or not {RUNGS, SESSIONS} <= names.keys():
        return {}
    if not {*names[RUNGS]} >= _NEEDED:
        return {}
    found: dict[NoiseKey, dict[tuple[int, str], list[float]]] = {}
    rows = connection.execute(
        "SELECT s.gpu, s.ctk, s.cccl, r.algorithm, r.bench, r.workload, r.variant, r.session,"  # noqa: S608
        f" r.base, r.center FROM {RUNGS} AS r JOIN {SESSIONS} AS s ON s.id = r.session"
        f" WHERE r.rung = ? AND r.variant <> ? ORDER BY r.session, r.process LIMIT {_FINALS_ROWS}",
        (LAST, BASE),
    )
    for *texts, variant, session, base, center in rows:
        key = key_of(texts)
        if key and isinstance(variant, str) and _is_time(base) and _is_time(center):
            found.setdefault(key, {}).setdefault((session, variant), []).append(
                math.log(base / center)
            )
    return found


def _is_time(value: object) -> bool:
    return isinstance(value, float) and 0 < value < math.inf


WEIGHTS = f"{OWN}weights"
MOST_WEIGHTS = 1e9
"""A weight above it is damage."""


class WeighedValues(tuple[str, ...]):
    """The values of an axis, in the order of their declaration, each with its weight."""

    weights: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[str], weights: Sequence[float] | None) -> tuple[str, ...]:
        """Values with weights; without any they are what they are."""
        if weights is None:
            return tuple(values)
        found = cls(values)
        found.weights = tuple(weights)
        return found

    def weight(self, value: str) -> float:
        """How much a value counts beside the others."""
        return self.weights[self.index(value)]


# Values of runtime axes that somebody gave weights, in place of those that CCCL gives them.


def are_same(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two databases say the same of an axis."""
    weights = [one.weights if isinstance(one, WeighedValues) else None for one in (left, right)]
    return tuple(left) == tuple(right) and weights[0] == weights[1]


def own_weight(values: Sequence[str] | None, value: str) -> float | None:
    """What somebody gave a value; nothing where nobody gave the axis any."""
    if isinstance(values, WeighedValues) and value in values:
        return values.weight(value)
    return None


def keep_weights(
    connection: sqlite3.Connection, key: tuple[str, str, str], values: Sequence[str]
) -> None:
    """Writes the weights of an axis: of an algorithm, a sub-benchmark, and its name."""
    if not isinstance(values, WeighedValues):
        return
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {WEIGHTS} (algorithm TEXT NOT NULL, bench TEXT NOT NULL,"
        " axis TEXT NOT NULL, value TEXT NOT NULL, weight REAL NOT NULL,"
        " UNIQUE(algorithm, bench, axis, value))"
    )
    connection.executemany(
        f"INSERT OR REPLACE INTO {WEIGHTS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        [(*key, value, values.weight(value)) for value in values],
    )


def find_weights(
    connection: sqlite3.Connection, names: Collection[str]
) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """The axes whose values have weights; one with a weight that is none has none."""
    if WEIGHTS not in names:
        return {}
    rows: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for algorithm, bench, axis, value, weight in connection.execute(
        f"SELECT algorithm, bench, axis, value, weight FROM {WEIGHTS} ORDER BY rowid"  # noqa: S608
    ):
        if all(isinstance(one, str) for one in (algorithm, bench, axis, value)):
            rows.setdefault((algorithm, bench, axis), []).append((value, weight))
    return {
        key: WeighedValues.of([value for value, _ in lot], [weight for _, weight in lot])
        for key, lot in rows.items()
        if all(isinstance(weight, float) and 0 < weight < MOST_WEIGHTS for _, weight in lot)
    }
