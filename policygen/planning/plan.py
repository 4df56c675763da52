"""Makes a plan from results: decides, drafts the edits, and checks that they have their effect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from policygen.errors import EffectError, InputError
from policygen.headers.dialects import Draft, Drafter, NotWritableError
from policygen.headers.protocol import EntryWrite, NotKeptError, points_of
from policygen.model.arch import arch_number
from policygen.model.plans import (
    Action,
    Held,
    Named,
    Plan,
    PlannedEdit,
    Reached,
    Said,
    Unsaid,
    planned_file,
)
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Delta, DeltaRow, Values
from policygen.model.workload import Point
from policygen.planning.decide import (
    ChooseNext,
    ChooseTogether,
    Memory,
    chosen_alone,
    decide,
    none_other,
    remembered_next,
    settled_without,
)
from policygen.planning.judge import Oracle, judge_inputs
from policygen.planning.losses import (
    changed_later,
    harmed,
    in_spite,
    not_as_written,
    outranked,
    strayed,
)
from policygen.planning.measured import Measurement, Refused, Spaces, measurements
from policygen.planning.places import (
    Decided,
    FixedValues,
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
from policygen.planning.saved import REMEDY


@dataclass(frozen=True, slots=True)
class Settled:
    """What becomes of all cases, and the facts besides the results that decided it."""

    cases: Sequence[PlacedResult]
    held: Mapping[Point, str]
    """Workloads that stay as they are, with the reasons."""
    outcome: Decided
    draft: Draft
    reached: Sequence[Reached] = ()


@dataclass(frozen=True, slots=True)
class Planner(Drafter):
    """Makes plans for one tree."""

    oracle: Oracle
    together: ChooseTogether
    prove: bool = True
    """Whether to compile the change, and to drop what has no effect."""
    compares_inputs: bool = False
    """Whether to compare inputs that no benchmark measures, too, which compiles more."""
    next_best: ChooseNext = none_other
    """How to find another variant if an entry cannot express the best."""
    held: Mapping[Point, str] = field(default_factory=dict)
    """Workloads that stay as they are, whatever was measured, with the reasons."""
    spaces: Spaces = field(default_factory=dict)
    """The searched parameter ranges that the user gave."""

    def plan(self, scored: Sequence[ScoredWorkload], remarks: Sequence[str] = ()) -> Plan:
        """Plans the actions for all workloads, and the resulting edits."""
        memory = Memory(self.together, self.next_best)
        planner = replace(self, together=memory, next_best=memory.next_best)
        plan = self.settled(scored, planner._settle_until_effective)
        memory_fields = {"joint": memory.joint, "instead": memory.instead}
        return plan.model_copy(update={"remarks": tuple(remarks), **memory_fields})

    def settled(
        self, scored: Sequence[ScoredWorkload], settle: Callable[[Sequence[PlacedResult]], Settled]
    ) -> Plan:
        """Makes a plan in which `settle` decides the cases."""
        cub, options = self.sources.cub, self.options
        measured, refused = measurements(
            scored, cub.bindings, options.arch, force=options.force, spaces=self.spaces
        )
        cases, actions = find_places(measured, self.dialect, self.oracle, options.arch)
        settled = settle(cases)
        outcome, draft = settled.outcome, settled.draft
        by_point = sorted(settled.cases, key=lambda case: case.measurement.point)
        placed = [(case.measurement.point, case) for case in by_point]
        return Plan(
            cub=cub,
            toolchain=self.oracle.toolchain,
            options=options,
            actions=tuple(_in_order(scored, measured, [*outcome.actions, *actions], refused)),
            files=tuple(
                planned_file(name, len(draft.edits[name].edits), self.sources.data[name], data)
                for name, data in sorted(draft.after.items())
            ),
            edits=tuple(
                PlannedEdit(path=name, **edit.model_dump())
                for name, header_edits in sorted(draft.edits.items())
                for edit in header_edits.edits
            ),
            policies=tuple(policy for edits in draft.edits.values() for policy in edits.policies),
            reached=tuple(settled.reached),
            results=tuple(map(chosen_alone, scored)),
            spaces={
                name: tuple(self.spaces[name])
                for name in sorted({workload.algorithm for workload in scored} & self.spaces.keys())
            },
            held=tuple(
                Held.of(point, reason=reason)
                for point, reason in settled.held.items()
                if point not in self.held
            ),
            bounded=tuple(Named.of(point) for point, case in placed if case.is_bounded),
            said=tuple(
                Said.of(point, shown=dict(case.said)) for point, case in placed if case.said
            ),
            unsaid=tuple(
                Unsaid.of(point, shown=dict(case.fixed.shown), reason=case.fixed.reason)
                for point, case in placed
                if case.fixed
            ),
        )

    def _settle_until_effective(self, cases: Sequence[PlacedResult]) -> Settled:
        """Applies the rules until none of them revises the attempt."""
        rules = (*WRITING_RULES, *EFFECT_RULES) if self.prove else WRITING_RULES
        attempt = Attempt(cases, self.held)
        while True:
            trial = Trial(self, cases, attempt)
            revised = next((revised for rule in rules if (revised := rule(trial))), None)
            if revised is None:
                return trial.settled()
            attempt = revised

    def decided(
        self, cases: Sequence[PlacedResult], rejected_by_point: Mapping[Point, str]
    ) -> Decided:
        """Decides the cases; those in `rejected_by_point` stay as they are."""
        outcome = Decided()
        open_cases = [case for case in cases if case.measurement.point not in rejected_by_point]
        outranked_by_point = outranked(open_cases)
        for case in cases:
            if reason := rejected_by_point.get(case.measurement.point):
                outcome.actions.append(case.rejected(reason))
            elif reason := outranked_by_point.get(case.measurement.point):
                outcome.actions.append(settled_without(case, reason))
        for group in by_entry(
            [case for case in open_cases if case.measurement.point not in outranked_by_point]
        ):
            outcome.add(decide(group, self.options, self.together, self.next_best))
        return outcome

    def compare(self, draft: Draft) -> Delta[Values]:
        """Compiles the edited headers and compares what they select with what the tree selects."""
        return self.oracle.compare(draft.after) if draft.after else Delta((), 0, ())


@dataclass(frozen=True, slots=True)
class Attempt:
    """The cases of one round, and what earlier rounds rejected."""

    cases: Sequence[PlacedResult]
    rejected: Mapping[Point, str]

    def reject(self, reasons: Mapping[Point, str]) -> "Attempt":
        """The same without some workloads."""
        return replace(self, rejected={**self.rejected, **reasons})

    def with_cases(self, cases: Sequence[PlacedResult] | None) -> "Attempt | None":
        """The same with revised cases; None if none is revised."""
        return None if cases is None else replace(self, cases=cases)


class Trial:
    """One attempt: decided, written and compiled, each step when a rule first needs it."""

    def __init__(self, planner: Planner, placed: Sequence[PlacedResult], attempt: Attempt) -> None:
        self.planner, self.placed, self.attempt = planner, placed, attempt
        self.arch = planner.options.arch

    @cached_property
    def outcome(self) -> Decided:
        """What becomes of each case."""
        return self.planner.decided(self.attempt.cases, self.attempt.rejected)

    @cached_property
    def written(self) -> "Draft | NotWritableError":
        """The edited headers, or why they cannot be written."""
        try:
            return self.planner.drafted(self.outcome.writes)
        except NotWritableError as error:
            return error

    @property
    def draft(self) -> Draft:
        """The edited headers, once they are known to be writable."""
        assert isinstance(self.written, Draft)
        return self.written

    @cached_property
    def compiled(self) -> Delta[Values] | EffectError:
        """What the edited headers change, or why they do not compile."""
        try:
            return self.planner.compare(self.draft)
        except EffectError as error:
            return error

    @property
    def compared(self) -> Delta[Values]:
        """What the edited headers change, once they are known to compile."""
        assert isinstance(self.compiled, Delta)
        return self.compiled

    @property
    def shared(self) -> list[DeltaRow[Values]]:
        """The changes on this architecture to workloads that are not written."""
        written = {action.point for action in self.outcome.actions if action.written}
        changes = self.compared.changes
        return [row for row in changes if row.arch == self.arch and row.point not in written]

    @cached_property
    def after(self) -> Mapping[Point, Values]:
        """What each workload gets on this architecture."""
        after = {row.point: row.after for row in self.compared.changes if row.arch == self.arch}
        return {row.point: after.get(row.point, row.before or {}) for row in self.outcome.actions}

    @cached_property
    def unsaid(self) -> dict[Point, Values]:
        """Measured values that no entry expresses, as the policy has them."""
        return unsaid(self.attempt.cases, self.outcome.actions, self.after)

    @cached_property
    def kept(self) -> tuple[Decided, Draft, list[Reached]] | NotKeptError:
        """What else the change reaches, with entries that preserve later architectures."""
        try:
            return self._kept()
        except NotKeptError as error:
            return error

    def _kept(self) -> tuple[Decided, Draft, list[Reached]]:
        outcome, draft, planner = self.outcome, self.draft, self.planner
        between, lost = self.compared.between, self._lost(self.compared)
        pins = planner.dialect.keep(lost, planner.oracle.tell) if lost else []
        if pins:
            outcome = replace(outcome, writes=[*outcome.writes, *pins])
            draft = self._pinned(outcome, lost)
        pinned = {change.arch for change in lost} if pins else set()
        later = changed_later(self.compared, self.arch)
        later.sort(key=lambda row: row.arch in between)
        rows = [*self.shared, *later]
        return (
            outcome,
            draft,
            [
                Reached.of(
                    row.point, arch=row.arch, kept=row.arch in pinned, between=row.arch in between
                )
                for row in rows
            ],
        )

    def _lost(self, compared: Delta[Values]) -> list[DeltaRow[Values]]:
        """Returns the changes on architectures with GPUs that are to keep their values."""
        keeps, between = self.planner.options.keeps, compared.between
        later = changed_later(compared, self.arch)
        return [change for change in later if change.arch not in between and keeps(change.arch)]

    def _pinned(self, outcome: Decided, lost: Sequence[DeltaRow[Values]]) -> Draft:
        """Drafts the pinning entries, and checks that they preserve later architectures."""
        try:
            draft = self.planner.drafted(outcome.writes)
        except NotWritableError as error:
            raise NotKeptError([(change, str(error)) for change in lost]) from error
        if still_lost := self._lost(self.planner.compare(draft)):
            raise NotKeptError([(change, in_spite(change)) for change in still_lost])
        return draft

    def leaks(self, draft: Draft) -> dict[str, str]:
        """Headers that change inputs on architectures that keep their values, with the first."""
        options, is_compared = self.planner.options, self.planner.compares_inputs and draft.after
        changes = self.planner.oracle.input_changes(draft.after) if is_compared else ()
        leaking = [change for change in judge_inputs(options, changes) if change.leaks]
        return {
            change.header: f"it changes {change.text}; --reaches {','.join(change.leaks)} allows it"
            for change in reversed(leaking)
            if change.header in draft.after
        }

    def settled(self) -> Settled:
        """The result, when no rule revises the attempt."""
        cases, held = self.attempt.cases, self.attempt.rejected
        if not self.planner.prove:
            return Settled(cases, held, self.outcome, self.draft)
        assert not isinstance(self.kept, NotKeptError)
        return Settled(cases, held, *self.kept)


def refuse_without_needed(trial: Trial) -> Attempt | None:
    """Rejects a benchmark's result when that of a benchmark chosen with it is not written."""
    reasons = unmet(trial.attempt.cases, trial.outcome.actions)
    return trial.attempt.reject(reasons) if reasons else None


def refuse_unwritable(trial: Trial) -> Attempt | None:
    """Rejects what has no place in its header, or takes back the extension that has none."""
    if isinstance(trial.written, Draft):
        return None
    cases, reasons = trial.attempt.cases, trial.written.reasons
    extended = {
        point: FixedValues(case.said, reasons[point])
        for case in cases
        if (point := case.measurement.point) in reasons and case.said and not case.is_bounded
    }
    placed = {case.measurement.point: case for case in trial.placed}
    cases = [placed[p] if (p := case.measurement.point) in extended else case for case in cases]
    revised = replace(trial.attempt, cases=leaving(cases, extended))
    return revised.reject({point: reasons[point] for point in reasons if point not in extended})


def refuse_uncompiled(trial: Trial) -> Attempt | None:
    """Rejects the added entries when the headers do not compile with them."""
    if isinstance(trial.compiled, Delta):
        return None
    return trial.attempt.reject(_reject_uncompiled(trial.outcome.writes, trial.compiled))


def say_in_full(trial: Trial) -> Attempt | None:
    """Extends entries that do not express all of what was measured."""
    return trial.attempt.with_cases(said_in_full(trial.attempt.cases, trial.unsaid))


def leave_unsayable(trial: Trial) -> Attempt | None:
    """Looks for another variant where only values that no entry can change are in the way."""
    cases, actions = trial.attempt.cases, trial.outcome.actions
    constraints = unsayable(cases, actions, trial.after, trial.unsaid)
    return trial.attempt.with_cases(leaving(cases, constraints)) if constraints else None


def refuse_without_effect(trial: Trial) -> Attempt | None:
    """Rejects what is not selected, and what changes workloads or devices that must not change."""
    cases, outcome, compared = trial.attempt.cases, trial.outcome, trial.compared

    def why_not(point: Point, arch: str) -> str:
        return trial.planner.oracle.why_not(trial.draft.after, point, arch)

    reasons = (
        not_as_written(cases, outcome, trial.after, trial.arch, why_not)
        or harmed(cases, outcome, compared, trial.arch)
        or strayed(outcome, compared, trial.arch)
    )
    return trial.attempt.reject(reasons) if reasons else None


def narrow_to_measured(trial: Trial) -> Attempt | None:
    """Narrows entries to the measured types where they would change unmeasured workloads."""
    names = {change.benchmark for change in trial.shared}
    points = points_of(trial.outcome.writes)
    return trial.attempt.with_cases(narrowed(trial.attempt.cases, points, names))


def bound_to_arch(trial: Trial) -> Attempt | None:
    """Bounds entries that change later architectures, and rejects those that have no bound."""
    if not isinstance(trial.kept, NotKeptError):
        return None
    return _bounded_or_rejected(trial, _not_kept(trial.outcome, trial.kept))


def bound_other_inputs(trial: Trial) -> Attempt | None:
    """Does the same for entries that change inputs of no benchmark on later architectures."""
    assert not isinstance(trial.kept, NotKeptError)
    _, draft, _ = trial.kept
    reasons: dict[Point, str] = {}
    for header, reason in trial.leaks(draft).items():
        writes = [write for write in trial.outcome.writes if write.header == header]
        reasons |= dict.fromkeys(points_of(_leaking(trial, writes) or writes), reason)
    return _bounded_or_rejected(trial, reasons) if reasons else None


def _leaking(trial: Trial, writes: Sequence[EntryWrite]) -> list[EntryWrite]:
    """Returns the writes that leak without the others, found by halves."""
    if len(writes) <= 1:
        return [*writes]
    middle = len(writes) // 2
    return [
        write
        for half in (writes[:middle], writes[middle:])
        if trial.leaks(trial.planner.drafted(half))
        for write in _leaking(trial, half)
    ]


def _bounded_or_rejected(trial: Trial, reasons: Mapping[Point, str]) -> Attempt:
    revised = trial.attempt.with_cases(bounded(trial.attempt.cases, reasons, trial.planner.dialect))
    if revised is None:
        return trial.attempt.reject(reasons)
    # What was bounded before may not be the cause of what the new bounds prevent.
    moved = {case.measurement.point for case in revised.cases if case.is_bounded}
    return revised.reject({point: why for point, why in reasons.items() if point not in moved})


Rule = Callable[[Trial], Attempt | None]
WRITING_RULES: tuple[Rule, ...] = (refuse_without_needed, refuse_unwritable)
EFFECT_RULES: tuple[Rule, ...] = (
    refuse_uncompiled,
    say_in_full,
    leave_unsayable,
    refuse_without_effect,
    narrow_to_measured,
    bound_to_arch,
    bound_other_inputs,
)
"""Each takes for granted that those before it have nothing to revise."""


def _not_kept(outcome: Decided, error: NotKeptError) -> dict[Point, str]:
    """Returns the workloads to drop so that later architectures keep what they had.

    The cause is the same workload on the tuned architecture, or else every write to its header.
    """
    archs = sorted({change.arch for change, _ in error.reasons}, key=arch_number)
    remedy = f"Let later architectures inherit: --reaches {','.join(archs)}"
    reasons: dict[Point, str] = {}
    for change, text in error.reasons:
        reasons.setdefault(change.point, InputError(text, remedy).in_line)
    causes: dict[Point, str] = {}
    for write in outcome.writes:
        points = points_of([write])
        first = next((reason for point, reason in reasons.items() if point in points), None)
        if first:
            causes |= {point: reasons.get(point, first) for point in points}
    if causes:
        return causes
    names = {name for name, _ in reasons}
    targets = [action.target for action in outcome.actions if action.benchmark in names]
    headers = {target.header for target in targets if target}
    header_points = points_of([write for write in outcome.writes if write.header in headers])
    return dict.fromkeys(header_points or points_of(outcome.writes), next(iter(reasons.values())))


def _reject_uncompiled(writes: Sequence[EntryWrite], error: EffectError) -> dict[Point, str]:
    """Rejects the added entries, which may not compile; raises if there are none."""
    added = [write for write in writes if write.spots[0].unsure or write.content.added]
    if not added:
        raise error
    reasons: dict[Point, str] = {}
    for write in added:
        kind = "return" if write.spots[0].ahead else "family"
        reason = f"the header does not compile with a {kind} for it"
        reasons |= dict.fromkeys(points_of([write]), reason)
    return reasons


def _in_order(
    scored: Sequence[ScoredWorkload],
    measured: Sequence[Measurement],
    actions: Sequence[Action],
    refused: Sequence[Refused],
) -> list[Action]:
    """Sorts the actions in the order of the databases, even where the tree renames workloads."""
    order = {id(workload): position for position, workload in enumerate(scored)}
    position_by_point = {
        measurement.point: order[id(measurement.scored)] for measurement in measured
    }
    placed = [(position_by_point[action.point], action) for action in actions]
    placed += [(order[id(workload)], action) for workload, action in refused]
    return [action for _, action in sorted(placed, key=lambda pair: pair[0])]


# Benchmarks that must be tuned together: one algorithm launches the kernels of both.


def unmet(cases: Sequence[PlacedResult], actions: Sequence[Action]) -> dict[Point, str]:
    """Returns workloads that would be written without the benchmark they were measured with.

    A workload that was examined and keeps its values counts as settled; one that was rejected or
    not measured does not.
    """
    settled = {action.point for action in actions if action.decision != "reject"}
    written = {action.point for action in actions if action.written}
    reasons: dict[Point, str] = {}
    for case in cases:
        name, workload = case.measurement.point
        for other in case.measurement.benchmark.needs:
            if (name, workload) in written and (other, workload) not in settled:
                reason = f"it is chosen together with {other}, which is rejected or has no results"
                reasons[name, workload] = reason
    return reasons


def remake_plan(planner: Planner, plan: Plan, scored: Sequence[ScoredWorkload]) -> Plan:
    """Remakes a plan from its decisions; the compiler is only asked what the tree selects now."""
    planner = replace(planner, next_best=remembered_next(plan.instead))

    def settle(cases: Sequence[PlacedResult]) -> Settled:
        placed = bounded(cases, {row.point for row in plan.bounded}, planner.dialect) or cases
        placed = said_in_full(placed, {row.point: row.shown for row in plan.said}) or placed
        constraints = {row.point: FixedValues(row.shown, row.reason) for row in plan.unsaid}
        placed = leaving(placed, constraints)
        held = {**planner.held, **{row.point: row.reason for row in plan.held}}
        outcome = planner.decided(placed, held)
        # Changes that pinning entries prevent; their values are requested again.
        kept = (row for row in plan.reached if row.kept)
        later: list[DeltaRow[Values]] = [DeltaRow(*row.point, row.arch, {}, {}) for row in kept]
        if later:
            pins = planner.dialect.keep(later, planner.oracle.tell)
            outcome = replace(outcome, writes=[*outcome.writes, *pins])
        return Settled(placed, held, outcome, planner.drafted(outcome.writes), plan.reached)

    try:
        return planner.settled(scored, settle)
    except (NotWritableError, NotKeptError) as error:
        raise InputError(f"the plan cannot be made again: {error}", REMEDY) from error
