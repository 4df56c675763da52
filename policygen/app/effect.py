"""Proves the effect of a change on what is selected: exactly what was intended."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.app.filters import parse_archs
from policygen.app.journal import last_apply, record_proof
from policygen.app.session import Session
from policygen.errors import EffectError, UnprovableError, plural
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_changed
from policygen.model.plans import Plan
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Effect, InputChange, Resolution
from policygen.model.tuning import TuningHeader
from policygen.model.workload import Point
from policygen.planning import legacy
from policygen.planning.judge import judge, judge_inputs
from policygen.planning.plan import Planner, remake_plan
from policygen.planning.saved import changed_headers, served
from policygen.proof.all_inputs import InputDelta
from policygen.proof.oracle import Compiler, compiler_for, open_compiler
from policygen.proof.outside_inputs import unprovable
from policygen.proof.reading import ReadTree
from policygen.steps import Progress
from policygen.trees.layout import tree_content


def verify_effect(session: Session, arch: str | None = None) -> Effect:
    """Proves the effect of the last apply, or of the last apply for an architecture."""
    archs = parse_archs([] if arch is None else [arch])
    plan, before = last_apply(session.store, session.root, archs)
    names = tuple(file.path for file in plan.files)
    compiler = open_compiler(session.cub, names, progress=session.progress)
    tree = compiler.tree
    headers = {name: read_changed(tree.paths[name], before[name]) for name in names}
    after = {name: compiler.sources.data[name] for name in names}
    effect = applied_effect(plan, tree, headers, before, after, session.progress)
    words, passed = effect.summary, not effect.failures
    record_proof(session.store, session.cub, "verify-effect", words, session.note, passed=passed)
    return effect


def applied_effect(
    plan: Plan,
    tree: ReadTree,
    headers: Mapping[str, TuningHeader],
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    progress: Progress | None = None,
    *,
    compared: tuple[Resolution, Resolution, InputDelta] | None = None,
) -> Effect:
    """Proves the effect of an applied plan. `headers` are those before the apply.

    `compared` are what both sides select, and what differs for all inputs, if that is known.
    """
    sources = TuningTree(tree.cub, headers, before)
    compiler = replace(compiler_for(tree, progress=progress), sources=sources, replaced=before)
    if compared is not None:
        compiler.take(after, *compared)
    effect = effect_of(plan.model_copy(update={"cub": tree.cub}), compiler, after)
    return effect.model_copy(update={"content": tree_content(tree.cub)})


# A plan together with its tree.


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the compiler for its tree."""

    plan: Plan
    compiler: Compiler

    @property
    def changed(self) -> dict[str, bytes]:
        """The contents of the changed headers after the plan."""
        return changed_headers(self.plan, self.before)

    @property
    def before(self) -> Mapping[str, bytes]:
        """The contents of the headers of the tree."""
        return self.compiler.sources.data


def prove_plan(planned: Planned) -> Effect:
    """Proves the effect of a plan. Raises an error if it differs from what was planned."""
    effect = effect_of(planned.plan, planned.compiler, planned.changed)
    if effect.failures:
        raise EffectError(effect.failures)
    return effect


def effect_of(plan: Plan, compiler: Compiler, changed: Mapping[str, bytes]) -> Effect:
    """Judges a change in the tree's own dialect, and in families that were written as well."""
    tree = compiler.tree
    paths = [tree.paths[name] for name in sorted(changed)]
    if findings := unprovable(tree.cub, paths):
        raise UnprovableError([finding.where for finding in findings])
    effect = _judge_plan(legacy.part(plan, legacy=False), compiler, changed)
    if plan.options.legacy == "update" and tree.cub.has_selectors:
        families = _judge_plan(legacy.part(plan, legacy=True), compiler.older, changed)
        effect = legacy.both(effect, families)
    delta = compiler.compare_inputs(changed)
    return effect.model_copy(
        update={
            "conditions": tree.conditions(changed),
            "inputs": judge_inputs(plan.options, delta.changes),
            "inputs_compared": delta.compared,
            "unknown": tuple(f"{header}: {reason}" for header, reason in delta.unknown),
        }
    )


def _judge_plan(plan: Plan, compiler: Compiler, changed: Mapping[str, bytes]) -> Effect:
    return judge(
        plan, compiler.compare(changed), lambda point, arch: compiler.why_not(changed, point, arch)
    )


# Struct families beside policy selectors: left alone, or planned and proved with the returns.


def completed(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Completes a plan with the families beside the returns, and with what no benchmark shows."""
    plan = with_families(planned, planner, scored)
    planned = replace(planned, plan=plan)
    if not (planner.prove and planned.changed):
        return plan
    changes = planned.compiler.compare_inputs(planned.changed).changes
    judged = judge_inputs(plan.options, changes)
    return _with_remarks(plan, [*_unmeasured(judged, planned.changed)])


MOST = 2
"""Remarks on inputs of a selector that no benchmark measures; the others are counted."""


def _unmeasured(changes: Iterable[InputChange], headers: Collection[str]) -> Iterator[str]:
    """Reports inputs that change and that the results do not measure."""
    counts: Counter[str] = Counter()
    unmeasured = (change for change in changes if not change.is_measured(headers))
    for change in sorted(unmeasured, key=lambda change: not change.leaks):
        counts[change.selector] += not change.leaks
        if counts[change.selector] <= MOST:
            remedy = f" (--reaches {','.join(change.leaks)} allows it)" if change.leaks else ""
            yield f"it changes what the results do not measure{remedy}: {change.text}"
    for selector, count in counts.items():
        if count > MOST:
            yield f"it changes {plural(count - MOST, 'more kind')} of unmeasured {selector} inputs"


def with_families(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Completes a plan with the treatment of the families beside the returns."""
    plan, headers = planned.plan, planned.compiler.sources.headers
    mode = plan.options.legacy
    if not plan.cub.has_selectors:
        legacy_remarks = [f"the tree has no policy selectors, so --legacy {mode} has no effect"]
        return _with_remarks(plan, legacy_remarks if mode != "leave" else [])
    if mode == "update":
        return _update_families(planned, planner, scored)
    written = (action.benchmark for action in plan.written)
    remarks = legacy.report_unchanged_families(legacy.headers_beside(written, plan.cub, headers))
    if mode == "warn":
        remarks += unlike(plan, planned.compiler)
    return _with_remarks(plan, remarks)


def _update_families(planned: Planned, planner: Planner, scored: Sequence[ScoredWorkload]) -> Plan:
    """Plans the same results in the families, by the rules of their own entries."""
    plan_of_returns, headers = planned.plan, planned.compiler.sources.headers
    results, held = legacy.results_for(plan_of_returns, scored, headers)
    families = _older_planner(planned, planner, held).plan(results)
    plan = legacy.joined(plan_of_returns, families, held, planned.before)
    if planner.prove and plan_of_returns.edits and families.edits:
        prove_plan(replace(planned, plan=plan))
    shown_values = {a.point: legacy.given(a) for a in families.actions if a.point not in held}
    remarks = [*served(families, headers), *legacy.unread(plan, headers)]
    remarks += legacy.unlike(legacy.returned(plan, headers), shown_values)
    return _with_remarks(plan, remarks)


def families_again(planned: Planned, planner: Planner, plan: Plan) -> Plan:
    """Recomputes the families of a saved plan; `planned` has the plan without them."""
    headers = planned.compiler.sources.headers
    results, held = legacy.results_for(planned.plan, plan.results, headers)
    older = _older_planner(planned, planner, held)
    families = remake_plan(older, legacy.part(plan, legacy=True), results)
    return legacy.joined(planned.plan, families, held, planned.before)


def unlike(plan: Plan, compiler: Compiler) -> list[str]:
    """Lists the entries of families that differ from what the returns say after a plan."""
    headers = compiler.sources.headers
    actions = legacy.returned(plan, headers)
    points = [action.point for action in actions]
    resolved = compiler.older.tell(points, plan.options.arch) if actions else {}
    shown_values = {point: legacy.shown(values) for point, values in resolved.items()}
    return [*legacy.unlike(actions, shown_values), *legacy.unread(plan, headers)]


def _older_planner(planned: Planned, planner: Planner, held: Mapping[Point, str]) -> Planner:
    """Returns the planner for the older dispatchers; `held` workloads stay unchanged."""
    compiler = planned.compiler.older
    return replace(
        planner, sources=compiler.sources, oracle=compiler, held=held, compares_inputs=False
    )


def _with_remarks(plan: Plan, remarks: Sequence[str]) -> Plan:
    return plan.model_copy(update={"remarks": (*plan.remarks, *remarks)})
