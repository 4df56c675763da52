"""Families that stand beside policy selectors, for the dispatchers of older versions."""

from collections.abc import Mapping

from policygen.bindings.recorded import benchmark_of
from policygen.dialects.sites import site_of
from policygen.errors import InputError
from policygen.model.bindings import Site
from policygen.model.cub import Cub
from policygen.model.tuning import TuningHeader

Headers = Mapping[str, TuningHeader]


def older(cub: Cub) -> Cub:
    """The tree as its older dispatchers see it."""
    return cub.model_copy(update={"dialect": "specializations"})


def beside(benchmark: str, cub: Cub, headers: Headers) -> Site | None:
    """Where families decide a benchmark for older dispatchers, as far as there are any."""
    version = cub.bindings
    try:
        algorithm, site = site_of(benchmark_of(benchmark, version), version, "specializations")
    except InputError:
        return None
    known = algorithm.families_at(site, headers.values())
    return site if any(family.specializations for _, family in known) else None


def is_read(site: Site | None, headers: Headers) -> bool:
    """Whether policies still read the families: else nobody can tell what they do."""
    if site is None:
        return False
    return any(chain.namespace == site.scope for chain in headers[site.header].chains)
