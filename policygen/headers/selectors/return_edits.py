"""Writes guarded returns as edits of a header; new returns of one block form one edit."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from policygen.bindings.variants import selected_path
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.comments import Surroundings
from policygen.headers.protocol import EntryWrite, HeaderEdits, Insertion, with_insertions
from policygen.headers.selectors.additions import (
    add_beside,
    add_inside,
    case_offset,
    delay_fields,
    guarded,
    insert,
    is_default,
    labelled_lines,
    sizes_of,
    statement,
    take_over,
    updated,
)
from policygen.headers.selectors.arch_blocks import (
    AddedFields,
    Nested,
    add_function,
    add_in_front,
    added_fields,
    block_rows,
    calls_of,
    capability_of,
    qualified,
    rewrapped,
)
from policygen.headers.selectors.arch_places import ArchBlock, ArchFunction
from policygen.headers.selectors.conditions import EQUAL
from policygen.headers.selectors.functions import Field, Function, leaves
from policygen.headers.selectors.guarded_returns import FirstReturn, GuardedReturn
from policygen.headers.selectors.nearest import (
    BeforeReturn,
    BesideReturn,
    EmptyCase,
    HeaderReturns,
    calls_in,
)
from policygen.headers.selectors.statements import Clause
from policygen.headers.spelling import (
    UNIT,
    WIDTH,
    Change,
    edit_at,
    edits_of,
    indent_of,
    leading_space,
    line_end,
    line_start,
    newline,
)
from policygen.headers.syntax import closing_bracket
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.records import Span
from policygen.model.trees import GainedMember
from policygen.model.tuning import Content, Edit, Entry, TuningHeader, spell


def write_returns(header: TuningHeader, data: bytes, writes: Sequence[EntryWrite]) -> HeaderEdits:
    """Returns the edits of all returns of a header; writes to one place form one edit."""
    text = Text(header.name, data)
    places = Surroundings(text)
    edits: list[Edit] = []
    inserted: list[Insertion] = []
    added: list[EntryWrite] = []
    firsts: dict[str, list[tuple[FirstReturn, EntryWrite]]] = {}
    for write in writes:
        if isinstance(first_return := write.spots[0], FirstReturn):
            firsts.setdefault(first_return.name, []).append((first_return, write))
    writes = [write for write in writes if not isinstance(write.spots[0], FirstReturn)]
    fields = field_edits(HeaderReturns(text, header.selectors), writes)
    for write in writes:
        if (entry := return_of(write).entry) is None:
            added.append(write)
        else:
            content = replace(write.content, values=fields.values(write))
            edits += update_return(text, places, entry, content, write.reason)
    edits += fields.edits(writes)
    edits += argument_edits(text, writes)
    spots = [spot for group in firsts.values() for spot, _ in group]
    edits += _member_edits(fields.header, spots)
    first_additions = _first_additions(text, firsts.values())
    for (span, lines), reason in [*_additions(text, added, fields), *first_additions]:
        if span.start == span.end:
            inserted.append((span.start, lines, reason))
        else:
            edits.append(edit_at(data, span, lines, reason))
    return HeaderEdits(with_insertions(edits, inserted))


def update_return(
    text: Text, places: Surroundings, entry: Entry, content: Content, reason: str
) -> list[Edit]:
    """Updates a return's values by its own member names; returns no edits if none change."""
    changes = updated(text, entry, content.values)
    return edits_of(text.data, changes + places.noted(entry, content), reason) if changes else []


@dataclass(frozen=True, slots=True)
class FieldEdits:
    """The structs of a header that returns construct, and the fields they need added."""

    header: HeaderReturns
    by_name: Mapping[str, AddedFields]

    def edits(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        """Yields the new fields, and the edits at calls of functions that return them."""
        for name, fields in self.by_name.items():
            reason = f"{name} {'takes' if fields.function else 'returns'} more"
            yield from edits_of(self.header.text.data, fields.changes(self.header), reason)
        yield from self._read_edits(writes)

    def of(self, write: EntryWrite) -> AddedFields | None:
        """Returns the fields to add for a return; None if a function makes the policy."""
        if not write.content.added:
            return None
        fields = added_fields(self.header, _model_entry(write), write.content.added)
        return None if fields.function else self.by_name[fields.name]

    def values(self, write: EntryWrite) -> dict[str, str]:
        """Returns the values by the return's field names; added ones in the header's spelling."""
        names = return_of(write).fields
        values_by_field = {names[name]: value for name, value in write.content.values.items()}
        parts: dict[str, dict[str, str]] = {}
        for member in _model_entry(write).members:
            part, _, field = member.name.rpartition(".")
            parts.setdefault(part, {})[field] = member.spelling
        for name, value in [*values_by_field.items()]:
            part, dot, field = name.rpartition(".")
            equal = (path for path, own in parts.items() if dot and own == parts.get(part))
            values_by_field |= {f"{path}.{field}": value for path in equal}  # as they were before
        for name in write.content.added:
            values_by_field[name] = qualified(self.header, name, values_by_field[name])
        return values_by_field

    def _read_edits(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        text = self.header.text
        changes: dict[Span, str] = {}
        for write in writes:
            spot, fields = return_of(write), self.of(write)
            if fields and not (spot.new and isinstance(spot.new.at, ArchFunction)):
                for scope, variable in calls_of(self.header, spot.family.name):
                    changes |= dict(fields.read(text, scope, variable))
        lines = (rewrapped(text, *change) for change in changes.items())
        yield from edits_of(text.data, lines, "the returned value includes it")


_At = TypeVar("_At")
_Groups = dict[object, list[tuple[_At, Content, EntryWrite]]]
"""The returns that are written together, by the place that they share."""


def _additions(
    text: Text, writes: Sequence[EntryWrite], fields: FieldEdits
) -> Iterator[tuple[Change, str]]:
    """Yields additions with their reasons; at one place, more specific returns come first."""
    blocks: _Groups[ArchBlock] = {}
    nested: _Groups[BesideReturn] = {}
    functions: _Groups[ArchFunction] = {}
    for write in sorted(writes, key=_sort_key):
        new_return = return_of(write).new
        assert new_return is not None, "it is a return that is not there yet"
        position = new_return.at
        values = replace(write.content, values=fields.values(write))
        if isinstance(position, ArchFunction):
            function = (position.function.name, position.below)
            functions.setdefault(function, []).append((position, values, write))
        elif isinstance(position, ArchBlock):
            block = (position.block.start, position.below)
            blocks.setdefault(block, []).append((position, values, write))
        elif isinstance(position, BeforeReturn):
            yield add_inside(text, position, values), write.reason
        elif isinstance(position, EmptyCase):
            yield take_over(text, position, values), write.reason
        elif case := nested_case(text, position):
            nested.setdefault(case, []).append((position, values, write))
        else:
            yield add_beside(text, position, values), write.reason
    for cases in nested.values():
        yield add_nested(text, [case[:2] for case in cases]), _reasons(cases)
    for returns in functions.values():
        with_members = [write for *_, write in returns if write.content.added]
        new_fields = fields.of(with_members[0]) if with_members else None
        for addition in add_function(text, [new[:2] for new in returns], new_fields):
            yield addition, _reasons(returns)
    for group in blocks.values():
        yield add_in_front(text, [new[:2] for new in group]), _reasons(group)


def _reasons(group: Sequence[tuple[*tuple[object, ...], EntryWrite]]) -> str:
    return "; ".join(dict.fromkeys(write.reason for *_, write in group))


def _first_additions(
    text: Text, firsts: Iterable[Sequence[tuple[FirstReturn, EntryWrite]]]
) -> Iterator[tuple[Change, str]]:
    """Yields first returns with their reasons: those that ask for more come first, then by size."""

    def by_conditions(pair: tuple[FirstReturn, EntryWrite]) -> tuple[object, ...]:
        conditions = pair[0].conditions
        return -len(conditions), sizes_of(conditions), conditions

    for group in firsts:
        pairs = sorted(group, key=by_conditions)
        for addition in add_first(text, [(spot, write.content) for spot, write in pairs]):
            yield addition, _reasons(pairs)


def _sort_key(write: EntryWrite) -> tuple[object, ...]:
    """Sorts by size; returns with the same sizes and more conditions come first.

    Returns modeled on a later architecture come before those modeled on an earlier one.
    """
    spot = return_of(write)
    facts = tuple(fact for fact in spot.slots if fact)
    by_arch = -arch_number(spot.family.arch)
    return by_arch, (*sizes_of(facts), math.inf), -len(facts), facts


_CAPABILITY = "::cuda::compute_capability"
_CAPABILITY_TYPE = "compute_capability"
_ENUMERATOR = re.compile(r"[A-Za-z_]\w*")


# Members that a selector gets, because first returns test them
#
# type_t input_t = type_t::other;
#
# It is last and has a default, so that other constructions of the selector keep their values.


def _member_edits(header: HeaderReturns, spots: Sequence[FirstReturn]) -> Iterator[Edit]:
    added = {name: member for spot in spots for name, member in spot.gained.items()}
    for name, member in added.items():
        changes = _member_changes(header, name, member)
        yield from edits_of(header.text.data, changes, f"the selector gets {name}")


def _member_changes(header: HeaderReturns, name: str, member: GainedMember) -> Iterator[Change]:
    text, selector_name = header.text, words().selectors.name
    selector = header.structs[selector_name]
    for include in member.includes:
        yield from _include(text, include)
    template = [*member.template.splitlines(), ""]
    yield insert(text, line_start(text.data, selector.span.start), template)
    last, kind = selector.typed_fields[-1]
    words_before = rb"\s+".join(re.escape(word.encode()) for word in [*kind.split(), last])
    declared_last = re.compile(rb"\b%b\b[^;]*;" % words_before).search(text.code, *selector.body)
    assert declared_last is not None, "it was read there"
    end = line_end(text.data, declared_last.end())
    row = text.data[line_start(text.data, declared_last.start()) : end].decode()
    declaration = f"{leading_space(row)}{member.type} {name}".ljust(row.find(" = "))
    yield insert(text, end + len(newline(text.data)), [f"{declaration} = {member.default};"])
    constructed = re.compile(rb"\b%b\s*\{" % selector_name.encode())
    for own in header.deciding:
        if own.scope == words().selectors.of_types:
            for match in constructed.finditer(text.code, *own.body):
                at = closing_bracket(text.code, match.end() - 1)
                assert at is not None, "it compiles"
                yield rewrapped(text, Span(at, at), f", {member.argument}")


def _include(text: Text, header: str) -> Iterator[Change]:
    """Includes a header among those of its library, in their order."""
    includes = re.finditer(rb"^#include <(cub/[^>]+)>[^\n]*\n", text.data, re.MULTILINE)
    rows = {row[1].decode(): row for row in includes}
    earlier = [row for name, row in rows.items() if name < header]
    if header not in rows and earlier:
        yield insert(text, earlier[-1].end(), [f"#include <{header}>"])


# First returns of a function, in a block for their architecture
#
# if (cc >= ::cuda::compute_capability{10, 0} && cc < ::cuda::compute_capability{10, 3})
# {
#   if (key_size == 4)
#   {
#     return MergeSortPolicy{512, 14, BLOCK_LOAD_DIRECT, LOAD_DEFAULT, BLOCK_STORE_DIRECT, 1};


def add_first(text: Text, returns: Sequence[tuple[FirstReturn, Content]]) -> Iterator[Change]:
    """Writes one block with all of them, and names the capability parameter if it has no name."""
    first = returns[0][0]
    body = first.function.body
    (name,) = first.function.parameters
    if name == _CAPABILITY_TYPE:
        name = "cc"
        yield _named_parameter(text, first.function, name)
    start = line_end(text.data, body.start) + len(newline(text.data))
    indent = indent_of(text.data, start + len(text.code[start:]) - len(text.code[start:].lstrip()))
    limits = [f"{name} >= {capability_of(_CAPABILITY, first.family.arch)}"]
    if first.below:
        limits.append(f"{name} < {capability_of(_CAPABILITY, first.below)}")
    new = [Nested((), spot.conditions, partial(_first_rows, text, spot, c)) for spot, c in returns]
    yield insert(text, start, [*guarded(limits, block_rows(new, indent + UNIT), indent), ""])


def _first_rows(text: Text, spot: FirstReturn, content: Content, indent: str) -> list[str]:
    aggregate = Field("", spot.function.returns, spot.fields)
    values = dict(_leaf_values(text, spot, content))
    lines = _return_lines("return ", aggregate, values, "", indent, ";")
    return [*labelled_lines(content.label, indent), *lines]


def _named_parameter(text: Text, function: Function, name: str) -> Change:
    """Names the parameter in a function's head."""
    type_name = _CAPABILITY_TYPE.encode()
    end_of_type = text.code.rindex(type_name, function.span.start, function.body.start)
    end_of_type += len(type_name)
    start, end = line_start(text.data, end_of_type), line_end(text.data, end_of_type)
    row = f"{text.data[start:end_of_type].decode()} {name}{text.data[end_of_type:end].decode()}"
    head, arrow, returns = row.rpartition(" -> ")
    if len(row) > WIDTH and arrow:
        indent = leading_space(row) + UNIT
        row = f"{head}{newline(text.data)}{indent}-> {returns}"
    return Span(start, end), row


def _return_lines(
    prefix: str, aggregate: Field, values: Mapping[str, str], parent: str, indent: str, suffix: str
) -> list[str]:
    """Writes `return X{…};` on one line, or breaks it as clang-format does in CUB's style."""
    parts = [_inline(field, values, parent) for field in aggregate.fields]
    endings = [","] * (len(parts) - 1) + [f"}}{suffix}"]
    rows = [part + ending for part, ending in zip(parts, endings, strict=True)]
    head, single_row, deeper = f"{indent}{prefix}{aggregate.type}{{", " ".join(rows), indent + UNIT
    if len(head) + len(single_row) <= WIDTH:
        return [head + single_row]
    if not any(field.fields for field in aggregate.fields):
        fits = len(deeper) + len(single_row) <= WIDTH
        return [head, *(deeper + row for row in ([single_row] if fits else rows))]
    if len(parts) == 1:
        (inner,) = aggregate.fields
        opened = f"{prefix}{aggregate.type}{{"
        return _return_lines(opened, inner, values, f"{parent}{inner.name}.", indent, endings[0])
    if max(map(len, rows)) + len(head) <= WIDTH:
        first_row, *other_rows = rows
        return [head + first_row, *(" " * len(head) + row for row in other_rows)]
    lines = [head]
    for field, row, ending in zip(aggregate.fields, rows, endings, strict=True):
        path = f"{parent}{field.name}."
        if field.fields and len(deeper) + len(row) > WIDTH:
            lines += _return_lines("", field, values, path, deeper, ending)
        else:
            lines.append(deeper + row)
    return lines


def _inline(field: Field, values: Mapping[str, str], parent: str) -> str:
    if not field.fields:
        return values[f"{parent}{field.name}"]
    inner = f"{parent}{field.name}."
    return f"{field.type}{{{', '.join(_inline(nested, values, inner) for nested in field.fields)}}}"


def _leaf_values(
    text: Text, first_return: FirstReturn, content: Content
) -> Iterator[tuple[str, str]]:
    """Yields each leaf of the policy: tuned, named by a binding, or the compiler's number."""
    selected_fields = first_return.selected.fields
    if selected_fields is None:
        raise InputError(
            f"{text.path}: the compiler does not show all values that {first_return.name} returns"
        )
    bound_values, numbers = dict(_bound_values(first_return, content)), selected_fields.values
    for leaf, type_name in leaves(first_return.fields):
        path = f"{first_return.part}{leaf}"
        value: object = bound_values.get(path)
        if value is None:
            # CUB gives the same value to several parts of a policy: keep them equal.
            number, field_name = numbers.get(path), path.rpartition(".")[2]
            equal = (other for other in bound_values if numbers.get(other) == number)
            same_field = (other for other in equal if other.rpartition(".")[2] == field_name)
            value = bound_values.get(next(same_field, ""), number)
        yield leaf, _spelled(text, first_return, path, type_name, value)


def _bound_values(first_return: FirstReturn, content: Content) -> Iterator[tuple[str, str]]:
    """Yields the values that bindings name, by their path in the selected policy."""
    site, selected = first_return.site, first_return.selected.values
    values = {name: spell(value) for name, value in selected.items()} | content.values
    for name, location in site.values.items():
        if (path := selected_path(site.policy, location)) and name in values:
            yield path, values[name]
    delay = delay_fields(values.get(words().values.delay, ""))
    if site.delay and delay is not None:
        for location, value in zip(site.delay, delay, strict=True):
            path = selected_path(site.policy, location)
            assert path is not None, "it is one of a field"
            yield path, value


def _spelled(
    text: Text, first_return: FirstReturn, path: str, type_name: str, value: object
) -> str:
    if type_name == "bool":
        return {"0": "false", "1": "true"}.get(str(value), str(value))
    if isinstance(value, str) and _ENUMERATOR.fullmatch(value) and value not in {"true", "false"}:
        scoped = re.search(rb"\b%b::\w" % type_name.encode(), text.code)
        return f"{type_name}::{value}" if scoped else value
    is_number = {*type_name.split()} <= {"int", "unsigned", "long", "short", "size_t", "char"}
    if value is None or not (isinstance(value, str) or is_number):
        raise InputError(f"{text.path}: no binding describes {path} of {first_return.name}")
    return str(value)


# A default that does nothing, so that the workload leaves the switch
_DEFAULT_BREAK = re.compile(rb"\s*default\s*:\s*break\s*;\s*")
# The end of an inner switch: "} break;"
_SWITCH_BREAK = re.compile(rb"\}\s*break\s*;\s*")


NestedCase = tuple[int, str]
"""A new `case` with a `switch` of its own: the start of the outer `switch`, and the condition."""


# New cases with a nested `switch`


def nested_case(text: Text, place: BesideReturn) -> NestedCase | None:
    """Returns the `case` that a return needs, or None if its neighbors are not two switches.

    In both switches, workloads without a case must fall through to the code below.
    """
    inner, outer = place.beside.clauses[-1], place.clause
    operands = [match[1] for condition in place.conditions if (match := EQUAL.fullmatch(condition))]
    both_cases = place.beside.clauses[-2:] == (outer, inner) and outer.kind == inner.kind == "case"
    if not both_cases or len(operands) != 2 or operands != [_subject(outer), _subject(inner)]:
        return None
    body = place.beside.body
    outer_cases = body.cases(outer)
    followed_by_break = _SWITCH_BREAK.fullmatch(text.code, inner.scope.end, outer.end)
    is_there = any(place.conditions[0] in case.text.split(" || ") for case in outer_cases)
    falls_through = all(_does_nothing(text, case) for case in [*outer_cases, *body.cases(inner)])
    if is_there or not followed_by_break or not falls_through:
        return None
    return outer.scope.start, place.conditions[0]


def add_nested(text: Text, group: Sequence[tuple[BesideReturn, Content]]) -> Change:
    """Writes the `case` with all its new returns, sorted by size among the others."""
    place, data = group[0][0], text.data
    outer, inner = place.clause, place.beside.clauses[-1]
    entry = place.beside.entry
    case_indent, label_indent = indent_of(data, outer.start), indent_of(data, inner.start)
    switch_indent = indent_of(data, inner.scope.end)
    body_indent = indent_of(data, entry.span.start)
    rows = [f"{case_indent}case {_value(place.conditions[0])}:"]
    rows += [f"{switch_indent}switch ({_subject(inner)})", f"{switch_indent}{{"]
    for position, content in group:
        rows += [f"{label_indent}case {_value(position.conditions[1])}:"]
        rows += statement(text, position.beside.entry, content, body_indent)
    if any(is_default(case) for case in place.beside.body.cases(inner)):
        rows += [f"{label_indent}default:", f"{body_indent}break;"]
    rows += [f"{switch_indent}}}", f"{switch_indent}break;"]
    return insert(text, case_offset(text, place), rows)


def _does_nothing(text: Text, clause: Clause) -> bool:
    """Checks that a clause is a `default` that does nothing, or no default at all."""
    if not clause.text.endswith("default"):
        return "default" not in clause.text
    return bool(_DEFAULT_BREAK.fullmatch(text.code, clause.start, clause.end))


def _subject(clause: Clause) -> str | None:
    """Returns the operand that a case compares."""
    match = EQUAL.fullmatch(clause.text)
    return match[1] if match else None


def _value(condition: str) -> str:
    return condition.partition(" == ")[2]


# Fields that structs need added


def field_edits(header: HeaderReturns, writes: Sequence[EntryWrite]) -> FieldEdits:
    """Determines which structs and helper functions need more fields."""
    by_name: dict[str, AddedFields] = {}
    for write in writes:
        if added := write.content.added:
            fields = added_fields(header, _model_entry(write), added)
            earlier = by_name.get(fields.name, fields)
            by_name[fields.name] = replace(earlier, members={**earlier.members, **added})
    return FieldEdits(header, by_name)


def return_of(write: EntryWrite) -> GuardedReturn:
    """Returns the guarded return that a write goes to."""
    spot = write.spots[0]
    assert isinstance(spot, GuardedReturn), "it is a return"
    return spot


def _model_entry(write: EntryWrite) -> Entry:
    """Returns the entry that changes, or the model of a new one."""
    spot = return_of(write)
    entry = spot.new.at.beside.entry if spot.new else spot.entry
    assert entry is not None, "it changes, or is like another"
    return entry


# Members of the selector that functions are given, as new conditions in them test them


def argument_edits(text: Text, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
    """Yields the edits of the functions' parameters, and of all calls in the header."""
    passed: dict[Span, tuple[Function, dict[str, str]]] = {}
    for write in writes:
        new_return = return_of(write).new
        if new_return and isinstance(new_return.at, BeforeReturn) and new_return.at.passed:
            function = new_return.at.beside.function
            passed.setdefault(function.span, (function, {}))[1].update(new_return.at.passed)
    for function, members in passed.values():
        declared = "".join(f", {kind} {name}" for name, kind in members.items())
        changes = [(function.parameter_list.end, declared)]
        changes += [(call.end, f", {', '.join(members)}") for call in calls_in(text.code, function)]
        rows = (rewrapped(text, Span(at, at), addition) for at, addition in changes)
        yield from edits_of(text.data, rows, f"{function.name} is given {', '.join(members)}")
