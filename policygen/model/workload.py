"""A point of a benchmark's compile-time axes: as a key, and in words."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from policygen.model.arch import Arch
from policygen.model.records import Record
from policygen.untrusted import visible

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


BASE = "base"
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""What a parameter can be called."""
LIMIT = 1 << 31
"""A value fits an `int` of C++."""
MOST = 64
"""Parameters of a benchmark."""
# "lbs_-2", "ipt_19": values can be negative, names can hold underscores
_PART = re.compile(rf"({IDENTIFIER})_(0|-?[1-9][0-9]{{0,9}})")


# Variant labels: `ipt_19.tpb_512` is two parameters with their values; `base` is none.


def parse_label(label: str) -> dict[str, int] | None:
    """The parameters by name; none for what is no variant label, as base is none.

    A label is `name_value` joined by dots; no name twice, no value with a zero before it.
    """
    parts = label.split(".", MOST)
    found = [match for part in parts if (match := _PART.fullmatch(part))]
    values = {match[1]: int(match[2]) for match in found}
    if len(values) != len(parts) or len(parts) > MOST:
        return None
    return values if all(-LIMIT <= value < LIMIT for value in values.values()) else None


def as_label(values: Mapping[str, int]) -> str:
    """`ipt_19.tpb_512`: what parses as these values."""
    return ".".join(f"{name}_{value}" for name, value in values.items())


def is_label(text: str) -> bool:
    """Whether something is the name of a variant, or of base."""
    return text == BASE or parse_label(text) is not None


def _checked(text: str) -> str:
    if not is_label(text):
        raise ValueError(f"{shortened(text)} is no variant label")
    return text


def shortened(text: str) -> str:
    """What is no label, in quotes, as far as it fits a message."""
    shown = visible(text[:60])
    return f"'{shown}{'…' if len(text) > 60 else ''}'"


Variant = Annotated[str, AfterValidator(_checked)]
"""The label of a variant, in what is read from a file."""
