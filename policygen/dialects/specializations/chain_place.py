"""Where an architecture goes in a chain of policies, and which policy its own can be like."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.arch import arch_number
from policygen.model.tuning import Entry, Family, FamilyUse, Policy, PolicyChain, TuningHeader
from policygen.source.text import Text

# "typename Policy1000::ScanPolicyT"
_MEMBER_OF = re.compile(rb"\b(\w+)\s*::")


@dataclass(frozen=True, slots=True)
class ChainPlace:
    """Where in the chain an architecture goes, and the policy that reads the newest family."""

    chain: PolicyChain
    previous: Policy
    following: Policy | None
    reader: Policy
    use: FamilyUse
    like: Family
    primary: Entry


def policy_number(policy: Policy) -> int:
    """The architecture of a policy, for sorting."""
    return arch_number(policy.arch)


def find_place(header: TuningHeader, text: Text, namespace: str, arch: str) -> ChainPlace:
    """The place of an architecture that has no family and no policy yet."""
    families = {f.name: f for f in header.families if f.namespace == namespace}
    for family in families.values():
        if family.arch == arch:
            raise InputError(
                f"{header.name}: {namespace} has {family.name} already",
                "Add the entries to that family.",
            )
    chain = _chain(header, namespace, families)
    ordered = sorted(chain.policies, key=policy_number)
    _check_free(header, ordered, arch)
    below = [policy for policy in ordered if policy_number(policy) < arch_number(arch)]
    readers = [p for p in below if _uses(p, families)]
    if readers:
        reader = _reader(text, below[-1], readers, families)
    else:
        reader = next(p for p in reversed(ordered) if _uses(p, families))
        read = [families[name] for name in _uses(reader, families)]
        if not below or any(e.kind == "primary" and e.body_span for f in read for e in f.entries):
            first = next(policy for policy in ordered if _uses(policy, families))
            raise InputError(
                f"{header.name}: {namespace} has no family for an architecture before {arch}",
                f"The first policy of {chain.hub} that reads one is {first.name}.",
            )
    uses = _uses(reader, families)
    if len(uses) > 1:
        raise InputError(
            f"{header.name}:{reader.line}: {reader.name} reads {' and '.join(uses)}",
            "policygen knows policies that read one family; write this one by hand.",
        )
    ((name, use),) = uses.items()
    primary = _primary_entry(header, families[name], reader, use)
    following = next((p for p in ordered if policy_number(p) > arch_number(arch)), None)
    return ChainPlace(chain, below[-1], following, reader, use, families[name], primary)


def _uses(policy: Policy, families: Mapping[str, Family]) -> dict[str, FamilyUse]:
    return {use.family: use for use in policy.uses if use.family in families}


def _check_free(header: TuningHeader, policies: Sequence[Policy], arch: str) -> None:
    for policy in policies:
        if policy_number(policy) == arch_number(arch):
            reads = " and ".join(use.family for use in policy.uses) or "no family of tunings"
            raise InputError(
                f"{header.name}:{policy.line}: {policy.name} is there already; it reads {reads}",
                f"Let it select from an {arch}_… by hand; its entries can then be written.",
            )


def _reader(
    text: Text, previous: Policy, readers: Sequence[Policy], families: Mapping[str, Family]
) -> Policy:
    """The newest policy that reads a family; of families that inherit, what `previous` gives."""
    newest = readers[-1]
    read = [families[name] for name in _uses(newest, families)]
    if newest is previous or not any(e.kind == "primary" and e.body_span for e in read[0].entries):
        return newest
    named = {name.decode() for name in _MEMBER_OF.findall(text.code, *previous.span)}
    return next((policy for policy in reversed(readers) if policy.name in named), newest)


def _chain(header: TuningHeader, namespace: str, families: Mapping[str, Family]) -> PolicyChain:
    for chain in header.chains:
        if chain.namespace == namespace and any(
            use.family in families for policy in chain.policies for use in policy.uses
        ):
            return chain
    raise InputError(
        f"{header.name}: no chain of policies reads a family of {namespace}",
        "A new architecture needs a chain to be linked into.",
    )


def _primary_entry(header: TuningHeader, like: Family, reader: Policy, use: FamilyUse) -> Entry:
    """The primary template of a family that another can be like, with something to fall back to."""
    primary = next((e for e in like.entries if e.kind == "primary" and not e.disabled), None)
    if primary is not None and primary.members and not like.specializations:
        raise InputError(
            f"{header.name}: {like.namespace}::{like.name} computes its values and has no entries",
            "There is nothing that entries for a new architecture can be written like.",
        )
    if primary is None or (primary.body_span is None and use.fallback is None):
        raise InputError(
            f"{header.name}:{reader.line}: cannot see what {reader.name} selects where "
            f"{like.name} has no entry",
            "Expected: a pair of overloads, of which the second names an earlier policy.",
        )
    return primary
