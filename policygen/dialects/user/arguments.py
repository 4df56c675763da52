"""The template arguments of a selector: what tells workloads apart, and how they are spelled."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.load import axis_type, is_constant, types
from policygen.dialects.user.public import PublicSelector
from policygen.model.policies import Whole

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
