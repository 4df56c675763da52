"""Writes new guarded returns, laid out like existing ones, and finds where they go."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from policygen.errors import InputError
from policygen.headers.comments import Comments, format_off_regions
from policygen.headers.selectors.conditions import COMMENTED, simplest
from policygen.headers.selectors.functions import arguments
from policygen.headers.selectors.nearest import BeforeReturn, BesideReturn, EmptyCase, HeaderReturn
from policygen.headers.selectors.statements import Clause
from policygen.headers.spelling import (
    UNIT,
    WIDTH,
    Change,
    indent_of,
    leading_space,
    like,
    line_end,
    line_start,
    newline,
    rewritten,
    text_of,
)
from policygen.headers.syntax import split_list
from policygen.headers.text import Text
from policygen.model.records import Span
from policygen.model.tuning import Content, Entry, Member, conjunction

# "    return Name{", "    return {", "    constexpr auto policies = Name{"
_OPENED = re.compile(r"\s*(?:return|[\w:\s]+ =) ([\w:]*)([{(])")
_CLOSING = str.maketrans("{(", "})")
Sizes = tuple[int, ...]
_ELSE = re.compile(rb"\s*else\b")
_GUARD = re.compile(rb"[ \t]*#[ \t]*(if|endif)\b")


def add_beside(text: Text, place: BesideReturn, content: Content) -> Change:
    """Adds a return to the block of its nearest one: another `case` or another `if`."""
    clause = place.clause
    if clause.kind == "case":
        if place.beside.clauses[-1] is clause and len(place.conditions) == 1:
            return _add_case(text, place, content)
        return _before_switch(text, place, content)
    return _add_if(text, place, content)


def add_inside(text: Text, place: BeforeReturn, content: Content) -> Change:
    """Adds a return for one type in front of the one for all other types."""
    model = place.beside
    entry = model.entry
    innermost = model.clauses[-1] if model.clauses else None
    if innermost and _is_line(text, innermost, entry):
        conditions = (*innermost.facts, *place.conditions)
        rows = _block(text, model, conditions, content, indent_of(text.data, innermost.start))
        gap = [""] if spaced(text, innermost) else []
        return insert(text, above(text, innermost.start), [*rows, *gap])
    indent = indent_of(text.data, model.start)
    rows = statement(text, entry, content, indent + UNIT)
    return insert(text, above(text, model.start), guarded(place.conditions, rows, indent))


def take_over(text: Text, empty: EmptyCase, content: Content) -> Change:
    """Replaces the statement that ends a `case` without values, and the comment above it."""
    data, line_ending = text.data, newline(text.data)
    indent = indent_of(data, empty.span.start)
    rows = statement(text, empty.beside.entry, content, indent)
    comments = Comments(text).above(empty.span.start)
    start = comments[0].start if comments else empty.span.start
    return Span(start, empty.span.end), line_ending.join(rows).removeprefix(indent)


def statement(
    text: Text, entry: Entry, content: Content, indent: str, wrapper: tuple[str, str] = ("", "")
) -> list[str]:
    """Writes a `return` like that of an entry, with a comment on the origin of its values."""
    rows = returned(text, entry, content, indent, wrapper)
    return [*labelled_lines(content.label, indent), *rows]


def returned(
    text: Text, entry: Entry, content: Content, indent: str, wrapper: tuple[str, str] = ("", "")
) -> list[str]:
    """Writes the lines of a `return` like that of an entry, with new values."""
    span = entry.body_span
    assert span is not None, "it has values"
    changes = branch_changes(text.data, entry, content.values)
    value = rewritten(text.data, span, changes).decode(errors="replace")
    margin = len(_space_before(text.data, span.start))
    first_row, *other_rows = value.splitlines()
    other_rows = [indent + row[min(margin, len(leading_space(row))) :] for row in other_rows]
    rows = [f"{indent}return {wrapper[0]}{first_row}", *other_rows]
    rows[-1] += f"{wrapper[1]};"
    return [part for row in rows for part in wrapped(row, indent)]


def wrapped(row: str, indent: str) -> list[str]:
    """Breaks a row that is too long into one line per value."""
    if len(row) <= WIDTH:
        return [row]
    code = row.encode()
    head = _OPENED.match(row)
    if head is None:
        continuation, start = leading_space(row), 0
    else:
        start = head.end()
        continuation = indent + UNIT if head[1] else " " * start
    end = len(row) if head is None else row.rindex(head[2].translate(_CLOSING), start)
    spans = split_list(code, start, end)
    parts = [row[slice(*span)].strip() for span in spans if span.start < span.end]
    rows = [continuation + part + "," for part in parts]
    rows[-1] = rows[-1][:-1] + row[end:]
    if head is None:
        return rows
    if head[1]:
        single_row = continuation + row[start:].strip()
        return [row[:start], single_row] if len(single_row) <= WIDTH else [row[:start], *rows]
    return [row[:start] + rows[0].lstrip(), *rows[1:]]


def updated(text: Text, entry: Entry, values: Mapping[str, str]) -> list[Change]:
    """Returns the changes of single values, or of the whole return if a line gets too long."""
    span = entry.body_span
    assert span is not None, "it has values"
    changes = list(branch_changes(text.data, entry, values))
    start, end = line_start(text.data, span.start), line_end(text.data, span.end)
    starts_statement = text.data[start : span.start].strip() == b"return"
    after = rewritten(text.data, Span(start, end), changes)
    longest = max(map(len, after.splitlines()), default=0)
    if not changes or not starts_statement or longest <= WIDTH:
        return changes
    indent = _space_before(text.data, span.start)
    rows = returned(text, entry, Content("values", dict(values)), indent)
    value = newline(text.data).join(rows).removeprefix(f"{indent}return ").removesuffix(";")
    return [(span, value)]


def guarded(
    conditions: Sequence[str], rows: Sequence[str], indent: str, word: str = ""
) -> list[str]:
    """Wraps rows in an `if` with a block."""
    return [*condition_lines(conditions, indent, word), f"{indent}{{", *rows, f"{indent}}}"]


def condition_lines(conditions: Sequence[str], indent: str, word: str = "") -> list[str]:
    """Writes `if (…)`, on several lines if needed."""
    condition = conditions[0] if len(conditions) == 1 else conjunction(tuple(conditions))
    single_row = f"{indent}{word}if ({condition})"
    if len(single_row) <= WIDTH:
        return [single_row]
    rows: list[str] = []
    for part in single_row.split(" && "):
        if rows and len(rows[-1]) + len(" && ") + len(part) <= WIDTH:
            rows[-1] += f" && {part}"
        else:
            rows.append(f"{indent}    && {part}" if rows else part)
    return rows


def _add_if(text: Text, place: BesideReturn, content: Content) -> Change:
    clause = place.clause
    indent = indent_of(text.data, clause.start)
    if _has_else(text, clause):
        rows = statement(text, place.beside.entry, content, indent + UNIT)
        offset = line_end(text.data, clause.end)
        gap = newline(text.data)
        lines = guarded(place.conditions, rows, indent, "else ")
        return Span(offset, offset), "".join(gap + row for row in lines)
    if place.instead:
        rows = _block(text, place.beside, place.conditions, content, indent)
        return _replacing(text, place.instead, rows)
    offset, is_behind = _insertion_point(text, place)
    # A one-line `if` may be an effect of clang-format being off.
    formatted = place.beside.entry.format_off and not any(
        region.start <= offset < region.end for region in format_off_regions(text)
    )
    rows = _block(text, place.beside, place.conditions, content, indent, formatted=formatted)
    gap_rows = [""] if spaced(text, place.clause) else []
    return insert(text, offset, [*gap_rows, *rows] if is_behind else [*rows, *gap_rows])


def _block(
    text: Text,
    model: HeaderReturn,
    conditions: Sequence[str],
    content: Content,
    indent: str,
    *,
    formatted: bool = False,
) -> list[str]:
    """Writes an `if` with a return, on one line if the model is."""
    entry = model.entry
    if not formatted and _is_line(text, model.clauses[-1], entry):
        row = condition_lines(conditions, indent)
        value = returned(text, entry, content, "")
        if len(row) == 1 and len(value) == 1:
            return [*labelled_lines(content.label, indent), f"{row[0]} {value[0]}"]
    return guarded(conditions, statement(text, entry, content, indent + UNIT), indent)


def _is_line(text: Text, innermost: Clause, entry: Entry) -> bool:
    """Tells whether a return and the `if` around it are on one line."""
    return innermost.kind == "if" and b"\n" not in text.data[innermost.start : entry.span.end]


def _replacing(text: Text, commented: Span, rows: list[str]) -> Change:
    """Replaces the commented-out form of the same condition, and the comment above it."""
    data = text.data
    start = line_start(data, commented.start)
    end = line_end(data, commented.end) + len(newline(data))
    while (previous := line_start(data, start - 1)) < start:
        row = data[previous:start].decode().strip()
        if not row.startswith("//") or COMMENTED.match(row.lstrip("/ ")):
            break
        start = previous
    return Span(start, end), insert(text, start, rows)[1]


def _insertion_point(text: Text, place: BesideReturn) -> tuple[int, bool]:
    """Finds the offset of a new `if` in its block, and whether that is behind an existing one.

    More specific conditions come first, then smaller sizes.
    """
    conditions = place.conditions
    ifs = [own for own in _block_of(place) if own.kind == "if" and not _has_else(text, own)]
    before, after = None, place.clause
    needed = {*simplest(conditions)}
    for clause in ifs:
        other_facts = clause.facts
        implied = {*simplest((*conditions, *other_facts))} == needed
        if implied and {*other_facts} != {*conditions}:
            before = before or clause
        elif set(other_facts) > set(conditions):
            before, after = None, clause
    if before is None:
        names = _size_names(conditions)
        comparable = [clause for clause in ifs if _size_names(clause.facts) == names]
        sizes = [sizes_of(clause.facts) for clause in comparable]
        sort_key = _sort_order(sizes)
        if place.clause in comparable and sort_key is not None:
            own_key = sort_key(sizes_of(conditions))
            pairs = zip(comparable, sizes, strict=True)
            smaller = [clause for clause, size in pairs if sort_key(size) <= own_key]
            if not smaller:
                before = comparable[0]
            elif ifs.index(smaller[-1]) > ifs.index(after) or after is place.clause:
                after = smaller[-1]
    if before is not None:
        return above(text, before.start), False
    return below_line(text, after.end), True


def _block_of(place: BesideReturn) -> list[Clause]:
    """Returns the clauses beside a return's; in a `switch`, only those of its `case`."""
    body, scope, offset = place.beside.body, place.clause.scope, place.clause.start
    starts = [case.start for case in body.cases(place.clause)]
    start = max((start for start in starts if start <= offset), default=scope.start)
    end = min((start for start in starts if start > offset), default=scope.end)
    return [clause for clause in body.siblings(place.clause) if start <= clause.start < end]


def is_default(case: Clause) -> bool:
    """Tells whether a case is the `default`."""
    return case.text.endswith(": default")


def _add_case(text: Text, place: BesideReturn, content: Content) -> Change:
    data, clause = text.data, place.clause
    (condition,) = place.conditions
    label = condition.partition(" == ")[2]
    indent = indent_of(data, clause.start)
    entry = place.beside.entry
    body_indent = indent_of(data, entry.span.start)
    rows = [f"{indent}case {label}:", *statement(text, entry, content, body_indent)]
    return insert(text, case_offset(text, place), rows)


def case_offset(text: Text, place: BesideReturn) -> int:
    """Returns where a new case goes in its `switch`, by the sizes of the others."""
    size = sizes_of([place.conditions[0]])
    for case in place.beside.body.cases(place.clause):
        if is_default(case) or sizes_of([case.text]) > size:
            return above(text, case.start)
    return line_start(text.data, place.clause.scope.end)


def _before_switch(text: Text, place: BesideReturn, content: Content) -> Change:
    """Puts an `if` above the `switch`, for a value without a `case`."""
    start = text.code.rindex(b"switch", 0, place.clause.scope.start)
    indent = indent_of(text.data, start)
    rows = statement(text, place.beside.entry, content, indent + UNIT)
    return insert(text, above(text, start), [*guarded(place.conditions, rows, indent), ""])


def labelled_lines(label: str | None, indent: str) -> list[str]:
    """Writes the comment on the origin of values."""
    return [f"{indent}// {label}"] if label else []


def insert(text: Text, offset: int, rows: Sequence[str]) -> Change:
    """Inserts whole lines at an offset."""
    line_ending = newline(text.data)
    return Span(offset, offset), "".join(row + line_ending for row in rows)


def _has_else(text: Text, clause: Clause) -> bool:
    """Tells whether an `if` follows or precedes an `else`."""
    before_else = _ELSE.match(text.code, clause.end) is not None
    return before_else or text.code.startswith(b"else", clause.start)


def spaced(text: Text, clause: Clause) -> bool:
    """Tells whether blank lines separate the clauses of a block."""
    before = text.data[: above(text, clause.start)].removesuffix(b"\n").rstrip(b" \t\r")
    behind = text.data[below_line(text, clause.end) :].lstrip(b" \t")
    return before.endswith(b"\n") or behind[:1] in {b"\n", b"\r"}


def above(text: Text, offset: int) -> int:
    """Returns the start of a statement with its comment and its leading `#if`."""
    data = text.data
    comments = Comments(text).above(offset)
    start = line_start(data, comments[0].start if comments else offset)
    previous = line_start(data, start - 1) if start else start
    guard = _GUARD.match(data, previous)
    return previous if guard and guard[1] == b"if" else start


def below_line(text: Text, end: int) -> int:
    """Returns the start of the line behind a statement and its trailing `#endif`."""
    data = text.data
    next_line = line_end(data, end) + len(newline(data))
    guard = _GUARD.match(data, next_line)
    if guard and guard[1] == b"endif":
        next_line = line_end(data, next_line) + len(newline(data))
    return next_line


def _space_before(data: bytes, offset: int) -> str:
    """Returns the white space at the start of an offset's line."""
    return leading_space(data[line_start(data, offset) : offset].decode(errors="replace"))


def _size_names(facts: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the sizes that facts test."""
    matches = (re.match(r"(\w+) == \d+", fact) for fact in facts)
    return tuple(match[1] for match in matches if match)


def _sort_order(rows: Sequence[Sizes]) -> Callable[[Sizes], Sizes] | None:
    """Finds the priority of sizes by which existing returns are sorted."""
    for places in permutations(range(len(rows[0]))) if rows else ():

        def sort_key(sizes: Sizes, places: tuple[int, ...] = places) -> Sizes:
            return tuple(sizes[index] for index in places)

        if {*map(len, rows)} == {len(places)} and list(rows) == sorted(rows, key=sort_key):
            return sort_key
    return None


def sizes_of(facts: Iterable[str]) -> Sizes:
    """Returns the numbers that facts test."""
    matches = (re.search(r"== (\d+)", fact) for fact in facts)
    return tuple(int(match[1]) for match in matches if match)


# "fixed_delay_constructor_t<350, 450>"
_DELAY = re.compile(r"(?:\w+::)*(\w+)_constructor_t<(\d+)(?:, (\d+))?>")
# "LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}"; "…_from_type<X<350, 450>>"
_FIELDS = re.compile(r"(.*\{\s*(?:\w+::)*)\w+(,\s*)\d+(,\s*)\d+(\s*\})", re.DOTALL)
_TYPE = re.compile(r"(\w+<\s*(?:\w+::)*)\w+_constructor_t<[\d\s,]+>(\s*>)", re.DOTALL)
# "104 - 1"
_DIFFERENCE = re.compile(r"\d+(\s*-\s*)(\d+)")


def branch_changes(data: bytes, entry: Entry, values: Mapping[str, str]) -> Iterator[Change]:
    """Yields the values that change, behind those that the return lacks."""
    members = {member.name: member for member in entry.members}
    assert entry.body_span is not None, "it has values"
    if missing := [value for name, value in values.items() if name not in members]:
        end = len(data[: entry.body_span.end - 1].rstrip())
        gap = _separator(data, entry.body_span)
        yield Span(end, end), "".join(f",{gap}{value}" for value in missing)
    for name, value in values.items():
        if name not in members:
            continue
        member = members[name]
        old = text_of(data, member.value_span)
        new = _respelled(member, old, value)
        if new != old:
            yield member.value_span, new


def _separator(data: bytes, body: Span) -> str:
    """Returns the separator of a return's values: a space, or a line break and indentation."""
    call = arguments(data, body)
    parts = call[1] if call else []
    if len(parts) < 2 or b"\n" not in data[parts[-2].end : parts[-1].start]:
        return " "
    return newline(data) + indent_of(data, parts[-1].start)


def _respelled(member: Member, old: str, value: str) -> str:
    if member.value is not None and str(member.value).lower() == value:
        return old
    if delay := _DELAY.fullmatch(value):
        return _respelled_delay(member, old, delay)
    if (difference := _DIFFERENCE.fullmatch(old)) and value.isdigit():
        return f"{int(value) + int(difference[2])}{difference[1]}{difference[2]}"
    return like(old, value)


def delay_fields(delay: str) -> tuple[str, str, str] | None:
    """Splits `fixed_delay_constructor_t<350, 450>` into algorithm, delay and write latency."""
    match = _DELAY.fullmatch(delay)
    if match is None:
        return None  # "reduce_by_key_delay_constructor_t<350, 450, 500>": no benchmark tries it
    kind, first, second = match.groups()
    # A delay policy that does not wait only has a write latency.
    return (kind, first, second) if second else (kind, "0", first)


def _respelled_delay(member: Member, old: str, delay: re.Match[str]) -> str:
    """Spells a delay as fields or as a type, like the old value."""
    if match := _FIELDS.fullmatch(old):
        fields = delay_fields(delay[0])
        assert fields is not None, "it matches"
        kind, ns, l2w = fields
        replacement = f"{match[1]}{kind}{match[2]}{ns}{match[3]}{l2w}{match[4]}"
    elif match := _TYPE.fullmatch(old):
        replacement = f"{match[1]}{delay[0]}{match[2]}"
    else:
        raise InputError(f"{member.name}: {old!r} is not a delay that can be written")
    return replacement
