"""In what a count is counted, and how large the elements are that an entry is for."""

import re
from collections.abc import Mapping
from functools import cache

from policygen.bindings.load import types
from policygen.bindings.variant import scale
from policygen.bindings.words import words
from policygen.model.bindings import FamilyBinding, Unit
from policygen.model.tuning import Entry
from policygen.proof.lint.keys import normal

# "key_size::_4", "16"
_BYTES = re.compile(r"(?:\w+::_)?(\d+)")
# "key_size == 4", "input_t == type_t::uint32"
_ASKED = re.compile(
    r"(?P<name>\w+?)_(?:size(?:_bytes)? == (?P<bytes>\d+)"
    r"|t(?:ype)? == (?:\w+::)*[a-z]+(?P<bits>\d+))"
)


def role_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Role → bytes, as far as an entry's arguments tell them."""
    if entry.kind == "branch":
        return _asked_sizes(binding, entry)
    sizes: dict[str, int] = {}
    if len(binding.args) != len(entry.args):
        return sizes
    for expression, arg in zip(binding.args, entry.args, strict=True):
        role, size = _size().search(expression), _BYTES.fullmatch(arg)
        if role and size and int(size[1]):
            sizes[role[1]] = int(size[1])
        elif named := _type_sizes().get(normal(arg)):
            sizes.setdefault(expression, named)
    return sizes


def _asked_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Role → bytes, where a return asks for one size: `key_size == 4` is that of `KeyT`."""
    sizes: dict[str, int] = {}
    for role in {rule.unit.of for rule in binding.members.values() if rule.unit}:
        name = role.removesuffix("T").lower()
        for fact in entry.args:
            parts = [_ASKED.fullmatch(part.strip(" ()")) for part in fact.split("||")]
            asked = {
                int(p["bytes"] or int(p["bits"]) // 8) for p in parts if p and p["name"] == name
            }
            if all(parts) and len(asked) == 1:
                sizes[role] = asked.pop()
    return sizes


def scale_items(unit: Unit | None, items: int, sizes: Mapping[str, int]) -> int | None:
    """The items that each thread gets; none where the size that scales them is not known."""
    if unit is None:
        return items
    size = sizes.get(unit.of)
    if size is None:
        return None
    return max(1, scale(unit.scaling, items, size))


@cache
def _size() -> re.Pattern[str]:
    """`classify_key_size<KeyT>()`, `sizeof(ValueT)`."""
    return re.compile(rf"(?:\b{words().tiles.sizes}\s*<|\bsizeof\s*\()\s*(\w+)\s*[>)]")


@cache
def _type_sizes() -> dict[str, int]:
    return {normal(t.cpp): t.size for t in types().types if t.cpp and t.size}
