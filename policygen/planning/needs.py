"""Benchmarks that are chosen together: one algorithm launches the kernels of both."""

from collections.abc import Sequence

from policygen.model.plan import Action
from policygen.model.workload import Point
from policygen.planning.places import PlacedResult


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
