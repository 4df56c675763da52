"""Whether a change has the effect that its plan says, and no other."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from policygen.model.arch import arch_number
from policygen.model.edits import changes
from policygen.model.plans import Plan
from policygen.model.selection import (
    Changed,
    Delta,
    DeltaRow,
    Effect,
    Role,
    Selected,
    Values,
    Wrong,
)
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point

WhyNot = Callable[[Point, str], str]
Place = tuple[Point, str]


def judge(plan: Plan, compared: Delta[Values], why_not: WhyNot) -> Effect:
    """Every workload that was written gets its values; every other one has what it had."""
    arch = plan.options.arch
    written = {action.point: action for action in plan.actions if action.written}
    allowed = _allowed(plan)
    found = {(change.point, change.arch): change for change in compared.changes}
    changed: list[Changed] = []
    wrong: list[Wrong] = []
    for point, action in written.items():
        change = found.pop((point, arch), None)
        after = change.after if change else action.before or {}
        if differing := differs(after, action.after or {}):
            reason = f"it gets {differing}: {why_not(point, arch)}"
            wrong.append(_wrong(point, arch, reason, action.before, after))
        elif change:
            changed.append(_changed(change, "written"))
    for place, change in found.items():
        role = allowed.get(place)
        if role is None:
            wrong.append(_wrong(*place, _unplanned(change, arch), change.before, change.after))
        else:
            changed.append(_changed(change, role))
    return Effect(
        cub=plan.cub,
        toolchain=plan.toolchain,
        headers=tuple(file.path for file in plan.files),
        archs=compared.archs,
        between=tuple(one for one in compared.archs if one in compared.between),
        compared=compared.compared,
        changed=tuple(changed),
        wrong=tuple(wrong),
    )


def differs(after: Mapping[str, Value], wanted: Mapping[str, Value]) -> str:
    """The values that are not those that were wanted, in words; nothing when all are."""
    rows = [
        f"{name} {spell(after[name]) if name in after else 'nothing'} and not {spell(value)}"
        for name, value in wanted.items()
        if after.get(name) != value
    ]
    return ", ".join(rows)


def _allowed(plan: Plan) -> dict[Place, Role]:
    arch = plan.options.arch
    return {
        (one.point, one.arch): "shared" if one.arch == arch else "later"
        for one in plan.reached
        if not one.kept
    }


def _unplanned(change: DeltaRow[Values], arch: str) -> str:
    pairs = ", ".join(changes(change.before, change.after))
    if arch_number(change.arch) < arch_number(arch):
        return f"an earlier architecture changes: {pairs}"
    return f"it was not to change, and does: {pairs}"


def _changed(change: DeltaRow[Values], role: Role) -> Changed:
    return Changed(
        benchmark=change.benchmark,
        workload=dict(change.workload),
        arch=change.arch,
        role=role,
        before=dict(change.before),
        after=dict(change.after),
    )


def _wrong(
    point: Point,
    arch: str,
    reason: str,
    before: Mapping[str, Value] | None,
    after: Mapping[str, Value],
) -> Wrong:
    return Wrong(
        benchmark=point[0],
        workload=dict(point[1]),
        arch=arch,
        reason=reason,
        before=dict(before) if before else None,
        after=dict(after),
    )


# What planning asks of a compiler; `policygen.proof` answers.


class Oracle(Protocol):
    """Answers about one tree, as it is or with some of its headers changed."""

    @property
    def toolchain(self) -> str:
        """The compiler in words."""

    def tell(self, points: Sequence[Point], arch: str) -> Mapping[Point, Selected]:
        """What is selected for workloads on an architecture, and where their keys lead."""

    def compare(self, changed: Mapping[str, bytes]) -> Delta[Values]:
        """All workloads of these headers on all architectures, before and after."""

    def why_not(self, changed: Mapping[str, bytes], point: Point, arch: str) -> str:
        """Why a workload does not get what its entry in a changed header says."""
