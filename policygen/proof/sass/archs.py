"""Finds the architectures that a change of headers should leave as they are."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from policygen.model.arch import arch_number, is_amd
from policygen.model.branches import ends
from policygen.model.plan import Plan
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.proof.resolve import used_families

NEVER = 1 << 16
"""A number that no architecture has."""


def tuned(before: Sequence[TuningHeader], after: Sequence[TuningHeader]) -> tuple[Family, ...]:
    """Finds the families that say something else after a change."""
    known = {_key(family): _content(family) for family in _families(before)}
    return tuple(f for f in _families(after) if known.get(_key(f)) != _content(f))


def unread(
    families: Sequence[Family], headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Finds the archs whose policies read none of some families; all where there are none."""
    return tuple(arch for arch in archs if not _reads(arch, families, headers))


def left_alone(
    plan: Plan, headers: Sequence[TuningHeader], archs: Iterable[str]
) -> tuple[str, ...]:
    """Finds the archs that a plan does not tune: earlier ones, and those with own policies.

    Where later ones shall inherit, they are no such.
    """
    if is_amd(plan.options.arch):  # none comes after another
        changed = {plan.options.arch, *(one.arch for one in plan.reached if not one.kept)}
        return tuple(arch for arch in archs if arch not in changed)
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


def _families(headers: Sequence[TuningHeader]) -> Iterator[Family]:
    for header in headers:
        yield from (*header.families, *header.selectors)


def _key(family: Family) -> tuple[str, ...]:
    return family.header, family.namespace, family.name, family.arch


def _reads(arch: str, families: Sequence[Family], headers: Sequence[TuningHeader]) -> bool:
    """Whether its policy reads one, or later architectures get what is returned for one.

    Without chains of policies a family is for its own architecture.
    """
    if any(family.arch == arch and is_amd(arch) for family in families):
        return True
    for header in headers:
        last = ends(header.selectors)
        returned = {arch_number(f.arch) for f in header.selectors if f in families}
        if any(number <= arch_number(arch) < last[number] for number in returned):
            return True
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
