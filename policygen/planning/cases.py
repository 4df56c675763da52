"""Measured workloads with the places where their results would be written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.dialects.protocol import Spot, TypeName
from policygen.model.plan import Action
from policygen.model.results import Choice
from policygen.model.tuning import Value
from policygen.planning.measured import Measurement


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """One measured workload and where its result would be written."""

    spot: Spot
    measurement: Measurement

    @property
    def choice(self) -> Choice:
        """What the rules say of its variants."""
        return self.measurement.choice

    def naming(self, name: TypeName) -> "PlacedResult":
        """With an entry for one of its types alone."""
        return replace(self, spot=self.spot.naming(name))

    def rejected(self, reason: str) -> Action:
        """It stays as it is."""
        spot = self.spot
        return self.measurement.rejected(reason, spot.general.target, spot.told.values)

    def members(self, label: str) -> dict[str, str]:
        """The values of an entry for one of the variants."""
        measured = self.measurement.recorded.benchmark
        return self.spot.members(measured, self.measurement.parameters(label))

    def expected(self, members: Mapping[str, str], label: str) -> dict[str, Value]:
        """What its policy shows when it takes these values, and is what was measured."""
        return {**self.unsaid(label), **self.spot.expected(members)}

    def unsaid(self, label: str) -> dict[str, Value]:
        """The values of a variant that its policy shows, and no member of an entry says."""
        measured = self.measurement.recorded.benchmark
        return self.spot.unsaid(measured, self.measurement.parameters(label))

    def has(self, members: Mapping[str, str], label: str) -> bool:
        """Whether its policy shows these values now."""
        now = self.spot.told.values
        return all(now.get(name) == value for name, value in self.expected(members, label).items())


def by_entry(cases: Sequence[PlacedResult]) -> list[list[PlacedResult]]:
    """Workloads that one entry decides, in the order of their first."""
    groups: dict[object, list[PlacedResult]] = {}
    for case in cases:
        groups.setdefault(case.spot.place, []).append(case)
    return list(groups.values())
