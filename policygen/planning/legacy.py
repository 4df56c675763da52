"""Struct families that stand beside policy selectors, for the older dispatchers."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from policygen.headers.specializations.siblings import Headers, beside, is_read
from policygen.headers.spelling import splice
from policygen.model.arch import arch_number
from policygen.model.plans import Action, Plan
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Effect, Selected
from policygen.model.trees import Cub
from policygen.model.tuning import Value, entry_name, spell
from policygen.model.workload import Point, in_words
from policygen.planning.measured import measurements
from policygen.planning.memory import planned_file


def headers_beside(benchmarks: Iterable[str], cub: Cub, headers: Headers) -> set[str]:
    """The headers with such families of some benchmarks."""
    found = (beside(name, cub, headers) for name in dict.fromkeys(benchmarks))
    return {site.header for site in found if site}


def unread(plan: Plan, headers: Headers) -> list[str]:
    """That the families of some headers cannot be asked about."""
    benchmarks = dict.fromkeys(action.benchmark for action in plan.actions)
    sites = [site for name in benchmarks if (site := beside(name, plan.cub, headers))]
    names = {site.header for site in sites if not is_read(site, headers)}
    if not names:
        return []
    told = "no policy reads the struct families of"
    return [f"{told} {', '.join(sorted(names))}: what they do cannot be proved, and they stay"]


def left(names: Collection[str]) -> list[str]:
    """That the families of some headers stay as they are."""
    told = "the struct families of the older dispatchers are left as they are"
    return [f"{told} ({', '.join(sorted(names))})"] if names else []


def returned(plan: Plan, headers: Headers) -> list[Action]:
    """What the returns say of workloads that families decide, too; their fallbacks aside."""
    return [
        action
        for action in plan.actions
        if not action.legacy
        and (action.written or action.decision == "keep")
        and is_read(beside(action.benchmark, plan.cub, headers), headers)
    ]


def results_for(
    plan: Plan, scored: Sequence[ScoredWorkload], headers: Headers
) -> tuple[list[ScoredWorkload], dict[Point, str]]:
    """The results that concern families, and of those the workloads whose returns stay."""
    options = plan.options
    known, _ = measurements(scored, plan.cub.version, options.arch, force=options.force)
    sites = {one.point: beside(one.benchmark.name, plan.cub, headers) for one in known}
    mine = [one for one in known if is_read(sites[one.point], headers)]
    reasons = {a.point: a.reason for a in plan.actions if a.decision == "reject"}
    held = {
        one.point: f"its return stays as it is: {reasons[one.point]}"
        for one in mine
        if one.point in reasons
    }
    return [one.scored for one in mine], held


def joined(own: Plan, families: Plan, held: Collection[Point], data: Mapping[str, bytes]) -> Plan:
    """One plan for the returns and for the families of a tree."""
    edits = sorted((*own.edits, *families.edits), key=lambda edit: (edit.path, edit.span))
    files = []
    for name in sorted({edit.path for edit in edits}):
        mine = [edit for edit in edits if edit.path == name]
        after = splice(name, data[name], mine)
        files.append(planned_file(name, len(mine), data[name], after))
    mark = {"legacy": True}
    told = (action for action in families.actions if action.point not in held)
    return own.model_copy(
        update={
            "actions": (*own.actions, *(action.model_copy(update=mark) for action in told)),
            "reached": (*own.reached, *(r.model_copy(update=mark) for r in families.reached)),
            "files": tuple(files),
            "edits": tuple(edits),
            "policies": (*own.policies, *families.policies),
            "joint": (*own.joint, *(one for one in families.joint if one not in own.joint)),
            "instead": (*own.instead, *(i.model_copy(update=mark) for i in families.instead)),
            "unsaid": (*own.unsaid, *(one.model_copy(update=mark) for one in families.unsaid)),
            "held": (*own.held, *(one.model_copy(update=mark) for one in families.held)),
        }
    )


def part(plan: Plan, *, legacy: bool) -> Plan:
    """What a plan says of the returns, or of the families."""
    return plan.model_copy(
        update={
            "actions": tuple(action for action in plan.actions if action.legacy == legacy),
            "reached": tuple(one for one in plan.reached if one.legacy == legacy),
            "instead": tuple(one for one in plan.instead if one.legacy == legacy),
            "unsaid": tuple(one for one in plan.unsaid if one.legacy == legacy),
            "held": tuple(one for one in plan.held if one.legacy == legacy),
            "bounded": () if legacy else plan.bounded,
        }
    )


def both(own: Effect, families: Effect) -> Effect:
    """One effect of what the returns give, and of what the families give."""
    mark = {"legacy": True}
    return own.model_copy(
        update={
            "archs": tuple(sorted({*own.archs, *families.archs}, key=arch_number)),
            "between": tuple(sorted({*own.between, *families.between}, key=arch_number)),
            "compared": own.compared + families.compared,
            "changed": (*own.changed, *(c.model_copy(update=mark) for c in families.changed)),
            "wrong": (*own.wrong, *(w.model_copy(update=mark) for w in families.wrong)),
        }
    )


Given = tuple[str, Mapping[str, Value]]
"""Where a workload's values come from, in words, and the values."""


def shown(told: Selected) -> Given:
    """What families give a workload now."""
    if told.entry is None:
        return "the policy of the struct families, which no entry decides", told.values
    family, entry = told.entry
    return f"{family.header}:{entry.line} {entry_name(family.name, entry.args)}", told.values


def given(action: Action) -> Given:
    """What families give a workload by their plan."""
    values = (action.after if action.written else action.before) or {}
    target = action.target
    if target is None:
        return "the policy of the struct families", values
    return f"{target.header}: {entry_name(target.family, target.args)}", values


def unlike(actions: Sequence[Action], families: Mapping[Point, Given]) -> list[str]:
    """The entries of families that say something else than the returns, each with a workload."""
    found: dict[tuple[str, str], list[Action]] = {}
    for action in actions:
        if action.point not in families:
            continue
        place, values = families[action.point]
        if pairs := ", ".join(_pairs(action.after or {}, values)):
            found.setdefault((place, pairs), []).append(action)
    return [
        f"{place} says something else than what is returned for {_names(group)}: {pairs}"
        for (place, pairs), group in found.items()
    ]


def _pairs(returned: Mapping[str, Value], families: Mapping[str, Value]) -> Iterator[str]:
    for name, value in families.items():
        if name in returned and returned[name] != value:
            yield f"{name} {spell(value)}, returned {spell(returned[name])}"


def _names(group: Sequence[Action]) -> str:
    name = in_words(group[0].benchmark, group[0].workload)
    return f"{name} and {len(group) - 1} more" if len(group) > 1 else name
