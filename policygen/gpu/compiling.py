"""Compiles variants in parallel, many per unit; a variant that fails to compile fails alone."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Protocol, TypeVar

from policygen.cache import digest
from policygen.errors import InputError, PolicygenError, ProcessError
from policygen.gpu.device import VariantFunction
from policygen.gpu.units import FUNCTION
from policygen.model.arch import arch_number
from policygen.model.workload import BASE
from policygen.paths import cache_failures, cache_folder, write_atomically
from policygen.process import stopping, threads, workers_of
from policygen.proof.compile import (
    Listings,
    Made,
    RefusedError,
    compile_file,
    remembered,
    unit_file,
)
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import check_unnamed
from policygen.steps import TICK, HowFar, Progress
from policygen.untrusted import visible

PHASE = "compiling variants"
MEMORY = 3 << 30
"""Memory limit of a unit in bytes; a unit of 64 scans took 1.0 GB, and sort kernels are larger."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant to compile."""

    label: str
    policy: Mapping[str, str] | None = None
    """All fields of its policy; None for what CUB selects by default."""
    includes: tuple[str, ...] = ()
    """Include folders before the tree: changed headers, where variants are not policies."""


OWN = Candidate(BASE)
"""What CUB selects by default."""


Renders = Callable[[Sequence[Candidate]], str]
"""Returns a unit with a function for each candidate, starting with `policygen_run_0`."""


@dataclass(frozen=True, slots=True)
class WorkloadToCompile:
    """A workload with its variants and everything needed to compile them."""

    name: str
    """Name in words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
    arch: str
    includes: tuple[str, ...]
    """Include folders of the tree."""
    inputs: str
    """Unit of its buffers."""
    render: Renders
    candidates: tuple[Candidate, ...]
    """Candidates without the baseline, which is compiled along with them."""
    alone: bool = False
    """Whether a unit holds at most one candidate."""
    own: Path | None = None
    """The user's file that describes it."""

    def source(self, batch: Sequence[Candidate]) -> "ObjectSource":
        """Return the source of a unit; an empty batch means the inputs."""
        text = self.render(batch) if batch else self.inputs
        overlay = batch[0].includes if batch else ()
        return ObjectSource(text, (*overlay, *self.includes), self.arch)

    def parts(
        self, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], list[list[Candidate]]]:
        """Return the candidates that share units, and units of those with changed headers."""
        shared = [candidate for candidate in candidates if not (candidate.includes or self.alone)]
        return shared, [[each] for each in candidates if each.includes or self.alone]

    def error(self, error: ProcessError) -> ProcessError:
        """Return an error of the compiler, in the user's file if that is at fault."""
        if self.own is not None and isinstance(error, RefusedError):
            return error.in_own_file(self.own)
        return error


@dataclass(frozen=True, slots=True)
class CompiledWorkload:
    """Objects of a workload, ready to load."""

    inputs: Path
    runner: Path
    """Neither is there if the workload will not run."""
    functions: tuple[VariantFunction, ...]
    """Functions, baseline first."""
    failed: Mapping[str, str]
    """Variant → the compiler's message."""


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A translation unit with its include folders and architecture."""

    text: str
    includes: tuple[str, ...]
    arch: str

    @property
    def flags(self) -> list[str]:
        """Compiler options that contain no paths."""
        number = arch_number(self.arch)
        # Generate machine code for this architecture only, so that the driver compiles nothing.
        return [*FLAGS, "-gencode", f"arch=compute_{number},code=sm_{number}"]


class MakesObjects(Protocol):
    """Compiles one unit."""

    def make(self, source: ObjectSource) -> Path:
        """Return the shared object; raise RefusedError with the compiler's message."""


def compile_workloads(
    workloads: Sequence[WorkloadToCompile],
    runner: str | None,
    compiler: MakesObjects,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> list[CompiledWorkload | PolicygenError]:
    """Compile all variants of workloads in order, returning an error for a workload that fails.

    `runner` is the unit that times calls; without it, nothing that only a run needs is compiled.
    `slots` is the number of units compiled at once; by default as many as cores and memory allow.
    """
    if not workloads:
        return []
    states = [_State(workload, compiler, runner is not None) for workload in workloads]
    count = workers_of(slots, MEMORY)
    size = unit_size(sum(len(state.labels) for state in states), count)
    with threads(count) as executor, cache_failures():
        source = None if runner is None else ObjectSource(runner, (), workloads[0].arch)
        made = source and executor.submit(compiler.make, source)
        _compile_all(executor, states, size, progress)
        path = made.result() if made else Path()
    return [
        state.problem or CompiledWorkload(state.inputs, path, state.functions, state.failures)
        for state in states
    ]


@dataclass(slots=True)
class _State:
    """Compilation state of a workload."""

    workload: WorkloadToCompile
    compiler: MakesObjects
    is_run: bool
    """Whether it will run, which needs its inputs and the baseline."""
    inputs: Path = Path()
    problem: PolicygenError | None = None
    """Error that no variant caused."""
    places: dict[str, VariantFunction] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    """Held while the baseline compiles, which tells whether variants are at fault."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The variants to compile, the baseline first if it is compiled whatever happens."""
        labels = [candidate.label for candidate in self.workload.candidates]
        return (BASE, *labels) if self.is_run or not labels else tuple(labels)

    @property
    def done(self) -> int:
        """Number of variants whose outcome is known."""
        outcomes = {**self.places, **self.failed}
        return len(self.labels) if self.problem else sum(label in outcomes for label in self.labels)

    @property
    def functions(self) -> tuple[VariantFunction, ...]:
        """The functions, baseline first."""
        return tuple(self.places[label] for label in self.labels if label in self.places)

    @property
    def failures(self) -> dict[str, str]:
        """The compiler's messages by variant, in order."""
        return {label: self.failed[label] for label in self.labels if label in self.failed}

    def steps(self, size: int) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what is compiled, with names: inputs, the baseline, and units of variants."""
        if self.is_run:
            yield f"the inputs of {self.workload.name}", self._compile_inputs
        if BASE in self.labels:
            yield BASE, self._compile_base
        shared, alone = self.workload.parts(self.workload.candidates)
        for part in [*batches(shared, size), *alone]:
            others = f" and {len(part) - 1} more" if len(part) > 1 else ""
            yield f"{part[0].label}{others}", partial(self._compile_variants, part)

    def _compile_inputs(self) -> None:
        try:
            self.inputs = self.compiler.make(self.workload.source(()))
        except ProcessError as error:
            self.problem = self.workload.error(error)

    def _compile_base(self) -> bool:
        """Compile the baseline unless that was done; return whether nothing failed."""
        with self.lock:
            if BASE not in self.places and not self.problem:
                try:
                    path = self.compiler.make(self.workload.source((OWN,)))
                except ProcessError as error:  # a broken header: no variant's fault
                    self.problem = self.workload.error(error)
                else:
                    self.places |= _functions((OWN,), path)
        return self.problem is None

    def _compile_variants(self, part: Sequence[Candidate]) -> None:
        if not self.problem:
            is_base_fine = self._compile_base
            functions, failed = compile_unit(self.workload, self.compiler, part, is_base_fine)
            self.places |= functions
            self.failed |= failed


def _compile_all(
    executor: Executor, states: Sequence[_State], size: int, progress: Progress | None
) -> None:
    """Compile everything, and report how many variants are done."""
    total = sum(len(state.labels) for state in states)
    running: dict[Future[object], str] = {}

    def done() -> int:
        return sum(state.done for state in states)

    def report() -> None:
        if progress:
            names = (name for future, name in running.items() if future.running())
            progress(HowFar(PHASE, done(), total, tuple(names), is_whole=True))

    def progress_text() -> str:
        text = f"{done():,} of {total:,} variants are compiled and kept"
        return f"{text}; the same command resumes there."

    report()
    with stopping(progress_text):
        for state in states:
            running |= {executor.submit(step): name for name, step in state.steps(size)}
        while running:
            report()
            ended, _ = wait(running, TICK if progress else None, FIRST_COMPLETED)
            for future in ended:
                del running[future]
                future.result()
        report()


def _functions(batch: Sequence[Candidate], path: Path) -> dict[str, VariantFunction]:
    """Return the functions of a compiled unit by label."""
    return {
        candidate.label: VariantFunction(candidate.label, str(path), FUNCTION.format(index))
        for index, candidate in enumerate(batch)
    }


def without_culprits(
    batch: Sequence[Candidate], error: ProcessError
) -> tuple[dict[str, str], list[Sequence[Candidate]]]:
    """Return the messages of variants that the compiler rejects, and the parts to compile again.

    If it names none, the unit is halved; a variant that fails alone is at fault.
    """
    culprits = {0: reason(error)} if len(batch) == 1 else named_culprits(error)
    remaining = [candidate for index, candidate in enumerate(batch) if index not in culprits]
    size = len(remaining) if culprits else ceil(len(remaining) / 2)
    failed = {batch[index].label: message for index, message in culprits.items()}
    return failed, batches(remaining, size) if remaining else []


def compile_unit(
    workload: WorkloadToCompile,
    compiler: MakesObjects,
    candidates: Sequence[Candidate],
    is_base_fine: Callable[[], bool] = lambda: True,
) -> tuple[dict[str, VariantFunction], dict[str, str]]:
    """Compile variants without the baseline; return functions, and the messages of those that fail.

    The calling thread compiles one unit after another. Where the baseline does not compile either,
    no variant is at fault, and nothing is divided.
    """
    functions: dict[str, VariantFunction] = {}
    failed: dict[str, str] = {}
    shared, alone = workload.parts(candidates)
    parts: list[Sequence[Candidate]] = [*filter(None, [shared]), *alone]
    while parts:
        part = parts.pop()
        try:
            functions |= _functions(part, compiler.make(workload.source(part)))
        except ProcessError as error:
            if not is_base_fine():
                break
            messages, remaining = without_culprits(part, workload.error(error))
            failed |= messages
            parts += remaining
    return functions, failed


MOST = 64
"""Maximum number of variants per unit. The headers cost as much as some twenty variants: for scans
of CUB 3.6.0, nvcc 13.2 compiled 1 variant with the baseline in 9 core seconds, 16 in 14 s, and
64 in 32 s. Larger units would gain little, because failures are recompiled in parts and cores
finish less evenly."""
One = TypeVar("One")


# Unit sizes that let all cores finish together


def unit_size(variants: int, slots: int) -> int:
    """Return the number of variants per unit if `slots` units are compiled at once."""
    rounds = max(1, ceil(variants / (slots * MOST)))
    return max(1, ceil(variants / (slots * rounds)))


def batches(items: Sequence[One], size: int) -> list[Sequence[One]]:
    """Divide items into as few batches as fit, with sizes that differ by at most one."""
    count = ceil(len(items) / size)
    return [
        items[index * len(items) // count : (index + 1) * len(items) // count]
        for index in range(count)
    ]


KIND = "objects"
LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
"""Folders of libraries below a root."""
FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",  # as CCCL's benchmarks are built
    "-w",  # what CUB's headers warn of is not the user's
    "-shared",
    "-Xcompiler",
    # Two objects define the same kernels: they must not share symbols, and a closed object must be
    # unloaded.
    "-fPIC,-fno-gnu-unique,-fvisibility=hidden",
)
_MADE, _REFUSED = b"made", b"refused"
# ptxas error   : Entry function '_ZN3cub…' uses too much shared data (0xe180 bytes, 0xc000 max)
_PTXAS = re.compile(
    r"^ptxas (?:error|fatal)\s*: (?:Entry function '([^']*)' (?:with )?)?(.+)$", re.M
)
# _ZN3cub6detail4scan16DeviceScanKernelINS2_18policygen_workload20policygen_selector_2EPaS6_…
_SELECTOR = re.compile(r"policygen_selector_(\d+)E")
_LIMIT = "uses too much"


# Object files


def library_in(root: Path, pattern: str) -> Path | None:
    """Find a library below a root of a toolkit or a wheel."""
    files = (path for folder in LIBRARIES for path in sorted((root / folder).glob(pattern)))
    return next(filter(Path.is_file, files), None)


def runtime_of(toolchain: Toolchain) -> Path | None:
    """Find the CUDA runtime as a shared library; wheels have it only with a version suffix."""
    libraries = (library_in(Path(root), "libcudart.so.*") for root in toolchain.roots)
    return next(filter(None, libraries), None)


def runtime_flags(toolchain: Toolchain) -> list[str]:
    """Return linker flags for the CUDA runtime of the loading process, which all objects share.

    With its own runtime, each object would have separate streams and error state.
    """
    if library := runtime_of(toolchain):
        return ["-cudart", "none", "-Xlinker", f"--no-as-needed,{library}"]
    return ["-cudart", "shared"]


def as_made(data: bytes) -> bytes:
    """Encode an object for the cache."""
    return _MADE + b"\n" + data


def as_refused(error: RefusedError) -> bytes:
    """Encode a compiler error for the cache."""
    return _REFUSED + b"\n" + error.stderr.encode()


def object_in(folder: Path, key: str, kept: bytes) -> Path:
    """Return the file of a cached object; raise RefusedError if a compiler error is cached."""
    kind, _, data = kept.partition(b"\n")
    if kind == _REFUSED:
        raise RefusedError(["nvcc"], 1, data.decode())
    path = folder / f"{digest(key, data)[:32]}.so"
    if not path.exists():
        write_atomically(path, data)
    return path


@dataclass(frozen=True, slots=True)
class ObjectCompiler:
    """Compiles units and stores the objects in a folder."""

    toolchain: Toolchain
    folder: Path
    there: Listings

    def make(self, source: ObjectSource) -> Path:
        """Compile an object or take it from the cache; raise RefusedError on an error."""
        listing = self.there.of(source.includes)
        key = digest(self.toolchain.identity, *source.flags, source.text, listing)
        paths = (*source.includes, *self.toolchain.roots)
        data = remembered(KIND, key, paths, lambda: self._compile(source, key))
        return object_in(self.folder, key, data)

    def _compile(self, source: ObjectSource, key: str) -> Made:
        """Compile a unit; compiler errors about its code are cached, too."""
        cache = cache_folder()
        with unit_file(source.text, cache) as unit:
            folder, output = unit.parent, unit.with_suffix(".so")
            folders = (f"-I{include}" for include in source.includes)
            link_flags = runtime_flags(self.toolchain)
            command = [str(self.toolchain.nvcc), *source.flags, *link_flags, *folders]
            try:
                compile_file(command, unit, output, cache, key, "--keep", "--keep-dir", str(folder))
                data = as_made(output.read_bytes())
            except RefusedError as error:
                if not is_code_error(error):
                    raise
                data = as_refused(error)
            preprocessed = b"".join(path.read_bytes() for path in sorted(folder.glob("*.ii")))
            check_unnamed(preprocessed, unit)
            return Made(data, preprocessed, unit)


def is_code_error(error: RefusedError) -> bool:
    """Whether a compiler error is about the code, and not about memory or disk space."""
    lines = _PTXAS.findall(error.stderr)
    return any(_LIMIT in message for _, message in lines) or error.has_place


def reason(error: ProcessError) -> str:
    """Summarize a compiler error in one line."""
    if not isinstance(error, RefusedError):
        return visible(". ".join(part for part in (error.stderr.strip(), error.remedy) if part))
    match = _PTXAS.search(error.stderr)
    return visible(f"ptxas: it {match[2]}" if match and match[1] else error.first)


def named_culprits(error: ProcessError) -> dict[int, str]:
    """Return the variants that the assembler rejects by kernel name, with its messages."""
    if not isinstance(error, RefusedError):
        return {}
    return {
        int(selector[1]): visible(f"ptxas: it {message}")
        for kernel, message in _PTXAS.findall(error.stderr)
        if (selector := _SELECTOR.search(kernel))
    }


def check_compiles(toolchain: Toolchain, arch: str) -> None:
    """Raises an error if the compiler does not support an architecture."""
    if arch not in toolchain.archs:
        archs = ", ".join(toolchain.archs)
        raise InputError(
            f"nvcc {toolchain.version} does not compile for {arch}", f"It supports: {archs}"
        )


def work_folder() -> "TemporaryDirectory[str]":
    """Creates a temporary folder for objects.

    Cleanup errors are ignored because a process that loaded the objects may still be exiting.
    """
    return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)
