"""Policy of a user benchmark: a policy selector, or the policy hub of earlier CUB versions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from policygen.bindings.load import Bound, bound, scaling, types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.gpu.units import plain_axis
from policygen.headers.search_space import knowledge
from policygen.headers.selectors.functions import Field, leaves
from policygen.headers.user.header import split, statement, wrapped
from policygen.headers.user.policies import SINCE, PublicSelector, field_rules
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import (
    BenchmarkBinding,
    BufferBinding,
    DispatchBinding,
    HubBinding,
    MemberRule,
    RunBinding,
)
from policygen.model.trees import BoundVersion, numbers

INDENT = 2
"""Indentation levels of statements in a policy selector, and of members in the policy of a hub."""


@dataclass(frozen=True, slots=True)
class SourceNames:
    """Maps the names of a binding to names in the source."""

    known: Mapping[str, str]
    roles: Mapping[str, str]
    """Role that is more than an axis → its type in terms of the binding."""

    def spell(self, text: str) -> str:
        """Translate C++ of a binding into C++ of the source."""
        return _NAME.sub(lambda match: self.known.get(match[0], match[0]), text.strip())

    def needed(self, texts: list[str]) -> set[str]:
        """Return the roles that C++ of the binding names, and those that these depend on."""
        roles: set[str] = set()
        pending = {match[0] for text in texts for match in _NAME.finditer(text)}
        while new_roles := (pending & self.roles.keys()) - roles:
            roles |= new_roles
            pending = {match[0] for role in new_roles for match in _NAME.finditer(self.roles[role])}
        return roles


@dataclass(frozen=True, slots=True)
class SelectorPart:
    """A policy selector that is passed to the public API."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    template: ClassVar = "bench/selector.cu.j2"
    words: ClassVar[Mapping[str, str]] = {}
    """Names that the source uses for functors that it declares itself."""
    includes: ClassVar[tuple[str, ...]] = ()
    """Required headers besides those of the call."""

    @property
    def algorithm(self) -> Bound:
        """The algorithm of the policy."""
        return self.selector.algorithm

    @property
    def roles(self) -> tuple[str, ...]:
        """Template parameters of the selector, including roles whose sizes scale counts."""
        scaling = (unit.of for unit in self.selector.benchmark.units.values())
        return tuple(dict.fromkeys([*self.selector.roles, *scaling]))

    @staticmethod
    def said(run: RunBinding) -> tuple[str, ...]:
        """Return the parts of the call that name roles."""
        return run.function, run.arguments, run.environment

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """Return the version range of a benchmark with this policy, within that of its binding."""
        return max([since or "0", ".".join(map(str, SINCE))], key=numbers), below

    def values(self, _names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """Return the values for the template."""
        writer = _Writer(self.selector, self.fields, macros_of(ranges))
        return {"policy": self.selector.selector.policy, "lines": list(writer.lines())}


@dataclass(frozen=True, slots=True)
class HubPart:
    """A policy hub for a CUB class that dispatches to it, where the public API takes no policy."""

    algorithm: Bound
    """The algorithm of the policy."""
    hub: HubBinding
    dispatch: DispatchBinding
    benchmark: BenchmarkBinding
    template: ClassVar = "bench/hub.cu.j2"
    words: ClassVar[Mapping[str, str]] = {"less_than": "less_than_t"}
    """Names that the source uses for functors that it declares itself; no header declares them."""

    @property
    def includes(self) -> tuple[str, ...]:
        """Required headers besides those of the call."""
        return self.hub.includes

    @property
    def roles(self) -> tuple[str, ...]:
        """Template parameters of the hub: the roles that it names."""
        role_names = {*self.benchmark.roles, *self.benchmark.constants}
        texts = " ".join([*self.hub.constants.values(), *self.hub.policies.values()])
        return tuple(dict.fromkeys(word for word in _WORD.findall(texts) if word in role_names))

    def said(self, _run: RunBinding) -> tuple[str, ...]:
        """Return the parts of the call that name roles."""
        dispatch = self.dispatch
        return (*dispatch.takes, dispatch.default or "", *dispatch.setup, dispatch.call)

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """Return the version range of a benchmark with this policy, within that of its binding."""
        hub, dispatch = self.hub, self.dispatch
        lower_bounds = [version for version in (since, hub.since, dispatch.since) if version]
        upper_bounds = [version for version in (below, hub.below, dispatch.below) if version]
        return max(lower_bounds, key=numbers, default=None), min(
            upper_bounds, key=numbers, default=None
        )

    def values(self, names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """Return the values for the template."""
        hub_type = (
            f"{HUB}<{', '.join(names.spell(role) for role in self.roles)}>" if self.roles else HUB
        )
        prefix = "using dispatch_t = "
        return {
            "name": HUB,
            "lines": list(self._lines(macros_of(ranges))),
            "base": wrapped(prefix, names.spell(self._class(self.dispatch.default)), ";", 1),
            "variant": wrapped(prefix, names.spell(self._class(hub_type)), ";", 1),
            "setup": [names.spell(statement_text) for statement_text in self.dispatch.setup],
            "call": wrapped("return dispatch_t::", names.spell(self.dispatch.call), ";", 2),
        }

    def _lines(self, macros: Mapping[str, str]) -> Iterator[str]:
        """Yield the members of the hub's policy; `macros` are by label."""
        for name, labels in self.hub.delays.items():
            yield from wrapped(f"using {name} = ", _delay_list(*labels, macros), ";", INDENT)
        for name, value in self.hub.constants.items():
            yield from _statement(f"static constexpr auto {name} =", _with_macros(value, macros))
        for name, policy in self.hub.policies.items():
            yield from wrapped(f"using {name} = ", _with_macros(policy, macros), ";", INDENT)

    def _class(self, hub: str | None) -> str:
        """Return the class that runs the algorithm with a hub."""
        return f"{self.dispatch.name}<{', '.join([*self.dispatch.takes, *filter(None, [hub])])}>"


def macros_of(ranges: Sequence[ParameterRange]) -> Mapping[str, str]:
    """Map labels to macros."""
    return {parameter.label: parameter.macro for parameter in ranges}


def _statement(left: str, right: str) -> list[str]:
    return statement(left, right, INDENT)


HUB = "policy_hub_t"
_LABEL = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"\w+")


# Policy hubs for CUB 2.8 to 3.4


def hub_for(
    benchmark: BenchmarkBinding, values: Mapping[str, str], version: BoundVersion
) -> HubPart:
    """Return the hub for a workload; raise InputError if CUB takes none."""
    like = benchmark.like or benchmark.name
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            for hub in algorithm.hubs:
                for dispatch in hub.dispatches:
                    if hub.site == benchmark.site and dispatch.serves(like, dict(values)):
                        return HubPart(algorithm, hub, dispatch, benchmark)
    chosen = " ".join(f"{axis}={value}" for axis, value in values.items())
    raise InputError(
        f"CUB {version.plain} does not accept a policy for {like} {chosen}",
        "CUB 3.5 and later do: name such a tree with --cub.",
    )


def _with_macros(text: str, macros: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: macros[match[1]], " ".join(text.split()))


def _delay_list(kind: str, ns: str, l2w: str, macros: Mapping[str, str]) -> str:
    """Return CUB's delay constructors, indexed by a parameter."""
    delays = {delay.id: delay for delay in types().delays if delay.id is not None}
    spelled = [
        f"cub::detail::{delays[number].spelled(macros[ns], macros[l2w])}"
        for number in sorted(delays)
    ]
    return f"nvbench::tl::get<{macros[kind]}, nvbench::type_list<{', '.join(spelled)}>>"


SCALED = "scaled"
DELAY = ("kind", "delay", "l2_write_latency")
"""Fields of a delay policy that its three parameters fill."""


# Policy fields in terms of macros


@dataclass(frozen=True, slots=True)
class _Writer:
    """Derives the policy of a variant from CUB's own: C++ expressions in terms of macros."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    macros: Mapping[str, str]
    """By label."""

    @property
    def leaves(self) -> Mapping[str, str]:
        """Field path → type."""
        return dict(leaves(self.fields))

    def lines(self) -> Iterator[str]:
        """Yield the statements that build the policy."""
        binding, name = self.selector.selector, self.selector.selector.policy
        default = re.sub(r"\s+", " ", self.selector.default).replace("< ", "<").removeprefix("::")
        if self.selector.selects == name:
            yield from _statement("auto policy =", f"{default}{{}}(cc)")
        else:
            yield from _statement("const auto own =", f"{default}{{}}(cc)")
            yield from _statement(f"cub::{name}", "policy{}")
            for path in self.leaves:
                target = f"policy.{path}"
                yield from _statement(f"{target} =", f"static_cast<decltype({target})>(own.{path})")
        rules = field_rules(self.selector)
        scaled: dict[str, str] = {}
        fields: dict[str, str] = {}
        for path, rule in rules.items():
            if rule.delay is None and path not in self.leaves:
                raise InputError(f"{name} has no field {path}")
            fields |= dict(self._field_values(path, rule, rules, scaled))
        for constant, call in scaled.items():
            yield from _statement(f"const auto {constant} =", call)
        for path, value in fields.items():
            sign, _, rest = value.partition(" ")
            yield from _statement(f"policy.{path} {sign}", rest)
        for target, source in binding.copies.items():
            yield from _statement(f"policy.{target} =", f"policy.{source}")

    def _field_values(
        self, path: str, rule: MemberRule, rules: Mapping[str, MemberRule], scaled: dict[str, str]
    ) -> Iterator[tuple[str, str]]:
        if rule.delay is not None:
            for name, label in zip(DELAY, rule.delay, strict=True):
                leaf, macro = f"{path}.{name}", self.macros[label]
                cast = f"static_cast<cub::{self.leaves[leaf]}>({macro})"
                yield leaf, f"= {cast if name == DELAY[0] else macro}"
            return
        if rule.constant is not None:
            yield path, f"= {self._qualified(path, str(rule.constant))}"
            return
        value = self._scaled(path, rule, rules, scaled) or self._value(path, rule)
        yield path, f"{'+=' if rule.bias else '='} {value}"

    def _value(self, path: str, rule: MemberRule) -> str:
        assert rule.parameter is not None
        macro = self.macros[rule.parameter]
        if rule.choices == ("false", "true"):
            return f"{macro} != 0"
        if rule.choices:
            *first, last = (self._qualified(path, str(choice)) for choice in rule.choices)
            conditions = [f"{macro} == {number} ? {name}" for number, name in enumerate(first)]
            return " : ".join([*conditions, last])
        value = f"1 << {macro}" if rule.power_of_two else macro
        if rule.times is not None:
            factor = self.macros.get(str(rule.times), str(rule.times))
            value = f"({value}) * {factor}" if rule.power_of_two else f"{value} * {factor}"
        if rule.plus:
            value += f" {'-' if rule.plus < 0 else '+'} {abs(rule.plus)}"
        return value

    def _qualified(self, path: str, value: str) -> str:
        """Spell a number or an enumerator; unscoped enumerators are qualified, too."""
        is_literal = value in {"true", "false"} or value.lstrip("-").isdigit()
        return value if is_literal else f"cub::{self.leaves[path]}::{value}"

    def _scaled(
        self, path: str, rule: MemberRule, rules: Mapping[str, MemberRule], scaled: dict[str, str]
    ) -> str | None:
        """Scale a count with CUB's function; None if the count has no unit.

        `scaled` collects constants: the name of each, and the call that scales threads and items.
        """
        units, members = self.selector.benchmark.units, words().members
        unit = units.get(rule.parameter or "")
        if unit is None:
            return None
        scaling_rule = scaling(unit.scaling)
        if scaling_rule.function is None:
            raise InputError(f"CUB has no function for the scaling {scaling_rule.name}")
        size = f"int{{sizeof({unit.of.removeprefix('axis::')})}}"
        if not scaling_rule.bounded:
            return f"{scaling_rule.function}({self._value(path, rule)}, {size})"
        scope, dot, _ = path.rpartition(".")
        scaled_paths = (other for other in rules if self._in_unit(rules[other]))
        siblings = [other for other in scaled_paths if other.rpartition(".")[0] == scope]
        threads = next((other for other in siblings if members.counts_threads(other)), "")
        items = next((other for other in siblings if other.rpartition(".")[2] in members.items), "")
        if not threads or not items:
            return f"{scaling_rule.function}(1, {self._value(path, rule)}, {size}).items_per_thread"
        scopes = {other.rpartition(".")[0] for other in rules if self._in_unit(rules[other])}
        name = f"{scope.replace('.', '_')}_{SCALED}" if dot and len(scopes) > 1 else SCALED
        counts = [self._value(other, rules[other]) for other in (threads, items)]
        scaled[name] = f"{scaling_rule.function}({', '.join(counts)}, {size})"
        return f"{name}.{'threads_per_block' if path == threads else 'items_per_thread'}"

    def _in_unit(self, rule: MemberRule) -> bool:
        return rule.parameter in self.selector.benchmark.units


OPERATOR = "op_t"
ELEMENTS, ENTROPY = "Elements", "Entropy"
_AXIS = re.compile(r"axis::(\w+)")
# Matches "axis::T" and "AccumT", but no member, qualified name, or scope.
_NAME = re.compile(r"(?<![\w:.>])(axis::)?([A-Za-z_]\w*)(?!\w|::)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Examples: uniform(to, count, Entropy), power_law_offsets(to, num_segments, Elements)
_CALL = re.compile(r"(\w+)\(to(?:, count)?(?:, (.*))?\)", re.DOTALL)


# Names in a benchmark's source


def in_style(name: str) -> str:
    """Convert `AccumT` to the style of CUB's benchmarks: `accum_t`."""
    return _HUMP.sub("_", name).lower()


def source_names(
    benchmark: BenchmarkBinding,
    run: RunBinding,
    constants: Mapping[str, str],
    operator: str,
    declared: Mapping[str, str],
) -> SourceNames:
    """Return the names for a benchmark; `constants` are its non-type axes.

    `operator` is the axis of the functor. `declared` are the names that the source declares itself.
    """
    names_by_binding = {**knowledge().written.words, **declared}
    for axis in benchmark.axes:
        names_by_binding[f"axis::{axis}"] = f"{axis}::value" if axis in constants else axis
    names_by_binding[f"axis::{operator}"] = OPERATOR
    roles: dict[str, str] = {}
    for role, text in benchmark.roles.items():
        if match := _AXIS.fullmatch(text):
            names_by_binding[role] = names_by_binding[match[0]]
        elif text in names_by_binding and text not in roles:
            names_by_binding[role] = names_by_binding[text]
        else:
            names_by_binding[role], roles[role] = in_style(role), text
    names = SourceNames(names_by_binding, roles)
    names_by_binding |= {name: names.spell(text) for name, text in benchmark.constants.items()}
    names_by_binding |= {name: in_style(name) for name in map(plain_axis, run.axes)}
    for size, text in run.sizes.items():
        names_by_binding[size] = names_by_binding.get(text, size)
    names_by_binding |= {name: f"d_{name}" for name in run.buffers}
    return names


@dataclass(frozen=True, slots=True)
class FilledVector:
    """How a vector of the source is initialized."""

    init: str
    then: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


def filled(name: str, buffer: BufferBinding, names: SourceNames) -> FilledVector:
    """Return how to fill a buffer; raise InputError if a checkout cannot create such contents."""
    count = names.spell(buffer.count)
    if buffer.fill is None:
        return FilledVector(f"({count})")
    placeholders = {"name": name, "type": names.spell(buffer.type), "count": count}
    match = _CALL.fullmatch(buffer.fill.strip())
    called, arguments = match.groups() if match else (None, None)
    parts = [part.strip() for part in split(arguments)] if arguments else []
    for fill in knowledge().written.fills:
        function, _, parameters = fill.call.partition("(")
        if function == called and len(re.findall(r"\{\d\}", parameters)) == len(parts):
            break
    else:
        raise InputError(
            f"a benchmark source cannot generate the contents of {name}:"
            f" {buffer.fill.partition('(')[0]}",
            "Measure the workload without a benchmark: policygen measure --workload FILE.",
        )
    spelled = [names.spell(part) for part in parts]
    if fill.entropy is not None and (digits := parts[fill.entropy]).isdigit():
        spelled[fill.entropy] = f"bit_entropy::_{int(digits) // 1000}_{int(digits) % 1000:03}"
    then = tuple(line.format(*spelled, **placeholders) for line in fill.then)
    return FilledVector(fill.init.format(*spelled, **placeholders), then, fill.includes)
