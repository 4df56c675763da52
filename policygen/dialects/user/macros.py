"""CUB's own policy with the macros of a benchmark's parameters in their places."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policygen.bindings.load import scaling
from policygen.bindings.words import words
from policygen.dialects.selectors.aggregates import Field, leaves
from policygen.dialects.user.public import PublicSelector, field_rules
from policygen.errors import InputError
from policygen.model.bindings import MemberRule

SCALED = "scaled"
DELAY = ("kind", "delay", "l2_write_latency")
"""The fields of a delay's policy, as its three parameters fill them."""


@dataclass(frozen=True, slots=True)
class MacroPolicy:
    """What makes the policy of a variant of CUB's own: C++ in terms of macros."""

    scaled: Mapping[str, str]
    """Constant → the call that scales threads and items."""
    fields: Mapping[str, str]
    """Path → value; with `+=` in front where it is added."""
    copies: Mapping[str, str]
    """Path → the path whose values it takes."""


def macro_policy(
    one: PublicSelector, fields: tuple[Field, ...], macros: Mapping[str, str]
) -> MacroPolicy:
    """Says it for the fields of the policy; `macros` are by label."""
    return _Writer(one, dict(leaves(fields)), macros).policy()


@dataclass(frozen=True, slots=True)
class _Writer:
    one: PublicSelector
    leaves: Mapping[str, str]
    """Path → type."""
    macros: Mapping[str, str]

    def policy(self) -> MacroPolicy:
        """All rules."""
        rules = field_rules(self.one)
        scaled: dict[str, str] = {}
        found: dict[str, str] = {}
        for path, rule in rules.items():
            if rule.delay is None and path not in self.leaves:
                raise InputError(f"{self.one.selector.policy} has no field {path}")
            found |= dict(self._spelled(path, rule, rules, scaled))
        return MacroPolicy(scaled, found, self.one.selector.copies)

    def _spelled(
        self, path: str, rule: MemberRule, rules: Mapping[str, MemberRule], scaled: dict[str, str]
    ) -> Iterator[tuple[str, str]]:
        if rule.delay is not None:
            for name, label in zip(DELAY, rule.delay, strict=True):
                leaf, macro = f"{path}.{name}", self.macros[label]
                cast = f"static_cast<cub::{self.leaves[leaf]}>({macro})"
                yield leaf, f"= {cast if name == DELAY[0] else macro}"
            return
        if rule.constant is not None:
            yield path, f"= {self._named(path, str(rule.constant))}"
            return
        value = self._scaled(path, rule, rules, scaled) or self._value(path, rule)
        yield path, f"{'+=' if rule.bias else '='} {value}"

    def _value(self, path: str, rule: MemberRule) -> str:
        assert rule.parameter is not None
        macro = self.macros[rule.parameter]
        if rule.choices == ("false", "true"):
            return f"{macro} != 0"
        if rule.choices:
            *first, last = (self._named(path, str(choice)) for choice in rule.choices)
            tried = [f"{macro} == {number} ? {name}" for number, name in enumerate(first)]
            return " : ".join([*tried, last])
        value = f"1 << {macro}" if rule.power_of_two else macro
        if rule.times is not None:
            times = self.macros.get(str(rule.times), str(rule.times))
            value = f"({value}) * {times}" if rule.power_of_two else f"{value} * {times}"
        if rule.plus:
            value += f" {'-' if rule.plus < 0 else '+'} {abs(rule.plus)}"
        return value

    def _named(self, path: str, value: str) -> str:
        """A number, or an enumerator; that of an enumeration without a scope has one, too."""
        plain = value in {"true", "false"} or value.lstrip("-").isdigit()
        return value if plain else f"cub::{self.leaves[path]}::{value}"

    def _scaled(
        self, path: str, rule: MemberRule, rules: Mapping[str, MemberRule], scaled: dict[str, str]
    ) -> str | None:
        """A count in CUB's own unit, by CUB's own function; nothing where it is counted plainly."""
        units, known = self.one.benchmark.units, words().members
        unit = units.get(rule.parameter or "")
        if unit is None:
            return None
        how = scaling(unit.scaling)
        if how.function is None:
            raise InputError(f"CUB has no function that counts as {how.name}")
        size = f"int{{sizeof({unit.of.removeprefix('axis::')})}}"
        if not how.bounded:
            return f"{how.function}({self._value(path, rule)}, {size})"
        scope, dot, _ = path.rpartition(".")
        beside = [p for p in rules if p.rpartition(".")[0] == scope and self._in_unit(rules[p])]
        threads = next((p for p in beside if known.counts_threads(p)), "")
        items = next((p for p in beside if p.rpartition(".")[2] in known.items), "")
        if not threads or not items:
            return f"{how.function}(1, {self._value(path, rule)}, {size}).items_per_thread"
        name = f"{scope.replace('.', '_')}_{SCALED}" if dot and self._several(rules) else SCALED
        given = [self._value(p, rules[p]) for p in (threads, items)]
        scaled[name] = f"{how.function}({', '.join(given)}, {size})"
        return f"{name}.{'threads_per_block' if path == threads else 'items_per_thread'}"

    def _in_unit(self, rule: MemberRule) -> bool:
        return rule.parameter in self.one.benchmark.units

    def _several(self, rules: Mapping[str, MemberRule]) -> bool:
        counted = {p.rpartition(".")[0] for p, rule in rules.items() if self._in_unit(rule)}
        return len(counted) > 1
