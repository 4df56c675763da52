"""Proves the effect of a change on what is selected: exactly what was intended."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from policygen.app.filters import parse_archs
from policygen.app.journal import last_apply, record_proof
from policygen.app.session import Session
from policygen.errors import EffectError, UnprovableError
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_changed
from policygen.model.plans import Plan
from policygen.model.selection import Effect, Resolution
from policygen.model.tuning import TuningHeader
from policygen.planning import legacy
from policygen.planning.judge import judge, judge_inputs
from policygen.planning.saved import changed_headers
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
