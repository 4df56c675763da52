"""Makes units that call the device API, one for each workload."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

from policygen.bindings.load import axis_type, bound, is_constant
from policygen.bindings.words import table_number
from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.trees import Cub, Library
from policygen.model.workload import Point, point_of
from policygen.paths import write_atomically
from policygen.proof.kernel_build import UnitHeaders
from policygen.proof.probe import workloads
from policygen.proof.sites import matches, sites_of
from policygen.proof.units import Workload, axis_declaration, axis_headers
from policygen.rendering import fill

TEMPLATES: Mapping[Library, str] = {"cub": "sass/call.cu.j2", "rocprim": "sass/call.hip.j2"}


class WorkloadUnit(Protocol):
    """A translation unit that makes kernels of a workload, in one tree."""

    @property
    def text(self) -> str:
        """The translation unit."""

    @property
    def scope(self) -> str | None:
        """The namespace that all its kernels mention; others, if any, are of no interest."""

    def headers(self, arch: str) -> UnitHeaders:
        """Gives what decides, beside the text, what it compiles to for an architecture."""


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """Calls the device API for a workload, and nothing else."""

    site: Site
    workload: Workload
    version: str
    includes: tuple[str, ...]
    library: Library = "cub"

    @property
    def scope(self) -> None:
        """It has no other kernels."""

    @property
    def text(self) -> str:
        """The translation unit."""
        call, values = self.workload.call, self.workload.values
        assert isinstance(call, BenchmarkBinding)
        # An axis that nothing mentions would make two units of the same one.
        written = " ".join(
            (*call.roles.values(), *call.constants.values(), call.algorithm_call or "")
        )
        # Some libraries have numbers among the arguments of what is tuned.
        given = ((role, cpp, cpp.removeprefix("axis::")) for role, cpp in call.roles.items())
        numbers = {role: cpp for role, cpp, axis in given if is_constant(values.get(axis, ""))}
        mentioned = set(re.findall(r"\baxis::(\w+)", written)) & call.axes.keys()
        return self._fill(
            axes=[axis_declaration(a, values[a], self.version) for a in values if a in mentioned],
            roles={role: cpp for role, cpp in call.roles.items() if role not in numbers},
            constants={**numbers, **call.constants},
            call=call.algorithm_call,
        )

    def headers(self, arch: str) -> UnitHeaders:
        """Leaves out the call: what both sides' headers make of the rest decides alone."""
        text = self._fill(axes=[], roles={}, constants={}, call=None)
        # Else a table by hand gives all architectures the config of those that it does not know.
        told = (f"-DROCPRIM_TARGET_ARCH={table_number(arch)}",) if self.site.table else ()
        return UnitHeaders(text, self.includes, arch, told)

    def _fill(self, **more: object) -> str:
        call = self.workload.call
        assert isinstance(call, BenchmarkBinding)
        # Those of the site in its order: some headers do not include what they use.
        called = [call.call_header] if call.call_header else []
        axes = sorted(axis_headers(self.workload, self.version))
        includes = list(dict.fromkeys((*self.site.includes, *called, *axes)))
        namespaces = self.site.namespace.split("::")
        return fill(
            TEMPLATES[self.library],
            {"includes": includes, "namespaces": namespaces, **more},
            trim=False,
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which workloads are asked about."""

    pattern: re.Pattern[str]
    axes: Mapping[str, frozenset[str]]
    headers: frozenset[str] | None = None
    """Of these tuning headers alone."""


def calls(cub: Cub, includes: tuple[str, ...], wanted: Wanted) -> dict[Point, DeviceCall]:
    """Makes the calls of all workloads that are wanted; benchmarks without one are left out."""
    found = {}
    for site, benchmark in wanted_benchmarks(cub, wanted):
        if not _why_not(site, benchmark):
            for workload in workloads(benchmark, cub.bindings):
                if matches(workload, wanted.axes):
                    unit = DeviceCall(site, workload, cub.bindings, includes, cub.library)
                    found[workload.point] = unit
    return found


def without_call(cub: Cub, wanted: Wanted) -> dict[str, str]:
    """Lists benchmarks that no unit can be made of, and why."""
    found = ((one.name, _why_not(site, one)) for site, one in wanted_benchmarks(cub, wanted))
    return {name: why for name, why in sorted(found) if why}


def _why_not(site: Site, benchmark: BenchmarkBinding) -> str:
    if site.targets:
        return "has configs for targets, which one compile makes kernels for side by side"
    return "" if benchmark.algorithm_call else "has no call in its binding"


def wanted_benchmarks(cub: Cub, wanted: Wanted) -> Iterator[tuple[Site, BenchmarkBinding]]:
    """Finds the benchmarks of a tree that are wanted, with their sites."""
    for algorithm in bound(cub.bindings):
        for site in sites_of(algorithm, cub.dialect):
            if wanted.headers is None or site.header in wanted.headers:
                for benchmark in algorithm.benchmarks:
                    if benchmark.site == site.name and wanted.pattern.match(benchmark.name):
                        yield site, benchmark


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


# Makes units of CCCL's own benchmarks, for one workload each where they can be narrowed.


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


PACKAGE = "cuda-bench"
HEADER = Path("nvbench") / "nvbench.cuh"
CONFIGURED = Path("nvbench") / "config.cuh"
# #cmakedefine NVBENCH_HAS_CUPTI
_CHOICE = re.compile(r"^#cmakedefine\b.*$", re.M)


# Finds NVBench's headers, which CCCL's own benchmarks include.


def find_nvbench(folder: Path | None, cache: Path) -> tuple[str, ...]:
    """Finds its include folders: of a checkout or an installation, else of the extra."""
    if folder is None:
        return (str(_installed()),)
    for candidate in (folder, folder / "include"):
        if (candidate / HEADER).is_file():
            return (*_configured(candidate, cache), str(candidate))
    raise InputError(
        f"{folder} is no NVBench: it has no {HEADER}",
        "Name a checkout, or what it was installed to.",
    )


def _installed() -> Path:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.match(f"include/{HEADER}")]
    for header in sorted(found, reverse=True):  # cu13 before cu12
        if header.is_file():
            return header.parent.parent
    raise MissingToolError(
        "NVBench", f"Install it: {add('benchmarks')}; or name its folder: --nvbench DIR."
    )


def _configured(folder: Path, cache: Path) -> tuple[str, ...]:
    """Makes a checkout's configuration where its build did not; it has none of the choices."""
    if (folder / CONFIGURED).is_file():
        return ()
    template = folder / f"{CONFIGURED}.in"
    try:
        text = _CHOICE.sub("", template.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {template}: {error}") from error
    made = cache / "nvbench"
    write_atomically(made / CONFIGURED, text.encode())
    return (str(made),)
