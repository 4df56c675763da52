"""`policygen search`: finds the best variants of workloads on GPUs."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.measure import Effort, compile_time_part, is_meant
from policygen.app.measure_variants import check_compiles, work_folder
from policygen.app.measuring import chosen_workloads, open_workloads
from policygen.app.notes import Note
from policygen.app.search_batches import BatchCompiler
from policygen.app.search_cluster import cluster_place
from policygen.app.search_places import HeldGpus, SearchMachines, SearchPlace
from policygen.app.search_results import searched_workload
from policygen.app.search_starts import earlier_labels, selected_policies, starts_of
from policygen.app.serving import check_serves
from policygen.app.session import Session
from policygen.errors import InputError, PolicygenError
from policygen.measure.compiling import MEMORY, MakesObjects
from policygen.measure.control import Controller, controlling, worker_command
from policygen.measure.database import open_measurements
from policygen.measure.distinct import Classifier
from policygen.measure.gpus import ListedGpu, check_one_model, device_environment, find_gpus
from policygen.measure.meaning import Policy
from policygen.measure.objects import ObjectCompiler, ObjectSource, runtime_of
from policygen.measure.opened import OpenedWorkload
from policygen.measure.sanitizer import Sanitizes, find_sanitizer, sanitize
from policygen.measure.sessions import About
from policygen.measure.spots import declared_axes, row_spots
from policygen.measure.units import runner_text
from policygen.measure.watched import WatchedWorkload
from policygen.model.search import Ended, RungName, Searched, SearchedWorkload, SearchEvent
from policygen.planning.measured import Spaces
from policygen.proof.deps import Listings
from policygen.proof.sass.compiler import workers_of
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.search.bench import SearchBench, SearchEffort
from policygen.search.budget import Budget
from policygen.search.driver import SearchDriver
from policygen.search.gpu import Asked, LocalGpu, MeasuresRungs, StopAskedError
from policygen.search.notes import SearchNotes
from policygen.search.pool import GpuPool
from policygen.search.rung_rows import RungRows
from policygen.search.strategies.known import StrategyName, make_strategy
from policygen.search.workload import SearchSpaceOf, WorkloadSearch, nearest_values
from policygen.steps import spelled
from policygen.stopping import Stopped

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
