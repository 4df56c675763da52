"""Reads guarded returns as entries: their conditions and the values they return."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from policygen.bindings.words import words
from policygen.headers.comments import Comments, Line, SourceFile, comment_lines, joined, read_notes
from policygen.headers.expressions import evaluate
from policygen.headers.selectors.conditions import COMMENTED, conjuncts
from policygen.headers.selectors.functions import (
    NAMED,
    Function,
    HeaderCode,
    Struct,
    arch_of,
    arguments,
    result_of,
)
from policygen.headers.selectors.statements import (
    Body,
    Return,
    UnreadableError,
    facts_of,
    read_body,
)
from policygen.headers.spelling import Change, replaced
from policygen.headers.syntax import check_returns, literal, member_values, parse_with_tree_sitter
from policygen.headers.text import Text, squeeze
from policygen.model.records import Span
from policygen.model.tuning import ENTRY, Entry, Family, Marked, Member, TuningHeader, Value, mark

# "int", "unsigned long", "bool": never a policy, whatever decides the value
_SCALAR = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|void|double|float|size_t|::|std|cuda)\s*)+"
)
_SELECTS = re.compile(rb"\bcompute_capability\b")


def holds_selectors(data: bytes) -> bool:
    """Checks whether a header may hold a policy selector."""
    return _SELECTS.search(data) is not None


@dataclass(frozen=True, slots=True)
class _Branches:
    """The returns of one function."""

    source: SourceFile
    structs: Mapping[str, Struct]
    functions: Mapping[str, Function]
    """All functions of the header."""
    function: Function

    @property
    def text(self) -> Text:
        return self.source.text


def read_selectors(source: SourceFile, header: str) -> tuple[Family, ...]:
    """Reads the returns of each deciding function into one family per architecture."""
    code = source.text.code
    declared = HeaderCode(code)
    bodies = [block.body for block in declared.blocks if block.kind == "function"]
    check_returns(source.text, parse_with_tree_sitter(source.text.data), bodies)
    _check_results(source.text, declared)
    functions = {function.name: function for function in declared.functions}
    families: list[Family] = []
    for function in declared.deciding:
        try:
            body = read_body(code, function.body)
        except UnreadableError as error:
            raise source.text.error(
                error.offset, f"{function.label}: cannot read this statement"
            ) from error
        branches = _Branches(source, declared.structs, functions, function)
        entries = [_entry(branches, returned) for returned in body.returns]
        entries += _commented_entries(branches, body)
        if not any(entry.args for entry in entries):
            continue  # it decides nothing
        if (unread := declared.structs[function.returns].unread) is not None:
            raise source.text.error(unread, f"{function.returns}: cannot read this field")
        entries_by_arch: dict[str, list[Entry]] = {}
        for entry in sorted(entries, key=lambda entry: entry.span.start):
            entries_by_arch.setdefault(arch_of(function, entry.args), []).append(entry)
        place = {"header": header, "namespace": declared.namespace_at(function.span.start)}
        families += [
            Family(name=function.label, arch=arch, parameters=(), entries=tuple(own), **place)
            for arch, own in entries_by_arch.items()
        ]
    return tuple(families)


def _check_results(text: Text, declared: HeaderCode) -> None:
    """Raises an error at a function that tests the architecture and returns an unknown type."""
    known_bodies = {function.body for function in declared.functions}
    for block in declared.blocks:
        if block.kind != "function" or block.body in known_bodies or block.parameters is None:
            continue
        result = result_of(text.code, block)
        tests_arch = _SELECTS.search(text.code, *block.parameters) or NAMED.search(block.name)
        if tests_arch and not _SCALAR.fullmatch(result):
            not_a_struct = f"{result}, which is not a struct of this header"
            description = not_a_struct if result else "what it deduces"
            raise text.error(
                block.start,
                f"{block.name}: cannot read the policies of a function that returns {description}",
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


def _entry(branches: _Branches, returned: Return) -> Entry:
    text, comments = branches.text, branches.source.comments
    members, inherits = _members(branches, returned.value)
    lines = list(_lines(text, comments, returned))
    notes = read_notes(lines, lives=True)
    guard = branches.source.guards.at(returned.span.start)
    return Entry(
        kind="branch",
        args=facts_of(returned.clauses),
        values=member_values(members),
        inherits=inherits,
        guard=guard.spelling,
        disabled=guard.never,
        variant=notes.variant,
        scores=notes.scores,
        line=text.line(returned.span.start),
        remarks=notes.remarks,
        labels=notes.labels,
        members=members,
        layout="block" if b"\n" in text.data[returned.statement : returned.span.end] else "line",
        format_off=branches.source.format_is_off(returned.span.start),
        span=Span(returned.statement, returned.span.end),
        inherits_span=returned.value if inherits else None,
        body_span=returned.value,
        comment_span=joined(comments.above(returned.statement)),
        guard_span=guard.span,
    )


def _lines(text: Text, comments: Comments, returned: Return) -> Iterator[Line]:
    """Yields comment lines above the return, above an `if` on the same line, and behind it."""
    above = comments.above(returned.statement)
    inside = comments.inside(Span(returned.statement, returned.span.end))
    for comment in [*above, *inside, *comments.trailing(returned.span.end)]:
        for line in comment_lines(text.data, comment):
            if not COMMENTED.match(line.text):
                yield line


def _members(branches: _Branches, value: Span) -> tuple[tuple[Member, ...], str | None]:
    """Reads the values by name, and the function that the rest is inherited from."""
    code = branches.text.code
    call = arguments(code, value)
    spelling = squeeze(branches.text.uncommented, value)
    if call is None:
        return (), None if spelling.endswith("nullopt") else spelling
    name, parts = call
    short_name = name.rpartition("::")[2]
    if short_name in branches.functions and short_name not in branches.structs:
        names = branches.functions[short_name].parameters
    else:
        struct = branches.structs.get(short_name or branches.function.returns)
        names = struct.fields if struct else ()
    if not parts:
        return (), None
    members = tuple(_flattened_members(branches, names, parts))
    # `make_policy(*found, true)`: `found` holds the numbers
    if len(parts) > len(names) or not any(type(member.value) is int for member in members):
        return (), spelling
    return members, name if short_name in branches.functions else None


def _flattened_members(
    branches: _Branches, names: tuple[str, ...], parts: list[Span]
) -> Iterator[Member]:
    """Flattens an aggregate and those nested in it: `lookback.items_per_thread`."""
    for name, part in zip(names, parts, strict=False):
        call = arguments(branches.text.code, part)
        struct = branches.structs.get(call[0].rpartition("::")[2]) if call and call[0] else None
        if call is None or struct is None or len(call[1]) > len(struct.fields):
            yield _member(branches.text, name, part)
        else:
            inner = tuple(f"{name}.{field}" for field in struct.fields)
            yield from _flattened_members(branches, inner, call[1])


def _member(text: Text, name: str, part: Span) -> Member:
    spelling = squeeze(text.uncommented, part)
    return Member(
        name=name,
        kind="value",
        type="",
        spelling=spelling,
        value=_value(spelling),
        span=part,
        value_span=part,
    )


def _value(spelling: str) -> Value | None:
    """Evaluates `104 - 1` to 103; keeps an enumerator's name; returns None for a formula."""
    number = evaluate(spelling, lambda _: None)
    if number is not None:
        return number
    parsed = literal("", spelling)
    is_constant = isinstance(parsed, bool) or re.fullmatch(r"[A-Z][A-Z0-9_]*", spelling)
    return parsed if is_constant else None


def _commented_entries(branches: _Branches, body: Body) -> Iterator[Entry]:
    """Reads commented-out conditions: `// if (key_size == 16) // same as previous tuning`."""
    text = branches.text
    remarks: list[str] = []
    last_line = None
    for comment in branches.source.comments.inside(branches.function.body):
        for line in comment_lines(text.data, comment):
            match = COMMENTED.match(line.text)
            number = text.line(line.span.start)
            if last_line != number - 1:
                remarks = []
            last_line = number
            if match is None:
                if line.text:
                    remarks.append(line.text)
                continue
            facts = (*body.scope_at(line.span.start).facts, *conjuncts(match[1].strip()))
            trailing = (match[3] or "").lstrip("/ ").strip()
            yield Entry(
                kind="branch",
                args=facts,
                values=_commented_values(branches, match[2]),
                inherits=None,
                guard=None,
                disabled=True,
                variant=None,
                scores=None,
                line=number,
                remarks=tuple(word for word in (*remarks, trailing) if word),
                span=line.span,
            )
            remarks = []


def _commented_values(branches: _Branches, value: str | None) -> dict[str, Value]:
    """Returns the constant values of a return that is commented out."""
    data = (value or "").encode()
    call = arguments(data, Span(0, len(data))) if data else None
    if call is None:
        return {}
    struct = branches.structs.get(call[0].rpartition("::")[2] or branches.function.returns)
    parts = [data[slice(*part)].decode() for part in call[1]]
    pairs = zip(struct.fields if struct else (), parts, strict=False)
    return {name: text if (parsed := _value(text)) is None else parsed for name, text in pairs}


# Marked returns of policy selectors, to identify the return that a policy comes from
#
# A returned policy gets an additional member that names the return. Everything else stays
# unchanged, including values that other code computes from the policy. A struct that is only a pair
# of counts, from which a policy is made elsewhere, carries the mark as its item count, as in a
# family's entry.


def mark_returns(header: TuningHeader, data: bytes) -> Marked:
    """Marks the guarded returns that have values; they are numbered by their position."""
    every = ((family, entry) for family in header.selectors for entry in family.entries)
    entries = tuple(pair for pair in every if pair[1].members and not pair[1].disabled)
    declared = HeaderCode(Text("", data).code)
    edits, traits = expose_traits(data)
    if entries:
        edits += _mark_members(declared, {function.returns for function in declared.deciding})
    for number, (_, entry) in enumerate(entries):
        value = entry.body_span
        assert value is not None, "it has members"
        is_list = declared.code.startswith(b"{", value.start)
        type_name = _returned_at(declared, value.start) if is_list else ""
        edits.append((Span(value.start, value.start), f"::policygen_marks::marked({type_name}"))
        edits.append((Span(value.end, value.end), f", {mark(number)})"))
    return Marked(header, replaced(data, edits), entries, traits)


def _mark_members(declared: HeaderCode, names: Iterable[str]) -> Iterator[Change]:
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
    every = ((family, entry) for family in header.selectors for entry in family.entries)
    entries = tuple(pair for pair in every if pair[1].disabled and pair[1].body_span is None)
    declared = HeaderCode(Text("", data).code)
    edits: list[Change] = []
    returned_structs = set()
    for number, (_, entry) in enumerate(entries):
        span = entry.span
        match = COMMENTED.match(data[slice(*span)].decode())
        assert match is not None, "it was read by this"
        returned = _returned_at(declared, span.start)
        returned_structs.add(returned)
        value = f"::policygen_marks::marked({returned}{{}}, {mark(number)})"
        # The line break ends the comment.
        edits.append((span, f"\nif ({match[1]}) return {value};"))
    edits += _mark_members(declared, returned_structs)
    return Marked(header, replaced(data, edits), entries)
