"""A point of a benchmark's compile-time axes: as a key, and in words."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from policygen.model.arch import Arch
from policygen.model.base import Record

V = TypeVar("V")
Point = tuple[str, tuple[tuple[str, str], ...]]
"""A benchmark, and a value for each axis in the benchmark's order."""


def point_of(benchmark: str, workload: Mapping[str, str]) -> Point:
    """A workload as a key."""
    return benchmark, tuple(workload.items())


def axis_name(axis: str) -> str:
    """`T{ct}`, an axis in a database, as `T`."""
    return axis.partition("{")[0]


def plain(workload: Mapping[str, str]) -> dict[str, str]:
    """Values by the plain names of their axes."""
    return {axis_name(axis): value for axis, value in workload.items()}


def spelled(chosen: Mapping[str, V], known: Collection[str]) -> dict[str, V]:
    """Chosen axes as they are called: `T` is `T{ct}` where that is known; others stay."""
    found: dict[str, V] = {}
    for name, values in chosen.items():
        same = [one for one in known if axis_name(one) == axis_name(name)]
        found |= dict.fromkeys([name] if name in known or not same else same, values)
    return found


def axes(workload: Mapping[str, str]) -> list[str]:
    """`T=I8`, `OffsetT=I32`."""
    return [f"{axis}={value}" for axis, value in workload.items()]


def in_words(benchmark: str, workload: Mapping[str, str]) -> str:
    """`cub.bench.reduce.sum T=I8 OffsetT=I32`."""
    return " ".join([benchmark, *axes(workload)])


class OnArch(Record):
    """A workload on an architecture."""

    benchmark: str
    workload: dict[str, str]
    arch: Arch

    @property
    def point(self) -> Point:
        """The workload as a key."""
        return point_of(self.benchmark, self.workload)

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark, self.workload)
