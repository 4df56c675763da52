"""The choices in a store, as a test compares them."""

import json
import sqlite3
from contextlib import closing
from types import SimpleNamespace

from policygen.results.decisions import ChosenRow


def history(path):
    """All decisions in the order in which they were stored, each with its outcomes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [_choice(connection, dict(row)) for row in connection.execute(ROWS)]


ROWS = "SELECT * FROM choices ORDER BY id"


def _choice(connection, cells):
    number = cells.pop("id")
    sources = connection.execute("SELECT path, sha256 FROM sources WHERE choice = ?", [number])
    outcomes = "SELECT state, at FROM outcomes WHERE choice = ? ORDER BY id"
    cells |= {"workload": json.loads(cells["workload"]), "sources": [*map(dict, sources)]}
    return SimpleNamespace(
        id=number,
        row=ChosenRow.model_validate(cells),
        outcomes=[tuple(row) for row in connection.execute(outcomes, [number])],
    )
