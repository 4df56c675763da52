"""Chooses and compiles the variants of workloads to measure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.inputs import benchmarks_of
from policygen.app.session import Session, check_serves
from policygen.bindings.own_kernels import kernel_of
from policygen.errors import InputError, PolicygenError, no_such_value
from policygen.gpu.compiling import (
    CompiledWorkload,
    MakesObjects,
    ObjectCompiler,
    WorkloadToCompile,
    check_compiles,
    compile_workloads,
    work_folder,
)
from policygen.gpu.opened import (
    Candidates,
    EntryWorkload,
    KernelWorkload,
    OpenedWorkload,
    ask_public,
    takes_policies,
    to_compile,
)
from policygen.gpu.space import ClassifiedVariants, Classifier, SearchSpace, SpaceCounts, space_of
from policygen.gpu.units import WorkloadRun, runner_text, runs_of
from policygen.headers.dialects import Drafter
from policygen.headers.protocol import FamilySpot
from policygen.model.bindings import BenchmarkBinding
from policygen.model.measured import (
    CompiledSpace,
    FailedVariant,
    MeasureCompile,
    Method,
    Unmeasured,
)
from policygen.model.plans import Options
from policygen.model.workload import Point, as_label
from policygen.planning.measured import Spaces
from policygen.planning.places import check_runs, check_written
from policygen.proof.compile import Listings
from policygen.proof.oracle import open_compiler
from policygen.proof.probe import workloads
from policygen.proof.sites import (
    check_axes,
    check_values,
    chosen_benchmarks,
    headers_of_benchmarks,
    matches,
    nothing_bound,
)
from policygen.proof.toolchain import find_toolchain
from policygen.proof.units import Workload

MOST = 5000
"""Maximum number of distinct variants to compile per workload if no number is requested."""
SEED = 1
MANY = 20
"""Above this number of workloads, a note says how to filter them: each takes seconds to minutes."""


PROCESSES = 5
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class MeasuringEffort:
    """How much to measure, and where."""

    processes: int = PROCESSES
    rounds: int = ROUNDS
    """Rounds in each process."""
    seed: int = 1
    gpu: int = 0
    slots: int | None = None
    """Units compiled at once; if unset, as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that another process is measuring on."""


@dataclass(frozen=True, slots=True)
class Effort(MeasuringEffort):
    """How much to measure, and where."""

    sanitize: bool = False
    """Whether to run compute-sanitizer on each variant before it is measured."""
    ncu: bool = False
    """Whether to profile the variants of a custom kernel with ncu after they are measured."""
    method: Method = "events"
    """What times the runs. NVBench measures one runtime workload per process."""


@dataclass(frozen=True, slots=True)
class VariantsWanted:
    """Which variants to compile."""

    labels: tuple[str, ...] = ()
    """Named variants; if empty, the whole search space."""
    count: int | None = None
    """Number of distinct variants to draw with the seed; None means all."""
    seed: int = SEED
    spaces: Spaces | None = None
    """Search spaces from sources or files, by benchmark; by default those of the bindings."""


def spaces_of(benches: Sequence[str]) -> Spaces:
    """Reads the search spaces of benchmark sources, a checkout, or a cccl_meta_bench.csv."""
    return benchmarks_of([Path(name) for name in benches])[0]


def choose_lot(
    session: Session, where: Filter, arch: str, options: VariantsWanted
) -> "tuple[Mapping[Point, ChosenWorkload], dict[Point, str]]":
    """Chooses variants of the selected workloads; also returns why others cannot be measured."""
    workloads = chosen_workloads(session, where)
    if len(workloads) > MANY:
        session.note(f"{len(workloads):,} workloads match; choose among them with -R and -a")
    opened = open_workloads(session, workloads, arch, options.spaces)
    chosen: dict[Point, ChosenWorkload] = {}
    refused: dict[Point, str] = {}
    for point, result in opened.items():
        if isinstance(result, PolicygenError):
            refused[point] = result.in_line
            continue
        try:
            chosen[point] = _choose(result, options)
        except InputError as error:
            refused[point] = error.in_line
    return chosen, refused


@dataclass(frozen=True, slots=True)
class ChosenWorkload:
    """What to compile for a workload."""

    opened: OpenedWorkload
    counts: SpaceCounts
    classified: ClassifiedVariants
    candidates: Candidates
    labels: tuple[str, ...] = ()
    """The named variants, in their order."""

    @property
    def tasks(self) -> Iterator[WorkloadToCompile]:
        """One task for each sub-benchmark."""
        for run in self.opened.runs:
            yield to_compile(self.opened.meaning, run, self.candidates.made)


def _choose(opened: OpenedWorkload, options: VariantsWanted) -> ChosenWorkload:
    classifier = Classifier(opened.space, opened.meaning)
    requested: tuple[str, ...] = ()
    if options.labels:
        variants = [opened.space.variant(label) for label in options.labels]
        requested = tuple(dict.fromkeys(map(as_label, variants)))
        classified = classifier.classify(variants)
        counts = SpaceCounts(classified.variants, classified.valid, len(classified.distinct))
    else:
        counts = classifier.counts()
        if options.count is not None:
            classified = classifier.draw(options.count, options.seed)
        elif counts.distinct <= MOST:
            classified = classifier.classify()
        else:
            raise InputError(
                f"it has {counts.distinct:,} distinct variants, too many to compile them all",
                "Limit them with --count, or name some with --variant.",
            )
    labels = [variant.label for variant in classified.distinct if not variant.is_base]
    candidates = opened.candidates(labels)
    base = tuple(variant.label for variant in classified.distinct if variant.is_base)
    candidates = replace(candidates, base=base + candidates.base)
    return ChosenWorkload(opened, counts, classified, candidates, requested)


def compile_lot(
    session: Session,
    chosen: Mapping[Point, ChosenWorkload],
    compiler: MakesObjects,
    slots: int | None,
    *,
    runs: bool = True,
) -> dict[Point, list[CompiledWorkload | PolicygenError]]:
    """Compiles the chosen variants, and what they need to run.

    Returns each workload's results, one per sub-benchmark.
    """
    tasks = [(point, task) for point, workload in chosen.items() for task in workload.tasks]
    compiled = compile_workloads(
        [task for _, task in tasks],
        runner_text() if runs else None,
        compiler,
        slots=slots,
        progress=session.progress,
    )
    results: dict[Point, list[CompiledWorkload | PolicygenError]] = {point: [] for point in chosen}
    for (point, _), result in zip(tasks, compiled, strict=True):
        results[point].append(result)
    return results


Opened = Mapping[Point, OpenedWorkload | PolicygenError]
"""By workload: what was opened, or why it cannot be measured."""


# Opening workloads of a tree: what their variants mean, and how each is built.


def chosen_workloads(session: Session, where: Filter) -> list[Workload]:
    """Returns the workloads that `-R` and `-a` select, of benchmarks with a search space."""
    version = session.cub.bindings
    check_axes(version, where.pattern, where.values, frozenset())
    check_values([version], where.pattern, where.values)
    selected = [
        workload
        for benchmark in chosen_benchmarks(version, where.pattern)
        if benchmark.parameters
        for workload in workloads(benchmark, version)
        if matches(workload, where.values, where.pattern)
    ]
    if not selected:
        raise nothing_bound(version, where.pattern, where.values, frozenset())
    return selected


def check_runtime_axes(session: Session, where: Filter, selected: Sequence[Workload]) -> None:
    """Raises if `-a` names a runtime axis or a value that no selected workload has.

    Each benchmark must keep a runtime workload.
    """
    runs: list[WorkloadRun] = []
    for workload in selected:
        with suppress(InputError):  # it is reported as a workload that cannot be measured
            runs += runs_of(session.cub, workload)
    for axis in where.values.keys() - where.compile_time.values.keys() if runs else ():
        values = dict.fromkeys(value for run in runs for value in run.axes.get(axis, ()))
        if not values:
            axes = dict.fromkeys(name for run in runs for name in run.axes)
            raise InputError(
                f"no workload has a runtime axis {axis}", f"They have: {', '.join(axes)}."
            )
        if unknown := where.values[axis] - values.keys():
            raise no_such_value(axis, unknown, values)
    for run in runs:
        if not any(where.accepts(point.values) for point in run.points):
            rows = (f"{axis} is one of {', '.join(values)}" for axis, values in run.axes.items())
            raise InputError(
                f"-a leaves no runtime workload of {run.benchmark.name}", f"{'; '.join(rows)}."
            )


def open_workloads(
    session: Session, requested: Sequence[Workload], arch: str, spaces: Spaces | None = None
) -> Opened:
    """Opens workloads with one compiler query per benchmark or header.

    `spaces` override the bindings.
    """
    prepared: dict[Point, _PreparedWorkload] = {}
    opened: dict[Point, OpenedWorkload | PolicygenError] = {}
    for workload in requested:
        try:
            prepared[workload.point] = _prepare(session, workload, arch, spaces or {})
        except InputError as error:
            opened[workload.point] = error
    kernels = _as_kernels(session, prepared, arch)
    public = {
        p: entry
        for p, entry in prepared.items()
        if p not in kernels and takes_policies(session.cub, entry[0])
    }
    headers = {p: entry for p, entry in prepared.items() if p not in public and p not in kernels}
    opened |= kernels
    opened |= _as_policies(session, public, arch)
    opened |= _as_headers(session, headers, arch)
    return {workload.point: opened[workload.point] for workload in requested}


_PreparedWorkload = tuple[BenchmarkBinding, SearchSpace, tuple[WorkloadRun, ...]]


def _prepare(session: Session, workload: Workload, arch: str, spaces: Spaces) -> _PreparedWorkload:
    benchmark = workload.call
    assert isinstance(benchmark, BenchmarkBinding)
    check_runs(benchmark, arch)
    if not takes_policies(session.cub, benchmark):
        check_written(benchmark)
    space = space_of(benchmark, spaces.get(benchmark.name, ()))
    return benchmark, space, runs_of(session.cub, workload)


def _as_kernels(
    session: Session, prepared: Mapping[Point, _PreparedWorkload], arch: str
) -> dict[Point, OpenedWorkload]:
    """Opens the workloads of a custom kernel, which need no compiler query."""
    maker = kernel_of(session.cub)
    return {
        point: OpenedWorkload(
            KernelWorkload(maker, benchmark, point, arch), replace(space, only=maker.only), runs
        )
        for point, (benchmark, space, runs) in prepared.items()
        if maker is not None and benchmark.name in maker.names
    }


def _as_policies(
    session: Session, prepared: Mapping[Point, _PreparedWorkload], arch: str
) -> Opened:
    """Opens workloads whose variants are passed to the algorithm as policies."""
    benchmarks = list({id(entry[0]): entry[0] for entry in prepared.values()}.values())
    if not benchmarks:
        return {}
    progress = session.progress
    meanings = ask_public(
        session.cub, benchmarks, arch, find_toolchain(), points=prepared, progress=progress
    )
    return {point: OpenedWorkload(meanings[point], *entry[1:]) for point, entry in prepared.items()}


def _as_headers(session: Session, prepared: Mapping[Point, _PreparedWorkload], arch: str) -> Opened:
    """Opens workloads whose variants are edits of CUB's own header."""
    if not prepared:
        return {}
    names = headers_of_benchmarks({name for name, _ in prepared}, session.cub.bindings)
    compiler = open_compiler(session.cub, names, progress=session.progress)
    drafter = Drafter(compiler.sources, Options(arch=arch))
    resolved = compiler.tell(list(prepared), arch)
    quiet_compiler = replace(compiler, progress=None)  # queries run at once; one reports
    opened: dict[Point, OpenedWorkload | PolicygenError] = {}
    for point, (benchmark, space, runs) in prepared.items():
        try:
            drafter.dialect.check(benchmark)
            if point not in resolved:
                raise InputError("its header does not compile")  # noqa: TRY301
            spot = drafter.dialect.place(benchmark, resolved[point], point)
        except InputError as error:
            opened[point] = error
            continue
        assert isinstance(spot, FamilySpot), "a header's entries are in families"
        meaning = EntryWorkload(
            *(spot, benchmark, point, arch, session.cub.bindings),
            drafter,
            quiet_compiler.selects,
            session.progress,
        )
        opened[point] = OpenedWorkload(meaning, space, runs)
    return opened


# Compiling variants without measuring them: counts, differences, and failures.


def compile_variants(
    session: Session,
    where: Filter,
    arch: str,
    options: VariantsWanted | None = None,
    *,
    slots: int | None = None,
) -> MeasureCompile:
    """Compiles variants of the selected workloads for an architecture. Needs no GPU."""
    check_serves("measure", session.cub)
    options = options or VariantsWanted()
    toolchain = find_toolchain()
    check_compiles(toolchain, arch)
    selected, refused = choose_lot(session, where, arch, options)
    with work_folder() as folder:
        compiler = ObjectCompiler(toolchain, Path(folder), Listings())
        compiled = compile_lot(session, selected, compiler, slots, runs=False)
    spaces = []
    for point, workload in selected.items():
        try:
            spaces.append(_space(workload, compiled[point]))
        except PolicygenError as error:
            refused[point] = error.in_line
    drawn = options.count is not None and not options.labels
    return MeasureCompile(
        cub=session.cub,
        toolchain=f"nvcc {toolchain.version}",
        arch=arch,
        seed=options.seed if drawn else None,
        workloads=tuple(spaces),
        unmeasured=tuple(
            Unmeasured.of(point, arch=arch, reason=reason) for point, reason in refused.items()
        ),
    )


def _space(
    chosen: ChosenWorkload, results: Sequence[CompiledWorkload | PolicygenError]
) -> CompiledSpace:
    """Summarizes the compile results. A variant that fails in one sub-benchmark has failed."""
    failed = dict(chosen.candidates.refused)
    for result in results:
        if isinstance(result, PolicygenError):
            raise result
        failed = {**result.failed, **failed}
    candidate_count = len(chosen.candidates.made) + len(chosen.candidates.refused)
    labels = [variant.label for variant in chosen.classified.distinct]
    return CompiledSpace.of(
        chosen.opened.meaning.point,
        arch=chosen.opened.meaning.arch,
        how="headers" if isinstance(chosen.opened.meaning, EntryWorkload) else "policies",
        **asdict(chosen.counts),
        asked=candidate_count,
        compiled=candidate_count - len(failed),
        base=chosen.candidates.base,
        failed=tuple(
            FailedVariant(variant=label, reason=failed[label])
            for label in labels
            if label in failed
        ),
        dropped=dict(chosen.classified.dropped),
    )
