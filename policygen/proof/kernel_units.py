"""Compiles the calls of workloads, side by side and each unit once."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from policygen.errors import InputError, PolicygenError
from policygen.model.arch import arch_number, is_amd
from policygen.model.machine_code import Dump, DumpIndex, Kernel, Units
from policygen.model.plans import Plan
from policygen.model.selection import Spot
from policygen.model.tuning import Entry, Family, TuningHeader, ends
from policygen.model.workload import Point, in_words, point_of
from policygen.opening import read_document
from policygen.outputs import write_output
from policygen.paths import file_name
from policygen.process import threads
from policygen.proof.compile import Listings
from policygen.proof.kernel_build import (
    Job,
    KernelTools,
    UnitHeaders,
    build,
    disassemble,
    preprocess,
)
from policygen.proof.kernel_calls import WorkloadUnit
from policygen.proof.values import used_families
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


INDEX = "policygen-sass.json"
Dumps = Mapping[tuple[Point, str], tuple[Kernel, ...]]
"""By workload and architecture."""


# Keeps reference dumps: kernels that were compiled once, to compare with later.


def is_dumps(folder: Path) -> bool:
    """Whether a folder holds dumps, and not a tree."""
    return (folder / INDEX).is_file()


def save(folder: Path, dumps: Dumps, units: Units, version: str, toolchain: str) -> DumpIndex:
    """Writes a file for each workload and architecture, and then what there is."""
    names = []
    try:
        for ((benchmark, workload), arch), kernels in dumps.items():
            dump = Dump(
                benchmark=benchmark,
                workload=dict(workload),
                arch=arch,
                toolchain=toolchain,
                kernels=kernels,
            )
            words = [benchmark, *(f"{axis}_{value}" for axis, value in workload), arch]
            name = f"{file_name(words)}.json"
            write_output(folder / name, dump.to_json().encode())
            names.append(name)
        index = DumpIndex(
            version=version, toolchain=toolchain, units=units, files=tuple(sorted(names))
        )
        write_output(folder / INDEX, index.to_json().encode())
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error
    return index


def load(folder: Path) -> tuple[DumpIndex, Dumps]:
    """Reads the dumps of a folder; one that is damaged or lost is an error."""
    path = folder / INDEX
    found = {}
    try:
        index = DumpIndex.model_validate_json(read_document(path))
        for name in index.files:
            path = folder / name
            dump = Dump.model_validate_json(read_document(path))
            found[point_of(dump.benchmark, dump.workload), dump.arch] = dump.kernels
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{path} is no dump of this policygen: {first['msg']}") from error
    return index, found


NEVER = 1 << 16
"""A number that no architecture has."""


# Finds the architectures that a change of headers should leave as they are.


def tuned(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> tuple[Family, ...]:
    """Finds the families that say something else after a change."""
    known = {_key(family): _content(family) for family in _families(before)}
    return tuple(f for f in _families(after) if known.get(_key(f)) != _content(f))


def unread(
    families: Sequence[Family], headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Finds the archs whose policies read none of some families; all where there are none."""
    return tuple(arch for arch in archs if not _reads(arch, families, headers))


def left_alone(
    plan: Plan, headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Finds the archs that a plan does not tune: earlier ones, and those with own policies.

    Where later ones shall inherit, they are no such.
    """
    if is_amd(plan.options.arch):  # none comes after another
        changed = {plan.options.arch, *(one.arch for one in plan.reached if not one.kept)}
        return tuple(arch for arch in archs if arch not in changed)
    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    chains = [
        [arch_number(policy.arch) for policy in chain.policies]
        for header in headers
        for chain in header.chains
        if (header.name, chain.namespace) in written
    ]
    own = [min((n for n in numbers if n > target), default=NEVER) for numbers in chains]
    later = max(own, default=NEVER) if plan.options.reach == "only" else NEVER
    return tuple(a for a in archs if arch_number(a) < target or arch_number(a) >= later)


def _families(headers: Sequence[TuningHeader]) -> Iterator[Family]:
    for header in headers:
        yield from (*header.families, *header.selectors)


def _key(family: Family) -> tuple[str, ...]:
    return family.header, family.namespace, family.name, family.arch


def _reads(arch: str, families: Sequence[Family], headers: Sequence[TuningHeader]) -> bool:
    """Whether its policy reads one, or later architectures get what is returned for one.

    Without chains of policies a family is for its own architecture.
    """
    if any(family.arch == arch and is_amd(arch) for family in families):
        return True
    for header in headers:
        last = ends(header.selectors)
        returned = {arch_number(f.arch) for f in header.selectors if f in families}
        if any(number <= arch_number(arch) < last[number] for number in returned):
            return True
    return any(
        family.name in used_families(header.chains, family.namespace, arch)
        for family in families
        for header in headers
        if header.name == family.header
    )


def _content(family: Family) -> Collection[object]:
    """What its entries say, wherever they stand."""
    return [_said(entry) for entry in family.entries]


def _said(entry: Entry) -> object:
    fields = {"kind", "args", "values", "inherits", "guard", "disabled"}
    return entry.model_dump(include=fields)
