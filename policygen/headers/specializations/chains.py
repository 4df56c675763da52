"""Reads policy chains: each `PolicyNNN`, its predecessor, and the family of tunings it reads."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.headers.selectors.functions import Block, HeaderCode
from policygen.headers.syntax import closing_angle, closing_bracket, split_list
from policygen.headers.text import Text, blank, squeeze
from policygen.model.arch import arch_number, ptx_version_to_arch
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, FamilyUse, Policy, PolicyChain, TuningHeader

# "struct Policy900 : ChainedPolicy<900, Policy900, Policy860>", bases in any order
_CHAINED = re.compile(rb"\b(?:ChainedPolicy|chained_policy)\s*<")
_ARCH_NUMBER = re.compile(r"[1-9]\d{2,3}")
MAX_POLICY = re.compile(rb"\busing\s+(?:MaxPolicy|max_policy)\s*=\s*(\w+)\s*;")
_FAMILY = re.compile(rb"\b(sm\d{2,3}_\w+)\s*<")
# "decltype(select_agent_policy<encode::" before a use, "using tuning =" before a use
_RECEIVER = re.compile(rb"\b(\w+)\s*<\s*(?:typename\s+)?(?:::)?(?:\w+::)*\Z")
_ALIASED = re.compile(rb"\busing\s+(\w+)\s*=\s*(?:typename\s+)?(?:::)?(?:\w+::)*\Z")
_TEMPLATE = re.compile(rb"template(?<=\btemplate)\s*<")
_TYPE_PARAMETER = re.compile(rb"\s*(?:typename|class)\s+(\w+)")
_DECLARATION_END = re.compile(rb"[;{]")
_RETURNS = re.compile(rb"->\s*(?:typename\s+)?([^;{]+?)\s*\Z")


_Scope = tuple[bytes, Span]
"""The code without a hub's policies, and the span of the hub."""


@dataclass(frozen=True, slots=True)
class _Template:
    """A template of a hub that takes a tuning as its argument."""

    source: bytes
    parameter: bytes

    @property
    def reads(self) -> list[str]:
        member = rb"\b" + self.parameter + rb"\s*::\s*(?:template\s+)?(\w+)"
        return [name.decode() for name in dict.fromkeys(re.findall(member, self.source))]

    @property
    def returns(self) -> str | None:
        match = _RETURNS.search(self.source)
        return squeeze(match[1]) if match else None


def find_chains(text: Text, declared: HeaderCode, header: str) -> tuple[PolicyChain, ...]:
    """Returns the chains of a header, in the order of their hubs."""
    code = text.code
    if not _CHAINED.search(code):
        return ()
    records = [block for block in declared.blocks if block.kind == "record"]
    hubs: dict[Block, list[Block]] = {}
    for policy in records:
        if policy.bases and _CHAINED.search(code, *policy.bases):
            start = policy.start
            enclosing = [hub for hub in records if hub.body.start <= start < hub.body.end]
            if enclosing:
                hubs.setdefault(enclosing[-1], []).append(policy)
    chains = []
    for hub, policies in hubs.items():
        max_policy = MAX_POLICY.search(code, *hub.span)
        scope = blank(code, [policy.span for policy in policies]), hub.span
        chains.append(
            PolicyChain(
                header=header,
                namespace=declared.namespace_at(hub.start),
                hub=hub.name,
                max_policy=max_policy[1].decode() if max_policy else None,
                policies=tuple(_policy(text, scope, policy) for policy in policies),
            )
        )
    return tuple(chains)


def _policy(text: Text, scope: _Scope, block: Block) -> Policy:
    code = text.code
    number, own_name, previous = _link(text, block)
    bases = [squeeze(code, span) for span in split_list(code, *_bases(block))]
    end = code.find(b";", block.span.end - 1) + 1
    return Policy(
        name=block.name,
        arch=ptx_version_to_arch(number),
        predecessor=None if previous == own_name else previous,
        bases=tuple(base for base in bases if not _CHAINED.search(base.encode())),
        uses=tuple(_uses(code, scope, block)),
        line=text.line(block.span.start),
        span=Span(block.span.start, end or block.span.end),
    )


def _bases(policy: Block) -> Span:
    assert policy.bases is not None, "a policy of a chain has a base"
    return policy.bases


def link_arguments(code: bytes, span: Span) -> list[Span]:
    """Returns the three arguments of `ChainedPolicy<900, Policy900, Policy860>`."""
    chained = _CHAINED.search(code, *span)
    assert chained is not None, "the policy has a place in a chain"
    close = closing_angle(code, chained.end() - 1)
    return [] if close is None else split_list(code, chained.end(), close)


def _link(text: Text, block: Block) -> tuple[int, str, str]:
    parts = [squeeze(text.code, span) for span in link_arguments(text.code, _bases(block))]
    if len(parts) != 3 or not _ARCH_NUMBER.fullmatch(parts[0]):
        chained = _CHAINED.search(text.code, *_bases(block))
        assert chained is not None
        raise text.error(
            chained.start(),
            f"{block.name}: cannot read its place in the chain",
            remedy="Expected: ChainedPolicy<900, Policy900, PREVIOUS>",
        )
    return int(parts[0]), parts[1], parts[2]


def _uses(code: bytes, scope: _Scope, block: Block) -> Iterator[FamilyUse]:
    for match in _FAMILY.finditer(code, *block.span):
        close = closing_angle(code, match.end() - 1)
        if close is None:
            continue
        before = code[block.span.start : match.start()]
        receiver, alias = _RECEIVER.search(before), _ALIASED.search(before)
        reads: list[str] = []
        fallback = None
        if receiver:
            # The templates of this name that a policy sees: its own, else the hub's.
            templates = list(_templates(code, block.span, receiver[1]))
            templates = templates or list(_templates(*scope, receiver[1]))
            reads = list(dict.fromkeys(name for template in templates for name in template.reads))
            fallback = next((own.returns for own in templates if not own.reads), None)
        elif alias:
            reads = _Template(code[match.end() : block.span.end], alias[1]).reads
        else:
            member = re.compile(rb"\s*::\s*(\w+)").match(code, close + 1)
            reads = [member[1].decode()] if member else []
        yield FamilyUse(
            family=match[1].decode(),
            args=tuple(squeeze(code, span) for span in split_list(code, match.end(), close)),
            selection=receiver[1].decode() if receiver else None,
            reads=tuple(reads),
            fallback=fallback,
            span=Span(match.start(), close + 1),
        )


def _templates(code: bytes, scope: Span, name: bytes) -> Iterator[_Template]:
    # `name(int) -> …`, `struct name : …`, `using name = …`; not `name<…>` or `name::…`
    declares = re.compile(rb"\b" + name + rb"\s*(?:[({=]|:(?!:))")
    for match in _TEMPLATE.finditer(code, scope.start, scope.end):
        close = closing_angle(code, match.end() - 1)
        if close is None:
            continue
        terminator = _DECLARATION_END.search(code, close, scope.end)
        parameter = _TYPE_PARAMETER.match(code, match.end(), close)
        if not (terminator and parameter and declares.search(code, close, terminator.end())):
            continue
        end_of_template = terminator.start()
        if terminator.group() == b"{":
            end_of_template = closing_bracket(code, terminator.start()) or scope.end
        yield _Template(code[match.start() : end_of_template], parameter[1])


# "typename Policy1000::ScanPolicyT"
_MEMBER_OF = re.compile(rb"\b(\w+)\s*::")


@dataclass(frozen=True, slots=True)
class ChainPlace:
    """An architecture's place in the chain, and the policy that reads the newest family."""

    chain: PolicyChain
    previous: Policy
    following: Policy | None
    reader: Policy
    use: FamilyUse
    like: Family
    primary: Entry


# The place of a new architecture in a chain


def find_place(header: TuningHeader, text: Text, namespace: str, arch: str) -> ChainPlace:
    """Finds the place of an architecture that has neither a family nor a policy."""
    families = {family.name: family for family in header.families if family.namespace == namespace}
    for family in families.values():
        if family.arch == arch:
            raise InputError(
                f"{header.name}: {namespace} has {family.name} already",
                "Add the entries to that family.",
            )
    chain = _chain_of(header, namespace, families)
    ordered = sorted(chain.policies, key=lambda policy: arch_number(policy.arch))
    _check_no_policy(header, ordered, arch)
    earlier = [policy for policy in ordered if arch_number(policy.arch) < arch_number(arch)]
    readers = [policy for policy in ordered if _family_uses(policy, families)]
    if earlier_readers := [policy for policy in readers if policy in earlier]:
        reader = _reader(text, earlier[-1], earlier_readers, families)
    else:
        reader = readers[-1]
        if not earlier or any(_has_body(families[name]) for name in _family_uses(reader, families)):
            raise InputError(
                f"{header.name}: {namespace} has no family for an architecture before {arch}",
                f"The first policy of {chain.hub} that reads one is {readers[0].name}.",
            )
    uses = _family_uses(reader, families)
    if len(uses) > 1:
        raise InputError(
            f"{header.name}:{reader.line}: {reader.name} reads {' and '.join(uses)}",
            "policygen supports only policies that read one family; write this one by hand.",
        )
    ((name, use),) = uses.items()
    primary = _primary_entry(header, families[name], reader, use)
    number = arch_number(arch)
    following = next((policy for policy in ordered if arch_number(policy.arch) > number), None)
    return ChainPlace(chain, earlier[-1], following, reader, use, families[name], primary)


def _family_uses(policy: Policy, families: Mapping[str, Family]) -> dict[str, FamilyUse]:
    return {use.family: use for use in policy.uses if use.family in families}


def _has_body(family: Family) -> bool:
    """Tells whether a family's primary template is defined."""
    return any(entry.kind == "primary" and entry.body_span for entry in family.entries)


def _check_no_policy(header: TuningHeader, policies: Sequence[Policy], arch: str) -> None:
    for policy in policies:
        if arch_number(policy.arch) == arch_number(arch):
            reads = " and ".join(use.family for use in policy.uses) or "no family of tunings"
            raise InputError(
                f"{header.name}:{policy.line}: {policy.name} already exists; it reads {reads}",
                f"Make it select from an {arch}_… by hand; policygen can then write its entries.",
            )


def _reader(
    text: Text, previous: Policy, readers: Sequence[Policy], families: Mapping[str, Family]
) -> Policy:
    """Returns the newest policy that reads a family, or the one that `previous` falls back to."""
    newest = readers[-1]
    first_name = next(iter(_family_uses(newest, families)))
    if newest is previous or not _has_body(families[first_name]):
        return newest
    mentioned = {name.decode() for name in _MEMBER_OF.findall(text.code, *previous.span)}
    return next((policy for policy in reversed(readers) if policy.name in mentioned), newest)


def _chain_of(header: TuningHeader, namespace: str, families: Mapping[str, Family]) -> PolicyChain:
    for chain in header.chains:
        uses = (use for policy in chain.policies for use in policy.uses)
        if chain.namespace == namespace and any(use.family in families for use in uses):
            return chain
    raise InputError(
        f"{header.name}: no chain of policies reads a family of {namespace}",
        "A new architecture needs a chain to link into.",
    )


def _primary_entry(header: TuningHeader, model: Family, reader: Policy, use: FamilyUse) -> Entry:
    """Returns the primary template of a model family, which must provide a fallback."""
    primaries = (entry for entry in model.entries if entry.kind == "primary")
    primary = next((entry for entry in primaries if not entry.disabled), None)
    if primary is not None and primary.members and not model.specializations:
        raise InputError(
            f"{header.name}: {model.namespace}::{model.name} computes its values and has no"
            " entries",
            "A new architecture needs an existing entry as its model.",
        )
    if primary is None or (primary.body_span is None and use.fallback is None):
        raise InputError(
            f"{header.name}:{reader.line}: cannot determine what {reader.name} selects without an"
            f" entry in {model.name}",
            "Expected: a pair of overloads; the second names an earlier policy.",
        )
    return primary
