"""Resolves the values that CUB selects for each workload, using the compiler."""

from collections.abc import Sequence
from dataclasses import replace

from policygen.app.filters import Filter, check_archs
from policygen.app.reading import ReadTree, chosen_archs, read_tree
from policygen.app.session import Session, other_tree
from policygen.errors import PolicygenError
from policygen.model.records import Problem
from policygen.model.selection import Comparison, Resolution
from policygen.model.trees import Dialect
from policygen.proof.ask import compiler_of
from policygen.proof.changes import compare_resolutions
from policygen.proof.probe import SiteQuery
from policygen.proof.sites import places, remarks
from policygen.proof.values import resolve
from policygen.steps import Progress

Errors = tuple[PolicygenError, ...]
"""Errors of workloads that could not be resolved. The results returned with them are valid."""


def resolve_workloads(session: Session, where: Filter) -> tuple[Resolution, Errors]:
    """Resolves the values of a tree's workloads, and the entries that they come from."""
    check_archs(session.cub, where.archs)
    tree = read_tree(session.cub, where.headers)
    return ask_values(tree, where, progress=session.progress)


def compare_trees(session: Session, other: str, where: Filter) -> tuple[Comparison, Errors]:
    """Finds workloads that get different values than in another tree."""
    trees = (other_tree(session, other), session.cub)
    for cub in trees:
        check_archs(cub, where.archs)
    sides = [read_tree(cub, where.headers) for cub in trees]
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
    toolchain = compiler_of(tree.cub)
    resolved = resolve(
        tree.cub,
        sites,
        tree.marked_for(sites),
        archs,
        toolchain,
        enabled=tree.enabled() if tree.cub.has_selectors else {},
        replaced=tree.contents,
        progress=progress,
    )
    document = Resolution(
        cub=tree.cub,
        toolchain=toolchain.name,
        archs=archs,
        rows=resolved.rows,
        remarks=(
            *remarks(tree.cub, frozenset() if where.headers else frozenset(tree.paths)),
            *resolved.remarks,
        ),
        unresolved=resolved.unresolved,
        problems=tuple(Problem.of(error) for error in tree.errors),
    )
    return document, (*tree.errors, *resolved.errors)


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
    return chosen_archs(where.archs, headers, tree.headers)
