"""Which device algorithms a tree is asked to instantiate: one for each workload."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from policygen.bindings.load import bound
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Cub
from policygen.model.workload import Point, point_of
from policygen.proof.probe import workloads
from policygen.proof.sass.build import Headers
from policygen.proof.sass.unit import render, render_headers
from policygen.proof.sites import matches, sites_of
from policygen.proof.unit import Workload


@dataclass(frozen=True, slots=True)
class Called:
    """A workload's call, in one tree."""

    site: Site
    workload: Workload
    version: str
    includes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The translation unit."""
        return render(self.site, self.workload, self.version)

    def headers(self, arch: str) -> Headers:
        """What it includes, for an architecture."""
        text = render_headers(self.site, self.workload, self.version)
        return Headers(text, self.includes, arch)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which workloads are asked about."""

    pattern: re.Pattern[str]
    axes: Mapping[str, frozenset[str]]
    headers: frozenset[str] | None = None
    """Of these tuning headers alone."""


def calls(cub: Cub, includes: tuple[str, ...], wanted: Wanted) -> dict[Point, Called]:
    """The calls of all workloads that are wanted; benchmarks without one are left out."""
    found = {}
    for algorithm in bound(cub.version):
        for site in sites_of(algorithm, cub.dialect):
            if wanted.headers is not None and site.header not in wanted.headers:
                continue
            for benchmark in algorithm.benchmarks:
                if benchmark.site == site.name and wanted.pattern.match(benchmark.name):
                    for workload in _workloads(benchmark, cub.version, wanted):
                        point = point_of(benchmark.name, workload.values)
                        found[point] = Called(site, workload, cub.version, includes)
    return found


def _workloads(benchmark: BenchmarkBinding, version: str, wanted: Wanted) -> list[Workload]:
    if benchmark.algorithm_call is None:
        return []
    return [one for one in workloads(benchmark, version) if matches(one, wanted.axes)]
