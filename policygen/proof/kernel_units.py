"""Compiles the kernels of workloads in parallel, each unit once."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from policygen.errors import InputError, PolicygenError
from policygen.model.arch import arch_number, is_amd
from policygen.model.machine_code import Dump, DumpIndex, Kernel, Units
from policygen.model.plans import Plan
from policygen.model.selection import Spot
from policygen.model.tuning import ALWAYS, Family, TuningHeader, ends, used_families
from policygen.model.workload import Point, in_words, point_of
from policygen.opening import first_fault, read_document
from policygen.outputs import write_output
from policygen.paths import file_name
from policygen.proof.compile import Listings
from policygen.proof.kernel_build import Job, KernelTools, UnitHeaders, build, preprocess
from policygen.proof.kernel_calls import WorkloadUnit
from policygen.steps import Progress, follow, whole

Kernels = tuple[Kernel, ...] | PolicygenError
"""A unit's kernels, or the error."""
Contents = Mapping[UnitHeaders, str | PolicygenError]
"""Digest of the preprocessed headers, or the error."""
KERNELS = "compiling kernels"
"""The phase of compiling without listings; it runs once in a command."""
Key = TypeVar("Key")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class KernelCompiler:
    """Compiles kernels with a cache and an executor.

    The executor must be able to call a module's functions with picklable arguments.
    """

    tools: KernelTools
    cache: Path
    executor: Executor
    progress: Progress | None = None

    def contents(self, units: Iterable[tuple[Spot, WorkloadUnit]]) -> Contents:
        """Returns the digests of the units' preprocessed headers."""
        headers = dict.fromkeys(unit.headers(arch) for (_, arch), unit in units)
        listings = Listings()
        futures: dict[UnitHeaders, Future[str | PolicygenError]] = {}
        for own in headers:
            names = listings.of(own.includes)
            futures[own] = self.executor.submit(preprocess, own, names, self.tools, self.cache)
        return self._wait_for_all(futures, "reading headers", lambda own: f"for {own.arch}")

    def kernels(
        self, units: Sequence[tuple[Spot, WorkloadUnit]], contents: Contents, *, listed: bool
    ) -> list[Kernels]:
        """Compiles units, in their order; equal units are compiled once.

        Listed kernels have their instructions, others only a digest of them.
        """
        jobs: list[Job | PolicygenError] = []
        names: dict[Job, str] = {}
        for ((benchmark, workload), arch), unit in units:
            headers = unit.headers(arch)
            content = contents[headers]
            if isinstance(content, PolicygenError):
                jobs.append(content)
                continue
            job = Job(unit.text, headers, content)
            jobs.append(job)
            names.setdefault(job, f"{in_words(benchmark, dict(workload))} on {arch}")
        futures = {
            job: self.executor.submit(build, job, self.tools, self.cache, listed=listed)
            for job in names
        }
        phase = "disassembling" if listed else KERNELS
        kernels_by_job = self._wait_for_all(futures, phase, lambda job: names[job])
        return [
            kernels_by_job[job_or_error] if isinstance(job_or_error, Job) else job_or_error
            for job_or_error in jobs
        ]

    def _wait_for_all(
        self, futures: Mapping[Key, "Future[Made]"], phase: str, name: Callable[[Key], str]
    ) -> dict[Key, Made]:
        progress = whole(self.progress) if phase == KERNELS else self.progress
        follow({future: name(key) for key, future in futures.items()}, phase, progress)
        return {key: future.result() for key, future in futures.items()}


INDEX = "policygen-sass.json"
Dumps = Mapping[tuple[Point, str], tuple[Kernel, ...]]
"""By workload and architecture."""


# Reference dumps: compiled kernels to compare with later.


def is_dumps(folder: Path) -> bool:
    """Whether a folder holds dumps, rather than a tree."""
    return (folder / INDEX).is_file()


def save(folder: Path, dumps: Dumps, units: Units, version: str, toolchain: str) -> DumpIndex:
    """Writes a file per workload and architecture, then the index."""
    names = []
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
    index = DumpIndex(version=version, toolchain=toolchain, units=units, files=tuple(sorted(names)))
    write_output(folder / INDEX, index.to_json().encode())
    return index


def load(folder: Path) -> tuple[DumpIndex, Dumps]:
    """Reads the dumps in a folder; a damaged or missing one is an error."""
    path = folder / INDEX
    dumps = {}
    try:
        index = DumpIndex.model_validate_json(read_document(path))
        for name in index.files:
            path = folder / name
            dump = Dump.model_validate_json(read_document(path))
            dumps[point_of(dump.benchmark, dump.workload), dump.arch] = dump.kernels
    except ValidationError as error:
        raise InputError(
            f"{path} is not a dump of this version of policygen: {first_fault(error)}"
        ) from error
    return index, dumps


# Finds the architectures that a change to headers should not affect.


def tuned(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> tuple[Family, ...]:
    """Finds the families whose content differs after a change.

    The only return of a function becomes a default where a condition is put before it: that alone
    changes nothing.
    """
    old_families = (family for header in before for family in header.tunings)
    content_by_key = {(family.path, family.arch): _content(family) for family in old_families}
    different: list[Family] = []
    for family in (family for header in after for family in header.tunings):
        old = content_by_key.get((family.path, family.arch))
        is_known = old is not None or any(entry.specific for entry in family.entries)
        different += [family] if is_known and old != _content(family) else []
    return tuple(different)


def unread(
    families: Sequence[Family], headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Returns the archs whose policies read none of the families; all if there are no families."""
    return tuple(arch for arch in archs if not _is_affected(arch, families, headers))


def left_alone(
    plan: Plan, headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Returns the archs that a plan does not tune: earlier ones, and those with their own policies.

    If later ones are to inherit, none of them is included.
    """
    if is_amd(plan.options.arch):  # AMD architectures have no order
        reached = {reached.arch for reached in plan.reached if not reached.kept}
        return tuple(arch for arch in archs if arch not in {plan.options.arch, *reached})
    target = arch_number(plan.options.arch)
    written_to = [action.target for action in plan.actions if action.target and action.after]
    written = {(place.header, place.namespace) for place in written_to}
    next_own = []
    for header in headers:
        for chain in header.chains:
            if (header.name, chain.namespace) in written:
                numbers = (arch_number(policy.arch) for policy in chain.policies)
                next_own.append(min((n for n in numbers if n > target), default=ALWAYS))
    later = max(next_own, default=ALWAYS) if plan.options.reach == "only" else ALWAYS
    return tuple(arch for arch in archs if arch_number(arch) < target or arch_number(arch) >= later)


def _is_affected(arch: str, families: Sequence[Family], headers: Sequence[TuningHeader]) -> bool:
    """Whether the arch's policy reads a family, or gets what a selector returns for one.

    Without policy chains, a family applies to its own architecture only.
    """
    if any(family.arch == arch and is_amd(arch) for family in families):
        return True
    for header in headers:
        end_by_number = ends(header.selectors)
        returned = {arch_number(family.arch) for family in header.selectors if family in families}
        if any(number <= arch_number(arch) < end_by_number[number] for number in returned):
            return True
    return any(
        family.name in used_families(header.chains, family.namespace, arch)
        for family in families
        for header in headers
        if header.name == family.header
    )


def _content(family: Family) -> Collection[object]:
    """Returns the content of its entries, ignoring their positions."""
    fields = {"kind", "args", "values", "inherits", "guard", "disabled"}
    return [entry.model_dump(include=fields) for entry in family.entries]
