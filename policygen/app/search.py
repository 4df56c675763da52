"""`policygen search`: finds the best variants of workloads on GPUs."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles, nothing_matches, open_inputs
from policygen.app.measured_workloads import (
    Effort,
    Opened,
    check_runtime_axes,
    chosen_workloads,
    open_workloads,
)
from policygen.app.session import Session, check_serves
from policygen.bindings.words import ladder
from policygen.errors import InputError, PolicygenError
from policygen.gpu.candidates import SearchBench, SearchEffort, SearchNotes, WorkloadSearch
from policygen.gpu.compiling import ObjectSource, check_compiles, work_folder
from policygen.gpu.database_writer import About
from policygen.gpu.driver import SearchDriver
from policygen.gpu.finalists import findings_of
from policygen.gpu.measured_rows import MeasuringSession, open_measurements
from policygen.gpu.opened import EntryWorkload, OpenedWorkload
from policygen.gpu.pool import Asked, StopAskedError
from policygen.gpu.replay import (
    BATCH,
    DEFAULT,
    SAMPLES,
    Replaying,
    describe_space,
    recorded_spaces,
    replay_runs,
)
from policygen.gpu.rounds import declared_axes, runtime_spots
from policygen.gpu.rungs import Budget
from policygen.gpu.search_places import UnitCompiler, open_place
from policygen.gpu.space import Classifier, Policy, nearest_values
from policygen.gpu.statistics import judged, noises, rung_times, score_noise, times_of
from policygen.gpu.strategies import STRATEGIES, AskedVariant, StrategyName, Values, make_strategy
from policygen.gpu.units import runner_text
from policygen.model.measured import SkippedPoint
from policygen.model.records import grouped
from policygen.model.results import Rules
from policygen.model.searches import (
    Campaign,
    Ended,
    FailureGroup,
    Finalist,
    RungName,
    Searched,
    SearchedVariants,
    SearchedWorkload,
    SearchEvent,
    SearchFailure,
    SearchReplay,
)
from policygen.model.workload import BASE, Point
from policygen.planning.measured import Spaces
from policygen.process import Stopped, threads
from policygen.proof.units import Workload
from policygen.results.own_tables import LAST
from policygen.results.ranking import Warnings, rank
from policygen.steps import Progress
from policygen.untrusted import visible

__all__ = ["BATCH", "DEFAULT", "SAMPLES", "STRATEGIES", "Campaign", "Replaying", "SearchEvent"]
Observer = Callable[[SearchEvent], None]


@dataclass(frozen=True, slots=True)
class SearchMachines:
    """Which machines a search may use."""

    gpus: tuple[int, ...] | None = (0,)
    """Numbers of GPUs of this machine; None means all of them."""
    scheduler: str | None = None
    """The address or the file of a Dask scheduler. If given, its workers are used instead."""


@dataclass(frozen=True, slots=True)
class SearchWanted:
    """What to search, and how."""

    budget: float | None = None
    """In seconds, over all sessions of the database."""
    strategy: StrategyName | None = None
    """If unset: `local`."""
    count: int | None = None
    """Maximum number of variants per workload."""
    spaces: Spaces | None = None
    starts: Sequence[str] = ()
    """Labels to try first, if the search space contains them."""
    earlier: Sequence[Path] = ()
    """Databases whose best variants are tried after the neighbors of base."""
    rules: Rules = field(default_factory=Rules)
    """What a variant has to be to be chosen: the search looks for such variants."""
    kept: float = 0.0
    """Seconds of the budget for what follows the search, and as many for each workload."""
    campaign: Campaign | None = None
    """Workloads that get time by their weights and gains, instead of equal shares."""


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
    chosen = campaign_workloads(session, where.compile_time, options.campaign)
    workloads = [workload for workload, _ in chosen.values()]
    check_runtime_axes(session, where, workloads)
    with ExitStack() as stack:
        place = stack.enter_context(
            open_place(
                machines.gpus,
                machines.scheduler,
                database,
                slots=effort.slots,
                patience=effort.patience,
                sanitizes=effort.sanitize,
                note=session.note,
                stop_requested=stop_requested,
            )
        )
        check_compiles(place.toolchain, place.arch)
        compiler = place.compiler(Path(stack.enter_context(work_folder())))
        background = stack.enter_context(threads(place.slots))
        runner = background.submit(compiler.make, ObjectSource(runner_text(), (), place.arch))
        opened = open_workloads(session, workloads, place.arch, options.spaces)
        problems = {
            point: result.in_line
            for point, result in opened.items()
            if isinstance(result, PolicygenError)
        }
        searches: dict[str, WorkloadSearch] = {}
        for point, workload in opened.items():
            if isinstance(workload, PolicygenError):
                continue
            try:
                search = _workload_search(workload, options, where, effort.seed)
                search.weight = chosen[point][1]
                searches[workload.name] = search
            except InputError as error:
                problems[point] = error.in_line
        units = UnitCompiler(compiler, where.accepts)
        units.begin(background, searches.values())
        later = [background.submit(_later_starts, session, opened, place.arch, options.earlier)]
        gpus = stack.enter_context(place.held(runner.result()))
        facts, version = gpus.facts[0], place.toolchain.version
        cccl = f"v{session.cub.version}"
        about = About(version, cccl, facts, "events", effort.seed, gpus.facts)
        rows = stack.enter_context(open_measurements(database, about))
        notes = SearchNotes(rows)
        for search in searches.values():
            for spot in search.spots:
                rows.prepare(spot, search.declared)
        earlier = notes.before([search.point for search in searches.values()])
        kept = options.kept * (1 + len(searches))
        budget = Budget(options.budget, earlier, kept=kept, begun=started)
        for search in searches.values():
            notes.begin(search, effort.seed, options.budget)
        bench = SearchBench(
            gpus.measures,
            rows,
            units,
            SearchEffort(
                slots=place.slots,
                seed=effort.seed,
                count=options.count,
                processes=effort.processes,
                rounds=effort.rounds,
            ),
            stop_requested,
            gpus.sanitizes,
            gpus.memchecks,
            session.note,
        )

        def take_starts() -> Mapping[str, Sequence[Values]] | None:
            if not later or not later[0].done():
                return None
            starts = later.pop().result()
            return {name: starts[name] for name in searches}

        report = _event_reporter(observer, budget)
        driver = SearchDriver(
            *(bench, notes, searches, budget, report, take_starts),
            is_campaign=options.campaign is not None,
        )
        ended = _run_search(driver) if searches else None
        spent = budget.spent
        searched = [
            searched_workload(search, rows, ended, _findings(search, bench, notes))
            for search in searches.values()
        ]
        searched += [
            SearchedWorkload.of(point, problem=reason) for point, reason in problems.items()
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
            spent=spent,
            workloads=tuple(searched),
            seconds=time.monotonic() - started,
        )


def campaign_workloads(
    session: Session, where: Filter, campaign: Campaign | None
) -> dict[Point, tuple[Workload, float]]:
    """Returns the selected workloads with their weights, the heaviest first.

    Of several groups that name a workload, the last one decides.
    """
    if campaign is None:
        return {workload.point: (workload, 1.0) for workload in chosen_workloads(session, where)}
    selected = {workload.point for workload in chosen_workloads(session, where)}
    chosen: dict[Point, tuple[Workload, float]] = {}
    for number, group in enumerate(campaign.workload, 1):
        name = f"cub.bench.{group.benchmark.removeprefix('cub.bench.')}"
        try:
            of_group = chosen_workloads(session, Filter((), f"{re.escape(name)}$", group.axes))
        except InputError as error:
            raise InputError(
                f"workload {number} of the plan: {error.message}", error.remedy
            ) from error
        for workload in of_group:
            if workload.point in selected:
                chosen[workload.point] = workload, group.weight
    if not chosen:
        raise InputError("-R and -a select no workload of the campaign")
    return dict(sorted(chosen.items(), key=lambda item: -item[1][1]))


def _run_search(driver: SearchDriver) -> Ended:
    try:
        return driver.run()
    except (StopAskedError, KeyboardInterrupt) as error:
        driver.notes.spend(driver.budget.elapsed, "stopped")
        measured = sum(len(search.measured) for search in driver.searches.values())
        raise Stopped(
            f"{measured:,} variants are measured and kept; the same command resumes there, with"
            " the rest of the budget"
        ) from error


def _workload_search(
    opened: OpenedWorkload, options: SearchWanted, where: Filter, seed: int
) -> WorkloadSearch:
    classifier = Classifier(opened.space, opened.meaning)
    counts = classifier.counts()
    space = opened.space
    nearest, is_exact = nearest_values(classifier, opened.meaning.base)
    labeled = (space.values(label) for label in options.starts)
    starts = [nearest, *(values for values in labeled if values is not None)]
    declared = {key: values for run in opened.runs for key, values in declared_axes(run).items()}
    spots = [at.spot for run in opened.runs for at in runtime_spots(run, Path(), where.accepts)]
    name = options.strategy or DEFAULT
    strategy = make_strategy(name, classifier.domain, seed, starts)
    if is_exact:  # base itself is never measured as a variant
        strategy.tell([AskedVariant(nearest, 1.0)])
    return WorkloadSearch(
        point=opened.meaning.point,
        opened=opened,
        space=space,
        counts=counts,
        strategy=strategy,
        name=name,
        declared=declared,
        spots=spots,
        base=space.label(nearest) if is_exact else None,
        allowed=options.rules.worst_allowed,
    )


def _event_reporter(observer: Observer | None, budget: Budget) -> Callable[..., None]:
    def report(event: str, search: WorkloadSearch, rung: RungName, remaining: float) -> None:
        if observer is None:
            return
        best, score = search.leading or (None, None)
        name, axes = search.point
        fields = {"event": event, "benchmark": name, "workload": dict(axes)}
        observer(
            SearchEvent(
                **fields,
                at=budget.elapsed,
                rung=rung,
                strategy=search.name,
                tried=len(search.measured | search.failed.keys()),
                distinct=search.counts.distinct,
                failed=len(search.failed),
                wrong=search.wrong,
                best=best,
                score=score,
                left=None if budget.seconds is None else remaining,
            )
        )

    return report


def searched_workload(
    search: WorkloadSearch,
    rows: MeasuringSession,
    ended: Ended | None,
    findings: tuple[FailureGroup, ...] = (),
) -> SearchedWorkload:
    """Reports the finalists of a workload with intervals, how they were found, and what failed."""
    finalists = tuple(_finalists(search, rows))
    spots = [point.spot for point in search.target.points] if search.target else []
    times = times_of(rows, spots, search.declared) if spots else []
    winners = [finalist for finalist in finalists if finalist.verdict == "faster"]
    return SearchedWorkload.of(
        search.point,
        strategy=search.name,
        counts=SearchedVariants(
            **asdict(search.counts),
            tried=len(search.tried),
            measured=len(search.measured),
            failed=len(search.failed),
            wrong=search.wrong,
        ),
        base=search.base,
        best=winners[0].variant if winners else None,
        finalists=finalists,
        failures=tuple(_failures(search)),
        findings=findings,
        noise=tuple(noises(times)) if finalists else (),
        score_noise=score_noise(times) if finalists else None,
        skipped=tuple(
            SkippedPoint(point=spot.runtime_axes, reason=reason)
            for spot, reason in (search.target.skipped if search.target else ())
        ),
        ended=ended,
        seconds=search.seconds,
        problem=search.problem,
    )


def _finalists(search: WorkloadSearch, rows: MeasuringSession) -> Iterator[Finalist]:
    """Yields finalists, best first."""
    if search.target is None:
        return
    times = rung_times(search.target.rungs(rows), LAST)
    excluded = {BASE, *search.failed}
    labels = [label for label in (times[0].variants if times else ()) if label not in excluded]
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
    kinds = grouped(search.failed.items(), lambda failure: failure[1][0])
    for kind, failures in kinds.items():
        label, (_, reason) = failures[0]
        fields = {"kind": kind, "count": len(failures), "variant": label, "reason": reason}
        yield SearchFailure.model_validate(fields)


MEMCHECKED = 4
"""Maximum number of findings of a workload whose variants run under memcheck."""


def _findings(
    search: WorkloadSearch, bench: SearchBench, notes: SearchNotes
) -> tuple[FailureGroup, ...]:
    """Groups variants that fail on the GPU, and runs one of each group under memcheck."""
    memchecks = notes.memchecks(search.point)
    findings = findings_of(search.failed, memchecks)
    unchecked = [
        finding.variants[0]
        for finding in findings[:MEMCHECKED]
        if finding.variants and (finding.memcheck is None or finding.memcheck.outcome == "not run")
    ]
    if not unchecked or search.target is None or not search.has_base:
        return findings
    for memcheck in bench.memcheck(search, search.target, unchecked):
        notes.keep_memcheck(search.point, memcheck)
        memchecks[memcheck.variant] = memcheck
    return findings_of(search.failed, memchecks)


BEST = 8
"""Variants taken from each workload of an earlier database."""
MOST = 16
"""Maximum number of policies of CUB to start from."""


# Later starts: policies that CUB selects for other types and GPUs, and earlier winners.


def _later_starts(
    session: Session, opened: Opened, arch: str, earlier: Sequence[Path]
) -> dict[str, list[Values]]:
    """Returns, by workload, what is tried after the neighbors of base."""
    policies = selected_policies(replace(session, progress=None), opened, arch)
    labels = earlier_labels(earlier)
    starts: dict[str, list[Values]] = {}
    for (benchmark, _), workload in opened.items():
        if isinstance(workload, OpenedWorkload):
            # Another thread uses the classifier of the search.
            classifier = Classifier(workload.space, workload.meaning)
            won = (workload.space.values(label) for label in labels.get(benchmark, ()))
            starts[workload.name] = [
                *(values for values in won if values is not None),
                *starts_of(classifier, policies.get(benchmark, ())),
            ]
    return starts


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
        if not isinstance(workload.meaning, EntryWorkload)
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
        if isinstance(workload, PolicygenError) or isinstance(workload.meaning, EntryWorkload):
            continue
        yield workload.meaning.base


def _neighboring_archs(arch: str) -> Iterator[str]:
    """Yields the tuning architectures right before and after `arch`."""
    archs = list(ladder())
    if arch in archs:
        index = archs.index(arch)
        yield from archs[max(0, index - 1) : index]
        yield from archs[index + 1 : index + 2]


# `--replay`: a strategy on fully measured search spaces.


def replay_search(
    results: ResultFiles, settings: Replaying | None = None, *, progress: Progress | None = None
) -> SearchReplay:
    """Replays a strategy on each workload of databases as if it measured. Needs no GPU."""
    settings, warnings = settings or Replaying(), Warnings()
    with open_inputs(results) as files:
        spaces = recorded_spaces(
            files.databases,
            warnings,
            results.where.pattern,
            results.where.values,
            files.declared,
            sampled=settings.samples > 0,
            starts=settings.begins,
        )
        descriptions = [files.named(describe_space(space)) for space in spaces]
        named_warnings = tuple(map(files.named_warning, warnings.all))
    if not spaces:
        if not named_warnings:
            raise nothing_matches(results.where, results.files)
        messages = "\n".join(visible(str(warning)) for warning in named_warnings)
        raise InputError("no variant can be compared with base", messages)
    return SearchReplay(
        strategy=settings.strategy,
        batch=settings.batch,
        samples=settings.samples,
        spaces=tuple(descriptions),
        runs=tuple(replay_runs(spaces, descriptions, settings, progress)),
        warnings=named_warnings,
    )
