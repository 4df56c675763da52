"""What a change does to what is selected: it has its effect, and no other."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from policygen.app.applied import last_apply
from policygen.app.compilers import compiler_for, older_compiler, open_tree
from policygen.app.filters import parse_archs
from policygen.app.planned import Planned
from policygen.app.proofs import record_proof
from policygen.app.reading import ReadTree
from policygen.app.session import Session
from policygen.dialects.scan import read_changed
from policygen.errors import EffectError, UnprovableError
from policygen.model.effect import Effect
from policygen.model.plan import Plan
from policygen.model.resolve import Resolution
from policygen.model.tuning import TuningHeader
from policygen.paths import nearby
from policygen.planning import legacy
from policygen.planning.judge import judge
from policygen.proof.lint.outside import unprovable
from policygen.proof.oracle import Compiler
from policygen.report.views.plan import effect_summary
from policygen.steps import Progress
from policygen.tree.content import tree_content


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
