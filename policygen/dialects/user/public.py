"""Which selector of a user's own serves a benchmark, and what its parameters mean there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policygen.bindings.expected import value_name
from policygen.bindings.load import Bound, bound
from policygen.bindings.returned import newest_family, shown_as
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, MemberRule, SelectorBinding, Site

SINCE = (3, 5)
"""The first version of CUB whose device algorithms take policy selectors."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PublicSelector:
    """The selector for a benchmark's algorithm."""

    algorithm: Bound
    site: Site
    selector: SelectorBinding
    benchmark: BenchmarkBinding

    @property
    def default(self) -> str:
        """CUB's own selector, in terms of roles, from anywhere."""
        return self.selector.default or f"::{self.site.scope}::{self.site.hub}"

    @property
    def selects(self) -> str:
        """The aggregate that it returns."""
        return self.selector.selects or self.selector.policy

    @property
    def roles(self) -> tuple[str, ...]:
        """What the selector is templated on: the roles that CUB's own depends on."""
        known = {*self.benchmark.roles, *self.benchmark.constants}
        return tuple(dict.fromkeys(w for w in _WORD.findall(self.default) if w in known))


def selector_for(benchmark: BenchmarkBinding, version: str) -> PublicSelector:
    """The selector for a benchmark; refused where CUB has no public policy for it."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, "selectors")
            known = [s for s in algorithm.selectors if s.site == benchmark.site]
            found = [s for s in known if benchmark.name in (s.benchmarks or (benchmark.name,))]
            if site is not None and found:
                chosen = max(found, key=lambda s: len(s.benchmarks))
                return PublicSelector(algorithm, site, chosen, benchmark)
    if not benchmark.parameters:
        raise InputError("the benchmark has no search space: there are no variants of it")
    raise InputError(
        f"CUB {version} keeps its policy to itself: no selector of one's own can be given to it"
    )


def selectors_named(name: str, version: str) -> Iterator[PublicSelector]:
    """Every benchmark that the selectors of a name serve."""
    for algorithm in bound(version):
        for benchmark in algorithm.benchmarks:
            if any(s.name == name and s.site == benchmark.site for s in algorithm.selectors):
                one = selector_for(benchmark, version)
                if one.selector.name == name:
                    yield one


def field_rules(one: PublicSelector) -> dict[str, MemberRule]:
    """What fills each field, as the site's newest family says it, or the selector itself.

    A policy's fields hold what was measured: no count of theirs is in a unit.
    """
    found = dict(_inherited(one)) if one.selector.inherits else {}
    found |= one.selector.members
    return {path: rule.model_copy(update={"unit": None}) for path, rule in found.items()}


def _inherited(one: PublicSelector) -> Iterator[tuple[str, MemberRule]]:
    site = one.site
    if not any(family.site == site.name for family in one.algorithm.families):
        return
    for member, rule in newest_family(one.algorithm, site).members.items():
        value = value_name(site, member, rule) or shown_as(site, member)
        text = site.values.get(value)
        if rule.delay and site.delay:
            text = site.delay[0].rpartition(".")[0]
        if text is None:
            raise InputError(f"{site.header}: the policy has no {member}")
        yield _path(site, text), rule


def _path(site: Site, text: str) -> str:
    """`policy.vec_size` as seen from what is selected: `multi_tile.vec_size`."""
    whole, _, path = text.lstrip("+").partition(".")
    return f"{site.policy}.{path}" if whole == "policy" and site.policy else path
