"""Determines a selector's template arguments, by which it distinguishes workloads."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.load import axis_type, is_constant, types
from policygen.headers.protocol import Spot
from policygen.headers.selectors.functions import Argument, Field
from policygen.headers.user.policies import PublicSelector, overlay
from policygen.model.bindings import BenchmarkBinding
from policygen.model.emitted import EmitAction
from policygen.model.plans import Target
from policygen.model.trees import BoundVersion
from policygen.model.tuning import Entry, Policies, Value, Whole
from policygen.model.workload import Point, in_words

_WORD = re.compile(r"[\w:]+")
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
        is_axis = any(type_info.cpp == f"::{printed}" for type_info in axis_types)
        roles[role] = (
            f"::{printed}"
            if is_axis
            else _role_spelling(public_selector, role, values, printed, version)
        )
    answers = list(zip(public_selector.arguments, policy.arguments, strict=True))
    key = [sized.get(argument.text, printed) for argument, printed in answers]
    spellings = [_spelling(public_selector, *answer, roles) for answer in answers]
    words = {word for part in spellings for word in _WORD.findall(part)}
    guards = {
        type_info.guard for type_info in types().types if type_info.guard and type_info.cpp in words
    }
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
    return _NAME.sub(
        lambda match: (
            axis_type(values[match[1]], version).cpp if match[0].startswith("axis::") else match[0]
        ),
        text,
    )


def _with_aliases(public_selector: PublicSelector, text: str) -> str:
    """Replaces types outside of CUB's API with the header's aliases."""
    for alias in public_selector.selector.aliases:
        text = re.sub(rf"(?<!\w){re.escape(alias.of)}(?!\w)", alias.name, text)
    return text


def _portable_spelling(cpp_type: str) -> str:
    """Spells `long` as `std::int64_t`: the two differ on other platforms."""
    name_by_spelling = {printed: name for name, printed in types().spellings.items()}
    name = name_by_spelling.get(cpp_type)
    candidates = (
        type_info.cpp for type_info in types().types if type_info.cpp.rpartition("::")[2] == name
    )
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
        return {
            part.spots[0].arguments.key: part.values
            for part in self.parts
            if part.values is not None
        }

    @property
    def shared(self) -> list[str]:
        """The unmeasured workloads that it cannot distinguish from measured ones."""
        measured, policies = {action.name for action in self.actions}, self.wanted
        arguments_by_name = {
            in_words(name, dict(axes)): arguments
            for (name, axes), arguments in self.arguments.items()
        }
        return [
            name
            for name, arguments in arguments_by_name.items()
            if arguments.key in policies and name not in measured
        ]
