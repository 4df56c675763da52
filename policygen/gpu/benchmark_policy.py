"""The policy of a benchmark of one's own: a policy selector, or the hub that earlier CUBs take."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from policygen.bindings.load import Bound, bound, scaling, types
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.search_space import WrittenFill, knowledge
from policygen.headers.selectors.functions import Field, leaves
from policygen.headers.user.header import statement, wrapped
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
from policygen.model.trees import numbers, plain

INDENT = 2
"""Levels of statements in a policy selector."""


@dataclass(frozen=True, slots=True)
class MacroPolicy:
    """What makes the policy of a variant of CUB's own: C++ in terms of macros."""

    scaled: Mapping[str, str]
    """Constant → the call that scales threads and items."""
    fields: Mapping[str, str]
    """Path → value; with `+=` in front where it is added."""
    copies: Mapping[str, str]
    """Path → the path whose values it takes."""


@dataclass(frozen=True, slots=True)
class SourceNames:
    """What each name of a binding is in the source."""

    known: Mapping[str, str]
    roles: Mapping[str, str]
    """Role that is more than an axis → its type in the binding's words."""

    def spell(self, text: str) -> str:
        """C++ of a binding as C++ of the source."""
        return _NAME.sub(lambda match: self.known.get(match[0], match[0]), text.strip())

    def needed(self, texts: list[str]) -> set[str]:
        """The roles that some C++ of the binding names, and those that these need."""
        found: set[str] = set()
        waiting = {match[0] for text in texts for match in _NAME.finditer(text)}
        while more := (waiting & self.roles.keys()) - found:
            found |= more
            waiting = {match[0] for one in more for match in _NAME.finditer(self.roles[one])}
        return found


@dataclass(frozen=True, slots=True)
class SelectorPart:
    """A policy selector that the public API is given."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    template: ClassVar = "bench/selector.cu.j2"
    words: ClassVar[Mapping[str, str]] = {}
    """What the source calls a functor that it declares itself."""
    includes: ClassVar[tuple[str, ...]] = ()
    """Headers that it needs besides those of the call."""

    @property
    def algorithm(self) -> Bound:
        """Whose policy it is."""
        return self.selector.algorithm

    @property
    def roles(self) -> tuple[str, ...]:
        """What the selector is templated on: what CUB's own is, and whose sizes scale counts."""
        scaling = (unit.of for unit in self.selector.benchmark.units.values())
        return tuple(dict.fromkeys([*self.selector.roles, *scaling]))

    @staticmethod
    def said(run: RunBinding) -> tuple[str, ...]:
        """What of the source's call names roles."""
        return run.function, run.arguments, run.environment

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """The versions that a benchmark with it is for, of those of its binding."""
        return max([since or "0", ".".join(map(str, SINCE))], key=numbers), below

    def values(self, _names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """For the template."""
        found = macro_policy(self.selector, self.fields, macros_of(ranges))
        return {
            "policy": self.selector.selector.policy,
            "lines": list(self._lines(found)),
        }

    def _lines(self, found: MacroPolicy) -> Iterator[str]:
        """The statements that make the policy."""
        one = self.selector
        default = re.sub(r"\s+", " ", one.default).replace("< ", "<").removeprefix("::")
        if one.selects == one.selector.policy:
            yield from _statement("auto policy =", f"{default}{{}}(cc)")
        else:
            yield from _statement("const auto own =", f"{default}{{}}(cc)")
            yield from _statement(f"cub::{one.selector.policy}", "policy{}")
            for path, _ in leaves(self.fields):
                to = f"policy.{path}"
                yield from _statement(f"{to} =", f"static_cast<decltype({to})>(own.{path})")
        for name, call in found.scaled.items():
            yield from _statement(f"const auto {name} =", call)
        for path, value in found.fields.items():
            sign, _, rest = value.partition(" ")
            yield from _statement(f"policy.{path} {sign}", rest)
        for to, source in found.copies.items():
            yield from _statement(f"policy.{to} =", f"policy.{source}")


@dataclass(frozen=True, slots=True)
class GivenHub:
    """The hub for a benchmark, and what dispatches to it."""

    algorithm: Bound
    hub: HubBinding
    dispatch: DispatchBinding
    benchmark: BenchmarkBinding

    @property
    def roles(self) -> tuple[str, ...]:
        """What the hub is templated on: the roles that it names."""
        known = {*self.benchmark.roles, *self.benchmark.constants}
        texts = " ".join([*self.hub.constants.values(), *self.hub.policies.values()])
        return tuple(dict.fromkeys(word for word in _WORD.findall(texts) if word in known))

    def lines(self, macros: Mapping[str, str]) -> Iterator[str]:
        """The members of its policy; `macros` are by label."""
        for name, labels in self.hub.delays.items():
            yield from wrapped(f"using {name} = ", _delays(*labels, macros), ";", HUBS_INDENT)
        for name, value in self.hub.constants.items():
            left = f"static constexpr auto {name} ="
            yield from statement(left, _with_macros(value, macros), HUBS_INDENT)
        for name, policy in self.hub.policies.items():
            yield from wrapped(f"using {name} = ", _with_macros(policy, macros), ";", HUBS_INDENT)

    def class_name(self, hub: str | None) -> str:
        """The class that runs the algorithm, with a hub of one's own or with CUB's."""
        last = hub or self.dispatch.default
        return f"{self.dispatch.name}<{', '.join([*self.dispatch.takes, *filter(None, [last])])}>"


@dataclass(frozen=True, slots=True)
class HubPart:
    """A policy hub that a class of CUB's is given, where the public API takes no policy."""

    given: GivenHub
    template: ClassVar = "bench/hub.cu.j2"
    words: ClassVar[Mapping[str, str]] = {"less_than": "less_than_t"}
    """What the source calls a functor that it declares itself: the headers have none."""

    @property
    def algorithm(self) -> Bound:
        """Whose policy it is."""
        return self.given.algorithm

    @property
    def includes(self) -> tuple[str, ...]:
        """Headers that it needs besides those of the call."""
        return self.given.hub.includes

    @property
    def roles(self) -> tuple[str, ...]:
        """What the hub is templated on."""
        return self.given.roles

    def said(self, _run: RunBinding) -> tuple[str, ...]:
        """What of the source's call names roles."""
        one = self.given.dispatch
        return (*one.takes, one.default or "", *one.setup, one.call)

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """The versions that a benchmark with it is for, of those of its binding."""
        hub, dispatch = self.given.hub, self.given.dispatch
        first = [one for one in (since, hub.since, dispatch.since) if one]
        last = [one for one in (below, hub.below, dispatch.below) if one]
        return max(first, key=numbers, default=None), min(last, key=numbers, default=None)

    def values(self, names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """For the template."""
        own = f"{HUB}<{', '.join(names.spell(one) for one in self.roles)}>" if self.roles else HUB
        lead = "using dispatch_t = "
        return {
            "name": HUB,
            "lines": list(self.given.lines(macros_of(ranges))),
            "base": wrapped(lead, names.spell(self.given.class_name(None)), ";", 1),
            "variant": wrapped(lead, names.spell(self.given.class_name(own)), ";", 1),
            "setup": [names.spell(one) for one in self.given.dispatch.setup],
            "call": wrapped("return dispatch_t::", names.spell(self.given.dispatch.call), ";", 2),
        }


def macros_of(ranges: Sequence[ParameterRange]) -> Mapping[str, str]:
    """Label → macro."""
    return {one.label: one.macro for one in ranges}


def _statement(left: str, right: str) -> list[str]:
    return statement(left, right, INDENT)


HUB = "policy_hub_t"
HUBS_INDENT = 2
"""Levels of what stands in the policy of a hub."""
_LABEL = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"\w+")


# A policy hub with the macros of a benchmark's parameters, for CUB 2.8 to 3.4.


def hub_for(benchmark: BenchmarkBinding, values: Mapping[str, str], version: str) -> GivenHub:
    """The hub for a workload; refused where CUB takes none."""
    like = benchmark.like or benchmark.name
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            for hub in algorithm.hubs:
                for dispatch in hub.dispatches:
                    if hub.site == benchmark.site and dispatch.serves(like, dict(values)):
                        return GivenHub(algorithm, hub, dispatch, benchmark)
    chosen = " ".join(f"{axis}={value}" for axis, value in values.items())
    raise InputError(
        f"CUB {plain(version)} can be given no policy for {like} {chosen}",
        "It can since CUB 3.5: name a tree of that version, or of a later one.",
    )


def _with_macros(text: str, macros: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: macros[match[1]], " ".join(text.split()))


def _delays(kind: str, ns: str, l2w: str, macros: Mapping[str, str]) -> str:
    """CUB's delay constructors, of which a parameter chooses one."""
    known = {one.id: one for one in types().delays if one.id is not None}
    spelled = [
        f"cub::detail::{known[number].spelled(macros[ns], macros[l2w])}" for number in sorted(known)
    ]
    return f"nvbench::tl::get<{macros[kind]}, nvbench::type_list<{', '.join(spelled)}>>"


SCALED = "scaled"
DELAY = ("kind", "delay", "l2_write_latency")
"""The fields of a delay's policy, as its three parameters fill them."""


# CUB's own policy with the macros of a benchmark's parameters in their places.


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


OPERATOR = "op_t"
ELEMENTS, ENTROPY = "Elements", "Entropy"
_AXIS = re.compile(r"axis::(\w+)")
# "axis::T", "AccumT"; no member, no rest of a qualified name, no scope
_NAME = re.compile(r"(?<![\w:.>])(axis::)?([A-Za-z_]\w*)(?!\w|::)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# uniform(to, count, Entropy), power_law_offsets(to, num_segments, Elements)
_CALL = re.compile(r"(\w+)\(to(?:, count)?(?:, (.*))?\)", re.DOTALL)
_OPENING, _CLOSING = "(<{", ")>}"


# What bindings say in C++, as a benchmark's source says it.


def in_style(name: str) -> str:
    """`AccumT` as CUB's benchmarks call such a thing in a function: `accum_t`."""
    return _HUMP.sub("_", name).lower()


def source_names(
    benchmark: BenchmarkBinding,
    run: RunBinding,
    constants: Mapping[str, str],
    operator: str,
    declared: Mapping[str, str],
) -> SourceNames:
    """Those of a benchmark; `constants` are the axes that are no types, `operator` that of one.

    What the source declares itself is called as it says.
    """
    known = {**knowledge().written.words, **declared}
    for axis in benchmark.axes:
        known[f"axis::{axis}"] = f"{axis}::value" if axis in constants else axis
    known[f"axis::{operator}"] = OPERATOR
    roles: dict[str, str] = {}
    for role, text in benchmark.roles.items():
        if match := _AXIS.fullmatch(text):
            known[role] = known[match[0]]
        elif text in known and text not in roles:
            known[role] = known[text]
        else:
            known[role], roles[role] = in_style(role), text
    names = SourceNames(known, roles)
    known |= {name: names.spell(text) for name, text in benchmark.constants.items()}
    known |= {(plain := _plain(axis)): in_style(plain) for axis in run.axes}
    for size, text in run.sizes.items():
        known[size] = known.get(text, size)
    known |= {name: f"d_{name}" for name in run.buffers}
    return names


def _plain(axis: str) -> str:
    """`Elements{io}[pow2]` as C++ of a binding calls it."""
    return re.sub(r"\{[^}]*\}|\[[^\]]*\]|\W", "", axis)


@dataclass(frozen=True, slots=True)
class FilledVector:
    """How a vector of the source gets its contents."""

    init: str
    then: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


def filled(name: str, one: BufferBinding, names: SourceNames) -> FilledVector:
    """What makes a buffer; refused where a checkout has nothing that makes such contents."""
    given = {"name": name, "type": names.spell(one.type), "count": names.spell(one.count)}
    if one.fill is None:
        return FilledVector(f"({given['count']})")
    match = _CALL.fullmatch(one.fill.strip())
    parts = _split(match[2]) if match and match[2] else []
    fill = next(
        (f for f in knowledge().written.fills if match and _takes(f, match[1], parts)), None
    )
    if fill is None:
        raise InputError(
            f"no benchmark's source can make what {name} holds: {one.fill.partition('(')[0]}",
            "Such a workload is measured without one: policygen measure --workload FILE.",
        )
    spelled = [names.spell(part) for part in parts]
    if fill.entropy is not None and (digits := parts[fill.entropy]).isdigit():
        spelled[fill.entropy] = f"bit_entropy::_{int(digits) // 1000}_{int(digits) % 1000:03}"
    return FilledVector(
        fill.init.format(*spelled, **given),
        tuple(line.format(*spelled, **given) for line in fill.then),
        fill.includes,
    )


def _takes(fill: WrittenFill, name: str, parts: list[str]) -> bool:
    called, _, arguments = fill.call.partition("(")
    return called == name and len(re.findall(r"\{\d\}", arguments)) == len(parts)


def _split(text: str) -> list[str]:
    """The arguments of a call."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
