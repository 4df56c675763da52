"""Kernels of another tuner as a database that CCCL's search might have written."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import policygen
from policygen.results.gpus import write_gpus
from policygen.results.provenance import (
    DEVIATION_TABLE,
    DEVIATIONS,
    FAILURES,
    IMPORT_TABLES,
    IMPORTED,
    IMPORTS,
    OWN,
    SESSIONS,
    VALUES,
    create_own,
    workload_text,
)
from policygen.results.samples import encode
from policygen.results.tuners.points import TunedKernel, TunedPoint
from policygen.results.tuners.tuned import TunedFailureKind
from policygen.results.writing import create_log, create_results, new_database
from policygen.store_schema import stamp

SUBBENCH, ELEMENTS = "base", "Elements"
"""As workloads of one's own have them."""
STARTS = f"{OWN}starts"
CODES: Mapping[TunedFailureKind, str] = {
    "wrong": "1",
    "memory": "2",
    "error": "3",
    "crash": "4",
    "compile": "5",
    "hang": "42",
    "untimed": "6",
}
"""Of what failed, as `policygen measure` has them; what is not valid was never built."""


def write_kernels(
    kernels: Sequence[TunedKernel],
    out: Path,
    *,
    arch: str,
    ctk: str = "",
    cccl: str = "",
    force: bool = False,
) -> None:
    """Writes all of it, or nothing. Of the toolkit and of CCCL, files say nothing."""
    gpu = kernels[0].gpu
    key = (ctk, cccl, gpu)
    with new_database(out, force=force) as connection:
        for kernel in kernels:
            _write_rows(connection, kernel, key)
        for log in ("builds", "runs"):
            create_log(connection, log)
            connection.executemany(
                f"INSERT INTO {log} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
                ((*key[:2], *cells) for kernel in kernels for cells in _logged(kernel, log)),
            )
        write_gpus(connection, {gpu: arch})
        create_own(connection)
        session = _write_session(connection, kernels[0], key, arch)
        for kernel in kernels:
            _write_provenance(connection, kernel, session)


def _write_rows(
    connection: sqlite3.Connection, kernel: TunedKernel, key: tuple[str, str, str]
) -> None:
    axes = [*kernel.workload, ELEMENTS]
    table = create_results(connection, kernel.algorithm, SUBBENCH, axes)
    connection.executemany(
        f"INSERT INTO {table} VALUES ({', '.join('?' * (8 + len(axes)))})",  # noqa: S608
        (
            (*key, one.label, one.running or None, one.center, None, _blob(one), *place)
            for one in kernel.points
            if one.failure is None
            for place in [(*kernel.workload.values(), one.size)]
        ),
    )


def _blob(one: TunedPoint) -> bytes | None:
    return None if one.samples is None else encode(one.samples)


def _logged(kernel: TunedKernel, log: str) -> Iterator[tuple[str, str, float | None]]:
    """The rows of `builds` or `runs`: what was not built did not run."""
    for one in kernel.points:
        kind = one.failure.kind if one.failure else None
        if kind == "invalid" or (kind == "compile" and log == "runs"):
            continue
        code = "0" if kind is None or (log == "builds" and kind != "compile") else CODES[kind]
        elapsed = one.compiling if log == "builds" else one.running
        yield f"{kernel.algorithm}.{one.label}", code, elapsed or None


def _write_session(
    connection: sqlite3.Connection, kernel: TunedKernel, key: tuple[str, str, str], arch: str
) -> int:
    """The tables of an import, and the session that all of it is of."""
    for statement in IMPORT_TABLES:
        connection.execute(statement)
    connection.execute(
        f"CREATE TABLE {STARTS} (algorithm TEXT NOT NULL, workload TEXT NOT NULL,"
        " variant TEXT NOT NULL)"
    )
    now = stamp(datetime.now(UTC))
    ctk, cccl, gpu = key
    processor, memory = kernel.files[0].clocks
    cells = {
        "started": now,
        "ended": now,
        "policygen": policygen.__version__,
        "ctk": ctk,
        "cccl": cccl,
        "gpu": gpu,
        "arch": arch,
        "method": IMPORTED,
        **dict.fromkeys(("card", "driver", "nvcc"), ""),
        "seed": 0,
        "sm_clock": processor,
        "memory_clock": memory,
    }
    return _insert(connection, SESSIONS, cells)


def _write_provenance(connection: sqlite3.Connection, kernel: TunedKernel, session: int) -> None:
    """Where it comes from, what failed and why, and what the numbers of labels stand for."""
    for place, file in enumerate(kernel.files):
        _insert(
            connection,
            IMPORTS,
            {
                "session": session,
                "algorithm": kernel.algorithm,
                "workload": workload_text(kernel.workload),
                "base": kernel.base,
                "file": file.path.name.encode("utf-8", "backslashreplace").decode(),
                "sha256": file.sha256,
                "program": file.program,
                "kernel": file.kernel,
                "device": file.device,
                "size": kernel.sizes[place],
                "warmup": kernel.warmup,
                "entries": len(file.entries),
            },
        )
    connection.executemany(
        f"INSERT OR IGNORE INTO {VALUES} VALUES (?, ?, ?, ?)",  # noqa: S608
        [
            (kernel.algorithm, one.name, number, text)
            for one in kernel.space.parameters
            if not one.plain
            for text, number in one.numbers.items()
        ],
    )
    now = stamp(datetime.now(UTC))
    connection.executemany(
        f"INSERT INTO {FAILURES} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [
            (
                *(
                    session,
                    kernel.algorithm,
                    SUBBENCH,
                    workload_text({**kernel.workload, ELEMENTS: one.size}),
                ),
                *(one.label, one.failure.kind, one.failure.reason, now),
            )
            for one in kernel.points
            if one.failure is not None
        ],
    )
    deviations = [
        (workload_text({**kernel.workload, ELEMENTS: one.size}), one.label, one.deviation)
        for one in kernel.points
        if one.deviation is not None
    ]
    if deviations:
        connection.execute(DEVIATION_TABLE)
        connection.executemany(
            f"INSERT INTO {DEVIATIONS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            [(kernel.algorithm, SUBBENCH, *cells) for cells in deviations],
        )
    _insert(
        connection,
        STARTS,
        {
            "algorithm": kernel.algorithm,
            "workload": workload_text(kernel.workload),
            "variant": kernel.base,
        },
    )


def _insert(connection: sqlite3.Connection, table: str, cells: Mapping[str, Any]) -> int:
    found = connection.execute(
        f"INSERT INTO {table} ({', '.join(cells)})"  # noqa: S608
        f" VALUES ({', '.join('?' * len(cells))})",
        tuple(cells.values()),
    )
    return found.lastrowid or 0
