"""From results to a plan: decide, write, and ask whether the writing has the effect."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.bindings.words import next_arch
from policygen.errors import EffectError, InputError
from policygen.headers.dialects import dialect_of
from policygen.headers.protocol import Dialect, EntryWrite, HeaderEdits, NotKeptError, TuningTree
from policygen.headers.spelling import splice
from policygen.model.plans import (
    Action,
    Held,
    Named,
    Options,
    Plan,
    PlannedEdit,
    PlannedFile,
    Reached,
    Said,
    Unsaid,
)
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Delta, DeltaRow, Values
from policygen.model.workload import Point
from policygen.planning.decide import (
    ChooseNext,
    ChooseTogether,
    Decided,
    decide,
    none_other,
    settled_without,
)
from policygen.planning.judge import Oracle, WhyNot
from policygen.planning.losses import (
    as_reached,
    changed_between,
    changed_later,
    harmed,
    in_spite,
    not_as_written,
    outranked,
    points_of,
    strayed,
)
from policygen.planning.measured import Measurement, Refused, Spaces, measurements
from policygen.planning.memory import Memory, chosen_alone, planned_file
from policygen.planning.places import (
    Left,
    PlacedResult,
    bounded,
    by_entry,
    find_places,
    leaving,
    narrowed,
    said_in_full,
    unsaid,
    unsayable,
)

INHERIT = "Let later architectures inherit: --reach later"


@dataclass(frozen=True, slots=True)
class Draft:
    """Headers as they would be."""

    edits: Mapping[str, HeaderEdits]
    after: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Settled:
    """What becomes of all cases, and what had to be known for that besides the results."""

    outcome: Decided
    draft: Draft
    reached: Sequence[Reached] = ()
    held: Mapping[Point, str] = field(default_factory=dict)
    bounded: Collection[Point] = ()
    said: Mapping[Point, Values] = field(default_factory=dict)
    left: Mapping[Point, Left] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planner:
    """What a plan is made from."""

    sources: TuningTree
    options: Options
    oracle: Oracle
    together: ChooseTogether
    prove: bool = True
    """Whether to ask what the change does, and to leave out what has no effect."""
    next_best: ChooseNext = none_other
    """What to look through where an entry cannot say the best variant."""
    held: Mapping[Point, str] = field(default_factory=dict)
    """Workloads that stay as they are, whatever was measured, and why."""
    spaces: Spaces = field(default_factory=dict)
    """What was searched, where the user says so."""

    @property
    def dialect(self) -> Dialect:
        """How the tree's tunings are spelled."""
        below = next_arch(self.options.arch) if self.options.reach == "only" else None
        return dialect_of(self.sources, self.options.arch, below)

    def plan(self, scored: Sequence[ScoredWorkload], remarks: Sequence[str] = ()) -> Plan:
        """The actions for all workloads, and the edits that they come to."""
        memory = Memory(self.together, self.next_best)
        planner = replace(self, together=memory, next_best=memory.next_best)
        made = self.settled(scored, planner._effective)
        told = {"joint": memory.joint, "instead": memory.instead}
        return made.model_copy(update={"remarks": tuple(remarks), **told})

    def settled(
        self, scored: Sequence[ScoredWorkload], settle: Callable[[Sequence[PlacedResult]], Settled]
    ) -> Plan:
        """The same, by a way to settle what becomes of the cases."""
        cub, options = self.sources.cub, self.options
        known, refused = measurements(
            scored, cub.bindings, options.arch, force=options.force, spaces=self.spaces
        )
        cases, actions = find_places(known, self.dialect, self.oracle, options.arch)
        settled = settle(cases)
        outcome, draft = settled.outcome, settled.draft
        return Plan(
            cub=cub,
            toolchain=self.oracle.toolchain,
            options=options,
            actions=tuple(_in_order(scored, known, [*outcome.actions, *actions], refused)),
            files=_files(self.sources, draft),
            edits=_edits(draft),
            policies=tuple(p for edits in draft.edits.values() for p in edits.policies),
            reached=tuple(settled.reached),
            results=tuple(map(chosen_alone, scored)),
            spaces={
                name: tuple(self.spaces[name])
                for name in sorted({one.algorithm for one in scored} & self.spaces.keys())
            },
            held=tuple(
                Held(benchmark=name, workload=dict(workload), reason=reason)
                for (name, workload), reason in settled.held.items()
                if (name, workload) not in self.held
            ),
            bounded=tuple(
                Named(benchmark=name, workload=dict(workload))
                for name, workload in sorted(settled.bounded)
            ),
            said=tuple(
                Said(benchmark=name, workload=dict(workload), shown=dict(shown))
                for (name, workload), shown in sorted(settled.said.items())
            ),
            unsaid=tuple(
                Unsaid(benchmark=name, workload=dict(workload), shown=dict(shown), reason=reason)
                for (name, workload), (shown, reason) in sorted(settled.left.items())
            ),
        )

    def _effective(self, cases: Sequence[PlacedResult]) -> Settled:
        """Decides again without what turns out to have no effect, until all has."""
        dead: dict[Point, str] = dict(self.held)
        ends: set[Point] = set()
        said: dict[Point, Values] = {}
        left: dict[Point, Left] = {}
        placed = {case.measurement.point: case for case in cases}
        arch = self.options.arch
        while True:
            outcome = self.decided(cases, dead)
            if alone := unmet(cases, outcome.actions):
                dead |= alone
                continue
            try:
                draft = self.drafted(outcome.writes)
            except NotWritableError as error:
                bare = {
                    p: Left(said.pop(p), error.reasons[p])
                    for p in error.reasons
                    if p in said and p not in ends
                }
                cases = leaving([_as_was(case, bare, placed) for case in cases], bare)
                left |= bare
                dead |= {p: reason for p, reason in error.reasons.items() if p not in bare}
                continue
            if not self.prove:
                return Settled(outcome, draft, held=dead)
            try:
                compared = self._compare(draft)
            except EffectError as error:
                dead |= _uncompiled(outcome.writes, error)
                continue
            others = unsaid(cases, outcome.actions, compared, arch)
            cases, more = said_in_full(cases, others)
            if more:
                said |= more
                continue
            if bare := unsayable(cases, outcome.actions, compared, others, arch):
                cases = leaving(cases, bare)
                left |= bare
                continue
            lost = (
                not_as_written(cases, outcome, compared, arch, self._why_not(draft))
                or harmed(cases, outcome, compared, arch)
                or strayed(outcome, compared, arch)
            )
            if not lost:
                cases, moved_in = self._narrowed(cases, outcome, compared)
                if moved_in:
                    continue
                try:
                    kept = self._kept(outcome, draft, compared)
                    return Settled(*kept, dead, ends, said, left)
                except NotKeptError as error:
                    lost = self._not_kept(outcome, error)
                    cases, moved = bounded(cases, lost, self.dialect)
                    ends |= moved
                    lost = {point: lost[point] for point in lost if point not in moved}
            dead |= lost

    def _narrowed(
        self, cases: Sequence[PlacedResult], outcome: Decided, compared: Delta[Values]
    ) -> tuple[list[PlacedResult], bool]:
        """The same with entries for their types alone, where others change that nobody measured."""
        names = {c.benchmark for c in self._shared(outcome, compared)}
        return narrowed(cases, points_of(outcome.writes), names)

    def _shared(self, outcome: Decided, compared: Delta[Values]) -> list[DeltaRow[Values]]:
        """What changes on the architecture besides what is written."""
        written = {action.point for action in outcome.actions if action.written}
        arch = self.options.arch
        return [c for c in compared.changes if c.arch == arch and c.point not in written]

    def decided(self, cases: Sequence[PlacedResult], dead: Mapping[Point, str]) -> Decided:
        """What becomes of cases; of some it is known that they stay."""
        outcome = Decided()
        live = [case for case in cases if case.measurement.point not in dead]
        beaten = outranked(live)
        for case in cases:
            if reason := dead.get(case.measurement.point):
                outcome.actions.append(case.rejected(reason))
            elif reason := beaten.get(case.measurement.point):
                outcome.actions.append(settled_without(case, reason))
        for group in by_entry([case for case in live if case.measurement.point not in beaten]):
            outcome.add(decide(group, self.options, self.together, self.next_best))
        return outcome

    def drafted(self, writes: Sequence[EntryWrite]) -> Draft:
        """The headers with some entries written."""
        edits, after = {}, {}
        by_header: dict[str, list[EntryWrite]] = {}
        for write in writes:
            by_header.setdefault(write.header, []).append(write)
        for name, group in by_header.items():
            try:
                found, data = self._header(name, group)
            except InputError as error:
                raise NotWritableError(self._culprits(name, group, error)) from error
            if found.edits:
                edits[name], after[name] = found, data
        return Draft(edits, after)

    def _header(self, name: str, writes: Sequence[EntryWrite]) -> tuple[HeaderEdits, bytes]:
        found = self.dialect.write(name, writes)
        return found, splice(name, self.sources.data[name], found.edits)

    def _culprits(
        self, name: str, writes: Sequence[EntryWrite], error: InputError
    ) -> list[tuple[EntryWrite, InputError]]:
        """The writes that fail alone; all where it is none of them that does."""
        found = []
        for write in writes:
            try:
                self._header(name, [write])
            except InputError as own:
                found.append((write, own))
        return found or [(write, error) for write in writes]

    def _why_not(self, draft: Draft) -> WhyNot:
        return lambda point, arch: self.oracle.why_not(draft.after, point, arch)

    def _compare(self, draft: Draft) -> Delta[Values]:
        return self.oracle.compare(draft.after) if draft.after else Delta((), 0, ())

    def _kept(
        self, outcome: Decided, draft: Draft, compared: Delta[Values]
    ) -> tuple[Decided, Draft, list[Reached]]:
        """What the change reaches besides, and entries that keep it for later architectures."""
        arch = self.options.arch
        shared = self._shared(outcome, compared)
        later, between = changed_later(compared, arch), changed_between(compared, arch)
        pins: list[EntryWrite] = []
        if later and self.options.reach == "only":
            pins = self.dialect.keep(later, self.oracle.tell)
        if pins:
            outcome = replace(outcome, writes=[*outcome.writes, *pins])
            draft = self._pinned(outcome, later)
        reached = [as_reached(c) for c in shared]
        reached += [as_reached(c, kept=bool(pins)) for c in later]
        return outcome, draft, reached + [as_reached(c, between=True) for c in between]

    def _pinned(self, outcome: Decided, later: Sequence[DeltaRow[Values]]) -> Draft:
        """The headers with entries that keep what later architectures had, when those do so."""
        try:
            draft = self.drafted(outcome.writes)
        except NotWritableError as error:
            raise NotKeptError([(change, str(error)) for change in later]) from error
        if left := changed_later(self._compare(draft), self.options.arch):
            raise NotKeptError([(change, in_spite(change)) for change in left])
        return draft

    def _not_kept(self, outcome: Decided, error: NotKeptError) -> dict[Point, str]:
        """What is not written, so that later architectures keep what they had.

        The same workload on the tuned architecture is the cause, else all of its header.
        """
        reasons: dict[Point, str] = {}
        for change, text in error.told:
            reasons.setdefault(change.point, InputError(text, INHERIT).in_line)
        causes: dict[Point, str] = {}
        for write in outcome.writes:
            points = points_of([write])
            first = next((reason for point, reason in reasons.items() if point in points), None)
            if first:
                causes |= {point: reasons.get(point, first) for point in points}
        if causes:
            return causes
        names = {name for name, _ in reasons}
        targets = [a.target for a in outcome.actions if a.benchmark in names]
        headers = {target.header for target in targets if target}
        others = points_of([w for w in outcome.writes if w.header in headers])
        return dict.fromkeys(others or points_of(outcome.writes), next(iter(reasons.values())))


class NotWritableError(Exception):
    """Entries that their header has no place for."""

    def __init__(self, writes: Sequence[tuple[EntryWrite, InputError]]) -> None:
        super().__init__(writes[0][1].message)
        self.reasons = {
            point: error.in_line for write, error in writes for point in points_of([write])
        }


def _uncompiled(writes: Sequence[EntryWrite], error: EffectError) -> dict[Point, str]:
    """The workloads of entries with which a header may not compile; where none is such, it is."""
    added = [write for write in writes if write.spots[0].unsure or write.content.added]
    if not added:
        raise error
    found: dict[Point, str] = {}
    for write in added:
        what = "return" if write.spots[0].ahead else "family"
        reason = f"with a {what} for it the header does not compile"
        found |= dict.fromkeys(points_of([write]), reason)
    return found


def _as_was(
    case: PlacedResult, wanted: Collection[Point], placed: Mapping[Point, PlacedResult]
) -> PlacedResult:
    """A case as it was placed, where that is wanted."""
    point = case.measurement.point
    return placed[point] if point in wanted else case


def _in_order(
    scored: Sequence[ScoredWorkload],
    known: Sequence[Measurement],
    actions: Sequence[Action],
    refused: Sequence[Refused],
) -> list[Action]:
    """In the order of the databases, whatever the tree calls a workload."""
    order = {id(one): position for position, one in enumerate(scored)}
    of_point = {one.point: order[id(one.scored)] for one in known}
    placed = [(of_point[action.point], action) for action in actions]
    placed += [(order[id(one)], action) for one, action in refused]
    return [action for _, action in sorted(placed, key=lambda pair: pair[0])]


def _files(sources: TuningTree, draft: Draft) -> tuple[PlannedFile, ...]:
    return tuple(
        planned_file(name, len(draft.edits[name].edits), sources.data[name], data)
        for name, data in sorted(draft.after.items())
    )


def _edits(draft: Draft) -> tuple[PlannedEdit, ...]:
    return tuple(
        PlannedEdit(path=name, **edit.model_dump())
        for name, found in sorted(draft.edits.items())
        for edit in found.edits
    )


# Benchmarks that are chosen together: one algorithm launches the kernels of both.


def unmet(cases: Sequence[PlacedResult], actions: Sequence[Action]) -> dict[Point, str]:
    """Workloads that would be written without what they were measured with, and why not.

    What was looked at and keeps what it has is settled; what is rejected, or was not measured, is
    not.
    """
    settled = {one.point for one in actions if one.decision != "reject"}
    written = {one.point for one in actions if one.written}
    found: dict[Point, str] = {}
    for case in cases:
        name, workload = case.measurement.point
        for other in case.measurement.benchmark.needs:
            if (name, workload) in written and (other, workload) not in settled:
                reason = f"it is chosen with {other}, which is rejected or has no results"
                found[name, workload] = reason
    return found
