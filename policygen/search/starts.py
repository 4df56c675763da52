"""What a search of a recorded space begins with: what the header had when it was measured."""

import sqlite3
from collections.abc import Iterator, Sequence

from policygen.errors import InputError
from policygen.model.labels import parse_label, shortened
from policygen.results.case import Case
from policygen.results.measured_noise import workload_of
from policygen.results.provenance import OWN, workload_text
from policygen.results.table import quote
from policygen.search.domain import Domain, Values
from policygen.search.strategies.neighbours import nearest

STARTS = f"{OWN}starts"
"""Our own table of them: algorithm, workload and variant."""


def recorded_starts(case: Case) -> tuple[str, ...]:
    """The labels that databases name for a workload; what is none counts for nothing."""
    wanted = case.algorithm, workload_text(case.workload)
    found = (
        variant
        for database in case.databases
        for algorithm, workload, variant in _rows(database.connection)
        if (algorithm, workload) == wanted and parse_label(variant)
    )
    return tuple(dict.fromkeys(found))


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """What stands in the table, where there is one with these columns."""
    info = connection.execute(f"PRAGMA table_info({quote(STARTS)})").fetchall()
    names = ("algorithm", "workload", "variant")
    if not {*names} <= {row[1] for row in info}:
        return
    query = f"SELECT {', '.join(names)} FROM {STARTS} ORDER BY rowid"  # noqa: S608
    for algorithm, workload, variant in connection.execute(query):
        axes = workload_of(workload)
        if isinstance(algorithm, str) and isinstance(variant, str) and axes is not None:
            yield algorithm, workload_text(axes), variant


def starts_in(domain: Domain, labels: Sequence[str]) -> tuple[Values, ...]:
    """Variants of a space, each value the one that is nearest to what a label says.

    A header's values need not be such as are searched.
    """
    return tuple(dict.fromkeys(_start_in(domain, label) for label in labels))


def _start_in(domain: Domain, label: str) -> Values:
    said = parse_label(label)
    if said is None:
        raise InputError(f"{shortened(label)} is no variant label", "Such as: ipt_19.tpb_512")
    if said.keys() != domain.ranges.keys():
        raise InputError(
            f"{label} has other parameters than the space",
            f"It has: {', '.join(domain.ranges)}",
        )
    return tuple(values[nearest(values, said[name])] for name, values in domain.ranges.items())
