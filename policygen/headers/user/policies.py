"""Finds the user-supplied selector for a benchmark, its policy fields and template arguments."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from policygen.bindings.load import Bound, axis_type, bound, is_constant, types, units_of
from policygen.bindings.variants import (
    fitting_threads,
    member_values,
    newest_family,
    selected_path,
    shown_as,
    value_name,
    within_limits,
)
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.protocol import Spot
from policygen.headers.selectors.functions import (
    Argument,
    Field,
    Struct,
    leaves,
    read_aggregate,
    template_arguments,
)
from policygen.headers.text import Text
from policygen.model.bindings import (
    BenchmarkBinding,
    FamilyBinding,
    MemberRule,
    SelectorBinding,
    Site,
)
from policygen.model.emitted import EmitAction
from policygen.model.plans import Target
from policygen.model.selection import Policies, Question, Whole
from policygen.model.trees import BoundVersion, Cub, numbers
from policygen.model.tuning import Entry, Value
from policygen.model.workload import Point, in_words
from policygen.opening import read_bytes

SINCE = (3, 5)
"""The first CUB version whose device algorithms take policy selectors."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PublicSelector:
    """A public selector for a benchmark's algorithm."""

    algorithm: Bound
    site: Site
    selector: SelectorBinding
    benchmark: BenchmarkBinding
    arguments: tuple[Argument, ...] = ()
    """Those of CUB's own selector, which the emitted selector takes, too."""

    @property
    def default(self) -> str:
        """CUB's own selector in terms of roles, fully qualified."""
        return self.selector.default or f"::{self.site.scope}::{self.site.hub}"

    @property
    def selects(self) -> str:
        """The aggregate that the selector returns."""
        return self.selector.selects or self.selector.policy

    @property
    def template(self) -> str:
        """The name of CUB's own selector."""
        return self.default.partition("<")[0]

    @property
    def fallback(self) -> str:
        """CUB's own selector in terms of its parameters."""
        names = ", ".join(argument.parameter for argument in self.arguments)
        return f"{self.template}<{names}>" if names else self.template

    @property
    def instantiated(self) -> str:
        """The template arguments in terms of roles, in their brackets, or nothing."""
        texts = (arg.text if arg.is_type else f"({arg.text})" for arg in self.arguments)
        return f"<{', '.join(texts)}>" if self.arguments else ""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that CUB's own selector depends on."""
        role_names = {*self.benchmark.roles, *self.benchmark.constants}
        used = (word for word in _WORD.findall(self.default) if word in role_names)
        return tuple(dict.fromkeys(used))


def selector_for(benchmark: BenchmarkBinding, version: BoundVersion) -> PublicSelector:
    """Returns the selector for a benchmark; raises an error if CUB has no public policy."""
    for algorithm in bound(version):
        if benchmark in algorithm.benchmarks:
            site = algorithm.site(benchmark.site, "selectors")
            at_site = (own for own in algorithm.selectors if own.site == benchmark.site)
            name = benchmark.name
            candidates = [own for own in at_site if name in (own.benchmarks or (name,))]
            if site is not None and candidates:
                chosen = max(candidates, key=lambda selector: len(selector.benchmarks))
                return PublicSelector(algorithm, site, chosen, benchmark)
    if not benchmark.parameters:
        raise InputError("the benchmark has no search space and therefore no variants")
    raise InputError(f"CUB {version.text} does not accept a policy selector for this algorithm")


def with_arguments(selector: PublicSelector, tunings: Path) -> PublicSelector:
    """Returns the selector with the parameters that CUB's own selector declares in a tree."""
    header = selector.site.header
    code = Text(header, read_bytes(tunings / header)).code
    return replace(selector, arguments=template_arguments(code, header, selector.default))


def selectors_named(name: str, version: BoundVersion) -> Iterator[PublicSelector]:
    """Yields the selector of a name for each benchmark that it serves."""
    for algorithm in bound(version):
        for benchmark in algorithm.benchmarks:
            with suppress(InputError):  # it takes no selector
                public_selector = selector_for(benchmark, version)
                if public_selector.selector.name == name:
                    yield public_selector


def field_rules(public_selector: PublicSelector) -> dict[str, MemberRule]:
    """Returns the rule for each field, from the site's newest family or the selector itself.

    Policy fields hold measured values, so their counts have no unit.
    """
    rules = dict(_inherited(public_selector)) if public_selector.selector.inherits else {}
    rules |= public_selector.selector.members
    return {path: rule.model_copy(update={"unit": None}) for path, rule in rules.items()}


def _inherited(public_selector: PublicSelector) -> Iterator[tuple[str, MemberRule]]:
    site = public_selector.site
    if not any(family.site == site.name for family in public_selector.algorithm.families):
        return
    for member, rule in newest_family(public_selector.algorithm, site).members.items():
        value = value_name(site, member, rule) or shown_as(site, member)
        text = site.values.get(value)
        if rule.delay and site.delay:
            text = site.delay[0].rpartition(".")[0]
        if text is None:
            raise InputError(f"{site.header}: the policy has no {member}")
        path = selected_path(site.policy, text.lstrip("+"))
        assert path is not None, "it is a field of the policy"
        yield path, rule


# Queries and overlays
#
# The compiler reports CUB's own policy, and a variant overwrites the measured fields.


def question(public_selector: PublicSelector, structs: Mapping[str, Struct]) -> Question:
    """Queries all policy fields, the roles that distinguish workloads, and the scaling sizes."""
    fields = read_aggregate(structs, public_selector.selects)
    return Question(
        public_selector.site,
        public_selector.benchmark,
        public_selector.default,
        tuple(path for path, _ in leaves(fields)),
        public_selector.roles,
        tuple((arg.text, arg.is_type) for arg in public_selector.arguments),
        tuple(dict.fromkeys([*_sized_roles(public_selector), *public_selector.selector.sized])),
    )


def _sized_roles(public_selector: PublicSelector) -> Iterator[str]:
    """Yields the roles whose sizes serve as units in any version of the benchmark."""
    benchmark = public_selector.benchmark
    roles = {*benchmark.roles, *(f"axis::{axis}" for axis in benchmark.axes)}
    return (unit.of for unit in units_of(benchmark) if unit.of in roles)


def overlay(
    public_selector: PublicSelector,
    fields: tuple[Field, ...],
    base: Whole,
    measured: BenchmarkBinding,
    variant: Mapping[str, int],
) -> dict[str, str]:
    """Returns every field's value; `measured` is the benchmark as it was when it ran."""
    rules = field_rules(public_selector)
    values = dict(base.fields)
    site, name = public_selector.site.name, public_selector.selector.name
    family = FamilyBinding(site=site, name=name, args=(), members=rules)
    for path, value in member_values(family, measured, variant, base.sizes).items():
        for leaf, text in _spelled(path, rules[path], value, variant):
            if leaf not in values:
                raise InputError(f"{public_selector.selects} has no field {leaf}")
            new_value = qualified(text, values[leaf])
            if rules[path].bias:
                new_value = str(int(values[leaf]) + int(new_value))
            values[leaf] = within_limits(leaf, new_value)
    for path, rule in rules.items():
        if words().members.counts_threads(path) and rule.parameter in measured.units:
            unit, items = measured.units[rule.parameter], _items_beside(path, values)
            threads = fitting_threads(unit, int(values[path]), items, base.sizes)
            values[path] = within_limits(path, str(threads))
    for path, source in public_selector.selector.copies.items():
        for leaf in [leaf for leaf in values if leaf == path or leaf.startswith(f"{path}.")]:
            values[leaf] = values[f"{source}{leaf.removeprefix(path)}"]
    return as_policy(fields, values)


def as_policy(fields: tuple[Field, ...], values: Mapping[str, str]) -> dict[str, str]:
    """Converts values of CUB's aggregate to those of the aggregate that a user returns."""
    return {path: _of_type(values[path], field_type) for path, field_type in leaves(fields)}


def qualified(value: str, example: str) -> str:
    """Qualifies an enumerator with the scope of another one: `::cub::LOAD_CA`."""
    scope, colons, _ = example.rpartition("::")
    return f"{scope}{colons}{value}" if scope else value


def _of_type(value: str, enumeration_type: str) -> str:
    """Converts `::cub::SelectAlgorithm::lookback` to another enumeration."""
    scope, colons, name = value.rpartition("::")
    outer, _, enumeration = scope.rpartition("::")
    scoped = enumeration and enumeration != "cub"
    return f"{outer}::{enumeration_type.rpartition('::')[2]}{colons}{name}" if scoped else value


def _items_beside(path: str, values: Mapping[str, str]) -> int:
    """Returns the number of items per thread beside a thread count."""
    scope, dot, _ = path.rpartition(".")
    paths = (f"{scope}{dot}{name}" for name in words().members.items)
    return next(int(values[path]) for path in paths if path in values)


def _spelled(
    path: str, rule: MemberRule, value: str, variant: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Splits a delay into its policy's three fields; other values go to one field."""
    if rule.delay is None:
        return [(path, value)]
    number, ns, l2w = (variant[label] for label in rule.delay)
    (delay,) = [delay for delay in types().delays if delay.id == number]
    values = {"ns": ns, "l2w": l2w}
    arguments = [str(values[arg]) if arg in delay.args else "0" for arg in values]
    return [
        (f"{path}.kind", delay.kind),
        (f"{path}.delay", arguments[0]),
        (f"{path}.l2_write_latency", arguments[1]),
    ]


def takes_selectors(version: str) -> bool:
    """Returns whether the public API of a version of CUB accepts policy selectors."""
    return numbers(version)[:2] >= SINCE


def check_takes_selectors(cub: Cub) -> None:
    """Raises an error if CUB's public API does not accept policy selectors."""
    if not takes_selectors(cub.version):
        raise InputError(
            f"CUB {cub.version} does not accept policy selectors in its public API",
            "CUB 3.5 and later do: name such a tree with --cub, or edit the headers with"
            " policygen apply.",
        )


_SCOPED_WORD = re.compile(r"[\w:]+")
# "axis::KeyT", "OpT"; not the last part of a qualified name
_NAME = re.compile(r"(?<![\w:])(?:axis::)?(\w+)\b(?!::)")
PROBE = "policygen_probe"
"""The namespace of stand-ins for a benchmark's own types and operators."""
Key = tuple[str, ...]
"""The compiler's value of each template argument; selectors distinguish workloads by it."""
CONTIGUOUS = "is_contiguous_of"
"""The header's own trait: whether an iterator is to contiguous elements of a type."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The template arguments of a workload."""

    key: Key
    spelled: tuple[str, ...]
    guard: str | None
    headers: tuple[str, ...]
    values: Mapping[str, str]
    """Compile-time axis → value."""
    roles: Mapping[str, str]
    """Role → as spelled in a header."""

    @property
    def nameable(self) -> bool:
        """Whether a header can name all of them."""
        return not any(PROBE in part for part in self.key)


def arguments(
    public_selector: PublicSelector, values: Mapping[str, str], policy: Whole, version: BoundVersion
) -> Arguments:
    """Returns a workload's arguments, as keys from the compiler and as spelled in a header."""
    sized = {role: str(policy.sizes[role]) for role in public_selector.selector.sized}
    axis_types = [
        axis_type(value, version)
        for axis, value in values.items()
        if axis in public_selector.benchmark.axes and not is_constant(value)
    ]
    roles = {}
    for role in public_selector.roles:
        printed = policy.roles[role]
        if any(type_info.cpp == f"::{printed}" for type_info in axis_types):
            roles[role] = f"::{printed}"
        else:
            roles[role] = _role_spelling(public_selector, role, values, printed, version)
    answers = list(zip(public_selector.arguments, policy.arguments, strict=True))
    key = [sized.get(argument.text, printed) for argument, printed in answers]
    spellings = [_spelling(public_selector, *answer, roles) for answer in answers]
    words = {word for part in spellings for word in _SCOPED_WORD.findall(part)}
    guards = {own.guard for own in types().types if own.guard and own.cpp in words}
    headers = dict.fromkeys(type_info.header for type_info in axis_types if type_info.header)
    guard = min(guards, default=None)
    return Arguments(tuple(key), tuple(spellings), guard, tuple(headers), dict(values), roles)


def _role_spelling(
    public_selector: PublicSelector,
    role: str,
    values: Mapping[str, str],
    printed: str,
    version: BoundVersion,
) -> str:
    """Returns the binding's spelling if it means the same anywhere, else the compiler's."""
    text = public_selector.benchmark.roles.get(role)
    if text is None or not text.startswith(("::", "axis::")):
        return _portable_spelling(printed)
    role_names = {**public_selector.benchmark.roles, **public_selector.benchmark.constants}
    replaced = with_axes(text, values, version)
    uses_roles = any(match[1] in role_names for match in _NAME.finditer(replaced))
    return _portable_spelling(printed) if uses_roles else _with_aliases(public_selector, replaced)


def _spelling(
    public_selector: PublicSelector, argument: Argument, printed: str, roles: Mapping[str, str]
) -> str:
    """Spells an argument with a header's names; the compiler decides what depends on a value."""
    if not argument.is_type:
        return printed
    if "?" in argument.text or "conditional_t" in argument.text:
        return _portable_spelling(printed)
    spelled = _NAME.sub(lambda match: roles.get(match[1], match[0]), argument.text)
    return _with_aliases(public_selector, spelled)


def with_axes(text: str, values: Mapping[str, str], version: BoundVersion) -> str:
    """Replaces `axis::T` with a workload's types."""

    def spelled(match: re.Match[str]) -> str:
        is_axis = match[0].startswith("axis::")
        return axis_type(values[match[1]], version).cpp if is_axis else match[0]

    return _NAME.sub(spelled, text)


def _with_aliases(public_selector: PublicSelector, text: str) -> str:
    """Replaces types outside of CUB's API with the header's aliases."""
    for alias in public_selector.selector.aliases:
        text = re.sub(rf"(?<!\w){re.escape(alias.of)}(?!\w)", alias.name, text)
    return text


def _portable_spelling(cpp_type: str) -> str:
    """Spells `long` as `std::int64_t`: the two differ on other platforms."""
    name_by_spelling = {printed: name for name, printed in types().spellings.items()}
    name = name_by_spelling.get(cpp_type)
    candidates = (own.cpp for own in types().types if own.cpp.rpartition("::")[2] == name)
    return next(candidates, cpp_type.replace(" *", "*"))


def parameters(public_selector: PublicSelector, spellings: Sequence[str]) -> tuple[str, ...]:
    """Returns `typename AccumT`, `int NumChannels`, `::cub::SelectImpl SelectionOpt`."""
    return tuple(
        f"{'typename' if arg.is_type else text.rpartition('::')[0] or arg.kind} {arg.parameter}"
        for arg, text in zip(public_selector.arguments, spellings, strict=True)
    )


def conditions(public_selector: PublicSelector, spellings: Sequence[str], key: Key) -> list[str]:
    """Returns the conditions on the template parameters under which a call is a workload."""
    answers = zip(public_selector.arguments, spellings, key, strict=True)
    return [text for answer in answers if (text := _condition(public_selector, *answer))]


def _condition(public_selector: PublicSelector, argument: Argument, text: str, part: str) -> str:
    name = argument.parameter
    if argument.text in public_selector.selector.sized:
        return f"sizeof({name}) == {part}"
    if not argument.is_type:
        return {"true": name, "false": f"!{name}"}.get(text, f"{name} == {text}")
    varies = any(word in public_selector.roles for word in re.findall(r"\w+", argument.text))
    if text.endswith("*"):
        value = text[:-1].strip().removeprefix("const ")
        contiguous = f"{CONTIGUOUS}<{name}, {value}>"
        return contiguous if varies else f"THRUST_NS_QUALIFIER::is_contiguous_iterator_v<{name}>"
    return f"::cuda::std::is_same_v<{name}, {text}>" if varies else ""


# Returns of generated selectors


@dataclass(frozen=True, slots=True)
class UserReturn(Spot):
    """A return for a workload's template arguments, which has CUB's own values at first."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    """The fields of the returned policy."""
    base: Whole
    arguments: Arguments

    @property
    def header(self) -> str:
        """The header that declares the policy."""
        return self.selector.selector.header

    @property
    def entry(self) -> Entry | None:
        """None: the user's header is written from scratch."""
        return None

    @property
    def target(self) -> Target:
        """The selector and the arguments that it tests."""
        name, args = self.selector.selector.name, self.arguments.spelled
        return Target(header=self.header, namespace="", family=name, args=args)

    @property
    def place(self) -> object:
        """A key that is equal for all workloads that the selector cannot distinguish."""
        return self.selector.selector.name, self.arguments.key

    @property
    def alone(self) -> bool:
        """True: a reason needs no names of other workloads."""
        return True

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """Returns the whole policy of a variant."""
        return overlay(self.selector, self.fields, self.base, measured, variant)

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """Returns the same values: the selector returns the policy unchanged."""
        return dict(members)


# Generated selectors


@dataclass(frozen=True, slots=True)
class TunedReturn:
    """Workloads with equal template arguments, and their tuned policy, if any."""

    spots: tuple[UserReturn, ...]
    actions: tuple[EmitAction, ...]
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TunedSelector:
    """A selector: its benchmarks, CUB's own policies for them, and its returns."""

    serves: tuple[PublicSelector, ...]
    """The public selector for each benchmark."""
    fields: tuple[Field, ...]
    parts: tuple[TunedReturn, ...]
    policies: Policies
    """CUB's own policies."""
    arguments: Mapping[Point, Arguments]

    @property
    def name(self) -> str:
        """The name of the selector."""
        return self.serves[0].selector.name

    @property
    def written(self) -> tuple[TunedReturn, ...]:
        """The parts that it returns a policy for."""
        return tuple(part for part in self.parts if part.values is not None)

    @property
    def spots(self) -> list[UserReturn]:
        """The workloads that it returns a policy for."""
        return [spot for part in self.written for spot in part.spots]

    @property
    def actions(self) -> list[EmitAction]:
        """The actions of those workloads."""
        return [action for part in self.written for action in part.actions]

    @property
    def wanted(self) -> dict[Key, Mapping[str, str]]:
        """The policy of each key."""
        pairs = ((part.spots[0].arguments.key, part.values) for part in self.parts)
        return {key: values for key, values in pairs if values is not None}

    @property
    def shared(self) -> list[str]:
        """The unmeasured workloads that it cannot distinguish from measured ones."""
        measured, policies = {action.name for action in self.actions}, self.wanted
        keys = {in_words(name, dict(axes)): own.key for (name, axes), own in self.arguments.items()}
        return [name for name, key in keys.items() if key in policies and name not in measured]
