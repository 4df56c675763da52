"""Configs as edits of a header: other values for one, or one more for an architecture."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.headers.comments import Comments
from policygen.headers.protocol import EntryWrite, HeaderEdits, Insertion, with_insertions
from policygen.headers.specializations.families import Declaration, find_declarations
from policygen.headers.specializations.siblings import member_edits
from policygen.headers.spelling import edit_at, indent_of, line_start, newline, replaced
from policygen.headers.text import Text, decode, squeeze
from policygen.model.arch import UNKNOWN
from policygen.model.edits import Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, TuningHeader
from policygen.rocprim.entries import applied
from policygen.rocprim.pickers import (
    WIDTH,
    Picker,
    commented,
    find_pickers,
    laid_out,
    listed,
    returns,
    spelled_like,
    target_changes,
    with_values,
    words_of,
)
from policygen.rocprim.placement import ConfigSpot, PickerSpot, TableSpot
from policygen.rocprim.structs import CONFIG, table_rows

_TARGET = re.compile(rb"\btarget_arch::(\w+)")


def write_configs(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """The edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[tuple[EntryWrite, Family, Entry]] = []
    for write in writes:
        spot = _spot(write)
        if spot.entry is not None:
            edits += updated(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, *spot.alike))
    inserted = _insertions(header, text, added, arch)
    return HeaderEdits(with_insertions(edits, inserted))


def updated(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> list[Edit]:
    """Other values for a config; of those that it leaves out, what it needs to say."""
    edits = member_edits(text, entry, values, reason)
    if unsaid := spot.left_out(entry, values):
        edits.append(_said(text, entry, unsaid, spot, reason))
    return edits


def _said(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> Edit:
    """Arguments behind the last one, up to those that have to be said."""
    assert entry.inherits_span is not None, "a config inherits its values"
    found = applied(text.code, entry.inherits_span)
    declared = spot.parameters.get(found.name, ()) if found else ()
    names = [name for name, _ in declared]
    if found is None or not found.args or any(name not in names for name in values):
        raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(values)}")
    last = max(names.index(name) for name in values)
    parts = []
    for name, kind in declared[len(found.args) : last + 1]:
        parts.append(spot.argument(kind, values.get(name), name))
    at = found.args[-1].end
    return edit_at(text.data, Span(at, at), "".join(f", {part}" for part in parts), reason)


def _insertions(
    header: TuningHeader,
    text: Text,
    added: Sequence[tuple[EntryWrite, Family, Entry]],
    arch: str,
) -> list[Insertion]:
    """New configs behind those of their architecture, else behind all; each as another one is."""
    gap = newline(text.data) * 2
    found: dict[int, tuple[str, list[str]]] = {}
    order = {id(e): n for f in header.families for n, e in enumerate(f.entries)}
    for write, _, entry in sorted(added, key=lambda one: order[id(one[2])]):
        spot = _spot(write)
        mine = [f for f in spot.families if f.arch == arch] or list(spot.families)
        end = max(e.span.end for f in mine for e in f.entries)
        made = _like(text, entry, write.content.values, spot, arch)
        found.setdefault(end, (write.reason, []))[1].append(made)
    return [(at, "".join(gap + one for one in made), why) for at, (why, made) in found.items()]


def _like(text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, arch: str) -> str:
    """The text of a config with other values, for another architecture."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    within = text.code[entry.span.start : entry.span.end]
    named = _TARGET.search(within)
    if named is None:
        raise InputError(f"{spot.header}:{entry.line} names no architecture", "Write it by hand.")
    at = Span(*(entry.span.start + end for end in named.span(1)))
    edits = updated(text, entry, values, spot, "")
    changes = [(edit.span, edit.new) for edit in edits]
    whole = replaced(text.data, [*changes, *_rest(text, entry, values, spot), (at, arch)])
    grown = len(whole) - len(text.data)
    return decode(whole[begin : entry.span.end + grown])


def _rest(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot
) -> list[tuple[Span, str]]:
    """The arguments behind the last one that is wanted, which the template gives by default."""
    kept = spot.said(entry, values)
    found = applied(text.code, entry.inherits_span) if entry.inherits_span else None
    if found is None or not kept or len(kept) == len(entry.members):
        return []
    last = next(arg for arg in found.args if arg.end >= kept[-1].value_span.end)
    return [(Span(last.end, found.args[-1].end), "")] if last != found.args[-1] else []


def _spot(write: EntryWrite) -> ConfigSpot:
    spot = write.spots[0]
    assert isinstance(spot, ConfigSpot), "it is a config"
    return spot


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


# Cases of configs by hand as edits: other values, a case more, a copy for an architecture.


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


Added = tuple[EntryWrite, PickerSpot, Family, Entry]


# Configs of pickers as edits of a header: other values, a return more, a target more.


def write_pickers(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """The edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[Added] = []
    for write in writes:
        spot = _picker_write_spot(write)
        if spot.entry is not None:
            edits += with_values(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, spot, *spot.alike))
    return HeaderEdits(with_insertions(edits, _picker_write_insertions(header, text, added, arch)))


def _picker_write_insertions(
    header: TuningHeader, text: Text, added: Sequence[Added], arch: str
) -> list[Insertion]:
    """New returns before what a picker returns else; with a picker, where there is none yet."""
    if not added:
        return []
    order = {id(e): n for f in header.families for n, e in enumerate(f.entries)}
    ordered = sorted(added, key=lambda one: order[id(one[3])])
    reason = "; ".join(dict.fromkeys(write.reason for write, *_ in ordered))
    made = "".join(
        _picker_write_like(text, entry, write.content.values, spot)
        for write, spot, _, entry in ordered
    )
    (_, spot, _, alike), *_ = ordered
    pickers = [one for one in find_pickers(text) if one.name == spot.binding.name]
    own = next((one for one in pickers if one.arch == arch), None)
    if own is not None:
        _check_parameters(text, own, [entry for *_, entry in ordered], spot)
        return [(_otherwise(text, own, spot), made, reason)]
    other = next(one for one in pickers if _has(one, alike))
    _check_parameters(text, other, [entry for *_, entry in ordered], spot)
    return list(_new_target(text, pickers, other, made, spot, reason))


def _picker_write_like(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot
) -> str:
    """The text of a return with other values, from its comment to the end of its line."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    begin = line_start(text.data, begin)
    edits = with_values(text, entry, values, spot, "")
    whole = replaced(text.data, [(edit.span, edit.new) for edit in edits])
    grown = len(whole) - len(text.data)
    return decode(whole[begin : entry.span.end + grown]) + newline(text.data)


def _has(picker: Picker, entry: Entry) -> bool:
    return picker.span.start <= entry.span.start < picker.span.end


def _check_parameters(
    text: Text, picker: Picker, entries: Sequence[Entry], spot: PickerSpot
) -> None:
    """Refuses to copy what calls the types otherwise than the picker that it goes into."""
    mine = squeeze(text.code[picker.parameters.start : picker.parameters.end])
    if any(", ".join(entry.template_parameters) != mine for entry in entries):
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} calls its types otherwise",
            "Write it by hand.",
        )


def _otherwise(text: Text, picker: Picker, spot: PickerSpot) -> int:
    """Where the line begins of what a picker returns without a condition, with its comment."""
    found = _default(text, picker)
    if found is None:
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} returns nothing for other types",
            "Write it by hand.",
        )
    return line_start(text.data, found.start)


def _default(text: Text, picker: Picker) -> Span | None:
    """What a picker returns without a condition, from the comment above it."""
    last = [one for one in returns(text, picker) if not one.facts]
    if not last:
        return None
    above = Comments(text).above(last[-1].span.start, last[-1].floor)
    return Span(above[0].start if above else last[-1].span.start, last[-1].span.end)


def _new_target(
    text: Text,
    pickers: Sequence[Picker],
    like: Picker,
    made: str,
    spot: PickerSpot,
    reason: str,
) -> Iterator[Insertion]:
    """A picker like another one, where all else is as it was, and its place in the list."""
    words, end = words_of(spot.arch), newline(text.data)
    above = Comments(text).above(like.span.start)
    comments = "".join(decode(text.data[s.start : s.end]) + end for s in above)
    begin = line_start(text.data, like.span.start)
    changes = [
        (Span(span.start - begin, span.end - begin), word)
        for span, word in target_changes(text.code, like.target, words)
    ]
    head = decode(replaced(text.data[begin : like.body.start], changes))
    head = end.join(laid_out("\n".join(head.split(end))).split("\n"))
    body = f"{end}{made}{_as_before(text, pickers, like, spot)}{end}}}"
    before = next((one for one in pickers if one.arch == "unknown"), pickers[-1])
    at = _begin(text, before)
    yield at, f"{commented(comments, words)}{head}{body}{end}{end}", reason
    place, item = listed(text, spot.site.targets, spelled_like(text, like.target, words), spot.arch)
    yield place, item.replace("\n", end), reason


def _begin(text: Text, picker: Picker) -> int:
    """Where the first comment above a picker begins."""
    above = Comments(text).above(picker.span.start)
    return above[0].start if above else line_start(text.data, picker.span.start)


def _as_before(text: Text, pickers: Sequence[Picker], like: Picker, spot: PickerSpot) -> str:
    """For other types: what the devices of the new target have now."""
    found = spot.told.entry
    now = next((one for one in pickers if found and _has(one, found[1])), like)
    end, names = newline(text.data), _names(text, like)
    default = _default(text, like)
    comment = ""
    if default is not None:
        lead = text.data[default.start : text.code.index(b"return", default.start)]
        comment = decode(lead).rstrip()
    target = squeeze(text.code[now.target.start : now.target.end])
    other = f"    return {like.name}<{end}        comp_target<{target}>,{end}        {names}>();"
    return f"    {comment}{end}{other}" if comment else other


def _names(text: Text, picker: Picker) -> str:
    """The types that a picker is asked with besides its target."""
    declared = squeeze(text.code[picker.parameters.start : picker.parameters.end]).split(",")
    return ", ".join(re.split(r"\W+", one.strip())[-1] for one in declared[1:])


def _picker_write_spot(write: EntryWrite) -> PickerSpot:
    spot = write.spots[0]
    assert isinstance(spot, PickerSpot), "it is of a picker"
    return spot
