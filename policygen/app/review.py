"""Reviews a change of tuning headers with the compiler, databases, and audits."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from policygen import trees
from policygen.app.change import (
    TreeChange,
    all_compared,
    compared_sides,
    find_change,
    review_inputs,
)
from policygen.app.effect import applied_effect
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, open_inputs, parse_gpus
from policygen.app.journal import find_apply
from policygen.app.plan import command_line, given_or_told, planning, unlike
from policygen.app.resolve import ask_reach, ask_values
from policygen.app.sass import SassCompiles, compare_earlier
from policygen.app.session import Session
from policygen.bindings.words import ladder
from policygen.errors import InputError
from policygen.headers.dialects import dialect_of
from policygen.model.arch import arch_number
from policygen.model.audits import Finding, Scan
from policygen.model.machine_code import VerifySass
from policygen.model.plans import Action, Plan
from policygen.model.records import Document
from policygen.model.results import Rules
from policygen.model.reviews import Evidence, HeaderDiff, Review, ReviewedEntry, Uncovered
from policygen.model.selection import Differing, Effect, EntryPlace, Resolution
from policygen.model.trees import Cub, Dialect
from policygen.model.verdicts import VerifyPerformance
from policygen.model.workload import Point
from policygen.opening import Model, load_document
from policygen.planning import legacy
from policygen.planning.measured import Measurement, arch_of, measurements, rejected_variants
from policygen.planning.places import find_places, shown_variant
from policygen.portable import nearby
from policygen.proof.all_inputs import InputDelta
from policygen.proof.ask import compiler_of
from policygen.proof.changes import (
    ReviewContext,
    Touched,
    inherited,
    named_variants,
    reviewed,
    touched,
)
from policygen.proof.lexemes import first_difference
from policygen.proof.lint_rules import lint
from policygen.proof.lint_subject import HeaderSource
from policygen.proof.oracle import compiler_for
from policygen.proof.outside_inputs import unprovable
from policygen.proof.reading import ReadTree, older_tree
from policygen.proof.sites import bound_headers, headers_of_benchmarks, without_repeats
from policygen.proof.uncovered import (
    ChangedHeader,
    not_compared,
    unanswered,
    uncovered_code,
    uncovered_entries,
    uncovered_headers,
    undecided,
    unjudged_headers,
    unqueried_policies,
    unread,
)
from policygen.proof.unreachable import Reachability
from policygen.proof.values import compare_resolutions
from policygen.results.nvbench import is_results
from policygen.results.together import evidence, variants_of
from policygen.steps import Progress
from policygen.textdiff import unified
from policygen.trees.fetched import sha256_of
from policygen.trees.layout import tree_content

MOST_DIFFS = 20
"""The number of diffs shown of headers that are not tuning headers; the rest are only named."""


def review_change(
    session: Session,
    base: str | None = None,
    *,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
    reaches: Sequence[str] = (),
    run_sass: bool = False,
    announce: Callable[[SassCompiles], None] | None = None,
) -> Review:
    """Reviews a change with the compiler, the databases, and the audits.

    `reaches` are architectures that entries may reach besides their own. `announce` is called with
    the compiles of `run_sass` before they begin.
    """
    cub, progress = session.cub, session.progress
    change = find_change(session, base)
    unprovable_findings = _find_unprovable(cub, change)

    def differs(name: str) -> int | None:
        sides = change.contents.get(name)
        return first_difference(name, *sides) if sides else None

    unbound = (
        *unread(change.unread),
        *uncovered_headers(change.contents, cub.bindings, differs),
        *unjudged_headers({path: header.line for path, header in change.beside.items()}),
        *unqueried_policies(change.after.headers, change.contents, cub.bindings, differs),
    )
    bound_names = bound_headers(cub.bindings) & change.contents.keys()
    if unprovable_findings or not (bound_names or change.beside):
        return _without_compiler(cub, change, unprovable_findings, unbound)
    plan = change.base.plan
    if plan is None and (applied := find_apply(session.store, session.root)):
        plan = applied[0]
    before, after, archs = compared_sides(change)
    selection = Filter(tuple(sorted(after.paths)), archs=archs.ordered)
    sides = _resolve_sides(before, after, selection, session)
    resolved = [*sides]
    comparison = compare_resolutions(*sides)
    entries = touched(change.before.headers, change.after.headers)
    remarks = list(change.remarks)
    different = [row for row in comparison.different if None not in (row.before, row.after)]
    families = {entry.family.header for entry in entries if entry.in_family}
    remarks += _family_remarks(
        plan, after, {row.benchmark for row in different}, families, progress
    )
    if one_sided := len(comparison.different) - len(different):
        remarks.append(
            f"{one_sided:,} workloads exist in only one of the trees and are not compared"
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
    reach = _reach(change.after, [entry.place for entry in entries if entry.after], progress)
    written = Written(plan, after, different, named_variants(entries, different), progress)
    facts = ReviewContext(
        find_evidence(databases, written, parse_gpus(gpus)),
        _findings(change),
        reach.unreachable,
        {**inherited(change.before.headers), **inherited(change.after.headers)},
        plan.options.arch if plan else None,
        {row.benchmark: headers_of_benchmarks([row.benchmark], cub.bindings) for row in different},
    )
    inputs = review_inputs(change, different, progress)
    gaps = tuple(unanswered(resolved[::2], resolved[1::2], differs))
    silent_headers = {gap.header for gap in gaps}
    skipped = {True: silent_headers, False: silent_headers | inputs.headers}
    answered = [e for e in entries if e.place.header not in skipped[e.in_family]]
    undecided_places = undecided(answered, resolved, facts.bases)
    undecided_places -= _unreachable_before(change, entries, undecided_places, progress)
    reviewed_entries, rest = reviewed(entries, different, facts, undecided_places)
    silent_headers |= {row.header for row in unbound} | all_compared(change, inputs)
    silent_headers |= {*headers_of_benchmarks({row.benchmark for row in rest}, cub.bindings)}
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
        digests=tuple(sha256_of(path) if path.is_file() else "" for path in map(Path, databases)),
        actions=tuple(action for action in plan.actions if not action.written) if plan else (),
        effect=None if gaps else _prove_effect(change, plan, sides, inputs, progress),
        sass=compare_earlier(session, change.base, announce) if run_sass else None,
        diffs=_diffs(change),
        commands=_commands(session, base, plan, files, gpus, reaches, run_sass=run_sass),
        remarks=tuple(dict.fromkeys((*remarks, *comparison.remarks))),
        uncovered=(
            *(*unbound, *gaps),
            *not_compared(inputs.unknown, gaps, differs),
            *uncovered_entries(reviewed_entries),
            *_uncovered_code(change, entries, reviewed_entries, silent_headers),
        ),
        inputs=inputs.changes,
        inputs_compared=inputs.compared,
        reaches=tuple(reaches),
    ).allowing(_inheriting(change.base.plan))


def _unreachable_before(
    change: TreeChange,
    entries: Sequence[Touched],
    undecided_places: Collection[EntryPlace],
    progress: Progress | None,
) -> set[EntryPlace]:
    """Returns removed entries that no workload could select: nothing is lost with them."""
    removed = [entry.place for entry in entries if entry.after is None]
    places = [place for place in removed if place in undecided_places]
    unreachable = _reach(change.before, places, progress).unreachable
    keys = {(row.header, row.family, row.args, row.line) for row in unreachable}
    return {p for p in places if (p.header, p.family, p.args, p.line) in keys}


def _uncovered_code(
    change: TreeChange,
    entries: Sequence[Touched],
    reviewed_entries: Sequence[ReviewedEntry],
    skipped: Collection[str],
) -> Iterator[Uncovered]:
    """Finds changed code that changes no bound workload.

    Skips headers that are reported already, and those with different values from none of the
    entries.
    """
    sides = [
        {header.name: header for header in side.headers} for side in (change.before, change.after)
    ]
    for name, contents in change.contents.items():
        if name not in skipped:
            own = [entry for entry in entries if entry.place.header == name]
            header = ChangedHeader(contents, (sides[0][name], sides[1][name]), own)
            reviewed_own = [entry for entry in reviewed_entries if entry.place.header == name]
            yield from uncovered_code(name, header, reviewed_own)


def _inheriting(plan: Plan | None) -> list[str]:
    """Returns the later architectures that inherit according to the plan of the change."""
    if plan is None:
        return []
    target, keeps = arch_number(plan.options.arch), plan.options.keeps
    return [arch for arch in ladder() if arch_number(arch) > target and not keeps(arch)]


def _findings(change: TreeChange) -> tuple[Finding, ...]:
    """Returns lint findings for the headers after a change."""
    headers = change.after.headers
    scan = Scan(
        cub=change.after.cub,
        families=tuple(family for header in headers for family in header.tunings),
        chains=tuple(chain for header in headers for chain in header.chains),
    )
    paths = change.after.paths
    sources = {n: HeaderSource(nearby(paths[n]), new) for n, (_, new) in change.contents.items()}
    return lint(scan, sources).findings


def _diffs(change: TreeChange) -> tuple[HeaderDiff, ...]:
    """Returns the diff of each file."""
    root = Path(change.after.cub.root)
    # In a workflow it is the repository root, and annotations use paths from there.
    current_folder = Path.cwd()

    def is_inside(path: Path) -> bool:
        return path.is_relative_to(root) and not path.is_relative_to(current_folder)

    contents = {change.after.paths[name]: sides for name, sides in change.contents.items()}
    # Between versions of a library, thousands of other headers differ.
    beside = list(change.beside.values())[:MOST_DIFFS]
    contents |= {header.path: (header.before, header.after) for header in beside}
    paths = {path: nearby(path.relative_to(root) if is_inside(path) else path) for path in contents}
    return tuple(
        HeaderDiff(
            path=paths[path],
            # JSON cannot hold bytes that are not text.
            diff=unified(paths[path], *sides).encode("utf-8", "replace").decode(),
        )
        for path, sides in contents.items()
    )


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
    findings = _findings(change) if entries else ()
    differs = change.contents or change.beside
    remark = "the compiler was not queried" if differs else "no tuning header differs"
    return Review(
        cub=cub,
        content=tree_content(cub),
        base=change.base.label,
        toolchain="",
        archs=(),
        entries=reviewed(entries, (), ReviewContext((), findings, ()))[0],
        compared=0,
        diffs=_diffs(change),
        commands=(),
        remarks=(*change.remarks, remark),
        unprovable=unprovable_findings,
        uncovered=unbound,
    )


def _find_unprovable(cub: Cub, change: TreeChange) -> tuple[Finding, ...]:
    """Finds what headers require that no proof can cover.

    Findings are ignored if they are of unchanged headers only.
    """
    headers = trees.tuning_headers(cub)
    findings = unprovable(cub, headers)
    unchanged = {path.name for path in headers} - change.contents.keys()
    if not change.contents or not any(finding.header in unchanged for finding in findings):
        return tuple(findings)
    own = unprovable(cub, [path for path in headers if path.name not in unchanged])
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


def _reach(tree: ReadTree, places: Sequence[EntryPlace], progress: Progress | None) -> Reachability:
    """Returns what selects the given entries."""
    if not places:
        return Reachability()
    return ask_reach(tree, compiler_of(tree.cub), progress, places=frozenset(places))


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
        remarks += unlike(plan, compiler_for(after, progress=progress))
    return remarks


def _prove_effect(
    change: TreeChange,
    plan: Plan | None,
    resolutions: tuple[Resolution, Resolution],
    inputs: InputDelta,
    progress: Progress | None,
) -> Effect | None:
    """Returns the proof of the last apply; None if something else is compared."""
    if plan is None or change.base.plan is None:
        return None
    before = {name: old for name, (old, _) in change.contents.items()}
    after = {name: new for name, (_, new) in change.contents.items()}
    headers = {header.name: header for header in change.before.headers}
    return applied_effect(
        plan, change.after, headers, before, after, progress, compared=(*resolutions, inputs)
    )


def _commands(
    session: Session,
    base: str | None,
    plan: Plan | None,
    files: Sequence[str],
    gpus: Sequence[str],
    reaches: Sequence[str],
    *,
    run_sass: bool,
) -> tuple[str, ...]:
    """Returns the commands that make the change and reproduce this review."""
    typed, commands = partial(command_line, session), []
    base_options = ["--base", base] if base else []
    if plan is not None:
        words = planning(given_or_told(plan), plan.options)
        commands.append(typed("apply", *words, store=True, writes=True))
        commands.append(typed("verify-effect", "--arch", plan.options.arch, store=True))
    if session.cub.has_machine_code:  # other libraries need a compiler that few users have
        commands.append(typed("verify-sass", "--arch", "earlier", *base_options, store=True))
    review_options = [word for name in files for word in ("--db", name)]
    review_options += [word for gpu in gpus for word in ("--gpu-arch", gpu)]
    review_options += ["--reaches", ",".join(reaches)] if reaches else []
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
            remarks.append(f"whether {_command(document)} describes this tree is unknown")
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
            f"`{command}` describes a different tree than the {title} under review:"
            f" {', '.join(sorted(titles))}",
            f"Run `{command} --json` on the tree under review.",
        )
    return comparable


def _command(proof: Proof) -> str:
    """Returns the command that prints such a document."""
    kind = proof.format.split("/")[1].removeprefix("verify-")
    return f"verify-{kind}"


def _read(path: Path, kind: type[Model]) -> Model:
    """Reads a saved document."""
    format_name = kind.model_fields["format"].default
    return load_document(path, kind, format_name, "Save it again with this policygen.")


# The measurements behind a change's values; values written by hand are matched by value.


@dataclass(frozen=True, slots=True)
class Written:
    """What a change wrote, and what is known about the origin of its values."""

    plan: Plan | None
    after: ReadTree
    different: Sequence[Differing]
    named: Mapping[Point, str]
    """The variants that comments of entries name."""
    progress: Progress | None = None

    @property
    def actions(self) -> tuple[Action, ...]:
        """What a plan wrote."""
        return self.plan.written if self.plan else ()

    @property
    def planned(self) -> dict[Point, str]:
        """The variants that a plan wrote."""
        return {action.point: action.variant for action in self.actions if action.variant}


def find_databases(plan: Plan | None, files: Sequence[str], remarks: list[str]) -> tuple[str, ...]:
    """Returns the named databases, or else those of the apply that exist here."""
    used = {name for action in plan.written for name in action.databases} if plan else set()
    names = list(files) or sorted(used)
    paths = list(files) or [name for name in names if is_results(Path(name))]
    if missing := [name for name in names if name not in paths]:
        remarks.append(f"missing database: {', '.join(missing)}; name it with --db")
    return tuple(paths)


def find_evidence(
    databases: Sequence[str], written: Written, gpus: Mapping[str, str]
) -> tuple[Evidence, ...]:
    """Returns what databases say about the values that workloads got."""
    if not databases or not (written.different or written.planned):
        return ()
    options = written.plan.options if written.plan else None
    rules = options.rules if options else Rules()
    plan_archs = {action.gpu: options.arch for action in written.actions} if options else {}
    results = ResultFiles(databases, gpus={**plan_archs, **gpus})
    instead = {action.point: action.next_best for action in written.actions}
    with open_inputs(results) as inputs:
        top = inputs.rank(rules, top=1)
        workloads = [results.reported(workload) for workload in top.workloads]
        archs = {arch for workload in workloads if (arch := arch_of(workload))}
        version = written.after.cub.bindings
        requested: list[tuple[Measurement, str]] = []
        for arch in sorted(archs):
            measured = measurements(workloads, version, arch, force=False)[0]
            labels = dict(_written_variants(inputs.databases, measured, written, arch))
            requested += [(m, labels[m.point]) for m in measured if m.point in labels]
        scored = [(measurement.scored, label) for measurement, label in requested]
        proofs = evidence(inputs.databases, scored, rules, inputs.declared)
        return tuple(
            Evidence(
                benchmark=measurement.benchmark.name,
                workload=measurement.workload,
                scored=proof[0],
                runtime=proof[1],
                **measurement.scored.model_dump(include={"gpu", "ctk", "cccl"}),
                databases=inputs.named(measurement.scored).databases,
                rejected=rejected_variants(
                    measurement, proof[0].variant, instead.get(measurement.point)
                ),
            )
            for (measurement, _), proof in zip(requested, proofs, strict=True)
            if proof is not None
        )


def _written_variants(
    databases: Sequence[Path], candidates: Sequence[Measurement], written: Written, arch: str
) -> Iterator[tuple[Point, str]]:
    """Yields each workload's variant: from the plan, or else the one with the same values."""
    planned = written.planned
    yield from ((m.point, planned[m.point]) for m in candidates if m.point in planned)
    changed = {row.point for row in written.different if row.arch == arch and row.after}
    by_hand = [m for m in candidates if m.point in changed - planned.keys()]
    if not by_hand:
        return
    compiler = compiler_for(written.after, progress=written.progress)
    cases, _ = find_places(by_hand, dialect_of(compiler.sources, arch, None), compiler, arch)
    placed = {case.measurement.point: case for case in cases}
    labels_by_workload = variants_of(databases, [measurement.scored for measurement in by_hand])
    for measurement, labels in zip(by_hand, labels_by_workload, strict=True):
        named_label, case = written.named.get(measurement.point), placed.get(measurement.point)
        if label := shown_variant(case, labels, named_label) if case else named_label:
            yield measurement.point, label
