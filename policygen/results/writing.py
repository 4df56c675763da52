"""New databases as CCCL's own scripts make and read them."""

import json
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from policygen.errors import InputError
from policygen.outputs import check_free
from policygen.results.declared import DeclaredAxes
from policygen.results.table import quote

DECLARED = "declared_axes"
"""Our table of declared values; the reader finds it by what it holds."""


@contextmanager
def new_database(out: Path, *, force: bool = False) -> Iterator[sqlite3.Connection]:
    """A database that appears as `out` when the block ends well, and not at all when it fails."""
    out = out.resolve()
    _check_free(out, force=force)
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
    with told(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with told(out):
            # Until it has its name nobody else can see it: no journal, no waiting for the disk.
            connection = sqlite3.connect(temporary, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            finally:
                connection.close()
            if out.exists():
                temporary.chmod(stat.S_IMODE(out.stat().st_mode))
            temporary.replace(out)
    finally:
        remove(temporary)


def remove(temporary: Path) -> None:
    """Takes away what is left of a file that was not finished; a read-only disk has nothing."""
    with suppress(OSError):
        temporary.unlink()


def _check_free(out: Path, *, force: bool) -> None:
    check_free(out, force=force, ours=False)
    for end in ("-journal", "-wal"):
        # SQLite would play it into the new file.
        if out.with_name(out.name + end).exists():
            raise InputError(
                f"{out}: another process is writing it: there is {out.name}{end}",
                "Wait until it has ended, or choose another name.",
            )


@contextmanager
def told(out: Path) -> Iterator[None]:
    """Turns failures to write into ours, with the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{out}: cannot be written: {words}") from error


def create_subbenches(connection: sqlite3.Connection) -> None:
    """Makes the table that CCCL asks for first, taking its absence for an empty database."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS subbenches"
        " (algorithm TEXT NOT NULL, bench TEXT NOT NULL, UNIQUE(algorithm, bench))"
    )


def create_results(
    connection: sqlite3.Connection, algorithm: str, subbench: str, axes: Sequence[str]
) -> str:
    """Makes the table of a sub-benchmark, once; returns its quoted name."""
    create_subbenches(connection)
    connection.execute("INSERT OR IGNORE INTO subbenches VALUES (?, ?)", (algorithm, subbench))
    table = quote(f"{algorithm}.{subbench}")
    columns = "".join(f", {quote(axis)} TEXT" for axis in axes)
    key = "".join(f", {quote(axis)}" for axis in axes)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table} (ctk TEXT NOT NULL, cccl TEXT NOT NULL,"
        " gpu TEXT NOT NULL, variant TEXT NOT NULL, elapsed REAL, center REAL, bw REAL,"
        f" samples BLOB{columns}, UNIQUE(ctk, cccl, gpu, variant{key}))"
    )
    return table


def create_log(connection: sqlite3.Connection, name: str) -> None:
    """Makes `builds` or `runs`, once."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {quote(name)} (ctk TEXT NOT NULL, cccl TEXT NOT NULL,"
        " bench TEXT NOT NULL, code TEXT NOT NULL, elapsed REAL)"
    )


def declare(connection: sqlite3.Connection, declared: DeclaredAxes) -> None:
    """Writes the declared values of axes, if there are any."""
    if not declared:
        return
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {DECLARED} (algorithm TEXT NOT NULL, bench TEXT NOT NULL,"
        " axis TEXT NOT NULL, idx INTEGER NOT NULL, value TEXT NOT NULL,"
        " UNIQUE(algorithm, bench, axis, idx))"
    )
    connection.executemany(
        f"INSERT INTO {DECLARED} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        (
            (*key, index, declared_cell(value))
            for key, values in sorted(declared.items())
            for index, value in enumerate(values)
        ),
    )


def declared_cell(value: str) -> str:
    """The value; in brackets where its own text would be read as several values."""
    plain = value == value.strip() and "," not in value and not value.startswith("[")
    return value if plain else json.dumps([value])
