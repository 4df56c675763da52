"""Whole policies, as the compiler tells them: every field of what a selector returns."""

from collections.abc import Mapping
from dataclasses import dataclass

from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.workload import Point


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a selector for the workloads of one benchmark."""

    site: Site
    benchmark: BenchmarkBinding
    selector: str
    """The policy selector, in terms of the workload's roles."""
    fields: tuple[str, ...]
    """Paths in the policy: `multi_tile.items_per_thread`."""
    roles: tuple[str, ...] = ()
    """Those whose types or values are told, too."""
    sized: tuple[str, ...] = ()
    """Those whose sizes are told."""
    includes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """What a selector returns for a workload on an architecture, spelled as in C++."""

    fields: Mapping[str, str]
    roles: Mapping[str, str]
    sizes: Mapping[str, int]


Policies = Mapping[tuple[Point, str], Whole]
"""By workload and architecture."""
