"""Builds programs of a checkout's benchmarks, base and variants, each once for what it reads."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from policygen.cache import digest
from policygen.errors import ProcessError
from policygen.measure.checkout import BenchmarkCheckout, CheckoutBenchmark
from policygen.measure.nvbench_library import NvbenchLibrary
from policygen.measure.objects import is_said_of_code, reason
from policygen.model.arch import arch_number
from policygen.model.labels import BASE
from policygen.model.workload import axis_name, in_words
from policygen.paths import cache_folder, write_atomically
from policygen.process import threads
from policygen.proof.compile import RefusedError, compile_file, unit_file
from policygen.proof.deps import Listings, Made, remembered
from policygen.proof.sass.compiler import workers_of
from policygen.proof.toolchain import Toolchain
from policygen.steps import HowFar, Progress, follow

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
