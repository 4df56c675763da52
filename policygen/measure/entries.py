"""Workloads whose variants are changes of CUB's own header, as a plan would write them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.expected import value_name
from policygen.bindings.words import words
from policygen.dialects.family_spot import FamilySpot
from policygen.measure.meaning import Policy, PolicyPart, joined, labels_of
from policygen.measure.memory import check_fits, element_bytes, is_static, tiles
from policygen.measure.space import Variant
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.selection import Values
from policygen.model.tuning import Value, spell
from policygen.model.workload import Point


@dataclass(frozen=True, slots=True)
class EntryWorkload:
    """One workload on an architecture, and the entry that decides it, or one to be added."""

    spot: FamilySpot
    benchmark: BenchmarkBinding
    point: Point
    arch: str
    version: str
    """Of the bindings that hold for the tree."""

    @property
    def base(self) -> Policy:
        """What CUB selects by itself."""
        return spelled(self.spot.told.values)

    def policy(self, variant: Variant) -> Policy:
        """All that its policy shows, with the values of a variant; refused where it cannot be."""
        found = {**self.base, **spelled(self.expected(variant))}
        site = self.spot.site.name
        least = element_bytes(site, dict(self.point[1]), self.version)
        for tile in tiles(site, found, self._elements(), least):
            check_fits(tile, found, self.arch)
        return found

    def members(self, variant: Variant) -> dict[str, str]:
        """The values of an entry for a variant."""
        return self.spot.members(self.benchmark, variant)

    def expected(self, variant: Variant) -> dict[str, Value]:
        """What the policy shows where it is what the benchmark measures."""
        unsaid = self.spot.unsaid(self.benchmark, variant)
        return {**unsaid, **self.spot.expected(self.members(variant))}

    def parts(self) -> Sequence[PolicyPart]:
        """The parts of the policy; a parameter that is in none of them decides nothing."""
        return joined(self._lots())

    def _lots(self) -> Iterator[tuple[Collection[str], Collection[str], MemberRule | None]]:
        rules = self._rules()
        for name, rule in rules.items():
            yield labels_of(rule), (name,), rule
        # Threads are scaled by their items, and both by what is kept in shared memory.
        counts = {*words().members.threads, *words().members.items, self.spot.site.marked}
        if is_static(self.spot.site.name):
            counts |= {*words().tiles.algorithms}
        known = [rule for name, rule in rules.items() if name in counts]
        yield frozenset(label for rule in known for label in labels_of(rule)), (), None

    def _rules(self) -> dict[str, MemberRule]:
        """What fills each value of the policy."""
        found = {}
        for member, rule in {**self.spot.unsaid_members, **self.spot.binding.members}.items():
            if name := value_name(self.spot.site, member, rule):
                found[name] = rule
        return found

    def _elements(self) -> Mapping[str, int]:
        """The bytes of an element, by the items that are scaled by it."""
        sizes, units = self.spot.told.sizes, self.benchmark.units
        pairs = ((name, units.get(rule.parameter or "")) for name, rule in self._rules().items())
        return {name: sizes[unit.of] for name, unit in pairs if unit and unit.of in sizes}


def spelled(values: Values) -> dict[str, str]:
    """Values as they stand in C++."""
    return {name: spell(value) for name, value in values.items()}
