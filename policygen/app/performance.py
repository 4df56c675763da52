"""`policygen verify-performance`: measures a change before and after it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from policygen.app.change import find_base, read_before
from policygen.app.effect import Planned, with_families
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.measured_workloads import ROUNDS
from policygen.app.performance_trees import prepare_header, prepare_trees
from policygen.app.session import Session, check_serves
from policygen.cache import digest
from policygen.errors import InputError, PolicygenError, Problems, anchored, together
from policygen.gpu.changes import (
    LOOKS,
    ChangedWorkload,
    ChangeMeasuring,
    JudgedWorkload,
    PreparedChange,
    WorkloadKey,
    by_entry,
    compile_changes,
    looks_until,
    noise_of,
    unmeasured_document,
    whole_verdict,
    workload_document,
    workload_key,
)
from policygen.gpu.compared_results import Axes, Keeps, compare_results
from policygen.gpu.compiling import ObjectCompiler, check_compiles, runtime_of, work_folder
from policygen.gpu.control import Controller, controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.judgments import SURE, Judge
from policygen.gpu.machine import find_gpu
from policygen.gpu.measured_rows import open_measurements
from policygen.gpu.nvbench_files import check_nvbench, unwritten, write_nvbench
from policygen.model.plans import Plan
from policygen.model.results import Choice, ScoredWorkload
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from policygen.model.workload import axes, spelled
from policygen.opening import read_document
from policygen.planning.memory import remembered, remembered_next
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.proof.compile import Listings
from policygen.proof.oracle import compiler_for
from policygen.proof.sites import headers_of_benchmarks
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.results.database import expand
from policygen.results.nvbench import NvbenchRun, read_nvbench
from policygen.results.together import Together
from policygen.trees.layout import tree_content

MOST = LOOKS[-1]


@dataclass(frozen=True, slots=True)
class PerformanceEffort:
    """How much to measure, and where."""

    processes: int = MOST
    """Maximum number of processes; workloads with a clear verdict stop earlier."""
    rounds: int = ROUNDS
    """Rounds in each process."""
    seed: int = 1
    budget: float | None = None
    """Measuring time in seconds."""
    gpu: int = 0
    slots: int | None = None
    """Units compiled at once; if unset, as many as cores and memory allow."""
    patience: float = 0.0
    """Seconds to wait for a GPU that another process is measuring on."""


def verify_performance(
    session: Session,
    where: Filter = EVERYTHING,
    *,
    base: str | None = None,
    header: Path | None = None,
    everything: bool = False,
    tolerance: float | None = None,
    database: Path | None = None,
    effort: PerformanceEffort | None = None,
    nvbench: Path | None = None,
) -> VerifyPerformance:
    """Measures workloads whose machine code a change modified, before and after it.

    `everything` examines all workloads of the changed headers, not only those that get different
    values. With `header`, a header made by `emit`, the tree is compared with and without it.
    `nvbench` is a folder for the measurements in NVBench's format.
    """
    check_serves("verify-performance", session.cub)
    effort, started = effort or PerformanceEffort(), time.monotonic()
    if nvbench is not None:
        check_nvbench(nvbench)
    gpu, toolchain = find_gpu(effort.gpu), find_toolchain()
    check_compiles(toolchain, gpu.arch)
    part = where.compile_time
    if header is not None:
        change = prepare_header(session, header, part, gpu.arch, toolchain)
    else:
        change = prepare_trees(
            session, base, part, gpu.arch, toolchain, everything=everything, jobs=effort.slots
        )
    return measure_change(
        session,
        change,
        where,
        gpu.arch,
        tolerance=tolerance,
        database=database,
        effort=effort,
        nvbench=nvbench,
        started=started,
    )


def measure_change(
    session: Session,
    change: PreparedChange,
    where: Filter,
    arch: str,
    *,
    tolerance: float | None = None,
    database: Path | None = None,
    effort: PerformanceEffort | None = None,
    nvbench: Path | None = None,
    started: float | None = None,
) -> VerifyPerformance:
    """Measures both sides of a prepared change. `started` is when the preparation started."""
    effort, started = effort or PerformanceEffort(), started or time.monotonic()
    toolchain, cub = find_toolchain(), session.cub
    judged: Sequence[JudgedWorkload | None] = ()
    remarks, rows, facts = change.remarks, None, None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(work_folder()))
        compiler = ObjectCompiler(toolchain, folder, Listings())
        compiled = compile_changes(
            change, where.accepts, compiler, folder, slots=effort.slots, progress=session.progress
        )
        if compiled.runner is not None and compiled.changes:
            command = worker_command(effort.gpu, compiled.runner, runtime_of(toolchain))
            controller = stack.enter_context(controlling(command, patience=effort.patience))
            facts = controller.facts
            about = _about(session, toolchain, controller, compiled.changes, effort.seed)
            path = database or folder / "measured.db"
            rows = stack.enter_context(open_measurements(path, about))
            looks = looks_until(effort.processes)
            count = sum(1 + len(changed.spots) for changed in compiled.changes)
            judged = ChangeMeasuring(
                controller,
                rows,
                Judge(count * len(looks), tolerance),
                looks,
                effort.rounds,
                effort.seed,
                effort.budget,
                session.progress,
            ).run(compiled.changes)
            if nvbench is not None:
                remarks += write_nvbench(nvbench, compiled.changes, rows)
        elif nvbench is not None:
            remarks += (unwritten(nvbench),)
        entries = change.entries or {}
        measured = [
            workload_document(
                changed, judgment, arch, change.claims, entries.get(changed.point), rows
            )
            for changed, judgment in zip(compiled.changes, judged, strict=False)
        ]
    refused = compiled.refused.items()
    workloads = (
        *measured,
        *(unmeasured_document(point, arch, "undecided", reason) for point, reason in refused),
        *(unmeasured_document(point, arch, "same-code") for point in change.same),
    )
    return VerifyPerformance(
        cub=cub,
        content=tree_content(cub),
        before=change.before,
        after=change.after,
        arch=arch,
        gpu=facts and facts.label,
        driver=facts and facts.driver,
        toolchain=f"nvcc {toolchain.version}",
        tolerance=tolerance,
        confidence=SURE,
        noise=noise_of(measured),
        seed=effort.seed,
        budget=effort.budget,
        database=None if database is None else str(database),
        remarks=remarks,
        verdict=whole_verdict(workloads),
        workloads=workloads,
        entries=() if change.entries is None else tuple(by_entry(measured)),
        seconds=time.monotonic() - started,
    )


def _about(
    session: Session,
    toolchain: Toolchain,
    controller: Controller,
    changes: Sequence[ChangedWorkload],
    seed: int,
) -> About:
    """Describes the measurement.

    Includes a digest of both sides' objects, so that rows of another change are never reused.
    """
    objects = (
        Path(side.library).name
        for change in changes
        for part in change.parts
        for side in (part.base, part.variants[0])
    )
    cccl = f"v{session.cub.version} change {digest('change', *objects)[:12]}"
    return About(toolchain.version, cccl, controller.facts, "events", seed)


# `--before` and `--after`: results of NVBench, without a GPU.


def compare_performance(
    before: Sequence[str],
    after: Sequence[str],
    where: Filter = EVERYTHING,
    *,
    tolerance: float | None = None,
) -> VerifyPerformance:
    """Compares NVBench results of two sides of a change. Each file is one process of its side."""
    sides = _read(before, after)
    document = compare_results(*sides, _keeps(where), tolerance)
    if document is None:
        hint = anchored(where.pattern, [run.algorithm for side in sides for run in side])
        raise InputError("nothing matches", hint or "The results have no matching state.")
    return document


def _read(before: Sequence[str], after: Sequence[str]) -> tuple[list[NvbenchRun], list[NvbenchRun]]:
    """Reads all files of both sides, and reports the errors of all files together."""
    errors: list[PolicygenError] = []
    paths_by_content: dict[str, Path] = {}
    sides: tuple[list[NvbenchRun], list[NvbenchRun]] = ([], [])
    for names, runs in zip((before, after), sides, strict=True):
        # One by one, so that a file named twice is detected.
        for path in (path for name in names for path in expand([name])):
            try:
                run = read_nvbench(path)
                content = digest("result", read_document(path))
                if (first := paths_by_content.setdefault(content, path)) is not path:
                    raise InputError(
                        f"{path}: is the same result as {first}",
                        "Each result must come from a process of its own.",
                    )
                runs.append(run)
            except PolicygenError as error:
                errors.append(error)
    if errors:
        raise together(errors)
    return sides


def _keeps(where: Filter) -> Keeps:
    """Returns the filter for `-R` and `-a`. Axes may be named `T` or as in databases."""
    pattern, values = where.pattern, where.values

    def keeps(algorithm: str, point: Axes) -> bool:
        values_by_axis = spelled(values, point)
        return bool(pattern.match(algorithm)) and all(
            point[axis] in chosen for axis, chosen in values_by_axis.items() if axis in point
        )

    return keeps


# `--narrow`: the plan of the last apply, without what turned out to be slower.


def narrow_plan(
    session: Session, document: VerifyPerformance, *, base: str | None = None
) -> Plan | None:
    """Plans the last apply again for the tree before it, without what turned out to be slower.

    Workloads that shared an entry with a faster one keep their values, in an entry of their own if
    a type distinguishes them. Returns None if there is nothing to exclude.
    """
    before = find_base(session, base)
    plan = before.plan if before else None
    if before is None or plan is None:
        raise InputError(
            f"{before.label if before else session.store}: no plan to narrow",
            "Only a change by `policygen apply` can be narrowed; omit --base.",
        )
    worse = {
        workload_key(workload.benchmark, workload.workload): reason
        for workload, reason in _slower_workloads(document)
    }
    if not worse:
        return None
    results = list(_narrowed_results(plan, document, worse))
    names = headers_of_benchmarks({row.algorithm for row in results}, session.cub.bindings)
    tree = read_before(before, names)
    if tree.errors:
        raise Problems(tree.errors)
    compiler = compiler_for(tree, progress=session.progress)
    planner = Planner(
        compiler.sources,
        plan.options,
        compiler,
        _RememberedTogether(plan),
        next_best=remembered_next(plan.instead),
        spaces=plan.spaces,
    )
    narrowed = planner.plan(results, [f"without {len(worse)} that measured slower"])
    narrowed = with_families(Planned(narrowed, compiler), planner, results)
    cub = plan.cub  # the tree before, not the folders of its replaced headers
    return narrowed.model_copy(update={"cub": cub, "given": plan.given})


def _slower_workloads(document: VerifyPerformance) -> Iterator[tuple[WorkloadPerformance, str]]:
    """Yields workloads that must not be merged as they are, with reasons."""
    for workload in document.workloads:
        if workload.failed is not None:
            yield workload, f"after the change it fails: {workload.failed.reason}"
        elif document.too_slow(workload):
            yield workload, f"slower when measured as written: {workload.ratio:.3f}"
        elif slow := [row for row in workload.runtime if document.too_slow(row)]:
            worst = min(slow, key=lambda row: row.ratio)
            where = ", ".join(axes(worst.point))
            yield workload, f"{where} is slower when measured as written: {worst.ratio:.3f}"
        elif workload.holds is False:
            yield (
                workload,
                f"measured {workload.ratio:.3f}, but the plan claims {workload.claimed:.3f}",
            )


def _narrowed_results(
    plan: Plan, document: VerifyPerformance, worse: Mapping[WorkloadKey, str]
) -> Iterator[ScoredWorkload]:
    """Yields the plan's results, and base for other slower workloads that the plan affected."""
    planned_keys = set()
    for scored in plan.results:
        key = workload_key(scored.algorithm, scored.workload)
        planned_keys.add(key)
        yield _keep_base(scored, worse[key]) if key in worse else scored
    result_by_benchmark = {result.algorithm: result for result in plan.results}
    for measured in document.workloads:
        key = workload_key(measured.benchmark, measured.workload)
        if key in worse and key not in planned_keys:
            similar = result_by_benchmark.get(measured.benchmark, plan.results[0])
            types = {f"{axis}{{ct}}": value for axis, value in measured.workload.items()}
            neighbor = similar.model_copy(
                update={"algorithm": measured.benchmark, "workload": types}
            )
            yield _keep_base(neighbor, worse[key])


def _keep_base(scored: ScoredWorkload, reason: str) -> ScoredWorkload:
    choice = Choice(decision="keep base", variant=None, reason=reason)
    return scored.model_copy(update={"choice": choice, "variants": ()})


class _RememberedTogether:
    """Chooses for several workloads as the plan did, and nothing if any must keep its values."""

    def __init__(self, plan: Plan) -> None:
        self._whole = remembered(plan.joint)

    def __call__(self, cases: Sequence[PlacedResult]) -> Together:
        unused = [case.measurement.name for case in cases if not case.used]
        if unused:
            return Together((), f"{', '.join(unused)} is left to the fallback")
        try:
            return self._whole(cases)
        except InputError:
            return Together((), "no known variant suits the remaining workloads")
