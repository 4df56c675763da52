"""Where benchmark sources and the bindings disagree."""

from typing import Literal

from policygen.model.base import Document, Problem, Record

Kind = Literal[
    "unbound benchmark",
    "unbound parameter",
    "missing parameter",
    "range",
    "order",
    "unbound axis",
    "missing axis",
    "axis values",
]
"""Unbound: the binding does not know it. Missing: the source does not have it."""


class BenchDifference(Record):
    """One thing that a benchmark's source and its binding say differently."""

    benchmark: str
    source: str
    kind: Kind
    what: str
    """The parameter's label, or the axis without `{ct}`; `parameters` for all of them."""
    binding: tuple[str, ...]
    """Empty where the binding does not know it."""
    found: tuple[str, ...]
    """Empty where the source does not have it."""


class NotCompared(Record):
    """A part of a bound benchmark that its source leaves open."""

    benchmark: str
    source: str
    what: str
    """The axis without `{ct}`; `axes` for all of them."""


class BenchCheck(Document):
    """What `policygen bench --check --json` prints."""

    format: Literal["policygen/bench-check/1"] = "policygen/bench-check/1"
    cub: str | None
    """The version of CUB that the benchmarks are of; none where nothing tells it."""
    tested: bool
    """Whether the bindings were tried with that version."""
    version: str
    """The version whose bindings they were compared with."""
    compared: int
    """CUB's benchmarks that have parameters or a binding."""
    differing: int
    unbound: int
    """Those of the differing ones that no binding knows."""
    untuned: int
    """CUB's benchmarks that have neither parameters nor a binding."""
    others: int
    """Benchmarks that are not CUB's."""
    differences: tuple[BenchDifference, ...]
    """By benchmark and source; parameters before axes, each in the order of the source."""
    not_compared: tuple[NotCompared, ...] = ()
    """By benchmark and source."""
    problems: tuple[Problem, ...] = ()
