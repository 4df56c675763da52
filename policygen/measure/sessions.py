"""Sessions: what was measured when, on which GPU, how."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import policygen
from policygen.cache import digest
from policygen.errors import InputError
from policygen.measure.device import GpuFacts
from policygen.measure.writer import DatabaseWriter
from policygen.results.gpus import GPUS
from policygen.results.provenance import SESSIONS
from policygen.store_schema import stamp

_CARD = 12
"""Digits that tell one GPU from another of the same name."""


@dataclass(frozen=True, slots=True)
class About:
    """What is measured how, for a session."""

    ctk: str
    cccl: str
    gpu: GpuFacts
    nvcc: str
    method: str
    """`events`, or `nvbench`."""
    seed: int
    gpus: Sequence[GpuFacts] = ()
    """All of them, where there are several of one model."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What base and variants must have in common: toolkit, CCCL and GPU."""
        return self.ctk, self.cccl, self.gpu.label


def begin_session(writer: DatabaseWriter, about: About) -> int:
    """Notes that a session has begun; its number."""
    _check_method(writer, about)
    gpu = about.gpu
    cells = {
        "started": now(),
        "policygen": policygen.__version__,
        "ctk": about.ctk,
        "cccl": about.cccl,
        "gpu": gpu.label,
        "card": ",".join(digest("policygen", one.uuid)[:_CARD] for one in about.gpus or (gpu,)),
        "arch": gpu.arch,
        "driver": gpu.driver,
        "nvcc": about.nvcc,
        "method": about.method,
        "seed": about.seed,
        "sm_clock": gpu.sm_clock,
        "memory_clock": gpu.memory_clock,
        "power_limit": gpu.power_limit,
    }
    with writer.writing() as connection:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {GPUS} (gpu TEXT PRIMARY KEY, arch TEXT NOT NULL)"
        )
        connection.execute(
            f"INSERT OR IGNORE INTO {GPUS} VALUES (?, ?)",  # noqa: S608
            (gpu.label, gpu.arch),
        )
        found = connection.execute(
            f"INSERT INTO {SESSIONS} ({', '.join(cells)})"  # noqa: S608
            f" VALUES ({', '.join('?' * len(cells))})",
            tuple(cells.values()),
        )
    assert found.lastrowid is not None
    return found.lastrowid


def _check_method(writer: DatabaseWriter, about: About) -> None:
    """Times that were taken in different ways are not compared."""
    rows = writer.rows(
        f"SELECT DISTINCT method FROM {SESSIONS} WHERE (ctk, cccl, gpu) = (?, ?, ?)",  # noqa: S608
        *about.key,
    )
    for (method,) in rows:
        if method != about.method:
            raise InputError(
                f"{writer.path}: was measured with the method {method}, and not {about.method}:"
                " their times cannot be compared",
                "Name another file.",
            )


def now() -> str:
    """The time as the tables have it."""
    return stamp(datetime.now(UTC))
