"""What a search's logs say: what was built, and what came of it."""

import re
from collections.abc import Iterator, Mapping

from policygen.model.labels import BASE, parse_label
from policygen.model.results import DataWarning
from policygen.results.database import Database

LISTED = 3


def algorithm_of(bench: str) -> str:
    """`cub.bench.reduce.sum.ipt_16.tpb_512` is a variant of `cub.bench.reduce.sum`."""
    return split(bench)[0]


def split(bench: str) -> tuple[str, str]:
    """`cub.bench.reduce.sum` and `ipt_16.tpb_512`, or `base`, or nothing."""
    parts = bench.split(".")
    end = len(parts)
    while end > 1 and (parts[end - 1] == BASE or parse_label(parts[end - 1]) is not None):
        end -= 1
        if parts[end] == BASE:
            break
    return ".".join(parts[:end]), ".".join(parts[end:])


def nothing_measured(database: Database) -> DataWarning:
    """Why a database has no table of results."""
    codes = [code for _, code in _builds(database)]
    built = sum(code == "0" for code in codes)
    reason = f"{built:,} of {len(codes):,} builds succeeded, and no run left a row"
    message = f"nothing was measured: {reason if built else 'every build failed'}"
    return DataWarning(database=str(database.path), table=None, message=message)


def never_ran(
    database: Database, measured: Mapping[str, set[str]], pattern: re.Pattern[str]
) -> Iterator[DataWarning]:
    """Variants that were built, and have no row in any table of their benchmark."""
    silent: dict[str, list[str]] = {}
    for bench, code in _builds(database):
        algorithm, variant = split(bench)
        known = measured.get(algorithm)
        if code == "0" and pattern.match(algorithm) and known is not None and variant not in known:
            silent.setdefault(algorithm, []).append(variant)
    for algorithm, variants in silent.items():
        names = list(dict.fromkeys(variants))
        more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
        yield DataWarning(
            database=str(database.path),
            table=algorithm,
            message=f"built, but no run left a row: {', '.join(names[:LISTED])}{more}",
        )


def failed_in_logs(database: Database) -> dict[str, dict[tuple[str, str], list[str]]]:
    """By algorithm, log and code the variants that were not built, or did not run.

    The logs do not tell on which workload.
    """
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for log in database.logs:
        rows = database.connection.execute(f"SELECT bench, code FROM {log}")  # noqa: S608  fixed
        for bench, code in rows:
            algorithm, variant = split(str(bench))
            if str(code) != "0" and variant:
                kinds = found.setdefault(algorithm, {})
                kinds.setdefault((log.removesuffix("s"), str(code)), []).append(variant)
    return found


def _builds(database: Database) -> list[tuple[str, str]]:
    if "builds" not in database.logs:
        return []
    rows = database.connection.execute("SELECT bench, code FROM builds")
    return [(str(bench), str(code)) for bench, code in rows]
