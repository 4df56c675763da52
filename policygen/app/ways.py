"""What would take results that a plan rejects: said where the compiler agrees, with the command."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from policygen import tree
from policygen.app.commands import Typed, choosing, planning
from policygen.app.emit import taken_by_selectors
from policygen.app.looking import looked
from policygen.app.ranking import Ranked
from policygen.app.session import Session
from policygen.bindings.recorded import benchmark_of
from policygen.dialects.user.public import SINCE, selector_for
from policygen.errors import InputError, PolicygenError
from policygen.model.cub import Cub
from policygen.model.plan import Action, Given, Named, Options, Plan, Way
from policygen.model.results import ScoredWorkload
from policygen.model.versions import numbers
from policygen.model.workload import Point, axes, axis_name, point_of
from policygen.planning.measured import RUN, measurements, related
from policygen.planning.plan import Planner
from policygen.report.console import plural
from policygen.results.asked import split
from policygen.tree.manifest import shipped

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
        return looked(tree.find(version, Path.cwd()))
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
