"""What a variant of a benchmark means for a workload: the policy that CUB gets, and its parts.

A policy falls into parts that have no parameter in common. What a part comes to is asked once for
each combination of its own parameters, so that a space of 10^9 variants needs thousands of answers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from policygen.measure.space import Variant
from policygen.model.bindings import BenchmarkBinding, MemberRule
from policygen.model.workload import Point

Policy = Mapping[str, str]
"""Field → value, spelled as in C++."""


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """Parameters that decide some fields of a policy, and nothing else does."""

    labels: tuple[str, ...]
    fields: frozenset[str]
    delay: tuple[str, str, str] | None = None
    """Where it is the way to wait for a tile before, and no more: its id, delay and latency."""


class Meaning(Protocol):
    """A workload on an architecture, and what variants make of its policy."""

    @property
    def point(self) -> Point:
        """The workload."""

    @property
    def arch(self) -> str:
        """The architecture."""

    @property
    def benchmark(self) -> BenchmarkBinding:
        """What was read of it, as the tree has it."""

    @property
    def base(self) -> Policy:
        """What CUB selects by itself."""

    def policy(self, variant: Variant) -> Policy:
        """All fields, with those of a variant; refused where there can be no such policy."""

    def parts(self) -> Sequence[PolicyPart]:
        """The parts of the policy; a parameter that is in none of them decides nothing."""


def labels_of(rule: MemberRule) -> frozenset[str]:
    """The parameters that a rule looks at."""
    return rule.parameters | ({rule.times} if isinstance(rule.times, str) else set())


def joined(
    lots: Iterable[tuple[Collection[str], Collection[str], MemberRule | None]],
) -> list[PolicyPart]:
    """Parts of what belongs together: parameters, the fields that they decide, and by which rule.

    Lots that share a parameter are one part; their order is that of the first parameter.
    """
    groups: list[tuple[dict[str, None], set[str], list[MemberRule | None]]] = []
    for labels, fields, rule in lots:
        mine = [group for group in groups if not group[0].keys().isdisjoint(labels)]
        rest = [group for group in groups if group not in mine]
        names = dict.fromkeys(name for group in mine for name in group[0])
        names |= dict.fromkeys(sorted(labels))
        told = {name for group in mine for name in group[1]} | {*fields}
        rules = [one for group in mine for one in group[2]] + [rule]
        groups = [*rest, (names, told, rules)] if names else rest
    return [
        PolicyPart(tuple(names), frozenset(told), _delay(rules)) for names, told, rules in groups
    ]


def _delay(rules: Sequence[MemberRule | None]) -> tuple[str, str, str] | None:
    return rules[0].delay if len(rules) == 1 and rules[0] is not None else None
