"""Makes units that call the device API, one for each workload."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from policygen.bindings.archs import table_number
from policygen.bindings.load import bound, is_constant
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Cub, Library
from policygen.model.workload import Point
from policygen.proof.probe import workloads
from policygen.proof.sass.unit_job import UnitHeaders
from policygen.proof.sites import matches, sites_of
from policygen.proof.unit import Workload, axis_declaration, axis_headers
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
