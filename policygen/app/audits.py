"""Audits which workloads are tuned for which architectures, and what results could fill gaps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from policygen import trees
from policygen.app.filters import EVERYTHING, Filter, parse_archs
from policygen.app.inputs import Ranked, ResultFiles, choose_rules, parse_gpus, ranked
from policygen.app.plan import Options, plan_ranked
from policygen.app.resolve import Errors, ask_reach, ask_values, resolve_workloads
from policygen.app.scan import chosen_families, nothing_left, scan_tunings, tree_and_headers
from policygen.app.session import Session, other_tree
from policygen.errors import InputError, SourceError
from policygen.headers.text import as_problem
from policygen.model.arch import arch_number
from policygen.model.audits import (
    STATUSES,
    Cell,
    CellStatus,
    Compared,
    Coverage,
    Fillable,
    LintReport,
    Reach,
    Scan,
    Share,
    Turned,
    Unfilled,
)
from policygen.model.plans import Plan
from policygen.model.selection import EntryPlace, ResolvedRow
from policygen.opening import read_bytes
from policygen.planning.measured import check_gpus
from policygen.portable import nearby
from policygen.proof.ask import compiler_of
from policygen.proof.lint_rules import RULES, choose, lint
from policygen.proof.lint_subject import HeaderSource
from policygen.proof.outside_inputs import unprovable
from policygen.proof.reading import ReadTree, read_tree
from policygen.proof.sites import remarks
from policygen.steps import Note, discard_note


def audit_coverage(
    session: Session,
    where: Filter,
    *,
    compare: str | None = None,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
) -> tuple[Coverage, Errors]:
    """Audits which workloads are tuned, what changed, and what databases could fill.

    `compare` names another tree. `gpus` gives the architecture of unknown GPUs: `B400=sm110`.
    """
    other_cub = None if compare is None else other_tree(session, compare)
    rules = choose_rules(prefer_simple=False)
    results_filter = replace(where, headers=(), archs=())
    results = ResultFiles(files, where=results_filter, gpus=parse_gpus(gpus), may_lack=True)
    with ranked(results, rules, session.note) if files else nullcontext() as ranking:
        if ranking is not None and where.archs:
            _archs_measured(ranking, sorted(parse_archs(where.archs), key=arch_number))
        resolution, errors = resolve_workloads(session, where)
        statuses = tuple(map(cell_of, resolution.rows))
        document = Coverage(
            cub=resolution.cub,
            toolchain=resolution.toolchain,
            archs=resolution.archs,
            shares=shares(statuses),
            cells=statuses,
            remarks=resolution.remarks,
            unresolved=resolution.unresolved,
            problems=resolution.problems,
        )
        if other_cub is not None:
            same_archs = replace(where, archs=resolution.archs)
            earlier, other_errors = ask_values(
                read_tree(other_cub, where.headers), same_archs, progress=session.progress
            )
            errors += other_errors
            changes = turned(map(cell_of, earlier.rows), document.cells)
            compared = Compared(cub=other_cub, turned=changes)
            document = document.model_copy(update={"compared": compared})
        if ranking is not None:
            document = _filled_by(session, document, ranking)
    return document, errors


def under(document: Coverage, threshold: float | None, *, inherited: bool) -> tuple[str, ...]:
    """Returns a message for each architecture whose tuned share is below a threshold."""
    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    percents = {arch: share.percent(counted) for arch, share in document.totals.items()}
    kinds = " or ".join(counted)
    return tuple(
        f"{arch}: {percent:.1f} % {kinds}, less than the {threshold:g} % of --fail-under"
        for arch, percent in percents.items()
        if threshold is not None and percent < threshold
    )


# Coverage, from what the compiler selects and from what results would change.


def shares(cells: Sequence[Cell]) -> tuple[Share, ...]:
    """Counts the statuses by architecture: of all benchmarks, then of each."""
    counts: dict[tuple[str | None, str], Counter[CellStatus]] = {}
    for cell in cells:
        for benchmark in (None, cell.benchmark):
            counts.setdefault((benchmark, cell.arch), Counter())[cell.status] += 1
    return tuple(
        Share(
            benchmark=benchmark,
            arch=arch,
            workloads=counter.total(),
            counts={status: counter[status] for status in STATUSES},
        )
        for (benchmark, arch), counter in sorted(
            counts.items(), key=lambda item: (item[0][0] or "", arch_number(item[0][1]))
        )
    )


def planned(
    cells: Iterable[Cell], plans: Iterable[Plan]
) -> tuple[tuple[Fillable, ...], tuple[Unfilled, ...]]:
    """Lists what plans would write for untuned cells, and what they reject, best scores first."""
    untuned = {(cell.point, cell.arch): cell for cell in cells if cell.status != "tuned"}
    fillable: list[Fillable] = []
    unfilled: list[Unfilled] = []
    for plan in plans:
        for action in plan.actions:
            cell = untuned.get((action.point, plan.options.arch))
            if cell is None or not action.variant or not action.scores:
                continue
            facts: dict[str, Any] = {"arch": cell.arch, "status": cell.status}
            facts |= {"variant": action.variant, "score": action.scores[0]}
            facts |= {"databases": action.databases}
            if action.written:
                fillable.append(Fillable.of(cell.point, **facts))
            elif action.decision == "reject":
                unfilled.append(Unfilled.of(cell.point, **facts, reason=action.reason))
    fillable.sort(key=lambda row: -row.score)
    unfilled.sort(key=lambda row: -row.score)
    return tuple(fillable), tuple(unfilled)


def turned(before: Iterable[Cell], after: Iterable[Cell]) -> tuple[Turned, ...]:
    """Lists cells whose status changed; of workloads that only one tree has, the tuned ones."""
    old, new = ({(cell.point, cell.arch): cell.status for cell in side} for side in (before, after))
    spots = sorted({**old, **new}, key=lambda spot: (spot[0][0], arch_number(spot[1])))
    rows = (
        Turned.of(spot[0], arch=spot[1], before=old.get(spot), after=new.get(spot))
        for spot in spots
    )
    return tuple(
        row
        for row in rows
        if row.before != row.after
        and (None not in (row.before, row.after) or "tuned" in (row.before, row.after))
    )


def cell_of(row: ResolvedRow) -> Cell:
    """Returns a workload's status on an architecture."""
    status: CellStatus = row.status
    entry, reason = row.entry, None
    if row.status != "tuned" and row.passed is not None:
        status, entry = "unreachable", row.passed
    elif row.status != "tuned" and row.disabled is not None:
        status, entry, reason = "disabled", row.disabled.place, row.disabled.reason
    facts = {"status": status, "since": row.since, "entry": entry, "reason": reason}
    return Cell.of(row.point, arch=row.arch, **facts)


# Entries that no workload can select.


def audit_reach(session: Session, where: Filter = EVERYTHING) -> tuple[Reach, Errors]:
    """Finds entries that are never selected, whatever the workload."""
    tree, toolchain = read_tree(session.cub, where.headers), compiler_of(session.cub)
    reach = ask_reach(tree, toolchain, session.progress, places=_selected_entries(tree, where))
    document = Reach(
        cub=tree.cub,
        toolchain=toolchain.name,
        archs=reach.archs,
        workloads=reach.workloads,
        entries=reach.entries,
        reached=reach.entries - len(reach.unreachable) - sum(reach.unknown.values()),
        unreachable=reach.unreachable,
        call_only=reach.call_only,
        unasked=reach.unasked,
        unknown=dict(reach.unknown),
        remarks=remarks(tree.cub, tree.paths.keys()),
        problems=tuple(map(as_problem, tree.errors)),
    )
    return document, (*tree.errors, *reach.errors)


def _selected_entries(tree: ReadTree, where: Filter) -> frozenset[EntryPlace] | None:
    """Returns the selected entries; None if all are selected."""
    if not (where.regex or where.axes or where.archs):
        return None
    families = chosen_families(tree.headers, where, selectors=True)
    if not families:
        raise nothing_left(where, tree.headers)
    return frozenset(
        EntryPlace.of(family, entry) for family in families for entry in family.entries
    )


# Checks of tuning entries against what their algorithm can use.


def lint_rules() -> dict[str, str]:
    """Returns the lint rules with a summary of each."""
    return {rule.name: rule.summary for rule in RULES}


def audit_lint(
    cub: str | None = None,
    where: Filter = EVERYTHING,
    *,
    only: Sequence[str] = (),
    off: Sequence[str] = (),
    note: Note = discard_note,
) -> tuple[LintReport, tuple[SourceError, ...]]:
    """Checks the named headers, or all of them. Also returns the errors of unreadable headers."""
    rules = choose(only, off)
    everything = Filter(headers=where.headers)
    scan, errors = scan_tunings(cub, everything, selectors=True, note=note)
    families = None
    tree, paths = tree_and_headers(where.headers, cub)
    if where.regex or where.archs or where.axes:
        # An entry may inherit from a family that is not selected.
        chosen, _ = scan_tunings(cub, replace(where, axes=()), selectors=True)
        families = {family.path for family in chosen.families}
        selected_headers = {family[0] for family in families}
        paths = tuple(path for path in paths if path.name in selected_headers)
    outside = unprovable(tree, paths)
    sources = sources_of(scan, where.headers)
    return lint(scan, sources, rules, families, outside), errors


def sources_of(scan: Scan, headers: Sequence[str] = ()) -> dict[str, HeaderSource]:
    """Returns the bytes of each header that has families, by name.

    Headers named as files override those of the tree.
    """
    tree_headers = () if scan.cub.found == "header" else trees.tuning_headers(scan.cub)
    files: dict[str, Path] = {}
    for path in (Path(name) for name in headers if Path(name).is_file()):
        if files.setdefault(path.name, path) != path:
            raise InputError(
                f"two headers are named {path.name}", "Give their paths one at a time."
            )
    paths = {path.name: path for path in tree_headers} | files
    names = sorted({family.header for family in scan.families})
    return {name: HeaderSource(nearby(paths[name]), read_bytes(paths[name])) for name in names}


# Filling gaps from results.


def _filled_by(session: Session, document: Coverage, ranking: Ranked) -> Coverage:
    """Adds what plans for the databases' GPUs would write where nothing is tuned.

    The plans are proved in the same way as those of `plan` and `apply`, which reject what fails.
    """
    plans = [
        plan_ranked(session, ranking, Options(arch=arch, rules=ranking.rules)).plan
        for arch in _archs_measured(ranking, document.archs)
    ]
    fillable, unfilled = planned(document.cells, plans)
    return document.model_copy(update={"fillable": fillable, "unfilled": unfilled})


def _archs_measured(ranking: Ranked, archs: Sequence[str]) -> list[str]:
    """Returns the architectures that the databases have results for; raises if there are none."""
    remedy = "Name the architecture that was measured: --arch sm90"
    return check_gpus(ranking.top.workloads, archs, remedy)
