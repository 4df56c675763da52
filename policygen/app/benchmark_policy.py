"""The policy of a benchmark of one's own: a policy selector, or the hub that earlier CUBs take."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from policygen.bindings.load import Bound
from policygen.dialects.selectors.aggregates import Field, leaves
from policygen.dialects.user.hubs import HUB, GivenHub
from policygen.dialects.user.layout import statement, wrapped
from policygen.dialects.user.macros import MacroPolicy, macro_policy
from policygen.dialects.user.public import SINCE, PublicSelector
from policygen.model.bench import ParameterRange
from policygen.model.run_binding import RunBinding
from policygen.model.versions import numbers
from policygen.source.benchmarks.spelling import SourceNames

INDENT = 2
"""Levels of statements in a policy selector."""


@dataclass(frozen=True, slots=True)
class SelectorPart:
    """A policy selector that the public API is given."""

    selector: PublicSelector
    fields: tuple[Field, ...]
    template: ClassVar = "bench/selector.cu.j2"
    words: ClassVar[Mapping[str, str]] = {}
    """What the source calls a functor that it declares itself."""
    includes: ClassVar[tuple[str, ...]] = ()
    """Headers that it needs besides those of the call."""

    @property
    def algorithm(self) -> Bound:
        """Whose policy it is."""
        return self.selector.algorithm

    @property
    def roles(self) -> tuple[str, ...]:
        """What the selector is templated on: what CUB's own is, and whose sizes scale counts."""
        scaling = (unit.of for unit in self.selector.benchmark.units.values())
        return tuple(dict.fromkeys([*self.selector.roles, *scaling]))

    @staticmethod
    def said(run: RunBinding) -> tuple[str, ...]:
        """What of the source's call names roles."""
        return run.function, run.arguments, run.environment

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """The versions that a benchmark with it is for, of those of its binding."""
        return max([since or "0", ".".join(map(str, SINCE))], key=numbers), below

    def values(self, _names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """For the template."""
        found = macro_policy(self.selector, self.fields, macros_of(ranges))
        return {
            "policy": self.selector.selector.policy,
            "lines": list(self._lines(found)),
        }

    def _lines(self, found: MacroPolicy) -> Iterator[str]:
        """The statements that make the policy."""
        one = self.selector
        default = re.sub(r"\s+", " ", one.default).replace("< ", "<").removeprefix("::")
        if one.selects == one.selector.policy:
            yield from _statement("auto policy =", f"{default}{{}}(cc)")
        else:
            yield from _statement("const auto own =", f"{default}{{}}(cc)")
            yield from _statement(f"cub::{one.selector.policy}", "policy{}")
            for path, _ in leaves(self.fields):
                to = f"policy.{path}"
                yield from _statement(f"{to} =", f"static_cast<decltype({to})>(own.{path})")
        for name, call in found.scaled.items():
            yield from _statement(f"const auto {name} =", call)
        for path, value in found.fields.items():
            sign, _, rest = value.partition(" ")
            yield from _statement(f"policy.{path} {sign}", rest)
        for to, source in found.copies.items():
            yield from _statement(f"policy.{to} =", f"policy.{source}")


@dataclass(frozen=True, slots=True)
class HubPart:
    """A policy hub that a class of CUB's is given, where the public API takes no policy."""

    given: GivenHub
    template: ClassVar = "bench/hub.cu.j2"
    words: ClassVar[Mapping[str, str]] = {"less_than": "less_than_t"}
    """What the source calls a functor that it declares itself: the headers have none."""

    @property
    def algorithm(self) -> Bound:
        """Whose policy it is."""
        return self.given.algorithm

    @property
    def includes(self) -> tuple[str, ...]:
        """Headers that it needs besides those of the call."""
        return self.given.hub.includes

    @property
    def roles(self) -> tuple[str, ...]:
        """What the hub is templated on."""
        return self.given.roles

    def said(self, _run: RunBinding) -> tuple[str, ...]:
        """What of the source's call names roles."""
        one = self.given.dispatch
        return (*one.takes, one.default or "", *one.setup, one.call)

    def range(self, since: str | None, below: str | None) -> tuple[str | None, str | None]:
        """The versions that a benchmark with it is for, of those of its binding."""
        hub, dispatch = self.given.hub, self.given.dispatch
        first = [one for one in (since, hub.since, dispatch.since) if one]
        last = [one for one in (below, hub.below, dispatch.below) if one]
        return max(first, key=numbers, default=None), min(last, key=numbers, default=None)

    def values(self, names: SourceNames, ranges: Sequence[ParameterRange]) -> dict[str, object]:
        """For the template."""
        own = f"{HUB}<{', '.join(names.spell(one) for one in self.roles)}>" if self.roles else HUB
        lead = "using dispatch_t = "
        return {
            "name": HUB,
            "lines": list(self.given.lines(macros_of(ranges))),
            "base": wrapped(lead, names.spell(self.given.class_name(None)), ";", 1),
            "variant": wrapped(lead, names.spell(self.given.class_name(own)), ";", 1),
            "setup": [names.spell(one) for one in self.given.dispatch.setup],
            "call": wrapped("return dispatch_t::", names.spell(self.given.dispatch.call), ";", 2),
        }


def macros_of(ranges: Sequence[ParameterRange]) -> Mapping[str, str]:
    """Label → macro."""
    return {one.label: one.macro for one in ranges}


def _statement(left: str, right: str) -> list[str]:
    return statement(left, right, INDENT)
