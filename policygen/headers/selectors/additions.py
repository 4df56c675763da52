"""The text of a guarded return that is new, and where it goes: in the manner of those beside it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from policygen.errors import InputError
from policygen.headers.comments import Comments
from policygen.headers.selectors.branches import COMMENTED, facts_of, simplest
from policygen.headers.selectors.functions import arguments
from policygen.headers.selectors.nearest import BeforeReturn, BesideReturn, EmptyCase, KnownReturn
from policygen.headers.selectors.statements import Clause
from policygen.headers.spelling import (
    edit_at,
    indent_of,
    like,
    line_end,
    line_start,
    newline,
    splice,
    text_of,
)
from policygen.headers.syntax import split_list
from policygen.headers.text import Text
from policygen.model.edits import Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, Member, conjunction

COLUMNS = 120
UNIT = "  "
# "    return Name{", "    return {"
_OPENED = re.compile(r"\s*return ([\w:]*)([{(])")
_CLOSING = str.maketrans("{(", "})")
Sizes = tuple[int, ...]
_ELSE = re.compile(rb"\s*else\b")
_GUARD = re.compile(rb"[ \t]*#[ \t]*(if|endif)\b")


@dataclass(frozen=True, slots=True)
class Returned:
    """What a new return says: the values, and where they come from."""

    values: Mapping[str, str]
    label: str | None


@dataclass(frozen=True, slots=True)
class Addition:
    """Whole lines at a place, or in place of a statement."""

    span: Span
    text: str


def add_beside(text: Text, near: BesideReturn, new: Returned) -> Addition:
    """A return in the block of its nearest: another `case`, or another `if`."""
    clause = near.clause
    if clause.kind == "case":
        if near.beside.clauses[-1] is clause and len(near.conditions) == 1:
            return _case(text, near, new)
        return _before_switch(text, near, new)
    return _if(text, near, new)


def add_inside(text: Text, inside: BeforeReturn, new: Returned) -> Addition:
    """A return for a type in front of the one that is for all others."""
    beside = inside.beside
    entry = beside.entry
    inner = beside.clauses[-1] if beside.clauses else None
    if inner and _is_line(text, inner, entry):
        conditions = (*facts_of((inner,)), inside.condition)
        rows = _block(text, beside, conditions, new, indent_of(text.data, inner.start))
        gap = [""] if spaced(text, inner) else []
        return insert(text, above(text, inner.start), [*rows, *gap])
    indent = indent_of(text.data, beside.start)
    rows = statement(text, entry, new, indent + UNIT)
    return insert(text, above(text, beside.start), guarded((inside.condition,), rows, indent))


def take_over(text: Text, left: EmptyCase, new: Returned) -> Addition:
    """A return in place of the statement with which a `case` gives up, and of why it does."""
    data, end = text.data, newline(text.data)
    indent = indent_of(data, left.span.start)
    rows = statement(text, left.beside.entry, new, indent)
    comments = Comments(text).above(left.span.start)
    start = comments[0].start if comments else left.span.start
    return Addition(Span(start, left.span.end), end.join(rows).removeprefix(indent))


def statement(
    text: Text, entry: Entry, new: Returned, indent: str, around: tuple[str, str] = ("", "")
) -> list[str]:
    """A `return` like that of an entry, with the comment on where its values come from."""
    return [*labelled_lines(new.label, indent), *returned(text, entry, new, indent, around)]


def returned(
    text: Text, entry: Entry, new: Returned, indent: str, around: tuple[str, str] = ("", "")
) -> list[str]:
    """The lines of a `return` like that of an entry, with other values."""
    span = entry.body_span
    assert span is not None, "it has values"
    edits = list(branch_edits(text.data, entry, new.values, ""))
    moved = [edit.model_copy(update={"span": _less(edit.span, span.start)}) for edit in edits]
    value = splice(text.path, text.data[span.start : span.end], moved).decode(errors="replace")
    by = len(_margin(text.data, span.start))
    first, *rest = value.splitlines()
    rest = [indent + row[min(by, len(row) - len(row.lstrip())) :] for row in rest]
    rows = [f"{indent}return {around[0]}{first}", *rest]
    rows[-1] += f"{around[1]};"
    return [part for row in rows for part in wrapped(row, indent)]


def wrapped(row: str, indent: str) -> list[str]:
    """A row as it is, or with a line for each value where it is too long."""
    if len(row) <= COLUMNS:
        return [row]
    code = row.encode()
    head = _OPENED.match(row)
    if head is None:
        by, start = row[: len(row) - len(row.lstrip())], 0
    else:
        start = head.end()
        by = indent + UNIT if head[1] else " " * start
    end = len(row) if head is None else row.rindex(head[2].translate(_CLOSING), start)
    spans = split_list(code, start, end)
    parts = [row[span.start : span.end].strip() for span in spans if span.start < span.end]
    rows = [by + part + "," for part in parts]
    rows[-1] = rows[-1][:-1] + row[end:]
    if head is None:
        return rows
    if head[1]:
        whole = by + row[start:].strip()
        return [row[:start], whole] if len(whole) <= COLUMNS else [row[:start], *rows]
    return [row[:start] + rows[0].lstrip(), *rows[1:]]


def updated(text: Text, entry: Entry, values: Mapping[str, str], reason: str) -> list[Edit]:
    """Other values for a return: each where it stands, or all anew where a line gets too long."""
    span = entry.body_span
    assert span is not None, "it has values"
    edits = list(branch_edits(text.data, entry, values, reason))
    start, end = line_start(text.data, span.start), line_end(text.data, span.end)
    alone = text.data[start : span.start].strip() == b"return"
    longest = max(_lengths(text.data, Span(start, end), edits), default=0)
    if not edits or not alone or longest <= COLUMNS:
        return edits
    indent = _margin(text.data, span.start)
    rows = returned(text, entry, Returned(values, None), indent)
    whole = newline(text.data).join(rows).removeprefix(f"{indent}return ").removesuffix(";")
    return [edit_at(text.data, span, whole, reason)]


def _lengths(data: bytes, span: Span, edits: Sequence[Edit]) -> Iterator[int]:
    """How long the lines become in which something changes."""
    after = bytearray(data[span.start : span.end])
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        at = _less(edit.span, span.start)
        after[at.start : at.end] = edit.new.encode()
    return (len(row) for row in after.splitlines())


def guarded(
    conditions: Sequence[str], rows: Sequence[str], indent: str, word: str = ""
) -> list[str]:
    """`if (…)` with its block."""
    return [
        *condition_lines(conditions, indent, word),
        f"{indent}{{",
        *rows,
        f"{indent}}}",
    ]


def condition_lines(conditions: Sequence[str], indent: str, word: str = "") -> list[str]:
    """`if (…)`, on several lines where it is long."""
    alone = len(conditions) == 1
    whole = f"{indent}{word}if ({conditions[0] if alone else conjunction(tuple(conditions))})"
    if len(whole) <= COLUMNS:
        return [whole]
    rows: list[str] = []
    for part in whole.split(" && "):
        if rows and len(rows[-1]) + len(" && ") + len(part) <= COLUMNS:
            rows[-1] += f" && {part}"
        else:
            rows.append(f"{indent}    && {part}" if rows else part)
    return rows


def _if(text: Text, near: BesideReturn, new: Returned) -> Addition:
    clause = near.clause
    indent = indent_of(text.data, clause.start)
    if _chained(text, clause):
        rows = statement(text, near.beside.entry, new, indent + UNIT)
        at = line_end(text.data, clause.end)
        gap = newline(text.data)
        return Addition(
            Span(at, at), gap + gap.join(guarded(near.conditions, rows, indent, "else "))
        )
    if near.instead:
        rows = _block(text, near.beside, near.conditions, new, indent)
        return _instead(text, near.instead, rows)
    at, behind = _between(text, near)
    # What is on one line may be so because nobody formats it.
    formatted = near.beside.entry.format_off and not _is_left_alone(text, at)
    rows = _block(text, near.beside, near.conditions, new, indent, formatted=formatted)
    empty = [""] if spaced(text, near.clause) else []
    return insert(text, at, [*empty, *rows] if behind else [*rows, *empty])


def _is_left_alone(text: Text, at: int) -> bool:
    """Whether clang-format is off at a place."""
    before = text.data[:at]
    return before.rfind(b"// clang-format off") > before.rfind(b"// clang-format on")


def _block(
    text: Text,
    beside: KnownReturn,
    conditions: Sequence[str],
    new: Returned,
    indent: str,
    *,
    formatted: bool = False,
) -> list[str]:
    """An `if` with a return, on one line where the one beside it is."""
    entry = beside.entry
    if not formatted and _is_line(text, beside.clauses[-1], entry):
        row = condition_lines(conditions, indent)
        value = returned(text, entry, new, "")
        if len(row) == 1 and len(value) == 1:
            return [*labelled_lines(new.label, indent), f"{row[0]} {value[0]}"]
    return guarded(conditions, statement(text, entry, new, indent + UNIT), indent)


def _is_line(text: Text, inner: Clause, entry: Entry) -> bool:
    """Whether a return and the `if` around it are on one line."""
    assert entry.span is not None, "it is in a header"
    return inner.kind == "if" and b"\n" not in text.data[inner.start : entry.span.end]


def _instead(text: Text, out: Span, rows: list[str]) -> Addition:
    """In place of the same condition that is commented out, and of why it is."""
    data = text.data
    start, end = line_start(data, out.start), line_end(data, out.end) + len(newline(data))
    while (previous := line_start(data, start - 1)) < start:
        row = data[previous:start].decode().strip()
        if not row.startswith("//") or COMMENTED.match(row.lstrip("/ ")):
            break
        start = previous
    return Addition(Span(start, end), insert(text, start, rows).text)


def _between(text: Text, near: BesideReturn) -> tuple[int, bool]:
    """Where among the `if`s of a block, and whether behind one.

    What asks for more comes first, then by size.
    """
    mine = near.conditions
    ifs = [c for c in _block_of(near) if c.kind == "if" and not _chained(text, c)]
    before, after = None, near.clause
    for clause in ifs:
        theirs = facts_of((clause,))
        if {*theirs} != {*mine} and {*simplest((*mine, *theirs))} == {*simplest(mine)}:
            before = before or clause
        elif set(theirs) > set(mine):
            before, after = None, clause
    if before is None:
        alike = [c for c in ifs if _names(facts_of((c,))) == _names(mine)]
        sizes = [sizes_of(facts_of((c,))) for c in alike]
        order = _order(sizes)
        if near.clause in alike and order is not None:
            own = order(sizes_of(mine))
            smaller = [c for c, size in zip(alike, sizes, strict=True) if order(size) <= own]
            if not smaller:
                before = alike[0]
            elif ifs.index(smaller[-1]) > ifs.index(after) or after is near.clause:
                after = smaller[-1]
    if before is not None:
        return above(text, before.start), False
    return below_line(text, after.end), True


def _block_of(near: BesideReturn) -> list[Clause]:
    """The clauses beside that of a return: in a `switch`, those of its `case` alone."""
    beside = [c for c in near.beside.body.clauses if c.scope == near.clause.scope]
    cases = [c.start for c in beside if c.kind == "case"]
    start = max((at for at in cases if at <= near.clause.start), default=near.clause.scope.start)
    end = min((at for at in cases if at > near.clause.start), default=near.clause.scope.end)
    return [c for c in beside if start <= c.start < end]


def _case(text: Text, near: BesideReturn, new: Returned) -> Addition:
    data, clause = text.data, near.clause
    (condition,) = near.conditions
    label = condition.partition(" == ")[2]
    cases = [c for c in near.beside.body.clauses if c.scope == clause.scope and c.kind == "case"]
    later = [
        c
        for c in cases
        if c.text.endswith(": default") or sizes_of([c.text]) > sizes_of([condition])
    ]
    indent = indent_of(data, clause.start)
    entry = near.beside.entry
    assert entry.span is not None
    inside = indent_of(data, entry.span.start)
    rows = [f"{indent}case {label}:", *statement(text, entry, new, inside)]
    at = above(text, later[0].start) if later else line_start(data, clause.scope.end)
    return insert(text, at, rows)


def _before_switch(text: Text, near: BesideReturn, new: Returned) -> Addition:
    """For what has no `case` at all: an `if` above the `switch`."""
    start = text.code.rindex(b"switch", 0, near.clause.scope.start)
    indent = indent_of(text.data, start)
    rows = statement(text, near.beside.entry, new, indent + UNIT)
    return insert(text, above(text, start), [*guarded(near.conditions, rows, indent), ""])


def labelled_lines(label: str | None, indent: str) -> list[str]:
    """The comment that tells where values come from."""
    return [f"{indent}// {label}"] if label else []


def insert(text: Text, at: int, rows: Sequence[str]) -> Addition:
    """Whole lines before a place."""
    end = newline(text.data)
    return Addition(Span(at, at), "".join(row + end for row in rows))


def _chained(text: Text, clause: Clause) -> bool:
    """Whether an `if` stands behind an `else`, or before one."""
    behind = _ELSE.match(text.code, clause.end) is not None
    return behind or text.code.startswith(b"else", clause.start)


def spaced(text: Text, clause: Clause) -> bool:
    """Whether there are blank lines around the clauses of a block."""
    before = text.data[: above(text, clause.start)].removesuffix(b"\n").rstrip(b" \t\r")
    behind = text.data[below_line(text, clause.end) :].lstrip(b" \t")
    return before.endswith(b"\n") or behind[:1] in {b"\n", b"\r"}


def above(text: Text, at: int) -> int:
    """Before a statement, the comment above it and the `#if` that it begins."""
    data = text.data
    comments = Comments(text).above(at)
    start = line_start(data, comments[0].start if comments else at)
    previous = line_start(data, start - 1) if start else start
    guard = _GUARD.match(data, previous)
    return previous if guard and guard[1] == b"if" else start


def below_line(text: Text, end: int) -> int:
    """The line behind a statement, and behind the `#endif` that it ends with."""
    data = text.data
    at = line_end(data, end) + len(newline(data))
    guard = _GUARD.match(data, at)
    return line_end(data, at) + len(newline(data)) if guard and guard[1] == b"endif" else at


def _margin(data: bytes, at: int) -> str:
    """The white space with which a line begins."""
    row = data[line_start(data, at) : at].decode(errors="replace")
    return row[: len(row) - len(row.lstrip())]


def _names(facts: Iterable[str]) -> tuple[str, ...]:
    """Of which sizes something is asked for; types are named among those."""
    found = (re.match(r"(\w+) == \d+", fact) for fact in facts)
    return tuple(match[1] for match in found if match)


def _order(rows: Sequence[Sizes]) -> Callable[[Sizes], Sizes] | None:
    """By which of some sizes returns are sorted first, and by which then."""
    for places in permutations(range(len(rows[0]))) if rows else ():

        def order(sizes: Sizes, places: tuple[int, ...] = places) -> Sizes:
            return tuple(sizes[place] for place in places)

        if all(len(row) == len(places) for row in rows):
            sorted_ones = sorted(rows, key=order)
            if list(rows) == sorted_ones:
                return order
    return None


def sizes_of(facts: Iterable[str]) -> Sizes:
    """The numbers that are asked for."""
    found = (re.search(r"== (\d+)", fact) for fact in facts)
    return tuple(int(match[1]) for match in found if match)


def _less(span: Span, by: int) -> Span:
    return Span(span.start - by, span.end - by)


# "fixed_delay_constructor_t<350, 450>"
_DELAY = re.compile(r"(?:\w+::)*(\w+)_constructor_t<(\d+)(?:, (\d+))?>")
# "LookbackDelayPolicy{LookbackDelayAlgorithm::fixed_delay, 350, 450}"; "…_from_type<X<350, 450>>"
_FIELDS = re.compile(r"(.*\{\s*(?:\w+::)*)\w+(,\s*)\d+(,\s*)\d+(\s*\})", re.DOTALL)
_TYPE = re.compile(r"(\w+<\s*(?:\w+::)*)\w+_constructor_t<[\d\s,]+>(\s*>)", re.DOTALL)
# "104 - 1"
_LESS = re.compile(r"\d+(\s*-\s*)(\d+)")


# Other values for a guarded return, in the manner of the old ones.


def branch_edits(
    data: bytes, entry: Entry, values: Mapping[str, str], reason: str
) -> Iterator[Edit]:
    """An edit for each value that is another one than now, and for those that it has not."""
    yield from added_edit(data, entry, values, reason)
    own = {member.name: member for member in entry.members}
    for name, value in values.items():
        if name not in own:
            continue
        member = own[name]
        old = text_of(data, member.value_span)
        new = _spelled(member, old, value)
        if new != old:
            yield edit_at(data, member.value_span, new, reason)


def added_edit(data: bytes, entry: Entry, values: Mapping[str, str], reason: str) -> Iterator[Edit]:
    """An edit for the values that a return does not have yet: they come last."""
    own = {member.name for member in entry.members}
    new = [value for name, value in values.items() if name not in own]
    assert entry.body_span is not None, "it has values"
    end = len(data[: entry.body_span.end - 1].rstrip())
    if new:
        gap = _gap(data, entry.body_span)
        yield edit_at(data, Span(end, end), "".join(f",{gap}{value}" for value in new), reason)


def _gap(data: bytes, body: Span) -> str:
    """What stands between the values of a return: a space, or a line's end and its indent."""
    given = arguments(data, body)
    parts = given[1] if given else []
    if len(parts) < 2 or b"\n" not in data[parts[-2].end : parts[-1].start]:
        return " "
    return newline(data) + indent_of(data, parts[-1].start)


def _spelled(member: Member, old: str, value: str) -> str:
    if member.value is not None and str(member.value).lower() == value:
        return old
    if delay := _DELAY.fullmatch(value):
        return _delay(member, old, delay)
    if (less := _LESS.fullmatch(old)) and value.isdigit():
        return f"{int(value) + int(less[2])}{less[1]}{less[2]}"
    return like(old, value)


def delay_fields(delay: str) -> tuple[str, str, str] | None:
    """The algorithm, the delay and the write latency of `fixed_delay_constructor_t<350, 450>`."""
    match = _DELAY.fullmatch(delay)
    if match is None:
        return None  # "reduce_by_key_delay_constructor_t<350, 450, 500>": no benchmark tries it
    kind, first, second = match.groups()
    # One that waits for nothing has a write latency alone.
    return (kind, first, second) if second else (kind, "0", first)


def _delay(member: Member, old: str, delay: re.Match[str]) -> str:
    """A delay as fields, or as a type, whichever was there."""
    if found := _FIELDS.fullmatch(old):
        fields = delay_fields(delay[0])
        assert fields is not None, "it matches"
        kind, ns, l2w = fields
        new = f"{found[1]}{kind}{found[2]}{ns}{found[3]}{l2w}{found[4]}"
    elif found := _TYPE.fullmatch(old):
        new = f"{found[1]}{delay[0]}{found[2]}"
    else:
        raise InputError(f"{member.name}: {old!r} is no delay that can be written")
    return new
