"""What a database has of kernels of one's own: launches, what words mean, how fast a copy is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policygen.model.labels import is_label
from policygen.results.database import Database
from policygen.results.imported import imported_facts, rows_of
from policygen.results.provenance import OWN, SESSIONS

LAUNCHES = f"{OWN}launches"
KERNELS = f"{OWN}kernels"
PEAKS = f"{OWN}peaks"
ACHIEVED = f"{OWN}achieved"
MOST = 1e18
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
        if isinstance(found, float) and 0 < found < MOST:
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
    found = [one for one in told if isinstance(one, int) and 0 <= one < MOST]
    if len(found) < len(told):
        return None
    registers, local, static, dynamic, block, grid, resident, room, traffic = found
    occupancy = resident * block / room if room else 0.0
    return KernelLaunch(registers, local, static + dynamic, block, grid, occupancy, traffic)
