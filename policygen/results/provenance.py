"""Tables of our own in a database that policygen measured: what CCCL's layout has no place for.

Their names begin with `policygen_`. CCCL's scripts and other readers never look at them.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping

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
