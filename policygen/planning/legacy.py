"""Plans the struct families beside policy selectors, which older dispatchers read."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel

from policygen.headers.specializations.siblings import Headers, beside, is_read
from policygen.headers.spelling import splice
from policygen.model.arch import arch_number
from policygen.model.plans import Action, Plan, planned_file
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Effect, Selected
from policygen.model.trees import Cub
from policygen.model.tuning import Value, entry_name, spell
from policygen.model.workload import Point, in_words
from policygen.planning.measured import measurements


def headers_beside(benchmarks: Iterable[str], cub: Cub, headers: Headers) -> set[str]:
    """Returns the headers that have such families for the benchmarks."""
    sites = (beside(name, cub, headers) for name in dict.fromkeys(benchmarks))
    return {site.header for site in sites if site}


def unread(plan: Plan, headers: Headers) -> list[str]:
    """Reports the headers whose families no policy reads."""
    benchmarks = dict.fromkeys(action.benchmark for action in plan.actions)
    sites = [site for name in benchmarks if (site := beside(name, plan.cub, headers))]
    names = {site.header for site in sites if not is_read(site, headers)}
    if not names:
        return []
    prefix = "no policy reads the struct families of"
    return [f"{prefix} {', '.join(sorted(names))}: their effect cannot be proven, so they stay"]


def report_unchanged_families(names: Collection[str]) -> list[str]:
    """Reports the headers whose families are left unchanged."""
    prefix = "the struct families of the older dispatchers are unchanged"
    return [f"{prefix} ({', '.join(sorted(names))})"] if names else []


def returned(plan: Plan, headers: Headers) -> list[Action]:
    """Returns the actions on returns for workloads that families decide, too, without fallbacks."""
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
    """Returns the results that concern families, and those workloads whose returns stay."""
    options, version = plan.options, plan.cub.bindings.at(plan.cub.version)
    measured, _ = measurements(scored, version, options.arch, force=options.force)
    sites = {
        measurement.point: beside(measurement.benchmark.name, plan.cub, headers)
        for measurement in measured
    }
    selected = [
        measurement for measurement in measured if is_read(sites[measurement.point], headers)
    ]
    reasons = {
        action.point: action.reason for action in plan.actions if action.decision == "reject"
    }
    held = {
        measurement.point: f"its return stays as it is: {reasons[measurement.point]}"
        for measurement in selected
        if measurement.point in reasons
    }
    return [measurement.scored for measurement in selected], held


_ROWS = ("actions", "reached", "instead", "unsaid", "held")
"""The fields of a plan whose rows are either of the returns or of the families."""
Row = TypeVar("Row", bound=BaseModel)


def joined(own: Plan, families: Plan, held: Collection[Point], data: Mapping[str, bytes]) -> Plan:
    """Merges the plans for a tree's returns and families."""
    edits = sorted((*own.edits, *families.edits), key=lambda edit: (edit.path, edit.span))
    files = []
    for name in sorted({edit.path for edit in edits}):
        file_edits = [edit for edit in edits if edit.path == name]
        after = splice(name, data[name], file_edits)
        files.append(planned_file(name, len(file_edits), data[name], after))
    actions = tuple(action for action in families.actions if action.point not in held)
    families = families.model_copy(update={"actions": actions})
    rows = {name: (*getattr(own, name), *_as_legacy(getattr(families, name))) for name in _ROWS}
    return own.model_copy(
        update={
            **rows,
            "files": tuple(files),
            "edits": tuple(edits),
            "policies": (*own.policies, *families.policies),
            "joint": (*own.joint, *(joint for joint in families.joint if joint not in own.joint)),
        }
    )


def part(plan: Plan, *, legacy: bool) -> Plan:
    """Returns the part of a plan that concerns the returns, or the families."""
    rows = {
        name: tuple(row for row in getattr(plan, name) if row.legacy == legacy) for name in _ROWS
    }
    return plan.model_copy(update={**rows, "bounded": () if legacy else plan.bounded})


def both(own: Effect, families: Effect) -> Effect:
    """Merges the effects of the returns and of the families."""
    return own.model_copy(
        update={
            "archs": tuple(sorted({*own.archs, *families.archs}, key=arch_number)),
            "between": tuple(sorted({*own.between, *families.between}, key=arch_number)),
            "compared": own.compared + families.compared,
            "changed": (*own.changed, *_as_legacy(families.changed)),
            "wrong": (*own.wrong, *_as_legacy(families.wrong)),
        }
    )


def _as_legacy(rows: Iterable[Row]) -> Iterator[Row]:
    return (row.model_copy(update={"legacy": True}) for row in rows)


Given = tuple[str, Mapping[str, Value]]
"""The source of a workload's values, in words, and the values."""


def shown(selected: Selected) -> Given:
    """Returns what the families give a workload now."""
    if selected.entry is None:
        return "the policy of the struct families (no entry decides it)", selected.values
    family, entry = selected.entry
    return f"{family.header}:{entry.line} {entry_name(family.name, entry.args)}", selected.values


def given(action: Action) -> Given:
    """Returns what the families give a workload according to their plan."""
    values = (action.after if action.written else action.before) or {}
    target = action.target
    if target is None:
        return "the policy of the struct families", values
    return f"{target.header}: {entry_name(target.family, target.args)}", values


def unlike(actions: Sequence[Action], families: Mapping[Point, Given]) -> list[str]:
    """Reports the families' entries that differ from the returns, each with a workload."""
    actions_by_difference: dict[tuple[str, str], list[Action]] = {}
    for action in actions:
        if action.point not in families:
            continue
        (place, values), returned_values = families[action.point], action.after or {}
        if pairs := ", ".join(
            f"{name} {spell(value)}, returned {spell(returned_values[name])}"
            for name, value in values.items()
            if returned_values.get(name, value) != value
        ):
            actions_by_difference.setdefault((place, pairs), []).append(action)
    return [
        f"{place} differs from what is returned for {_names(group)}: {pairs}"
        for (place, pairs), group in actions_by_difference.items()
    ]


def _names(group: Sequence[Action]) -> str:
    name = in_words(group[0].benchmark, group[0].workload)
    return f"{name} and {len(group) - 1} more" if len(group) > 1 else name
