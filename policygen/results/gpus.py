"""Which architecture a GPU is of, where a database says it.

CCCL's search keeps a GPU's name alone; NVBench tells its compute capability. Whoever keeps that
keeps it in a table whose rows name a GPU as the results do: it is found by that.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence

from policygen.model.arch import parse_arch
from policygen.results.table import ResultTable, quote

GPUS = "gpus"
"""Our own table of them."""
GpuArchs = Mapping[str, str]
"""A GPU as the results name it → `sm90`."""
# sm_version, compute_capability, cc, arch
_CAPABILITY = re.compile(r"(?i)sm(_?version)?|compute_?capability|cc|arch(itecture)?")
LEAST = 300
"""From here on a number is a compute capability times a hundred, as NVBench has it: 900."""


def find_gpus(
    connection: sqlite3.Connection,
    tables: Sequence[ResultTable],
    others: Mapping[str, Sequence[str]],
) -> GpuArchs:
    """What any of the other tables says; nothing of a GPU of which two say different things."""
    found: dict[str, set[str]] = {}
    told = {name: _capability(columns) for name, columns in others.items()}
    measured = _measured(connection, tables) if any(told.values()) else set()
    for name, capability in told.items():
        if capability is None:
            continue
        rows = connection.execute(f"SELECT * FROM {quote(name)}")  # noqa: S608
        place = others[name].index(capability)
        for row in rows:
            for gpu in measured & {cell for cell in row if isinstance(cell, str)}:
                if arch := capability_arch(row[place]):
                    found.setdefault(gpu, set()).add(arch)
    return {gpu: archs.pop() for gpu, archs in found.items() if len(archs) == 1}


def capability_arch(cell: object) -> str | None:
    """`sm90` of 900, `9.0` or `sm_90`; nothing of what is no compute capability."""
    if isinstance(cell, int) and cell >= LEAST:
        cell = cell // 10
    try:
        return parse_arch(str(cell))
    except ValueError:
        return None


def write_gpus(connection: sqlite3.Connection, gpus: GpuArchs) -> None:
    """Writes what is known of GPUs, if anything is."""
    if gpus:
        connection.execute(f"CREATE TABLE {GPUS} (gpu TEXT PRIMARY KEY, arch TEXT NOT NULL)")
        rows = sorted(gpus.items())
        connection.executemany(f"INSERT INTO {GPUS} VALUES (?, ?)", rows)  # noqa: S608


def _capability(columns: Sequence[str]) -> str | None:
    """The column that holds one."""
    return next((column for column in columns if _CAPABILITY.fullmatch(column)), None)


def _measured(connection: sqlite3.Connection, tables: Sequence[ResultTable]) -> set[str]:
    """The GPUs of the results, as they name them."""
    found: set[str] = set()
    for table in tables:
        rows = connection.execute(f"SELECT DISTINCT gpu FROM {table.quoted}")  # noqa: S608
        found |= {row[0] for row in rows if isinstance(row[0], str)}
    return found
