"""Which policy each measured workload gets: one for all that have the same template arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from policygen.emit.aggregates import Field
from policygen.emit.arguments import Arguments
from policygen.emit.overlay import as_policy, overlay
from policygen.emit.selectors import Served
from policygen.errors import InputError
from policygen.model.emit import EmitAction, EmitDecision
from policygen.model.policies import Whole
from policygen.model.results import ScoredVariant, ScoredWorkload
from policygen.planning.measured import Measurement, numbers


class Together(Protocol):
    """One variant for several workloads, in their order; none, and why."""

    @property
    def variants(self) -> tuple[ScoredVariant, ...]:
        """In the order of the workloads."""

    @property
    def reason(self) -> str:
        """Why it is this one, or none."""


ChooseTogether = Callable[[Sequence[ScoredWorkload]], Together]


@dataclass(frozen=True, slots=True)
class Case:
    """A measured workload, what CUB selects for it, and how a selector tells it from others."""

    measurement: Measurement
    served: Served
    fields: tuple[Field, ...]
    """Of the policy that is returned."""
    base: Whole
    arguments: Arguments

    def values(self, label: str) -> dict[str, str]:
        """The whole policy that a variant is."""
        measured = self.measurement.recorded.benchmark
        variant = self.measurement.parameters(label)
        return overlay(self.served, self.fields, self.base, measured, variant)

    def action(
        self,
        decision: EmitDecision,
        reason: str,
        variant: ScoredVariant | None = None,
        values: Mapping[str, str] | None = None,
    ) -> EmitAction:
        """What becomes of it."""
        before = as_policy(self.fields, self.base.fields)
        return told(self.measurement).model_copy(
            update={
                "decision": decision,
                "reason": reason,
                "variant": variant.variant if variant else None,
                "scores": numbers(variant) if variant else None,
                "selector": self.served.selector.name,
                "before": before,
                "after": before if values is None else dict(values),
            }
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Workloads with the same template arguments, and the policy that they get, if any."""

    cases: tuple[Case, ...]
    actions: tuple[EmitAction, ...]
    values: Mapping[str, str] | None
    variants: tuple[ScoredVariant, ...] = ()


def told(measurement: Measurement, reason: str = "") -> EmitAction:
    """A workload that is rejected so far."""
    scored = measurement.scored
    chosen = measurement.chosen
    return EmitAction(
        gpu=scored.gpu,
        ctk=scored.ctk,
        cccl=scored.cccl,
        databases=scored.databases,
        benchmark=measurement.benchmark.name,
        workload=measurement.workload,
        decision="reject",
        reason=reason,
        variant=chosen.variant if chosen else None,
        scores=numbers(chosen) if chosen else None,
    )


def decide(cases: Sequence[Case], together: ChooseTogether) -> Part:
    """What all workloads with the same template arguments get."""
    try:
        variants, reasons = _variants(cases, together)
        if not variants:
            return _left(cases, reasons)
        found = [
            case.values(variant.variant) for case, variant in zip(cases, variants, strict=True)
        ]
    except InputError as error:
        return _rejected(cases, error.in_line)
    if any(values != found[0] for values in found[1:]):
        return _rejected(cases, "one variant means different values for each of them")
    same = all(as_policy(case.fields, case.base.fields) == found[0] for case in cases)
    decision: EmitDecision = "keep" if same else "write"
    if same:
        reasons = ["the values are these already"] * len(cases)
    actions = [
        case.action(decision, reason, variant, found[0])
        for case, reason, variant in zip(cases, reasons, variants, strict=True)
    ]
    return Part(tuple(cases), tuple(actions), None if same else found[0], variants)


def _variants(
    cases: Sequence[Case], together: ChooseTogether
) -> tuple[tuple[ScoredVariant, ...], list[str]]:
    """The variant of each, which is one for all; none where base is best for all."""
    chosen = [case.measurement.chosen for case in cases]
    reasons = [case.measurement.choice.reason for case in cases]
    variants = tuple(variant for variant in chosen if variant is not None)
    if not variants:
        return (), reasons
    if len(variants) == len(cases) and len({v.variant for v in variants}) == 1:
        return variants, reasons
    found = together([case.measurement.scored for case in cases])
    if not found.variants:
        wanted = ", ".join(
            f"{case.measurement.name} {case.measurement.choice.variant or 'base'}" for case in cases
        )
        raise InputError(f"these have the same template arguments, and {found.reason}: {wanted}")
    return found.variants, [found.reason] * len(cases)


def _left(cases: Sequence[Case], reasons: Sequence[str]) -> Part:
    actions = [case.action("fallback", reason) for case, reason in zip(cases, reasons, strict=True)]
    return Part(tuple(cases), tuple(actions), None)


def _rejected(cases: Sequence[Case], reason: str) -> Part:
    actions = [
        case.action("reject", reason, case.measurement.chosen)
        if case.measurement.chosen
        else case.action("fallback", case.measurement.choice.reason)
        for case in cases
    ]
    return Part(tuple(cases), tuple(actions), None)
