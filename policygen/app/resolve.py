"""What CUB selects for each workload, by the compiler."""

from policygen.app.filters import Filter
from policygen.app.notes import Progress
from policygen.app.reading import ReadTree, chosen_archs, read_tree
from policygen.app.session import Session
from policygen.app.trees import other_tree
from policygen.errors import PolicygenError
from policygen.model.base import Problem
from policygen.model.cub import Dialect
from policygen.model.resolve import Comparison, Resolution
from policygen.proof.difference import compare_resolutions
from policygen.proof.resolve import resolve
from policygen.proof.sites import places, remarks
from policygen.proof.toolchain import find_toolchain

Errors = tuple[PolicygenError, ...]
"""What could not be asked; what is told beside them holds."""


def resolve_workloads(session: Session, asked: Filter) -> tuple[Resolution, Errors]:
    """Asks which values a tree's workloads get, and from which entries."""
    found = read_tree(session.cub, asked.headers)
    return ask_values(found, asked, progress=session.progress)


def compare_trees(session: Session, other: str, asked: Filter) -> tuple[Comparison, Errors]:
    """Asks which workloads get other values than in another tree."""
    found = read_tree(session.cub, asked.headers)
    then = read_tree(other_tree(session, other), asked.headers)
    before, errors = ask_values(then, asked, progress=session.progress)
    after, more = ask_values(found, asked, progress=session.progress)
    return compare_resolutions(before, after), (*errors, *more)


def ask_values(
    found: ReadTree, asked: Filter, *, only: Dialect | None = None, progress: Progress | None = None
) -> tuple[Resolution, Errors]:
    """What the compiler says of a tree that is read; `only` of what one dialect decides."""
    named = frozenset(found.paths)
    known = tuple(
        place
        for place in places(found.cub, found.headers, asked.pattern, asked.values, named)
        if only in {None, place.site.dialect}
    )
    meant = {place.site.header for place in known}
    fitting = [header for header in found.headers if header.name in meant]
    archs = chosen_archs(asked.archs, fitting) or chosen_archs(asked.archs, found.headers)
    toolchain = find_toolchain()
    told = resolve(
        found.cub,
        known,
        found.marked(found.cub.dialect),
        archs,
        toolchain,
        enabled=found.enabled() if found.cub.dialect == "selectors" else {},
        progress=progress,
    )
    document = Resolution(
        cub=found.cub,
        toolchain=f"nvcc {toolchain.version}",
        archs=archs,
        rows=told.rows,
        remarks=(*remarks(found.cub, frozenset() if asked.headers else named), *told.remarks),
        unresolved=told.unresolved,
        problems=tuple(Problem.of(error) for error in found.errors),
    )
    return document, (*found.errors, *told.errors)
