"""Makes units of CCCL's own benchmarks, for one workload each where they can be narrowed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from policygen.bindings.load import axis_type, is_constant
from policygen.model.bindings import BenchmarkBinding
from policygen.model.cub import Cub
from policygen.model.workload import Point, point_of
from policygen.proof.probe import workloads
from policygen.proof.sass.calls import Wanted, wanted_benchmarks
from policygen.proof.sass.unit_job import UnitHeaders
from policygen.proof.sites import matches
from policygen.proof.unit import Workload, axis_headers
from policygen.rendering import fill

TEMPLATE = "sass/benchmark.cu.j2"
OPTIONS = ("--extended-lambda",)
BASE_MACROS = {"TUNE_BASE": "1"}
"""What CCCL's build defines for what CUB selects by itself."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where CCCL keeps its benchmarks, and what they include beside CUB."""

    folder: Path
    files: Mapping[str, Path]
    """By the name of the benchmark."""
    narrowing: Mapping[str, frozenset[str]]
    """The axes of each that can be narrowed to one type."""
    includes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkSource:
    """A benchmark's source, narrowed."""

    text: str
    includes: tuple[str, ...]
    scope: str
    """What the names of its kernels mention; those of NVBench and Thrust do not."""

    def headers(self, arch: str) -> UnitHeaders:
        """Takes the whole source: what it includes may stand anywhere."""
        return UnitHeaders(self.text, self.includes, arch, OPTIONS)


def sources(
    cub: Cub, includes: tuple[str, ...], wanted: Wanted, checkout: Checkout
) -> dict[Point, BenchmarkSource]:
    """Makes the sources of all workloads that are wanted, each once for what it can be asked.

    What a source is not narrowed by, it has all of: its other types, and those of the other axes.
    """
    found: dict[Point, BenchmarkSource] = {}
    folders = (*includes, str(checkout.folder), *checkout.includes)
    for site, benchmark in wanted_benchmarks(cub, wanted):
        path = checkout.files.get(benchmark.name)
        if path is None:
            continue
        axes = _narrowing(benchmark, checkout)
        for workload in workloads(benchmark, cub.bindings):
            if matches(workload, wanted.axes):
                values = {axis: text for axis, text in workload.values.items() if axis in axes}
                point = point_of(benchmark.name, values)
                if point not in found:
                    text = _render(benchmark, axes, values, cub.bindings, path, checkout.folder)
                    found[point] = BenchmarkSource(text, folders, site.namespace)
    return found


def absent(cub: Cub, wanted: Wanted, checkout: Checkout) -> list[str]:
    """Lists benchmarks that are bound, and that the checkout does not have."""
    return sorted(
        benchmark.name
        for _, benchmark in wanted_benchmarks(cub, wanted)
        if benchmark.name not in checkout.files
    )


def _narrowing(benchmark: BenchmarkBinding, checkout: Checkout) -> dict[str, str]:
    """Finds the axes that a macro of the source narrows, with what the source calls them."""
    macros = checkout.narrowing.get(benchmark.name, frozenset())
    names = {axis: {axis, benchmark.renamed.get(axis, axis)} & macros for axis in benchmark.axes}
    return {axis: min(found) for axis, found in names.items() if found}


def _render(
    benchmark: BenchmarkBinding,
    axes: Mapping[str, str],
    values: Mapping[str, str],
    version: str,
    path: Path,
    folder: Path,
) -> str:
    headers = axis_headers(Workload(benchmark, values), version)
    types = {axes[axis]: type_of(text, version) for axis, text in values.items()}
    return benchmark_text(path.relative_to(folder), BASE_MACROS, types, headers)


def benchmark_text(
    source: Path, macros: Mapping[str, str], types: Mapping[str, str], headers: Iterable[str]
) -> str:
    """Writes a unit of a benchmark's source, which stands below a folder of includes."""
    return fill(
        TEMPLATE,
        {
            "macros": macros,
            "includes": sorted(set(headers)),
            "narrowed": types,
            "source": source.as_posix(),
        },
        trim=False,
    )


def type_of(text: str, version: str) -> str:
    """Spells a value as a type: a benchmark's axes are lists of types."""
    if is_constant(text):
        return f"::cuda::std::integral_constant<decltype({text}), {text}>"
    return axis_type(text, version).cpp
