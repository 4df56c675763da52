"""Compiles variants side by side, many in a unit; one that is refused costs itself alone."""

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
"""Bytes that a unit may need; one of 64 scans took 1.0 GB, and kernels of sorts are larger."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A variant that is to be compiled."""

    label: str
    policy: Mapping[str, str] | None = None
    """All fields of its policy; none for what CUB selects by itself."""
    includes: tuple[str, ...] = ()
    """Folders before the tree: changed headers, where variants are no policies."""


OWN = Candidate(BASE)
"""What CUB selects by itself."""


class Renders(Protocol):
    """Writes a unit."""

    def __call__(self, candidates: Sequence[Candidate], /) -> str:
        """A function for each of them, `policygen_run_0` and on."""


@dataclass(frozen=True, slots=True)
class WorkloadToCompile:
    """A workload with its variants, and what they are compiled with."""

    name: str
    """In words: `cub.bench.reduce.sum T=I32 OffsetT=I32`."""
    arch: str
    includes: tuple[str, ...]
    """The folders of the tree."""
    inputs: str
    """The unit of its buffers."""
    render: Renders
    candidates: tuple[Candidate, ...]
    """Without base, which is compiled with them."""
    alone: bool = False
    """Whether a unit holds no more than one of them."""


@dataclass(frozen=True, slots=True)
class CompiledWorkload:
    """The objects of a workload that a process can load."""

    inputs: Path
    runner: Path
    functions: tuple[VariantFunction, ...]
    """Base first."""
    failed: Mapping[str, str]
    """Variant → what the compiler says of it."""


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A translation unit, where it looks for headers, and for which architecture it is."""

    text: str
    includes: tuple[str, ...]
    arch: str

    @property
    def flags(self) -> list[str]:
        """Options of the compiler that name no place."""
        number = arch_number(self.arch)
        # Machine code for this architecture alone: nothing is left to the driver to compile.
        return [*FLAGS, "-gencode", f"arch=compute_{number},code=sm_{number}"]


class MakesObjects(Protocol):
    """Compiles one unit."""

    def make(self, source: ObjectSource) -> Path:
        """The shared object; refused with the compiler's words."""


def compile_workloads(
    asked: Sequence[WorkloadToCompile],
    runner: str,
    compiler: MakesObjects,
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> list[CompiledWorkload | PolicygenError]:
    """Compiles all variants of workloads, in their order; or tells what is wrong with a workload.

    `slots` is how many units are compiled at once: by default as many as cores and memory allow.
    """
    if not asked:
        return []
    count = workers_of(slots, MEMORY)
    with threads(count) as executor:
        return _Run(executor, compiler, runner, [_State(one) for one in asked]).all(count, progress)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What one object is made of: variants of a workload, or its inputs, or the runner."""

    state: "_State | None"
    candidates: tuple[Candidate, ...] = ()

    @property
    def name(self) -> str:
        """What is told of it while it is compiled."""
        if not self.candidates:
            return f"the inputs of {self.state.asked.name}" if self.state else "the runner"
        first, *more = (one.label for one in self.candidates)
        return f"{first} and {len(more)} more" if more else first


@dataclass(slots=True)
class _State:
    """How far a workload is."""

    asked: WorkloadToCompile
    inputs: Path | None = None
    problem: PolicygenError | None = None
    """What is not the fault of a variant."""
    places: dict[str, VariantFunction] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    parked: list[tuple[_Unit, ProcessError]] = field(default_factory=list)
    """Units that were refused before it was known whether base is."""

    @property
    def done(self) -> int:
        """The variants of which it is known what becomes of them."""
        total = len(self.asked.candidates) + 1
        return total if self.problem else len(self.places) + len(self.failed)

    def units(self, size: int) -> Iterator[_Unit]:
        """Its inputs and its variants, base among the first; changed headers have a unit each."""
        yield _Unit(self)
        every = self.asked.candidates
        alone = [one for one in every if one.includes or self.asked.alone]
        shared = [OWN, *(one for one in every if not (one.includes or self.asked.alone))]
        lots = [*batches(shared, size), *batches(alone, 1)]
        yield from (_Unit(self, tuple(lot)) for lot in lots)

    def source(self, lot: Sequence[Candidate]) -> ObjectSource:
        """The text of a unit; no lot is that of the inputs."""
        asked = self.asked
        text = asked.render(lot) if lot else asked.inputs
        before = lot[0].includes if lot else ()
        return ObjectSource(text, (*before, *asked.includes), asked.arch)


@dataclass(slots=True)
class _Run:
    """The units that are being compiled, and what is known so far."""

    executor: Executor
    compiler: MakesObjects
    runner: str
    states: list[_State]
    runs: "dict[Future[Path], _Unit]" = field(default_factory=dict)
    made: Path | None = None
    """The runner."""

    def all(self, slots: int, progress: Progress | None) -> list[CompiledWorkload | PolicygenError]:
        """Compiles until nothing is left to be compiled."""
        total = sum(len(state.asked.candidates) + 1 for state in self.states)
        size = unit_size(total, slots)
        self._submit(_Unit(None))
        for state in self.states:
            for unit in state.units(size):
                self._submit(unit)
        with stopping(lambda: self._kept(total)):
            while self.runs:
                self._tell(progress, total)
                ended, _ = wait(self.runs, TICK if progress else None, FIRST_COMPLETED)
                for future in ended:
                    self._ended(future, self.runs.pop(future))
            self._tell(progress, total)
        return [self._result(state) for state in self.states]

    def _submit(self, unit: _Unit) -> None:
        if unit.state is None:
            arch = self.states[0].asked.arch
            source = ObjectSource(self.runner, (), arch)
        elif unit.state.problem:
            return
        else:
            source = unit.state.source(unit.candidates)
        self.runs[self.executor.submit(self.compiler.make, source)] = unit

    def _ended(self, future: "Future[Path]", unit: _Unit) -> None:
        try:
            path = future.result()
        except ProcessError as error:
            if unit.state is None:
                raise
            self._refused(unit.state, unit, error)
        except OSError as error:
            raise cache_failure(error) from error
        else:
            self._has(unit, path)

    def _has(self, unit: _Unit, path: Path) -> None:
        state = unit.state
        if state is None:
            self.made = path
        elif not unit.candidates:
            state.inputs = path
        else:
            for number, one in enumerate(unit.candidates):
                function = FUNCTION.format(number)
                state.places[one.label] = VariantFunction(one.label, str(path), function)
            if OWN in unit.candidates:
                self._go_on(state)

    def _go_on(self, state: _State) -> None:
        """Base compiles: what was refused before is the fault of its variants."""
        parked, state.parked = state.parked, []
        for unit, error in parked:
            self._divide(state, unit, error)

    def _refused(self, state: _State, unit: _Unit, error: ProcessError) -> None:
        if not unit.candidates or unit.candidates == (OWN,):
            state.problem = error  # a broken header, or too little memory: no variant's fault
        elif BASE in state.places:
            self._divide(state, unit, error)
        else:
            state.parked.append((unit, error))
            if OWN in unit.candidates:
                self._submit(_Unit(state, (OWN,)))

    def _divide(self, state: _State, unit: _Unit, error: ProcessError) -> None:
        """Compiles the others again; of what is refused alone it is told why."""
        named = named_culprits(error)
        if len(unit.candidates) == 1:
            named = {0: reason(error)}
        state.failed |= {unit.candidates[number].label: words for number, words in named.items()}
        rest = [one for n, one in enumerate(unit.candidates) if n not in named and one is not OWN]
        parts = [rest] if named or len(rest) == 1 else halves(rest)
        for part in filter(None, parts):
            self._submit(_Unit(state, tuple(part)))

    def _tell(self, progress: Progress | None, total: int) -> None:
        if progress:
            running = tuple(unit.name for future, unit in self.runs.items() if future.running())
            progress(HowFar(PHASE, self._done, total, running))

    @property
    def _done(self) -> int:
        return sum(state.done for state in self.states)

    def _kept(self, total: int) -> str:
        kept = f"{self._done:,} of {total:,} variants are compiled and kept"
        return f"{kept}: the same command goes on there."

    def _result(self, state: _State) -> CompiledWorkload | PolicygenError:
        if state.problem:
            return state.problem
        assert self.made is not None
        assert state.inputs is not None
        order = [BASE, *(one.label for one in state.asked.candidates)]
        functions = tuple(state.places[label] for label in order if label in state.places)
        failed = {label: state.failed[label] for label in order if label in state.failed}
        return CompiledWorkload(state.inputs, self.made, functions, failed)


MOST = 64
"""Variants of a unit. The headers cost as much as some twenty variants: of scans of CUB 3.6.0, nvcc
13.2 compiled 1 with base in 9 s of a core, 16 in 14 s and 64 in 32 s. What fails is compiled again
in parts, and its cores end later than others: more would gain little."""
One = TypeVar("One")


# How many variants a unit has, so that all cores end together.


def unit_size(variants: int, slots: int) -> int:
    """The variants of a unit, where so many are compiled at once."""
    rounds = max(1, ceil(variants / (slots * MOST)))
    return max(1, ceil(variants / (slots * rounds)))


def batches(lot: Sequence[One], size: int) -> list[Sequence[One]]:
    """Divides a lot into as few parts as fit, whose sizes differ by one at most."""
    count = ceil(len(lot) / size)
    return [lot[i * len(lot) // count : (i + 1) * len(lot) // count] for i in range(count)]


def halves(lot: Sequence[One]) -> list[Sequence[One]]:
    """Divides a lot of two or more in two."""
    middle = (len(lot) + 1) // 2
    return [lot[:middle], lot[middle:]]


KIND = "objects"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",  # as CCCL's benchmarks are built
    "-w",  # what CUB's headers warn of is not the user's
    "-shared",
    "-Xcompiler",
    # Two objects define the same kernels: neither may take the other's for its own, and one that
    # is closed must go.
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


# One shared object of a translation unit, compiled once for what it reads.


def runtime_of(toolchain: Toolchain) -> Path | None:
    """Finds the CUDA runtime as a library of its own; wheels have one with a number alone."""
    folders = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
    for root in toolchain.roots:
        for folder in folders:
            if found := sorted((Path(root) / folder).glob("libcudart.so.*")):
                return found[0]
    return None


def runtime_flags(toolchain: Toolchain) -> list[str]:
    """Links the runtime of the process that loads an object, which all objects there share.

    With one of its own, each would have its own idea of streams and of errors.
    """
    if found := runtime_of(toolchain):
        return ["-cudart", "none", "-Xlinker", f"--no-as-needed,{found}"]
    return ["-cudart", "shared"]


def as_made(data: bytes) -> bytes:
    """An object as it is kept."""
    return _MADE + b"\n" + data


def as_refused(error: RefusedError) -> bytes:
    """What the compiler says, as it is kept."""
    return _REFUSED + b"\n" + error.stderr.encode()


def object_in(folder: Path, key: str, kept: bytes) -> Path:
    """The file of an object that was kept; refused with the compiler's words."""
    kind, _, data = kept.partition(b"\n")
    if kind == _REFUSED:
        raise RefusedError(["nvcc"], 1, data.decode())
    path = folder / f"{digest(key, data)[:32]}.so"
    if not path.exists():
        write_atomically(path, data)
    return path


@dataclass(frozen=True, slots=True)
class ObjectCompiler:
    """What compiles, and where the objects lie that a process loads."""

    toolchain: Toolchain
    folder: Path
    there: Listings

    def make(self, source: ObjectSource) -> Path:
        """Makes an object, or takes the one that is kept; refused with the compiler's words."""
        listing = self.there.of(source.includes)
        key = digest(self.toolchain.identity, *source.flags, source.text, listing)
        paths = (*source.includes, *self.toolchain.roots)
        kept = remembered(KIND, key, paths, lambda: self._made(source, key))
        return object_in(self.folder, key, kept)

    def _made(self, source: ObjectSource, key: str) -> Made:
        """Compiles; that a unit is refused for what it says is kept, too."""
        cache = cache_folder()
        with unit_file(source.text, cache) as unit:
            folder, made = unit.parent, unit.with_suffix(".so")
            folders = (f"-I{one}" for one in source.includes)
            linked = runtime_flags(self.toolchain)
            command = [str(self.toolchain.nvcc), *source.flags, *linked, *folders]
            try:
                compile_file(command, unit, made, cache, key, "--keep", "--keep-dir", str(folder))
                found = as_made(made.read_bytes())
            except RefusedError as error:
                if not is_said_of_code(error):
                    raise
                found = as_refused(error)
            preprocessed = b"".join(path.read_bytes() for path in sorted(folder.glob("*.ii")))
            check_unnamed(preprocessed, unit)
            return Made(found, preprocessed, unit)


def is_said_of_code(error: RefusedError) -> bool:
    """Whether a compiler refuses what it read, and would again; not for want of memory or disk."""
    lines = _PTXAS.findall(error.stderr)
    return any(_LIMIT in words for _, words in lines) or error.has_place


def reason(error: ProcessError) -> str:
    """What the compiler says of a unit, in a line."""
    if not isinstance(error, RefusedError):
        return visible(". ".join(part for part in (error.stderr.strip(), error.remedy) if part))
    found = _PTXAS.search(error.stderr)
    return visible(f"ptxas: it {found[2]}" if found and found[1] else error.first)


def named_culprits(error: ProcessError) -> dict[int, str]:
    """The variants of a unit whose kernels the assembler refuses by name, with its words."""
    if not isinstance(error, RefusedError):
        return {}
    return {
        int(number[1]): visible(f"ptxas: it {words}")
        for kernel, words in _PTXAS.findall(error.stderr)
        if (number := _SELECTOR.search(kernel))
    }
