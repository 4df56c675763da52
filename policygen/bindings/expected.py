"""What a policy must show when it takes an entry's values."""

import re
from collections.abc import Mapping

from policygen.bindings.variant import Sizes, scale, threads_that_fit, unscaled
from policygen.model.bindings import FamilyBinding, MemberRule, Site
from policygen.model.tuning import Value, spell

_NUMBER = re.compile(r"-?\d+")


def value_name(site: Site, member: str, rule: MemberRule) -> str | None:
    """What the policy calls a member: the same, but for a count in another unit."""
    if rule.shown:
        return rule.shown
    if member in site.values or member in site.types or (rule.delay and site.delay):
        return member
    return site.marked if rule.parameter == "ipt" else None


def expected_values(
    site: Site, family: FamilyBinding, members: Mapping[str, str], sizes: Sizes
) -> dict[str, Value]:
    """The values of the policy by name, for an entry with these members."""
    found: dict[str, Value] = {}
    for member, text in members.items():
        rule = family.members[member]
        name = value_name(site, member, rule)
        if name is not None:
            found[name] = _value(rule, text, sizes)
    threads, items = family.members.get("threads"), found.get(site.marked)
    unit = threads.unit if threads else None
    if unit and isinstance(items, int) and isinstance(found["threads"], int):
        found["threads"] = threads_that_fit(found["threads"], items, sizes[unit.of])
    return found


def kept_members(
    site: Site, family: FamilyBinding, values: Mapping[str, Value], sizes: Sizes
) -> dict[str, str] | None:
    """The members that give a policy the values that it has; none where they cannot be told."""
    found = {}
    for member, rule in family.members.items():
        name = value_name(site, member, rule)
        if name is None or name not in values:
            return None
        value = values[name]
        if rule.unit and member != "threads" and isinstance(value, int):
            value = unscaled(rule.unit.scaling, value, sizes[rule.unit.of])
        found[member] = spell(value)
    return found


def _value(rule: MemberRule, text: str, sizes: Sizes) -> Value:
    if text in {"true", "false"}:
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text
    number = int(text)
    if rule.unit and rule.parameter != "tpb":
        return scale(rule.unit.scaling, number, sizes[rule.unit.of])
    return number
