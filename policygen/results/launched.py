"""What a database has of kernels of one's own: launches, what words mean, how fast a copy is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from policygen.model.labels import is_label
from policygen.results.database import Database
from policygen.results.imported import imported_facts
from policygen.results.provenance import OWN

LAUNCHES = f"{OWN}launches"
KERNELS = f"{OWN}kernels"
PEAKS = f"{OWN}peaks"
MOST = 1e18
"""More bytes than anybody moves."""
_COLUMNS = "registers, local, static_shared, dynamic_shared, block, grid, resident, room, traffic"


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


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What is known of the kernels of a database."""

    launches: Mapping[tuple[str, str, str], KernelLaunch] = field(default_factory=dict)
    """By algorithm, workload as the tables have it, and variant."""
    words: Mapping[tuple[str, str], Mapping[int, str]] = field(default_factory=dict)
    """By algorithm and parameter."""
    starts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By algorithm the kernel of which it is a class of sizes, and the variant that base is."""
    peak: float | None = None
    """Bytes that a copy moves in a second."""


def kernel_facts(database: Database) -> KernelFacts:
    """Reads what is there; what is damaged is not known."""
    connection = database.connection
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {str(name) for (name,) in tables}
    launches: dict[tuple[str, str, str], KernelLaunch] = {}
    starts: dict[str, tuple[str, str]] = {}
    peaks: list[float] = []
    if LAUNCHES in names:
        for algorithm, workload, variant, *told in connection.execute(
            f"SELECT algorithm, workload, variant, {_COLUMNS} FROM {LAUNCHES}"  # noqa: S608
        ):
            found = _launch(told)
            if found is not None and all(
                isinstance(t, str) for t in (algorithm, workload, variant)
            ):
                launches[algorithm, workload, variant] = found
    if KERNELS in names:
        for algorithm, kernel, variant in connection.execute(
            f"SELECT algorithm, kernel, variant FROM {KERNELS}"  # noqa: S608
        ):
            if is_label(str(variant)):
                starts[str(algorithm)] = str(kernel), str(variant)
    if PEAKS in names:
        told = connection.execute(f"SELECT bytes FROM {PEAKS}")  # noqa: S608
        peaks = [one for (one,) in told if isinstance(one, float) and 0 < one < MOST]
    words = {
        key: {number: _word(text) for number, text in texts.items()}
        for key, texts in imported_facts(database).values.items()
    }
    return KernelFacts(launches, words, starts, max(peaks, default=None))


def _word(text: str) -> str:
    """A value that is kept as JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, str) else text


def _launch(told: list[object]) -> KernelLaunch | None:
    found = [one for one in told if isinstance(one, int) and 0 <= one < MOST]
    if len(found) < len(told):
        return None
    registers, local, static, dynamic, block, grid, resident, room, traffic = found
    occupancy = resident * block / room if room else 0.0
    return KernelLaunch(registers, local, static + dynamic, block, grid, occupancy, traffic)
