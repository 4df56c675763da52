"""From results to selectors: asks the compiler for CUB's own policies, and changes those."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policygen.bindings.load import units_of
from policygen.dialects.selectors.functions import Struct
from policygen.emit.aggregates import Field, leaves, read_aggregate
from policygen.emit.arguments import Arguments, arguments
from policygen.emit.decide import Case, ChooseTogether, Part, decide, told
from policygen.emit.selectors import Served, all_served, served
from policygen.errors import InputError
from policygen.model.emit import EmitAction
from policygen.model.plan import Action
from policygen.model.policies import Policies, Question
from policygen.model.results import ScoredWorkload
from policygen.model.workload import Point, in_words
from policygen.planning.measured import Measurement, Spaces, measurements


class Oracle(Protocol):
    """What is asked of a compiler; `policygen.proof` answers."""

    def __call__(self, questions: Sequence[Question]) -> Policies:
        """What selectors return, on all architectures."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """One selector: its benchmarks, all that CUB selects for them, and what it is to return."""

    served: tuple[Served, ...]
    fields: tuple[Field, ...]
    parts: tuple[Part, ...]
    policies: Policies
    """What CUB selects by itself."""
    arguments: Mapping[Point, Arguments]

    @property
    def name(self) -> str:
        """What the selector is called."""
        return self.served[0].selector.name

    @property
    def written(self) -> tuple[Part, ...]:
        """What it returns."""
        return tuple(part for part in self.parts if part.values is not None)

    @property
    def wanted(self) -> dict[tuple[str, ...], Mapping[str, str]]:
        """The policy for each key."""
        return {
            part.cases[0].arguments.key: part.values
            for part in self.parts
            if part.values is not None
        }

    @property
    def shared(self) -> list[str]:
        """Workloads that were not measured, and that it tells from no measured one."""
        measured = {case.measurement.point for part in self.written for case in part.cases}
        wanted = self.wanted
        return [
            in_words(name, dict(axes))
            for (name, axes), one in self.arguments.items()
            if one.key in wanted and (name, axes) not in measured
        ]


@dataclass(frozen=True, slots=True)
class Emitter:
    """What is known of a tree, and how its compiler is asked."""

    version: str
    arch: str
    structs: Mapping[str, Struct]
    ask: Oracle
    together: ChooseTogether
    force: bool = False
    spaces: Spaces = field(default_factory=dict)
    refused: list[EmitAction] = field(default_factory=list)
    """Workloads that were rejected before anything was asked."""

    def emit(self, scored: Sequence[ScoredWorkload]) -> list[Tuned]:
        """The selectors for all that was measured."""
        found, refused = measurements(
            scored, self.version, self.arch, force=self.force, spaces=self.spaces
        )
        self.refused.extend(_rejected(action) for _, action in refused)
        by_name: dict[str, list[tuple[Served, Measurement]]] = {}
        for measurement in found:
            try:
                one = served(measurement.benchmark, self.version)
            except InputError as error:
                self.refused.append(told(measurement, error.in_line))
                continue
            by_name.setdefault(one.selector.name, []).append((one, measurement))
        serves = {name: tuple(all_served(name, self.version)) for name in by_name}
        told_of = self.ask([self._question(one) for each in serves.values() for one in each])
        return [self._tuned(serves[name], given, told_of) for name, given in by_name.items()]

    def _tuned(
        self,
        serves: tuple[Served, ...],
        given: Sequence[tuple[Served, Measurement]],
        told_of: Policies,
    ) -> Tuned:
        fields = read_aggregate(self.structs, serves[0].selector.policy)
        by_benchmark = {one.benchmark.name: one for one in serves}
        policies = {place: whole for place, whole in told_of.items() if place[0][0] in by_benchmark}
        known = {
            point: arguments(by_benchmark[point[0]], dict(point[1]), whole, self.version)
            for (point, arch), whole in policies.items()
            if arch == self.arch
        }
        lots: dict[tuple[str, ...], list[Case]] = {}
        for one, measurement in given:
            told_by = known[measurement.point]
            if not told_by.nameable:
                reason = "it was measured with types or an operator that no header can name"
                self.refused.append(told(measurement, reason))
                continue
            base = policies[measurement.point, self.arch]
            case = Case(measurement, one, fields, base, told_by)
            lots.setdefault(told_by.key, []).append(case)
        parts = tuple(decide(cases, self.together) for cases in lots.values())
        return Tuned(serves, fields, parts, policies, known)

    def _question(self, one: Served) -> Question:
        fields = read_aggregate(self.structs, one.selects)
        return Question(
            one.site,
            one.benchmark,
            one.default,
            tuple(path for path, _ in leaves(fields)),
            one.roles,
            tuple(dict.fromkeys([*_sized(one), *one.selector.sized])),
        )


def _sized(one: Served) -> Iterator[str]:
    """The roles in whose sizes any version of the benchmark counts."""
    known = {*one.benchmark.roles, *(f"axis::{axis}" for axis in one.benchmark.axes)}
    return (unit.of for unit in units_of(one.benchmark.name) if unit.of in known)


def _rejected(action: Action) -> EmitAction:
    """What no plan could use, either."""
    return EmitAction.model_validate(action.model_dump(include=set(EmitAction.model_fields)))
