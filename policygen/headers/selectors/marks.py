"""Marks the returns of policy selectors, to identify the return that a policy comes from.

A returned policy gets an additional member that names the return. Everything else stays unchanged,
including values that other code computes from the policy. A struct that is only a pair of counts,
from which a policy is made elsewhere, carries the mark as its item count, as in a family's entry.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policygen.bindings.words import words
from policygen.headers.selectors.branches import COMMENTED
from policygen.headers.selectors.functions import (
    Function,
    Struct,
    find_functions,
    find_structs,
)
from policygen.headers.spelling import replaced
from policygen.headers.text import Text
from policygen.model.edits import Marked, mark
from policygen.model.records import Span
from policygen.model.tuning import Entry, TuningHeader

Replacement = tuple[Span, str]


def mark_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks the guarded returns that have values."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.members and not entry.disabled
    )
    edits = _marks(data, [entry for _, entry in entries])
    trait_edits, traits = expose_traits(data)
    return Marked(header, replaced(data, [*edits, *trait_edits]), entries, traits)


def _marks(data: bytes, entries: Sequence[Entry]) -> Iterator[Replacement]:
    """Yields the edits; returns are numbered by their position."""
    if not entries:
        return
    code = Text("", data).code
    structs = find_structs(code)
    functions = list(find_functions(code, structs))
    yield from _members(structs, {function.returns for function in functions})
    for number, entry in enumerate(entries):
        value = entry.body_span
        assert value is not None, "it has members"
        returned = _returned_at(functions, value.start)
        type_name = returned if code[value.start : value.start + 1] == b"{" else ""
        yield Span(value.start, value.start), f"::policygen_marks::marked({type_name}"
        yield Span(value.end, value.end), f", {mark(number)})"


def _members(structs: Mapping[str, Struct], names: Iterable[str]) -> Iterator[Replacement]:
    """Adds the member that carries the mark to the structs that are not pairs of counts."""
    for name in sorted(names):
        end = structs[name].body.end
        if words().selectors.counts not in structs[name].fields:
            yield Span(end, end), "int policygen_entry = -1;"


def _returned_at(functions: Sequence[Function], offset: int) -> str:
    """Returns the struct that the function around an offset returns."""
    around = (
        function for function in functions if function.body.start <= offset < function.body.end
    )
    return next(around).returns


def expose_traits(data: bytes) -> tuple[list[Replacement], tuple[str, ...]]:
    """Makes a selector return its own members instead of a policy, and returns their names.

    A selector on types constructs one on traits and calls it: that call gets an overload, too.
    """
    code = Text("", data).code
    structs = find_structs(code)
    selector_name = words().selectors.name
    selector = structs.get(selector_name)
    calls = [
        function
        for function in find_functions(code, structs)
        if function.scope == words().selectors.of_types
    ]
    if selector is None or not selector.fields or len(calls) != 1:
        return [], ()
    (call,) = calls
    body = data[slice(*call.body)].decode(errors="surrogateescape")
    (name,) = call.parameters
    operator = "operator()(::policygen_marks::asked"
    end = selector.body.end
    return [
        (Span(end, end), f"constexpr {selector_name} {operator}) const {{ return *this; }}"),
        (
            Span(call.span.end, call.span.end),
            f" constexpr {selector_name} {operator} {name}) const {{{body}}}",
        ),
    ], selector.fields


# Commented-out conditions, enabled to determine which workloads they match
#
# `// if (key_size == 16) // same as previous tuning` then returns a mark in place of values.


def enable_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks commented-out conditions and turns them into code, except inside `#if 0`."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.disabled and entry.body_span is None
    )
    edits = _enabled(data, [entry for _, entry in entries])
    return Marked(header, replaced(data, edits), entries)


def _enabled(data: bytes, entries: Sequence[Entry]) -> Iterator[Replacement]:
    """Yields the edits; conditions are numbered by their position among the entries."""
    text = Text("", data)
    structs = find_structs(text.code)
    functions = list(find_functions(text.code, structs))
    returned_structs = set()
    for number, entry in enumerate(entries):
        span = entry.span
        match = COMMENTED.match(data[slice(*span)].decode())
        assert match is not None, "it was read by this"
        returned = _returned_at(functions, span.start)
        returned_structs.add(returned)
        value = f"::policygen_marks::marked({returned}{{}}, {mark(number)})"
        # The line break ends the comment.
        yield span, f"\nif ({match[1]}) return {value};"
    yield from _members(structs, returned_structs)
