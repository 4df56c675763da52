"""Makes selectors from results: asks the compiler for CUB's own policies, and changes those."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from policygen.errors import InputError
from policygen.headers.selectors.functions import Struct, leaves, read_aggregate
from policygen.headers.user.policies import (
    PublicSelector,
    TunedReturn,
    TunedSelector,
    UserReturn,
    arguments,
    as_policy,
    question,
    selector_for,
    selectors_named,
    with_arguments,
)
from policygen.model.arch import arch_number
from policygen.model.emitted import EmitAction, EmitProof
from policygen.model.plans import Action, Options
from policygen.model.results import ScoredWorkload
from policygen.model.selection import Policies, Question, Selected
from policygen.model.trees import BoundVersion
from policygen.model.workload import point_name
from policygen.planning.decide import decide
from policygen.planning.measured import Measurement, Spaces, action, measurements
from policygen.planning.places import PlacedResult, by_entry
from policygen.results.together import Together

ChooseForAll = Callable[[Sequence[ScoredWorkload]], Together]
"""Chooses one variant for several workloads."""


PolicyOracle = Callable[[Sequence[Question]], Policies]
"""Asks the compiler for the policies of selectors on all architectures."""


@dataclass(frozen=True, slots=True)
class Emitter:
    """Makes tuned selectors for one version of a tree."""

    version: BoundVersion
    arch: str
    tunings: Path
    """The folder of the tree's tuning headers."""
    structs: Mapping[str, Struct]
    ask: PolicyOracle
    together: ChooseForAll
    force: bool = False
    spaces: Spaces = field(default_factory=dict)
    refused: list[EmitAction] = field(default_factory=list)
    """Workloads that were decided before anything was compiled."""

    def emit(self, scored: Sequence[ScoredWorkload]) -> list[TunedSelector]:
        """Makes the selectors for all results."""
        measured, refused = measurements(
            scored, self.version, self.arch, force=self.force, spaces=self.spaces
        )
        self.refused.extend(_emitted(action) for _, action in refused)
        by_name: dict[str, list[tuple[PublicSelector, Measurement]]] = {}
        for measurement in measured:
            try:
                selector = selector_for(measurement.benchmark, self.version)
            except InputError as error:
                self.refused.append(_emitted(measurement.rejected(error.in_line)))
                continue
            by_name.setdefault(selector.selector.name, []).append((selector, measurement))
        chosen = [measurement for group in by_name.values() for _, measurement in group]
        if not any(measurement.scored.is_used for measurement in chosen):
            self.refused.extend(
                _emitted(action(measurement, decision="fallback", reason=measurement.choice.reason))
                for measurement in chosen
            )
            return []
        served_by_name = {
            name: tuple(
                with_arguments(selector, self.tunings)
                for selector in selectors_named(name, self.version)
            )
            for name in by_name
        }
        policies = self.ask(
            [
                question(served, self.structs)
                for group in served_by_name.values()
                for served in group
            ]
        )
        return [
            self._tuned(served_by_name[name], results, policies)
            for name, results in by_name.items()
        ]

    def _tuned(
        self,
        serves: tuple[PublicSelector, ...],
        results: Sequence[tuple[PublicSelector, Measurement]],
        all_policies: Policies,
    ) -> TunedSelector:
        fields = read_aggregate(self.structs, serves[0].selector.policy)
        by_benchmark = {selector.benchmark.name: selector for selector in serves}
        policies = {
            place: policy for place, policy in all_policies.items() if place[0][0] in by_benchmark
        }
        arguments_by_point = {
            point: arguments(by_benchmark[point[0]], dict(point[1]), policy, self.version)
            for (point, arch), policy in policies.items()
            if arch == self.arch
        }
        cases: list[PlacedResult] = []
        options = Options(arch=self.arch)
        for selector, measurement in results:
            template_arguments = arguments_by_point[measurement.point]
            if not template_arguments.nameable:
                reason = "it was measured with types or an operator that a header cannot name"
                self.refused.append(_emitted(measurement.rejected(reason)))
                continue
            base = policies[measurement.point, self.arch]
            current = Selected(as_policy(fields, base.fields), None, {}, base.sizes)
            served = by_benchmark[selector.benchmark.name]
            cases.append(
                PlacedResult(
                    UserReturn(current, served, fields, base, template_arguments), measurement
                )
            )
        parts = tuple(part_of(group, self.together, options) for group in by_entry(cases))
        return TunedSelector(serves, fields, parts, policies, arguments_by_point)


def part_of(cases: Sequence[PlacedResult], choose: ChooseForAll, options: Options) -> TunedReturn:
    """Decides the policy of workloads with the same template arguments."""

    def together(subset: Sequence[PlacedResult]) -> Together:
        joint = choose([case.measurement.scored for case in subset])
        names = ", ".join(
            f"{case.measurement.name} {case.choice.variant or 'base'}" for case in subset
        )
        reason = f"these have the same template arguments, but {joint.reason}: {names}"
        return joint if joint.variants else Together((), reason)

    outcome = decide(cases, options, together)
    spots = tuple(case.spot for case in cases if isinstance(case.spot, UserReturn))
    values = outcome.writes[0].content.values if outcome.writes else None
    return TunedReturn(spots, tuple(_emitted(action) for action in outcome.actions), values)


def _emitted(action: Action) -> EmitAction:
    """Converts an action; a workload that the selector does not tune keeps CUB's policy."""
    action_fields = action.model_dump(include=set(EmitAction.model_fields))
    return EmitAction.model_validate(
        {
            **action_fields,
            "decision": "write" if action.written else action.decision,
            "selector": action.target and action.target.family,
            "after": action.after or action.before,
        }
    )


Wrong = list[str]


# Checks that tuned workloads get their policy, and that all others get CUB's.


def questions(tuned: Sequence[TunedSelector], namespace: str, include: str) -> list[Question]:
    """Asks about the same workloads, through the header's selectors."""
    return [
        Question(
            selector.site,
            selector.benchmark,
            f"::{namespace}::{tuned_selector.name}{selector.instantiated}",
            tuple(path for path, _ in leaves(tuned_selector.fields)),
            includes=(include,),
        )
        for tuned_selector in tuned
        for selector in tuned_selector.serves
    ]


def judge(
    tuned: Sequence[TunedSelector], selected_policies: Policies, arch: str
) -> tuple[EmitProof, Wrong]:
    """Compares what the header's selectors return with what they should return."""
    wrong: Wrong = []
    changed, compared = 0, 0
    archs: set[str] = set()
    for selector in tuned:
        expected_by_key = selector.wanted
        for (point, row_arch), policy in selector.policies.items():
            default = as_policy(selector.fields, policy.fields)
            key = selector.arguments[point].key
            expected = expected_by_key.get(key, default) if row_arch == arch else default
            selected = selected_policies[point, row_arch].fields
            compared += 1
            archs.add(row_arch)
            changed += selected != default
            if selected != expected:
                wrong.append(f"{point_name(point)} on {row_arch}: {_differs(selected, expected)}")
    ordered = tuple(sorted(archs, key=arch_number))
    return EmitProof(archs=ordered, compared=compared, changed=changed), wrong


def _differs(selected: Mapping[str, str], expected: Mapping[str, str]) -> str:
    return ", ".join(
        f"{path} is {selected.get(path)}, not {value}"
        for path, value in expected.items()
        if selected.get(path) != value
    )
