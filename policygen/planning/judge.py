"""Checks that a change has exactly the effect that its plan says."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from policygen.bindings.words import known_arch
from policygen.model.arch import arch_number
from policygen.model.plans import Options, Plan
from policygen.model.selection import (
    Changed,
    Delta,
    DeltaRow,
    Effect,
    InputChange,
    Role,
    Selected,
    Values,
    Wrong,
)
from policygen.model.tuning import Value, changes, spell
from policygen.model.workload import Point

WhyNot = Callable[[Point, str], str]


def judge(plan: Plan, compared: Delta[Values], why_not: WhyNot) -> Effect:
    """Checks that each written workload gets its values and that no other workload changes."""
    arch = plan.options.arch
    written = {action.point: action for action in plan.written}
    allowed: dict[tuple[Point, str], Role] = {
        (reached.point, reached.arch): "shared" if reached.arch == arch else "later"
        for reached in plan.reached
        if not reached.kept
    }
    change_by_place = {(change.point, change.arch): change for change in compared.changes}
    changed: list[Changed] = []
    wrong: list[Wrong] = []
    for point, action in written.items():
        change = change_by_place.pop((point, arch), None)
        after = change.after if change else action.before or {}
        if differing := differs(after, action.after or {}):
            reason = f"it gets {differing}: {why_not(point, arch)}"
            before = dict(action.before) if action.before else None
            wrong.append(
                Wrong.of(point, arch=arch, reason=reason, before=before, after=dict(after))
            )
        elif change:
            changed.append(_changed(change, "written"))
    for place, change in change_by_place.items():
        if role := allowed.get(place):
            changed.append(_changed(change, role))
            continue
        before, after = dict(change.before) or None, dict(change.after)
        is_earlier = arch_number(change.arch) < arch_number(arch)
        cause = "an earlier architecture changes" if is_earlier else "it changes, but should not"
        reason = f"{cause}: {', '.join(changes(before or {}, after))}"
        wrong.append(
            Wrong.of(change.point, arch=change.arch, reason=reason, before=before, after=after)
        )
    return Effect(
        cub=plan.cub,
        toolchain=plan.toolchain,
        headers=tuple(file.path for file in plan.files),
        archs=compared.archs,
        between=tuple(arch_name for arch_name in compared.archs if arch_name in compared.between),
        compared=compared.compared,
        changed=tuple(changed),
        wrong=tuple(wrong),
    )


def differs(after: Mapping[str, Value], expected: Mapping[str, Value]) -> str:
    """Describes the values that differ from the expected ones; empty if none do."""
    rows = [
        f"{name} {spell(after[name]) if name in after else 'nothing'}, not {spell(value)}"
        for name, value in expected.items()
        if after.get(name) != value
    ]
    return ", ".join(rows)


def _changed(change: DeltaRow[Values], role: Role) -> Changed:
    before, after = dict(change.before), dict(change.after)
    return Changed.of(change.point, arch=change.arch, role=role, before=before, after=after)


# The compiler interface that planning uses; `policygen.proof` implements it.


class Oracle(Protocol):
    """Answers questions about one tree, as it is or with some of its headers changed."""

    @property
    def toolchain(self) -> str:
        """The name of the compiler."""

    def tell(self, points: Sequence[Point], arch: str) -> Mapping[Point, Selected]:
        """Returns what workloads select on an architecture, and where their keys lead."""

    def compare(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        """Compares all workloads of the changed headers on all architectures, before and after."""

    def input_changes(self, changed: Mapping[str, bytes]) -> Sequence[InputChange]:
        """Returns the inputs of selectors that get other values, those of no benchmark, too."""

    def why_not(self, changed: Mapping[str, bytes], point: Point, arch: str) -> str:
        """Explains why a workload does not get what its entry in a changed header says."""


# Changes for all inputs


def judge_inputs(options: Options, changes: Iterable[InputChange]) -> tuple[InputChange, ...]:
    """Adds the architectures on which a plan with these options is not to change anything.

    An unknown architecture is like the last known one before it.
    """
    target = arch_number(options.arch)

    def may_change(arch: str) -> bool:
        number = arch_number(known_arch(arch))
        return number == target or (number > target and not options.keeps(known_arch(arch)))

    return tuple(
        change.model_copy(update={"leaks": tuple(a for a in change.archs if not may_change(a))})
        for change in changes
    )
