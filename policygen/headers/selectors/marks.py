"""Marks in the functions of policy selectors: which return a policy comes from.

A policy that is returned gets one more member, which tells the return; all else, also what other
code computes from its values, stays as it is. What is only a pair of counts, from which a policy
is made elsewhere, carries the mark in place of its count of items, as an entry of a family does.
"""

from collections.abc import Iterator, Sequence

from policygen.bindings.words import words
from policygen.headers.selectors.branches import COMMENTED
from policygen.headers.selectors.functions import find_functions, find_structs
from policygen.headers.spelling import replaced
from policygen.headers.text import Text
from policygen.model.edits import Marked, mark
from policygen.model.records import Span
from policygen.model.tuning import Entry, TuningHeader

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


# Conditions that are commented out, as code: which workloads they would decide.
#
# `// if (key_size == 16) // same as previous tuning` returns a mark of its own in place of
# values.


def enable_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks conditions that are commented out, and makes them code; `#if 0` is left alone."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.disabled and entry.body_span is None
    )
    edits = _enabled(data, [entry for _, entry in entries])
    return Marked(header, replaced(data, edits), entries)


def _enabled(data: bytes, entries: Sequence[Entry]) -> Iterator[Replacement]:
    """The edits; the number of a condition is its place among the entries."""
    text = Text("", data)
    structs = find_structs(text.code)
    functions = list(find_functions(text.code, structs))
    used = set()
    for number, entry in enumerate(entries):
        span = entry.span
        match = COMMENTED.match(data[span.start : span.end].decode())
        assert match is not None, "it was read by this"
        around = next(f for f in functions if f.body.start <= span.start < f.body.end)
        used.add(around.returns)
        value = f"::policygen_marks::marked({around.returns}{{}}, {mark(number)})"
        # The line break ends the comment.
        yield span, f"\nif ({match[1]}) return {value};"
    for name in sorted(used):
        if words().selectors.counts not in structs[name].fields:
            end = structs[name].body.end
            yield Span(end, end), "int policygen_entry = -1;"
