"""Where CUB decides a benchmark's workloads, in each dialect."""

from policygen.bindings.load import Bound, bound
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Dialect
from policygen.model.versions import plain


def site_of(benchmark: BenchmarkBinding, version: str, dialect: Dialect) -> tuple[Bound, Site]:
    """The site in a dialect, and the algorithm that it is of."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, dialect)
            if site is not None:
                return algorithm, site
    raise InputError(f"{benchmark.name} has no family of tunings in CUB {plain(version)}")
