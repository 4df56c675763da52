"""Resolves the values that CUB selects for each workload, using the compiler."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from policygen import trees
from policygen.app.filters import Filter, check_archs, parse_archs
from policygen.app.session import Session, other_tree
from policygen.bindings.recorded import version_of
from policygen.errors import InputError, PolicygenError
from policygen.headers.text import as_problem
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Comparison, EntryPlace, Resolution
from policygen.model.trees import Dialect
from policygen.planning.measured import of_versions, with_bases
from policygen.proof.ask import compiler_of
from policygen.proof.oracle import (
    Compiler,
    compiler_for,
    enabled_copies,
    marked_copies,
    marked_for,
    open_compiler,
)
from policygen.proof.probe import LibraryCompiler
from policygen.proof.reading import ReadTree, chosen_archs, read_tree
from policygen.proof.sites import check_values, headers_of_benchmarks, ignored_axes, places, remarks
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import SiteQuery
from policygen.proof.unreachable import Reachability, reach_all
from policygen.proof.values import compare_resolutions, resolve
from policygen.steps import Progress

Errors = tuple[PolicygenError, ...]
"""Errors of workloads that could not be resolved. The results returned with them are valid."""


def resolve_workloads(session: Session, where: Filter) -> tuple[Resolution, Errors]:
    """Resolves the values of a tree's workloads, and the entries that they come from."""
    check_archs(session.cub, where.archs)
    check_values([session.cub.bindings], where.pattern, where.values)
    tree = read_tree(session.cub, where.headers)
    return ask_values(tree, where, progress=session.progress)


def compare_trees(session: Session, other: str, where: Filter) -> tuple[Comparison, Errors]:
    """Finds workloads that get different values than in another tree."""
    cubs = (other_tree(session, other), session.cub)
    for cub in cubs:
        check_archs(cub, where.archs)
    check_values([cub.bindings for cub in cubs], where.pattern, where.values)
    sides = [read_tree(cub, where.headers) for cub in cubs]
    # Architectures that either tree has tunings for are resolved for both.
    archs = {arch for side in sides for arch in _archs(side, where, _selected_sites(side, where))}
    same_archs = replace(where, archs=tuple(archs))
    (before, errors), (after, after_errors) = (
        ask_values(side, same_archs, progress=session.progress) for side in sides
    )
    return compare_resolutions(before, after), (*errors, *after_errors)


def ask_values(
    tree: ReadTree, where: Filter, *, only: Dialect | None = None, progress: Progress | None = None
) -> tuple[Resolution, Errors]:
    """Resolves the workloads of a tree; with `only`, just those that one dialect decides."""
    sites = _selected_sites(tree, where, only)
    archs = _archs(tree, where, sites)
    document, refused = resolve(
        tree.cub,
        sites,
        marked_for(tree, sites),
        archs,
        compiler_of(tree.cub),
        enabled=enabled_copies(tree) if tree.cub.has_selectors else {},
        replaced=tree.contents,
        progress=progress,
    )
    update = {
        "remarks": (
            *remarks(tree.cub, tree.paths.keys(), whole=not where.headers),
            *ignored_axes(tree.cub.bindings, where.pattern, where.values),
            *document.remarks,
        ),
        "conditions": tree.conditions(site.site.header for site in sites),
        "problems": tuple(map(as_problem, tree.errors)),
    }
    return document.model_copy(update=update), (*tree.errors, *refused)


def ask_reach(
    tree: ReadTree,
    toolchain: Toolchain | LibraryCompiler,
    progress: Progress | None = None,
    *,
    places: Collection[EntryPlace] | None = None,
) -> Reachability:
    """Resolves the marked copies of a tree's headers in each of its library's dialects."""
    return reach_all(
        tree.cub,
        tree.headers,
        {dialect: marked_copies(tree, dialect) for dialect in tree.cub.dialects},
        toolchain,
        wanted=places,
        progress=progress,
    )


def _selected_sites(
    tree: ReadTree, where: Filter, only: Dialect | None = None
) -> tuple[SiteQuery, ...]:
    """Returns the selected sites with their workloads."""
    header_names = frozenset(tree.paths)
    all_sites = places(tree.cub, tree.headers, where.pattern, where.values, header_names)
    return tuple(place for place in all_sites if only in {None, place.site.dialect})


def _archs(tree: ReadTree, where: Filter, sites: Sequence[SiteQuery]) -> tuple[str, ...]:
    names = {place.site.header for place in sites}
    headers = [header for header in tree.headers if header.name in names]
    return chosen_archs(parse_archs(where.archs), headers, tree.headers)


# The trees on which results were measured, if available, and whether base is theirs.


def with_base_checks(
    session: Session, workloads: Sequence[ScoredWorkload], arch: str
) -> tuple[ScoredWorkload, ...]:
    """Checks whether base was what the tree selects, for workloads of several versions."""
    other_versions = [
        *chain.from_iterable(of_versions(workloads, session.cub.bindings.release).values())
    ]
    if not other_versions or not any(workload.is_used for workload in workloads):
        return tuple(workloads)
    names = headers_of_benchmarks({row.algorithm for row in other_versions}, session.cub.bindings)
    compiler = open_compiler(session.cub, names, progress=session.progress)
    return with_measured_bases(session, workloads, compiler, arch)


def with_measured_bases(
    session: Session,
    workloads: Sequence[ScoredWorkload],
    compiler: Compiler,
    arch: str,
    measured_on: str | None = None,
) -> tuple[ScoredWorkload, ...]:
    """Does the same for an open tree."""
    version = session.cub.bindings.release
    other_versions = chain.from_iterable(of_versions(workloads, version).values())
    measured = measured_trees(session, measured_on, {workload.cccl for workload in other_versions})
    return with_bases(workloads, compiler, version, measured, arch)


def measured_trees(
    session: Session, measured_on: str | None, cccl: Collection[str]
) -> dict[str, Compiler]:
    """Returns compilers for the trees that were measured, by version, if available."""
    compilers: dict[str, Compiler] = {}
    for version in sorted(set(map(version_of, cccl))):
        if measured_on is not None:
            tree = other_tree(session, measured_on)
        elif version == session.cub.release:
            continue
        else:
            try:
                tree = trees.find(version, Path.cwd())
            except InputError:
                continue
        tree = tree.model_copy(update={"own": session.cub.own})
        compilers[version] = compiler_for(read_tree(tree), progress=session.progress)
    return compilers
