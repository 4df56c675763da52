"""Compiles variants in parallel, many per unit; a variant that fails to compile fails alone."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Protocol, TypeVar

from policygen.cache import digest
from policygen.errors import PolicygenError, ProcessError
from policygen.gpu.device import VariantFunction
from policygen.gpu.units import FUNCTION
from policygen.model.arch import arch_number
from policygen.model.workload import BASE
from policygen.paths import cache_failure, cache_folder, write_atomically
from policygen.process import stopping, threads
from policygen.proof.compile import (
    Listings,
    Made,
    RefusedError,
    compile_file,
    remembered,
    unit_file,
)
from policygen.proof.kernel_units import workers_of
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


class Renders(Protocol):
    """Renders a unit."""

    def __call__(self, candidates: Sequence[Candidate], /) -> str:
        """Return a unit with a function for each candidate, starting with `policygen_run_0`."""


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


@dataclass(frozen=True, slots=True)
class CompiledWorkload:
    """Objects of a workload, ready to load."""

    inputs: Path
    runner: Path
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
    runner: str,
    compiler: MakesObjects,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> list[CompiledWorkload | PolicygenError]:
    """Compile all variants of workloads in order, returning an error for a workload that fails.

    `slots` is the number of units compiled at once; by default as many as cores and memory allow.
    """
    if not workloads:
        return []
    count = workers_of(slots, MEMORY)
    with threads(count) as executor:
        return _Run(executor, compiler, runner, [_State(workload) for workload in workloads]).all(
            count, progress
        )


@dataclass(frozen=True, slots=True)
class _Unit:
    """Source of one object: variants of a workload, its inputs, or the runner."""

    state: "_State | None"
    candidates: tuple[Candidate, ...] = ()

    @property
    def name(self) -> str:
        """Name that the progress shows during compilation."""
        if not self.candidates:
            return f"the inputs of {self.state.workload.name}" if self.state else "the runner"
        first, *remaining = (candidate.label for candidate in self.candidates)
        return f"{first} and {len(remaining)} more" if remaining else first


@dataclass(slots=True)
class _State:
    """Compilation state of a workload."""

    workload: WorkloadToCompile
    inputs: Path | None = None
    problem: PolicygenError | None = None
    """Error that no variant caused."""
    places: dict[str, VariantFunction] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    parked: list[tuple[_Unit, ProcessError]] = field(default_factory=list)
    """Units that failed before it was known whether the baseline compiles."""

    @property
    def done(self) -> int:
        """Number of variants whose outcome is known."""
        total = len(self.workload.candidates) + 1
        return total if self.problem else len(self.places) + len(self.failed)

    def units(self, size: int) -> Iterator[_Unit]:
        """Yield inputs and variants, the baseline in the first batch; changed headers are alone."""
        yield _Unit(self)
        candidates = self.workload.candidates
        alone = [candidate for candidate in candidates if candidate.includes or self.workload.alone]
        shared = [
            OWN,
            *(
                candidate
                for candidate in candidates
                if not (candidate.includes or self.workload.alone)
            ),
        ]
        batches_in_order = [*batches(shared, size), *batches(alone, 1)]
        yield from (_Unit(self, tuple(batch)) for batch in batches_in_order)

    def source(self, batch: Sequence[Candidate]) -> ObjectSource:
        """Return the source of a unit; an empty batch means the inputs."""
        workload = self.workload
        text = workload.render(batch) if batch else workload.inputs
        overlay = batch[0].includes if batch else ()
        return ObjectSource(text, (*overlay, *workload.includes), workload.arch)


@dataclass(slots=True)
class _Run:
    """Compilation of all units."""

    executor: Executor
    compiler: MakesObjects
    runner: str
    states: list[_State]
    runs: "dict[Future[Path], _Unit]" = field(default_factory=dict)
    made: Path | None = None
    """The runner."""

    def all(self, slots: int, progress: Progress | None) -> list[CompiledWorkload | PolicygenError]:
        """Compile until no unit is left."""
        total = sum(len(state.workload.candidates) + 1 for state in self.states)
        size = unit_size(total, slots)
        self._submit(_Unit(None))
        for state in self.states:
            for unit in state.units(size):
                self._submit(unit)
        with stopping(lambda: self._progress_text(total)):
            while self.runs:
                self._report(progress, total)
                ended, _ = wait(self.runs, TICK if progress else None, FIRST_COMPLETED)
                for future in ended:
                    self._finish(future, self.runs.pop(future))
            self._report(progress, total)
        return [self._result(state) for state in self.states]

    def _submit(self, unit: _Unit) -> None:
        if unit.state is None:
            arch = self.states[0].workload.arch
            source = ObjectSource(self.runner, (), arch)
        elif unit.state.problem:
            return
        else:
            source = unit.state.source(unit.candidates)
        self.runs[self.executor.submit(self.compiler.make, source)] = unit

    def _finish(self, future: "Future[Path]", unit: _Unit) -> None:
        try:
            path = future.result()
        except ProcessError as error:
            if unit.state is None:
                raise
            self._handle_refusal(unit.state, unit, error)
        except OSError as error:
            raise cache_failure(error) from error
        else:
            self._store(unit, path)

    def _store(self, unit: _Unit, path: Path) -> None:
        state = unit.state
        if state is None:
            self.made = path
        elif not unit.candidates:
            state.inputs = path
        else:
            for index, candidate in enumerate(unit.candidates):
                function = FUNCTION.format(index)
                state.places[candidate.label] = VariantFunction(
                    candidate.label, str(path), function
                )
            if OWN in unit.candidates:
                self._divide_parked(state)

    def _divide_parked(self, state: _State) -> None:
        """The baseline compiles, so the variants of the parked units are at fault."""
        parked, state.parked = state.parked, []
        for unit, error in parked:
            self._divide(state, unit, error)

    def _handle_refusal(self, state: _State, unit: _Unit, error: ProcessError) -> None:
        if not unit.candidates or unit.candidates == (OWN,):
            state.problem = error  # a broken header, or too little memory: no variant's fault
        elif BASE in state.places:
            self._divide(state, unit, error)
        else:
            state.parked.append((unit, error))
            if OWN in unit.candidates:
                self._submit(_Unit(state, (OWN,)))

    def _divide(self, state: _State, unit: _Unit, error: ProcessError) -> None:
        """Compile the other variants again; a variant that fails alone is reported."""
        culprits = named_culprits(error)
        if len(unit.candidates) == 1:
            culprits = {0: reason(error)}
        state.failed |= {
            unit.candidates[index].label: message for index, message in culprits.items()
        }
        remaining = [
            candidate
            for index, candidate in enumerate(unit.candidates)
            if index not in culprits and candidate is not OWN
        ]
        parts = [remaining] if culprits or len(remaining) == 1 else halves(remaining)
        for part in filter(None, parts):
            self._submit(_Unit(state, tuple(part)))

    def _report(self, progress: Progress | None, total: int) -> None:
        if progress:
            running = tuple(unit.name for future, unit in self.runs.items() if future.running())
            progress(HowFar(PHASE, self._done, total, running))

    @property
    def _done(self) -> int:
        return sum(state.done for state in self.states)

    def _progress_text(self, total: int) -> str:
        progress_text = f"{self._done:,} of {total:,} variants are compiled and kept"
        return f"{progress_text}: the same command goes on there."

    def _result(self, state: _State) -> CompiledWorkload | PolicygenError:
        if state.problem:
            return state.problem
        assert self.made is not None
        assert state.inputs is not None
        order = [BASE, *(candidate.label for candidate in state.workload.candidates)]
        functions = tuple(state.places[label] for label in order if label in state.places)
        failed = {label: state.failed[label] for label in order if label in state.failed}
        return CompiledWorkload(state.inputs, self.made, functions, failed)


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


def halves(items: Sequence[One]) -> list[Sequence[One]]:
    """Divide two or more items into two parts."""
    middle = (len(items) + 1) // 2
    return [items[:middle], items[middle:]]


KIND = "objects"
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


def runtime_of(toolchain: Toolchain) -> Path | None:
    """Find the CUDA runtime as a shared library; wheels have it only with a version suffix."""
    folders = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
    for root in toolchain.roots:
        for folder in folders:
            if libraries := sorted((Path(root) / folder).glob("libcudart.so.*")):
                return libraries[0]
    return None


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
