"""Policy chains: each `PolicyNNN`, its predecessor, and how it reads a family of tunings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.headers.parsers import Facts
from policygen.headers.syntax import closing_angle, closing_brace, split_list
from policygen.headers.text import Text, squeeze
from policygen.model.arch import arch_number, ptx_version_to_arch
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, FamilyUse, Policy, PolicyChain, TuningHeader

# A pattern that begins with letters, and asks for the word boundary afterwards, is searched fast.
# "struct Policy900 : ChainedPolicy<900, Policy900, Policy860>", bases in any order
_STRUCT = re.compile(rb"struct(?<=\bstruct)\s+(\w+)(?:\s+final)?\s*:(?!:)([^{};]*)\{")
_CHAINED = re.compile(rb"\b(?:ChainedPolicy|chained_policy)\s*<")
_ARCH_NUMBER = re.compile(r"[1-9]\d{2,3}")
_MAX_POLICY = re.compile(rb"\busing\s+(?:MaxPolicy|max_policy)\s*=\s*(\w+)\s*;")
# Any struct but a tuning can be a hub; there are hundreds of those.
_ANY_STRUCT = re.compile(rb"struct(?<=\bstruct)\s+(?!sm\d)(\w+)[^{};()=]*\{")
_FAMILY = re.compile(rb"\b(sm\d{2,3}_\w+)\s*<")
# "decltype(select_agent_policy<encode::" before a use, "using tuning =" before a use
_RECEIVER = re.compile(rb"\b(\w+)\s*<\s*(?:typename\s+)?(?:::)?(?:\w+::)*\Z")
_ALIASED = re.compile(rb"\busing\s+(\w+)\s*=\s*(?:typename\s+)?(?:::)?(?:\w+::)*\Z")
_TEMPLATE = re.compile(rb"template(?<=\btemplate)\s*<")
_TYPE_PARAMETER = re.compile(rb"\s*(?:typename|class)\s+(\w+)")
_DECLARATION_END = re.compile(rb"[;{]")
_RETURNS = re.compile(rb"->\s*(?:typename\s+)?([^;{]+?)\s*\Z")


@dataclass(frozen=True, slots=True)
class _Block:
    name: str
    span: Span
    head: Span


@dataclass(frozen=True, slots=True)
class _Template:
    """A template of a hub, seen as a receiver of tunings."""

    source: bytes
    parameter: bytes
    at: int

    @property
    def reads(self) -> list[str]:
        found = re.findall(rb"\b" + self.parameter + rb"\s*::\s*(?:template\s+)?(\w+)", self.source)
        return [name.decode() for name in dict.fromkeys(found)]

    @property
    def returns(self) -> str | None:
        match = _RETURNS.search(self.source)
        return squeeze(match[1]) if match else None


def find_chains(text: Text, header: str, facts: Facts) -> tuple[PolicyChain, ...]:
    """The chains of a header, in the order of their hubs."""
    code = text.code
    if not _CHAINED.search(code):
        return ()
    hubs: dict[_Block, list[_Block]] = {}
    structs = list(_structs(code))
    for block in _policies(code):
        around = [
            s for s in structs if s.span.start < block.span.start and block.span.end < s.span.end
        ]
        if around:
            hubs.setdefault(around[-1], []).append(block)
    return tuple(_chain(text, header, facts, hub, blocks) for hub, blocks in hubs.items())


def _structs(code: bytes) -> Iterator[_Block]:
    for match in _ANY_STRUCT.finditer(code):
        if close := closing_brace(code, match.end() - 1):
            yield _Block(match[1].decode(), Span(match.start(), close + 1), Span(*match.span(1)))


def _policies(code: bytes) -> Iterator[_Block]:
    for match in _STRUCT.finditer(code):
        close = closing_brace(code, match.end() - 1)
        if close is not None and _CHAINED.search(code, *match.span(2)):
            yield _Block(match[1].decode(), Span(match.start(), close + 1), Span(*match.span(2)))


def _chain(text: Text, header: str, facts: Facts, hub: _Block, blocks: list[_Block]) -> PolicyChain:
    top = _MAX_POLICY.search(text.code, hub.span.start, hub.span.end)
    return PolicyChain(
        header=header,
        namespace=facts.namespace(hub.span.start),
        hub=hub.name,
        max_policy=top[1].decode() if top else None,
        policies=tuple(_policy(text, hub, blocks, block) for block in blocks),
    )


def _policy(text: Text, hub: _Block, blocks: list[_Block], block: _Block) -> Policy:
    code = text.code
    number, this, previous = _link(text, block)
    bases = [squeeze(code[s.start : s.end]) for s in split_list(code, *block.head)]
    end = code.find(b";", block.span.end - 1) + 1
    return Policy(
        name=block.name,
        arch=ptx_version_to_arch(number),
        predecessor=None if previous == this else previous,
        bases=tuple(base for base in bases if not _CHAINED.search(base.encode())),
        uses=tuple(_uses(code, hub, blocks, block)),
        line=text.line(block.span.start),
        span=Span(block.span.start, end or block.span.end),
    )


def _link(text: Text, block: _Block) -> tuple[int, str, str]:
    """The three arguments of `ChainedPolicy<900, Policy900, Policy860>`."""
    code = text.code
    chained = _CHAINED.search(code, *block.head)
    assert chained is not None
    close = closing_angle(code, chained.end() - 1)
    arguments = [] if close is None else split_list(code, chained.end(), close)
    link = [squeeze(code[s.start : s.end]) for s in arguments]
    if len(link) != 3 or not _ARCH_NUMBER.fullmatch(link[0]):
        raise text.error(
            chained.start(),
            f"{block.name}: cannot read its place in the chain",
            remedy="Expected: ChainedPolicy<900, Policy900, PREVIOUS>",
        )
    return int(link[0]), link[1], link[2]


def _uses(code: bytes, hub: _Block, blocks: list[_Block], block: _Block) -> Iterator[FamilyUse]:
    for match in _FAMILY.finditer(code, block.span.start, block.span.end):
        close = closing_angle(code, match.end() - 1)
        if close is None:
            continue
        before = code[block.span.start : match.start()]
        receiver, alias = _RECEIVER.search(before), _ALIASED.search(before)
        reads: list[str] = []
        fallback = None
        if receiver:
            templates = _receivers(code, hub, blocks, block, receiver[1])
            reads = list(dict.fromkeys(name for t in templates for name in t.reads))
            fallback = next((t.returns for t in templates if not t.reads), None)
        elif alias:
            reads = _Template(code[match.end() : block.span.end], alias[1], 0).reads
        else:
            direct = re.compile(rb"\s*::\s*(\w+)").match(code, close + 1)
            reads = [direct[1].decode()] if direct else []
        yield FamilyUse(
            family=match[1].decode(),
            args=tuple(
                squeeze(code[s.start : s.end]) for s in split_list(code, match.end(), close)
            ),
            selection=receiver[1].decode() if receiver else None,
            reads=tuple(reads),
            fallback=fallback,
            span=Span(match.start(), close + 1),
        )


def _receivers(
    code: bytes, hub: _Block, blocks: list[_Block], block: _Block, name: bytes
) -> list[_Template]:
    """The templates called `name` that a policy sees: its own, else the hub's."""
    own = list(_templates(code, block.span, name))
    if own:
        return own
    inside = [b.span for b in blocks]
    return [
        t
        for t in _templates(code, hub.span, name)
        if not any(s.start < t.at < s.end for s in inside)
    ]


def _templates(code: bytes, scope: Span, name: bytes) -> Iterator[_Template]:
    # `name(int) -> …`, `struct name : …`, `using name = …`; not `name<…>` or `name::…`
    declares = re.compile(rb"\b" + name + rb"\s*(?:[({=]|:(?!:))")
    for match in _TEMPLATE.finditer(code, scope.start, scope.end):
        close = closing_angle(code, match.end() - 1)
        if close is None:
            continue
        end = _DECLARATION_END.search(code, close, scope.end)
        parameter = _TYPE_PARAMETER.match(code, match.end(), close)
        if end is None or parameter is None or not declares.search(code, close, end.end()):
            continue
        stop = end.start()
        if end.group() == b"{":
            stop = closing_brace(code, end.start()) or scope.end
        yield _Template(code[match.start() : stop], parameter[1], match.start())


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


# Where an architecture goes in a chain of policies, and which policy its own can be like.


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
    chain = _chain_place_chain(header, namespace, families)
    ordered = sorted(chain.policies, key=policy_number)
    _check_free(header, ordered, arch)
    below = [policy for policy in ordered if policy_number(policy) < arch_number(arch)]
    readers = [p for p in below if _chain_place_uses(p, families)]
    if readers:
        reader = _reader(text, below[-1], readers, families)
    else:
        reader = next(p for p in reversed(ordered) if _chain_place_uses(p, families))
        read = [families[name] for name in _chain_place_uses(reader, families)]
        if not below or any(e.kind == "primary" and e.body_span for f in read for e in f.entries):
            first = next(policy for policy in ordered if _chain_place_uses(policy, families))
            raise InputError(
                f"{header.name}: {namespace} has no family for an architecture before {arch}",
                f"The first policy of {chain.hub} that reads one is {first.name}.",
            )
    uses = _chain_place_uses(reader, families)
    if len(uses) > 1:
        raise InputError(
            f"{header.name}:{reader.line}: {reader.name} reads {' and '.join(uses)}",
            "policygen knows policies that read one family; write this one by hand.",
        )
    ((name, use),) = uses.items()
    primary = _primary_entry(header, families[name], reader, use)
    following = next((p for p in ordered if policy_number(p) > arch_number(arch)), None)
    return ChainPlace(chain, below[-1], following, reader, use, families[name], primary)


def _chain_place_uses(policy: Policy, families: Mapping[str, Family]) -> dict[str, FamilyUse]:
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
    read = [families[name] for name in _chain_place_uses(newest, families)]
    if newest is previous or not any(e.kind == "primary" and e.body_span for e in read[0].entries):
        return newest
    named = {name.decode() for name in _MEMBER_OF.findall(text.code, *previous.span)}
    return next((policy for policy in reversed(readers) if policy.name in named), newest)


def _chain_place_chain(
    header: TuningHeader, namespace: str, families: Mapping[str, Family]
) -> PolicyChain:
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
