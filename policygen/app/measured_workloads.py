"""Which variants of which workloads are measured, and their objects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen.app.change import headers_of_benchmarks
from policygen.app.compilers import open_tree
from policygen.app.filters import Filter
from policygen.app.inputs import benchmarks_of
from policygen.app.session import Session, check_serves
from policygen.bindings.load import bound
from policygen.bindings.own_kernels import taken_kernel
from policygen.errors import InputError, PolicygenError
from policygen.gpu.compiling import (
    CompiledWorkload,
    MakesObjects,
    ObjectCompiler,
    WorkloadToCompile,
    compile_workloads,
)
from policygen.gpu.opened import (
    Candidates,
    EntryWorkload,
    HeaderVariants,
    KernelWorkload,
    OpenedWorkload,
    ask_public,
    takes_policies,
)
from policygen.gpu.space import ClassifiedVariants, Classifier, SearchSpace, space_of
from policygen.gpu.units import WorkloadRun, runner_text, runs_of
from policygen.headers.protocol import FamilySpot, TuningTree
from policygen.model.bindings import BenchmarkBinding
from policygen.model.measured import CompiledSpace, FailedVariant, MeasureCompile, Unmeasured
from policygen.model.plans import Options
from policygen.model.workload import Point, as_label
from policygen.planning.measured import Spaces
from policygen.planning.places import PlacedResult, check_runs, check_written
from policygen.planning.plan import Planner
from policygen.proof.compile import Listings
from policygen.proof.probe import workloads
from policygen.proof.sites import matches, nothing_bound
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import Workload
from policygen.results.together import Together

MOST = 5000
"""Distinct variants of a workload that are compiled without being asked for by number."""
SEED = 1
MANY = 20
"""Workloads, above which it is said how to choose among them: each takes seconds to minutes."""


@dataclass(frozen=True, slots=True)
class VariantsWanted:
    """Which variants are compiled."""

    labels: tuple[str, ...] = ()
    """Those that are named; all of the space where none is."""
    count: int | None = None
    """So many distinct ones, drawn by the seed; all where it is not said."""
    seed: int = SEED
    spaces: Spaces | None = None
    """Search spaces of sources or files, by benchmark; those of the bindings where not given."""


def spaces_of(benches: Sequence[str]) -> Spaces:
    """The search spaces of benchmark sources, a checkout or a cccl_meta_bench.csv."""
    return benchmarks_of([Path(name) for name in benches])[0]


@dataclass(frozen=True, slots=True)
class ChosenLot:
    """The workloads that are meant, and those that cannot be measured."""

    chosen: "Mapping[Point, ChosenWorkload]"
    refused: Mapping[Point, str]


def choose_lot(session: Session, where: Filter, arch: str, wanted: VariantsWanted) -> ChosenLot:
    """Chooses variants of the workloads that are meant, for an architecture."""
    workloads = chosen_workloads(session, where)
    if len(workloads) > MANY:
        session.note(f"{len(workloads):,} workloads are meant: -R and -a choose among them")
    opened = open_workloads(session, workloads, arch, wanted.spaces)
    chosen: dict[Point, ChosenWorkload] = {}
    refused: dict[Point, str] = {}
    for point, one in opened.items():
        if isinstance(one, PolicygenError):
            refused[point] = one.in_line
            continue
        try:
            chosen[point] = _choose(one, wanted)
        except InputError as error:
            refused[point] = error.in_line
    return ChosenLot(chosen, refused)


def check_compiles(toolchain: Toolchain, arch: str) -> None:
    """Refuses an architecture that the compiler does not know."""
    if arch not in toolchain.archs:
        known = ", ".join(toolchain.archs)
        raise InputError(
            f"nvcc {toolchain.version} does not compile for {arch}", f"It does: {known}"
        )


@dataclass(frozen=True, slots=True)
class ChosenWorkload:
    """What of a workload is compiled."""

    opened: OpenedWorkload
    counted: tuple[int, int, int]
    """Variants, valid ones, distinct ones."""
    classified: ClassifiedVariants
    candidates: Candidates
    labels: tuple[str, ...] = ()
    """Those that were named, in their order."""

    @property
    def tasks(self) -> Iterator[WorkloadToCompile]:
        """One for each sub-benchmark."""
        for run in self.opened.runs:
            yield self.opened.to_compile(run, self.candidates.made)


def _choose(opened: OpenedWorkload, wanted: VariantsWanted) -> ChosenWorkload:
    classifier = Classifier(opened.space, opened.meaning)
    asked: tuple[str, ...] = ()
    if wanted.labels:
        named = [opened.space.variant(label) for label in wanted.labels]
        asked = tuple(dict.fromkeys(map(as_label, named)))
        told = classifier.classify(named)
        counted = told.variants, told.valid, len(told.distinct)
    else:
        counts = classifier.counts()
        counted = counts.variants, counts.valid, counts.distinct
        told = _drawn(classifier, counts.distinct, wanted)
    labels = [one.label for one in told.distinct if not one.is_base]
    found = opened.candidates(labels)
    base = tuple(one.label for one in told.distinct if one.is_base) + found.base
    return ChosenWorkload(opened, counted, told, Candidates(found.made, found.refused, base), asked)


def _drawn(classifier: Classifier, distinct: int, wanted: VariantsWanted) -> ClassifiedVariants:
    """All variants, or so many distinct ones as are wanted."""
    if wanted.count is None:
        if distinct > MOST:
            raise InputError(
                f"it has {distinct:,} distinct variants, which are not all compiled",
                "Say how many to draw, or name some.",
            )
        return classifier.classify()
    return classifier.draw(wanted.count, wanted.seed)


def compile_lot(
    session: Session,
    chosen: Mapping[Point, ChosenWorkload],
    compiler: MakesObjects,
    slots: int | None,
) -> dict[Point, list[CompiledWorkload | PolicygenError]]:
    """Compiles the chosen variants; for each workload what came of each sub-benchmark."""
    if not chosen:
        return {}
    tasks = [(point, task) for point, one in chosen.items() for task in one.tasks]
    made = compile_workloads(
        [task for _, task in tasks],
        runner_text(),
        compiler,
        slots=slots,
        progress=session.progress,
    )
    found: dict[Point, list[CompiledWorkload | PolicygenError]] = {point: [] for point in chosen}
    for (point, _), one in zip(tasks, made, strict=True):
        found[point].append(one)
    return found


def work_folder() -> "TemporaryDirectory[str]":
    """Where objects lie while they are needed; a process that loaded them may still end."""
    return TemporaryDirectory(prefix="policygen-", ignore_cleanup_errors=True)


Opened = Mapping[Point, OpenedWorkload | PolicygenError]
"""By workload: what is ready, or why it cannot be measured."""


# Opens workloads of a tree for measuring: what their variants mean, and how each is made.


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


# Compiles the variants of workloads, and measures none: how many there are, differ, and fail.


def compile_variants(
    session: Session,
    where: Filter,
    arch: str,
    wanted: VariantsWanted | None = None,
    *,
    slots: int | None = None,
) -> MeasureCompile:
    """Compiles variants of the workloads that are meant, for an architecture; needs no GPU."""
    check_serves("measure", session.cub)
    wanted = wanted or VariantsWanted()
    toolchain = find_toolchain()
    check_compiles(toolchain, arch)
    lot = choose_lot(session, where, arch, wanted)
    chosen, refused = lot.chosen, dict(lot.refused)
    with work_folder() as folder:
        compiler = ObjectCompiler(toolchain, Path(folder), Listings())
        made = compile_lot(session, chosen, compiler, slots)
    spaces = []
    for point, what in chosen.items():
        try:
            spaces.append(_space(what, made[point]))
        except PolicygenError as error:
            refused[point] = error.in_line
    drawn = wanted.count is not None and not wanted.labels
    return MeasureCompile(
        cub=session.cub,
        toolchain=f"nvcc {toolchain.version}",
        arch=arch,
        seed=wanted.seed if drawn else None,
        workloads=tuple(spaces),
        unmeasured=tuple(
            Unmeasured(benchmark=point[0], workload=dict(point[1]), arch=arch, reason=reason)
            for point, reason in refused.items()
        ),
    )


def _space(
    chosen: ChosenWorkload, made: Sequence[CompiledWorkload | PolicygenError]
) -> CompiledSpace:
    """What the compiler said; a variant that fails in a sub-benchmark has failed."""
    failed = dict(chosen.candidates.refused)
    for one in made:
        if isinstance(one, PolicygenError):
            raise one
        failed = {**one.failed, **failed}
    benchmark, workload = chosen.opened.meaning.point
    variants, valid, distinct = chosen.counted
    asked = len(chosen.candidates.made) + len(chosen.candidates.refused)
    labels = [one.label for one in chosen.classified.distinct]
    return CompiledSpace(
        benchmark=benchmark,
        workload=dict(workload),
        arch=chosen.opened.meaning.arch,
        how="headers" if chosen.opened.headers else "policies",
        variants=variants,
        valid=valid,
        distinct=distinct,
        asked=asked,
        compiled=asked - len(failed),
        base=chosen.candidates.base,
        failed=tuple(
            FailedVariant(variant=label, reason=failed[label])
            for label in labels
            if label in failed
        ),
        dropped=dict(chosen.classified.dropped),
    )
