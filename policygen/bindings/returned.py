"""How parameters become the values of a guarded return, and what it calls them."""

from collections.abc import Iterator, Mapping

from policygen.bindings.expected import value_name
from policygen.bindings.load import Bound
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.tuning import Entry, Family


def rules_of(
    algorithm: Bound, site: Site, benchmark: BenchmarkBinding | None, family: Family, entry: Entry
) -> tuple[dict[str, MemberRule], dict[str, str]]:
    """How parameters become the values that a return has, and what it calls them.

    As the benchmark says it for returns, else as the newest family has it.
    """
    rules: dict[str, MemberRule] = {}
    fields: dict[str, str] = {}
    own = dict(benchmark.returns) if benchmark else {}
    scaled = bool(own) or _is_scaled(entry)
    for member, rule in (own or newest_family(algorithm, site).members).items():
        value = value_name(site, member, rule) or shown_as(site, member)
        name = _field(site, entry, member, value)
        if name is None and own and len(rules) >= len(entry.members):
            # All that the return says is told: it leaves its last values to their defaults.
            name = site.values[value].rpartition(".")[2]
        if name is None:
            raise InputError(
                f"{family.header}:{entry.line} ({family.name}) returns no {value}: CUB selects"
                f" another algorithm for it than the one that was measured"
            )
        if _is_computed(entry, name, rule):
            raise InputError(f"{family.header}:{entry.line} ({family.name}) computes {value}")
        rules[value] = rule if scaled else rule.model_copy(update={"unit": None})
        fields[value] = name
    if not own:
        for value, rule in newest_family(algorithm, site).optional.items():
            if name := _field(site, entry, value, value):
                rules[value], fields[value] = rule, name
    return rules, fields


def _is_computed(entry: Entry, name: str, rule: MemberRule) -> bool:
    """Whether a return has a formula for what a parameter counts."""
    counts = rule.parameter is not None and rule.choices is None
    return counts and any(m.name == name and m.value is None for m in entry.members)


def says_algorithm(entry: Entry) -> bool:
    """Whether a return says by which algorithm it is done."""
    return any(m.name.rpartition(".")[2] == words().values.algorithm for m in entry.members)


def optional_rules(
    algorithm: Bound, site: Site, rules: Mapping[str, MemberRule]
) -> dict[str, MemberRule]:
    """How parameters become values that the policy has, and that a return does not say."""
    if not _families(algorithm, site):
        return {}
    known = newest_family(algorithm, site).optional
    return {n: rule for n, rule in known.items() if n in site.values and n not in rules}


def newest_family(algorithm: Bound, site: Site) -> FamilyBinding:
    """How parameters become values: as in the newest family, which has most of them.

    A policy has the same fields for all architectures, where older families lack some.
    """
    known = _families(algorithm, site)
    if not known:
        raise InputError(f"{site.header} has no tunings")
    return known[0] if len(known) == 1 else max(known, key=_arch)


def _families(algorithm: Bound, site: Site) -> list[FamilyBinding]:
    return [binding for binding in algorithm.families if binding.site == site.name]


def _arch(binding: FamilyBinding) -> int:
    return arch_number(binding.name.partition("_")[0])


def shown_as(site: Site, member: str) -> str:
    """A member that only the policy calls so: `use_work_stealing`."""
    paths = ((name, path.rpartition(".")[2]) for name, path in site.values.items())
    return next((name for name, last in paths if last == member), member)


def _field(site: Site, entry: Entry, member: str, value: str) -> str | None:
    """What the return calls a value: its own name, a field of the policy, or a parameter."""
    known = {m.name.rpartition(".")[2]: m.name for m in entry.members}
    return next((known[name] for name in _names(site, member, value) if name in known), None)


def _names(site: Site, member: str, value: str) -> Iterator[str]:
    yield from (member, value)
    path = site.values.get(value)
    if path is None and site.delay:
        path = site.delay[0].rpartition(".")[0]
    if path:
        yield path.rpartition(".")[2]
    yield from site.arguments.get(value, ())


def _is_scaled(entry: Entry) -> bool:
    """Whether counts are scaled by a size: by the function that is called, or that is told them."""
    return entry.inherits is not None or words().selectors.counts in entry.values
