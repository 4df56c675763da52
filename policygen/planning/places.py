"""Measured workloads with the places where their results would be written."""

from collections.abc import Collection, Mapping, Sequence
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


class Left(NamedTuple):
    """What a policy has, and that no entry can say otherwise."""

    shown: Values
    reason: str


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """One measured workload and where its result would be written."""

    spot: Spot
    measurement: Measurement
    left: Left | None = None
    """What a variant has to be, as the compiler told."""

    @property
    def choice(self) -> Choice:
        """What the rules say of its variants."""
        return self.measurement.choice

    @property
    def used(self) -> bool:
        """Whether a variant of it is to be written."""
        return self.choice.decision == "use"

    def naming(self, name: TypeName) -> "PlacedResult":
        """With an entry for one of its types alone."""
        return replace(self, spot=self.spot.naming(name))

    def rejected(self, reason: str) -> Action:
        """It stays as it is."""
        spot = self.spot
        return self.measurement.rejected(reason, spot.general.target, spot.told.values)

    def members(self, label: str) -> dict[str, str]:
        """The values of an entry for one of the variants; refused where it cannot say them."""
        measured = self.measurement.recorded.benchmark
        members = self.spot.members(measured, self.measurement.parameters(label))
        if self.left and (other := differs(self.left.shown, self._beside(self.left.shown, label))):
            raise InputError(f"{self.left.reason}: it has {other}")
        return members

    def _beside(self, shown: Values, label: str) -> dict[str, Value]:
        """Of some values those that a variant wants, and no member says."""
        return {name: value for name, value in self.unsaid(label).items() if name in shown}

    def expected(self, members: Mapping[str, str], label: str) -> dict[str, Value]:
        """What its policy shows when it takes these values, and is what was measured."""
        return {**self.unsaid(label), **self.spot.expected(members)}

    def unsaid(self, label: str) -> dict[str, Value]:
        """The values of a variant that its policy shows, and no member of an entry says."""
        measured = self.measurement.recorded.benchmark
        return self.spot.unsaid(measured, self.measurement.parameters(label))

    def has(self, members: Mapping[str, str], label: str) -> bool:
        """Whether its policy shows these values now."""
        now = self.spot.told.values
        return all(now.get(name) == value for name, value in self.expected(members, label).items())


def by_entry(cases: Sequence[PlacedResult]) -> list[list[PlacedResult]]:
    """Workloads that one entry decides, in the order of their first."""
    groups: dict[object, list[PlacedResult]] = {}
    for case in cases:
        groups.setdefault(case.spot.place, []).append(case)
    return list(groups.values())


def find_places(
    known: Sequence[Measurement], dialect: Dialect, oracle: Oracle, arch: str
) -> tuple[list[PlacedResult], list[Action]]:
    """Each measurement with its place; the rest with the reason."""
    found, cases, actions = [], [], []
    for one in known:
        try:
            check_written(one.benchmark)
            check_runs(one.benchmark, arch)
            dialect.check(one.benchmark)
            found.append(one)
        except InputError as error:
            actions.append(one.rejected(error.in_line))
    told = oracle.tell([one.point for one in found], arch)
    for one in found:
        if one.point not in told:
            actions.append(one.rejected("the compiler refuses its header"))
            continue
        shown = told[one.point]
        try:
            cases.append(PlacedResult(dialect.place(one.benchmark, shown), one))
        except InputError as error:
            actions.append(one.rejected(error.in_line, before=shown.values))
    return cases, actions


def check_written(benchmark: BenchmarkBinding) -> None:
    """Refuses one that has no entries; says what decides it instead, for who tunes it by hand."""
    if benchmark.writable:
        return
    why = "policygen writes no entries for this benchmark"
    assert benchmark.edit is not None, "a binding says it"
    edit = " ".join(benchmark.edit.split()).removesuffix(".")
    raise InputError(f"{why}; what decides it is in {edit}")


def check_runs(benchmark: BenchmarkBinding, arch: str) -> None:
    """Refuses one that needs a later architecture."""
    least = benchmark.least_arch
    if least and arch_number(arch) < arch_number(least):
        raise InputError(f"CUB has what it runs on {least} and later alone")


def bounded(
    cases: Sequence[PlacedResult], lost: Mapping[Point, str], dialect: Dialect
) -> tuple[list[PlacedResult], set[Point]]:
    """The same with entries that later architectures do not get to, where there can be such."""
    found, moved = list(cases), set()
    for number, case in enumerate(cases):
        one = case.measurement
        if one.point in lost and (spot := dialect.bounded(one.benchmark, case.spot)):
            found[number] = replace(case, spot=spot)
            moved.add(one.point)
    return found, moved


def narrowed(
    cases: Sequence[PlacedResult], decided: Collection[Point], others: Collection[str]
) -> tuple[list[PlacedResult], bool]:
    """The same with entries for what was measured alone, where benchmarks lose other workloads."""
    found, moved = list(cases), False
    for number, case in enumerate(cases):
        one = case.measurement
        if one.benchmark.name in others and one.point in decided and case.spot.narrower:
            found[number] = replace(case, spot=case.spot.narrower)
            moved = True
    return found, moved


def unsaid(
    cases: Sequence[PlacedResult], actions: Sequence[Action], compared: Delta[Values], arch: str
) -> dict[Point, Values]:
    """What the policy has, where it is not what was measured, and entries do not say it."""
    after = {c.point: c.after for c in compared.changes if c.arch == arch}
    of_point = {case.measurement.point: case for case in cases}
    found: dict[Point, Values] = {}
    for action in actions:
        if action.written and action.variant:
            shown = after.get(action.point, action.before or {})
            wanted = of_point[action.point].unsaid(action.variant)
            if left := {n: shown[n] for n, v in wanted.items() if n in shown and shown[n] != v}:
                found[action.point] = left
    return found


def unsayable(
    cases: Sequence[PlacedResult],
    actions: Sequence[Action],
    compared: Delta[Values],
    found: Mapping[Point, Values],
    arch: str,
) -> dict[Point, Left]:
    """Of the `found` those that get all else: nothing but their policy is in the way."""
    after = {c.point: c.after for c in compared.changes if c.arch == arch}
    of_point = {case.measurement.point: case for case in cases}
    left = {}
    for action in actions:
        case = of_point[action.point]
        if action.point in found and case.left is None:
            unsaid = case.unsaid(action.variant or "")
            said = {n: v for n, v in (action.after or {}).items() if n not in unsaid}
            if not differs(after.get(action.point, action.before or {}), said):
                family = action.target.family if action.target else case.spot.header
                reason = f"{family} cannot say what was measured"
                left[action.point] = Left(found[action.point], reason)
    return left


def leaving(cases: Sequence[PlacedResult], left: Mapping[Point, Left]) -> list[PlacedResult]:
    """The same where it is known what no entry says."""
    return [
        replace(case, left=left[case.measurement.point]) if case.measurement.point in left else case
        for case in cases
    ]


def said_in_full(
    cases: Sequence[PlacedResult], left: Mapping[Point, Values]
) -> tuple[list[PlacedResult], dict[Point, Values]]:
    """The same with entries that say more, and for which workloads; those of an entry together."""
    known = [case for case in cases if case.measurement.point in left]
    by_place = {case.spot.place: left[case.measurement.point] for case in known}
    found, said = list(cases), {}
    for number, case in enumerate(cases):
        shown = by_place.get(case.spot.place)
        if shown and (spot := case.spot.saying(case.measurement.recorded.benchmark, shown)):
            found[number] = replace(case, spot=spot)
            said[case.measurement.point] = shown
    return found, said
