"""The trees that were measured, as far as they are at hand, and whether base is theirs."""

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path

from policygen import tree
from policygen.app.compilers import open_compiler, open_tree
from policygen.app.reading import read_tree
from policygen.app.session import Session
from policygen.app.trees import other_tree
from policygen.bindings.load import bound
from policygen.bindings.recorded import version_of
from policygen.errors import InputError
from policygen.model.results import ScoredWorkload
from policygen.planning.bases import with_bases
from policygen.planning.measured import of_versions
from policygen.proof.oracle import Compiler


def judged_by_base(
    session: Session, workloads: Sequence[ScoredWorkload], arch: str
) -> tuple[ScoredWorkload, ...]:
    """Workloads of several versions say whether base was what the tree selects; others as given."""
    several = [*chain.from_iterable(of_versions(workloads, session.cub.release).values())]
    if not several:
        return tuple(workloads)
    names = headers_of(several, session.cub.bindings)
    _, _, compiler = open_tree(session.cub, names, progress=session.progress)
    return with_measured_bases(session, workloads, compiler, arch)


def with_measured_bases(
    session: Session,
    workloads: Sequence[ScoredWorkload],
    compiler: Compiler,
    arch: str,
    measured_on: str | None = None,
) -> tuple[ScoredWorkload, ...]:
    """The same for a tree that is open."""
    version = session.cub.release
    several = chain.from_iterable(of_versions(workloads, version).values())
    trees = measured_trees(session, measured_on, {one.cccl for one in several})
    return with_bases(workloads, compiler, version, trees, arch)


def headers_of(results: Sequence[ScoredWorkload], version: str) -> tuple[str, ...]:
    """The headers that decide the benchmarks; all where a benchmark is not bound."""
    return headers_of_benchmarks({workload.algorithm for workload in results}, version)


def headers_of_benchmarks(wanted: Collection[str], version: str) -> tuple[str, ...]:
    """The headers that decide benchmarks of these names."""
    names = set()
    for algorithm in bound(version):
        sites = {b.site for b in algorithm.benchmarks if b.name in wanted}
        names |= {site.header for site in algorithm.sites if site.name in sites}
    return tuple(sorted(names))


def measured_trees(
    session: Session, measured_on: str | None, cccl: Collection[str]
) -> dict[str, Compiler]:
    """The trees that were measured, by version, as far as they are at hand."""
    found: dict[str, Compiler] = {}
    for version in sorted(set(map(version_of, cccl))):
        if measured_on is not None:
            other = other_tree(session, measured_on)
        elif version == session.cub.release:
            continue
        else:
            try:
                other = tree.find(version, Path.cwd())
            except InputError:
                continue
        _, found[version] = open_compiler(read_tree(other), progress=session.progress)
    return found
