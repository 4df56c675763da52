"""Narrows a plan to exclude what measurements showed to be slower."""

from collections.abc import Iterator, Mapping, Sequence

from policygen.app.change import find_base, headers_of, read_before
from policygen.app.effect import Planned, with_families
from policygen.app.performance_trees import WorkloadKey, workload_key
from policygen.app.reading import open_compiler
from policygen.app.session import Session
from policygen.errors import InputError, Problems
from policygen.headers.protocol import TuningTree
from policygen.model.plans import Plan
from policygen.model.results import Choice, ScoredWorkload
from policygen.model.verdicts import VerifyPerformance, WorkloadPerformance
from policygen.model.workload import axes
from policygen.planning.memory import remembered, remembered_next
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.results.together import Together


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
            f"{before.label if before else session.store}: there is no plan to narrow",
            "Only what `policygen apply` has written can be narrowed; leave --base out.",
        )
    worse = {
        workload_key(workload.benchmark, workload.workload): reason
        for workload, reason in _slower_workloads(document)
    }
    if not worse:
        return None
    results = list(_narrowed_results(plan, document, worse))
    names = headers_of(results, session.cub.bindings)
    tree = read_before(before, names)
    if tree.errors:
        raise Problems(tree.errors)
    data, compiler = open_compiler(tree, progress=session.progress)
    sources = TuningTree(tree.cub, compiler.headers, data)
    options = plan.options.model_copy(update={"narrow": True})
    planner = Planner(
        sources,
        options,
        compiler,
        _RememberedTogether(plan),
        next_best=remembered_next(plan.instead),
        spaces=plan.spaces,
    )
    narrowed = planner.plan(results, [f"without {len(worse)} that turned out to be slower"])
    narrowed = with_families(Planned(narrowed, tree, data, compiler), planner, results)
    cub = plan.cub  # the tree before, not the folders of its replaced headers
    return narrowed.model_copy(update={"cub": cub, "given": plan.given})


def _slower_workloads(document: VerifyPerformance) -> Iterator[tuple[WorkloadPerformance, str]]:
    """Yields workloads that must not be merged as they are, with reasons."""
    for workload in document.workloads:
        if workload.failed is not None:
            yield workload, f"after the change it fails: {workload.failed.reason}"
        elif document.too_slow(workload):
            yield workload, f"measured as it was written it is slower: {workload.ratio:.3f}"
        elif slow := [row for row in workload.runtime if document.too_slow(row)]:
            worst = min(slow, key=lambda row: row.ratio)
            where = ", ".join(axes(worst.point))
            yield workload, f"measured as it was written {where} is slower: {worst.ratio:.3f}"
        elif workload.holds is False:
            yield (
                workload,
                f"it is {workload.ratio:.3f}, and was written for {workload.claimed:.3f}",
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
            return Together((), f"{', '.join(unused)} shall keep what it had")
        try:
            return self._whole(cases)
        except InputError:
            return Together((), "no variant is known that suits those that are left")
