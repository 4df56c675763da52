"""Compiles the calls of workloads, side by side and each unit once."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from policygen.errors import PolicygenError
from policygen.model.sass import Kernel
from policygen.model.selection import Spot
from policygen.model.workload import in_words
from policygen.process import threads
from policygen.proof.deps import Listings
from policygen.proof.sass.build import build, disassemble, preprocess
from policygen.proof.sass.calls import WorkloadUnit
from policygen.proof.sass.unit_job import Job, KernelTools, UnitHeaders
from policygen.steps import Progress, follow

MEMORY = 1 << 30
"""Bytes that a compile may need; the largest that was measured took three quarters of it."""

MEMINFO = Path("/proc/meminfo")
Kernels = tuple[Kernel, ...] | PolicygenError
"""Of a unit, or why there are none."""
Contents = Mapping[UnitHeaders, str | PolicygenError]
"""What the preprocessor makes of headers, by name."""
Key = TypeVar("Key")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class KernelCompiler:
    """What compiles, where it keeps what it made, and what runs the compiles.

    Any executor will do that can call a function of a module with picklable arguments.
    """

    tools: KernelTools
    cache: Path
    executor: Executor
    progress: Progress | None = None

    def contents(self, wanted: Iterable[tuple[Spot, WorkloadUnit]]) -> Contents:
        """Names what the preprocessor makes of the headers of units."""
        headers = dict.fromkeys(unit.headers(arch) for (_, arch), unit in wanted)
        there = Listings()
        futures = {
            one: self.executor.submit(
                preprocess, one, there.of(one.includes), self.tools, self.cache
            )
            for one in headers
        }
        return self._all(futures, "reading headers", lambda one: f"for {one.arch}")

    def kernels(
        self, wanted: Sequence[tuple[Spot, WorkloadUnit]], contents: Contents, *, listed: bool
    ) -> list[Kernels]:
        """Compiles units, in their order; what is the same in several is compiled once.

        Listed ones have their instructions, others a digest of them.
        """
        asked: list[Job | PolicygenError] = []
        names: dict[Job, str] = {}
        for ((benchmark, workload), arch), unit in wanted:
            headers = unit.headers(arch)
            content = contents[headers]
            if isinstance(content, PolicygenError):
                asked.append(content)
                continue
            job = Job(unit.text, headers, content)
            asked.append(job)
            names.setdefault(job, f"{in_words(benchmark, dict(workload))} on {arch}")
        make = disassemble if listed else build
        futures = {job: self.executor.submit(make, job, self.tools, self.cache) for job in names}
        phase = "disassembling" if listed else "compiling kernels"
        made = self._all(futures, phase, lambda job: names[job])
        return [made[one] if isinstance(one, Job) else one for one in asked]

    def _all(
        self, futures: Mapping[Key, "Future[Made]"], phase: str, name: Callable[[Key], str]
    ) -> dict[Key, Made]:
        follow({future: name(key) for key, future in futures.items()}, phase, self.progress)
        return {key: future.result() for key, future in futures.items()}


def workers(count: int | None) -> AbstractContextManager[Executor]:
    """Starts threads that compile: as many as there are cores, and memory."""
    return threads(workers_of(count))


def workers_of(count: int | None, memory: int = MEMORY) -> int:
    """Counts them, where each may need so many bytes."""
    return count or max(1, min(os.cpu_count() or 1, _memory() // memory))


def _memory() -> int:
    """Counts the bytes that are free, or can be made so."""
    try:
        rows = MEMINFO.read_text().splitlines()
        # MemAvailable:   23456789 kB
        return next(int(row.split()[1]) for row in rows if row.startswith("MemAvailable:")) << 10
    except (OSError, StopIteration):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
