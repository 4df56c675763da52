"""Reviews a change of tuning headers with the compiler, databases, and audits."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from policygen import trees
from policygen.app.audits import ask_reach
from policygen.app.change import TreeChange, find_change
from policygen.app.commands import Typed, given_or_told, planning
from policygen.app.effect import applied_effect, unlike
from policygen.app.evidence import Written, find_databases, find_evidence, named_variants
from policygen.app.filters import Filter
from policygen.app.inputs import parse_gpus
from policygen.app.journal import find_apply
from policygen.app.plan import Saved, read_document
from policygen.app.reading import ReadTree, older_tree, open_compiler
from policygen.app.resolve import ask_values
from policygen.app.sass import SassCompiles, compare_earlier, tell_earlier
from policygen.app.session import Session, offers_code
from policygen.errors import InputError
from policygen.model.audits import Finding, Unreachable
from policygen.model.machine_code import VerifySass
from policygen.model.plans import Plan
from policygen.model.records import Document
from policygen.model.reviews import Review, Uncovered
from policygen.model.selection import Effect, EntryPlace, Resolution
from policygen.model.trees import Cub, Dialect
from policygen.model.verdicts import VerifyPerformance
from policygen.paths import nearby
from policygen.planning import legacy
from policygen.proof.ask import compiler_of
from policygen.proof.changes import (
    ReviewContext,
    compare_resolutions,
    inherited,
    reviewed,
    touched,
    unanswered,
    uncovered_entries,
    uncovered_headers,
    undecided,
    unread,
)
from policygen.proof.lexemes import first_difference
from policygen.proof.outside_inputs import unprovable
from policygen.proof.sites import bound_headers, without_repeats
from policygen.steps import Progress
from policygen.trees.layout import tree_content


def review_change(
    session: Session,
    base: str | None = None,
    *,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
    run_sass: bool = False,
    announce: Callable[[SassCompiles], None] | None = None,
) -> Review:
    """Reviews a change with the compiler, the databases, and the audits.

    `announce` is called with the compiles of `run_sass` before they begin.
    """
    cub, progress = session.cub, session.progress
    change = find_change(session, base)
    names = tuple(sorted(change.contents))
    unprovable_findings = _find_unprovable(cub, change)

    def differs(name: str) -> int | None:
        return first_difference(name, *change.contents[name])

    unbound = (*unread(change.unread), *uncovered_headers(names, cub.bindings, differs))
    if unprovable_findings or not bound_headers(cub.bindings) & set(names):
        return _without_compiler(cub, change, unprovable_findings, unbound)
    plan = change.base.plan
    if plan is None and (applied := find_apply(session.store, session.root)):
        plan = applied[0]
    archs = change.archs
    selection = Filter(names, archs=archs.ordered)
    sides = _resolve_sides(change.before, change.after, selection, session)
    resolved = [*sides]
    comparison = compare_resolutions(*sides)
    entries = touched(change.before.headers, change.after.headers)
    remarks = list(change.remarks)
    different = [row for row in comparison.different if None not in (row.before, row.after)]
    families = {entry.family.header for entry in entries if entry.in_family}
    remarks += _family_remarks(
        plan, change.after, {row.benchmark for row in different}, families, progress
    )
    if one_sided := len(comparison.different) - len(different):
        remarks.append(
            f"{one_sided:,} workloads are in one of the trees only: nothing is said of them"
        )
    compared = comparison.compared - one_sided
    if families and change.after.cub.has_selectors:
        legacy_before, legacy_after = (
            older_tree(side, families) for side in (change.before, change.after)
        )
        legacy_sides = _resolve_sides(
            legacy_before, legacy_after, selection, session, only=legacy_before.cub.dialect
        )
        resolved += legacy_sides
        older = compare_resolutions(*legacy_sides)
        different += [row.model_copy(update={"legacy": True}) for row in older.different]
        compared += older.compared
    changed, different = len(different), without_repeats(different, archs)
    shown = archs.known | {row.arch for row in different}
    databases = find_databases(plan, files, remarks)
    written = Written(plan, change.after, different, named_variants(entries, different), progress)
    facts = ReviewContext(
        find_evidence(databases, written, parse_gpus(gpus)),
        change.findings(),
        _unreachable_entries(
            change.after, [entry.place for entry in entries if entry.after], progress
        ),
        inherited(change.after.headers),
    )
    gaps = tuple(unanswered(resolved[::2], resolved[1::2], differs))
    silent_headers = {gap.header for gap in gaps}
    answered = [entry for entry in entries if entry.place.header not in silent_headers]
    reviewed_entries, rest = reviewed(
        entries, different, facts, undecided(answered, resolved, facts.bases)
    )
    return Review(
        cub=cub,
        content=tree_content(cub),
        base=change.base.label,
        toolchain=comparison.toolchain,
        archs=tuple(arch for arch in archs.ordered if arch in shown),
        entries=reviewed_entries,
        others=rest,
        compared=compared,
        changed=changed,
        databases=databases,
        actions=tuple(action for action in plan.actions if not action.written) if plan else (),
        effect=None if gaps else _prove_effect(change, plan, sides, progress),
        sass=compare_earlier(session, change.base, announce) if run_sass else None,
        diffs=change.diffs(),
        commands=_commands(session, base, plan, files, gpus, run_sass=run_sass),
        remarks=tuple(dict.fromkeys((*remarks, *comparison.remarks))),
        uncovered=(*unbound, *gaps, *uncovered_entries(reviewed_entries)),
    )


def tell_sass(session: Session, base: str | None = None) -> SassCompiles:
    """Returns what a review's machine code comparison would compile, and how long that takes."""
    return tell_earlier(session, find_change(session, base).base)


def _without_compiler(
    cub: Cub,
    change: TreeChange,
    unprovable_findings: tuple[Finding, ...],
    unbound: tuple[Uncovered, ...],
) -> Review:
    """Reviews a change without the compiler.

    Either no bound header differs, or the compiler's answers would be no proof.
    """
    entries = touched(change.before.headers, change.after.headers)
    findings = change.findings() if entries else ()
    reviewed_entries, _ = reviewed(entries, (), ReviewContext((), findings, ()))
    remark = "nobody asked the compiler" if change.contents else "no tuning header differs"
    remarks = (*change.remarks, remark)
    return Review(
        cub=cub,
        content=tree_content(cub),
        base=change.base.label,
        toolchain="",
        archs=(),
        entries=reviewed_entries,
        compared=0,
        diffs=change.diffs(),
        commands=(),
        remarks=remarks,
        unprovable=unprovable_findings,
        uncovered=unbound,
    )


def _find_unprovable(cub: Cub, change: TreeChange) -> tuple[Finding, ...]:
    """Finds what headers require that no proof can cover.

    Findings are ignored if they are of unchanged headers only.
    """
    headers = trees.tuning_headers(cub)
    findings = unprovable(cub, headers, nearby)
    unchanged = {path.name for path in headers} - change.contents.keys()
    if not change.contents or not any(finding.header in unchanged for finding in findings):
        return tuple(findings)
    own = unprovable(cub, [path for path in headers if path.name not in unchanged], nearby)
    return tuple(
        finding for finding in findings if finding in own or finding.header not in unchanged
    )


def _resolve_sides(
    before: ReadTree,
    after: ReadTree,
    where: Filter,
    session: Session,
    *,
    only: Dialect | None = None,
) -> tuple[Resolution, Resolution]:
    """Resolves the workloads of both sides. Errors of a side are noted; the rest is returned."""
    old, errors = ask_values(before, where, only=only, progress=session.progress)
    new, after_errors = ask_values(after, where, only=only, progress=session.progress)
    for error in (*errors, *after_errors):
        session.note(str(error))
    return old, new


def _unreachable_entries(
    tree: ReadTree, places: Sequence[EntryPlace], progress: Progress | None
) -> Sequence[Unreachable]:
    """Returns the given entries that no workload can select."""
    if not places:
        return ()
    return ask_reach(tree, compiler_of(tree.cub), progress, places=frozenset(places)).unreachable


def _family_remarks(
    plan: Plan | None,
    after: ReadTree,
    changed: Collection[str],
    families: Collection[str],
    progress: Progress | None,
) -> list[str]:
    """Returns remarks about families.

    `changed` are benchmarks; `families` are headers with changes.
    """
    if not after.cub.has_selectors:
        return []
    headers = {header.name: header for header in after.headers}
    remarks = legacy.report_unchanged_families(
        legacy.headers_beside(changed, after.cub, headers) - set(families)
    )
    if plan is not None and plan.options.legacy == "warn":
        remarks += unlike(plan, after, open_compiler(after, progress=progress)[1])
    return remarks


def _prove_effect(
    change: TreeChange,
    plan: Plan | None,
    resolutions: tuple[Resolution, Resolution],
    progress: Progress | None,
) -> Effect | None:
    """Returns the proof of the last apply; None if something else is compared."""
    if plan is None or change.base.plan is None:
        return None
    before = {name: old for name, (old, _) in change.contents.items()}
    after = {name: new for name, (_, new) in change.contents.items()}
    headers = {header.name: header for header in change.before.headers}
    return applied_effect(
        plan, change.after, headers, before, after, progress=progress, resolutions=resolutions
    )


def _commands(
    session: Session,
    base: str | None,
    plan: Plan | None,
    files: Sequence[str],
    gpus: Sequence[str],
    *,
    run_sass: bool,
) -> tuple[str, ...]:
    """Returns the commands that make the change and reproduce this review."""
    typed = Typed(session)
    base_options = ["--base", base] if base else []
    commands = []
    if plan is not None:
        arch = plan.options.arch
        words = planning(given_or_told(plan), plan.options)
        commands.append(typed("apply", *words, store=True, writes=True))
        commands.append(typed("verify-effect", "--arch", arch, store=True))
    if offers_code(session.cub):
        commands.append(typed("verify-sass", "--arch", "earlier", *base_options, store=True))
    review_options = [word for name in files for word in ("--db", name)]
    review_options += [word for gpu in gpus for word in ("--gpu-arch", gpu)]
    review_options += ["--run-sass"] if run_sass else []
    return (*commands, typed("review", *base_options, *review_options, store=True))


Proof = Effect | VerifySass | VerifyPerformance


# Saved reviews, and proofs and measurements of the same tree.


def read_review(path: Path) -> Review:
    """Reads a saved review."""
    return _read(path, Review)


def read_proofs(
    effect: str | None, sass: str | None, performance: str | None = None
) -> dict[str, Document]:
    """Reads documents printed by `verify-…`. Called first, because a review takes long."""
    kinds: dict[str, tuple[str | None, type[Document]]] = {
        "effect": (effect, Effect),
        "sass": (sass, VerifySass),
        "performance": (performance, VerifyPerformance),
    }
    return {n: _read(Path(file), kind) for n, (file, kind) in kinds.items() if file is not None}


def with_proofs(review: Review, proofs: Mapping[str, Document]) -> Review:
    """Adds proofs and measurements to a review. Raises an error if they are of another tree."""
    remarks = [*review.remarks]
    for document in proofs.values():
        assert isinstance(document, Proof)
        if document.cub is not None and not _same_tree(review, document, document.cub):
            remarks.append(
                f"whether {_command(document)} was asked about this very tree is not known"
            )
    return review.model_copy(update={**proofs, "remarks": tuple(dict.fromkeys(remarks))})


def _same_tree(review: Review, proof: Proof, cub: Cub) -> bool:
    """Returns whether both are known to be of the same tree; raises if the trees differ."""
    title = review.cub.title
    titles = {cub.title} - {title}
    if isinstance(proof, VerifyPerformance):
        titles |= {proof.after} - {title}
    comparable = bool(review.content and proof.content)
    if not titles and comparable and review.content != proof.content:
        titles = {f"another {title}"}
    if titles:
        command = _command(proof)
        raise InputError(
            f"what `{command}` was asked about is {', '.join(sorted(titles))}, and not the {title}"
            " that is reviewed",
            f"Run `{command} --json` on the tree that is reviewed.",
        )
    return comparable


def _command(proof: Proof) -> str:
    """Returns the command that prints such a document."""
    return {
        "policygen/effect/1": "verify-effect",
        "policygen/verify-sass/1": "verify-sass",
        "policygen/verify-performance/1": "verify-performance",
    }[proof.format]


def _read(path: Path, kind: type[Saved]) -> Saved:
    """Reads a saved document."""
    format_name = kind.model_fields["format"].default
    return read_document(path, kind, format_name, "Save it again with this policygen.")
