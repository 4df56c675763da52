"""What databases say of imports: which configuration is base, what numbers in labels stand for.

Two that say different things are not compared, and not merged: a label would be two variants.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from policygen.errors import InputError
from policygen.model.workload import axis_name, is_label, parse_label
from policygen.results.database import Database
from policygen.results.own_tables import IMPORT_TABLES, IMPORTS, OWN, SESSIONS, VALUES, workload_of
from policygen.results.tables import quote

MOST = 100_000
"""Rows that are read of a table."""
_TOGETHER = "Import what belongs together with one command, which numbers values once."
ImportedSpot = tuple[str, tuple[tuple[str, str], ...]]
"""An algorithm, and the axes of compile time without their flags, sorted."""


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """By workload the label of base, and by parameter and number what a value stands for."""

    bases: Mapping[ImportedSpot, str]
    values: Mapping[tuple[str, str], Mapping[int, str]]


def imported_facts(database: Database) -> ImportedFacts:
    """What a database says; a row that says nothing that can be used counts for nothing."""
    bases: dict[ImportedSpot, str] = {}
    values: dict[tuple[str, str], dict[int, str]] = {}
    for algorithm, workload, base in rows_of(database, IMPORTS, "algorithm", "workload", "base"):
        axes = workload_of(workload)
        if axes is None or not isinstance(algorithm, str) or not isinstance(base, str):
            continue
        if parse_label(base):
            point = tuple(sorted((axis_name(name), value) for name, value in axes.items()))
            bases.setdefault((algorithm, point), base)
    for cells in rows_of(database, VALUES, "algorithm", "parameter", "value", "text"):
        algorithm, parameter, number, text = cells
        texts = all(isinstance(one, str) for one in (algorithm, parameter, text))
        if texts and isinstance(number, int):
            values.setdefault((str(algorithm), str(parameter)), {}).setdefault(number, str(text))
    return ImportedFacts(bases, values)


def rows_of(database: Database, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table of ours; nothing where it has them not."""
    info = database.connection.execute(f"PRAGMA table_info({quote(table)})")
    if not {*columns} <= {row[1] for row in info}:
        return []
    query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid LIMIT {MOST}"  # noqa: S608
    return database.connection.execute(query).fetchall()


def check_alike(databases: Iterable[Database]) -> None:
    """Refuses databases in which a label is two variants, or base is two."""
    bases: dict[ImportedSpot, tuple[Database, str]] = {}
    values: dict[tuple[str, str, int], tuple[Database, str]] = {}
    plain: dict[tuple[str, str], tuple[Database, bool]] = {}
    for one in databases:
        facts = imported_facts(one)
        for (algorithm, axes), base in facts.bases.items():
            first, known = bases.setdefault((algorithm, axes), (one, base))
            if known != base:
                raise InputError(
                    f"{one.path}: base of {algorithm} is {base} there, and {known} in {first.path}",
                    "Import both with the same --base.",
                )
            for name in parse_label(base) or {}:
                own = (algorithm, name) not in facts.values
                before, was = plain.setdefault((algorithm, name), (one, own))
                if was != own:
                    raise InputError(
                        f"{one.path}: values of {name} of {algorithm} are"
                        f" {'' if own else 'not '}their own numbers there, other than in"
                        f" {before.path}",
                        _TOGETHER,
                    )
        for (algorithm, name), texts in facts.values.items():
            for number, text in texts.items():
                place = (algorithm, name, number)
                before, said = values.setdefault(place, (one, text))
                if said != text:
                    raise InputError(
                        f"{one.path}: {name}_{number} of {algorithm} stands for {text} there, and"
                        f" for {said} in {before.path}",
                        _TOGETHER,
                    )


_KEPT = {
    **dict.fromkeys(("algorithm", "workload", "base", "file", "sha256", "program", "size"), (str,)),
    **dict.fromkeys(("kernel", "device"), (str, type(None))),
    **dict.fromkeys(("warmup", "entries"), (int,)),
}
"""Columns of an import that merging keeps, and what stands in them; its session is not there."""


def keep_imports(database: Database, connection: sqlite3.Connection) -> None:
    """Copies what a database says of imports into one that it is merged into."""
    facts = imported_facts(database)
    rows = [
        row
        for row in rows_of(database, IMPORTS, *_KEPT)
        if all(map(isinstance, row, _KEPT.values())) and is_label(str(row[2]))
    ]
    if not rows and not facts.values:
        return
    for statement in IMPORT_TABLES:
        connection.execute(statement)
    connection.executemany(
        f"INSERT OR IGNORE INTO {VALUES} VALUES (?, ?, ?, ?)",  # noqa: S608
        [
            (*key, number, text)
            for key, texts in sorted(facts.values.items())
            for number, text in sorted(texts.items())
        ],
    )
    connection.executemany(
        f"INSERT INTO {IMPORTS} ({', '.join(_KEPT)}) VALUES ({', '.join('?' * len(_KEPT))})",  # noqa: S608
        rows,
    )


LAUNCHES = f"{OWN}launches"
KERNELS = f"{OWN}kernels"
PEAKS = f"{OWN}peaks"
ACHIEVED = f"{OWN}achieved"
MOST_LAUNCHED = 1e18
"""More bytes than anybody moves."""
_COLUMNS = (
    *("registers", "local", "static_shared", "dynamic_shared"),
    *("block", "grid", "resident", "room", "traffic"),
)


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """How a variant was launched on a runtime workload, and what it moved."""

    registers: int
    spilled: int
    """Bytes of a thread that lie in memory."""
    shared: int
    """Bytes of a block, static and dynamic ones."""
    block: int
    grid: int
    occupancy: float
    """The share of a multiprocessor's threads that fitting blocks take."""
    traffic: int
    """Bytes."""
    achieved: float | None = None
    """The share of a multiprocessor's threads that were at work, as ncu counted them."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What is known of the kernels of a database."""

    launches: Mapping[tuple[str, str, str, str], KernelLaunch] = field(default_factory=dict)
    """By GPU, algorithm, workload as the tables have it, and variant."""
    words: Mapping[tuple[str, str], Mapping[int, str]] = field(default_factory=dict)
    """By algorithm and parameter."""
    starts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By algorithm the kernel of which it is a class of sizes, and the variant that base is."""
    peaks: Mapping[str, float] = field(default_factory=dict)
    """By GPU the bytes that a copy moves in a second."""


# What a database has of kernels of one's own: launches, what words mean, how fast a copy is.


def kernel_facts(database: Database) -> KernelFacts:
    """Reads what is there; what is damaged is not known."""
    launches: dict[tuple[str, str, str, str], KernelLaunch] = {}
    achieved: dict[tuple[str, ...], float] = {}
    starts: dict[str, tuple[str, str]] = {}
    peaks: dict[str, float] = {}
    gpus = dict(rows_of(database, SESSIONS, "id", "gpu"))
    named = ("session", "algorithm", "workload", "variant")
    for session, *texts, share in rows_of(database, ACHIEVED, *named, "share"):
        if isinstance(share, float) and 0 <= share <= 1:
            achieved[(str(gpus.get(session)), *map(str, texts))] = share
    for session, algorithm, workload, variant, *told in rows_of(
        database, LAUNCHES, *named, *_COLUMNS
    ):
        if (found := _launch(told)) is not None:
            key = (str(gpus.get(session)), str(algorithm), str(workload), str(variant))
            launches[key] = replace(found, achieved=achieved.get(key))
    for algorithm, kernel, variant in rows_of(database, KERNELS, "algorithm", "kernel", "variant"):
        if is_label(str(variant)):
            starts[str(algorithm)] = str(kernel), str(variant)
    for session, found in rows_of(database, PEAKS, "session", "bytes"):
        if isinstance(found, float) and 0 < found < MOST_LAUNCHED:
            gpu = str(gpus.get(session))
            peaks[gpu] = max(found, peaks.get(gpu, 0))
    words = {
        key: {number: _word(text) for number, text in texts.items()}
        for key, texts in imported_facts(database).values.items()
    }
    return KernelFacts(launches, words, starts, peaks)


def _word(text: str) -> str:
    """A value that is kept as JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str) else text


def _launch(told: list[object]) -> KernelLaunch | None:
    found = [one for one in told if isinstance(one, int) and 0 <= one < MOST_LAUNCHED]
    if len(found) < len(told):
        return None
    registers, local, static, dynamic, block, grid, resident, room, traffic = found
    occupancy = resident * block / room if room else 0.0
    return KernelLaunch(registers, local, static + dynamic, block, grid, occupancy, traffic)
