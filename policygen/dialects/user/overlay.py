"""What a variant makes of CUB's own policy: the whole policy that was measured."""

from collections.abc import Mapping

from policygen.bindings.load import types
from policygen.bindings.variant import fitting_threads, member_values, within_limits
from policygen.bindings.words import words
from policygen.dialects.selectors.aggregates import Field, leaves
from policygen.dialects.user.public import PublicSelector, field_rules
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule
from policygen.model.policies import Whole


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
