"""The benchmarks of a CCCL checkout, and how a variant of one is built."""

import re
import sysconfig
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from policygen.bindings.load import axis_type, is_constant
from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, Problems, ProcessError, SourceError
from policygen.gpu.compiling import is_code_error, library_in, reason
from policygen.headers.benchmark_sources import (
    benchmarks_folder,
    checkout,
    find,
    narrowing,
    read_benchmarks,
)
from policygen.headers.search_space import knowledge
from policygen.installation import add
from policygen.model.arch import arch_number
from policygen.model.benchmarks import Benchmark
from policygen.model.trees import BoundVersion, Cub
from policygen.model.workload import BASE, axis_name, in_words, parse_label, shortened
from policygen.paths import cache_folder, write_atomically
from policygen.process import threads, workers_of
from policygen.proof.compile import (
    Listings,
    Made,
    RefusedError,
    compile_file,
    remembered,
    unit_file,
)
from policygen.proof.kernel_calls import (
    BASE_MACROS,
    HEADER,
    benchmark_text,
    installed_headers,
    type_of,
)
from policygen.proof.toolchain import Toolchain, program
from policygen.results.tables import DeclaredAxes
from policygen.steps import HowFar, Progress, follow
from policygen.trees.lookup import open_tree


@dataclass(frozen=True, slots=True)
class CheckoutBenchmark:
    """A benchmark's source and the axes that can be narrowed."""

    benchmark: Benchmark
    source: Path
    """Path below the benchmarks folder."""
    narrowed: frozenset[str]
    """Axes that a macro narrows to one type."""

    @property
    def declared(self) -> DeclaredAxes:
        """All declared values of its axes."""
        return {
            (self.benchmark.name, subbench.name, axis.name): axis.values
            for subbench in self.benchmark.subbenches
            for axis in subbench.axes
        }

    def macros(self, label: str) -> dict[str, str]:
        """Return the macros of a variant; raise InputError if its parameters do not match."""
        if label == BASE:
            return BASE_MACROS
        values = parse_label(label)
        if values is None:
            raise InputError(
                f"{shortened(label)} is not a variant label", "For example: ipt_19.tpb_512"
            )
        parameters = self.benchmark.parameters
        labels = [parameter.label for parameter in parameters]
        if set(values) != set(labels):
            raise InputError(
                f"{label} is not a variant of {self.benchmark.name}, which has the parameters"
                f" {', '.join(labels) or 'none'}",
                f"{self.benchmark.source} has them in its %RANGE% lines.",
            )
        return {parameter.macro: str(values[parameter.label]) for parameter in parameters}

    def text(self, label: str, workload: Mapping[str, str], version: BoundVersion) -> str:
        """Return the unit of a variant for a workload, narrowed as far as possible."""
        types: dict[str, str] = {}
        headers: list[str] = []
        for axis, value in workload.items():
            name = axis_name(axis)
            if name in self.narrowed and len(self.benchmark.ct_axes[axis]) > 1:
                types[name] = type_of(value, version)
                if not is_constant(value) and (header := axis_type(value, version).header):
                    headers.append(header)
        return benchmark_text(self.source, self.macros(label), types, headers)


@dataclass(frozen=True, slots=True)
class BenchmarkCheckout:
    """A CCCL checkout whose benchmarks can be built."""

    cub: Cub
    folder: Path
    """The benchmarks folder."""
    helper: Path
    """`nvbench_helper.cu`, which is linked with each benchmark."""
    benchmarks: Mapping[str, CheckoutBenchmark]

    @property
    def includes(self) -> tuple[str, ...]:
        """Include folders of its sources."""
        return (*self.cub.include_folders, str(self.folder), str(self.helper.parent))


def open_checkout(path: Path, pattern: re.Pattern[str]) -> BenchmarkCheckout:
    """Read the benchmarks of a checkout whose names match a pattern."""
    root = checkout(path)
    errors: list[SourceError] = []
    files = [file for file in find(root, errors) if pattern.match(file.name)]
    if not files and not errors:
        raise InputError(
            f"-R {pattern.pattern!r} does not match the start of any benchmark's name in"
            f" {root.as_posix()}"
        )
    document, unread = read_benchmarks([file.path for file in files])
    if errors or unread:
        raise Problems([*errors, *unread])
    by_name = {benchmark.name: benchmark for benchmark in document.benchmarks}
    macros, folder = narrowing(files), benchmarks_folder(root)
    benchmarks = {}
    for file in files:
        source, narrowed = file.path.relative_to(folder), macros.get(file.name, frozenset())
        benchmarks[file.name] = CheckoutBenchmark(by_name[file.name], source, narrowed)
    return BenchmarkCheckout(open_tree(root), folder, _helper(root), benchmarks)


def _helper(root: Path) -> Path:
    paths = [(root / helper).with_suffix(".cu") for helper in knowledge().files.helpers]
    for path in paths:
        if path.is_file():
            return path
    raise InputError(
        f"{root.as_posix()} has no {paths[0].name}",
        "Its benchmarks link with it; check whether this CCCL checkout is complete.",
    )


KIND = "programs"
PHASE = "building benchmarks"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",  # CCCL refuses to build benchmarks otherwise
    "-w",  # warnings in CCCL's sources do not concern the user
    "--extended-lambda",
)
PLACES = ("-Xlinker", "--allow-shlib-undefined", "-Xlinker", "--disable-new-dtags")
"""NVBench needs the driver library, which may be missing on the build machine. Its libraries depend
on each other and are found through the program's RPATH.
"""
EXECUTABLE = 0o755


@dataclass(frozen=True, slots=True)
class BuiltPrograms:
    """The programs of a workload of a benchmark."""

    programs: Mapping[str, Path]
    """Programs by label, including `base`."""
    failed: Mapping[str, str]
    """Variant → the compiler's message."""


@dataclass(frozen=True, slots=True)
class NvbenchLibrary:
    """Paths of NVBench and cuRAND."""

    includes: tuple[str, ...]
    main: Path
    """Library with `main` of a benchmark program."""
    shared: tuple[Path, ...]
    """NVBench, and cuRAND for random inputs."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders in which a program finds its libraries at run time."""
        return tuple(dict.fromkeys(str(library.parent) for library in self.shared))

    @property
    def identity(self) -> str:
        """Identity of the linked libraries and their folders."""
        return " ".join((*map(program, (self.main, *self.shared)), *self.folders))


@dataclass(frozen=True, slots=True)
class ProgramCompiler:
    """Builds programs for one architecture into a folder."""

    toolchain: Toolchain
    library: NvbenchLibrary
    checkout: BenchmarkCheckout
    arch: str
    folder: Path
    there: Listings = field(default_factory=Listings)
    _helping: Lock = field(default_factory=Lock)

    def make(self, benchmark: CheckoutBenchmark, label: str, workload: Mapping[str, str]) -> Path:
        """Build a program or take it from the cache, with the file name that CCCL uses."""
        text = benchmark.text(label, workload, self.checkout.cub.bindings)
        helper = self.helper()
        link_options = [str(helper), str(self.library.main), *PLACES]
        for library in self.library.shared:
            link_options += ["-Xlinker", str(library)]
        for folder in self.library.folders:
            link_options += ["-Xlinker", f"-rpath={folder}"]
        data = self._cached(text, link_options, f"{helper.name} {self.library.identity}")
        kind = "base" if label == BASE else "variant"
        path = self.folder / digest(data)[:32] / f"{benchmark.benchmark.name}.{kind}"
        return _write_program(path, data, EXECUTABLE)

    def helper(self) -> Path:
        """Compile the helper that all programs are linked with."""
        with self._helping:  # later callers reuse the first result
            data = self._cached(f'#include "{self.checkout.helper.name}"\n', ["-c"], "")
            return _write_program(self.folder / f"{digest(data)[:32]}.o", data)

    def _cached(self, text: str, options: Sequence[str], linked: str) -> bytes:
        """Return the output for a unit, compiled or cached; raise RefusedError on an error."""
        includes = (*self.checkout.includes, *self.library.includes)
        number = arch_number(self.arch)
        flags = [*FLAGS, "-gencode", f"arch=compute_{number},code=sm_{number}"]
        folders = (f"-I{folder}" for folder in includes)
        command = [str(self.toolchain.nvcc), *flags, *folders, *options]
        listing = self.there.of(includes)
        key = digest(self.toolchain.identity, *flags, text, linked, listing)
        cache, paths = cache_folder(), (*includes, *self.toolchain.roots)

        def made() -> Made:
            with unit_file(text, cache) as unit:
                output = unit.with_suffix(".out")
                compile_file(command, unit, output, cache, key, "--keep", "--keep-dir", ".")
                preprocessed = (path.read_bytes() for path in sorted(unit.parent.glob("*.ii")))
                return Made(output.read_bytes(), b"".join(preprocessed), unit)

        return remembered(KIND, key, paths, made)


# Building programs


def build_programs(
    compiler: ProgramCompiler,
    benchmark: CheckoutBenchmark,
    workload: Mapping[str, str],
    labels: Sequence[str],
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> BuiltPrograms:
    """Build the baseline and variants in parallel; a variant that fails to compile fails alone.

    `slots` is the number built at once; by default as many as cores and memory allow.
    """
    all_labels = list(dict.fromkeys([BASE, *labels]))
    if progress:
        progress(HowFar(PHASE, 0, len(all_labels), (compiler.checkout.helper.name,)))
    compiler.helper()

    def build(label: str) -> Path | str:
        try:
            return compiler.make(benchmark, label, workload)
        except ProcessError as error:
            is_machine_fault = isinstance(error, RefusedError) and not is_code_error(error)
            if label == BASE or is_machine_fault:
                raise
            return reason(error)  # also if the compiler hangs or exhausts memory

    plain = {axis_name(axis): value for axis, value in workload.items()}
    name = in_words(benchmark.benchmark.name, plain)
    with threads(workers_of(slots)) as executor:
        futures: dict[Future[Path | str], str] = {
            executor.submit(build, label): label for label in all_labels
        }
        names = {future: f"{label} of {name}" for future, label in futures.items()}
        follow(names, PHASE, progress)
    results = {label: future.result() for future, label in futures.items()}
    return BuiltPrograms(
        {label: path for label, path in results.items() if isinstance(path, Path)},
        {label: message for label, message in results.items() if isinstance(message, str)},
    )


def _write_program(path: Path, data: bytes, mode: int = 0o644) -> Path:
    if not path.exists():
        write_atomically(path, data)
    if path.stat().st_mode & mode != mode:
        path.chmod(mode)
    return path


LIBRARY, MAIN = "libnvbench.so", "libnvbench_main.a"
CURAND, CURAND_HEADER = "libcurand.so*", "curand.h"


# NVBench and cuRAND for the release of nvcc


def find_library(toolchain: Toolchain) -> NvbenchLibrary:
    """Find NVBench in its wheel, and cuRAND."""
    prefix = nvbench_prefix(toolchain)
    main, library = (library_in(prefix, name) for name in (MAIN, LIBRARY))
    assert main is not None
    assert library is not None
    header, curand = _curand(toolchain)
    return NvbenchLibrary((str(prefix / "include"), str(header)), main, (library, curand))


def nvbench_prefix(toolchain: Toolchain) -> Path:
    """Find NVBench for the toolkit's release in its wheel."""
    for header in installed_headers():
        prefix = header.parents[2]
        libraries = [library_in(prefix, name) for name in (LIBRARY, MAIN)]
        if header.match(f"{_major(toolchain)}/nvbench/include/{HEADER}") and all(libraries):
            return prefix
    raise MissingToolError(
        f"NVBench for CUDA {toolchain.version.partition('.')[0]}", f"Install it: {add('measure')}"
    )


def _curand(toolchain: Toolchain) -> tuple[Path, Path]:
    """Return cuRAND's include folder and library, from the toolkit or the wheel."""
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    # Those for CUDA 12 have it in a folder of its own.
    for root in (*map(Path, toolchain.roots), wheels / _major(toolchain), wheels / "curand"):
        header, library = root / "include" / CURAND_HEADER, library_in(root, CURAND)
        if header.is_file() and library is not None:
            return header.parent, library
    raise MissingToolError("cuRAND", f"Install it: {add('measure')}")


def _major(toolchain: Toolchain) -> str:
    return f"cu{toolchain.version.partition('.')[0]}"
