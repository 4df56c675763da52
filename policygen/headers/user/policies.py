"""Which selector of a user's own serves a benchmark, and what its parameters mean there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.bindings.load import Bound, bound, types, units_of
from policygen.bindings.variants import (
    fitting_threads,
    member_values,
    newest_family,
    shown_as,
    value_name,
    within_limits,
)
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.selectors.functions import Field, Struct, leaves, read_aggregate
from policygen.model.bindings import (
    BenchmarkBinding,
    FamilyBinding,
    MemberRule,
    SelectorBinding,
    Site,
)
from policygen.model.tuning import Question, Whole

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


# What the compiler is asked of CUB's own selector, so that variants can be made of its policy.


def question(one: PublicSelector, structs: Mapping[str, Struct]) -> Question:
    """All fields of the policy, the roles that tell workloads apart, and the sizes that scale."""
    fields = read_aggregate(structs, one.selects)
    return Question(
        one.site,
        one.benchmark,
        one.default,
        tuple(path for path, _ in leaves(fields)),
        one.roles,
        tuple(dict.fromkeys([*_sized(one), *one.selector.sized])),
    )


def _sized(one: PublicSelector) -> Iterator[str]:
    """The roles in whose sizes any version of the benchmark counts."""
    known = {*one.benchmark.roles, *(f"axis::{axis}" for axis in one.benchmark.axes)}
    return (unit.of for unit in units_of(one.benchmark.name) if unit.of in known)


# What a variant makes of CUB's own policy: the whole policy that was measured.


def overlay(
    one: PublicSelector,
    fields: tuple[Field, ...],
    base: Whole,
    measured: BenchmarkBinding,
    variant: Mapping[str, int],
) -> dict[str, str]:
    """Every field's value; `measured` is the benchmark as it was when it ran."""
    told = field_rules(one)
    found = dict(base.fields)
    members = member_values(_family(one, told), measured, variant, base.sizes)
    for path, value in members.items():
        for leaf, text in _spelled(path, told[path], value, variant):
            if leaf not in found:
                raise InputError(f"{one.selects} has no field {leaf}")
            given = _biased(told[path], found[leaf], qualified(text, found[leaf]))
            found[leaf] = within_limits(leaf, given)
    for path, rule in told.items():
        if words().members.counts_threads(path) and rule.parameter in measured.units:
            unit, items = measured.units[rule.parameter], _items_beside(path, found)
            fitting = fitting_threads(unit, int(found[path]), items, base.sizes)
            found[path] = within_limits(path, str(fitting))
    for path, source in one.selector.copies.items():
        for leaf in [leaf for leaf in found if _within(leaf, path)]:
            found[leaf] = found[f"{source}{leaf.removeprefix(path)}"]
    return as_policy(fields, found)


def as_policy(fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, str]:
    """The values of what CUB selects as those of the aggregate that a user returns."""
    return {path: _of_type(values[path], of) for path, of in leaves(fields)}


def qualified(value: str, like: str) -> str:
    """An enumerator in the scope of another one: `::cub::LOAD_CA`."""
    scope, colons, _ = like.rpartition("::")
    return f"{scope}{colons}{value}" if scope else value


def _of_type(value: str, of: str) -> str:
    """`::cub::SelectAlgorithm::lookback` as the same of another enumeration."""
    scope, colons, name = value.rpartition("::")
    outer, _, enumeration = scope.rpartition("::")
    scoped = enumeration and enumeration != "cub"
    return f"{outer}::{of.rpartition('::')[2]}{colons}{name}" if scoped else value


def _within(leaf: str, path: str) -> bool:
    return leaf == path or leaf.startswith(f"{path}.")


def _items_beside(path: str, values: Mapping[str, str]) -> int:
    """The items of the threads that a field counts."""
    scope, dot, _ = path.rpartition(".")
    return next(
        int(values[field])
        for name in words().members.items
        if (field := f"{scope}{dot}{name}") in values
    )


def _family(one: PublicSelector, told: Mapping[str, MemberRule]) -> FamilyBinding:
    return FamilyBinding(site=one.site.name, name=one.selector.name, args=(), members=dict(told))


def _spelled(
    path: str, rule: MemberRule, value: str, variant: Mapping[str, int]
) -> list[tuple[str, str]]:
    """A value by its field; a delay by the three of its policy."""
    if rule.delay is None:
        return [(path, value)]
    number, ns, l2w = (variant[label] for label in rule.delay)
    (delay,) = [delay for delay in types().delays if delay.id == number]
    given = {"ns": ns, "l2w": l2w}
    told = [str(given[arg]) if arg in delay.args else "0" for arg in given]
    return [
        (f"{path}.kind", delay.kind),
        (f"{path}.delay", told[0]),
        (f"{path}.l2_write_latency", told[1]),
    ]


def _biased(rule: MemberRule, base: str, value: str) -> str:
    return str(int(base) + int(value)) if rule.bias else value
