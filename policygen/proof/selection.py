"""What a compiler says that a tree selects, and what it refuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policygen.errors import PolicygenError, Problems
from policygen.model.selection import Selected
from policygen.model.workload import Point
from policygen.proof.unit import Workload


@dataclass(frozen=True, slots=True)
class Selection:
    """What a tree selects for workloads on architectures, and which units do not compile."""

    rows: Mapping[tuple[Workload, str], Selected]
    errors: tuple[PolicygenError, ...] = ()
    refused: Mapping[Workload, PolicygenError] = field(default_factory=dict)
    """The workloads of which the compiler says nothing, or not all that was asked."""

    def checked(self) -> "Selection":
        """Raises what does not compile; else gives the selection."""
        if self.errors:
            raise Problems(self.errors)
        return self

    @property
    def by_point(self) -> dict[tuple[Point, str], Selected]:
        """Gives the rows of benchmarks, by workload and architecture."""
        return {(workload.point, arch): row for (workload, arch), row in self.rows.items()}
