"""The benchmarks of a CCCL checkout, with what a variant of one is to CCCL's build."""

import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from threading import Lock

from policygen.bindings.load import axis_type, is_constant
from policygen.cache import digest
from policygen.errors import InputError, MissingToolError, Problems, ProcessError, SourceError
from policygen.gpu.compiling import is_said_of_code, reason
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
from policygen.model.trees import Cub
from policygen.model.workload import BASE, axis_name, in_words, parse_label, shortened
from policygen.paths import cache_folder, write_atomically
from policygen.process import threads
from policygen.proof.compile import (
    Listings,
    Made,
    RefusedError,
    compile_file,
    remembered,
    unit_file,
)
from policygen.proof.kernel_calls import BASE_MACROS, HEADER, PACKAGE, benchmark_text, type_of
from policygen.proof.kernel_units import workers_of
from policygen.proof.toolchain import Toolchain, program
from policygen.results.tables import DeclaredAxes
from policygen.steps import HowFar, Progress, follow
from policygen.trees.lookup import open_tree


@dataclass(frozen=True, slots=True)
class CheckoutBenchmark:
    """A benchmark's source, and what of it can be narrowed."""

    benchmark: Benchmark
    source: Path
    """Below the folder of the benchmarks."""
    narrowed: frozenset[str]
    """The axes that a macro leaves one type of."""

    @property
    def declared(self) -> DeclaredAxes:
        """All values of its axes."""
        return {
            (self.benchmark.name, sub.name, axis.name): axis.values
            for sub in self.benchmark.subbenches
            for axis in sub.axes
        }

    def macros(self, label: str) -> dict[str, str]:
        """What the build defines for a variant; refused where a parameter is lacking, or more."""
        if label == BASE:
            return BASE_MACROS
        values = parse_label(label)
        if values is None:
            raise InputError(f"{shortened(label)} is no variant label", "Such as: ipt_19.tpb_512")
        known = [one.label for one in self.benchmark.parameters]
        if set(values) != set(known):
            raise InputError(
                f"{label} is no variant of {self.benchmark.name}, whose parameters are"
                f" {', '.join(known) or 'none'}",
                f"{self.benchmark.source} has them in its %RANGE% lines.",
            )
        return {one.macro: str(values[one.label]) for one in self.benchmark.parameters}

    def workload(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """A value for each axis of compile time, as the source names the axes."""
        axes = self.benchmark.ct_axes
        given = {axis_name(axis): value for axis, value in chosen.items()}
        if unknown := sorted(given.keys() - {axis_name(axis) for axis in axes}):
            raise InputError(
                f"{self.benchmark.name} has no axis {unknown[0]}",
                f"It has: {', '.join(map(axis_name, axes)) or 'none'}",
            )
        found = {axis: given.get(axis_name(axis), values[0]) for axis, values in axes.items()}
        for axis, values in axes.items():
            if axis_name(axis) not in given and len(values) > 1:
                raise InputError(
                    f"{in_words(self.benchmark.name, chosen)} is no workload: it has no value of"
                    f" {axis_name(axis)}",
                    f"It is one of: {', '.join(values)}",
                )
            if found[axis] not in values:
                raise InputError(
                    f"{self.benchmark.name}: {axis_name(axis)} has no value {found[axis]}",
                    f"It has: {', '.join(values)}",
                )
        return found

    def text(self, label: str, workload: Mapping[str, str], version: str) -> str:
        """Writes the unit of a variant for a workload, narrowed as far as it goes."""
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
    """Of the benchmarks."""
    helper: Path
    """`nvbench_helper.cu`, which is linked with each of them."""
    benchmarks: Mapping[str, CheckoutBenchmark]

    @property
    def includes(self) -> tuple[str, ...]:
        """The folders in which its sources look for headers."""
        return (*self.cub.include_folders, str(self.folder), str(self.helper.parent))


def open_checkout(path: Path, pattern: re.Pattern[str]) -> BenchmarkCheckout:
    """Reads the benchmarks of a checkout whose names begin so."""
    root = checkout(path)
    errors: list[SourceError] = []
    found = [file for file in find(root, errors) if pattern.match(file.name)]
    if not found and not errors:
        raise InputError(
            f"-R {pattern.pattern!r} matches the beginning of no benchmark's name in"
            f" {root.as_posix()}"
        )
    document, unread = read_benchmarks([file.path for file in found])
    if errors or unread:
        raise Problems([*errors, *unread])
    by_name = {one.name: one for one in document.benchmarks}
    macros, folder = narrowing(found), benchmarks_folder(root)
    benchmarks = {
        file.name: CheckoutBenchmark(
            by_name[file.name], file.path.relative_to(folder), macros.get(file.name, frozenset())
        )
        for file in found
    }
    return BenchmarkCheckout(open_tree(root), folder, _helper(root), benchmarks)


def _helper(root: Path) -> Path:
    places = [(root / one).with_suffix(".cu") for one in knowledge().files.helpers]
    for place in places:
        if place.is_file():
            return place
    raise InputError(
        f"{root.as_posix()} has no {places[0].name}",
        "Its benchmarks are linked with it: is this a whole CCCL checkout?",
    )


KIND = "programs"
PHASE = "building benchmarks"
FLAGS = (
    "-std=c++17",
    "-O3",
    "-DNDEBUG",  # CCCL refuses to build benchmarks otherwise
    "-w",  # what CCCL's sources warn of is not the user's
    "--extended-lambda",
)
PLACES = ("-Xlinker", "--allow-shlib-undefined", "-Xlinker", "--disable-new-dtags")
"""NVBench needs the driver's library, which where programs are built may be missing; and its
libraries need each other, which are found by the program's own places."""
EXECUTABLE = 0o755


@dataclass(frozen=True, slots=True)
class BuiltPrograms:
    """The programs of a workload of a benchmark."""

    programs: Mapping[str, Path]
    """By label, `base` among them."""
    failed: Mapping[str, str]
    """Variant → what the compiler says of it."""


@dataclass(frozen=True, slots=True)
class NvbenchLibrary:
    """Where NVBench and cuRAND are."""

    includes: tuple[str, ...]
    main: Path
    """`main` of a benchmark's program."""
    shared: tuple[Path, ...]
    """NVBench, and cuRAND, which makes random inputs."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Where a program finds its libraries when it runs."""
        return tuple(dict.fromkeys(str(one.parent) for one in self.shared))

    @property
    def identity(self) -> str:
        """Names what is linked, and where a program finds it."""
        return " ".join((*map(program, (self.main, *self.shared)), *self.folders))


@dataclass(frozen=True, slots=True)
class ProgramCompiler:
    """What builds, for one architecture, and where the programs lie."""

    toolchain: Toolchain
    library: NvbenchLibrary
    checkout: BenchmarkCheckout
    arch: str
    folder: Path
    there: Listings = field(default_factory=Listings)
    _helping: Lock = field(default_factory=Lock)

    def make(self, benchmark: CheckoutBenchmark, label: str, workload: Mapping[str, str]) -> Path:
        """Builds a program, or takes the one that is kept; it is called as CCCL calls it."""
        text = benchmark.text(label, workload, self.checkout.cub.bindings)
        helper = self.helper()
        linked = [str(helper), str(self.library.main), *PLACES]
        for one in self.library.shared:
            linked += ["-Xlinker", str(one)]
        for folder in self.library.folders:
            linked += ["-Xlinker", f"-rpath={folder}"]
        data = self._kept(text, linked, f"{helper.name} {self.library.identity}")
        kind = "base" if label == BASE else "variant"
        place = self.folder / digest(data)[:32] / f"{benchmark.benchmark.name}.{kind}"
        return _written(place, data, EXECUTABLE)

    def helper(self) -> Path:
        """Compiles what all programs are linked with."""
        with self._helping:  # who comes later takes what the first has made
            data = self._kept(f'#include "{self.checkout.helper.name}"\n', ["-c"], "")
            return _written(self.folder / f"{digest(data)[:32]}.o", data)

    def _kept(self, text: str, more: Sequence[str], linked: str) -> bytes:
        """What is made of a unit with these options; refused with the compiler's words."""
        includes = (*self.checkout.includes, *self.library.includes)
        number = arch_number(self.arch)
        flags = [*FLAGS, "-gencode", f"arch=compute_{number},code=sm_{number}"]
        command = [str(self.toolchain.nvcc), *flags, *(f"-I{one}" for one in includes), *more]
        listing = self.there.of(includes)
        key = digest(self.toolchain.identity, *flags, text, linked, listing)
        cache, paths = cache_folder(), (*includes, *self.toolchain.roots)

        def made() -> Made:
            with unit_file(text, cache) as unit:
                out = unit.with_suffix(".out")
                compile_file(command, unit, out, cache, key, "--keep", "--keep-dir", ".")
                read = b"".join(path.read_bytes() for path in sorted(unit.parent.glob("*.ii")))
                return Made(out.read_bytes(), read, unit)

        return remembered(KIND, key, paths, made)


# Builds programs of a checkout's benchmarks, base and variants, each once for what it reads.


def build_programs(
    compiler: ProgramCompiler,
    benchmark: CheckoutBenchmark,
    workload: Mapping[str, str],
    labels: Sequence[str],
    *,
    slots: int | None = None,
    progress: Progress | None = None,
) -> BuiltPrograms:
    """Builds base and variants side by side; one that is refused costs itself alone.

    `slots` is how many are built at once: by default as many as cores and memory allow.
    """
    wanted = list(dict.fromkeys([BASE, *labels]))
    if progress:
        progress(HowFar(PHASE, 0, len(wanted), (compiler.checkout.helper.name,)))
    compiler.helper()

    def one(label: str) -> Path | str:
        try:
            return compiler.make(benchmark, label, workload)
        except ProcessError as error:
            of_machine = isinstance(error, RefusedError) and not is_said_of_code(error)
            if label == BASE or of_machine:
                raise
            return reason(error)  # also where the compiler does not end, or takes all memory

    plain = {axis_name(axis): value for axis, value in workload.items()}
    name = in_words(benchmark.benchmark.name, plain)
    with threads(workers_of(slots)) as executor:
        futures: dict[Future[Path | str], str] = {
            executor.submit(one, label): label for label in wanted
        }
        names = {future: f"{label} of {name}" for future, label in futures.items()}
        follow(names, PHASE, progress)
    made = {label: future.result() for future, label in futures.items()}
    return BuiltPrograms(
        {label: path for label, path in made.items() if isinstance(path, Path)},
        {label: words for label, words in made.items() if isinstance(words, str)},
    )


def _written(place: Path, data: bytes, mode: int = 0o644) -> Path:
    if not place.exists():
        write_atomically(place, data)
    if place.stat().st_mode & mode != mode:
        place.chmod(mode)
    return place


LIBRARY, MAIN = "libnvbench.so", "libnvbench_main.a"
CURAND, CURAND_HEADER = "libcurand.so*", "curand.h"
_LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


# Finds what CCCL's own benchmarks are linked with: NVBench and cuRAND, for the release of nvcc.


def find_library(toolchain: Toolchain, folder: Path | None = None) -> NvbenchLibrary:
    """Finds NVBench in the folder that it was installed to, else in its wheel."""
    prefix = _installed(toolchain) if folder is None else _given(folder)
    main, library = (_of(prefix, name) for name in (MAIN, LIBRARY))
    assert main is not None
    assert library is not None
    header, curand = _curand(toolchain)
    return NvbenchLibrary((str(prefix / "include"), str(header)), main, (library, curand))


def _given(folder: Path) -> Path:
    if _is_whole(folder):
        return folder
    raise InputError(
        f"{folder} is no installed NVBench: it has no include/{HEADER}, lib/{LIBRARY} and"
        f" lib/{MAIN}",
        "Build it, and name what `cmake --install` wrote; or leave the option out.",
    )


def _installed(toolchain: Toolchain) -> Path:
    """The wheel has NVBench for each major release of CUDA."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    pattern = f"{_major(toolchain)}/nvbench/include/{HEADER}"
    for file in files:
        if file.match(pattern):
            prefix = Path(str(file.locate())).parents[2]
            if _is_whole(prefix):
                return prefix
    raise MissingToolError(
        f"NVBench for CUDA {toolchain.version.partition('.')[0]}", f"Install it: {add('measure')}"
    )


def _is_whole(prefix: Path) -> bool:
    return (prefix / "include" / HEADER).is_file() and all(
        _of(prefix, name) is not None for name in (LIBRARY, MAIN)
    )


def _curand(toolchain: Toolchain) -> tuple[Path, Path]:
    """The folder of its header, and the library: of the toolkit, else of the wheel."""
    for root in _roots(toolchain):
        header, library = root / "include" / CURAND_HEADER, _of(root, CURAND)
        if header.is_file() and library is not None:
            return header.parent, library
    raise MissingToolError("cuRAND", f"Install it: {add('measure')}")


def _roots(toolchain: Toolchain) -> Iterator[Path]:
    yield from map(Path, toolchain.roots)
    wheels = Path(sysconfig.get_path("purelib")) / "nvidia"
    yield wheels / _major(toolchain)
    yield wheels / "curand"  # where the wheels for CUDA 12 have it


def _major(toolchain: Toolchain) -> str:
    return f"cu{toolchain.version.partition('.')[0]}"


def _of(root: Path, pattern: str) -> Path | None:
    found = (path for folder in _LIBRARIES for path in sorted((root / folder).glob(pattern)))
    return next((path for path in found if path.is_file()), None)
