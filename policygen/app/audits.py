"""Audits which workloads are tuned for which architectures, and what results could fill gaps."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from policygen import trees
from policygen.app.databases import ranked
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.inputs import ResultFiles, choose_rules, parse_gpus
from policygen.app.plan import Options, plan_ranked
from policygen.app.reading import ReadTree, read_tree
from policygen.app.resolve import Errors, ask_values, resolve_workloads
from policygen.app.scan import chosen_families, nothing_left, scan_tunings, tree_and_headers
from policygen.app.session import Note, Session, discard_note, other_tree
from policygen.errors import InputError, SourceError
from policygen.headers.text import read_bytes
from policygen.model.audits import CellStatus, Compared, Coverage, LintReport, Reach
from policygen.model.records import Problem
from policygen.model.selection import EntryPlace
from policygen.model.trees import Cub
from policygen.model.tuning import Scan
from policygen.paths import nearby
from policygen.planning.measured import arch_of, gpu_name, say_arch, told_gpus
from policygen.proof.ask import compiler_of
from policygen.proof.coverage import cells, fillable, shares, turned, unfilled
from policygen.proof.lint_rules import RULES, choose, family_name, lint
from policygen.proof.lint_subject import HeaderSource
from policygen.proof.outside_inputs import unprovable
from policygen.proof.sites import remarks
from policygen.proof.toolchain import Toolchain
from policygen.proof.unreachable import Reachability, reach_all
from policygen.rocprim.host import HostCompiler
from policygen.steps import Progress


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
    resolution, errors = resolve_workloads(session, where)
    statuses = cells(resolution)
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
    if compare is not None:
        other_cub, same_archs = other_tree(session, compare), replace(where, archs=resolution.archs)
        earlier, other_errors = ask_values(
            read_tree(other_cub, where.headers), same_archs, progress=session.progress
        )
        errors += other_errors
        compared = Compared(cub=other_cub, turned=turned(cells(earlier), document.cells))
        document = document.model_copy(update={"compared": compared})
    if files:
        results_filter = replace(where, headers=(), archs=())
        results = ResultFiles(files, where=results_filter, gpus=parse_gpus(gpus))
        document = filled_by(session, document, results)
    return document, errors


def under(document: Coverage, threshold: float | None, *, inherited: bool) -> tuple[str, ...]:
    """Returns a message for each architecture whose tuned share is below a threshold."""
    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    shares = {arch: share.percent(counted) for arch, share in document.totals.items()}
    kinds = " or ".join(counted)
    return tuple(
        f"{arch}: {share:.1f} % {kinds}, less than the {threshold:g} % of --fail-under"
        for arch, share in shares.items()
        if threshold is not None and share < threshold
    )


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
        remarks=remarks(tree.cub),
        problems=tuple(Problem.of(error) for error in tree.errors),
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


def ask_reach(
    tree: ReadTree,
    toolchain: Toolchain | HostCompiler,
    progress: Progress | None = None,
    *,
    places: Collection[EntryPlace] | None = None,
) -> Reachability:
    """Resolves the marked copies of a tree's headers in each of its library's dialects."""
    return reach_all(
        tree.cub,
        tree.headers,
        {dialect: tree.marked(dialect) for dialect in tree.cub.dialects},
        toolchain,
        wanted=places,
        progress=progress,
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
        families = {family_name(family) for family in chosen.families}
        selected_headers = {family[0] for family in families}
        paths = tuple(path for path in paths if path.name in selected_headers)
    outside = unprovable(tree, paths, nearby)
    sources = sources_of(scan, where.headers)
    return lint(scan, sources, rules, families, outside), errors


def sources_of(scan: Scan, headers: Sequence[str] = ()) -> dict[str, HeaderSource]:
    """Returns the bytes of each header that has families, by name."""
    paths = _paths(scan.cub, headers)
    names = sorted({family.header for family in scan.families})
    return {name: HeaderSource(nearby(paths[name]), read_bytes(paths[name])) for name in names}


def _paths(cub: Cub, headers: Sequence[str]) -> dict[str, Path]:
    """Returns the paths of headers by name. Headers named as files override those of the tree."""
    tree_headers = () if cub.found == "header" else trees.tuning_headers(cub)
    files: dict[str, Path] = {}
    for path in (Path(name) for name in headers if Path(name).is_file()):
        if files.setdefault(path.name, path) != path:
            raise InputError(f"two headers are called {path.name}", "Name them one by one.")
    return {path.name: path for path in tree_headers} | files


# Filling gaps from results.


def filled_by(session: Session, document: Coverage, results: ResultFiles) -> Coverage:
    """Adds what plans for the databases' GPUs would write where nothing is tuned.

    The plans are proved in the same way as those of `plan` and `apply`, which reject what fails.
    """
    rules = choose_rules(prefer_simple=False)
    with ranked(results, rules, session.note) as ranking:
        gpus = {workload.gpu: arch_of(workload) for workload in ranking.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            unknown = [
                gpu_name(gpu) for gpu, arch_of_gpu in sorted(gpus.items()) if arch_of_gpu is None
            ]
            remedy = "Name the architecture that was measured: --arch sm90"
            raise InputError(
                f"the results are from {told_gpus(gpus)}, and asked is for"
                f" {', '.join(document.archs)}",
                say_arch(unknown[0], document.archs[0]) if unknown else remedy,
            )
        options_by_arch = [Options(arch=arch, rules=rules) for arch in archs]
        plans = [plan_ranked(session, ranking, options).plan for options in options_by_arch]
    update = {
        "fillable": fillable(document.cells, plans),
        "unfilled": unfilled(document.cells, plans),
    }
    return document.model_copy(update=update)
