"""Writes configs as edits of a header: new values for one, or a new one for an architecture."""

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
    """Returns the edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[tuple[EntryWrite, Family, Entry]] = []
    for write in writes:
        spot = _config_spot(write)
        if spot.entry is not None:
            edits += updated(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, *spot.alike))
    inserted = _insertions(header, text, added, arch)
    return HeaderEdits(with_insertions(edits, inserted))


def updated(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> list[Edit]:
    """Returns the edits that set values of a config, including values it must state now."""
    edits = member_edits(text, entry, values, reason)
    if unsaid := spot.left_out(entry, values):
        edits.append(_unsaid_edit(text, entry, unsaid, spot, reason))
    return edits


def _unsaid_edit(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, reason: str
) -> Edit:
    """Appends arguments after the last one, up to those that must be stated."""
    assert entry.inherits_span is not None, "a config inherits its values"
    config = applied(text.code, entry.inherits_span)
    parameters = spot.parameters.get(config.name, ()) if config else ()
    names = [name for name, _ in parameters]
    if config is None or not config.args or any(name not in names for name in values):
        raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(values)}")
    last_index = max(names.index(name) for name in values)
    parts = []
    for name, kind in parameters[len(config.args) : last_index + 1]:
        parts.append(spot.argument(kind, values.get(name), name))
    end = config.args[-1].end
    return edit_at(text.data, Span(end, end), "".join(f", {part}" for part in parts), reason)


def _insertions(
    header: TuningHeader,
    text: Text,
    added: Sequence[tuple[EntryWrite, Family, Entry]],
    arch: str,
) -> list[Insertion]:
    """Inserts new configs after those of their architecture, else after all others.

    Each copies another one.
    """
    gap = newline(text.data) * 2
    texts_by_end: dict[int, tuple[str, list[str]]] = {}
    order = {
        id(family_entry): index
        for family in header.families
        for index, family_entry in enumerate(family.entries)
    }
    for write, _, entry in sorted(added, key=lambda addition: order[id(addition[2])]):
        spot = _config_spot(write)
        arch_families = [family for family in spot.families if family.arch == arch] or list(
            spot.families
        )
        end = max(
            family_entry.span.end for family in arch_families for family_entry in family.entries
        )
        config_text = _similar_config(text, entry, write.content.values, spot, arch)
        texts_by_end.setdefault(end, (write.reason, []))[1].append(config_text)
    return [
        (at, "".join(gap + config_text for config_text in config_texts), reason)
        for at, (reason, config_texts) in texts_by_end.items()
    ]


def _similar_config(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot, arch: str
) -> str:
    """Returns the text of a config with other values, for another architecture."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    within = text.code[entry.span.start : entry.span.end]
    match = _TARGET.search(within)
    if match is None:
        raise InputError(f"{spot.header}:{entry.line} names no architecture", "Write it by hand.")
    arch_span = Span(*(entry.span.start + end for end in match.span(1)))
    edits = updated(text, entry, values, spot, "")
    changes = [(edit.span, edit.new) for edit in edits]
    new_data = replaced(
        text.data, [*changes, *_dropped_arguments(text, entry, values, spot), (arch_span, arch)]
    )
    growth = len(new_data) - len(text.data)
    return decode(new_data[begin : entry.span.end + growth])


def _dropped_arguments(
    text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot
) -> list[tuple[Span, str]]:
    """Drops the arguments after the last wanted one, which the template gives by default."""
    stated_members = spot.said(entry, values)
    config = applied(text.code, entry.inherits_span) if entry.inherits_span else None
    if config is None or not stated_members or len(stated_members) == len(entry.members):
        return []
    last_argument = next(arg for arg in config.args if arg.end >= stated_members[-1].value_span.end)
    return (
        [(Span(last_argument.end, config.args[-1].end), "")]
        if last_argument != config.args[-1]
        else []
    )


def _config_spot(write: EntryWrite) -> ConfigSpot:
    spot = write.spots[0]
    assert isinstance(spot, ConfigSpot), "it is a config"
    return spot


_STEP = "    "
# "select_type_case<(sizeof(Key) == 1), merge_config<256, 11> >"
_CASE = re.compile(rb"(?:\w+\s*::\s*)*select_type_case\s*<")
_TIGHT = re.compile(r"(?<=<) | (?=>)")


@dataclass(frozen=True, slots=True)
class _CaseWrite:
    """One write, its spot, and the case that decides now."""

    write: EntryWrite
    spot: TableSpot
    name: str
    """The name of the config that contains the case."""
    entry: Entry


# Cases of configs written by hand: new values, a new case, a copy for an architecture.


def write_tables(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """Returns the edits of all cases of a header."""
    text = Text(header.name, data)
    case_writes = [_case_write(write) for write in writes]
    edits = _case_edits(
        text, [case_write for case_write in case_writes if not case_write.spot.copied]
    )
    insertions: list[Insertion] = []
    for name in dict.fromkeys(
        case_write.name for case_write in case_writes if case_write.spot.copied
    ):
        copied_writes = [
            case_write
            for case_write in case_writes
            if case_write.spot.copied and case_write.name == name
        ]
        copy, row = _copied(text, name, copied_writes, arch)
        insertions.append(copy)
        if isinstance(row, Edit):
            edits.append(row)
        else:
            insertions.append(row)
    return HeaderEdits(with_insertions(edits, insertions))


def _case_write(write: EntryWrite) -> _CaseWrite:
    spot = write.spots[0]
    assert isinstance(spot, TableSpot), "it is of a table"
    family, entry = spot.decided
    return _CaseWrite(write, spot, family.name, entry)


def _case_edits(text: Text, case_writes: Sequence[_CaseWrite]) -> list[Edit]:
    """Returns edits of values, and new cases that name types before existing ones."""
    edits: list[Edit] = []
    insertions: list[Insertion] = []
    by_case: dict[Span, list[_CaseWrite]] = {}
    for case_write in case_writes:
        if case_write.spot.asked:
            by_case.setdefault(case_write.entry.span, []).append(case_write)
        else:
            edits += updated(
                text,
                case_write.entry,
                case_write.write.content.values,
                case_write.spot,
                case_write.write.reason,
            )
    for writes_of_case in by_case.values():
        insertions += _cases_before(text, writes_of_case)
    return with_insertions(edits, insertions)


def _cases_before(text: Text, case_writes: Sequence[_CaseWrite]) -> Iterator[Insertion]:
    """Inserts cases for types before the one that decides them, in a new list if there is none."""
    entry, end = case_writes[0].entry, newline(text.data)
    assert entry.inherits_span is not None, "a case gives a config"
    reason = "; ".join(dict.fromkeys(case_write.write.reason for case_write in case_writes))
    value = entry.inherits_span
    is_listed = entry.span.start > _enclosing_template(text, entry).span.start
    at = entry.span.start if is_listed else value.start
    begin = line_start(text.data, at)
    column = re.match(rb"\s*", text.data[begin:at])
    indent = decode(column[0]) if column else ""
    lead = indent if is_listed else indent + _STEP
    cases = "".join(
        f"{_case(text, case_write, lead, end)},{end}{lead}" for case_write in case_writes
    )
    if is_listed:
        yield at, cases, reason
        return
    yield at, f"select_type<{end}{lead}{cases}", reason
    yield value.end, f"{end}{indent}>", reason


def _enclosing_template(text: Text, entry: Entry) -> Declaration:
    """Returns the template that contains a case."""
    declarations = find_declarations(text.code, names=CONFIG)
    return next(
        declaration
        for declaration in declarations
        if declaration.span.start <= entry.span.start < declaration.span.end
    )


def _case(text: Text, case_write: _CaseWrite, lead: str, end: str) -> str:
    """Formats `select_type_case<std::is_same<Key, int>::value, merge_config<256, 12>>`."""
    condition = case_write.spot.condition
    if not case_write.spot.exact and (current_condition := _condition(text, case_write.entry)):
        condition = f"({current_condition}) && {condition}"
    inner = lead + _STEP
    value = _value(text, case_write.entry, case_write.write.content.values, case_write.spot)
    line = f"select_type_case<{condition}, {value}>"
    if len(f"{lead}{line},") <= WIDTH:
        return line
    if len(f"{inner}{value}>,") > WIDTH:
        value = _in_lines(value, f"{end}{inner}{_STEP}")
    return f"select_type_case<{condition},{end}{inner}{value}>"


def _in_lines(value: str, gap: str) -> str:
    """Puts each argument of a config on its own line."""
    code = value.encode()
    config = applied(code, Span(0, len(code)))
    if config is None:
        return value
    args = [decode(code[arg.start : arg.end]) for arg in config.args]
    return f"{decode(code[: config.args[0].start])}{gap}{f',{gap}'.join(args)}>"


def _condition(text: Text, entry: Entry) -> str:
    """Returns the condition of the case that decides now; empty if it is for all others."""
    case = applied(text.code, entry.span)
    if case is None or not _CASE.match(text.code, *entry.span):
        return ""
    return squeeze(text.code[case.args[0].start : case.args[0].end])


def _value(text: Text, entry: Entry, values: Mapping[str, str], spot: TableSpot) -> str:
    """Returns the config of a case with other values, on one line."""
    config_span = entry.inherits_span
    assert config_span is not None, "a case gives a config"
    edits = updated(text, entry, values, spot, "")
    changes = [
        (Span(edit.span.start - config_span.start, edit.span.end - config_span.start), edit.new)
        for edit in edits
    ]
    return _TIGHT.sub(
        "", squeeze(replaced(text.code[config_span.start : config_span.end], changes))
    )


def _copied(
    text: Text, name: str, case_writes: Sequence[_CaseWrite], arch: str
) -> tuple[Insertion, Insertion | Edit]:
    """Copies a config with the new values, and returns the row that gives it to an architecture."""
    end, copy_name = newline(text.data), case_writes[0].spot.copy_name
    declarations = list(find_declarations(text.code, names=CONFIG))
    if any(declaration.name == copy_name for declaration in declarations):
        raise InputError(
            f"{case_writes[0].spot.header}: there is a {copy_name} already", "Write it by hand."
        )
    edits = _case_edits(text, case_writes)
    copy = "".join(
        f"{_renamed(text, declaration, edits, copy_name)}{end}{end}"
        for declaration in declarations
        if declaration.name == name
    )
    table, rows = next(
        (declaration, rows)
        for declaration in declarations
        if (rows := table_rows(text, declaration)) and any(row.name == name for row in rows)
    )
    reason = "; ".join(dict.fromkeys(case_write.write.reason for case_write in case_writes))
    comments = Comments(text).above(table.span.start)
    start = comments[0].start if comments else table.span.start
    own_row = next((row for row in rows if row.arch == arch), None)
    if own_row is not None:
        return (start, copy, reason), edit_at(text.data, own_row.named, copy_name, reason)
    last = rows[-1]
    config_text = replaced(
        text.code[last.config.start : last.config.end],
        [
            (
                Span(last.named.start - last.config.start, last.named.end - last.config.start),
                copy_name,
            )
        ],
    )
    row = f"select_arch_case<{_table_arch(arch)}, {squeeze(config_text)}>,"
    indent = indent_of(text.data, last.config.start)
    gap = f"{end}{indent}" if indent else " "
    return (start, copy, reason), (last.config.start, row + gap, reason)


def _renamed(text: Text, declaration: Declaration, edits: Sequence[Edit], new_name: str) -> str:
    """Returns a declaration and the comments above it under another name."""
    comments = Comments(text).above(declaration.span.start)
    begin = comments[0].start if comments else declaration.span.start
    changes = [
        (edit.span, edit.new)
        for edit in edits
        if begin <= edit.span.start and edit.span.end <= declaration.span.end
    ]
    changes.append((declaration.name_span, new_name))
    moved = [
        (Span(edit_span.start - begin, edit_span.end - begin), new) for edit_span, new in changes
    ]
    return decode(replaced(text.data[begin : declaration.span.end], moved))


def _table_arch(arch: str) -> str:
    """Returns an architecture as a table names it: `908`, `ROCPRIM_ARCH_90a`."""
    assert arch != UNKNOWN, "the last row is for all that are not known"
    digits = arch.removeprefix("gfx")
    return digits if digits.isdigit() else f"ROCPRIM_ARCH_{digits}"


Added = tuple[EntryWrite, PickerSpot, Family, Entry]


# Configs of pickers: new values, a new return, a new target.


def write_pickers(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """Returns the edits of all configs of a header."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    added: list[Added] = []
    for write in writes:
        spot = _picker_spot(write)
        if spot.entry is not None:
            edits += with_values(text, spot.entry, write.content.values, spot, write.reason)
        else:
            added.append((write, spot, *spot.alike))
    return HeaderEdits(with_insertions(edits, _picker_insertions(header, text, added, arch)))


def _picker_insertions(
    header: TuningHeader, text: Text, added: Sequence[Added], arch: str
) -> list[Insertion]:
    """Inserts new returns before a picker's default, or a new picker if there is none."""
    if not added:
        return []
    order = {
        id(family_entry): index
        for family in header.families
        for index, family_entry in enumerate(family.entries)
    }
    ordered = sorted(added, key=lambda addition: order[id(addition[3])])
    reason = "; ".join(dict.fromkeys(write.reason for write, *_ in ordered))
    return_text = "".join(
        _similar_return(text, entry, write.content.values, spot)
        for write, spot, _, entry in ordered
    )
    (_, spot, _, similar_entry), *_ = ordered
    pickers = [picker for picker in find_pickers(text) if picker.name == spot.binding.name]
    own_picker = next((picker for picker in pickers if picker.arch == arch), None)
    if own_picker is not None:
        _check_parameters(text, own_picker, [entry for *_, entry in ordered], spot)
        return [(_default_start(text, own_picker, spot), return_text, reason)]
    similar_picker = next(picker for picker in pickers if _contains(picker, similar_entry))
    _check_parameters(text, similar_picker, [entry for *_, entry in ordered], spot)
    return list(_new_target(text, pickers, similar_picker, return_text, spot, reason))


def _similar_return(text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot) -> str:
    """Returns the text of a return with other values, from its comment to the end of its line."""
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    begin = line_start(text.data, begin)
    edits = with_values(text, entry, values, spot, "")
    new_data = replaced(text.data, [(edit.span, edit.new) for edit in edits])
    growth = len(new_data) - len(text.data)
    return decode(new_data[begin : entry.span.end + growth]) + newline(text.data)


def _contains(picker: Picker, entry: Entry) -> bool:
    return picker.span.start <= entry.span.start < picker.span.end


def _check_parameters(
    text: Text, picker: Picker, entries: Sequence[Entry], spot: PickerSpot
) -> None:
    """Refuses entries whose type parameters are named differently from the target picker's."""
    picker_parameters = squeeze(text.code[picker.parameters.start : picker.parameters.end])
    if any(", ".join(entry.template_parameters) != picker_parameters for entry in entries):
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} calls its types otherwise",
            "Write it by hand.",
        )


def _default_start(text: Text, picker: Picker, spot: PickerSpot) -> int:
    """Returns the start of the line of a picker's unconditional return, including its comment."""
    default = _default(text, picker)
    if default is None:
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} returns nothing for other types",
            "Write it by hand.",
        )
    return line_start(text.data, default.start)


def _default(text: Text, picker: Picker) -> Span | None:
    """Returns the span of a picker's unconditional return, including the comment above it."""
    unconditional = [
        picker_return for picker_return in returns(text, picker) if not picker_return.facts
    ]
    if not unconditional:
        return None
    comments = Comments(text).above(unconditional[-1].span.start, unconditional[-1].floor)
    return Span(
        comments[0].start if comments else unconditional[-1].span.start, unconditional[-1].span.end
    )


def _new_target(
    text: Text,
    pickers: Sequence[Picker],
    like: Picker,
    return_text: str,
    spot: PickerSpot,
    reason: str,
) -> Iterator[Insertion]:
    """Adds a picker that otherwise behaves as before, and lists its target."""
    words, end = words_of(spot.arch), newline(text.data)
    comment_spans = Comments(text).above(like.span.start)
    comments = "".join(
        decode(text.data[comment_span.start : comment_span.end]) + end
        for comment_span in comment_spans
    )
    begin = line_start(text.data, like.span.start)
    changes = [
        (Span(span.start - begin, span.end - begin), word)
        for span, word in target_changes(text.code, like.target, words)
    ]
    head = decode(replaced(text.data[begin : like.body.start], changes))
    head = end.join(laid_out("\n".join(head.split(end))).split("\n"))
    body = f"{end}{return_text}{_forwarding_return(text, pickers, like, spot)}{end}}}"
    next_picker = next((picker for picker in pickers if picker.arch == "unknown"), pickers[-1])
    at = _comment_start(text, next_picker)
    yield at, f"{commented(comments, words)}{head}{body}{end}{end}", reason
    place, item = listed(text, spot.site.targets, spelled_like(text, like.target, words), spot.arch)
    yield place, item.replace("\n", end), reason


def _comment_start(text: Text, picker: Picker) -> int:
    """Returns the start of the first comment above a picker."""
    comments = Comments(text).above(picker.span.start)
    return comments[0].start if comments else line_start(text.data, picker.span.start)


def _forwarding_return(
    text: Text, pickers: Sequence[Picker], like: Picker, spot: PickerSpot
) -> str:
    """Returns the new picker's default: what the devices of the new target have now."""
    selected = spot.told.entry
    current_picker = next(
        (picker for picker in pickers if selected and _contains(picker, selected[1])), like
    )
    end, names = newline(text.data), _type_names(text, like)
    default = _default(text, like)
    comment = ""
    if default is not None:
        lead = text.data[default.start : text.code.index(b"return", default.start)]
        comment = decode(lead).rstrip()
    target = squeeze(text.code[current_picker.target.start : current_picker.target.end])
    forwarding = (
        f"    return {like.name}<{end}        comp_target<{target}>,{end}        {names}>();"
    )
    return f"    {comment}{end}{forwarding}" if comment else forwarding


def _type_names(text: Text, picker: Picker) -> str:
    """Returns the types that a picker takes besides its target."""
    declared = squeeze(text.code[picker.parameters.start : picker.parameters.end]).split(",")
    return ", ".join(re.split(r"\W+", parameter.strip())[-1] for parameter in declared[1:])


def _picker_spot(write: EntryWrite) -> PickerSpot:
    spot = write.spots[0]
    assert isinstance(spot, PickerSpot), "it is of a picker"
    return spot
