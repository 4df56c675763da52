"""What a change of tuning headers means: the compiler, databases and audits are asked about it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from policygen import trees
from policygen.app.audits import ask_reach
from policygen.app.change import TreeChange, find_change
from policygen.app.commands import Typed, given_or_told, planning
from policygen.app.compilers import older_tree, open_compiler
from policygen.app.effect import applied_effect, unlike
from policygen.app.evidence import Written, find_databases, find_evidence, named_variants
from policygen.app.filters import Filter
from policygen.app.inputs import parse_gpus
from policygen.app.journal import find_apply
from policygen.app.plan import Saved, read_document
from policygen.app.reading import ReadTree
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
    Known,
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
    """Asks the compiler, the databases and the audits about a change.

    What `run_sass` compiles is announced before it begins.
    """
    cub, progress = session.cub, session.progress
    change = find_change(session, base)
    names = tuple(sorted(change.contents))
    asked = _unprovable(cub, change)

    def differs(name: str) -> int | None:
        return first_difference(name, *change.contents[name])

    unbound = (*unread(change.unread), *uncovered_headers(names, cub.bindings, differs))
    if asked or not bound_headers(cub.bindings) & set(names):
        return _unasked(cub, change, asked, unbound)
    plan = change.base.plan
    if plan is None and (applied := find_apply(session.store, session.root)):
        plan = applied[0]
    archs = change.archs
    question = Filter(names, archs=archs.ordered)
    sides = _resolved(change.before, change.after, question, session)
    resolved = [*sides]
    comparison = compare_resolutions(*sides)
    entries = touched(change.before.headers, change.after.headers)
    remarks = list(change.remarks)
    different = [row for row in comparison.different if None not in (row.before, row.after)]
    families = {one.family.header for one in entries if one.in_family}
    remarks += _beside(plan, change.after, {row.benchmark for row in different}, families, progress)
    if alone := len(comparison.different) - len(different):
        remarks.append(f"{alone:,} workloads are in one of the trees only: nothing is said of them")
    compared = comparison.compared - alone
    if families and change.after.cub.has_selectors:
        then, now = (older_tree(side, families) for side in (change.before, change.after))
        beside = _resolved(then, now, question, session, only=then.cub.dialect)
        resolved += beside
        older = compare_resolutions(*beside)
        different += [row.model_copy(update={"legacy": True}) for row in older.different]
        compared += older.compared
    changed, different = len(different), without_repeats(different, archs)
    shown = archs.known | {row.arch for row in different}
    databases = find_databases(plan, files, remarks)
    written = Written(plan, change.after, different, named_variants(entries, different), progress)
    found = Known(
        find_evidence(databases, written, parse_gpus(gpus)),
        change.findings(),
        _never(change.after, [one.place for one in entries if one.after], progress),
        inherited(change.after.headers),
    )
    lost = tuple(unanswered(resolved[::2], resolved[1::2], differs))
    silent = {one.header for one in lost}
    known = [one for one in entries if one.place.header not in silent]
    told, rest = reviewed(entries, different, found, undecided(known, resolved, found.bases))
    return Review(
        cub=cub,
        content=tree_content(cub),
        base=change.base.label,
        toolchain=comparison.toolchain,
        archs=tuple(arch for arch in archs.ordered if arch in shown),
        entries=told,
        others=rest,
        compared=compared,
        changed=changed,
        databases=databases,
        actions=tuple(action for action in plan.actions if not action.written) if plan else (),
        effect=None if lost else _effect(change, plan, sides, progress),
        sass=compare_earlier(session, change.base, announce) if run_sass else None,
        diffs=change.diffs(),
        commands=_commands(session, base, plan, files, gpus, run_sass=run_sass),
        remarks=tuple(dict.fromkeys((*remarks, *comparison.remarks))),
        uncovered=(*unbound, *lost, *uncovered_entries(told)),
    )


def tell_sass(session: Session, base: str | None = None) -> SassCompiles:
    """What the machine code of a review would compile, and how long that takes."""
    return tell_earlier(session, find_change(session, base).base)


def _unasked(
    cub: Cub, change: TreeChange, asked: tuple[Finding, ...], unbound: tuple[Uncovered, ...]
) -> Review:
    """Nothing that a compiler is asked about: no header differs, or what it said is no proof."""
    entries = touched(change.before.headers, change.after.headers)
    findings = change.findings() if entries else ()
    told, _ = reviewed(entries, (), Known((), findings, ()))
    remark = "nobody asked the compiler" if change.contents else "no tuning header differs"
    remarks = (*change.remarks, remark)
    return Review(
        cub=cub,
        content=tree_content(cub),
        base=change.base.label,
        toolchain="",
        archs=(),
        entries=told,
        compared=0,
        diffs=change.diffs(),
        commands=(),
        remarks=remarks,
        unprovable=asked,
        uncovered=unbound,
    )


def _unprovable(cub: Cub, change: TreeChange) -> tuple[Finding, ...]:
    """What headers ask for that no proof can know; what others alone ask is not theirs."""
    headers = trees.tuning_headers(cub)
    found = unprovable(cub, headers, nearby)
    others = {path.name for path in headers} - change.contents.keys()
    if not change.contents or not any(one.header in others for one in found):
        return tuple(found)
    mine = unprovable(cub, [path for path in headers if path.name not in others], nearby)
    return tuple(one for one in found if one in mine or one.header not in others)


def _resolved(
    before: ReadTree,
    after: ReadTree,
    asked: Filter,
    session: Session,
    *,
    only: Dialect | None = None,
) -> tuple[Resolution, Resolution]:
    """What workloads get on both sides; of what a side does not answer the rest is told."""
    then, errors = ask_values(before, asked, only=only, progress=session.progress)
    now, more = ask_values(after, asked, only=only, progress=session.progress)
    for error in (*errors, *more):
        session.note(str(error))
    return then, now


def _never(
    found: ReadTree, places: Sequence[EntryPlace], progress: Progress | None
) -> Sequence[Unreachable]:
    """Which of some entries no workload can select."""
    if not places:
        return ()
    return ask_reach(found, compiler_of(found.cub), progress, wanted=frozenset(places)).unreachable


def _beside(
    plan: Plan | None,
    after: ReadTree,
    changed: Collection[str],
    families: Collection[str],
    progress: Progress | None,
) -> list[str]:
    """What is said of families: `changed` are benchmarks, `families` headers with changes."""
    if not after.cub.has_selectors:
        return []
    headers = {header.name: header for header in after.headers}
    remarks = legacy.left(legacy.headers_beside(changed, after.cub, headers) - set(families))
    if plan is not None and plan.options.legacy == "warn":
        remarks += unlike(plan, after, open_compiler(after, progress=progress)[1])
    return remarks


def _effect(
    change: TreeChange,
    plan: Plan | None,
    known: tuple[Resolution, Resolution],
    progress: Progress | None,
) -> Effect | None:
    """The proof of the last apply; none where something else is compared."""
    if plan is None or change.base.plan is None:
        return None
    before = {name: old for name, (old, _) in change.contents.items()}
    now = {name: new for name, (_, new) in change.contents.items()}
    headers = {header.name: header for header in change.before.headers}
    return applied_effect(plan, change.after, headers, before, now, progress=progress, known=known)


def _commands(
    session: Session,
    base: str | None,
    plan: Plan | None,
    files: Sequence[str],
    gpus: Sequence[str],
    *,
    run_sass: bool,
) -> tuple[str, ...]:
    """What makes the change and shows what this review says."""
    typed = Typed(session)
    named = ["--base", base] if base else []
    found = []
    if plan is not None:
        arch = plan.options.arch
        words = planning(given_or_told(plan), plan.options)
        found.append(typed("apply", *words, store=True, writes=True))
        found.append(typed("verify-effect", "--arch", arch, store=True))
    if offers_code(session.cub):
        found.append(typed("verify-sass", "--arch", "earlier", *named, store=True))
    asked = [word for name in files for word in ("--db", name)]
    asked += [word for gpu in gpus for word in ("--gpu-arch", gpu)]
    asked += ["--run-sass"] if run_sass else []
    return (*found, typed("review", *named, *asked, store=True))


Proof = Effect | VerifySass | VerifyPerformance


# A review that was saved, and what was proved and measured besides of the same tree.


def read_review(path: Path) -> Review:
    """A review that was saved."""
    return _read(path, Review)


def read_proofs(
    effect: str | None, sass: str | None, performance: str | None = None
) -> dict[str, Document]:
    """What `verify-…` printed; read first, for a review takes its time."""
    kinds: dict[str, tuple[str | None, type[Document]]] = {
        "effect": (effect, Effect),
        "sass": (sass, VerifySass),
        "performance": (performance, VerifyPerformance),
    }
    return {n: _read(Path(file), kind) for n, (file, kind) in kinds.items() if file is not None}


def with_proofs(review: Review, proofs: Mapping[str, Document]) -> Review:
    """A review with what was proved and measured besides; of another tree it is refused."""
    remarks = [*review.remarks]
    for document in proofs.values():
        assert isinstance(document, Proof)
        if document.cub is not None and not _same_tree(review, document, document.cub):
            remarks.append(
                f"whether {_command(document)} was asked about this very tree is not known"
            )
    return review.model_copy(update={**proofs, "remarks": tuple(dict.fromkeys(remarks))})


def _same_tree(review: Review, proof: Proof, cub: Cub) -> bool:
    """Whether it is known that both are of one tree; another one is refused."""
    own = review.cub.title
    others = {cub.title} - {own}
    if isinstance(proof, VerifyPerformance):
        others |= {proof.after} - {own}
    known = bool(review.content and proof.content)
    if not others and known and review.content != proof.content:
        others = {f"another {own}"}
    if others:
        command = _command(proof)
        raise InputError(
            f"what `{command}` was asked about is {', '.join(sorted(others))}, and not the {own}"
            " that is reviewed",
            f"Run `{command} --json` on the tree that is reviewed.",
        )
    return known


def _command(proof: Proof) -> str:
    """Which one prints such a document."""
    return {
        "policygen/effect/1": "verify-effect",
        "policygen/verify-sass/1": "verify-sass",
        "policygen/verify-performance/1": "verify-performance",
    }[proof.format]


def _read(path: Path, kind: type[Saved]) -> Saved:
    """A document that was saved."""
    wanted = kind.model_fields["format"].default
    return read_document(path, kind, wanted, "Save it again with this policygen.")
