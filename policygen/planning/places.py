"""Measured workloads with the places where their results would be written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from policygen.bindings.archs import archs
from policygen.dialects.protocol import Dialect
from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.plan import Action
from policygen.model.workload import Point
from policygen.planning.cases import PlacedResult
from policygen.planning.measured import Measurement
from policygen.planning.oracle import Oracle


def find_places(
    known: Sequence[Measurement], dialect: Dialect, oracle: Oracle, arch: str
) -> tuple[list[PlacedResult], list[Action]]:
    """Each measurement with its place; the rest with the reason."""
    found, cases, actions = [], [], []
    for one in known:
        if not one.benchmark.writable:
            actions.append(one.rejected(one.benchmark.edit or "CUB has no entries for it"))
            continue
        try:
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


def next_arch(arch: str) -> str | None:
    """The architecture that comes after one: its policy must keep what it had."""
    later = [name for name in archs() if arch_number(name) > arch_number(arch)]
    return min(later, key=arch_number, default=None)
