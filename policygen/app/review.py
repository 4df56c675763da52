"""What a change of tuning headers means: the compiler, databases and audits are asked about it."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from policygen import tree
from policygen.app.applied import find_apply
from policygen.app.change import TreeChange, find_change
from policygen.app.compilers import older_tree, open_compiler
from policygen.app.documents import Saved, read_document
from policygen.app.effect import applied_effect
from policygen.app.families import unlike
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, is_results, open_inputs, parse_gpus
from policygen.app.reach import ask_reach
from policygen.app.reading import ReadTree
from policygen.app.resolve import ask_values
from policygen.app.sass import compare_earlier
from policygen.app.session import Session
from policygen.app.stores import STORE
from policygen.model.base import Document
from policygen.model.cub import Cub, Dialect
from policygen.model.effect import Effect
from policygen.model.lint import Finding
from policygen.model.plan import Plan
from policygen.model.reach import Unreachable
from policygen.model.resolve import Differing, EntryPlace, Resolution
from policygen.model.results import Rules
from policygen.model.review import Evidence, Review, Uncovered
from policygen.model.sass import VerifySass
from policygen.model.workload import Point, point_of
from policygen.planning import legacy
from policygen.planning.measured import arch_of, measurements, others
from policygen.proof.difference import compare_resolutions
from policygen.proof.intervals import without_repeats
from policygen.proof.lint.outside import unprovable
from policygen.proof.review import Known, Touched, inherited, reviewed, touched
from policygen.proof.sites import bound_headers
from policygen.proof.toolchain import find_toolchain
from policygen.proof.uncovered import (
    unanswered,
    uncovered_entries,
    uncovered_headers,
    undecided,
    unread,
)
from policygen.report.console import nearby
from policygen.results.evidence import evidence
from policygen.results.top import rank
from policygen.source.code_diff import first_difference
from policygen.steps import Progress


def review_change(
    session: Session,
    base: str | None = None,
    *,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
    run_sass: bool = False,
) -> Review:
    """Asks the compiler, the databases and the audits about a change."""
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
        beside = _resolved(then, now, question, session, only="specializations")
        resolved += beside
        older = compare_resolutions(*beside)
        different += [row.model_copy(update={"legacy": True}) for row in older.different]
        compared += older.compared
    different = without_repeats(different, archs)
    shown = archs.known | {row.arch for row in different}
    labels = _labels(entries, different, plan)
    found = Known(
        _evidence(plan, files, cub.bindings, labels, remarks, parse_gpus(gpus)),
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
        base=change.base.label,
        toolchain=comparison.toolchain,
        archs=tuple(arch for arch in archs.ordered if arch in shown),
        entries=told,
        others=rest,
        compared=compared,
        actions=tuple(action for action in plan.actions if not action.written) if plan else (),
        effect=None if lost else _effect(change, plan, sides, progress),
        sass=compare_earlier(session, change.base) if run_sass else None,
        diffs=change.diffs(),
        commands=_commands(session, base, plan),
        remarks=tuple(dict.fromkeys((*remarks, *comparison.remarks))),
        uncovered=(*unbound, *lost, *uncovered_entries(told)),
    )


def read_review(path: Path) -> Review:
    """A review that was saved."""
    return _read(path, Review)


def read_proofs(effect: str | None, sass: str | None) -> dict[str, Document]:
    """What `verify-effect` and `verify-sass` printed; read first, for a review takes its time."""
    kinds: dict[str, tuple[str | None, type[Document]]] = {
        "effect": (effect, Effect),
        "sass": (sass, VerifySass),
    }
    return {n: _read(Path(file), kind) for n, (file, kind) in kinds.items() if file is not None}


def with_proofs(review: Review, proofs: Mapping[str, Document]) -> Review:
    """A review with what was proved besides."""
    return review.model_copy(update=dict(proofs))


def _unasked(
    cub: Cub, change: TreeChange, asked: tuple[Finding, ...], unbound: tuple[Uncovered, ...]
) -> Review:
    """Nothing that a compiler is asked about: no header differs, or what it said is no proof."""
    entries = touched(change.before.headers, change.after.headers)
    findings = change.findings() if entries else ()
    told, _ = reviewed(entries, (), Known((), findings, ()))
    remark = "the compiler was not asked" if change.contents else "no tuning header differs"
    remarks = (*change.remarks, remark)
    return Review(
        cub=cub,
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
    headers = tree.tuning_headers(cub)
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
    return ask_reach(found, find_toolchain(), progress, wanted=frozenset(places)).unreachable


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


def _labels(
    entries: Sequence[Touched], different: Sequence[Differing], plan: Plan | None
) -> dict[Point, str]:
    """Which variant each workload got: as the plan says, else as the comment of its entry does."""
    variants = {one.place: one.after.variant for one in entries if one.after is not None}
    found = {}
    for row in different:
        label = variants.get(row.entry_after) if row.entry_after else None
        if label:
            found[point_of(row.benchmark, row.workload)] = label
    for action in plan.actions if plan else ():
        if action.written and action.variant:
            found[action.point] = action.variant
    return found


def _evidence(
    plan: Plan | None,
    files: Sequence[str],
    version: str,
    labels: Mapping[Point, str],
    remarks: list[str],
    gpus: Mapping[str, str],
) -> tuple[Evidence, ...]:
    """What databases say of the variants that workloads got.

    A GPU that the plan took its results of is of the plan's architecture.
    """
    used = {n for a in plan.actions if a.written for n in a.databases} if plan else set()
    named = list(files) or sorted(used)
    paths = list(files) or [name for name in named if is_results(Path(name))]
    if lost := [name for name in named if name not in paths]:
        remarks.append(f"the database is not here: {', '.join(lost)}; name it with --db")
    if not paths or not labels:
        return ()
    rules = plan.options.rules if plan else Rules()
    instead = {a.point: a.next_best for a in plan.actions if a.written} if plan else {}
    taken = {a.gpu: plan.options.arch for a in plan.actions if a.written} if plan else {}
    results = ResultFiles(paths, gpus={**taken, **gpus})
    with open_inputs(results) as given:
        top = rank(given.databases, rules=rules, declared=given.declared, top=1)
        workloads = [results.told(one) for one in top.workloads]
        archs = {arch for one in workloads if (arch := arch_of(one))}
        measured = [
            one
            for arch in sorted(archs)
            for one in measurements(workloads, version, arch, force=False)[0]
            if one.point in labels
        ]
        wanted = [(one.scored, labels[one.point]) for one in measured]
        proofs = evidence(given.databases, wanted, rules, given.declared)
        return tuple(
            Evidence(
                benchmark=one.benchmark.name,
                workload=one.workload,
                scored=proof[0],
                runtime=proof[1],
                gpu=one.scored.gpu,
                ctk=one.scored.ctk,
                cccl=one.scored.cccl,
                databases=given.named(one.scored).databases,
                rejected=others(one, proof[0].variant, instead.get(one.point)),
            )
            for one, proof in zip(measured, proofs, strict=True)
            if proof is not None
        )


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


def _commands(session: Session, base: str | None, plan: Plan | None) -> tuple[str, ...]:
    """What makes the change and shows what this review says."""
    there = ["--cub", session.cub.root] if session.cub.found == "--cub" else []
    kept = ["--store", str(session.store)] if str(session.store) != STORE else []
    named = ["--base", base] if base else []
    found = []
    if plan is not None:
        databases = dict.fromkeys(name for a in plan.actions for name in a.databases)
        given = [word for name in databases for word in ("--db", name)]
        wish = plan.options.legacy
        given += ["--legacy", wish] if wish != "leave" else []
        found += [["apply", *given, "--arch", plan.options.arch]]
        found += [["verify-effect", "--arch", plan.options.arch]]
    found += [["verify-sass", "--arch", "earlier", *named], ["review", *named]]
    return tuple(shlex.join(["policygen", *words, *there, *kept]) for words in found)


def _read(path: Path, kind: type[Saved]) -> Saved:
    """A document that was saved."""
    wanted = kind.model_fields["format"].default
    return read_document(path, kind, wanted, "Save it again with this policygen.")
