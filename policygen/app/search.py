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
"""Distinct variants that are all tried, where the budget allows it."""
CORE_SECONDS = 1.0
"""Of a variant, compiled among others: before the first batch it is not known better."""
OVER = 1.1
"""What is spent over this share of a budget is told."""
PER_SLOT = 24
"""Variants of a batch for each unit that is compiled at once: more learn less often from what was
measured, fewer pay more for the headers."""
FEWEST_PER_SLOT = 4
FIRST, HEADERS, VARIANT = 0.25, 15.0, 1.2
"""The first batch takes no more than this share of a budget; seconds of a core for the headers of a
workload, and for each variant."""
Observer = Callable[[SearchEvent], None]


@dataclass(frozen=True, slots=True)
class SearchWanted:
    """What is searched, and how."""

    budget: float | None = None
    """Seconds, over all sessions of the database."""
    strategy: StrategyName | None = None
    """By name; none: all variants where that fits into the budget, else `local`."""
    count: int | None = None
    """As many variants of each workload at most."""
    spaces: Spaces | None = None
    beside: bool = False
    """Whether nvcc may work while variants are screened."""
    starts: Sequence[str] = ()
    """Labels that are tried first, where a space has them."""
    earlier: Sequence[Path] = ()
    """Databases whose best variants are tried first."""


def search_variants(
    session: Session,
    where: Filter,
    wanted: SearchWanted,
    database: Path,
    *,
    effort: Effort | None = None,
    machines: SearchMachines | None = None,
    observer: Observer | None = None,
    asked: Asked = lambda: False,
) -> Searched:
    """Searches until the budget ends; what the database has already is not measured again."""
    check_serves("search", session.cub)
    effort = effort or Effort()
    machines = machines or SearchMachines((effort.gpu,))
    begun = time.monotonic()
    with ExitStack() as stack:
        place = stack.enter_context(_place(session, machines, effort, database, asked))
        check_compiles(place.toolchain, place.arch)
        workloads = chosen_workloads(session, compile_time_part(where))
        opened = open_workloads(session, workloads, place.arch, wanted.spaces)
        problems = {
            point: one.in_line for point, one in opened.items() if isinstance(one, PolicygenError)
        }
        first = _First(
            selected_policies(session, opened, place.arch), earlier_labels(wanted.earlier)
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
        for point, one in opened.items():
            if isinstance(one, PolicygenError):
                continue
            try:
                made = _workload_search(one, wanted, first, where, effort.seed, place.slots)
            except InputError as error:
                problems[point] = error.in_line
                continue
            searches[one.name] = made
            for spot in made.spots:
                rows.prepare(spot, made.declared)
        budget = Budget(wanted.budget, notes.before([one.point for one in searches.values()]))
        for made in searches.values():
            notes.begin(made, effort.seed, wanted.budget)
        keeps = lambda values: is_meant(values, where)  # noqa: E731
        bench = SearchBench(
            gpus.measures,
            rungs,
            BatchCompiler(searches, compiler, place.slots, keeps, session.progress),
            SearchEffort(
                batch=_per_slot(wanted.budget, len(searches)) * place.slots,
                seed=effort.seed,
                count=wanted.count,
                processes=effort.processes,
                rounds=effort.rounds,
                beside=wanted.beside,
            ),
            asked,
            gpus.sanitizes,
        )
        driver = SearchDriver(bench, notes, searches, budget, _telling(observer, budget))
        ended = _run(driver) if searches else None
        if wanted.budget is not None and budget.spent > OVER * wanted.budget:
            session.note(
                f"the budget of {spelled(wanted.budget)} is less than one batch and its finalists"
                f" take: {spelled(budget.spent)} were spent"
            )
        found = [searched_workload(one, rungs, rows, ended) for one in searches.values()]
        found += [
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
            budget=wanted.budget,
            spent=budget.spent,
            workloads=tuple(found),
            seconds=time.monotonic() - begun,
        )


@dataclass(frozen=True, slots=True)
class _First:
    """What is tried before anything was learned, by benchmark."""

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
        """That of the GPUs."""
        return self.gpus[0].arch

    @property
    def slots(self) -> int:
        """As many as cores and memory allow, where no number is asked for."""
        return workers_of(self.effort.slots, MEMORY)

    def compiler(self, folder: Path) -> MakesObjects:
        """Compiles with processes of this machine."""
        return ObjectCompiler(self.toolchain, folder, Listings())

    @contextmanager
    def held(self, runner: Path) -> Iterator[HeldGpus]:
        """Keeps each GPU, in the order of their numbers, so that two searches never cross."""
        runtime = runtime_of(self.toolchain)
        with ExitStack() as stack:
            controllers = [
                stack.enter_context(
                    controlling(
                        worker_command(one.number, runner, runtime),
                        patience=self.effort.patience,
                        more=device_environment(),
                    )
                )
                for one in self.gpus
            ]
            facts = [one.facts for one in controllers]
            pairs = zip(self.gpus, facts, strict=True)
            check_one_model({f"GPU {one.number}": found.label for one, found in pairs})
            gpus: list[MeasuresRungs] = [LocalGpu(one) for one in controllers]
            pool = GpuPool(gpus, note=self.note)
            yield HeldGpus(
                pool if len(gpus) > 1 else gpus[0], facts, self._sanitizes(controllers, runner)
            )

    def _sanitizes(self, controllers: Sequence[Controller], runner: Path) -> Sanitizes | None:
        """On the first GPU."""
        if not self.effort.sanitize:
            return None
        tool = find_sanitizer(self.toolchain)
        command = worker_command(self.gpus[0].number, runner, runtime_of(self.toolchain))

        def looked_at(workloads: Sequence[WatchedWorkload]) -> list[dict[str, str]]:
            with controllers[0].aside():
                return sanitize(tool, command, workloads, held=True)

        return looked_at


def _place(
    session: Session, machines: SearchMachines, effort: Effort, database: Path, asked: Asked
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
        asked=asked,
    )


def _run(driver: SearchDriver) -> Ended:
    try:
        return driver.run()
    except (StopAskedError, KeyboardInterrupt) as error:
        driver.notes.spend(driver.budget.elapsed, "stopped")
        measured = sum(len(one.scores) for one in driver.searches.values())
        raise Stopped(
            f"{measured:,} variants are measured and kept: the same command goes on there, with"
            " what is left of the budget"
        ) from error


def _workload_search(
    opened: OpenedWorkload,
    wanted: SearchWanted,
    first: "_First",
    where: Filter,
    seed: int,
    slots: int,
) -> WorkloadSearch:
    classifier = Classifier(opened.space, opened.meaning)
    counts = classifier.counts()
    space = SearchSpaceOf(classifier)
    nearest, same = nearest_values(classifier, opened.meaning.base)
    labels = (*wanted.starts, *first.labels.get(opened.meaning.point[0], ()))
    labelled = (space.values(label) for label in labels)
    selected = [opened.meaning.base, *first.policies.get(opened.meaning.point[0], ())]
    starts = [*starts_of(classifier, selected), *(one for one in labelled if one is not None)]
    name = wanted.strategy or _fitting(counts.distinct, wanted.budget, slots)
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
        base=space.label(nearest) if same else None,
    )


def _per_slot(budget: float | None, workloads: int) -> int:
    """Variants of a batch for each unit that is compiled at once; fewer in a short time."""
    if budget is None:
        return PER_SLOT
    fitting = int((FIRST * budget - HEADERS * workloads) / VARIANT)
    return min(PER_SLOT, max(FEWEST_PER_SLOT, fitting))


def _fitting(distinct: int, budget: float | None, slots: int) -> StrategyName:
    """All variants, where they are few and the budget allows it."""
    fits = budget is None or distinct * CORE_SECONDS / slots < budget / 2
    return "exhaustive" if distinct <= EXHAUSTIVE and fits else "local"


def _telling(observer: Observer | None, budget: Budget) -> Callable[..., None]:
    def tell(event: str, one: WorkloadSearch, rung: RungName, left: float) -> None:
        if observer is None:
            return
        best, score = one.leading or (None, None)
        name, axes = one.point
        observer(
            SearchEvent.model_validate(
                {
                    "event": event,
                    "at": budget.elapsed,
                    "benchmark": name,
                    "workload": dict(axes),
                    "rung": rung,
                    "strategy": one.name,
                    "tried": len(one.tried),
                    "distinct": one.counts.distinct,
                    "failed": len(one.failed),
                    "wrong": one.count({"wrong"}),
                    "best": best,
                    "score": score,
                    "left": None if budget.seconds is None else left,
                }
            )
        )

    return tell


# What a search found of a workload, as its document tells it.


def searched_workload(
    one: WorkloadSearch, rungs: RungRows, rows: MeasuringSession, ended: Ended | None
) -> SearchedWorkload:
    """Its finalists with intervals, how they were found, and what failed."""
    finalists = tuple(_finalists(one, rungs))
    spots = [point.spot for point in one.target.points] if one.target else []
    times = times_of(rows, spots, one.declared) if spots else []
    benchmark, workload = one.point
    won = [found for found in finalists if found.verdict == "faster"]
    return SearchedWorkload(
        benchmark=benchmark,
        workload=dict(workload),
        strategy=one.name,
        counts=SearchedVariants(
            variants=one.counts.variants,
            valid=one.counts.valid,
            distinct=one.counts.distinct,
            tried=len(one.tried),
            measured=len(one.scores),
            failed=len(one.failed),
            wrong=one.count({"wrong"}),
        ),
        base=one.base,
        best=won[0].variant if won else None,
        finalists=finalists,
        failures=tuple(_failures(one)),
        noise=tuple(noises(times)) if finalists else (),
        score_noise=score_noise(times) if finalists else None,
        skipped=tuple(
            SkippedPoint(point=runtime_axes(spot), reason=why)
            for spot, why in (one.target.skipped if one.target else ())
        ),
        ended=ended,
        seconds=one.seconds,
        problem=one.problem,
    )


def _finalists(one: WorkloadSearch, rungs: RungRows) -> Iterator[Finalist]:
    """The best first."""
    if one.target is None:
        return
    points = [(point.weighed, rungs.of(point.spot)) for point in one.target.points]
    times = rung_times(points, LAST)
    labels = [label for label in (times[0].variants if times else ()) if label not in one.failed]
    for found in sorted(judged(times, labels), key=lambda each: -(each.score or 0.0)):
        assert found.score is not None
        yield Finalist(
            variant=found.variant,
            screened=one.scores.get(found.variant, found.score),
            sharper=one.sharper.get(found.variant),
            score=found.score,
            interval=found.interval,
            verdict=found.verdict,
            runtime=found.runtime,
        )


def _failures(one: WorkloadSearch) -> Iterator[SearchFailure]:
    """By kind; those that are base's own policy are none."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for label, (kind, reason) in one.failed.items():
        kinds.setdefault(kind, []).append((label, reason))
    for kind, found in kinds.items():
        label, reason = found[0]
        yield SearchFailure.model_validate(
            {"kind": kind, "count": len(found), "variant": label, "reason": reason}
        )


BEST = 8
"""Of each workload of an earlier database."""
MOST = 16
"""What is tried first is no search yet."""


# What a search tries first: what CUB selects for other types and GPUs, and what won before.


def selected_policies(session: Session, opened: Opened, arch: str) -> dict[str, list[Policy]]:
    """By benchmark the policies that CUB selects for its types, here and on neighbouring archs.

    Where variants are changed headers, only those that are searched are known.
    """
    found: dict[str, list[Policy]] = {}
    ready = [one for one in opened.values() if isinstance(one, OpenedWorkload)]
    for one in ready:
        found.setdefault(one.meaning.point[0], []).append(one.meaning.base)
    public = {one.meaning.point[0]: one.meaning.benchmark for one in ready if one.headers is None}
    for name, benchmark in public.items():
        for other in (arch, *_neighbours(arch)):
            for known in filter(None, (name, benchmark.like)):
                found[name] += _of_benchmark(session, known, other)
    return found


def earlier_labels(databases: Sequence[Path]) -> dict[str, tuple[str, ...]]:
    """By benchmark the best variants of databases, whatever their types and GPUs."""
    found: dict[str, dict[str, None]] = {}
    for path in databases:
        for one in rank([path], samples=False).workloads:
            best = [v.variant for v in one.variants if v.variant != BASE][:BEST]
            found.setdefault(one.algorithm, {}).update(dict.fromkeys(best))
    return {name: tuple(labels) for name, labels in found.items()}


def starts_of(classifier: Classifier, policies: Sequence[Policy]) -> list[Values]:
    """The variants nearest to policies, each once; the first are those of the first policies."""
    distinct = list({tuple(one.items()): one for one in policies}.values())[:MOST]
    return list(dict.fromkeys(nearest_values(classifier, one)[0] for one in distinct))


def _of_benchmark(session: Session, name: str, arch: str) -> Iterator[Policy]:
    """Those of all its types; none where the architecture cannot be asked about."""
    where = Filter((), f"{re.escape(name)}$", (), ())
    try:
        told = open_workloads(session, chosen_workloads(session, where), arch)
    except PolicygenError:
        return
    for one in told.values():
        if isinstance(one, OpenedWorkload) and one.headers is None:
            yield one.meaning.base


def _neighbours(arch: str) -> Iterator[str]:
    """The architectures of tunings right before and after one."""
    known = list(ladder())
    if arch in known:
        at = known.index(arch)
        yield from known[max(0, at - 1) : at]
        yield from known[at + 1 : at + 2]
