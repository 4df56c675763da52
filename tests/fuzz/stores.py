"""Damaged and forged stores: `undo` ends with a message or restores headers, and writes no more.

python -m tests.fuzz.stores --count 300 --seed 1
"""

import io
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.cli.main import main
from tests.fuzz import command, databases
from tests.store.killing import killed_at
from tests.store.trees import Tree

LAST = 40
"""More operations than an apply has."""
VALUES = [
    "../x", "a/b", "/", "/tmp/x", "..", ".", "a\0b", "\n", "x" * 300, "cub/../../x.cuh", "/x.cuh",
    "cub/f0\0.cuh", "cub/none/x.cuh", "cub/f0", "", None, -1, 1.5, b"a", b"", "[" * 100_000,
    "committing", "prepared", "done", "0" * 16,
]  # fmt: skip
COLUMNS = (
    *(("writes", name) for name in ("root", "staged", "staged", "state", "started_at")),
    *(("written_files", name) for name in ("path", "path", "mode", "before", "after")),
    *(("applies", name) for name in ("title", "document", "applied_at", "undone_by")),
)


def forged(path: Path, rng: random.Random) -> None:
    """Cells that no policygen writes."""
    for _ in range(rng.choice((1, 1, 2))):
        table, column = rng.choice(COLUMNS)
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error), connection:
            connection.execute(f"UPDATE {table} SET {column} = ?", (rng.choice(VALUES),))


def contents(folder: Path) -> dict[Path, bytes]:
    """All files but the store's."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("policygen.db")
    }


def run(count: int, seed: int) -> Counter[str]:
    """Tries so many stores; what is wrong raises."""
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    for number in range(count):
        with TemporaryDirectory() as folder:
            place = Path(folder)
            tree = Tree(place, rng.randint(1, 3))
            killed_at(rng.randint(3, LAST), tree.apply)
            before = contents(place)
            if tree.store.exists():
                rng.choice((forged, forged, forged, databases.rewritten))(tree.store, rng)
            output = io.StringIO()
            with redirect_stdout(output), redirect_stderr(output):
                status = main(["undo", "--store", str(tree.store)])
            told = f"store {number} of seed {seed}: {output.getvalue()}"
            assert status in {0, 2}, told
            assert "Traceback" not in told, told
            for path, data in contents(place).items():
                known = dict(zip(tree.paths, zip(tree.old, tree.new, strict=True), strict=True))
                assert data == before.get(path) or data in known.get(path, ()), f"{path}: {told}"
            found[f"exit {status}"] += 1
            found["stores"] += 1
            shutil.rmtree(place / "tree")
    return found


if __name__ == "__main__":
    command.main(run, __doc__, 300)
