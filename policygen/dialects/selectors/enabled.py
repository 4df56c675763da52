"""Conditions that are commented out, as code: which workloads they would decide.

`// if (key_size == 16) // same as previous tuning` returns a mark of its own in place of values.
"""

from collections.abc import Iterator, Sequence

from policygen.bindings.words import words
from policygen.dialects.selectors.branches import COMMENTED
from policygen.dialects.selectors.functions import find_functions, find_structs
from policygen.dialects.selectors.marks import Replacement
from policygen.model.base import Span
from policygen.model.marks import Marked, mark
from policygen.model.tuning import Entry, TuningHeader
from policygen.source.splice import replaced
from policygen.source.text import Text


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
