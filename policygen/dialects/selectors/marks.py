"""Marks in the functions of policy selectors: which return a policy comes from.

A policy that is returned gets one more member, which tells the return; all else, also what other
code computes from its values, stays as it is. What is only a pair of counts, from which a policy
is made elsewhere, carries the mark in place of its count of items, as an entry of a family does.
"""

from collections.abc import Iterator, Sequence

from policygen.bindings.words import words
from policygen.dialects.selectors.functions import find_functions, find_structs
from policygen.model.base import Span
from policygen.model.marks import Marked, mark
from policygen.model.tuning import Entry, TuningHeader
from policygen.source.splice import replaced
from policygen.source.text import Text

Replacement = tuple[Span, str]


def mark_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks the guarded returns that have values of their own."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.members and not entry.disabled
    )
    edits = _marks(data, [entry for _, entry in entries])
    told, traits = told_traits(data)
    return Marked(header, replaced(data, [*edits, *told]), entries, traits)


def _marks(data: bytes, entries: Sequence[Entry]) -> Iterator[Replacement]:
    """The edits; the number of a return is its place among them."""
    if not entries:
        return
    code = Text("", data).code
    structs = find_structs(code)
    functions = list(find_functions(code, structs))
    for name in sorted({function.returns for function in functions}):
        struct = structs[name]
        if words().selectors.counts not in struct.fields:
            yield Span(struct.body.end, struct.body.end), "int policygen_entry = -1;"
    for number, entry in enumerate(entries):
        value = entry.body_span
        assert value is not None, "it has members"
        around = next(f for f in functions if f.body.start <= value.start < f.body.end)
        kind = around.returns if code[value.start : value.start + 1] == b"{" else ""
        yield Span(value.start, value.start), f"::policygen_marks::marked({kind}"
        yield Span(value.end, value.end), f", {mark(number)})"


def told_traits(data: bytes) -> tuple[list[Replacement], tuple[str, ...]]:
    """The edits that let a selector tell its members in place of a policy, and their names.

    A selector of types makes one of traits and calls it: that call gets an overload.
    """
    code = Text("", data).code
    structs = find_structs(code)
    own = words().selectors.name
    selector = structs.get(own)
    calls = [f for f in find_functions(code, structs) if f.scope == words().selectors.of_types]
    if selector is None or not selector.fields or len(calls) != 1:
        return [], ()
    (call,) = calls
    body = data[call.body.start : call.body.end].decode(errors="surrogateescape")
    (name,) = call.parameters
    asked = "operator()(::policygen_marks::asked"
    end = selector.body.end
    return [
        (Span(end, end), f"constexpr {own} {asked}) const {{ return *this; }}"),
        (
            Span(call.span.end, call.span.end),
            f" constexpr {own} {asked} {name}) const {{{body}}}",
        ),
    ], selector.fields
