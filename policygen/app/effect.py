"""What a change does to what is selected: it has its effect, and no other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.app.compilers import compiler_for, older_compiler, open_tree
from policygen.app.filters import parse_archs
from policygen.app.journal import last_apply, record_proof
from policygen.app.reading import ReadTree
from policygen.app.session import Session
from policygen.errors import EffectError, UnprovableError
from policygen.headers.scan import read_changed
from policygen.model.plans import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Effect, Resolution
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.paths import nearby
from policygen.planning import legacy
from policygen.planning.judge import judge
from policygen.planning.memory import changed_headers
from policygen.planning.plan import Planner
from policygen.planning.saved import again, served
from policygen.proof.oracle import Compiler
from policygen.proof.outside_inputs import unprovable
from policygen.report.plan_views import effect_summary
from policygen.steps import Progress
from policygen.trees.layout import tree_content


def verify_effect(session: Session, arch: str | None = None) -> Effect:
    """Asks whether the last apply, or the last one for an architecture, has its effect."""
    wanted = parse_archs([] if arch is None else [arch])
    plan, before = last_apply(session.store, session.root, wanted)
    names = tuple(file.path for file in plan.files)
    found, data, _ = open_tree(session.cub, names, progress=session.progress)
    headers = {name: read_changed(found.paths[name], before[name]) for name in names}
    now = {name: data[name] for name in names}
    effect = applied_effect(plan, found, headers, before, now, progress=session.progress)
    words, passed = effect_summary(effect), not effect.wrong
    record_proof(session.store, session.cub, "verify-effect", words, session.note, passed=passed)
    return effect


def applied_effect(
    plan: Plan,
    found: ReadTree,
    headers: Mapping[str, TuningHeader],
    before: Mapping[str, bytes],
    now: Mapping[str, bytes],
    *,
    progress: Progress | None = None,
    known: tuple[Resolution, Resolution] | None = None,
) -> Effect:
    """Whether a plan that is applied has its effect; `headers` are those of before."""
    compiler = compiler_for(found, headers, before, progress=progress)
    compiler = replace(compiler, replaced=before)
    if known is not None:
        compiler.take(now, *known)
    effect = effect_of(plan.model_copy(update={"cub": found.cub}), found, compiler, now)
    return effect.model_copy(update={"content": tree_content(found.cub)})


# A plan together with the tree that it is for.


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the tree that it is for, and the compiler that knows it."""

    plan: Plan
    tree: ReadTree
    data: Mapping[str, bytes]
    compiler: Compiler

    @property
    def changed(self) -> dict[str, bytes]:
        """The headers that the plan changes, as they shall be."""
        return changed_headers(self.plan, self.data)


def proven(planned: Planned) -> Effect:
    """The effect of a plan on what is selected; another one than planned is an error."""
    effect = effect_of(planned.plan, planned.tree, planned.compiler, planned.changed)
    if effect.wrong:
        raise EffectError([f"{one.name}: {one.reason}" for one in effect.wrong])
    return effect


def effect_of(
    plan: Plan, found: ReadTree, compiler: Compiler, changed: Mapping[str, bytes]
) -> Effect:
    """What a change does: by the tree's own dialect, and by families that were written, too."""
    _check_provable(found, changed)
    effect = _judged(legacy.part(plan, legacy=False), compiler, changed)
    if plan.options.legacy == "update" and found.cub.has_selectors:
        older = older_compiler(found, compiler)
        effect = legacy.both(effect, _judged(legacy.part(plan, legacy=True), older, changed))
    return effect


def _check_provable(found: ReadTree, names: Iterable[str]) -> None:
    """Raises where headers ask for what no proof can know."""
    paths = [found.paths[name] for name in sorted(names)]
    if asked := unprovable(found.cub, paths, nearby):
        raise UnprovableError([finding.where for finding in asked])


def _judged(plan: Plan, compiler: Compiler, changed: Mapping[str, bytes]) -> Effect:
    return judge(
        plan, compiler.compare(changed), lambda point, arch: compiler.why_not(changed, point, arch)
    )


# Struct families beside policy selectors: named, left, or planned and proved with the returns.


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
