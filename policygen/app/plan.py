"""From databases to a plan: what results would change in a tree, and why."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from policygen.app.bases import headers_of, measured_trees, with_measured_bases
from policygen.app.commands import given_of
from policygen.app.compilers import open_tree
from policygen.app.documents import read_document
from policygen.app.families import families_again, with_families
from policygen.app.inputs import ResultFiles
from policygen.app.planned import Planned
from policygen.app.ranking import Ranked, ranked
from policygen.app.session import Session
from policygen.app.ways import asked_of, find_ways
from policygen.dialects.protocol import TuningTree
from policygen.errors import InputError
from policygen.model.plan import Given, Options, Plan
from policygen.model.workload import in_words
from policygen.planning.again import again, check_decisions, check_same
from policygen.planning.bases import base_remarks, several
from policygen.planning.files import check_tree
from policygen.planning.legacy import part
from policygen.planning.memory import remembered
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.planning.served import served
from policygen.results.asked import NOT_ASKED
from policygen.results.choose import Can
from policygen.results.together import Together

__all__ = ["Options", "plan_ranked", "plan_tunings", "read_plan"]


def plan_tunings(
    session: Session,
    results: ResultFiles,
    options: Options,
    *,
    measured_on: str | None = None,
    prove: bool = True,
    ways: bool = False,
) -> Planned:
    """Plans what results would change in a tree; writes nothing to it.

    With `ways` it says, too, what would take what is rejected: that is asked of the compiler.
    """
    given = given_of(results, measured_on)
    with ranked(results, options.rules, session.note) as found:
        made = plan_ranked(
            session,
            found,
            options,
            measured_on=measured_on,
            prove=prove,
            ways=given if ways and prove else None,
        )
        return replace(made, plan=made.plan.model_copy(update={"given": given}))


def plan_ranked(
    session: Session,
    results: Ranked,
    options: Options,
    *,
    measured_on: str | None = None,
    prove: bool = True,
    ways: Given | None = None,
) -> Planned:
    """A plan for one architecture, of databases that are open.

    `ways` has what was asked for, where what would take rejected results is to be told.
    """
    if options.provenance == "full" and options.date is None:
        today = datetime.now(UTC).date().isoformat()
        options = options.model_copy(update={"date": today})
    version = session.cub.release
    workloads = results.workloads(version)
    names = headers_of(workloads, session.cub.bindings)
    found, data, compiler = open_tree(session.cub, names, progress=session.progress)
    workloads = with_measured_bases(session, workloads, compiler, options.arch, measured_on)

    def together(cases: Sequence[PlacedResult]) -> Together:
        return results.choose([case.measurement.scored for case in cases])

    def next_best(cases: Sequence[PlacedResult], can: Can) -> Together:
        return results.next_best([case.measurement.scored for case in cases], can)

    sources, spaces = TuningTree(found.cub, compiler.headers, data), results.files.spaces
    planner = Planner(sources, options, compiler, together, prove, next_best, spaces=spaces)
    plan = planner.plan(workloads)
    asked = {action.cccl for action in plan.actions if action.before is not None}
    remarks = base_remarks(plan, version, measured_trees(session, measured_on, asked))
    remarks += several(
        (in_words(one.benchmark, one.workload), one.cccl) for one in plan.actions if one.written
    )
    remarks += served(plan, compiler.headers)
    work = Planned(plan, found, data, compiler)
    plan = with_families(work, planner, workloads)
    if not prove and plan.edits:
        told_not = "what the change does, and what later architectures inherit"
        remarks.append(f"--no-prove: nobody asked the compiler {told_not}")
    if ways is not None:
        asked_for = asked_of(session, results, planner, workloads, plan, ways)
        found_ways, more = find_ways(asked_for)
        plan = plan.model_copy(update={"ways": found_ways})
        remarks += more
    told = {
        "actions": tuple(
            results.files.named(one) for one in plan.actions if one.reason != NOT_ASKED
        ),
        "results": tuple(map(results.files.named, plan.results)),
        "remarks": (*remarks, *plan.remarks),
    }
    return replace(work, plan=plan.model_copy(update=told))


def read_plan(session: Session, path: Path) -> Planned:
    """A plan that was kept: its edits are made again, and must be those that it has."""
    remedy = "Make it with: policygen plan --db DB --arch ARCH -o FILE"
    plan, cub = read_document(path, Plan, "plan of this policygen", remedy), session.cub
    if cub.version != plan.cub.version:
        raise InputError(
            f"the plan is for {plan.cub.title}, and the tree is {cub.title}",
            "Make the plan again, or name its tree with --cub.",
        )
    check_decisions(plan)
    names = headers_of(plan.results, cub.bindings)
    found, data, compiler = open_tree(cub, names, progress=session.progress)
    check_tree(plan, data)
    sources, joint = TuningTree(found.cub, compiler.headers, data), remembered(plan.joint)
    planner = Planner(sources, plan.options, compiler, joint, prove=False, spaces=plan.spaces)
    made = again(planner, part(plan, legacy=False), plan.results)
    work = Planned(made, found, data, compiler)
    if plan.options.legacy == "update" and found.cub.has_selectors:
        made = families_again(work, planner, plan)
    check_same(plan, made)
    # What it says of files and reasons is of where it was made.
    told = {name: getattr(plan, name) for name in ("actions", "remarks", "given", "ways")}
    return replace(work, plan=made.model_copy(update=told))
