"""`policygen verify-performance`: measures a change before and after it."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from policygen.app.change import Base, find_base, find_base_tree, read_before
from policygen.app.comparison import ChangedCode, find_changed_code
from policygen.app.effect import Planned
from policygen.app.filters import EVERYTHING, Filter
from policygen.app.measured_workloads import MeasuringEffort, chosen_workloads
from policygen.app.plan import with_families
from policygen.app.session import Session, check_serves
from policygen.cache import digest
from policygen.errors import InputError, Problems, anchored, reported_together
from policygen.gpu.changes import (
    AFTER,
    LOOKS,
    ChangedWorkload,
    ChangeMeasuring,
    Claims,
    JudgedWorkload,
    PreparedChange,
    Runs,
    WorkloadKey,
    by_entry,
    compile_changes,
    looks_until,
    noise_of,
    whole_verdict,
    workload_document,
    workload_key,
)
from policygen.gpu.compiling import (
    Candidate,
    ObjectCompiler,
    Renders,
    WorkloadToCompile,
    check_compiles,
    runtime_of,
    work_folder,
)
from policygen.gpu.control import controlling, worker_command
from policygen.gpu.database_writer import About
from policygen.gpu.machine import find_gpu
from policygen.gpu.measured_rows import open_measurements
from policygen.gpu.nvbench_files import (
    Axes,
    Keeps,
    check_nvbench,
    compare_results,
    unwritten,
    write_nvbench,
)
from policygen.gpu.opened import PublicWorkload, ask_public, to_compile
from policygen.gpu.statistics import CONFIDENCE, SURE, Judge
from policygen.gpu.units import WorkloadRun, inputs_text, runs_of, variants_text
from policygen.headers.selectors.functions import leaves
from policygen.headers.user.policies import as_policy, check_takes_selectors, selectors_named
from policygen.model.plans import Plan
from policygen.model.results import Choice, ScoredWorkload
from policygen.model.selection import Policies, Question
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from policygen.model.workload import Point, axes, point_name, spelled
from policygen.opening import read_document, read_named
from policygen.planning.decide import remembered, remembered_next
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.proof.ask import ask_policies
from policygen.proof.compile import Listings
from policygen.proof.oracle import compiler_for
from policygen.proof.probe import QueriedTree
from policygen.proof.sites import headers_of_benchmarks
from policygen.proof.toolchain import Toolchain, find_toolchain
from policygen.proof.units import Workload, overlay
from policygen.results.database import expand
from policygen.results.nvbench import NvbenchRun, read_nvbench
from policygen.results.together import Together
from policygen.trees.layout import tree_content
from policygen.trees.manifest import shipped

MOST = LOOKS[-1]


@dataclass(frozen=True, slots=True)
class PerformanceEffort(MeasuringEffort):
    """How much to measure, and where."""

    processes: int = MOST
    """Maximum number of processes; workloads with a clear verdict stop earlier."""
    budget: float | None = None
    """Measuring time in seconds."""


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
        changes, refused, runner = compile_changes(
            change, where.accepts, compiler, folder, slots=effort.slots, progress=session.progress
        )
        if runner is not None and changes:
            command = worker_command(effort.gpu, runner, runtime_of(toolchain))
            controller = stack.enter_context(controlling(command, patience=effort.patience))
            facts = controller.facts
            cccl = f"v{cub.version} change {_change_digest(changes)}"
            about = About(toolchain.version, cccl, facts, "events", effort.seed)
            path = database or folder / "measured.db"
            rows = stack.enter_context(open_measurements(path, about))
            looks = looks_until(effort.processes)
            count = sum(1 + len(changed.spots) for changed in changes)
            judged = ChangeMeasuring(
                controller,
                rows,
                Judge(count * len(looks), tolerance),
                looks,
                effort.rounds,
                effort.seed,
                effort.budget,
                session.progress,
            ).run(changes)
            if nvbench is not None:
                remarks += write_nvbench(nvbench, changes, rows)
        elif nvbench is not None:
            remarks += (unwritten(nvbench),)
        entries = change.entries or {}
        measured = [
            workload_document(
                changed, judgment, arch, change.claims, entries.get(changed.point), rows
            )
            for changed, judgment in zip(changes, judged, strict=False)
        ]
    workloads = (
        *measured,
        *(
            WorkloadPerformance.of(point, arch=arch, verdict="undecided", problem=reason)
            for point, reason in refused.items()
        ),
        *(WorkloadPerformance.of(point, arch=arch, verdict="same-code") for point in change.same),
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


def _change_digest(changes: Sequence[ChangedWorkload]) -> str:
    """Digests both sides' objects, so that rows of another change are never reused."""
    objects = (
        Path(side.library).name
        for change in changes
        for part in change.parts
        for side in (part.base, part.variants[0])
    )
    return digest("change", *objects)[:12]


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
    paths_by_content: dict[str, Path] = {}
    sides: tuple[list[NvbenchRun], list[NvbenchRun]] = ([], [])
    with reported_together() as part:
        for names, runs in zip((before, after), sides, strict=True):
            # One by one, so that a file named twice is detected.
            for path in (path for name in names for path in expand([name])):
                with part():
                    run = read_nvbench(path)
                    content = digest("result", read_document(path))
                    if (first := paths_by_content.setdefault(content, path)) is not path:
                        raise InputError(
                            f"{path}: is the same result as {first}",
                            "Each result must come from a process of its own.",
                        )
                    runs.append(run)
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
        _remembered_together(plan),
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
            claim = f"the plan claims {workload.claimed:.3f}"
            yield workload, f"measured {workload.ratio:.3f}, but {claim}"


def _narrowed_results(
    plan: Plan, document: VerifyPerformance, worse: Mapping[WorkloadKey, str]
) -> Iterator[ScoredWorkload]:
    """Yields the plan's results, and base for other slower workloads that the plan affected."""

    def keep_base(scored: ScoredWorkload, reason: str) -> ScoredWorkload:
        choice = Choice(decision="keep base", variant=None, reason=reason)
        return scored.model_copy(update={"choice": choice, "variants": ()})

    planned_keys = set()
    for scored in plan.results:
        key = workload_key(scored.algorithm, scored.workload)
        planned_keys.add(key)
        yield keep_base(scored, worse[key]) if key in worse else scored
    result_by_benchmark = {result.algorithm: result for result in plan.results}
    for measured in document.workloads:
        key = workload_key(measured.benchmark, measured.workload)
        if key in worse and key not in planned_keys:
            similar = result_by_benchmark.get(measured.benchmark, plan.results[0])
            types = {f"{axis}{{ct}}": value for axis, value in measured.workload.items()}
            update = {"algorithm": measured.benchmark, "workload": types}
            yield keep_base(similar.model_copy(update=update), worse[key])


def _remembered_together(plan: Plan) -> Callable[[Sequence[PlacedResult]], Together]:
    """Chooses for several workloads as the plan did, and nothing if any must keep its values."""
    choose_whole = remembered(plan.joint)

    def choose(cases: Sequence[PlacedResult]) -> Together:
        unused = [case.measurement.name for case in cases if not case.used]
        if unused:
            return Together((), f"{', '.join(unused)} is left to the fallback")
        try:
            return choose_whole(cases)
        except InputError:
            return Together((), "no known variant suits the remaining workloads")

    return choose


# Preparing a change of a tree's headers for measuring.


def prepare_trees(
    session: Session,
    base: str | None,
    where: Filter,
    arch: str,
    toolchain: Toolchain,
    *,
    everything: bool = False,
    jobs: int | None = None,
) -> PreparedChange:
    """Prepares the workloads whose machine code differs from the base."""
    before, _ = find_base_tree(session, base)
    code = find_changed_code(
        session, before, where, arch, toolchain, everything=everything, jobs=jobs
    )
    refused = dict(code.refused)
    runs: dict[Point, Runs] = {}
    for point, workloads in code.different.items():
        try:
            runs[point] = _change_runs(before, session, arch, point, workloads)
        except InputError as error:
            refused[point] = error.in_line
    claims, after = claims_of(before.plan, code), session.cub.title
    return PreparedChange(
        before.label, after, runs, code.same, refused, claims, code.remarks, code.entries
    )


def _change_runs(
    base: Base, session: Session, arch: str, point: Point, workloads: tuple[Workload, Workload]
) -> Runs:
    """Returns how a workload runs before and after a change, by sub-benchmark."""
    assert base.cub is not None
    sides = runs_of(base.cub, workloads[0]), runs_of(session.cub, workloads[1])
    candidates = (Candidate(AFTER, None, session.cub.include_folders),)
    name, includes = point_name(point), base.includes
    return [
        (before, WorkloadToCompile(name, arch, includes, inputs_text(before), renders, candidates))
        for before, after in zip(*sides, strict=True)
        for renders in (_renders(before, after),)
    ]


def _renders(before: WorkloadRun, after: WorkloadRun) -> Renders:
    def render(candidates: Sequence[Candidate]) -> str:
        run = after if candidates[0].label == AFTER else before
        return variants_text(run, [None] * len(candidates))

    return render


# The scores that a plan claims for the workloads that it changed.


def claims_of(plan: Plan | None, code: ChangedCode) -> Claims:
    """Returns the scores of what a plan writes, with a margin for the noise of the runs.

    Without a plan, uses the scores in the comments of changed entries, whose noise is unknown.
    """
    if plan is None:
        places = code.entries or {}
        return {
            workload_key(name, dict(axes)): (code.said[place], code.said[place])
            for name, axes in code.different
            if (place := places.get((name, axes))) is not None and place in code.said
        }
    chosen = {workload_key(scored.algorithm, scored.workload): scored for scored in plan.results}
    claims = {}
    for action in plan.written:
        if action.scores and not action.legacy:
            key, score = workload_key(action.benchmark, action.workload), action.scores[0]
            claims[key] = score, score - _score_uncertainty(chosen.get(key))
    return claims


def _score_uncertainty(scored: ScoredWorkload | None) -> float:
    """Returns how much a score may be too high because of the noise of its runs."""
    choice = scored.choice if scored else None
    if choice is None or choice.noise is None:
        return 0.0
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * choice.noise / math.sqrt(choice.runs)


MADE = "// Made by policygen"
LARGEST = 16 << 20
"""Maximum size in bytes; a header with all the selectors of CUB is smaller."""
_NAMESPACE = re.compile(r"^namespace ([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)$", re.M)
_SELECTOR = re.compile(r"^struct ([A-Za-z_]\w*)$", re.M)
_CPP20 = re.compile(r"^// Needs CUB .* and C\+\+20\.$", re.M)


@dataclass(frozen=True, slots=True)
class EmittedSelectors:
    """What a header made by `emit` defines."""

    path: Path
    text: bytes
    namespace: str
    selectors: tuple[str, ...]
    std: int


# Comparing a tree with and without a header made by `emit`.


def read_emitted(path: Path) -> EmittedSelectors:
    """Reads a header made by `emit`. Other headers do not say what their selectors are for."""
    data = read_named(path, LARGEST)
    text = data.decode("utf-8", "replace")
    namespace, selectors = _NAMESPACE.search(text), tuple(_SELECTOR.findall(text))
    if not text.startswith(MADE) or namespace is None or not selectors:
        raise InputError(
            f"{path}: not a policy selector header written by policygen",
            "policygen emit and policygen tune write such headers.",
        )
    return EmittedSelectors(path, data, namespace[1], selectors, 20 if _CPP20.search(text) else 17)


def prepare_header(
    session: Session, path: Path, where: Filter, arch: str, toolchain: Toolchain
) -> PreparedChange:
    """Prepares the workloads for which a header selects a different policy than CUB itself."""
    check_takes_selectors(session.cub)
    header = read_emitted(path)
    workloads = {workload.point: workload for workload in chosen_workloads(session, where)}
    selectors = [
        selector
        for name in header.selectors
        for selector in selectors_named(name, session.cub.bindings)
        if any(point[0] == selector.benchmark.name for point in workloads)
    ]
    if not selectors:
        raise InputError(f"{path}: has no selector for the workloads chosen by -R and -a")
    meanings = ask_public(
        session.cub,
        [selector.benchmark for selector in selectors],
        arch,
        toolchain,
        progress=session.progress,
    )
    policies = _header_policies(session, header, meanings, arch, toolchain)
    runs: dict[Point, Runs] = {}
    unchanged, refused = [], {}
    for point, meaning in meanings.items():
        if point not in workloads:
            continue
        policy = as_policy(meaning.fields, policies[point, arch].fields)
        if policy == meaning.base:
            unchanged.append(point)
            continue
        try:
            workload_runs = runs_of(session.cub, workloads[point])
        except InputError as error:
            refused[point] = error.in_line
            continue
        candidates = (Candidate(AFTER, policy),)
        runs[point] = [(run, to_compile(meaning, run, candidates)) for run in workload_runs]
    before, after = f"{session.cub.title} by itself", f"with {path.name}"
    return PreparedChange(before, after, runs, tuple(unchanged), refused, {})


def _header_policies(
    session: Session,
    header: EmittedSelectors,
    meanings: dict[Point, PublicWorkload],
    arch: str,
    toolchain: Toolchain,
) -> Policies:
    """Asks the compiler what the header's selectors return."""
    include = f"{shipped().tree.tunings}/{header.path.name}"
    tree = QueriedTree(
        session.cub.bindings.at(session.cub.version),
        (overlay(header.path.name, header.text), *session.cub.include_folders),
        {},
    )
    questions = []
    for meaning in {point[0]: meaning for point, meaning in meanings.items()}.values():
        own, paths = meaning.selector, tuple(path for path, _ in leaves(meaning.fields))
        name = f"::{header.namespace}::{own.selector.name}{own.instantiated}"
        questions.append(Question(own.site, own.benchmark, name, paths, includes=(include,)))
    progress = session.progress
    return ask_policies(
        questions, tree, toolchain, archs=(arch,), std=header.std, progress=progress
    )
