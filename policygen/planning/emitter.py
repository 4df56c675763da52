"""From results to selectors: asks the compiler for CUB's own policies, and changes those."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from policygen.errors import InputError
from policygen.headers.selectors.functions import Struct, leaves, read_aggregate
from policygen.headers.user.policies import (
    PublicSelector,
    as_policy,
    question,
    selector_for,
    selectors_named,
)
from policygen.headers.user.selectors import TunedReturn, TunedSelector, UserReturn, arguments
from policygen.model.arch import arch_number
from policygen.model.emitted import EmitAction, EmitProof
from policygen.model.plans import Action, Options
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Selected
from policygen.model.tuning import Policies, Question
from policygen.model.workload import in_words
from policygen.planning.decide import decide
from policygen.planning.measured import Measurement, Spaces, measurements
from policygen.planning.places import PlacedResult, by_entry
from policygen.results.together import Together

ChooseForAll = Callable[[Sequence[ScoredWorkload]], Together]
"""One variant for several workloads."""


class PolicyOracle(Protocol):
    """What is asked of a compiler; `policygen.proof` answers."""

    def __call__(self, questions: Sequence[Question]) -> Policies:
        """What selectors return, on all architectures."""


@dataclass(frozen=True, slots=True)
class Emitter:
    """What is known of a tree, and how its compiler is asked."""

    version: str
    arch: str
    structs: Mapping[str, Struct]
    ask: PolicyOracle
    together: ChooseForAll
    force: bool = False
    spaces: Spaces = field(default_factory=dict)
    refused: list[EmitAction] = field(default_factory=list)
    """Workloads that were rejected before anything was asked."""

    def emit(self, scored: Sequence[ScoredWorkload]) -> list[TunedSelector]:
        """The selectors for all that was measured."""
        found, refused = measurements(
            scored, self.version, self.arch, force=self.force, spaces=self.spaces
        )
        self.refused.extend(_emitted(action) for _, action in refused)
        by_name: dict[str, list[tuple[PublicSelector, Measurement]]] = {}
        for measurement in found:
            try:
                one = selector_for(measurement.benchmark, self.version)
            except InputError as error:
                self.refused.append(_emitted(measurement.rejected(error.in_line)))
                continue
            by_name.setdefault(one.selector.name, []).append((one, measurement))
        serves = {name: tuple(selectors_named(name, self.version)) for name in by_name}
        told_of = self.ask(
            [question(one, self.structs) for each in serves.values() for one in each]
        )
        return [self._tuned(serves[name], given, told_of) for name, given in by_name.items()]

    def _tuned(
        self,
        serves: tuple[PublicSelector, ...],
        given: Sequence[tuple[PublicSelector, Measurement]],
        told_of: Policies,
    ) -> TunedSelector:
        fields = read_aggregate(self.structs, serves[0].selector.policy)
        by_benchmark = {one.benchmark.name: one for one in serves}
        policies = {place: whole for place, whole in told_of.items() if place[0][0] in by_benchmark}
        known = {
            point: arguments(by_benchmark[point[0]], dict(point[1]), whole, self.version)
            for (point, arch), whole in policies.items()
            if arch == self.arch
        }
        cases: list[PlacedResult] = []
        options = Options(arch=self.arch)
        for one, measurement in given:
            told_by = known[measurement.point]
            if not told_by.nameable:
                reason = "it was measured with types or an operator that no header can name"
                self.refused.append(_emitted(measurement.rejected(reason)))
                continue
            base = policies[measurement.point, self.arch]
            now = Selected(as_policy(fields, base.fields), None, {}, base.sizes)
            cases.append(PlacedResult(UserReturn(now, one, fields, base, told_by), measurement))
        parts = tuple(part_of(group, self.together, options) for group in by_entry(cases))
        return TunedSelector(serves, fields, parts, policies, known)


def part_of(cases: Sequence[PlacedResult], choose: ChooseForAll, options: Options) -> TunedReturn:
    """What all workloads with the same template arguments get."""

    def together(wanted: Sequence[PlacedResult]) -> Together:
        found = choose([case.measurement.scored for case in wanted])
        names = ", ".join(f"{c.measurement.name} {c.choice.variant or 'base'}" for c in wanted)
        reason = f"these have the same template arguments, and {found.reason}: {names}"
        return found if found.variants else Together((), reason)

    outcome = decide(cases, options, together)
    spots = tuple(case.spot for case in cases if isinstance(case.spot, UserReturn))
    values = outcome.writes[0].content.values if outcome.writes else None
    return TunedReturn(spots, tuple(_emitted(action) for action in outcome.actions), values)


def _emitted(action: Action) -> EmitAction:
    """The same of a selector: what it does not return stays as it is."""
    told = action.model_dump(include=set(EmitAction.model_fields))
    return EmitAction.model_validate(
        {
            **told,
            "decision": "write" if action.written else action.decision,
            "selector": action.target and action.target.family,
            "after": action.after or action.before,
        }
    )


Wrong = list[str]


# Whether a header does what it says: what was tuned gets its policy, all else what CUB has.


def questions(tuned: Sequence[TunedSelector], namespace: str, include: str) -> list[Question]:
    """The same workloads again, of the header's selectors."""
    return [
        Question(
            one.site,
            one.benchmark,
            f"::{namespace}::{each.name}{_arguments(one)}",
            tuple(path for path, _ in leaves(each.fields)),
            includes=(include,),
        )
        for each in tuned
        for one in each.serves
    ]


def _arguments(one: PublicSelector) -> str:
    return f"<{', '.join(one.roles)}>" if one.roles else ""


def judge(tuned: Sequence[TunedSelector], told: Policies, arch: str) -> tuple[EmitProof, Wrong]:
    """What the compiler says of the header's selectors, and what of that should be otherwise."""
    wrong: Wrong = []
    changed, compared = 0, 0
    archs: set[str] = set()
    for each in tuned:
        wanted = each.wanted
        for (point, on), whole in each.policies.items():
            own = as_policy(each.fields, whole.fields)
            key = each.arguments[point].key
            expected = wanted.get(key, own) if on == arch else own
            got = told[point, on].fields
            compared += 1
            archs.add(on)
            changed += got != own
            if got != expected:
                wrong.append(
                    f"{in_words(point[0], dict(point[1]))} on {on}: {_differs(got, expected)}"
                )
    ordered = tuple(sorted(archs, key=arch_number))
    return EmitProof(archs=ordered, compared=compared, changed=changed), wrong


def _differs(got: Mapping[str, str], expected: Mapping[str, str]) -> str:
    return ", ".join(
        f"{path} is {got.get(path)} and not {value}"
        for path, value in expected.items()
        if got.get(path) != value
    )
