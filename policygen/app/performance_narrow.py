"""A plan without what a GPU has shown to be slower: the loop of apply, measure, narrow."""

from collections.abc import Iterator, Mapping, Sequence

from policygen.app.change import find_base, headers_of, read_before
from policygen.app.compilers import open_compiler
from policygen.app.effect import Planned, with_families
from policygen.app.performance_trees import WorkloadKey, workload_key
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

    Workloads that shared an entry with a faster one keep what they had, by an entry of their own
    where a type tells them apart. Nothing where there is nothing to leave out.
    """
    before = find_base(session, base)
    plan = before.plan if before else None
    if before is None or plan is None:
        raise InputError(
            f"{before.label if before else session.store}: there is no plan to narrow",
            "Only what `policygen apply` has written can be narrowed; leave --base out.",
        )
    worse = {workload_key(one.benchmark, one.workload): why for one, why in _worse(document)}
    if not worse:
        return None
    results = list(_results(plan, document, worse))
    names = headers_of(results, session.cub.bindings)
    found = read_before(before, names)
    if found.errors:
        raise Problems(found.errors)
    data, compiler = open_compiler(found, progress=session.progress)
    sources = TuningTree(found.cub, compiler.headers, data)
    options = plan.options.model_copy(update={"narrow": True})
    planner = Planner(
        sources,
        options,
        compiler,
        _RememberedTogether(plan),
        next_best=remembered_next(plan.instead),
        spaces=plan.spaces,
    )
    made = planner.plan(results, [f"without {len(worse)} that turned out to be slower"])
    made = with_families(Planned(made, found, data, compiler), planner, results)
    cub = plan.cub  # the tree before, as a name and not as folders of replaced headers
    return made.model_copy(update={"cub": cub, "given": plan.given})


def _worse(document: VerifyPerformance) -> Iterator[tuple[WorkloadPerformance, str]]:
    """What must not be merged as it is, and why."""
    for one in document.workloads:
        if one.failed is not None:
            yield one, f"after the change it fails: {one.failed.reason}"
        elif document.too_slow(one):
            yield one, f"measured as it was written it is slower: {one.ratio:.3f}"
        elif slow := [row for row in one.runtime if document.too_slow(row)]:
            worst = min(slow, key=lambda row: row.ratio)
            where = ", ".join(axes(worst.point))
            yield one, f"measured as it was written {where} is slower: {worst.ratio:.3f}"
        elif one.holds is False:
            yield one, f"it is {one.ratio:.3f}, and was written for {one.claimed:.3f}"


def _results(
    plan: Plan, document: VerifyPerformance, worse: Mapping[WorkloadKey, str]
) -> Iterator[ScoredWorkload]:
    """The plan's results, and of those that it reached besides what they shall keep."""
    known = set()
    for one in plan.results:
        key = workload_key(one.algorithm, one.workload)
        known.add(key)
        yield _kept(one, worse[key]) if key in worse else one
    like = {one.algorithm: one for one in plan.results}
    for told in document.workloads:
        key = workload_key(told.benchmark, told.workload)
        if key in worse and key not in known:
            other = like.get(told.benchmark, plan.results[0])
            types = {f"{axis}{{ct}}": value for axis, value in told.workload.items()}
            named = other.model_copy(update={"algorithm": told.benchmark, "workload": types})
            yield _kept(named, worse[key])


def _kept(one: ScoredWorkload, why: str) -> ScoredWorkload:
    choice = Choice(decision="keep base", variant=None, reason=why)
    return one.model_copy(update={"choice": choice, "variants": ()})


class _RememberedTogether:
    """Chooses for several workloads as the plan did; for none that shall keep what it has."""

    def __init__(self, plan: Plan) -> None:
        self._whole = remembered(plan.joint)

    def __call__(self, cases: Sequence[PlacedResult]) -> Together:
        kept = [case.measurement.name for case in cases if not case.used]
        if kept:
            return Together((), f"{', '.join(kept)} shall keep what it had")
        try:
            return self._whole(cases)
        except InputError:
            return Together((), "no variant is known that suits those that are left")
