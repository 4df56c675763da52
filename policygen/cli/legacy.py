"""Struct families beside policy selectors: named, left, or planned and proved with the returns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from policygen.errors import EffectError, UnprovableError

if TYPE_CHECKING:
    from policygen.cli.asking import Tree
    from policygen.cli.planning import Work
    from policygen.cli.resolve import Question
    from policygen.model.effect import Effect
    from policygen.model.plan import Plan
    from policygen.model.resolve import Comparison
    from policygen.model.results import ScoredWorkload
    from policygen.planning.plan import Planner
    from policygen.proof.oracle import Compiler


def with_families(
    work: "Work", planner: "Planner", scored: "Sequence[ScoredWorkload]", *, quiet: bool
) -> "Plan":
    """The plan with what becomes of the families that stand beside the returns."""
    from policygen.planning import legacy

    plan, headers = work.plan, work.compiler.headers
    wish = plan.options.legacy
    if plan.cub.dialect != "selectors":
        told = [f"the tree has no policy selectors: --legacy {wish} says nothing about it"]
        return _told(plan, told if wish != "leave" else [])
    if wish == "update":
        return _updated(work, planner, scored, quiet=quiet)
    written = (action.benchmark for action in plan.actions if action.written)
    remarks = legacy.left(legacy.headers_beside(written, plan.cub, headers))
    if wish == "warn":
        remarks += unlike(plan, work.tree, work.compiler, quiet=quiet)
    return _told(plan, remarks)


def _updated(
    work: "Work", planner: "Planner", scored: "Sequence[ScoredWorkload]", *, quiet: bool
) -> "Plan":
    """The same results in the families, by the rules of their own entries."""
    from policygen.cli.planning import served
    from policygen.planning import legacy
    from policygen.planning.files import changed_headers

    own, headers = work.plan, work.compiler.headers
    results, held = legacy.results_for(own, scored, headers)
    compiler = older_compiler(work.tree, work.compiler, quiet=quiet)
    sources = replace(planner.sources, cub=compiler.cub)
    families = replace(planner, sources=sources, oracle=compiler, held=held).plan(results)
    plan = legacy.joined(own, families, held, work.data)
    if planner.prove and own.edits and families.edits:
        proven(replace(work, plan=plan), changed_headers(plan, work.data), quiet=quiet)
    remarks = served(families, compiler)
    given = {a.point: legacy.given(a) for a in families.actions if a.point not in held}
    remarks += legacy.unread(plan, headers)
    return _told(plan, [*remarks, *legacy.unlike(legacy.returned(plan, headers), given)])


def families_again(work: "Work", planner: "Planner", plan: "Plan", *, quiet: bool) -> "Plan":
    """What a plan that was kept comes to, with its families; `work` has it without them."""
    from policygen.planning import legacy
    from policygen.planning.again import again

    results, held = legacy.results_for(work.plan, plan.results, work.compiler.headers)
    compiler = older_compiler(work.tree, work.compiler, quiet=quiet)
    sources = replace(planner.sources, cub=compiler.cub)
    older = replace(planner, sources=sources, oracle=compiler, held=held)
    families = again(older, legacy.part(plan, legacy=True), results)
    return legacy.joined(work.plan, families, held, work.data)


def unlike(plan: "Plan", found: "Tree", compiler: "Compiler", *, quiet: bool) -> list[str]:
    """The entries of families that say something else than the returns do by a plan."""
    from policygen.planning import legacy

    actions = legacy.returned(plan, compiler.headers)
    older = older_compiler(found, compiler, quiet=quiet)
    told = older.tell([action.point for action in actions], plan.options.arch) if actions else {}
    given = {point: legacy.shown(one) for point, one in told.items()}
    return [*legacy.unlike(actions, given), *legacy.unread(plan, compiler.headers)]


def proven(work: "Work", changed: Mapping[str, bytes], *, quiet: bool) -> "Effect":
    """The effect of a change on what is selected; another one than planned is an error."""
    effect = effect_of(work.plan, work.tree, work.compiler, changed, quiet=quiet)
    if effect.wrong:
        raise EffectError([f"{one.name}: {one.reason}" for one in effect.wrong])
    return effect


def effect_of(
    plan: "Plan",
    found: "Tree",
    compiler: "Compiler",
    changed: Mapping[str, bytes],
    *,
    quiet: bool,
) -> "Effect":
    """What a change does: by the tree's own dialect, and by families that were written, too."""
    from policygen.planning import legacy

    _check_provable(found, changed)
    effect = _judged(legacy.part(plan, legacy=False), compiler, changed)
    if plan.options.legacy == "update" and found.cub.dialect == "selectors":
        older = older_compiler(found, compiler, quiet=quiet)
        effect = legacy.both(effect, _judged(legacy.part(plan, legacy=True), older, changed))
    return effect


def _check_provable(found: "Tree", names: "Iterable[str]") -> None:
    """Raises where headers ask for what no proof can know."""
    from policygen.proof.lint.outside import unprovable
    from policygen.report.console import nearby

    paths = [found.paths[name] for name in sorted(names)]
    if asked := unprovable(found.cub, paths, nearby):
        raise UnprovableError([finding.where for finding in asked])


def _judged(plan: "Plan", compiler: "Compiler", changed: Mapping[str, bytes]) -> "Effect":
    from policygen.planning.judge import judge

    return judge(
        plan,
        compiler.compare(changed),
        lambda point, arch: compiler.why_not(changed, point, arch),
    )


def differing(
    before: "Tree", after: "Tree", names: "Collection[str]", question: "Question"
) -> "Comparison | None":
    """What the families of some headers give workloads, before and after a change."""
    from policygen.errors import Problems
    from policygen.proof.difference import compare_resolutions

    if not names or after.cub.dialect != "selectors":
        return None
    told = []
    for side in (before, after):
        document, errors = question.ask(_older_tree(side, names))
        if errors:
            raise Problems(errors)
        told.append(document)
    found = compare_resolutions(*told)
    rows = tuple(row.model_copy(update={"legacy": True}) for row in found.different)
    return found.model_copy(update={"different": rows})


def stands(
    plan: "Plan | None",
    after: "Tree",
    changed: "Iterable[str]",
    families: "Collection[str]",
    *,
    quiet: bool,
) -> list[str]:
    """What a review says of families: `changed` are benchmarks, `families` headers with changes."""
    from policygen.cli.planning import open_compiler
    from policygen.planning import legacy

    if after.cub.dialect != "selectors":
        return []
    headers = {header.name: header for header in after.headers}
    remarks = legacy.left(legacy.headers_beside(changed, after.cub, headers) - set(families))
    if plan is not None and plan.options.legacy == "warn":
        remarks += unlike(plan, after, open_compiler(after, quiet=quiet)[1], quiet=quiet)
    return remarks


def _older_tree(found: "Tree", names: "Collection[str]") -> "Tree":
    """Some headers of a tree, as its older dispatchers see them."""
    from policygen.dialects.specializations.older import older

    return replace(
        found,
        cub=older(found.cub),
        headers=tuple(header for header in found.headers if header.name in names),
        paths={name: path for name, path in found.paths.items() if name in names},
    )


def older_compiler(found: "Tree", compiler: "Compiler", *, quiet: bool) -> "Compiler":
    """The same tree, as its older dispatchers see it."""
    from policygen.cli.planning import compiler_for

    tree = _older_tree(found, found.paths)
    made = compiler_for(tree, compiler.headers, compiler.data, quiet=quiet)
    return replace(made, replaced=compiler.replaced, only="specializations")


def _told(plan: "Plan", remarks: Sequence[str]) -> "Plan":
    return plan.model_copy(update={"remarks": (*plan.remarks, *remarks)})
