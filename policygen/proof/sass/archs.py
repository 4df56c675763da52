"""Which architectures a change of headers is for, and which it should leave as they are."""

from collections.abc import Collection, Iterable, Sequence

from policygen.model.arch import arch_number
from policygen.model.plan import Plan
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.resolve import used_families

NEVER = 1 << 16
"""A number that no architecture has."""


def tuned(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> tuple[Family, ...]:
    """The families that say something else after a change."""
    known = {(f.header, f.namespace, f.name): _content(f) for h in before for f in h.families}
    return tuple(
        family
        for header in after
        for family in header.families
        if known.get((family.header, family.namespace, family.name)) != _content(family)
    )


def unread(
    families: Sequence[Family], headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Architectures whose policies read none of some families; all where there are none."""
    return tuple(arch for arch in archs if not _reads(arch, families, headers))


def left_alone(
    plan: Plan, headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Architectures that a plan does not tune: those before, and those with policies of their own.

    Where later ones shall inherit, they are no such.
    """
    target = arch_number(plan.options.arch)
    written = {(a.target.header, a.target.namespace) for a in plan.actions if a.target and a.after}
    chains = [
        [arch_number(policy.arch) for policy in chain.policies]
        for header in headers
        for chain in header.chains
        if (header.name, chain.namespace) in written
    ]
    own = [min((n for n in numbers if n > target), default=NEVER) for numbers in chains]
    later = max(own, default=NEVER) if plan.options.reach == "only" else NEVER
    return tuple(a for a in archs if arch_number(a) < target or arch_number(a) >= later)


def _reads(arch: str, families: Sequence[Family], headers: Sequence[TuningHeader]) -> bool:
    return any(
        family.name in used_families(header.chains, family.namespace, arch)
        for family in families
        for header in headers
        if header.name == family.header
    )


def _content(family: Family) -> Collection[object]:
    """What its entries say, wherever they stand."""
    return [_said(entry) for entry in family.entries]


def _said(entry: Entry) -> object:
    fields = {"kind", "args", "values", "inherits", "guard", "disabled"}
    return entry.model_dump(include=fields)
