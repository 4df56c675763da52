"""What a specialization holds: a variant's values, or what a workload has now."""

import re
from collections.abc import Mapping

from policygen.dialects.provenance import EXPLICIT, known_label
from policygen.model.bindings import FamilyBinding
from policygen.model.entry_text import Content
from policygen.model.tuning import Entry, Family

# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIERS = re.compile(r"^(?:::)?(?:\w+::)+")
_WORD = re.compile(r"\w+")


def values_content(binding: FamilyBinding, members: dict[str, str], text: str | None) -> Content:
    """The values, or what an entry inherits that has them, in the family's manner."""
    base = binding.base
    if base is not None and _fits(members, base.needs):
        constructor = next(name for name, rule in binding.members.items() if rule.delay)
        numbers_of = members[constructor].partition("<")[2].removesuffix(">")
        delay = [part.strip() for part in numbers_of.split(",")]
        known = {**members, "ns": delay[0], "l2w": delay[-1]}
        args = ", ".join(arg if arg == "{0}" else arg.format(**known) for arg in base.args)
        return Content("inherits", members, f"{base.name}<{args}>", text)
    return Content("values", members, None, text)


def _fits(members: Mapping[str, str], needs: Mapping[str, str]) -> bool:
    return all(members[name].partition("<")[0] == value for name, value in needs.items())


def kept_by_new(like: Family) -> Content:
    """What an entry of a new family holds, so that all stays as in the one before."""
    if _primary(like).body_span is None:
        return Content("empty", label=EXPLICIT)
    args = ", ".join(f"{{{position}}}" for position in range(len(like.parameters)))
    return Content("inherits", base=f"{like.name}<{args}>", label=EXPLICIT)


def kept_content(family: Family, now: Entry | None) -> Content | None:
    """What an entry says of itself; none where only the policy shows the values."""
    entry = now or _primary(family)
    if entry.inherits and not entry.members and (base := _base_of(family, entry)):
        return Content("inherits", base=base, label=EXPLICIT)
    if entry.inherits or (entry.members and entry.kind == "primary"):
        return None
    spelled = {m.name: _QUALIFIERS.sub("", m.spelling, count=1) for m in entry.members}
    if not spelled:
        return Content("empty", label=EXPLICIT)
    return Content("values", spelled, label=known_label(entry.labels))


def _primary(family: Family) -> Entry:
    return next(entry for entry in family.entries if entry.kind == "primary")


def _base_of(family: Family, entry: Entry) -> str | None:
    """What an entry inherits from, in terms of arguments; none where it says more than those."""
    names = [p.name for p in family.parameters] if entry.kind == "primary" else list(entry.args)
    own = entry.own_parameters
    used = [word for word in _WORD.findall(entry.inherits or "") if word in own]
    if any(word not in names for word in used):
        return None
    return _WORD.sub(
        lambda match: f"{{{names.index(match[0])}}}" if match[0] in own else match[0],
        entry.inherits or "",
    )
