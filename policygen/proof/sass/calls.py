"""Makes units that call the device API, one for each workload."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from policygen.bindings.load import bound
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Cub
from policygen.model.workload import Point
from policygen.proof.probe import workloads
from policygen.proof.sass.build import UnitHeaders
from policygen.proof.sites import matches, sites_of
from policygen.proof.unit import Workload, axis_declaration, axis_headers
from policygen.rendering import fill

TEMPLATE = "sass/call.cu.j2"


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
        mentioned = set(re.findall(r"\baxis::(\w+)", written)) & call.axes.keys()
        return self._fill(
            axes=[axis_declaration(a, values[a], self.version) for a in values if a in mentioned],
            roles=call.roles,
            constants=call.constants,
            call=call.algorithm_call,
        )

    def headers(self, arch: str) -> UnitHeaders:
        """Leaves out the call: what both sides' headers make of the rest decides alone."""
        text = self._fill(axes=[], roles={}, constants={}, call=None)
        return UnitHeaders(text, self.includes, arch)

    def _fill(self, **more: object) -> str:
        call = self.workload.call
        assert isinstance(call, BenchmarkBinding)
        first = [call.call_header] if call.call_header else []
        others = {*self.site.includes, *axis_headers(self.workload, self.version)}
        includes = [*first, *sorted(others)]
        namespaces = self.site.namespace.split("::")
        return fill(TEMPLATE, {"includes": includes, "namespaces": namespaces, **more}, trim=False)


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
        if benchmark.algorithm_call is not None:
            for workload in workloads(benchmark, cub.bindings):
                if matches(workload, wanted.axes):
                    found[workload.point] = DeviceCall(site, workload, cub.bindings, includes)
    return found


def without_call(cub: Cub, wanted: Wanted) -> list[str]:
    """Lists benchmarks whose binding does not say how they are called."""
    found = (benchmark for _, benchmark in wanted_benchmarks(cub, wanted))
    return sorted(one.name for one in found if one.algorithm_call is None)


def wanted_benchmarks(cub: Cub, wanted: Wanted) -> Iterator[tuple[Site, BenchmarkBinding]]:
    """Finds the benchmarks of a tree that are wanted, with their sites."""
    for algorithm in bound(cub.bindings):
        for site in sites_of(algorithm, cub.dialect):
            if wanted.headers is None or site.header in wanted.headers:
                for benchmark in algorithm.benchmarks:
                    if benchmark.site == site.name and wanted.pattern.match(benchmark.name):
                        yield site, benchmark
