"""The template arguments of a selector: what tells workloads apart, and how they are spelled."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.load import axis_type, is_constant, types
from policygen.headers.protocol import Spot
from policygen.headers.selectors.functions import Field
from policygen.headers.user.policies import PublicSelector, overlay
from policygen.model.bindings import BenchmarkBinding
from policygen.model.emitted import EmitAction
from policygen.model.plans import Target
from policygen.model.tuning import Entry, Policies, Value, Whole
from policygen.model.workload import Point, in_words

_WORD = re.compile(r"[\w:]+")
# "axis::KeyT", "OpT"; not the rest of a qualified name
_NAME = re.compile(r"(?<![\w:])(?:axis::)?(\w+)\b(?!::)")
PROBE = "policygen_probe"
"""Where the stand-ins for a benchmark's own types and operators live."""
Key = tuple[str, ...]
"""For each template parameter what the compiler makes of it: what is equal is the same."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The template arguments of one workload."""

    key: Key
    spelled: tuple[str, ...]
    guard: str | None
    headers: tuple[str, ...]
    values: Mapping[str, str]
    """Compile-time axis → value."""

    @property
    def nameable(self) -> bool:
        """Whether a header can name them all."""
        return not any(PROBE in part for part in self.key)


def arguments(
    one: PublicSelector, values: Mapping[str, str], whole: Whole, version: str
) -> Arguments:
    """A workload's, as the compiler tells them and as a header spells them."""
    key, spelled = [], []
    for role in one.roles:
        if role in one.selector.sized:
            key.append(str(whole.sizes[role]))
        else:
            key.append(whole.roles[role])
        spelled.append(_spelled(one, role, values, whole.roles[role], version))
    words = {word for part in spelled for word in _WORD.findall(part)}
    guards = {t.guard for t in types().types if t.guard and t.cpp in words}
    used = [axis_type(v, version) for a, v in values.items() if _is_type(one, a, v)]
    headers = dict.fromkeys(t.header for t in used if t.header)
    guard = min(guards, default=None)
    return Arguments(tuple(key), tuple(spelled), guard, tuple(headers), dict(values))


def _is_type(one: PublicSelector, axis: str, value: str) -> bool:
    return axis in one.benchmark.axes and not is_constant(value)


def _spelled(
    one: PublicSelector, role: str, values: Mapping[str, str], shown: str, version: str
) -> str:
    """As the binding has it where that means the same anywhere, or as the compiler prints it."""
    text = one.benchmark.roles.get(role)
    mine = (axis_type(v, version).cpp for a, v in values.items() if _is_type(one, a, v))
    if named := next((cpp for cpp in mine if cpp == f"::{shown}"), None):
        return named
    if text is None or not text.startswith(("::", "axis::")):
        return _portable(shown)
    known = {**one.benchmark.roles, **one.benchmark.constants}
    replaced = with_axes(text, values, version)
    own = any(match[1] in known for match in _NAME.finditer(replaced))
    return _portable(shown) if own else _aliased(one, replaced)


def with_axes(text: str, values: Mapping[str, str], version: str) -> str:
    """C++ with the types of a workload for `axis::T`."""
    return _NAME.sub(
        lambda match: (
            axis_type(values[match[1]], version).cpp if match[0].startswith("axis::") else match[0]
        ),
        text,
    )


def _aliased(one: PublicSelector, text: str) -> str:
    """With the header's own names for what is no part of CUB's API."""
    for alias in one.selector.aliases:
        text = re.sub(rf"(?<!\w){re.escape(alias.of)}(?!\w)", alias.name, text)
    return text


def _portable(shown: str) -> str:
    """`long` is what `std::int64_t` is here, and not everywhere."""
    plain = {printed: name for name, printed in types().spellings.items()}
    name = plain.get(shown)
    found = (t.cpp for t in types().types if t.cpp.rpartition("::")[2] == name)
    return next(found, shown.replace(" *", "*"))


def parameters(one: PublicSelector, whole: Whole) -> tuple[str, ...]:
    """`typename AccumT`, `int NumChannels`, `bool IsEven`."""
    return tuple(f"{_kind(one, role, whole)} {role}" for role in one.roles)


def _kind(one: PublicSelector, role: str, whole: Whole) -> str:
    if role not in one.benchmark.constants:
        return "typename"
    return "bool" if whole.roles[role] in {"true", "false"} else "int"


def conditions(one: PublicSelector, spelled: Sequence[str], key: Key) -> list[str]:
    """What must hold of the template parameters."""
    return [
        _condition(one, role, text, part)
        for role, text, part in zip(one.roles, spelled, key, strict=True)
    ]


def _condition(one: PublicSelector, role: str, text: str, part: str) -> str:
    if role in one.selector.sized:
        return f"sizeof({role}) == {part}"
    if role not in one.benchmark.constants:
        return f"::cuda::std::is_same_v<{role}, {text}>"
    if part in {"true", "false"}:
        return role if part == "true" else f"!{role}"
    return f"{role} == {part}"


# What a selector of a user's own returns for a workload.


@dataclass(frozen=True, slots=True)
class UserReturn(Spot):
    """One that is for the template arguments of a workload; its values are CUB's own so far."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    """Of the policy that is returned."""
    base: Whole
    arguments: Arguments

    @property
    def header(self) -> str:
        """The header that declares the policy."""
        return self.selector.selector.header

    @property
    def entry(self) -> Entry | None:
        """None: the user's header is written anew."""
        return None

    @property
    def target(self) -> Target:
        """The selector, and the arguments for which it returns."""
        name, args = self.selector.selector.name, self.arguments.spelled
        return Target(header=self.header, namespace="", family=name, args=args)

    @property
    def place(self) -> object:
        """What is the same for all workloads that the selector cannot tell apart."""
        return self.selector.selector.name, self.arguments.key

    @property
    def alone(self) -> bool:
        """Whether a reason needs no names of the others."""
        return True

    def members(self, measured: BenchmarkBinding, variant: Mapping[str, int]) -> dict[str, str]:
        """The whole policy that a variant is."""
        return overlay(self.selector, self.fields, self.base, measured, variant)

    def expected(self, members: Mapping[str, str]) -> dict[str, Value]:
        """The same: a policy is returned as it is."""
        return dict(members)


# Selectors of a user's own: what they return, and what CUB selects by itself.


@dataclass(frozen=True, slots=True)
class TunedReturn:
    """Workloads with the same template arguments, and the policy that they get, if any."""

    spots: tuple[UserReturn, ...]
    actions: tuple[EmitAction, ...]
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TunedSelector:
    """One selector: its benchmarks, all that CUB selects for them, and what it is to return."""

    serves: tuple[PublicSelector, ...]
    """It, for each of its benchmarks."""
    fields: tuple[Field, ...]
    parts: tuple[TunedReturn, ...]
    policies: Policies
    """What CUB selects by itself."""
    arguments: Mapping[Point, Arguments]

    @property
    def name(self) -> str:
        """What the selector is called."""
        return self.serves[0].selector.name

    @property
    def written(self) -> tuple[TunedReturn, ...]:
        """What it returns."""
        return tuple(part for part in self.parts if part.values is not None)

    @property
    def spots(self) -> list[UserReturn]:
        """The workloads that it returns something for."""
        return [spot for part in self.written for spot in part.spots]

    @property
    def actions(self) -> list[EmitAction]:
        """What becomes of those."""
        return [action for part in self.written for action in part.actions]

    @property
    def wanted(self) -> dict[Key, Mapping[str, str]]:
        """The policy for each key."""
        return {
            part.spots[0].arguments.key: part.values
            for part in self.parts
            if part.values is not None
        }

    @property
    def shared(self) -> list[str]:
        """Workloads that were not measured, and that it tells from no measured one."""
        measured, wanted = {action.name for action in self.actions}, self.wanted
        names = {in_words(name, dict(axes)): one for (name, axes), one in self.arguments.items()}
        return [name for name, one in names.items() if one.key in wanted and name not in measured]
