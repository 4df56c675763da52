"""Damaged and hostile databases: an answer or a message, and nothing of them reaches a terminal.

`python -m tests.fuzz.databases --count N --seed S` prints what came of them.
"""

import io
import random
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.cli.main import main
from tests.fuzz import command
from tests.results.measured import MEASURED

SECONDS = 60.0
"""Of the processor, for one command."""
CANARY = "evil_canary"
TEXTS = [
    f"ipt_19.tpb_384.a\n#define private public\ninline int {CANARY}(){{}}\n//_1",
    "\x1b]0;title\x07\x1b[2J",
    "\u202eipt_7\u2066",
    "../../../etc/passwd",
    "<script>alert(1)</script>",
    "```\n@everyone",
    "9" * 5_000,
    "-" * 70,
    "ipt_99999999999999999999",
    "",
    "a\0b",
    "ipt_7.ipt_8",
    "base\n",
    "[bold]x[/bold]",
    "[" * 100_000,
    '{"a":' * 100_000,
]
CELLS = [
    "NULL", "x'00ff'", "9e999", "-9e999", "5e-324", "1e308", "0", "-1", "''", "'x'", "'nan'",
    "zeroblob(1000)", "x'fffefdfc'", "9223372036854775807",
]  # fmt: skip
COMMANDS = [
    ("info",), ("top",), ("choose",), ("top", "--json"), ("coverage",), ("compare",),
    ("compare", "--json"), ("report",), ("report", "--format", "html"),
]  # fmt: skip


def flipped(path: Path, rng: random.Random) -> None:
    """Some bits of the file."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 30, 300))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))


def cut(path: Path, rng: random.Random) -> None:
    """The file ends early, or has more behind it."""
    data = path.read_bytes()
    at = rng.randrange(len(data))
    path.write_bytes(data[:at] if rng.random() < 0.7 else data + data[at:])


def rewritten(path: Path, rng: random.Random) -> None:
    """Cells that no search would write."""
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        for _ in range(rng.choice((1, 2, 5))):
            table = rng.choice(tables)
            names = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            name = rng.choice(names) if names else None
            literal = rng.choice(TEXTS).replace("'", "''").replace("\0", "")
            value = rng.choice([*CELLS, f"'{literal}'", f"'{literal}'"])
            where = rng.choice(
                ["", " WHERE variant = 'base'", f" WHERE rowid % {rng.randint(2, 9)} = 1"]
            )
            statement = rng.choice(
                [
                    f'UPDATE "{table}" SET "{name}" = {value}{where}',
                    f'UPDATE "{table}" SET "{name}" = {value}{where}',
                    f'DELETE FROM "{table}"{where}',
                    f'ALTER TABLE "{table}" RENAME COLUMN "{name}" TO "x{rng.randrange(9)}"',
                    f'DROP TABLE "{table}"',
                    f'ALTER TABLE "{table}" RENAME TO "{literal[:20]}"',
                ]
            )
            with suppress(sqlite3.Error, sqlite3.Warning):  # not all of them fit all tables
                connection.execute(statement)


def attempt(path: Path, arguments: tuple[str, ...]) -> tuple[int, str, float]:
    """The exit status of a command, what it printed, and how long it took."""
    output, began = io.StringIO(), time.process_time()
    verb, *options = arguments
    more = []
    if verb == "coverage":
        more = ["--bench", str(path.with_name("space.csv"))]
    elif verb == "compare":
        more = [str(path.with_name("other.db"))]
    with redirect_stdout(output), redirect_stderr(output):
        status = main(["db", verb, str(path), *more, *options])
    return status, output.getvalue(), time.process_time() - began


def run(count: int, seed: int) -> Counter[str]:
    """Tries so many databases; what is wrong raises."""
    rng = random.Random(seed)
    originals = sorted(MEASURED.glob("*/cccl_meta_bench.db"))
    found: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder) / f"{number}.db"
            original = rng.choice(originals)
            shutil.copyfile(original, path)
            shutil.copyfile(original.with_suffix(".csv"), path.with_name("space.csv"))
            shutil.copyfile(original, path.with_name("other.db"))
            change = rng.choice([flipped, cut, rewritten, rewritten, rewritten])
            change(path, rng)
            before = path.read_bytes()
            for arguments in rng.sample(COMMANDS, 2):
                status, text, seconds = attempt(path, arguments)
                told = f"database {number} of seed {seed}, {change.__name__}, {arguments}: {text}"
                assert status in {0, 1, 2}, told
                assert "Traceback" not in text, told
                assert not {*text} & {"\x1b", "\x07", "\u202e", "\0"}, told
                assert seconds < SECONDS, told
                found[f"{change.__name__}: exit {status}"] += 1
            assert path.read_bytes() == before, f"database {number} of seed {seed} was written to"
            path.unlink()
            found["databases"] += 1
    return found


if __name__ == "__main__":
    command.main(run, __doc__, 500)
