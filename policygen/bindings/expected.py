"""What a policy must show when it takes an entry's values."""

import re
from collections.abc import Mapping

from policygen.bindings.variant import Sizes, fitting_threads, scale, unscaled
from policygen.bindings.words import words
from policygen.model.bindings import FamilyBinding, MemberRule, Site, Unit
from policygen.model.tuning import Value, spell

_NUMBER = re.compile(r"-?\d+")
# "mine::fast": the compiler tells enumerators without what they are in
_SCOPED = re.compile(r"(?:::)?\w+(?:::\w+)+")
# "policy.threads_per_block", "selected.lookahead.stages"
_PATH = re.compile(r"(policy|selected)\.([\w.]+)")


def value_name(site: Site, member: str, rule: MemberRule) -> str | None:
    """What the policy calls a member: the same, but for a count in another unit."""
    if rule.shown:
        return rule.shown
    if member in site.values or member in site.types or (rule.delay and site.delay):
        return member
    return site.marked if _unit(member, rule) else None


def selected_path(policy: str, text: str) -> str | None:
    """`policy.vec_size` as seen from what is selected: `multi_tile.vec_size`; none for no path."""
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    return f"{policy}.{match[2]}" if match[1] == "policy" and policy else match[2]


def expected_values(
    site: Site, family: FamilyBinding, members: Mapping[str, str], sizes: Sizes
) -> dict[str, Value]:
    """The values of the policy by name, for an entry with these members."""
    found: dict[str, Value] = {}
    for member, text in members.items():
        rule = family.members[member]
        name = value_name(site, member, rule)
        if name is not None:
            found[name] = _value(text, _unit(member, rule), sizes)
    return found | _fitting(site, family, found, sizes)


def kept_members(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, str] | None:
    """The members that give a policy the values that it has; none where they cannot be told."""
    found = {}
    for member, rule in family.members.items():
        name = value_name(site, member, rule)
        if name is None or name not in values:
            return None
        value, unit = values[name], _unit(member, rule)
        if unit and isinstance(value, int):
            value = unscaled(unit.scaling, value, sizes[unit.of])
        found[member] = spell(value)
    return found


def _unit(member: str, rule: MemberRule) -> Unit | None:
    """What items are counted in; the unit of threads is that of their items."""
    return None if words().members.counts_threads(member) else rule.unit


def _fitting(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, Value]:
    """The threads that are left of those that are written."""
    items = values.get(site.marked)
    return {
        name: fitting_threads(rule.unit, threads, items, sizes)
        for member, rule in family.members.items()
        if words().members.counts_threads(member) and (name := value_name(site, member, rule))
        if isinstance(threads := values.get(name), int) and isinstance(items, int)
    }


def _value(text: str, unit: Unit | None, sizes: Sizes) -> Value:
    if text in {"true", "false"}:
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text.rpartition("::")[2] if _SCOPED.fullmatch(text) else text
    return scale(unit.scaling, int(text), sizes[unit.of]) if unit else int(text)
