"""From a changed tree to a review of it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from policygen.cli.options import STORE
from policygen.errors import InputError

if TYPE_CHECKING:
    from policygen.cli.asking import Tree
    from policygen.cli.base import Base
    from policygen.cli.saved import Made
    from policygen.model.cub import Cub
    from policygen.model.effect import Effect
    from policygen.model.lint import Finding
    from policygen.model.plan import Action, Plan
    from policygen.model.reach import Unreachable
    from policygen.model.resolve import Differing, Resolution
    from policygen.model.review import Evidence, HeaderDiff, Review
    from policygen.model.sass import VerifySass
    from policygen.model.workload import Point
    from policygen.proof.review import Touched


@dataclass(frozen=True, slots=True)
class Change:
    """The headers that differ, on both sides."""

    base: "Base"
    before: "Tree"
    after: "Tree"
    contents: Mapping[str, tuple[bytes, bytes]]
    """Before and after, by the header's name."""
    remarks: tuple[str, ...]


def look(
    cub: "Cub",
    base: str | None,
    store: Path,
    files: Sequence[str],
    *,
    run_sass: bool,
    quiet: bool,
) -> "Review":
    """Asks the compiler, the databases and the audits about a change."""
    from policygen.cli import legacy
    from policygen.cli.applied import find_apply
    from policygen.cli.resolve import Question
    from policygen.errors import Problems
    from policygen.model.review import Review
    from policygen.proof.difference import compare_resolutions
    from policygen.proof.review import Known, reviewed, touched

    change = _change(cub, base, store)
    names = tuple(sorted(change.contents))
    asked = _unprovable(cub)
    if not names or asked:
        return _unasked(cub, change, asked)
    plan = change.base.plan
    if plan is None and (applied := find_apply(store, Path(cub.root))):
        plan = applied[0]
    question = Question(names, "", (), _steps(change), quiet=quiet)
    before, errors = question.ask(change.before)
    after, more = question.ask(change.after)
    if errors or more:
        raise Problems((*errors, *more))
    comparison = compare_resolutions(before, after)
    entries = touched(change.before.headers, change.after.headers)
    remarks = list(change.remarks)
    different = [row for row in comparison.different if None not in (row.before, row.after)]
    families = {one.family.header for one in entries if one.in_family}
    changed = [row.benchmark for row in different]
    remarks += legacy.stands(plan, change.after, changed, families, quiet=quiet)
    if alone := len(comparison.different) - len(different):
        remarks.append(f"{alone:,} workloads are in one of the trees only: nothing is said of them")
    compared = comparison.compared - alone
    older = Question(names, "", (), question.archs, quiet=quiet, only="specializations")
    if by_families := legacy.differing(change.before, change.after, families, older):
        different += by_families.different
        compared += by_families.compared
    labels = _labels(entries, different, plan)
    found = Known(
        _evidence(plan, files, cub.version, labels, remarks),
        _findings(change),
        _unreachable(change, quiet=quiet) if entries else (),
    )
    told, others = reviewed(entries, different, found)
    return Review(
        cub=cub,
        base=change.base.label,
        toolchain=comparison.toolchain,
        archs=comparison.archs,
        entries=told,
        others=others,
        compared=compared,
        actions=_left(plan),
        effect=_effect(change, plan, (before, after), quiet=quiet),
        sass=_sass(cub, change.base, quiet=quiet) if run_sass else None,
        diffs=_diffs(change),
        commands=_commands(cub, base, store, plan),
        remarks=tuple(dict.fromkeys((*remarks, *comparison.remarks))),
    )


def _unasked(cub: "Cub", change: Change, asked: "tuple[Finding, ...]") -> "Review":
    """Nothing that a compiler is asked about: no header differs, or what it said is no proof."""
    from policygen.model.review import Review
    from policygen.proof.review import Known, reviewed, touched

    entries = touched(change.before.headers, change.after.headers)
    findings = _findings(change) if entries else ()
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
        diffs=_diffs(change),
        commands=(),
        remarks=remarks,
        unprovable=asked,
    )


def _unprovable(cub: "Cub") -> "tuple[Finding, ...]":
    """What the tree's headers ask for, whichever of their files the change is in."""
    from policygen import tree
    from policygen.proof.lint.outside import unprovable
    from policygen.report.console import nearby

    return tuple(unprovable(cub, tree.tuning_headers(cub), nearby))


def _change(cub: "Cub", text: str | None, store: Path) -> Change:
    from policygen import tree
    from policygen.cli.asking import Tree, read_tree
    from policygen.cli.base import find_base, no_base
    from policygen.errors import Problems
    from policygen.source.files import read_bytes

    base = find_base(cub, text, store)
    if base is None:
        raise no_base(store)
    if base.cub is None:
        raise InputError(f"{base.label}: they hold no headers", "Name a tree: --base REVISION")
    now = {path.name: path for path in tree.tuning_headers(cub)}
    then = {path.name: path for path in tree.tuning_headers(base.cub)}
    contents = {}
    for name in sorted(now.keys() & then.keys()):
        old = base.replaced[name] if name in base.replaced else read_bytes(then[name])
        new = read_bytes(now[name])
        if old != new:
            contents[name] = (old, new)
    remarks = [f"{name} is in one of the trees only" for name in sorted(now.keys() ^ then.keys())]
    if base.cub.version != cub.version:
        remarks.append(f"before it is CUB {base.cub.version}, and after CUB {cub.version}")
    names = sorted(contents)
    after = read_tree(cub, names) if names else Tree(cub, (), {}, ())
    before = _before(base, names)
    if errors := (*before.errors, *after.errors):
        raise Problems(errors)
    return Change(base, before, after, contents, tuple(remarks))


def _steps(change: Change) -> tuple[str, ...]:
    """The architectures at which values can change: those between them have what came before."""
    from policygen.bindings.archs import ladder
    from policygen.model.arch import arch_number

    headers = (*change.before.headers, *change.after.headers)
    found = {policy.arch for h in headers for chain in h.chains for policy in chain.policies}
    found |= {family.arch for header in headers for family in header.families}
    if "selectors" in {change.before.cub.dialect, change.after.cub.dialect} or not found:
        found |= {*ladder()}
    return tuple(sorted(found, key=arch_number))


def _before(base: "Base", names: Sequence[str]) -> "Tree":
    """The side before; headers that were replaced are read where they stand before all others."""
    from policygen.cli.asking import Tree, read_tree
    from policygen.dialects.scan import scan_headers
    from policygen.proof.overlay import overlay
    from policygen.tree.manifest import shipped

    assert base.cub is not None
    if not names:
        return Tree(base.cub, (), {}, ())
    if not base.replaced:
        return read_tree(base.cub, names)
    tunings = shipped().tree.tunings
    paths = {n: Path(overlay(n, base.replaced[n])) / tunings / n for n in names}
    scanned = scan_headers(tuple(paths.values()))
    cub = base.cub.model_copy(update={"includes": base.includes})
    return Tree(cub, scanned.headers, paths, scanned.errors)


def _labels(
    entries: "Sequence[Touched]", different: "Sequence[Differing]", plan: "Plan | None"
) -> "dict[Point, str]":
    """Which variant each workload got: as the plan says, else as the comment of its entry does."""
    from policygen.model.workload import point_of

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
    plan: "Plan | None",
    files: Sequence[str],
    version: str,
    labels: "Mapping[Point, str]",
    remarks: list[str],
) -> "tuple[Evidence, ...]":
    """What databases say of the variants that workloads got."""
    from policygen.bindings.archs import gpu_arch
    from policygen.cli.inputs import is_results, open_inputs
    from policygen.model.results import Rules
    from policygen.model.review import Evidence
    from policygen.planning.measured import measurements, others
    from policygen.results.evidence import evidence
    from policygen.results.top import rank

    used = {n for a in plan.actions if a.written for n in a.databases} if plan else set()
    named = list(files) or sorted(used)
    paths = list(files) or [name for name in named if is_results(Path(name))]
    if lost := [name for name in named if name not in paths]:
        remarks.append(f"the database is not here: {', '.join(lost)}")
    if not paths or not labels:
        return ()
    rules = plan.options.rules if plan else Rules()
    with open_inputs(paths, ()) as given:
        top = rank(given.databases, rules=rules, declared=given.declared, top=1)
        archs = {arch for one in top.workloads if (arch := gpu_arch(one.gpu))}
        measured = [
            one
            for arch in sorted(archs)
            for one in measurements(top.workloads, version, arch, force=False)[0]
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
                rejected=others(one, proof[0].variant),
            )
            for one, proof in zip(measured, proofs, strict=True)
            if proof is not None
        )


def _findings(change: Change) -> "tuple[Finding, ...]":
    """What lint says of the headers as they are now."""
    from policygen.model.tuning import Scan
    from policygen.proof.lint.place import HeaderSource
    from policygen.proof.lint.run import lint
    from policygen.report.console import nearby

    headers = change.after.headers
    scan = Scan(
        cub=change.after.cub,
        families=tuple(family for header in headers for family in header.families),
        chains=tuple(chain for header in headers for chain in header.chains),
    )
    paths = change.after.paths
    sources = {n: HeaderSource(nearby(paths[n]), new) for n, (_, new) in change.contents.items()}
    return lint(scan, sources).findings


def _unreachable(change: Change, *, quiet: bool) -> "tuple[Unreachable, ...]":
    from policygen.cli.asking import compile_progress
    from policygen.proof.reach import reach_both
    from policygen.proof.toolchain import find_toolchain

    cub, headers = change.after.cub, change.after.headers
    told = reach_both(
        cub,
        headers,
        change.after.marked("specializations"),
        change.after.marked("selectors"),
        find_toolchain(),
        progress=compile_progress(quiet=quiet),
    )
    return told.unreachable


def _effect(
    change: Change, plan: "Plan | None", known: "tuple[Resolution, Resolution]", *, quiet: bool
) -> "Effect | None":
    """The proof of the last apply; none where something else is compared."""
    from policygen.cli.planning import applied_effect

    if plan is None or change.base.plan is None:
        return None
    before = {name: old for name, (old, _) in change.contents.items()}
    now = {name: new for name, (_, new) in change.contents.items()}
    headers = {header.name: header for header in change.before.headers}
    return applied_effect(plan, change.after, headers, before, now, quiet=quiet, known=known)


def _sass(cub: "Cub", base: "Base", *, quiet: bool) -> "VerifySass":
    """The machine code of the architectures that the change should not reach."""
    import re

    from policygen.cli.comparing import Chosen, ask, compiling, tools_of
    from policygen.proof.toolchain import find_toolchain

    toolchain = find_toolchain()
    tools = tools_of(toolchain)
    question = ask(cub, base, Chosen(re.compile(""), {}, everything=False), (), toolchain.archs)
    with compiling(tools, None, quiet=quiet) as compiler:
        sides = question.compiled(compiler)
    return question.document(sides, str(tools), allow_moved=False)


def _left(plan: "Plan | None") -> "tuple[Action, ...]":
    """What a plan did not write."""
    return tuple(action for action in plan.actions if not action.written) if plan else ()


def _diffs(change: Change) -> "tuple[HeaderDiff, ...]":
    from policygen.model.review import HeaderDiff
    from policygen.report.console import nearby
    from policygen.textdiff import unified

    root = Path(change.after.cub.root)
    # In a workflow the current folder is the repository's, and annotations name files from there.
    here = Path.cwd()
    paths = {
        name: (path if path.is_relative_to(here) else path.relative_to(root))
        for name, path in change.after.paths.items()
    }
    return tuple(
        HeaderDiff(
            path=nearby(paths[name]),
            # JSON holds no bytes that are no text.
            diff=unified(nearby(paths[name]), old, new).encode("utf-8", "replace").decode(),
        )
        for name, (old, new) in change.contents.items()
    )


def _commands(cub: "Cub", base: str | None, store: Path, plan: "Plan | None") -> tuple[str, ...]:
    """What makes the change and shows what this review says."""
    there = ["--cub", cub.root] if cub.found == "--cub" else []
    kept = ["--store", str(store)] if str(store) != STORE else []
    named = ["--base", base] if base else []
    found = []
    if plan is not None:
        databases = dict.fromkeys(name for a in plan.actions for name in a.databases)
        given = [word for name in databases for word in ("--db", name)]
        legacy = plan.options.legacy
        given += ["--legacy", legacy] if legacy != "leave" else []
        found += [["apply", *given, "--arch", plan.options.arch]]
        found += [["verify-effect", "--arch", plan.options.arch]]
    found += [["verify-sass", "--arch", "earlier", *named], ["review", *named]]
    return tuple(shlex.join(["policygen", *words, *there, *kept]) for words in found)


def read(path: Path, kind: "type[Made]") -> "Made":
    """A document that was saved."""
    from policygen.cli.saved import read_document

    wanted = kind.model_fields["format"].default
    return read_document(path, kind, wanted, "Save it again with this policygen.")
