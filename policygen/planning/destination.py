"""The family in which results for an architecture are written."""

from collections.abc import Mapping

from policygen.bindings.archs import archs
from policygen.bindings.load import Bound, bound
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, Site
from policygen.model.cub import Cub, Dialect
from policygen.model.tuning import Family, TuningHeader
from policygen.planning.cases import Destination


def destination(
    benchmark: BenchmarkBinding, cub: Cub, headers: Mapping[str, TuningHeader], arch: str
) -> Destination:
    """The architecture's family for a benchmark, or the one that a new family is made after."""
    algorithm, site = site_of(benchmark, cub.version)
    header = headers.get(site.header)
    if header is None:
        raise InputError(f"the tree has no {site.header}")
    known = algorithm.families_at(site, [header])
    number = arch_number(arch)
    earlier = [pair for pair in known if arch_number(pair[1].arch) <= number]
    if not earlier:
        raise InputError(
            f"{site.header} has no family of tunings for {arch} or an earlier architecture"
        )
    binding, family = max(earlier, key=_by_arch)
    said = _parameters(binding)
    newest, _ = max(known, key=_by_arch)
    unsaid = {m: r for m, r in newest.members.items() if r.parameters and not r.parameters & said}
    name = f"{arch}{family.name.removeprefix(family.arch)}"
    return Destination(site, binding, family, name, unsaid=unsaid)


def _by_arch(pair: tuple[FamilyBinding, Family]) -> int:
    return arch_number(pair[1].arch)


def _parameters(binding: FamilyBinding) -> set[str]:
    """What the members of a family's entries are made of."""
    return {name for rule in binding.members.values() for name in rule.parameters}


def site_of(
    benchmark: BenchmarkBinding, version: str, dialect: Dialect = "specializations"
) -> tuple[Bound, Site]:
    """Where CUB decides a benchmark's workloads, in a dialect."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, dialect)
            if site is not None:
                return algorithm, site
    raise InputError(f"{benchmark.name} has no family of tunings in CUB {version}")


def next_arch(arch: str) -> str | None:
    """The architecture that comes after one: its policy must keep what it had."""
    later = [name for name in archs() if arch_number(name) > arch_number(arch)]
    return min(later, key=arch_number, default=None)
