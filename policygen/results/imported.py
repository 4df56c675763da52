"""Import records of databases: the base configuration, and the meaning of numbers in labels.

Databases that contradict each other are neither compared nor merged: a label would be two variants.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from policygen.errors import InputError
from policygen.model.measured import KernelUse
from policygen.model.workload import axis_name, is_label, parse_label
from policygen.results.database import Database
from policygen.results.own_tables import (
    ACHIEVED,
    IMPORTS,
    KERNELS,
    LAUNCH_COLUMNS,
    LAUNCHES,
    MOST_ROWS,
    PEAKS,
    SESSIONS,
    VALUES,
    workload_of,
)
from policygen.results.tables import quote

_IMPORT_TOGETHER = (
    "Import files that belong together with one command, so that values are numbered once."
)
ImportedSpot = tuple[str, tuple[tuple[str, str], ...]]
"""An algorithm, and the compile-time axes without flags, sorted."""


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """The label of base by workload, and the meaning of a number by parameter."""

    bases: Mapping[ImportedSpot, str]
    values: Mapping[tuple[str, str], Mapping[int, str]]


def imported_facts(database: Database) -> ImportedFacts:
    """Reads the facts of a database; invalid rows are ignored."""
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
        texts = all(isinstance(cell, str) for cell in (algorithm, parameter, text))
        if texts and isinstance(number, int):
            values.setdefault((str(algorithm), str(parameter)), {}).setdefault(number, str(text))
    return ImportedFacts(bases, values)


def rows_of(database: Database, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Reads columns of one of policygen's tables; empty if any column is missing."""
    info = database.connection.execute(f"PRAGMA table_info({quote(table)})")
    if not {*columns} <= {row[1] for row in info}:
        return []
    query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY rowid LIMIT {MOST_ROWS}"  # noqa: S608
    return database.connection.execute(query).fetchall()


def check_alike(databases: Iterable[Database]) -> None:
    """Refuses databases in which a label or base means two different variants."""
    bases: dict[ImportedSpot, tuple[Database, str]] = {}
    values: dict[tuple[str, str, int], tuple[Database, str]] = {}
    plain: dict[tuple[str, str], tuple[Database, bool]] = {}
    for database in databases:
        facts = imported_facts(database)
        for (algorithm, axes), base in facts.bases.items():
            first, first_base = bases.setdefault((algorithm, axes), (database, base))
            if first_base != base:
                raise InputError(
                    f"{database.path}: base of {algorithm} is {base} there, but {first_base} in"
                    f" {first.path}",
                    "Import both with the same --base.",
                )
            for name in parse_label(base) or {}:
                is_plain = (algorithm, name) not in facts.values
                earlier, was_plain = plain.setdefault((algorithm, name), (database, is_plain))
                if was_plain != is_plain:
                    raise InputError(
                        f"{database.path}: values of {name} of {algorithm} are"
                        f" {'' if is_plain else 'not '}their own numbers there, unlike in"
                        f" {earlier.path}",
                        _IMPORT_TOGETHER,
                    )
        for (algorithm, name), texts in facts.values.items():
            for number, text in texts.items():
                place = (algorithm, name, number)
                earlier, earlier_text = values.setdefault(place, (database, text))
                if earlier_text != text:
                    raise InputError(
                        f"{database.path}: {name}_{number} of {algorithm} stands for {text} there,"
                        f" but for {earlier_text} in {earlier.path}",
                        _IMPORT_TOGETHER,
                    )


MOST_LAUNCHED = 1e18
"""Above any realistic number of bytes."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts about the kernels of a database."""

    launches: Mapping[tuple[str, str, str, str], tuple[KernelUse, int]]
    """By GPU, algorithm, workload text and variant: a launch, and the bytes that it moved."""
    words: Mapping[tuple[str, str], Mapping[int, str]]
    """Words by algorithm, parameter and number."""
    starts: Mapping[str, tuple[str, str]]
    """Algorithm → the kernel that it is a size class of, and the variant that is its baseline."""
    peaks: Mapping[str, float]
    """By GPU, the bytes per second of a copy."""


# Facts about user kernels: launches, the meaning of words, copy bandwidth.


def kernel_facts(database: Database) -> KernelFacts:
    """Reads the facts of a database; damaged rows are ignored."""
    launches: dict[tuple[str, str, str, str], tuple[KernelUse, int]] = {}
    achieved: dict[tuple[str, ...], float] = {}
    starts: dict[str, tuple[str, str]] = {}
    peaks: dict[str, float] = {}
    gpus = dict(rows_of(database, SESSIONS, "id", "gpu"))
    key_columns = ("session", "algorithm", "workload", "variant")
    for session, *texts, share in rows_of(database, ACHIEVED, *key_columns, "share"):
        if isinstance(share, float) and 0 <= share <= 1:
            achieved[(str(gpus.get(session)), *map(str, texts))] = share
    for session, algorithm, workload, variant, *launch_cells in rows_of(
        database, LAUNCHES, *key_columns, *LAUNCH_COLUMNS
    ):
        key = (str(gpus.get(session)), str(algorithm), str(workload), str(variant))
        if (launch := _launch(launch_cells, achieved.get(key))) is not None:
            launches[key] = launch
    for algorithm, kernel, variant in rows_of(database, KERNELS, "algorithm", "kernel", "variant"):
        if is_label(str(variant)):
            starts[str(algorithm)] = str(kernel), str(variant)
    for session, rate in rows_of(database, PEAKS, "session", "bytes"):
        if isinstance(rate, float) and 0 < rate < MOST_LAUNCHED:
            gpu = str(gpus.get(session))
            peaks[gpu] = max(rate, peaks.get(gpu, 0))
    words = {
        key: {number: unquoted(text) for number, text in texts.items()}
        for key, texts in imported_facts(database).values.items()
    }
    return KernelFacts(launches, words, starts, peaks)


def unquoted(text: str) -> str:
    """Decodes a value stored as JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _launch(cells: list[object], achieved: float | None) -> tuple[KernelUse, int] | None:
    """Returns how a variant was launched, and how many bytes it moved."""
    numbers = [cell for cell in cells if isinstance(cell, int) and 0 <= cell < MOST_LAUNCHED]
    if len(numbers) < len(cells):
        return None
    registers, local, static, dynamic, block, grid, resident, room, traffic = numbers
    use = KernelUse(
        registers=registers,
        spilled=local,
        shared=static + dynamic,
        block=block,
        grid=grid,
        occupancy=resident * block / room if room else 0.0,
        achieved=achieved,
    )
    return use, traffic
