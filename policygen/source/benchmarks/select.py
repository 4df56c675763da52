"""`-R` and `-a` on a list of benchmarks, with CCCL's meaning."""

import re
from collections.abc import Mapping

from policygen.errors import InputError
from policygen.hints import anchored
from policygen.model.bench import Axis, Benchmark, BenchmarkList, SubBenchmark
from policygen.model.workload import spelled

Chosen = Mapping[str, frozenset[str]]
"""The values that stay, by axis."""


def select(document: BenchmarkList, names: re.Pattern[str], axes: Chosen) -> BenchmarkList:
    """The benchmarks whose name begins so, with the axis values that were asked for."""
    kept = [one for one in document.benchmarks if names.match(one.name)]
    if document.benchmarks and not kept:
        raise InputError(
            f"-R {names.pattern!r} matches the beginning of no benchmark's name",
            anchored(names, (one.name for one in document.benchmarks))
            or f"one of {len(document.benchmarks)} is {document.benchmarks[0].name}",
        )
    known = {axis.name for one in kept for sub in one.subbenches for axis in sub.axes}
    axes = spelled(axes, known)
    _check(kept, axes)
    return document.model_copy(update={"benchmarks": tuple(_restrict(one, axes) for one in kept)})


def _check(benchmarks: list[Benchmark], axes: Chosen) -> None:
    """An axis or value that none of them has is a mistyped one."""
    known: dict[str, dict[str, None]] = {}
    for one in benchmarks:
        for sub in one.subbenches:
            for axis in sub.axes:
                known.setdefault(axis.name, {}).update(dict.fromkeys(axis.values))
    for name, values in axes.items():
        if name not in known:
            raise InputError(
                f"-a {name}: none of these benchmarks has such an axis",
                f"they have: {', '.join(sorted(known)) or 'none'}",
            )
        if not values & known[name].keys():
            raise InputError(
                f"-a {name}: no benchmark has the value {', '.join(sorted(values))}",
                f"they have: {', '.join(known[name]) or 'none'}",
            )


def _restrict(one: Benchmark, axes: Chosen) -> Benchmark:
    return one.model_copy(update={"subbenches": tuple(_filter(s, axes) for s in one.subbenches)})


def _filter(sub: SubBenchmark, axes: Chosen) -> SubBenchmark:
    return sub.model_copy(
        update={"axes": tuple(_cut(axis, axes.get(axis.name)) for axis in sub.axes)}
    )


def _cut(axis: Axis, values: frozenset[str] | None) -> Axis:
    if values is None:
        return axis
    return axis.model_copy(update={"values": tuple(v for v in axis.values if v in values)})
