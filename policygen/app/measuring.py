"""Opens workloads of a tree for measuring: what their variants mean, and how each is made."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from policygen.app.bases import headers_of_benchmarks
from policygen.app.compilers import open_tree
from policygen.app.filters import Filter
from policygen.app.session import Session
from policygen.bindings.load import bound
from policygen.bindings.own_kernel import taken_kernel
from policygen.dialects.family_spot import FamilySpot
from policygen.dialects.protocol import TuningTree
from policygen.errors import InputError, PolicygenError
from policygen.measure.entries import EntryWorkload
from policygen.measure.kernels import KernelWorkload
from policygen.measure.opened import OpenedWorkload
from policygen.measure.overlays import HeaderVariants
from policygen.measure.public import ask_public, takes_policies
from policygen.measure.runs import WorkloadRun, runs_of
from policygen.measure.space import SearchSpace, space_of
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plan import Options
from policygen.model.workload import Point
from policygen.planning.measured import Spaces
from policygen.planning.places import PlacedResult, check_runs, check_written
from policygen.planning.plan import Planner
from policygen.proof.probe import workloads
from policygen.proof.sites import matches, nothing_bound
from policygen.proof.toolchain import find_toolchain
from policygen.proof.unit import Workload
from policygen.results.together import Together

Opened = Mapping[Point, OpenedWorkload | PolicygenError]
"""By workload: what is ready, or why it cannot be measured."""


def chosen_workloads(session: Session, where: Filter) -> list[Workload]:
    """The workloads that `-R` and `-a` mean, of benchmarks with a search space."""
    version = session.cub.bindings
    found = [
        workload
        for algorithm in bound(version)
        for benchmark in algorithm.benchmarks
        if benchmark.parameters and where.pattern.match(benchmark.name)
        for workload in workloads(benchmark, version)
        if matches(workload, where.values)
    ]
    if not found:
        raise nothing_bound(version, where.pattern, where.values, frozenset())
    return found


def open_workloads(
    session: Session, wanted: Sequence[Workload], arch: str, spaces: Spaces | None = None
) -> Opened:
    """Asks the compiler once for each benchmark or header; `spaces` stand for those of bindings."""
    ready: dict[Point, _Ready] = {}
    found: dict[Point, OpenedWorkload | PolicygenError] = {}
    for workload in wanted:
        try:
            ready[workload.point] = _ready(session, workload, arch, spaces or {})
        except InputError as error:
            found[workload.point] = error
    kernels = _as_kernels(ready, arch)
    public = {
        p: one
        for p, one in ready.items()
        if p not in kernels and takes_policies(session.cub, one[0])
    }
    headers = {p: one for p, one in ready.items() if p not in public and p not in kernels}
    found |= kernels
    found |= _as_policies(session, public, arch)
    found |= _as_headers(session, headers, arch)
    return {workload.point: found[workload.point] for workload in wanted}


_Ready = tuple[BenchmarkBinding, SearchSpace, tuple[WorkloadRun, ...]]


def _ready(session: Session, workload: Workload, arch: str, spaces: Spaces) -> _Ready:
    benchmark = workload.call
    assert isinstance(benchmark, BenchmarkBinding)
    check_runs(benchmark, arch)
    if not takes_policies(session.cub, benchmark):
        check_written(benchmark)
    space = space_of(benchmark, spaces.get(benchmark.name, ()))
    return benchmark, space, runs_of(session.cub, workload)


def _as_kernels(ready: Mapping[Point, _Ready], arch: str) -> dict[Point, OpenedWorkload]:
    """Those of a kernel of one's own, which asks the compiler nothing."""
    maker = taken_kernel()
    return {
        point: OpenedWorkload(
            KernelWorkload(maker, benchmark, point, arch), replace(space, only=maker.only), runs
        )
        for point, (benchmark, space, runs) in ready.items()
        if maker is not None and benchmark.name in maker.names
    }


def _as_policies(session: Session, ready: Mapping[Point, _Ready], arch: str) -> Opened:
    """Those whose variants the algorithm is given."""
    benchmarks = list({id(one[0]): one[0] for one in ready.values()}.values())
    if not benchmarks:
        return {}
    progress = session.progress
    told = ask_public(session.cub, benchmarks, arch, find_toolchain(), progress=progress)
    return {point: OpenedWorkload(told[point], *one[1:]) for point, one in ready.items()}


def _as_headers(session: Session, ready: Mapping[Point, _Ready], arch: str) -> Opened:
    """Those whose variants are changes of CUB's own header."""
    if not ready:
        return {}
    names = headers_of_benchmarks({name for name, _ in ready}, session.cub.bindings)
    tree, data, compiler = open_tree(session.cub, names, progress=session.progress)
    sources = TuningTree(tree.cub, compiler.headers, data)
    planner = Planner(sources, Options(arch=arch), compiler, _alone)
    told = compiler.tell(list(ready), arch)
    silent = replace(compiler, progress=None)  # many ask at once, and one tells how far all are
    found: dict[Point, OpenedWorkload | PolicygenError] = {}
    for point, (benchmark, space, runs) in ready.items():
        try:
            planner.dialect.check(benchmark)
            if point not in told:
                raise InputError("the compiler refuses its header")  # noqa: TRY301
            spot = planner.dialect.place(benchmark, told[point])
        except InputError as error:
            found[point] = error
            continue
        assert isinstance(spot, FamilySpot), "a header's entries are in families"
        meaning = EntryWorkload(spot, benchmark, point, arch, session.cub.bindings)
        headers = HeaderVariants(planner, meaning, silent.selects, session.progress)
        found[point] = OpenedWorkload(meaning, space, runs, headers)
    return found


def _alone(cases: Sequence[PlacedResult]) -> Together:
    """Nothing is chosen for several workloads: each is measured alone."""
    return Together((), f"{len(cases)} workloads are measured one by one")
