"""What entries hold: a variant's values, or what a workload has now."""

import re
from collections.abc import Sequence

from policygen.bindings.expected import kept_members
from policygen.errors import InputError
from policygen.model.entry_text import Content
from policygen.model.plan import Options
from policygen.model.results import ScoredVariant
from policygen.model.tuning import Entry, Family
from policygen.planning.cases import Case
from policygen.planning.measured import gpu_name, numbers

# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIERS = re.compile(r"^(?:::)?(?:\w+::)+")
_WORD = re.compile(r"\w+")
EXPLICIT = "Fall back explicitly, so that the more general entry is not picked up"


def values_content(case: Case, members: dict[str, str], text: str | None) -> Content:
    """The values, or what an entry inherits that has them, in the family's manner."""
    base = case.to.binding.base
    if base is not None and _fits(members, base.needs):
        constructor = next(name for name, rule in case.to.binding.members.items() if rule.delay)
        numbers_of = members[constructor].partition("<")[2].removesuffix(">")
        delay = [part.strip() for part in numbers_of.split(",")]
        known = {**members, "ns": delay[0], "l2w": delay[-1]}
        args = ", ".join(arg if arg == "{0}" else arg.format(**known) for arg in base.args)
        return Content("inherits", members, f"{base.name}<{args}>", text)
    return Content("values", members, None, text)


def _fits(members: dict[str, str], needs: dict[str, str]) -> bool:
    return all(members[name].partition("<")[0] == value for name, value in needs.items())


def kept_content(case: Case) -> Content:
    """What gives a workload what it has now, when a broader entry would take it."""
    family = case.to.family
    primary = next(entry for entry in family.entries if entry.kind == "primary")
    if case.to.is_new:
        if primary.body_span is None:
            return Content("empty", label=EXPLICIT)
        args = ", ".join(f"{{{position}}}" for position in range(len(family.parameters)))
        return Content("inherits", base=f"{family.name}<{args}>", label=EXPLICIT)
    entry = case.entry or primary
    if entry.inherits and not entry.members and (base := _base_of(family, entry)):
        return Content("inherits", base=base, label=EXPLICIT)
    if entry.inherits or (entry.members and entry.kind == "primary"):
        return _policy_content(case)
    values = {m.name: _QUALIFIERS.sub("", m.spelling, count=1) for m in entry.members}
    known = next((label for label in entry.labels if not label.rejected), None)
    text = None if known is None else _label(known.variant, known.scores)
    if not values:
        return Content("empty", label=EXPLICIT)
    return Content("values", values, label=text)


def kept_return(case: Case) -> Content:
    """The values of the return that is for all types, before it gets others."""
    if case.to.now is None:
        raise InputError(f"no return can keep what {case.measurement.name} has")
    known = next((label for label in case.to.now.entry.labels if not label.rejected), None)
    return Content("values", {}, label=_label(known.variant, known.scores) if known else EXPLICIT)


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


def _policy_content(case: Case) -> Content:
    """The values that its policy shows."""
    values = kept_members(case.to.site, case.to.binding, case.told.values, case.told.sizes)
    if values is None:
        raise InputError(f"no entry can keep what {case.measurement.name} has")
    return Content("values", values)


def label(variant: ScoredVariant, case: Case, options: Options) -> str:
    """`ipt_20.tpb_512 1.013282  0.967525  1.015764  1.047982`, as CUB's own comments are."""
    text = _label(variant.variant, numbers(variant))
    if options.provenance == "scores":
        return text
    scored = case.measurement.scored
    origin = (gpu_name(scored.gpu), f"CUDA {scored.ctk}", f"CCCL {scored.cccl}", options.date)
    return f"{text}  ({', '.join(part for part in origin if part)})"


def _label(variant: str, scores: Sequence[float]) -> str:
    return f"{variant} {'  '.join(f'{score:.6f}' for score in scores)}".rstrip()
