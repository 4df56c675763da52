"""Turns databases into a plan: which values to change in a tree, and why."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from policygen import opening, trees
from policygen.app.change import headers_of, measured_trees, with_measured_bases
from policygen.app.commands import Typed, choosing, given_of, planning
from policygen.app.databases import Ranked, ranked
from policygen.app.effect import Planned, families_again, with_families
from policygen.app.emit import taken_by_selectors
from policygen.app.filters import check_archs
from policygen.app.inputs import ResultFiles
from policygen.app.reading import open_tree, with_detected_bindings
from policygen.app.session import Session
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError, PolicygenError
from policygen.headers.protocol import TuningTree
from policygen.headers.user.policies import SINCE, selector_for
from policygen.model.plans import Action, Given, Named, Options, Plan, Way
from policygen.model.records import Document
from policygen.model.results import ScoredWorkload
from policygen.model.trees import Cub, numbers
from policygen.model.workload import Point, axes, axis_name, in_words, point_of
from policygen.planning.legacy import part
from policygen.planning.measured import (
    RUN,
    base_remarks,
    measurements,
    mixed_version_remarks,
    related,
)
from policygen.planning.memory import check_tree, remembered
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.planning.saved import check_decisions, check_same, remake_plan, served
from policygen.report.console import plural
from policygen.results.cases import NOT_ASKED, split
from policygen.results.choice import IsWritable
from policygen.results.together import Together
from policygen.trees.manifest import shipped

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
    """Plans what results would change in a tree. Writes nothing to the tree.

    With `ways`, the compiler is also asked what would accept the rejected results.
    """
    check_archs(session.cub, [options.arch])
    given = given_of(results, measured_on)
    with ranked(results, options.rules, session.note) as ranking:
        planned = plan_ranked(
            session,
            ranking,
            options,
            measured_on=measured_on,
            prove=prove,
            ways=given if ways and prove else None,
        )
        return replace(planned, plan=planned.plan.model_copy(update={"given": given}))


def plan_ranked(
    session: Session,
    results: Ranked,
    options: Options,
    *,
    measured_on: str | None = None,
    prove: bool = True,
    ways: Given | None = None,
) -> Planned:
    """Makes a plan for one architecture from open databases.

    If `ways` is given, the plan also says what would accept the rejected results.
    """
    if options.provenance == "full" and options.date is None:
        today = datetime.now(UTC).date().isoformat()
        options = options.model_copy(update={"date": today})
    version = session.cub.release
    workloads = results.workloads(version)
    names = headers_of(workloads, session.cub.bindings)
    tree, data, compiler = open_tree(session.cub, names, progress=session.progress)
    workloads = with_measured_bases(session, workloads, compiler, options.arch, measured_on)

    def choose_together(cases: Sequence[PlacedResult]) -> Together:
        return results.choose([case.measurement.scored for case in cases])

    def next_best(cases: Sequence[PlacedResult], can: IsWritable) -> Together:
        return results.next_best([case.measurement.scored for case in cases], can)

    sources, spaces = TuningTree(tree.cub, compiler.headers, data), results.files.spaces
    planner = Planner(sources, options, compiler, choose_together, prove, next_best, spaces=spaces)
    plan = planner.plan(workloads)
    replaced_versions = {action.cccl for action in plan.actions if action.before is not None}
    remarks = base_remarks(plan, version, measured_trees(session, measured_on, replaced_versions))
    remarks += mixed_version_remarks(
        (in_words(action.benchmark, action.workload), action.cccl)
        for action in plan.actions
        if action.written
    )
    remarks += served(plan, compiler.headers)
    draft = Planned(plan, tree, data, compiler)
    plan = with_families(draft, planner, workloads)
    if not prove and plan.edits:
        unproven = "what the change does, and what later architectures inherit"
        remarks.append(f"--no-prove: nobody asked the compiler {unproven}")
    if ways is not None:
        rejecting = asked_of(session, results, planner, workloads, plan, ways)
        alternatives, more_remarks = find_ways(rejecting)
        plan = plan.model_copy(update={"ways": alternatives})
        remarks += more_remarks
    update = {
        "actions": tuple(map(results.files.named, _asked_actions(plan))),
        "results": tuple(map(results.files.named, plan.results)),
        "remarks": (*remarks, *plan.remarks),
    }
    return replace(draft, plan=plan.model_copy(update=update))


def _asked_actions(plan: Plan) -> tuple[Action, ...]:
    """Returns the actions that a plan tells: those on results that no filter left out."""
    return tuple(action for action in plan.actions if action.reason != NOT_ASKED)


def read_plan(session: Session, path: Path) -> Planned:
    """Reads a saved plan, recomputes its edits, and verifies that they are the same."""
    remedy = "Make it with: policygen plan --db DB --arch ARCH -o FILE"
    plan, cub = read_document(path, Plan, "plan of this policygen", remedy), session.cub
    if cub.version != plan.cub.version:
        raise InputError(
            f"the plan is for {plan.cub.title}, and the tree is {cub.title}",
            "Make the plan again, or name its tree with --cub.",
        )
    check_decisions(plan)
    names = headers_of(plan.results, cub.bindings)
    tree, data, compiler = open_tree(cub, names, progress=session.progress)
    check_tree(plan, data)
    sources, joint = TuningTree(tree.cub, compiler.headers, data), remembered(plan.joint)
    planner = Planner(sources, plan.options, compiler, joint, prove=False, spaces=plan.spaces)
    replanned = remake_plan(planner, part(plan, legacy=False), plan.results)
    draft = Planned(replanned, tree, data, compiler)
    if plan.options.legacy == "update" and tree.cub.has_selectors:
        replanned = families_again(draft, planner, plan)
    replanned = replanned.model_copy(update={"actions": _asked_actions(replanned)})
    check_same(plan, replanned)
    # File names and reasons stay as they were where the plan was made.
    saved_fields = {name: getattr(plan, name) for name in ("actions", "remarks", "given", "ways")}
    return replace(draft, plan=replanned.model_copy(update=saved_fields))


Saved = TypeVar("Saved", bound=Document)


# Reading saved documents.


def read_document(path: Path, kind: type[Saved], description: str, remedy: str) -> Saved:
    """Reads a document from a file. Reports the location if its kind or version is wrong."""
    try:
        return kind.model_validate_json(opening.read_document(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path} is no {description}: {location + ': ' if location else ''}{first['msg']}",
            remedy,
        ) from error


OWN = "my_tunings.cuh"
LIMIT = 3
"""Maximum number of benchmarks to examine: more would take longer than the plan itself."""
SELECTOR = "a policy selector in the calls of your own program; CUB stays as it is"


@dataclass(frozen=True, slots=True)
class Rejecting:
    """A plan that rejects results, and what it was made from."""

    session: Session
    results: Ranked
    planner: Planner
    workloads: Sequence[ScoredWorkload]
    plan: Plan
    given: Given
    known: Mapping[Point, ScoredWorkload]
    """The scored results that count: those for the architecture's GPU, once per workload."""

    def counts(self, action: Action) -> bool:
        """Returns whether an action is about the result that counts, not about another run."""
        scored = self.known.get(action.point)
        return scored is not None and all(
            getattr(scored, name) == getattr(action, name) for name in RUN
        )

    @property
    def options(self) -> Options:
        """The plan's options."""
        return self.plan.options

    def of(self, name: str) -> tuple[ScoredWorkload, ...]:
        """Returns the results of a benchmark, and those that may share an entry with it."""
        matching, rest = split(self.workloads, _exact_pattern(name), {})
        return (*matching, *related(matching, rest, self.session.cub.bindings))


# Alternatives that accept rejected results, with their commands, as confirmed by the compiler.


def asked_of(
    session: Session,
    results: Ranked,
    planner: Planner,
    workloads: Sequence[ScoredWorkload],
    plan: Plan,
    given: Given,
) -> Rejecting:
    """Collects the plan's inputs with the measurements that count."""
    options = plan.options
    measured, _ = measurements(workloads, session.cub.bindings, options.arch, force=options.force)
    scored_by_point = {measurement.point: measurement.scored for measurement in measured}
    return Rejecting(session, results, planner, workloads, plan, given, scored_by_point)


def find_ways(rejecting: Rejecting) -> tuple[tuple[Way, ...], tuple[str, ...]]:
    """Finds alternatives for rejected results by benchmark, and remarks on what is skipped.

    Only the benchmarks with the best scores are examined, because each takes some compiles. What
    cannot be resolved is omitted.
    """
    rejected: dict[str, list[Action]] = {}
    for action in rejecting.plan.actions:
        useful = action.variant and not action.legacy and rejecting.counts(action)
        if action.decision == "reject" and useful:
            rejected.setdefault(action.benchmark, []).append(action)
    ordered = sorted(rejected, key=lambda name: -max(_score(action) for action in rejected[name]))
    chosen, remaining = {*ordered[:LIMIT]}, ordered[LIMIT:]
    ways: list[Way] = []
    for name, actions in rejected.items():
        if name not in chosen:
            continue
        with suppress(PolicygenError):
            ways += _split_alternatives(rejecting, name, actions)
        with suppress(PolicygenError):
            ways += _emit_alternatives(rejecting, name, actions)
    if not remaining:
        return tuple(ways), ()
    summary = (
        f"what would take rejected results was asked for {LIMIT} of {len(rejected)} benchmarks"
    )
    return tuple(ways), (f"{summary}; -R '{remaining[0]}$' asks for another one",)


def _score(action: Action) -> float:
    return action.scores[0] if action.scores else 0.0


def _split_alternatives(
    rejecting: Rejecting, name: str, rejected: Sequence[Action]
) -> Iterator[Way]:
    """Proposes an entry per type if workloads that share an entry need different variants."""
    targets = [action.target for action in rejecting.plan.actions]
    shared = [action for action in rejected if targets.count(action.target) > 1]
    if not shared or rejecting.options.collisions == "split" or rejecting.options.narrow:
        return
    options = rejecting.options.model_copy(update={"collisions": "split"})
    split_plan = replace(rejecting.planner, options=options).plan(rejecting.of(name))
    written = {action.point for action in split_plan.actions if action.written}
    taken = [action for action in shared if action.point in written]
    if not taken:
        return
    unmeasured = sum(
        reached.arch == options.arch and not reached.between for reached in split_plan.reached
    )
    description = "an entry of its own"
    if unmeasured:
        description += (
            f"; {plural(unmeasured, 'workload')} that nobody measured would get its values, too"
        )
    given = rejecting.given.model_copy(update={"regex": f"{name}$"})
    command = Typed(rejecting.session)("plan", *planning(given, options))
    yield Way(kind="split", workloads=_named_workloads(taken), what=description, command=command)


def _emit_alternatives(
    rejecting: Rejecting, name: str, rejected: Sequence[Action]
) -> Iterator[Way]:
    """Proposes a custom selector, which can express what no entry of the headers can."""
    session, newest = rejecting.session, _newest_version()
    supported = _takes_selectors(session.cub.version)
    cub = session.cub if supported else _fetched_tree(newest)
    if cub is None:
        selector_for(benchmark_of(name, newest), newest)  # raises if no selector is public
        taken = list(rejected)
    else:
        taken = _taken_by_selector(rejecting, name, rejected, cub)
    if not taken:
        return
    words = choosing(rejecting.given, rejecting.options, f"{name}$", _axes(rejecting, taken))
    words += ["-o", OWN]
    if supported:
        command, description = Typed(session)("emit", *words), SELECTOR
    else:
        prefix = "" if cub else f"policygen headers fetch {newest} && "
        command = prefix + shlex.join(["policygen", "emit", *words, "--cub", newest])
        description = f"{SELECTOR}; for CUB {'.'.join(map(str, SINCE))} and later"
        description += "" if cub else ", where emit tells whether it can"
    yield Way(kind="emit", workloads=_named_workloads(taken), what=description, command=command)


def _taken_by_selector(
    rejecting: Rejecting, name: str, rejected: Sequence[Action], cub: Cub
) -> list[Action]:
    """Returns the rejected results that a generated header has policies for."""
    taken = taken_by_selectors(
        cub,
        rejecting.results,
        rejecting.of(name),
        rejecting.options.arch,
        force=rejecting.options.force,
        progress=rejecting.session.progress,
    )
    points = {point_of(result.benchmark, result.workload) for result in taken}
    return [action for action in rejected if action.point in points]


def _newest_version() -> str:
    """Returns the newest known version."""
    return max((wheel.cub for wheel in shipped().wheels), key=numbers)


def _takes_selectors(version: str) -> bool:
    return numbers(version)[:2] >= SINCE


def _fetched_tree(version: str) -> Cub | None:
    """Returns a version's tree if it was fetched."""
    with suppress(InputError):
        return with_detected_bindings(trees.find(version, Path.cwd()))
    return None


def _axes(rejecting: Rejecting, taken: Sequence[Action]) -> Sequence[str]:
    """Returns the axes of a single workload as its database names them, or else the given axes."""
    if len(taken) > 1:
        return rejecting.given.axes
    workload = rejecting.known[taken[0].point].workload
    return axes({axis_name(axis): value for axis, value in workload.items()})


def _exact_pattern(name: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(name)}$")


def _named_workloads(actions: Sequence[Action]) -> tuple[Named, ...]:
    return tuple(Named(benchmark=a.benchmark, workload=a.workload) for a in actions)
