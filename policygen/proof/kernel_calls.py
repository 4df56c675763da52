"""Makes translation units that call the device API for a workload."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from policygen.bindings.load import axis_type, bound, is_constant, sites_of
from policygen.errors import InputError, MissingToolError
from policygen.installation import add
from policygen.libraries import part_of
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.trees import BoundVersion, Cub
from policygen.model.workload import Point, point_of
from policygen.paths import write_atomically
from policygen.proof.kernel_build import LibraryKernels, UnitHeaders
from policygen.proof.probe import workloads
from policygen.proof.sites import matches
from policygen.proof.units import Workload, axis_declaration, axis_headers
from policygen.rendering import fill

CALL_TEMPLATE = "sass/call.cu.j2"
"""The template of units that call CUB's device API."""


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """A unit that calls the device API for a workload, and nothing else."""

    site: Site
    workload: Workload
    version: BoundVersion
    includes: tuple[str, ...]
    kernels: LibraryKernels | None = None
    """How the library is compiled, unless it is CUB."""

    @property
    def scope(self) -> None:
        """It has no other kernels."""

    @property
    def text(self) -> str:
        """The text to compile."""
        call, values = self.workload.call, self.workload.values
        assert isinstance(call, BenchmarkBinding)
        # Leave out unused axes: they would make two units of the same text.
        mentioned_text = " ".join(
            (*call.roles.values(), *call.constants.values(), call.algorithm_call or "")
        )
        # Some libraries take numbers as template arguments of tuned algorithms.
        role_types = ((role, cpp, cpp.removeprefix("axis::")) for role, cpp in call.roles.items())
        numbers = {role: cpp for role, cpp, axis in role_types if is_constant(values.get(axis, ""))}
        mentioned = set(re.findall(r"\baxis::(\w+)", mentioned_text)) & call.axes.keys()
        return self._fill(
            axes=[
                axis_declaration(axis, values[axis], self.version)
                for axis in values
                if axis in mentioned
            ],
            roles={role: cpp for role, cpp in call.roles.items() if role not in numbers},
            constants={**numbers, **call.constants},
            call=call.algorithm_call,
        )

    def headers(self, arch: str) -> UnitHeaders:
        """Leaves out the call, so that only the headers determine the content."""
        text = self._fill(axes=[], roles={}, constants={}, call=None)
        options = self.kernels.call_options(self.site, arch) if self.kernels else ()
        return UnitHeaders(text, self.includes, arch, options)

    def _fill(self, **values: object) -> str:
        call = self.workload.call
        assert isinstance(call, BenchmarkBinding)
        # Keep the site's include order: some headers rely on earlier ones.
        call_headers = [call.call_header] if call.call_header else []
        axes = sorted(axis_headers(self.workload, self.version))
        includes = list(dict.fromkeys((*self.site.includes, *call_headers, *axes)))
        namespaces = self.site.namespace.split("::")
        template = self.kernels.call_template if self.kernels else CALL_TEMPLATE
        context = {"includes": includes, "namespaces": namespaces, **values}
        return fill(template, context, trim=False)


@dataclass(frozen=True, slots=True)
class WorkloadFilters:
    """Selects workloads."""

    pattern: re.Pattern[str]
    axes: Mapping[str, frozenset[str]]
    headers: frozenset[str] | None = None
    """Restricts to these tuning headers."""


Reasons = dict[str, str]
"""Benchmark → why no unit is made for it."""


def calls(
    cub: Cub, includes: tuple[str, ...], filters: WorkloadFilters
) -> tuple[dict[Point, DeviceCall], Reasons]:
    """Makes the calls of all selected workloads."""
    kernels, units = part_of(cub.library, LibraryKernels), dict[Point, DeviceCall]()
    reasons: Reasons = {}
    for site, benchmark, points in _selected(cub, filters):
        if site.targets:
            reasons[benchmark.name] = (
                "has configs for targets, but one compile produces kernels for all targets of an"
                " architecture"
            )
        elif not benchmark.algorithm_call:
            reasons[benchmark.name] = "has no call in its binding"
        else:
            for workload in points:
                unit = DeviceCall(site, workload, cub.bindings, includes, kernels)
                units[workload.point] = unit
    return units, dict(sorted(reasons.items()))


def _selected(
    cub: Cub, filters: WorkloadFilters
) -> Iterator[tuple[Site, BenchmarkBinding, list[Workload]]]:
    """Yields the selected benchmarks of a tree, with their sites and selected workloads."""
    for algorithm in bound(cub.bindings):
        for site in sites_of(algorithm, cub.dialect):
            if filters.headers is None or site.header in filters.headers:
                for benchmark in algorithm.benchmarks:
                    if benchmark.site == site.name and filters.pattern.match(benchmark.name):
                        points = workloads(benchmark, cub.bindings)
                        chosen = [p for p in points if matches(p, filters.axes, filters.pattern)]
                        yield site, benchmark, chosen


TEMPLATE = "sass/benchmark.cu.j2"
OPTIONS = ("--extended-lambda",)
BASE_MACROS = {"TUNE_BASE": "1"}
"""What CCCL's build defines to benchmark CUB's default policy."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A CCCL checkout's benchmarks, and what they include besides CUB."""

    folder: Path
    files: Mapping[str, Path]
    """By benchmark name."""
    narrowing: Mapping[str, frozenset[str]]
    """The axes of each benchmark that can be narrowed to one type."""
    includes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkSource:
    """The source of a benchmark, narrowed to some types."""

    text: str
    includes: tuple[str, ...]
    scope: str
    """The namespace that its kernels mention, unlike those of NVBench and Thrust."""

    def headers(self, arch: str) -> UnitHeaders:
        """Takes the whole source, as its includes may be anywhere."""
        return UnitHeaders(self.text, self.includes, arch, OPTIONS)


WorkloadUnit = DeviceCall | BenchmarkSource
"""A translation unit that contains a workload's kernels, for one tree."""


# Makes units from CCCL's own benchmarks, narrowed to one workload if possible.


def sources(
    cub: Cub, includes: tuple[str, ...], filters: WorkloadFilters, checkout: Checkout
) -> tuple[dict[Point, BenchmarkSource], Reasons]:
    """Makes the sources of all selected workloads, without duplicates.

    A source that an axis does not narrow contains all types of that axis.
    """
    units: dict[Point, BenchmarkSource] = {}
    reasons: Reasons = {}
    folders = (*includes, str(checkout.folder), *checkout.includes)
    for site, benchmark, points in _selected(cub, filters):
        path = checkout.files.get(benchmark.name)
        if path is None:
            reasons[benchmark.name] = f"is not in {checkout.folder}"
            continue
        macros = checkout.narrowing.get(benchmark.name, frozenset())
        names = {axis: {axis, benchmark.renamed.get(axis, axis)} for axis in benchmark.axes}
        axes = {axis: min(names[axis] & macros) for axis in names if names[axis] & macros}
        for workload in points:
            values = {axis: text for axis, text in workload.values.items() if axis in axes}
            point = point_of(benchmark.name, values)
            if point not in units:
                text = benchmark_text(
                    path.relative_to(checkout.folder),
                    BASE_MACROS,
                    {axes[axis]: type_of(text, cub.bindings) for axis, text in values.items()},
                    axis_headers(Workload(benchmark, values), cub.bindings),
                )
                units[point] = BenchmarkSource(text, folders, site.namespace)
    return units, dict(sorted(reasons.items()))


def benchmark_text(
    source: Path, macros: Mapping[str, str], types: Mapping[str, str], headers: Iterable[str]
) -> str:
    """Renders a unit that includes a benchmark's source, given relative to an include folder."""
    values = {"macros": macros, "includes": sorted(set(headers)), "narrowed": types}
    return fill(TEMPLATE, {**values, "source": source.as_posix()}, trim=False)


def type_of(text: str, version: BoundVersion) -> str:
    """Spells a value as a type, as a benchmark's axes are lists of types."""
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
    """Finds NVBench's include folders: in a checkout, an installation, or the extra."""
    if folder is None:
        if headers := installed_headers():
            return (str(headers[0].parent.parent),)
        raise MissingToolError(
            "NVBench", f"Install it: {add('benchmarks')}; or name its folder: --nvbench DIR."
        )
    for candidate in (folder, folder / "include"):
        if (candidate / HEADER).is_file():
            return (*_config_folder(candidate, cache), str(candidate))
    raise InputError(
        f"{folder} is not NVBench: it has no {HEADER}",
        "Name a checkout, or what it was installed to.",
    )


def installed_headers() -> list[Path]:
    """Finds NVBench's header in the wheel, which has it for each major release of CUDA."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    paths = (Path(str(file.locate())) for file in files if file.match(f"include/{HEADER}"))
    return sorted(filter(Path.is_file, paths), reverse=True)  # cu13 before cu12


def _config_folder(folder: Path, cache: Path) -> tuple[str, ...]:
    """Configures a checkout that was not built, with all options off."""
    if (folder / CONFIGURED).is_file():
        return ()
    template = folder / f"{CONFIGURED}.in"
    try:
        text = _CHOICE.sub("", template.read_text())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {template}: {reason}") from error
    folder_made = cache / "nvbench"
    write_atomically(folder_made / CONFIGURED, text.encode())
    return (str(folder_made),)
