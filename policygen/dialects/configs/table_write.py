"""Cases of configs by hand as edits: other values, a case more, a copy for an architecture."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.dialects.configs.expressions import applied
from policygen.dialects.configs.structs import CONFIG, table_rows
from policygen.dialects.configs.table_place import TableSpot
from policygen.dialects.configs.targets import WIDTH
from policygen.dialects.configs.write import updated
from policygen.dialects.insertions import Insertion, with_insertions
from policygen.dialects.protocol import EntryWrite, HeaderEdits
from policygen.dialects.specializations.declarations import Declaration, find_declarations
from policygen.errors import InputError
from policygen.model.arch import UNKNOWN
from policygen.model.base import Span
from policygen.model.edit import Edit
from policygen.model.tuning import Entry, TuningHeader
from policygen.source.comments import Comments
from policygen.source.spelling import indent_of, line_start, newline
from policygen.source.splice import edit_at, replaced
from policygen.source.text import Text, decode, squeeze

_STEP = "    "
# "select_type_case<(sizeof(Key) == 1), merge_config<256, 11> >"
_CASE = re.compile(rb"(?:\w+\s*::\s*)*select_type_case\s*<")
_TIGHT = re.compile(r"(?<=<) | (?=>)")


@dataclass(frozen=True, slots=True)
class _CaseWrite:
    """One write, its place, and the case that decides now."""

    write: EntryWrite
    spot: TableSpot
    name: str
    """Of the config that the case is of."""
    entry: Entry


def write_tables(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """The edits of all cases of a header."""
    text = Text(header.name, data)
    every = [_case_write(write) for write in writes]
    edits = _edits(text, [one for one in every if not one.spot.copied])
    found: list[Insertion] = []
    for name in dict.fromkeys(one.name for one in every if one.spot.copied):
        mine = [one for one in every if one.spot.copied and one.name == name]
        made, row = _copied(text, name, mine, arch)
        found.append(made)
        if isinstance(row, Edit):
            edits.append(row)
        else:
            found.append(row)
    return HeaderEdits(with_insertions(edits, found))


def _case_write(write: EntryWrite) -> _CaseWrite:
    spot = write.spots[0]
    assert isinstance(spot, TableSpot), "it is of a table"
    family, entry = spot.decided
    return _CaseWrite(write, spot, family.name, entry)


def _edits(text: Text, every: Sequence[_CaseWrite]) -> list[Edit]:
    """Other values for cases, and cases before them that name types."""
    edits: list[Edit] = []
    found: list[Insertion] = []
    by_case: dict[Span, list[_CaseWrite]] = {}
    for one in every:
        if one.spot.asked:
            by_case.setdefault(one.entry.span, []).append(one)
        else:
            edits += updated(text, one.entry, one.write.content.values, one.spot, one.write.reason)
    for lot in by_case.values():
        found += _before(text, lot)
    return with_insertions(edits, found)


def _before(text: Text, lot: Sequence[_CaseWrite]) -> Iterator[Insertion]:
    """Cases for types before the one that decides them; a list of cases, where there is none."""
    entry, end = lot[0].entry, newline(text.data)
    assert entry.inherits_span is not None, "a case gives a config"
    reason = "; ".join(dict.fromkeys(one.write.reason for one in lot))
    value = entry.inherits_span
    listed = entry.span.start > _declared(text, entry).span.start
    at = entry.span.start if listed else value.start
    begin = line_start(text.data, at)
    column = re.match(rb"\s*", text.data[begin:at])
    indent = decode(column[0]) if column else ""
    lead = indent if listed else indent + _STEP
    cases = "".join(f"{_case(text, one, lead, end)},{end}{lead}" for one in lot)
    if listed:
        yield at, cases, reason
        return
    yield at, f"select_type<{end}{lead}{cases}", reason
    yield value.end, f"{end}{indent}>", reason


def _declared(text: Text, entry: Entry) -> Declaration:
    """The template that a case stands in."""
    every = find_declarations(text.code, names=CONFIG)
    return next(one for one in every if one.span.start <= entry.span.start < one.span.end)


def _case(text: Text, one: _CaseWrite, lead: str, end: str) -> str:
    """`select_type_case<std::is_same<Key, int>::value, merge_config<256, 12>>`."""
    asked = one.spot.condition
    if not one.spot.exact and (now := _condition(text, one.entry)):
        asked = f"({now}) && {asked}"
    inner = lead + _STEP
    value = _value(text, one.entry, one.write.content.values, one.spot)
    line = f"select_type_case<{asked}, {value}>"
    if len(f"{lead}{line},") <= WIDTH:
        return line
    if len(f"{inner}{value}>,") > WIDTH:
        value = _in_lines(value, f"{end}{inner}{_STEP}")
    return f"select_type_case<{asked},{end}{inner}{value}>"


def _in_lines(value: str, gap: str) -> str:
    """A config with each of its arguments on a line."""
    code = value.encode()
    found = applied(code, Span(0, len(code)))
    if found is None:
        return value
    args = [decode(code[arg.start : arg.end]) for arg in found.args]
    return f"{decode(code[: found.args[0].start])}{gap}{f',{gap}'.join(args)}>"


def _condition(text: Text, entry: Entry) -> str:
    """What the case asks that decides now; nothing where it is for all others."""
    found = applied(text.code, entry.span)
    if found is None or not _CASE.match(text.code, *entry.span):
        return ""
    return squeeze(text.code[found.args[0].start : found.args[0].end])


def _value(text: Text, entry: Entry, values: Mapping[str, str], spot: TableSpot) -> str:
    """The config of a case with other values, on one line."""
    at = entry.inherits_span
    assert at is not None, "a case gives a config"
    edits = updated(text, entry, values, spot, "")
    changes = [(Span(e.span.start - at.start, e.span.end - at.start), e.new) for e in edits]
    return _TIGHT.sub("", squeeze(replaced(text.code[at.start : at.end], changes)))


def _copied(
    text: Text, name: str, lot: Sequence[_CaseWrite], arch: str
) -> tuple[Insertion, Insertion | Edit]:
    """A copy of a config with what is written, and the row that gives it to an architecture."""
    end, called = newline(text.data), lot[0].spot.copy_name
    every = list(find_declarations(text.code, names=CONFIG))
    if any(one.name == called for one in every):
        raise InputError(f"{lot[0].spot.header}: there is a {called} already", "Write it by hand.")
    edits = _edits(text, lot)
    made = "".join(
        f"{_renamed(text, one, edits, called)}{end}{end}" for one in every if one.name == name
    )
    table, rows = next(
        (one, rows)
        for one in every
        if (rows := table_rows(text, one)) and any(row.name == name for row in rows)
    )
    reason = "; ".join(dict.fromkeys(one.write.reason for one in lot))
    above = Comments(text).above(table.span.start)
    before = above[0].start if above else table.span.start
    own = next((row for row in rows if row.arch == arch), None)
    if own is not None:
        return (before, made, reason), edit_at(text.data, own.named, called, reason)
    last = rows[-1]
    shown = replaced(
        text.code[last.config.start : last.config.end],
        [(Span(last.named.start - last.config.start, last.named.end - last.config.start), called)],
    )
    row = f"select_arch_case<{_number(arch)}, {squeeze(shown)}>,"
    indent = indent_of(text.data, last.config.start)
    gap = f"{end}{indent}" if indent else " "
    return (before, made, reason), (last.config.start, row + gap, reason)


def _renamed(text: Text, one: Declaration, edits: Sequence[Edit], called: str) -> str:
    """A declaration with the comments above it, as that of another name."""
    above = Comments(text).above(one.span.start)
    begin = above[0].start if above else one.span.start
    changes = [
        (e.span, e.new) for e in edits if begin <= e.span.start and e.span.end <= one.span.end
    ]
    changes.append((one.name_span, called))
    moved = [(Span(s.start - begin, s.end - begin), new) for s, new in changes]
    return decode(replaced(text.data[begin : one.span.end], moved))


def _number(arch: str) -> str:
    """What a table calls an architecture: `908`, `ROCPRIM_ARCH_90a`."""
    assert arch != UNKNOWN, "the last row is for all that are not known"
    digits = arch.removeprefix("gfx")
    return digits if digits.isdigit() else f"ROCPRIM_ARCH_{digits}"
