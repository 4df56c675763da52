"""What planning asks of a compiler; `policygen.proof` answers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from policygen.model.selection import Delta, Selected, Values
from policygen.model.workload import Point


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
