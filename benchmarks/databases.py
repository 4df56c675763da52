"""Ranking the variants of a large database, and comparing two, against a bare SELECT of rows."""

import sys
from pathlib import Path

from benchmarks.measure import Commands, Figure, run
from fixtures.databases.generate import generate

ROWS = 523 * 14 * 12
SELECT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
(table,) = connection.execute("SELECT algorithm || '.' || bench FROM subbenches").fetchone()
columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
names = ", ".join('"' + name + '"' for name in columns if name not in ("samples", "elapsed", "bw"))
for row in connection.execute(f'SELECT rowid, {names} FROM "{table}"'):
    pass
"""


def commands(work: Path) -> Commands:
    """The ranking with samples decoded for the best ten of each workload."""
    path = work / "large.db"
    generate(path, workloads=14, runtime=12, variants=522, samples=100, seed=1)
    top = [sys.executable, "-m", "policygen", "db", "top", "--json", str(path)]
    other = work / "other.db"
    generate(other, workloads=14, runtime=12, variants=522, samples=100, seed=2)
    two = [sys.executable, "-m", "policygen", "db", "compare", "--json", str(path), str(other)]
    info = [sys.executable, "-m", "policygen", "db", "info", "--json", str(path)]
    return {
        "floor: a bare SELECT of the same rows": (
            lambda: run([sys.executable, "-c", SELECT, str(path)], work),
            None,
        ),
        f"policygen db top --json, {ROWS:,} rows": (lambda: run(top, work), 1.2),
        f"policygen db info --json, {ROWS:,} rows": (lambda: run(info, work), None),
        f"policygen db compare --json, {ROWS:,} rows each": (lambda: run(two, work), None),
    }


def rates(figures: list[Figure]) -> str:
    """Rows per second of each command."""
    return "\n".join(f"{f.name}: {ROWS / f.median:,.0f} rows a second" for f in figures)
