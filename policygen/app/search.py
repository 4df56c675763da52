"""`policygen search`: finds the best variants of workloads on GPUs."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measure import Effort, compile_time_part, is_meant
from policygen.app.measured_workloads import (
    Opened,
    check_compiles,
    chosen_workloads,
    open_workloads,
    work_folder,
)
from policygen.app.search_places import (
    BatchCompiler,
    HeldGpus,
    SearchMachines,
    SearchPlace,
    cluster_place,
)
from policygen.app.session import Note, Session, check_serves
from policygen.bindings.words import ladder
from policygen.errors import InputError, PolicygenError
from policygen.gpu.candidates import (
    SearchBench,
    SearchEffort,
    SearchNotes,
    SearchSpaceOf,
    WorkloadSearch,
    nearest_values,
)
from policygen.gpu.compiling import MEMORY, MakesObjects, ObjectCompiler, ObjectSource, runtime_of
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.driver import Budget, SearchDriver
from policygen.gpu.machine import ListedGpu, check_one_model, device_environment, find_gpus
from policygen.gpu.measured_rows import MeasuringSession, open_measurements
from policygen.gpu.opened import OpenedWorkload
from policygen.gpu.pool import GpuPool
from policygen.gpu.rounds import declared_axes, row_spots
from policygen.gpu.rung_rows import RungRows, rung_times
from policygen.gpu.rungs import Asked, LocalGpu, MeasuresRungs, StopAskedError
from policygen.gpu.space import Classifier, Policy
from policygen.gpu.statistics import judged, noises, runtime_axes, score_noise, times_of
from policygen.gpu.strategies import StrategyName, make_strategy
from policygen.gpu.strategy import Values
from policygen.gpu.tools import Sanitizes, WatchedWorkload, find_sanitizer, sanitize
from policygen.gpu.units import runner_text
from policygen.model.measured import SkippedPoint
from policygen.model.searches import (
    Ended,
    Finalist,
    RungName,
    Searched,
    SearchedVariants,
    SearchedWorkload,
    SearchEvent,
    SearchFailure,
)
from policygen.model.workload import BASE
from policygen.planning.measured import Spaces
from policygen.process import Stopped
from policygen.proof.compile import Listings
from policygen.proof.kernel_units import workers_of
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.results.own_tables import LAST
from policygen.results.ranking import rank
from policygen.steps import spelled

EXHAUSTIVE = 4_200
"""Search spaces with at most this many distinct variants are tried exhaustively if the budget
allows.
"""
CORE_SECONDS = 1.0
"""Estimated core-seconds to compile one variant in a batch, used until the first batch is measured.
"""
OVER = 1.1
"""Spending more than this multiple of the budget is reported."""
PER_SLOT = 24
"""Variants per compile slot in a batch. Larger batches learn less often from measurements; smaller
ones spend more time compiling headers.
"""
FEWEST_PER_SLOT = 4
FIRST, HEADERS, VARIANT = 0.25, 15.0, 1.2
"""The first batch takes at most the share `FIRST` of the budget. `HEADERS` and `VARIANT` are the
core-seconds to compile the headers of a workload and each variant.
"""
Observer = Callable[[SearchEvent], None]


@dataclass(frozen=True, slots=True)
class SearchWanted:
    """What to search, and how."""

    budget: float | None = None
    """In seconds, over all sessions of the database."""
    strategy: StrategyName | None = None
    """If unset: all variants if that fits the budget, otherwise `local`."""
    count: int | None = None
    """Maximum number of variants per workload."""
    spaces: Spaces | None = None
    beside: bool = False
    """Whether nvcc may run while variants are screened."""
    starts: Sequence[str] = ()
    """Labels to try first, if the search space contains them."""
    earlier: Sequence[Path] = ()
    """Databases whose best variants are tried first."""


def search_variants(
    session: Session,
    where: Filter,
    options: SearchWanted,
    database: Path,
    *,
    effort: Effort | None = None,
    machines: SearchMachines | None = None,
    observer: Observer | None = None,
    stop_requested: Asked = lambda: False,
) -> Searched:
    """Searches until the budget is spent, without repeating results of the database."""
    check_serves("search", session.cub)
    effort = effort or Effort()
    machines = machines or SearchMachines((effort.gpu,))
    started = time.monotonic()
    with ExitStack() as stack:
        place = stack.enter_context(
            _open_place(session, machines, effort, database, stop_requested)
        )
        check_compiles(place.toolchain, place.arch)
        workloads = chosen_workloads(session, compile_time_part(where))
        opened = open_workloads(session, workloads, place.arch, options.spaces)
        problems = {
            point: result.in_line
            for point, result in opened.items()
            if isinstance(result, PolicygenError)
        }
        starting_points = _StartingPoints(
            selected_policies(session, opened, place.arch), earlier_labels(options.earlier)
        )
        compiler = place.compiler(Path(stack.enter_context(work_folder())))
        runner = compiler.make(ObjectSource(runner_text(), (), place.arch))
        gpus = stack.enter_context(place.held(runner))
        facts, version = gpus.facts[0], place.toolchain.version
        about = About(
            version, f"v{session.cub.version}", facts, version, "events", effort.seed, gpus.facts
        )
        rows = stack.enter_context(open_measurements(database, about))
        rungs, notes = RungRows(rows), SearchNotes(rows)
        searches: dict[str, WorkloadSearch] = {}
        for point, workload in opened.items():
            if isinstance(workload, PolicygenError):
                continue
            try:
                search = _workload_search(
                    workload, options, starting_points, where, effort.seed, place.slots
                )
            except InputError as error:
                problems[point] = error.in_line
                continue
            searches[workload.name] = search
            for spot in search.spots:
                rows.prepare(spot, search.declared)
        budget = Budget(
            options.budget, notes.before([search.point for search in searches.values()])
        )
        for search in searches.values():
            notes.begin(search, effort.seed, options.budget)
        keeps = lambda values: is_meant(values, where)  # noqa: E731
        bench = SearchBench(
            gpus.measures,
            rungs,
            BatchCompiler(searches, compiler, place.slots, keeps, session.progress),
            SearchEffort(
                batch=_batch_per_slot(options.budget, len(searches)) * place.slots,
                seed=effort.seed,
                count=options.count,
                processes=effort.processes,
                rounds=effort.rounds,
                beside=options.beside,
            ),
            stop_requested,
            gpus.sanitizes,
        )
        driver = SearchDriver(bench, notes, searches, budget, _event_reporter(observer, budget))
        ended = _run_search(driver) if searches else None
        if options.budget is not None and budget.spent > OVER * options.budget:
            session.note(
                f"the budget of {spelled(options.budget)} is less than one batch and its finalists"
                f" take: {spelled(budget.spent)} were spent"
            )
        searched = [searched_workload(search, rungs, rows, ended) for search in searches.values()]
        searched += [
            SearchedWorkload(benchmark=name, workload=dict(axes), problem=reason)
            for (name, axes), reason in problems.items()
        ]
        return Searched(
            cub=session.cub,
            arch=place.arch,
            toolchain=f"nvcc {version}",
            driver=facts.driver,
            gpu=facts.label,
            ctk=version,
            cccl=about.cccl,
            database=str(database),
            seed=effort.seed,
            budget=options.budget,
            spent=budget.spent,
            workloads=tuple(searched),
            seconds=time.monotonic() - started,
        )


@dataclass(frozen=True, slots=True)
class _StartingPoints:
    """What to try before anything has been measured, by benchmark."""

    policies: Mapping[str, Sequence[Policy]]
    labels: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """GPUs and cores of this machine."""

    gpus: Sequence[ListedGpu]
    toolchain: Toolchain
    effort: Effort
    note: Note

    @property
    def arch(self) -> str:
        """The architecture of the GPUs."""
        return self.gpus[0].arch

    @property
    def slots(self) -> int:
        """The number requested, or else as many as cores and memory allow."""
        return workers_of(self.effort.slots, MEMORY)

    def compiler(self, folder: Path) -> MakesObjects:
        """Compiles with processes on this machine."""
        return ObjectCompiler(self.toolchain, folder, Listings())

    @contextmanager
    def held(self, runner: Path) -> Iterator[HeldGpus]:
        """Holds all GPUs, acquired in numerical order so that two searches cannot deadlock."""
        runtime = runtime_of(self.toolchain)
        with ExitStack() as stack:
            controllers = [
                stack.enter_context(
                    controlling(
                        worker_command(gpu.number, runner, runtime),
                        patience=self.effort.patience,
                        more=device_environment(),
                    )
                )
                for gpu in self.gpus
            ]
            facts = [controller.facts for controller in controllers]
            pairs = zip(self.gpus, facts, strict=True)
            check_one_model({f"GPU {gpu.number}": gpu_facts.label for gpu, gpu_facts in pairs})
            gpus: list[MeasuresRungs] = [LocalGpu(controller) for controller in controllers]
            pool = GpuPool(gpus, note=self.note)
            yield HeldGpus(
                pool if len(gpus) > 1 else gpus[0], facts, self._sanitizes(controllers, runner)
            )

    def _sanitizes(self, controllers: Sequence[Controller], runner: Path) -> Sanitizes | None:
        """Runs compute-sanitizer on the first GPU."""
        if not self.effort.sanitize:
            return None
        tool = find_sanitizer(self.toolchain)
        command = worker_command(self.gpus[0].number, runner, runtime_of(self.toolchain))

        def run_sanitizer(workloads: Sequence[WatchedWorkload]) -> list[dict[str, str]]:
            with controllers[0].aside():
                return sanitize(tool, command, workloads, held=True)

        return run_sanitizer


def _open_place(
    session: Session,
    machines: SearchMachines,
    effort: Effort,
    database: Path,
    stop_requested: Asked,
) -> AbstractContextManager[SearchPlace]:
    if machines.scheduler is None:
        gpus, toolchain = find_gpus(machines.gpus), find_toolchain()
        if effort.sanitize:
            find_sanitizer(toolchain)
        return nullcontext(LocalPlace(gpus, toolchain, effort, session.note))
    if effort.sanitize:
        raise InputError(
            "--sanitize is for GPUs of this machine, and --scheduler uses those of its workers",
            "Let policygen measure --sanitize look at what a search on a cluster found.",
        )
    return cluster_place(
        machines.scheduler,
        database,
        slots=effort.slots,
        patience=effort.patience,
        note=session.note,
        stop_requested=stop_requested,
    )


def _run_search(driver: SearchDriver) -> Ended:
    try:
        return driver.run()
    except (StopAskedError, KeyboardInterrupt) as error:
        driver.notes.spend(driver.budget.elapsed, "stopped")
        measured = sum(len(search.scores) for search in driver.searches.values())
        raise Stopped(
            f"{measured:,} variants are measured and kept: the same command goes on there, with"
            " what is left of the budget"
        ) from error


def _workload_search(
    opened: OpenedWorkload,
    options: SearchWanted,
    starting_points: "_StartingPoints",
    where: Filter,
    seed: int,
    slots: int,
) -> WorkloadSearch:
    classifier = Classifier(opened.space, opened.meaning)
    counts = classifier.counts()
    space = SearchSpaceOf(classifier)
    nearest, is_exact = nearest_values(classifier, opened.meaning.base)
    labels = (*options.starts, *starting_points.labels.get(opened.meaning.point[0], ()))
    labeled = (space.values(label) for label in labels)
    selected = [opened.meaning.base, *starting_points.policies.get(opened.meaning.point[0], ())]
    starts = [
        *starts_of(classifier, selected),
        *(values for values in labeled if values is not None),
    ]
    name = options.strategy or _default_strategy(counts.distinct, options.budget, slots)
    declared = {key: values for run in opened.runs for key, values in declared_axes(run).items()}
    keeps = lambda values: is_meant(values, where)  # noqa: E731
    spots = [spot for run in opened.runs for spot in row_spots(run, keeps)]
    if not spots:
        raise InputError(f"-a leaves no runtime workload of {opened.name}")
    return WorkloadSearch(
        point=opened.meaning.point,
        opened=opened,
        space=space,
        counts=counts,
        strategy=make_strategy(name, space.domain, seed, starts),
        name=name,
        declared=declared,
        spots=spots,
        base=space.label(nearest) if is_exact else None,
    )


def _batch_per_slot(budget: float | None, workloads: int) -> int:
    """Returns the number of variants in a batch per compile slot, fewer if the budget is short."""
    if budget is None:
        return PER_SLOT
    affordable = int((FIRST * budget - HEADERS * workloads) / VARIANT)
    return min(PER_SLOT, max(FEWEST_PER_SLOT, affordable))


def _default_strategy(distinct: int, budget: float | None, slots: int) -> StrategyName:
    """Selects an exhaustive search if there are few variants and the budget allows it."""
    fits = budget is None or distinct * CORE_SECONDS / slots < budget / 2
    return "exhaustive" if distinct <= EXHAUSTIVE and fits else "local"


def _event_reporter(observer: Observer | None, budget: Budget) -> Callable[..., None]:
    def report(event: str, search: WorkloadSearch, rung: RungName, remaining: float) -> None:
        if observer is None:
            return
        best, score = search.leading or (None, None)
        name, axes = search.point
        observer(
            SearchEvent.model_validate(
                {
                    "event": event,
                    "at": budget.elapsed,
                    "benchmark": name,
                    "workload": dict(axes),
                    "rung": rung,
                    "strategy": search.name,
                    "tried": len(search.tried),
                    "distinct": search.counts.distinct,
                    "failed": len(search.failed),
                    "wrong": search.count({"wrong"}),
                    "best": best,
                    "score": score,
                    "left": None if budget.seconds is None else remaining,
                }
            )
        )

    return report


def searched_workload(
    search: WorkloadSearch, rungs: RungRows, rows: MeasuringSession, ended: Ended | None
) -> SearchedWorkload:
    """Reports the finalists of a workload with intervals, how they were found, and what failed."""
    finalists = tuple(_finalists(search, rungs))
    spots = [point.spot for point in search.target.points] if search.target else []
    times = times_of(rows, spots, search.declared) if spots else []
    benchmark, workload = search.point
    winners = [finalist for finalist in finalists if finalist.verdict == "faster"]
    return SearchedWorkload(
        benchmark=benchmark,
        workload=dict(workload),
        strategy=search.name,
        counts=SearchedVariants(
            variants=search.counts.variants,
            valid=search.counts.valid,
            distinct=search.counts.distinct,
            tried=len(search.tried),
            measured=len(search.scores),
            failed=len(search.failed),
            wrong=search.count({"wrong"}),
        ),
        base=search.base,
        best=winners[0].variant if winners else None,
        finalists=finalists,
        failures=tuple(_failures(search)),
        noise=tuple(noises(times)) if finalists else (),
        score_noise=score_noise(times) if finalists else None,
        skipped=tuple(
            SkippedPoint(point=runtime_axes(spot), reason=reason)
            for spot, reason in (search.target.skipped if search.target else ())
        ),
        ended=ended,
        seconds=search.seconds,
        problem=search.problem,
    )


def _finalists(search: WorkloadSearch, rungs: RungRows) -> Iterator[Finalist]:
    """Yields finalists, best first."""
    if search.target is None:
        return
    points = [(point.weighed, rungs.of(point.spot)) for point in search.target.points]
    times = rung_times(points, LAST)
    labels = [label for label in (times[0].variants if times else ()) if label not in search.failed]
    for result in sorted(judged(times, labels), key=lambda candidate: -(candidate.score or 0.0)):
        assert result.score is not None
        yield Finalist(
            variant=result.variant,
            screened=search.scores.get(result.variant, result.score),
            sharper=search.sharper.get(result.variant),
            score=result.score,
            interval=result.interval,
            verdict=result.verdict,
            runtime=result.runtime,
        )


def _failures(search: WorkloadSearch) -> Iterator[SearchFailure]:
    """Groups failures by kind. Variants that equal the base policy do not count as failures."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for label, (kind, reason) in search.failed.items():
        kinds.setdefault(kind, []).append((label, reason))
    for kind, failures in kinds.items():
        label, reason = failures[0]
        yield SearchFailure.model_validate(
            {"kind": kind, "count": len(failures), "variant": label, "reason": reason}
        )


BEST = 8
"""Variants taken from each workload of an earlier database."""
MOST = 16
"""Maximum number of policies of CUB to start from."""


# Starting points: policies that CUB selects for other types and GPUs, and earlier winners.


def selected_policies(session: Session, opened: Opened, arch: str) -> dict[str, list[Policy]]:
    """Returns, by benchmark, policies that CUB selects on this and neighboring architectures.

    If variants are modified headers, only the policies of the searched workloads are known.
    """
    policies: dict[str, list[Policy]] = {}
    workloads = [workload for workload in opened.values() if isinstance(workload, OpenedWorkload)]
    for workload in workloads:
        policies.setdefault(workload.meaning.point[0], []).append(workload.meaning.base)
    public = {
        workload.meaning.point[0]: workload.meaning.benchmark
        for workload in workloads
        if workload.headers is None
    }
    for name, benchmark in public.items():
        for near_arch in (arch, *_neighboring_archs(arch)):
            for benchmark_name in filter(None, (name, benchmark.like)):
                policies[name] += _policies_of_benchmark(session, benchmark_name, near_arch)
    return policies


def earlier_labels(databases: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """Returns, by benchmark, the best variants of databases, whatever their types and GPUs."""
    labels_by_benchmark: dict[str, dict[str, None]] = {}
    for path in databases:
        for workload in rank([path], samples=False).workloads:
            best = [v.variant for v in workload.variants if v.variant != BASE][:BEST]
            labels_by_benchmark.setdefault(workload.algorithm, {}).update(dict.fromkeys(best))
    return {name: tuple(labels) for name, labels in labels_by_benchmark.items()}


def starts_of(classifier: Classifier, policies: Sequence[Policy]) -> list[Values]:
    """Returns the variants nearest to the policies, in their order and without duplicates."""
    distinct = list({tuple(policy.items()): policy for policy in policies}.values())[:MOST]
    return list(dict.fromkeys(nearest_values(classifier, policy)[0] for policy in distinct))


def _policies_of_benchmark(session: Session, name: str, arch: str) -> Iterator[Policy]:
    """Yields the policies of a benchmark's workloads; none if they cannot be resolved."""
    where = Filter((), f"{re.escape(name)}$", (), ())
    try:
        opened = open_workloads(session, chosen_workloads(session, where), arch)
    except PolicygenError:
        return
    for workload in opened.values():
        if isinstance(workload, OpenedWorkload) and workload.headers is None:
            yield workload.meaning.base


def _neighboring_archs(arch: str) -> Iterator[str]:
    """Yields the tuning architectures right before and after `arch`."""
    archs = list(ladder())
    if arch in archs:
        index = archs.index(arch)
        yield from archs[max(0, index - 1) : index]
        yield from archs[index + 1 : index + 2]
