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


def role_sizes(binding: FamilyBinding, entry: Entry) -> dict[str, int]:
    """Role → bytes, as far as an entry's arguments tell them."""
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
