"""Which workloads are tuned for which architectures, and what results could fill."""

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
from policygen.app.session import Note, Session, other_tree, unsaid
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
    asked: Filter,
    *,
    compare: str | None = None,
    files: Sequence[str] = (),
    gpus: Sequence[str] = (),
) -> tuple[Coverage, Errors]:
    """Asks which workloads are tuned; since another tree, and what databases could fill.

    `gpus` says of which architecture a GPU is that nobody knows: `B400=sm110`.
    """
    now, errors = resolve_workloads(session, asked)
    found = cells(now)
    document = Coverage(
        cub=now.cub,
        toolchain=now.toolchain,
        archs=now.archs,
        shares=shares(found),
        cells=found,
        remarks=now.remarks,
        unresolved=now.unresolved,
        problems=now.problems,
    )
    if compare is not None:
        other, same = other_tree(session, compare), replace(asked, archs=now.archs)
        then, more = ask_values(read_tree(other, asked.headers), same, progress=session.progress)
        errors += more
        compared = Compared(cub=other, turned=turned(cells(then), document.cells))
        document = document.model_copy(update={"compared": compared})
    if files:
        where = replace(asked, headers=(), archs=())
        results = ResultFiles(files, where=where, gpus=parse_gpus(gpus))
        document = filled_by(session, document, results)
    return document, errors


def under(document: Coverage, least: float | None, *, inherited: bool) -> tuple[str, ...]:
    """On which architectures less than a share is tuned, in words."""
    counted: tuple[CellStatus, ...] = ("tuned", "inherited") if inherited else ("tuned",)
    shares = {arch: share.percent(counted) for arch, share in document.totals.items()}
    words = " or ".join(counted)
    return tuple(
        f"{arch}: {share:.1f} % {words}, less than the {least:g} % of --fail-under"
        for arch, share in shares.items()
        if least is not None and share < least
    )


# Entries that no workload can select.


def audit_reach(session: Session, asked: Filter = EVERYTHING) -> tuple[Reach, Errors]:
    """Asks which entries are never selected, whatever workload is tried."""
    found, toolchain = read_tree(session.cub, asked.headers), compiler_of(session.cub)
    told = ask_reach(found, toolchain, session.progress, wanted=_wanted(found, asked))
    document = Reach(
        cub=found.cub,
        toolchain=toolchain.name,
        archs=told.archs,
        workloads=told.workloads,
        entries=told.entries,
        reached=told.entries - len(told.unreachable) - sum(told.unknown.values()),
        unreachable=told.unreachable,
        call_only=told.call_only,
        unasked=told.unasked,
        unknown=dict(told.unknown),
        remarks=remarks(found.cub),
        problems=tuple(Problem.of(error) for error in found.errors),
    )
    return document, (*found.errors, *told.errors)


def _wanted(found: ReadTree, asked: Filter) -> frozenset[EntryPlace] | None:
    """The entries that are meant; none where all are."""
    if not (asked.regex or asked.axes or asked.archs):
        return None
    families = chosen_families(found.headers, asked, selectors=True)
    if not families:
        raise nothing_left(asked, found.headers)
    return frozenset(EntryPlace.of(family, e) for family in families for e in family.entries)


def ask_reach(
    found: ReadTree,
    toolchain: Toolchain | HostCompiler,
    progress: Progress | None = None,
    *,
    wanted: Collection[EntryPlace] | None = None,
) -> Reachability:
    """What the marked copies of a tree's headers show, in each of its library's dialects."""
    return reach_all(
        found.cub,
        found.headers,
        {dialect: found.marked(dialect) for dialect in found.cub.dialects},
        toolchain,
        wanted=wanted,
        progress=progress,
    )


# Checks the values of tuning entries against what their algorithm can use.


def lint_rules() -> dict[str, str]:
    """The rules, each with what it finds."""
    return {rule.name: rule.summary for rule in RULES}


def audit_lint(
    cub: str | None = None,
    asked: Filter = EVERYTHING,
    *,
    only: Sequence[str] = (),
    off: Sequence[str] = (),
    note: Note = unsaid,
) -> tuple[LintReport, tuple[SourceError, ...]]:
    """Checks the headers that are named, or all; tells what could not be read, too."""
    rules = choose(only, off)
    everything = Filter(headers=asked.headers)
    scan, errors = scan_tunings(cub, everything, selectors=True, note=note)
    families = None
    found, paths = tree_and_headers(asked.headers, cub)
    if asked.regex or asked.archs or asked.axes:
        # What an entry inherits may stand in a family that is not asked for.
        chosen, _ = scan_tunings(cub, replace(asked, axes=()), selectors=True)
        families = {family_name(family) for family in chosen.families}
        named = {family[0] for family in families}
        paths = tuple(path for path in paths if path.name in named)
    outside = unprovable(found, paths, nearby)
    sources = sources_of(scan, asked.headers)
    return lint(scan, sources, rules, families, outside), errors


def sources_of(scan: Scan, headers: Sequence[str] = ()) -> dict[str, HeaderSource]:
    """The bytes of every header that has families, by name."""
    paths = _paths(scan.cub, headers)
    names = sorted({family.header for family in scan.families})
    return {name: HeaderSource(nearby(paths[name]), read_bytes(paths[name])) for name in names}


def _paths(cub: Cub, headers: Sequence[str]) -> dict[str, Path]:
    """Where the headers are: those of the tree, and before them those that are named as files."""
    known = () if cub.found == "header" else trees.tuning_headers(cub)
    files: dict[str, Path] = {}
    for path in (Path(name) for name in headers if Path(name).is_file()):
        if files.setdefault(path.name, path) != path:
            raise InputError(f"two headers are called {path.name}", "Name them one by one.")
    return {path.name: path for path in known} | files


# What results could fill where nothing is tuned.


def filled_by(session: Session, document: Coverage, results: ResultFiles) -> Coverage:
    """The same with what plans for the GPUs of databases would write where nothing is tuned.

    They are proved as those of `plan` and `apply` are: what these reject is no promise.
    """
    rules = choose_rules(prefer_simple=False)
    with ranked(results, rules, session.note) as found:
        gpus = {one.gpu: arch_of(one) for one in found.top.workloads}
        archs = [arch for arch in document.archs if arch in gpus.values()]
        if not archs:
            unknown = [gpu_name(gpu) for gpu, of in sorted(gpus.items()) if of is None]
            remedy = "Name the architecture that was measured: --arch sm90"
            raise InputError(
                f"the results are from {told_gpus(gpus)}, and asked is for"
                f" {', '.join(document.archs)}",
                say_arch(unknown[0], document.archs[0]) if unknown else remedy,
            )
        wanted = [Options(arch=arch, rules=rules) for arch in archs]
        plans = [plan_ranked(session, found, one).plan for one in wanted]
    told = {
        "fillable": fillable(document.cells, plans),
        "unfilled": unfilled(document.cells, plans),
    }
    return document.model_copy(update=told)
