"""Entries that no workload can select."""

from collections.abc import Collection

from policygen.app.filters import EVERYTHING, Filter
from policygen.app.reading import ReadTree, read_tree
from policygen.app.resolve import Errors
from policygen.app.scan import chosen_families, nothing_left
from policygen.app.session import Session
from policygen.model.base import Problem
from policygen.model.reach import Reach
from policygen.model.resolve import EntryPlace
from policygen.proof.compilers import compiler_of
from policygen.proof.host_compiler import HostCompiler
from policygen.proof.reach import Reachability, reach_all
from policygen.proof.sites import remarks
from policygen.proof.toolchain import Toolchain
from policygen.steps import Progress


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
