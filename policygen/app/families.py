"""Struct families beside policy selectors: named, left, or planned and proved with the returns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from policygen.app.compilers import older_compiler
from policygen.app.effect import proven
from policygen.app.planned import Planned
from policygen.app.reading import ReadTree
from policygen.model.plan import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.workload import Point
from policygen.planning import legacy
from policygen.planning.again import again
from policygen.planning.plan import Planner
from policygen.planning.served import served
from policygen.proof.oracle import Compiler


def with_families(work: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """The plan with what becomes of the families that stand beside the returns."""
    plan, headers = work.plan, work.compiler.headers
    wish = plan.options.legacy
    if not plan.cub.has_selectors:
        told = [f"the tree has no policy selectors: --legacy {wish} says nothing about it"]
        return _told(plan, told if wish != "leave" else [])
    if wish == "update":
        return _updated(work, planner, scored)
    written = (action.benchmark for action in plan.actions if action.written)
    remarks = legacy.left(legacy.headers_beside(written, plan.cub, headers))
    if wish == "warn":
        remarks += unlike(plan, work.tree, work.compiler)
    return _told(plan, remarks)


def _updated(work: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """The same results in the families, by the rules of their own entries."""
    own, headers = work.plan, work.compiler.headers
    results, held = legacy.results_for(own, scored, headers)
    families = _older_planner(work, planner, held).plan(results)
    plan = legacy.joined(own, families, held, work.data)
    if planner.prove and own.edits and families.edits:
        proven(replace(work, plan=plan))
    remarks = served(families, headers)
    given = {a.point: legacy.given(a) for a in families.actions if a.point not in held}
    remarks += legacy.unread(plan, headers)
    return _told(plan, [*remarks, *legacy.unlike(legacy.returned(plan, headers), given)])


def families_again(work: Planned, planner: Planner, plan: Plan) -> Plan:
    """What a plan that was kept comes to, with its families; `work` has it without them."""
    results, held = legacy.results_for(work.plan, plan.results, work.compiler.headers)
    older = _older_planner(work, planner, held)
    families = again(older, legacy.part(plan, legacy=True), results)
    return legacy.joined(work.plan, families, held, work.data)


def unlike(plan: Plan, found: ReadTree, compiler: Compiler) -> list[str]:
    """The entries of families that say something else than the returns do by a plan."""
    actions = legacy.returned(plan, compiler.headers)
    older = older_compiler(found, compiler)
    told = older.tell([action.point for action in actions], plan.options.arch) if actions else {}
    given = {point: legacy.shown(one) for point, one in told.items()}
    return [*legacy.unlike(actions, given), *legacy.unread(plan, compiler.headers)]


def _older_planner(work: Planned, planner: Planner, held: Mapping[Point, str]) -> Planner:
    """The planner of the older dispatchers; `held` workloads stay as they are."""
    compiler = older_compiler(work.tree, work.compiler)
    sources = replace(planner.sources, cub=compiler.cub)
    return replace(planner, sources=sources, oracle=compiler, held=held)


def _told(plan: Plan, remarks: Sequence[str]) -> Plan:
    return plan.model_copy(update={"remarks": (*plan.remarks, *remarks)})
