"""From databases to a plan: what results would change in a tree, and why."""

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
from policygen.app.compilers import open_tree
from policygen.app.databases import Ranked, ranked
from policygen.app.effect import Planned, families_again, with_families
from policygen.app.emit import taken_by_selectors
from policygen.app.inputs import ResultFiles
from policygen.app.reading import looked
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
from policygen.planning.measured import RUN, base_remarks, measurements, related, several
from policygen.planning.memory import check_tree, remembered
from policygen.planning.places import PlacedResult
from policygen.planning.plan import Planner
from policygen.planning.saved import again, check_decisions, check_same, served
from policygen.report.console import plural
from policygen.results.cases import NOT_ASKED, split
from policygen.results.choice import Can
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


Saved = TypeVar("Saved", bound=Document)


# Documents that were saved, and are given back.


def read_document(path: Path, kind: type[Saved], called: str, remedy: str) -> Saved:
    """A document of a file; one of another kind or version is told, with the place."""
    try:
        return kind.model_validate_json(opening.read_document(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{path} is no {called}: {place + ': ' if place else ''}{first['msg']}", remedy
        ) from error


OWN = "my_tunings.cuh"
LIMIT = 3
"""Of benchmarks: more would take longer than the plan."""
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
    """What counts of what was measured: of an architecture's GPU, and once for each workload."""

    def counts(self, action: Action) -> bool:
        """Whether an action is about it; another run of it is rejected for that."""
        one = self.known.get(action.point)
        return one is not None and all(getattr(one, name) == getattr(action, name) for name in RUN)

    @property
    def options(self) -> Options:
        """How it was made."""
        return self.plan.options

    def of(self, name: str) -> tuple[ScoredWorkload, ...]:
        """What is measured of a benchmark, and what may share an entry with it."""
        mine, others = split(self.workloads, _exactly(name), {})
        return (*mine, *related(mine, others, self.session.cub.bindings))


# What would take results that a plan rejects: said where the compiler agrees, with the command.


def asked_of(
    session: Session,
    results: Ranked,
    planner: Planner,
    workloads: Sequence[ScoredWorkload],
    plan: Plan,
    given: Given,
) -> Rejecting:
    """The same, with what counts of what was measured."""
    options = plan.options
    known, _ = measurements(workloads, session.cub.bindings, options.arch, force=options.force)
    counted = {one.point: one.scored for one in known}
    return Rejecting(session, results, planner, workloads, plan, given, counted)


def find_ways(asked: Rejecting) -> tuple[tuple[Way, ...], tuple[str, ...]]:
    """What takes rejected results, benchmark by benchmark, and a remark where some are left out.

    What cannot be asked is not said. The best are asked about: each takes some compiles.
    """
    lost: dict[str, list[Action]] = {}
    for action in asked.plan.actions:
        useful = action.variant and not action.legacy and asked.counts(action)
        if action.decision == "reject" and useful:
            lost.setdefault(action.benchmark, []).append(action)
    ordered = sorted(lost, key=lambda name: -max(_score(action) for action in lost[name]))
    chosen, others = {*ordered[:LIMIT]}, ordered[LIMIT:]
    found: list[Way] = []
    for name, actions in lost.items():
        if name not in chosen:
            continue
        with suppress(PolicygenError):
            found += _split(asked, name, actions)
        with suppress(PolicygenError):
            found += _emit(asked, name, actions)
    if not others:
        return tuple(found), ()
    told = f"what would take rejected results was asked for {LIMIT} of {len(lost)} benchmarks"
    return tuple(found), (f"{told}; -R '{others[0]}$' asks for another one",)


def _score(action: Action) -> float:
    return action.scores[0] if action.scores else 0.0


def _split(asked: Rejecting, name: str, lost: Sequence[Action]) -> Iterator[Way]:
    """An entry for each type, where workloads of one entry want different variants."""
    targets = [action.target for action in asked.plan.actions]
    shared = [action for action in lost if targets.count(action.target) > 1]
    if not shared or asked.options.collisions == "split" or asked.options.narrow:
        return
    options = asked.options.model_copy(update={"collisions": "split"})
    made = replace(asked.planner, options=options).plan(asked.of(name))
    written = {action.point for action in made.actions if action.written}
    taken = [action for action in shared if action.point in written]
    if not taken:
        return
    more = sum(one.arch == options.arch and not one.between for one in made.reached)
    what = "an entry of its own"
    if more:
        what += f"; {plural(more, 'workload')} that nobody measured would get its values, too"
    given = asked.given.model_copy(update={"regex": f"{name}$"})
    command = Typed(asked.session)("plan", *planning(given, options))
    yield Way(kind="split", workloads=_named(taken), what=what, command=command)


def _emit(asked: Rejecting, name: str, lost: Sequence[Action]) -> Iterator[Way]:
    """A selector of one's own: it can say what no entry of the headers can."""
    session, newest = asked.session, _newest()
    own = _takes_selectors(session.cub.version)
    cub = session.cub if own else _at_hand(newest)
    if cub is None:
        selector_for(benchmark_of(name, newest), newest)  # refused where none is public
        taken = list(lost)
    else:
        taken = _selected(asked, name, lost, cub)
    if not taken:
        return
    words = choosing(asked.given, asked.options, f"{name}$", _axes(asked, taken))
    words += ["-o", OWN]
    if own:
        command, what = Typed(session)("emit", *words), SELECTOR
    else:
        first = "" if cub else f"policygen headers fetch {newest} && "
        command = first + shlex.join(["policygen", "emit", *words, "--cub", newest])
        what = f"{SELECTOR}; for CUB {'.'.join(map(str, SINCE))} and later"
        what += "" if cub else ", where emit tells whether it can"
    yield Way(kind="emit", workloads=_named(taken), what=what, command=command)


def _selected(asked: Rejecting, name: str, lost: Sequence[Action], cub: Cub) -> list[Action]:
    """Those of the rejected that a header for a tree returns policies for."""
    told = taken_by_selectors(
        cub,
        asked.results,
        asked.of(name),
        asked.options.arch,
        force=asked.options.force,
        progress=asked.session.progress,
    )
    points = {point_of(one.benchmark, one.workload) for one in told}
    return [one for one in lost if one.point in points]


def _newest() -> str:
    """The newest version that is known."""
    return max((wheel.cub for wheel in shipped().wheels), key=numbers)


def _takes_selectors(version: str) -> bool:
    return numbers(version)[:2] >= SINCE


def _at_hand(version: str) -> Cub | None:
    """A version that was fetched."""
    with suppress(InputError):
        return looked(trees.find(version, Path.cwd()))
    return None


def _axes(asked: Rejecting, taken: Sequence[Action]) -> Sequence[str]:
    """A single workload as its database calls it; of several what was asked for."""
    if len(taken) > 1:
        return asked.given.axes
    found = asked.known[taken[0].point].workload
    return axes({axis_name(axis): value for axis, value in found.items()})


def _exactly(name: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(name)}$")


def _named(actions: Sequence[Action]) -> tuple[Named, ...]:
    return tuple(Named(benchmark=a.benchmark, workload=a.workload) for a in actions)
