"""What CUB selects for each workload, by the compiler."""

from collections.abc import Sequence
from dataclasses import replace

from policygen.app.filters import Filter
from policygen.app.reading import ReadTree, chosen_archs, read_tree
from policygen.app.session import Session, other_tree
from policygen.errors import PolicygenError
from policygen.model.records import Problem
from policygen.model.selection import Comparison, Resolution
from policygen.model.trees import Dialect
from policygen.proof.ask import compiler_of
from policygen.proof.changes import compare_resolutions
from policygen.proof.probe import Asked
from policygen.proof.sites import places, remarks
from policygen.proof.values import resolve
from policygen.steps import Progress

Errors = tuple[PolicygenError, ...]
"""What could not be asked; what is told beside them holds."""


def resolve_workloads(session: Session, asked: Filter) -> tuple[Resolution, Errors]:
    """Asks which values a tree's workloads get, and from which entries."""
    found = read_tree(session.cub, asked.headers)
    return ask_values(found, asked, progress=session.progress)


def compare_trees(session: Session, other: str, asked: Filter) -> tuple[Comparison, Errors]:
    """Asks which workloads get other values than in another tree."""
    sides = [read_tree(cub, asked.headers) for cub in (other_tree(session, other), session.cub)]
    # What one tree has tunings for is asked of both.
    archs = {a for side in sides for a in _archs(side, asked, _known(side, asked))}
    same = replace(asked, archs=tuple(archs))
    (before, errors), (after, more) = (
        ask_values(side, same, progress=session.progress) for side in sides
    )
    return compare_resolutions(before, after), (*errors, *more)


def ask_values(
    found: ReadTree, asked: Filter, *, only: Dialect | None = None, progress: Progress | None = None
) -> tuple[Resolution, Errors]:
    """What the compiler says of a tree that is read; `only` of what one dialect decides."""
    known = _known(found, asked, only)
    archs = _archs(found, asked, known)
    toolchain = compiler_of(found.cub)
    told = resolve(
        found.cub,
        known,
        found.marked_for(known),
        archs,
        toolchain,
        enabled=found.enabled() if found.cub.has_selectors else {},
        replaced=found.contents,
        progress=progress,
    )
    document = Resolution(
        cub=found.cub,
        toolchain=toolchain.name,
        archs=archs,
        rows=told.rows,
        remarks=(
            *remarks(found.cub, frozenset() if asked.headers else frozenset(found.paths)),
            *told.remarks,
        ),
        unresolved=told.unresolved,
        problems=tuple(Problem.of(error) for error in found.errors),
    )
    return document, (*found.errors, *told.errors)


def _known(found: ReadTree, asked: Filter, only: Dialect | None = None) -> tuple[Asked, ...]:
    """The sites and workloads that are meant."""
    named = frozenset(found.paths)
    known = places(found.cub, found.headers, asked.pattern, asked.values, named)
    return tuple(place for place in known if only in {None, place.site.dialect})


def _archs(found: ReadTree, asked: Filter, known: Sequence[Asked]) -> tuple[str, ...]:
    names = {place.site.header for place in known}
    meant = [header for header in found.headers if header.name in names]
    return chosen_archs(asked.archs, meant, found.headers)
