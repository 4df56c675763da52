"""Marks the returns of policy selectors, to identify the return that a policy comes from.

A returned policy gets an additional member that names the return. Everything else stays unchanged,
including values that other code computes from the policy. A struct that is only a pair of counts,
from which a policy is made elsewhere, carries the mark as its item count, as in a family's entry.
"""

from collections.abc import Iterable, Iterator, Sequence

from policygen.bindings.words import words
from policygen.headers.selectors.branches import COMMENTED
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.spelling import Change, replaced
from policygen.headers.text import Text
from policygen.model.edits import ENTRY, Marked, mark
from policygen.model.records import Span
from policygen.model.tuning import Entry, TuningHeader


def mark_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks the guarded returns that have values."""
    entries = tuple(
        (family, entry)
        for family in header.selectors
        for entry in family.entries
        if entry.members and not entry.disabled
    )
    edits = _marks(HeaderCode(Text("", data).code), [entry for _, entry in entries])
    trait_edits, traits = expose_traits(data)
    return Marked(header, replaced(data, [*edits, *trait_edits]), entries, traits)


def _marks(declared: HeaderCode, entries: Sequence[Entry]) -> Iterator[Change]:
    """Yields the edits; returns are numbered by their position."""
    if entries:
        yield from _members(declared, {function.returns for function in declared.deciding})
    for number, entry in enumerate(entries):
        value = entry.body_span
        assert value is not None, "it has members"
        is_list = declared.code.startswith(b"{", value.start)
        type_name = _returned_at(declared, value.start) if is_list else ""
        yield Span(value.start, value.start), f"::policygen_marks::marked({type_name}"
        yield Span(value.end, value.end), f", {mark(number)})"


def _members(declared: HeaderCode, names: Iterable[str]) -> Iterator[Change]:
    """Adds the member that carries the mark to the structs that are not pairs of counts."""
    for name in sorted(names):
        end = declared.structs[name].body.end
        if words().selectors.counts not in declared.structs[name].fields:
            yield Span(end, end), f"int {ENTRY} = -1;"


def _returned_at(declared: HeaderCode, offset: int) -> str:
    """Returns the struct that the function around an offset returns."""
    function = declared.function_at(offset)
    assert function is not None, "it has a return"
    return function.returns


def expose_traits(data: bytes) -> tuple[list[Change], tuple[str, ...]]:
    """Makes a selector return its own members instead of a policy, and returns their names.

    A selector on types constructs one on traits and calls it: that call gets an overload, too.
    """
    declared = HeaderCode(Text("", data).code)
    selector_name = words().selectors.name
    selector = declared.structs.get(selector_name)
    calls = [own for own in declared.deciding if own.scope == words().selectors.of_types]
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
    edits = _enabled(HeaderCode(Text("", data).code), data, [entry for _, entry in entries])
    return Marked(header, replaced(data, edits), entries)


def _enabled(declared: HeaderCode, data: bytes, entries: Sequence[Entry]) -> Iterator[Change]:
    """Yields the edits; conditions are numbered by their position among the entries."""
    returned_structs = set()
    for number, entry in enumerate(entries):
        span = entry.span
        match = COMMENTED.match(data[slice(*span)].decode())
        assert match is not None, "it was read by this"
        returned = _returned_at(declared, span.start)
        returned_structs.add(returned)
        value = f"::policygen_marks::marked({returned}{{}}, {mark(number)})"
        # The line break ends the comment.
        yield span, f"\nif ({match[1]}) return {value};"
    yield from _members(declared, returned_structs)
