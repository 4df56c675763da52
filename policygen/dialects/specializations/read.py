"""Families of struct templates and policy chains of a header."""

import re

from policygen.dialects.specializations.declarations import find_names
from policygen.dialects.specializations.entries import (
    FoundEntry,
    read_entries,
    template_parameters,
    with_constants,
)
from policygen.dialects.specializations.policies import find_chains
from policygen.model.base import Span
from policygen.model.tuning import Family, PolicyChain
from policygen.source import clang
from policygen.source.count import check_families, look
from policygen.source.file import SourceFile
from policygen.source.members import is_numeric
from policygen.source.text import Text

# "struct sm90_tuning", "struct smXX_tuning", "struct sm_90"; not "struct small_buffer_policy"
_SAYS_STRUCT = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)")
# The same in a comment, but as code and not as prose.
_SAYS_DECLARATION = re.compile(rb"\bstruct\s+(sm(?![a-z])\w*)\s*[<{;:]")
_WORTH_PARSING = re.compile(rb"struct\s+sm(?![a-z])|[Cc]hained_?[Pp]olicy\b|class\s+sm\d")
_ARCH = re.compile(r"sm(\d+)_")


def read_families(
    source: SourceFile, header: str, neighbours: clang.Neighbours
) -> tuple[tuple[Family, ...], tuple[PolicyChain, ...]]:
    """The entries of a header by family, and the chains whose policies read them."""
    text = source.text
    live, disabled = read_entries(source)
    facts = clang.parse(text, neighbours, _uncomputed(live))
    _cross_check(text, live, facts)
    found = [
        FoundEntry(f.declaration, with_constants(f.entry, text.data, facts.constants)) for f in live
    ]
    families = _families(text, header, facts, found + disabled)
    if not families:
        _check_nothing_is_meant(text, facts)
    return families, find_chains(text, header, facts)


def holds_tunings(data: bytes) -> bool:
    """Whether there can be a family or a policy chain in a header."""
    return _WORTH_PARSING.search(data) is not None


def _uncomputed(live: list[FoundEntry]) -> list[Span]:
    """The entries with a number that its text does not spell out."""
    return [
        found.entry.span
        for found in live
        if any(m.value is None and is_numeric(m.type) for m in found.entry.members)
    ]


def _cross_check(text: Text, live: list[FoundEntry], facts: clang.Facts) -> None:
    """Two readers that know nothing of each other must see the same templates.

    An entry that clang loses, because it cannot know a name in it, is kept. One that only clang
    sees must not pass silently.
    """
    names = {found.declaration.name_span.start for found in live}
    check_families(text, look(text.data), names | facts.aggregates)
    spans = [Span(at, at + len(name)) for at, name in facts.templates.items()]
    for span in sorted([*spans, *find_names(text.code)]):
        if span.start not in names and span.start not in facts.aggregates:
            name = text.data[span.start : span.end].decode()
            raise text.error(span.start, f"{name}: cannot read this declaration", width=len(name))
    for directive in text.directives:
        for span in find_names(text.uncommented, directive.start, directive.end):
            raise text.error(
                span.start,
                "a macro declares a tuning: cannot read what it expands to",
                width=span.end - span.start,
                remedy="Write the entries out: a result must be able to change one of them.",
            )
    if facts.unclosed is not None:
        raise text.error(len(text.data), facts.unclosed)


def _check_nothing_is_meant(text: Text, facts: clang.Facts) -> None:
    """Silence must not read as empty: what is called `smNN_…` is a tuning, or carries values."""
    for match in (*_SAYS_STRUCT.finditer(text.code), *_SAYS_DECLARATION.finditer(text.data)):
        if match.start(1) not in facts.aggregates:
            raise text.error(
                match.start(),
                "no tuning family recognised, although the header says 'struct sm'",
                width=match.end(1) - match.start(),
                remedy="A family is a class template called smNN_…, such as sm90_tuning.",
            )


def _families(
    text: Text, header: str, facts: clang.Facts, found: list[FoundEntry]
) -> tuple[Family, ...]:
    """Entries by namespace and name, in the order in which the header declares them."""
    groups: dict[tuple[str, str], list[FoundEntry]] = {}
    for item in sorted(found, key=lambda f: f.entry.span.start):
        key = (facts.namespace(item.declaration.name_span.start), item.declaration.name)
        groups.setdefault(key, []).append(item)
    return tuple(
        _family(text, header, namespace, name, items) for (namespace, name), items in groups.items()
    )


def _family(text: Text, header: str, namespace: str, name: str, items: list[FoundEntry]) -> Family:
    primary = next((i for i in items if i.entry.kind == "primary" and not i.entry.disabled), None)
    parameters = (
        template_parameters(text.data, text.code, primary.declaration.parameters_span)
        if primary
        else ()
    )
    arch = _ARCH.match(name)
    assert arch is not None
    return Family(
        name=name,
        arch=f"sm{arch[1]}",
        header=header,
        namespace=namespace,
        parameters=parameters,
        entries=tuple(item.entry for item in items),
    )
