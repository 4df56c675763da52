"""Measured workloads with the places where their results would be written."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from policygen.errors import InputError
from policygen.headers.protocol import Dialect, Spot, TypeName
from policygen.model.arch import arch_number
from policygen.model.bindings import BenchmarkBinding
from policygen.model.plans import Action
from policygen.model.results import Choice
from policygen.model.selection import Delta, Values
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
    left: FixedValues | None = None
    """Values that a usable variant must have, as reported by the compiler."""

    @property
    def choice(self) -> Choice:
        """The variant that the rules choose."""
        return self.measurement.choice

    @property
    def used(self) -> bool:
        """Whether a variant is to be written for it."""
        return self.choice.decision == "use"

    def naming(self, name: TypeName) -> "PlacedResult":
        """Returns the same result with an entry for one of its types alone."""
        return replace(self, spot=self.spot.naming(name))

    def rejected(self, reason: str) -> Action:
        """Returns the action that leaves the workload as it is."""
        spot = self.spot
        return self.measurement.rejected(reason, spot.general.target, spot.selected.values)

    def members(self, label: str) -> dict[str, str]:
        """Returns an entry's members for a variant; raises if the entry cannot express it."""
        benchmark = self.measurement.recorded.benchmark
        members = self.spot.members(benchmark, self.measurement.parameters(label))
        if self.left:
            shown = self.left.shown
            beside = {name: value for name, value in self.unsaid(label).items() if name in shown}
            if mismatches := differs(shown, beside):
                raise InputError(f"{self.left.reason}: it has {mismatches}")
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
    groups: dict[object, list[PlacedResult]] = {}
    for case in cases:
        groups.setdefault(case.spot.place, []).append(case)
    return list(groups.values())


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
            cases.append(PlacedResult(dialect.place(measurement.benchmark, row), measurement))
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


def bounded(
    cases: Sequence[PlacedResult], points: Collection[Point], dialect: Dialect
) -> tuple[list[PlacedResult], set[Point]]:
    """Moves lost workloads to spots that later architectures do not reach, if possible.

    Workloads of one entry move together: the new entry takes all of them.
    """
    places = {case.spot.place for case in cases if case.measurement.point in points}
    bounded_cases, moved_points = list(cases), set()
    for number, case in enumerate(cases):
        measurement = case.measurement
        if case.spot.place in places and (
            spot := dialect.bounded(measurement.benchmark, case.spot)
        ):
            bounded_cases[number] = replace(case, spot=spot)
            moved_points.add(measurement.point)
    return bounded_cases, moved_points


def narrowed(
    cases: Sequence[PlacedResult], decided: Collection[Point], benchmarks: Collection[str]
) -> tuple[list[PlacedResult], bool]:
    """Narrows entries to the measured types, for benchmarks that would change other workloads."""
    narrowed_cases, is_narrowed = list(cases), False
    for number, case in enumerate(cases):
        measurement = case.measurement
        if (
            measurement.benchmark.name in benchmarks
            and measurement.point in decided
            and case.spot.narrower
        ):
            narrowed_cases[number] = replace(case, spot=case.spot.narrower)
            is_narrowed = True
    return narrowed_cases, is_narrowed


def unsaid(
    cases: Sequence[PlacedResult], actions: Sequence[Action], compared: Delta[Values], arch: str
) -> dict[Point, Values]:
    """Returns the policy's values that differ from the measured ones and that no entry sets."""
    after = {change.point: change.after for change in compared.changes if change.arch == arch}
    case_by_point = {case.measurement.point: case for case in cases}
    unsaid_by_point: dict[Point, Values] = {}
    for action in actions:
        if action.written and action.variant:
            shown = after.get(action.point, action.before or {})
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
    compared: Delta[Values],
    unsaid_by_point: Mapping[Point, Values],
    arch: str,
) -> dict[Point, FixedValues]:
    """Returns the points that differ only in what the policy sets."""
    after = {change.point: change.after for change in compared.changes if change.arch == arch}
    case_by_point = {case.measurement.point: case for case in cases}
    constraints = {}
    for action in actions:
        case = case_by_point[action.point]
        if action.point in unsaid_by_point and case.left is None:
            unsaid_values = case.unsaid(action.variant or "")
            expressible = {
                name: value
                for name, value in (action.after or {}).items()
                if name not in unsaid_values
            }
            if not differs(after.get(action.point, action.before or {}), expressible):
                family = action.target.family if action.target else case.spot.header
                reason = f"{family} cannot express what was measured"
                constraints[action.point] = FixedValues(unsaid_by_point[action.point], reason)
    return constraints


def leaving(
    cases: Sequence[PlacedResult], constraints: Mapping[Point, FixedValues]
) -> list[PlacedResult]:
    """Adds the constraints to the cases that they concern."""
    return [
        replace(case, left=constraints[case.measurement.point])
        if case.measurement.point in constraints
        else case
        for case in cases
    ]


def said_in_full(
    cases: Sequence[PlacedResult], unsaid_by_point: Mapping[Point, Values]
) -> tuple[list[PlacedResult], dict[Point, Values]]:
    """Extends entries so that they express more values, where possible.

    Returns the cases and the values by point. Workloads of one entry are extended together.
    """
    affected = [case for case in cases if case.measurement.point in unsaid_by_point]
    by_place = {case.spot.place: unsaid_by_point[case.measurement.point] for case in affected}
    extended_cases, said_by_point = list(cases), {}
    for number, case in enumerate(cases):
        shown = by_place.get(case.spot.place)
        if shown and (spot := case.spot.saying(case.measurement.recorded.benchmark, shown)):
            extended_cases[number] = replace(case, spot=spot)
            said_by_point[case.measurement.point] = shown
    return extended_cases, said_by_point


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
