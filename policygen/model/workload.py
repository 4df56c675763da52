"""A point of a benchmark's compile-time axes, as a key and in words; and variant labels."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator

from policygen.model.arch import Arch
from policygen.model.records import Record
from policygen.untrusted import visible

V = TypeVar("V")
Point = tuple[str, tuple[tuple[str, str], ...]]
"""A benchmark with a value for each axis, in the benchmark's order."""


def point_of(benchmark: str, workload: Mapping[str, str]) -> Point:
    """Converts a workload to a key."""
    return benchmark, tuple(workload.items())


def axis_name(axis: str) -> str:
    """Returns the plain name of an axis in a database: `T` for `T{ct}`."""
    return axis.partition("{")[0]


def plain(workload: Mapping[str, str]) -> dict[str, str]:
    """Returns values by the plain names of their axes."""
    return {axis_name(axis): value for axis, value in workload.items()}


def spelled(chosen: Mapping[str, V], known_names: Collection[str]) -> dict[str, V]:
    """Spells chosen axes like known ones, such as `T{ct}` for `T`; others are unchanged."""
    spelled_axes: dict[str, V] = {}
    for name, values in chosen.items():
        matching = [
            known_name for known_name in known_names if axis_name(known_name) == axis_name(name)
        ]
        spelled_axes |= dict.fromkeys(
            [name] if name in known_names or not matching else matching, values
        )
    return spelled_axes


def axes(workload: Mapping[str, str]) -> list[str]:
    """Formats axes: `T=I8`, `OffsetT=I32`."""
    return [f"{axis}={value}" for axis, value in workload.items()]


def runtime_name(subbench: str, point: Mapping[str, str]) -> str:
    """Formats a runtime workload: `Elements=16, Entropy=0.201`, after its benchmark if not base."""
    words = ", ".join(axes(point))
    return words if subbench == BASE and words else f"{subbench}: {words}" if words else subbench


def in_words(benchmark: str, workload: Mapping[str, str]) -> str:
    """Formats a workload: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
    return " ".join([benchmark, *axes(workload)])


def point_name(point: Point) -> str:
    """Formats a point: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
    return in_words(point[0], dict(point[1]))


class OfBenchmark(Record):
    """A workload of a benchmark."""

    benchmark: str
    workload: dict[str, str]

    @classmethod
    def of(cls, point: Point, **fields: Any) -> Self:
        """Returns the record of a workload with the other fields."""
        return cls(benchmark=point[0], workload=dict(point[1]), **fields)

    @property
    def point(self) -> Point:
        """The workload as a key."""
        return point_of(self.benchmark, self.workload)

    @property
    def name(self) -> str:
        """In words: `cub.bench.reduce.sum T=I8 OffsetT=I32`."""
        return in_words(self.benchmark, self.workload)


class OnArch(OfBenchmark):
    """A workload on an architecture."""

    arch: Arch


BASE = "base"
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""The pattern of parameter names."""
LIMIT = 1 << 31
"""Values fit an `int` in C++."""
MOST = 64
"""Maximum number of parameters of a benchmark."""
# "lbs_-2", "ipt_19": values may be negative, names may contain underscores
_PART = re.compile(rf"({IDENTIFIER})_(0|-?[1-9][0-9]{{0,9}})")


# Variant labels: `ipt_19.tpb_512` sets two parameters, `base` none


def parse_label(label: str) -> dict[str, int] | None:
    """Parses a label to values by parameter; `None` for anything else, including `base`.

    A label consists of `name_value` parts joined by dots, without repeated names or leading zeros.
    """
    parts = label.split(".", MOST)
    matches = [match for part in parts if (match := _PART.fullmatch(part))]
    values = {match[1]: int(match[2]) for match in matches}
    if len(values) != len(parts) or len(parts) > MOST:
        return None
    return values if all(-LIMIT <= value < LIMIT for value in values.values()) else None


def as_label(values: Mapping[str, int]) -> str:
    """Formats the label for these values: `ipt_19.tpb_512`."""
    return ".".join(f"{name}_{value}" for name, value in values.items())


def is_label(text: str) -> bool:
    """Returns whether a text is a variant label or `base`."""
    return text == BASE or parse_label(text) is not None


def _checked(text: str) -> str:
    if not is_label(text):
        raise ValueError(f"{shortened(text)} is not a variant label")
    return text


def shortened(text: str) -> str:
    """Quotes a text, shortened to fit a message."""
    return f"'{visible(text[:60])}{'…' if len(text) > 60 else ''}'"


Variant = Annotated[str, AfterValidator(_checked)]
"""A variant label that is read from a file."""
