"""Whether what a config asks for holds for types of which size and kind are known."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TRAIT = re.compile(r"(!?)\s*is_floating_point<(\w+)>")
_SIZE = re.compile(r"sizeof\((\w+)\)\s*(<=|>=|==|<|>)\s*(\d+)")
_SAME = re.compile(r"(!?)\s*(?:std::)?is_same<(\w+),\s*([\w:]+)>::value")
_NUMBER = re.compile(r"(\w+)\s*==\s*(\d+)")
_COMPARED = {
    "<=": int.__le__,
    ">=": int.__ge__,
    "==": int.__eq__,
    "<": int.__lt__,
    ">": int.__gt__,
}


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """An argument of a config: a type, or a number."""

    name: str
    size: int | None
    """In bytes; none where nobody says it."""
    floating: bool = False


def holds(facts: Sequence[str], types: Mapping[str, TypeFacts]) -> bool:
    """Whether all facts are known to hold; `types` has arguments by parameter."""
    return all(_holds(fact, types) for fact in facts)


def _holds(fact: str, types: Mapping[str, TypeFacts]) -> bool:
    if match := _TRAIT.fullmatch(fact):
        known = types.get(match[2])
        return known is not None and known.floating == (not match[1])
    if match := _SIZE.fullmatch(fact):
        known = types.get(match[1])
        size = None if known is None else known.size
        return size is not None and bool(_COMPARED[match[2]](size, int(match[3])))
    if match := _SAME.fullmatch(fact):
        known = types.get(match[2])
        same = known is not None and _last(known.name) == _last(match[3])
        return known is not None and same == (not match[1])
    if match := _NUMBER.fullmatch(fact):
        known = types.get(match[1])
        return known is not None and known.name == match[2]
    return False


def _last(name: str) -> str:
    return name.rpartition("::")[2]
