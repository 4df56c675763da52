"""Measured workloads with the places where their results would be written."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple

from policygen.errors import InputError
from policygen.headers.protocol import Dialect, EntryWrite, Spot, TypeName
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Action
from policygen.model.records import grouped
from policygen.model.results import Choice
from policygen.model.selection import Values
from policygen.model.tuning import Value
from policygen.model.workload import Point
from policygen.planning.judge import Oracle, differs
from policygen.planning.measured import Measurement


class FixedValues(NamedTuple):
    """Values of a policy that no entry can change."""

    shown: Values
    reason: str


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """One measured workload and where its result would be written."""

    spot: Spot
    measurement: Measurement
    fixed: FixedValues | None = None
    """Values that a usable variant must have, as reported by the compiler."""
    said: Values | None = None
    """Values that its entry was extended by, so that it expresses what was measured."""
    is_bounded: bool = False
    """Whether its entry ends before the next architecture."""

    @property
    def choice(self) -> Choice:
        """The variant that the rules choose."""
        return self.measurement.choice

    @property
    def used(self) -> bool:
        """Whether a variant is to be written for it."""
        return self.choice.decision == "use"

    def naming(self, *names: TypeName) -> "PlacedResult":
        """Returns the same result with an entry for some of its types alone."""
        return replace(self, spot=reduce(lambda spot, name: spot.naming(name), names, self.spot))

    def rejected(self, reason: str) -> Action:
        """Returns the action that leaves the workload as it is."""
        spot = self.spot
        return self.measurement.rejected(reason, spot.general.target, spot.selected.values)

    def members(self, label: str) -> dict[str, str]:
        """Returns an entry's members for a variant; raises if the entry cannot express it."""
        benchmark = self.measurement.recorded.benchmark
        members = self.spot.members(benchmark, self.measurement.parameters(label))
        if self.fixed:
            shown = self.fixed.shown
            beside = {name: value for name, value in self.unsaid(label).items() if name in shown}
            if mismatches := differs(shown, beside):
                raise InputError(f"{self.fixed.reason}: it has {mismatches}")
        return members

    def expected(self, members: Mapping[str, str], label: str) -> dict[str, Value]:
        """Returns what the policy shows if the entry takes effect."""
        return {**self.unsaid(label), **self.spot.expected(members)}

    def unsaid(self, label: str) -> dict[str, Value]:
        """Returns a variant's values that the policy shows but no member expresses."""
        benchmark = self.measurement.recorded.benchmark
        return self.spot.unsaid(benchmark, self.measurement.parameters(label))

    def has(self, members: Mapping[str, str], label: str) -> bool:
        """Whether the policy already shows these values."""
        current = self.spot.selected.values
        return all(
            current.get(name) == value for name, value in self.expected(members, label).items()
        )


def by_entry(cases: Sequence[PlacedResult]) -> list[list[PlacedResult]]:
    """Groups the workloads that share an entry, in the order of each group's first workload."""
    return list(grouped(cases, lambda case: case.spot.place).values())


def find_places(
    measurements: Sequence[Measurement], dialect: Dialect, oracle: Oracle, arch: str
) -> tuple[list[PlacedResult], list[Action]]:
    """Places each measurement; returns the rest as rejections."""
    writable, cases, actions = [], [], []
    for measurement in measurements:
        try:
            check_written(measurement.benchmark)
            check_runs(measurement.benchmark, arch)
            dialect.check(measurement.benchmark)
            writable.append(measurement)
        except InputError as error:
            actions.append(measurement.rejected(error.in_line))
    selected = oracle.tell([measurement.point for measurement in writable], arch)
    for measurement in writable:
        if measurement.point not in selected:
            actions.append(measurement.rejected("its header does not compile"))
            continue
        row = selected[measurement.point]
        try:
            spot = dialect.place(measurement.benchmark, row, measurement.point)
            cases.append(PlacedResult(spot, measurement))
        except InputError as error:
            actions.append(measurement.rejected(error.in_line, before=row.values))
    return cases, actions


def check_written(benchmark: BenchmarkBinding) -> None:
    """Rejects a benchmark without entries, and names what to edit by hand instead."""
    if benchmark.writable:
        return
    message = "policygen cannot write entries for this benchmark"
    assert benchmark.edit is not None, "a binding says it"
    edit = " ".join(benchmark.edit.split()).removesuffix(".")
    raise InputError(f"{message}; edit {edit}")


def check_runs(benchmark: BenchmarkBinding, arch: str) -> None:
    """Refuses a benchmark that requires a later architecture."""
    least_arch = benchmark.least_arch
    if least_arch and arch_number(arch) < arch_number(least_arch):
        raise InputError(f"CUB has this algorithm only on {least_arch} and later")


def _revised(
    cases: Sequence[PlacedResult], revise: Callable[[PlacedResult], PlacedResult | None]
) -> list[PlacedResult] | None:
    """Returns the cases with those that are revised; None if none is."""
    revisions = [revise(case) for case in cases]
    pairs = zip(revisions, cases, strict=True)
    return [revision or case for revision, case in pairs] if any(revisions) else None


def bounded(
    cases: Sequence[PlacedResult], points: Collection[Point], dialect: Dialect
) -> list[PlacedResult] | None:
    """Moves lost workloads to spots that later architectures do not reach, if possible.

    Workloads of one entry move together: the new entry takes all of them.
    """
    places = {case.spot.place for case in cases if case.measurement.point in points}

    def bound(case: PlacedResult) -> PlacedResult | None:
        if case.spot.place not in places:
            return None
        spot = dialect.bounded(case.measurement.benchmark, case.spot)
        return replace(case, spot=spot, is_bounded=True) if spot else None

    return _revised(cases, bound)


def narrowed(
    cases: Sequence[PlacedResult], decided: Collection[Point], benchmarks: Collection[str]
) -> list[PlacedResult] | None:
    """Narrows entries to the measured types, for benchmarks that would change other workloads."""

    def narrow(case: PlacedResult) -> PlacedResult | None:
        measurement = case.measurement
        if measurement.benchmark.name not in benchmarks or measurement.point not in decided:
            return None
        return replace(case, spot=case.spot.narrower) if case.spot.narrower else None

    return _revised(cases, narrow)


def said_in_full(
    cases: Sequence[PlacedResult], unsaid_by_point: Mapping[Point, Values]
) -> list[PlacedResult] | None:
    """Extends entries so that they express more values, where possible.

    Workloads of one entry are extended together.
    """
    affected = [case for case in cases if case.measurement.point in unsaid_by_point]
    by_place = {case.spot.place: unsaid_by_point[case.measurement.point] for case in affected}

    def extend(case: PlacedResult) -> PlacedResult | None:
        shown = by_place.get(case.spot.place)
        spot = shown and case.spot.saying(case.measurement.recorded.benchmark, shown)
        return replace(case, spot=spot, said=shown) if spot else None

    return _revised(cases, extend)


def leaving(
    cases: Sequence[PlacedResult], constraints: Mapping[Point, FixedValues]
) -> list[PlacedResult]:
    """Adds the constraints to the cases that they concern."""
    return [
        replace(case, fixed=constraints.get(case.measurement.point, case.fixed)) for case in cases
    ]


def unsaid(
    cases: Sequence[PlacedResult], actions: Sequence[Action], after: Mapping[Point, Values]
) -> dict[Point, Values]:
    """Returns the policy's values that differ from the measured ones and that no entry sets."""
    case_by_point = {case.measurement.point: case for case in cases}
    unsaid_by_point: dict[Point, Values] = {}
    for action in actions:
        if action.written and action.variant:
            shown = after[action.point]
            intended = case_by_point[action.point].unsaid(action.variant)
            if differing := {
                name: shown[name]
                for name, value in intended.items()
                if name in shown and shown[name] != value
            }:
                unsaid_by_point[action.point] = differing
    return unsaid_by_point


def unsayable(
    cases: Sequence[PlacedResult],
    actions: Sequence[Action],
    after: Mapping[Point, Values],
    unsaid_by_point: Mapping[Point, Values],
) -> dict[Point, FixedValues]:
    """Returns the points that differ only in what the policy sets."""
    case_by_point = {case.measurement.point: case for case in cases}
    constraints = {}
    for action in actions:
        case = case_by_point[action.point]
        if action.point in unsaid_by_point and case.fixed is None:
            unsaid_values = case.unsaid(action.variant or "")
            expressible = {
                name: value
                for name, value in (action.after or {}).items()
                if name not in unsaid_values
            }
            if not differs(after[action.point], expressible):
                family = action.target.family if action.target else case.spot.header
                reason = f"{family} cannot express what was measured"
                constraints[action.point] = FixedValues(unsaid_by_point[action.point], reason)
    return constraints


def shown_variant(
    case: PlacedResult, labels: Sequence[str], comment_label: str | None
) -> str | None:
    """Returns the variant with the policy's values, preferring the one that the comment names.

    A variant whose benchmark fixes more parameters than the entry has is tried last.
    """
    ordered = [label for label in dict.fromkeys((comment_label, *labels)) if label]
    for exact in (True, False):
        for label in ordered:
            if _matches_policy(case, label, whole=exact):
                return label
    return None


def _matches_policy(case: PlacedResult, label: str, *, whole: bool) -> bool:
    with suppress(InputError):  # the entry cannot express the label, so it does not have it
        members = case.members(label)
        if whole:
            return case.has(members, label)
        current, expected = case.spot.selected.values, case.spot.expected(members)
        return bool(expected) and all(
            current.get(name) == value for name, value in expected.items()
        )
    return False


@dataclass(slots=True)
class Decided:
    """Actions and entries for some cases."""

    actions: list[Action] = field(default_factory=list)
    writes: list[EntryWrite] = field(default_factory=list)

    def add(self, other: "Decided") -> None:
        """Adds the actions and entries of other cases."""
        self.actions += other.actions
        self.writes += other.writes
