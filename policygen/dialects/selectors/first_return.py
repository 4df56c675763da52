"""A return that comes first in a function: what CUB returns there is computed."""

from dataclasses import dataclass

from policygen.bindings.archs import next_arch
from policygen.bindings.words import words
from policygen.dialects.family_spot import FamilySpot
from policygen.dialects.selectors.aggregates import Field, read_aggregate
from policygen.dialects.selectors.functions import Function
from policygen.dialects.selectors.header_returns import HeaderReturns
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, FamilyBinding, MemberRule, Site
from policygen.model.entry_text import Content
from policygen.model.selection import Selected
from policygen.model.tuning import Entry, Family, Value, spell


@dataclass(frozen=True, slots=True)
class FirstReturn(FamilySpot):
    """A whole policy for one workload, before anything that its function returns now."""

    function: Function
    fields: tuple[Field, ...]
    """Of the aggregate that it returns."""
    part: str
    """Where that is in what is selected: `lookahead.`; empty for all of it."""
    conditions: tuple[str, ...]
    since: str
    below: str | None

    @property
    def entry(self) -> Entry | None:
        """None: it is added."""
        return None

    @property
    def slots(self) -> tuple[str, ...]:
        """What it asks for."""
        return (*([f"before {self.below}"] if self.below else []), *self.conditions)

    @property
    def ahead(self) -> bool:
        """It comes before what decides now."""
        return True

    def content(self, members: dict[str, str], label: str | None) -> Content:
        """The values that are tuned; the rest is as the workload has it."""
        return Content("values", members, label=label)


def first_return(
    benchmark: BenchmarkBinding, site: Site, told: Selected, arch: str, read: HeaderReturns
) -> FirstReturn:
    """Where it goes, and what it asks for; refused where the binding does not say that."""
    first = benchmark.first
    if first is None or not benchmark.returns:
        raise InputError(f"{site.header} computes it in a way that has no place for a return")
    selector = words().selectors.name
    known = [f for f, _ in read.bodies if (f.scope, f.name) == (selector, first.function)]
    if len(known) != 1 or not {*first.asks} <= told.traits.keys():
        asks = ", ".join(first.asks)
        raise InputError(f"{site.header} has no {selector}::{first.function} that knows {asks}")
    (function,) = known
    fixed = {name: MemberRule(constant=spell(v)) for name, v in benchmark.always.items()}
    own = read.structs[selector]
    types = dict(zip(own.fields, own.types, strict=True))
    return FirstReturn(
        told,
        site,
        FamilyBinding(
            site=site.name, name=function.label, args=(), members={**fixed, **benchmark.returns}
        ),
        Family(
            name=function.label,
            arch=arch,
            header=site.header,
            namespace=site.scope,
            parameters=(),
            entries=(),
        ),
        function.label,
        function,
        read_aggregate(read.structs, function.returns),
        f"{first.part}." if first.part else "",
        tuple(_condition(name, types[name], told.traits[name]) for name in first.asks),
        arch,
        next_arch(arch),
    )


def _condition(name: str, kind: str, value: Value) -> str:
    if isinstance(value, bool):
        return name if value else f"!{name}"
    return f"{name} == {kind}::{value}" if isinstance(value, str) else f"{name} == {spell(value)}"
