"""rocPRIM's configs as a dialect, written as edits of a header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.load import is_of, site_of
from policygen.bindings.recorded import benchmark_of
from policygen.errors import InputError
from policygen.headers.comments import Comments
from policygen.headers.protocol import (
    Dialect,
    EntryWrite,
    HeaderEdits,
    Insertion,
    Notation,
    NotKeptError,
    SelectionQuery,
    Spot,
    with_insertions,
)
from policygen.headers.specializations.families import Declaration, find_declarations
from policygen.headers.specializations.siblings import member_changes
from policygen.headers.spelling import (
    Change,
    edit_at,
    edits_of,
    indent_of,
    line_start,
    newline,
    replaced,
    rewritten,
    text_of,
)
from policygen.headers.text import Text, decode, squeeze
from policygen.model.arch import UNKNOWN
from policygen.model.bindings import BenchmarkBinding
from policygen.model.records import Span
from policygen.model.selection import DeltaRow, Selected, Values
from policygen.model.tuning import Edit, Entry, Family, Marked, TuningHeader
from policygen.model.workload import Point
from policygen.rocprim.entries import applied, by_hand
from policygen.rocprim.pickers import (
    PICKER,
    PICKER_CALL,
    WIDTH,
    Picker,
    PickerReturn,
    appended,
    commented,
    find_pickers,
    laid_out,
    listed,
    returns,
    target_changes,
    with_values,
    words_of,
)
from policygen.rocprim.placement import ConfigSpot, PickerSpot, TableSpot, with_formulas
from policygen.rocprim.structs import (
    CONFIG,
    declaring,
    read_configs,
    table_rows,
    tree_archs,
    tree_gpus,
)


@dataclass(frozen=True, slots=True)
class Configs(Dialect):
    """Configs for types on an architecture; nothing is inherited from other architectures."""

    @staticmethod
    def read(header: TuningHeader) -> tuple[Family, ...]:
        """Returns the configs of a header, by name and architecture."""
        return header.families

    @staticmethod
    def mark(header: TuningHeader, data: bytes, members: Mapping[tuple[str, str], str]) -> Marked:
        """Makes pickers return entry numbers; the compiler reports locations of templates."""
        del members
        entries = tuple((family, entry) for family in header.families for entry in family.entries)
        return Marked(header, _numbered(header.name, data, entries), entries)

    def check(self, benchmark: BenchmarkBinding) -> None:
        """Refuses a benchmark whose config is missing in the tree."""
        self.place(benchmark, Selected({}), (benchmark.name, ()))

    def place(self, benchmark: BenchmarkBinding, selected: Selected, point: Point) -> ConfigSpot:
        """Returns the place of a workload's values, in any form of config."""
        del point
        sources, version = self.sources, self.sources.cub.bindings
        algorithm, site = site_of(benchmark, version, "configs")
        header = sources.headers.get(site.header)
        if header is None:
            raise InputError(f"the tree has no {site.header}")
        hub = site.hub.removeprefix("default_") if site.table else site.hub
        binding = next(
            family_binding
            for family_binding in algorithm.families
            if family_binding.site == site.name and hub.startswith(f"{family_binding.name}<")
        )
        families = tuple(
            family
            for family in header.families
            if (is_of(family.name, binding) if site.table else family.name == binding.name)
        )
        if not families:
            raise InputError(f"{site.header} has no {binding.name}")
        labels = ((member, rule.parameter) for member, rule in binding.members.items())
        names_in_comments = {
            member: (benchmark.called.get(label, label), label) for member, label in labels if label
        }
        place = (selected, site, binding, self.arch, families)
        common = (*place, version, header.aggregates, header.needed, names_in_comments)
        if not site.table:
            return PickerSpot(*common) if site.targets else ConfigSpot(*common)
        spans = selected.entry[1].arg_spans if selected.entry else ()
        arguments = tuple(text_of(sources.data[site.header], span) for span in spans)
        return with_formulas(TableSpot(*common, benchmark=benchmark, arguments=arguments))

    def bounded(self, benchmark: BenchmarkBinding, spot: Spot) -> ConfigSpot | None:
        """Returns a spot for the architecture's copy of a handwritten config, if it is shared."""
        del benchmark
        if isinstance(spot, TableSpot) and not spot.copied:
            return replace(spot, own=True)
        return None

    def write(self, name: str, writes: Sequence[EntryWrite]) -> HeaderEdits:
        """Writes values of existing configs, and new configs for the architecture."""
        write = write_tables if isinstance(writes[0].spots[0], TableSpot) else write_configs
        return write(self.sources.headers[name], self.sources.data[name], writes, self.arch)

    def keep(self, changes: Sequence[DeltaRow[Values]], tell: SelectionQuery) -> list[EntryWrite]:
        """Keeps nothing: devices share targets on purpose; handwritten configs are copied."""
        del tell
        version = self.sources.cub.bindings
        shared_changes = [
            (change, f"{change.name} has the same config on {change.arch}")
            for change in changes
            if site_of(benchmark_of(change.benchmark, version), version, "configs")[1].table
        ]
        if shared_changes:
            raise NotKeptError(shared_changes)
        return []


NOTATION = Notation(
    read=read_configs, declaring=declaring, dialect=Configs, archs=tree_archs, gpus=tree_gpus
)
# It has no member that tables would mistake for the config.
_NUMBERED_CONFIG = "::rocprim::kernel_config<{}, 1>"


# A copy of a header whose configs are entry numbers, where the compiler reports no location.


def _numbered(name: str, data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Returns the copy; returns that call another target's picker stay and yield its number."""
    if any(by_hand(family) for family, _ in entries):
        return _number_tables(data, entries)
    if not any(family.name.endswith(PICKER) for family, _ in entries):
        return data
    text = Text(name, data)
    numbers: Mapping[Span | None, int] = {
        e.inherits_span: number for number, (_, e) in enumerate(entries)
    }
    changes: list[tuple[Span, str]] = []
    for picker in find_pickers(text):
        if picker.returned is None:
            raise text.error(
                picker.name_span.start,
                f"{picker.name}: cannot determine what it returns",
                width=len(picker.name),
                remedy="Expected: -> std::enable_if_t<std::is_same_v<Target, …>, TYPE>",
            )
        changes.append((picker.returned, "int"))
        changes += [
            (picker_return.value, str(numbers[picker_return.value]))
            for picker_return in returns(text, picker)
            if not PICKER_CALL.match(text.code, *picker_return.value)
        ]
    return replaced(data, changes)


def _number_tables(data: bytes, entries: Sequence[tuple[Family, Entry]]) -> bytes:
    """Gives each config its first number: in a table several architectures can share it."""
    numbers: dict[Span, int] = {}
    for number, (family, entry) in enumerate(entries):
        if by_hand(family) and entry.inherits_span is not None:
            numbers.setdefault(entry.inherits_span, number)
    return replaced(
        data, [(span, _NUMBERED_CONFIG.format(number)) for span, number in numbers.items()]
    )


_TARGET = re.compile(rb"\btarget_arch::(\w+)")


@dataclass(frozen=True, slots=True)
class _Copy:
    """A write of a new config: its spot, and the config that it copies."""

    write: EntryWrite
    spot: ConfigSpot
    entry: Entry


def write_configs(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """Returns the edits of all configs of a header: of class templates, or of pickers."""
    text = Text(header.name, data)
    edits: list[Edit] = []
    copies: list[_Copy] = []
    for write in writes:
        spot = write.spots[0]
        assert isinstance(spot, ConfigSpot), "it is a config"
        if spot.entry is not None:
            changes = updated(text, spot.entry, write.content.values, spot)
            edits += edits_of(data, changes, write.reason)
        else:
            copies.append(_Copy(write, spot, spot.alike[1]))
    order = {
        id(family_entry): index
        for family in header.families
        for index, family_entry in enumerate(family.entries)
    }
    copies.sort(key=lambda copy: order[id(copy.entry)])
    of_picker = bool(copies) and isinstance(copies[0].spot, PickerSpot)
    insert = _picker_insertions if of_picker else _insertions
    return HeaderEdits(with_insertions(edits, insert(text, copies, arch)))


def updated(text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot) -> list[Change]:
    """Returns the changes that set values of a config, including values it must state now."""
    if isinstance(spot, PickerSpot):
        return with_values(text, entry, values, spot)
    changes = member_changes(text, entry, values)
    if unsaid := spot.left_out(entry, values):
        changes.append(_unsaid(text, entry, unsaid, spot))
    return changes


def _unsaid(text: Text, entry: Entry, values: Mapping[str, str], spot: ConfigSpot) -> Change:
    """Appends arguments after the last one, up to those that must be stated."""
    assert entry.inherits_span is not None, "a config inherits its values"
    config = applied(text.code, entry.inherits_span)
    parameters = spot.parameters.get(config.name, ()) if config else ()
    if config and config.args and values.keys() <= {name for name, _ in parameters}:
        change = appended(config.args, parameters, values, "", spot)
        assert change is not None, "nothing is stated twice"
        return change
    raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(values)}")


def _insertions(text: Text, copies: Sequence[_Copy], arch: str) -> Iterator[Insertion]:
    """Inserts new configs after those of their architecture, else after all others."""
    gap = newline(text.data) * 2
    reasons: dict[int, str] = {}
    for copy in copies:
        families = copy.spot.families
        arch_families = [family for family in families if family.arch == arch] or families
        end = max(entry.span.end for family in arch_families for entry in family.entries)
        reason = reasons.setdefault(end, copy.write.reason)
        yield end, gap + _similar_config(text, copy, arch), reason


def _similar_config(text: Text, copy: _Copy, arch: str) -> str:
    """Returns the text of a config with new values, for another architecture."""
    entry, spot = copy.entry, copy.spot
    match = _TARGET.search(text.code, *entry.span)
    if match is None:
        raise InputError(
            f"{spot.header}:{entry.line} does not name an architecture", "Write it by hand."
        )
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    changes = updated(text, entry, copy.write.content.values, spot)
    changes += [*_dropped_arguments(text, copy), (Span(*match.span(1)), arch)]
    return decode(rewritten(text.data, Span(begin, entry.span.end), changes))


def _dropped_arguments(text: Text, copy: _Copy) -> Iterator[tuple[Span, str]]:
    """Drops the arguments after the last wanted one, which the template gives by default."""
    entry = copy.entry
    stated_members = copy.spot.said(entry, copy.write.content.values)
    config = applied(text.code, entry.inherits_span) if entry.inherits_span else None
    if config is None or not stated_members or len(stated_members) == len(entry.members):
        return
    last_argument = next(arg for arg in config.args if arg.end >= stated_members[-1].value_span.end)
    if last_argument != config.args[-1]:
        yield Span(last_argument.end, config.args[-1].end), ""


_STEP = "    "
# "select_type_case<(sizeof(Key) == 1), merge_config<256, 11> >"
_CASE = re.compile(rb"(?:\w+\s*::\s*)*select_type_case\s*<")
_TIGHT = re.compile(r"(?<=<) | (?=>)")
_Case = tuple[EntryWrite, TableSpot]
"""A write, and its case."""


# Cases of configs written by hand: new values, a new case, a copy for an architecture.


def write_tables(
    header: TuningHeader, data: bytes, writes: Sequence[EntryWrite], arch: str
) -> HeaderEdits:
    """Returns the edits of all cases of a header."""
    text = Text(header.name, data)
    cases: list[_Case] = []
    copied_by_name: dict[str, list[_Case]] = {}
    for write in writes:
        spot = write.spots[0]
        assert isinstance(spot, TableSpot), "it is of a table"
        name = spot.decided[0].name
        (copied_by_name.setdefault(name, []) if spot.copied else cases).append((write, spot))
    edits = _case_edits(text, cases)
    insertions: list[Insertion] = []
    for name, copied_cases in copied_by_name.items():
        copy, row = _copied(text, name, copied_cases, arch)
        insertions.append(copy)
        if isinstance(row, Edit):
            edits.append(row)
        else:
            insertions.append(row)
    return HeaderEdits(with_insertions(edits, insertions))


def _reason(cases: Sequence[_Case]) -> str:
    return "; ".join(dict.fromkeys(write.reason for write, _ in cases))


def _case_edits(text: Text, cases: Sequence[_Case]) -> list[Edit]:
    """Returns edits of values, and new cases that name types before existing ones."""
    edits: list[Edit] = []
    insertions: list[Insertion] = []
    by_span: dict[Span, list[_Case]] = {}
    for write, spot in cases:
        entry = spot.decided[1]
        if spot.asked:
            by_span.setdefault(entry.span, []).append((write, spot))
        else:
            changes = updated(text, entry, write.content.values, spot)
            edits += edits_of(text.data, changes, write.reason)
    for new_cases in by_span.values():
        insertions += _cases_before(text, new_cases)
    return with_insertions(edits, insertions)


def _cases_before(text: Text, cases: Sequence[_Case]) -> Iterator[Insertion]:
    """Inserts cases for types before the one that decides them, in a new list if there is none."""
    (_, entry), end, reason = cases[0][1].decided, newline(text.data), _reason(cases)
    assert entry.inherits_span is not None, "a case gives a config"
    value = entry.inherits_span
    template = next(
        declaration
        for declaration in find_declarations(text.code, names=CONFIG)
        if declaration.span.start <= entry.span.start < declaration.span.end
    )
    is_listed = entry.span.start > template.span.start
    at = entry.span.start if is_listed else value.start
    begin = line_start(text.data, at)
    column = re.match(rb"\s*", text.data[begin:at])
    indent = decode(column[0]) if column else ""
    lead = indent if is_listed else indent + _STEP
    new = "".join(f"{_case(text, write, spot, lead, end)},{end}{lead}" for write, spot in cases)
    if is_listed:
        yield at, new, reason
        return
    yield at, f"select_type<{end}{lead}{new}", reason
    yield value.end, f"{end}{indent}>", reason


def _case(text: Text, write: EntryWrite, spot: TableSpot, lead: str, end: str) -> str:
    """Formats `select_type_case<std::is_same<Key, int>::value, merge_config<256, 12>>`."""
    _, entry = spot.decided
    condition = spot.condition
    current_case = applied(text.code, entry.span)
    # What decides now may be for all others, without a condition.
    if current_case and not spot.exact and _CASE.match(text.code, *entry.span):
        condition = f"({squeeze(text.code, current_case.args[0])}) && {condition}"
    inner = lead + _STEP
    assert entry.inherits_span is not None, "a case gives a config"
    changes = updated(text, entry, write.content.values, spot)
    # The config on one line.
    value = _TIGHT.sub("", squeeze(rewritten(text.code, entry.inherits_span, changes)))
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


def _copied(
    text: Text, name: str, cases: Sequence[_Case], arch: str
) -> tuple[Insertion, Insertion | Edit]:
    """Copies a config with the new values, and returns the row that gives it to an architecture."""
    (_, spot), end, reason = cases[0], newline(text.data), _reason(cases)
    declarations = list(find_declarations(text.code, names=CONFIG))
    if any(declaration.name == spot.copy_name for declaration in declarations):
        raise InputError(f"{spot.header}: {spot.copy_name} already exists", "Write it by hand.")
    edits = _case_edits(text, cases)
    copy = "".join(
        f"{_renamed(text, declaration, edits, spot.copy_name)}{end}{end}"
        for declaration in declarations
        if declaration.name == name
    )
    table, rows = next(
        (declaration, rows)
        for declaration in declarations
        if (rows := table_rows(text, declaration)) and any(row.name == name for row in rows)
    )
    insertion = _with_comments(text, table.span).start, copy, reason
    own_row = next((row for row in rows if row.arch == arch), None)
    if own_row is not None:
        return insertion, edit_at(text.data, own_row.named, spot.copy_name, reason)
    last = rows[-1]
    config = squeeze(rewritten(text.code, last.config, [(last.named, spot.copy_name)]))
    indent = indent_of(text.data, last.config.start)
    gap = f"{end}{indent}" if indent else " "
    assert arch != UNKNOWN, "the last row is for all that are not known"
    digits = arch.removeprefix("gfx")
    table_arch = digits if digits.isdigit() else f"ROCPRIM_ARCH_{digits}"
    row = f"select_arch_case<{table_arch}, {config}>,{gap}"
    return insertion, (last.config.start, row, reason)


def _renamed(text: Text, declaration: Declaration, edits: Sequence[Edit], new_name: str) -> str:
    """Returns a declaration and the comments above it under another name."""
    span = _with_comments(text, declaration.span)
    changes = [
        (edit.span, edit.new)
        for edit in edits
        if span.start <= edit.span.start and edit.span.end <= span.end
    ]
    changes.append((declaration.name_span, new_name))
    return decode(rewritten(text.data, span, changes))


def _with_comments(text: Text, span: Span, floor: int = 0) -> Span:
    """Returns the span of a declaration or a return, including the comments above it."""
    comments = Comments(text).above(span.start, floor)
    return Span(comments[0].start if comments else span.start, span.end)


# Configs of pickers: a new return, a new target.


def _picker_insertions(text: Text, copies: Sequence[_Copy], arch: str) -> list[Insertion]:
    """Inserts new returns before a picker's default, or a new picker if there is none."""
    spot, first = copies[0].spot, copies[0].entry
    reason = "; ".join(dict.fromkeys(copy.write.reason for copy in copies))
    return_text = "".join(_similar_return(text, copy) for copy in copies)
    pickers = [picker for picker in find_pickers(text) if picker.name == spot.binding.name]
    own_picker = next((picker for picker in pickers if picker.arch == arch), None)
    if own_picker is not None:
        _check_parameters(text, own_picker, copies)
        return [(_default_start(text, own_picker, spot), return_text, reason)]
    similar_picker = next(picker for picker in pickers if _contains(picker, first))
    _check_parameters(text, similar_picker, copies)
    return list(_new_target(text, pickers, similar_picker, return_text, spot, reason))


def _similar_return(text: Text, copy: _Copy) -> str:
    """Returns the text of a return with new values, from its comment to the end of its line."""
    entry = copy.entry
    begin = entry.comment_span.start if entry.comment_span else entry.span.start
    changes = updated(text, entry, copy.write.content.values, copy.spot)
    span = Span(line_start(text.data, begin), entry.span.end)
    return decode(rewritten(text.data, span, changes)) + newline(text.data)


def _contains(picker: Picker, entry: Entry) -> bool:
    return picker.span.start <= entry.span.start < picker.span.end


def _check_parameters(text: Text, picker: Picker, copies: Sequence[_Copy]) -> None:
    """Refuses entries whose type parameters are named differently from the target picker's."""
    parameters = squeeze(text.code, picker.parameters)
    if any(", ".join(copy.entry.template_parameters) != parameters for copy in copies):
        raise InputError(
            f"{copies[0].spot.header}:{text.line(picker.name_span.start)} names its types"
            " differently",
            "Write it by hand.",
        )


def _default_start(text: Text, picker: Picker, spot: ConfigSpot) -> int:
    """Returns the start of the line of a picker's unconditional return, including its comment."""
    default = _default(text, picker)
    if default is None:
        raise InputError(
            f"{spot.header}:{text.line(picker.name_span.start)} has no return for other types",
            "Write it by hand.",
        )
    return line_start(text.data, _with_comments(text, default.span, default.floor).start)


def _default(text: Text, picker: Picker) -> PickerReturn | None:
    unconditional = [
        picker_return for picker_return in returns(text, picker) if not picker_return.facts
    ]
    return unconditional[-1] if unconditional else None


def _new_target(
    text: Text,
    pickers: Sequence[Picker],
    like: Picker,
    return_text: str,
    spot: ConfigSpot,
    reason: str,
) -> Iterator[Insertion]:
    """Adds a picker that otherwise behaves as before, and lists its target."""
    words, end = words_of(spot.arch), newline(text.data)
    comments = "".join(
        decode(text.data[comment.start : comment.end]) + end
        for comment in Comments(text).above(like.span.start)
    )
    head_span = Span(line_start(text.data, like.span.start), like.body.start)
    changes = target_changes(text.code, like.target, words)
    head = decode(rewritten(text.data, head_span, changes))
    head = end.join(laid_out("\n".join(head.split(end))).split("\n"))
    body = f"{end}{return_text}{_forwarding_return(text, pickers, like, spot)}{end}}}"
    next_picker = next((picker for picker in pickers if picker.arch == "unknown"), pickers[-1])
    at = Comments(text).above(next_picker.span.start)
    start = at[0].start if at else line_start(text.data, next_picker.span.start)
    yield start, f"{commented(comments, words)}{head}{body}{end}{end}", reason
    place, item = listed(text, spot.site.targets, like.target, words)
    yield place, item.replace("\n", end), reason


def _forwarding_return(
    text: Text, pickers: Sequence[Picker], like: Picker, spot: ConfigSpot
) -> str:
    """Returns the new picker's default: what the devices of the new target have now."""
    selected = spot.selected.entry
    current_picker = next(
        (picker for picker in pickers if selected and _contains(picker, selected[1])), like
    )
    end, comment = newline(text.data), ""
    if default := _default(text, like):
        span = _with_comments(text, default.span, default.floor)
        comment = decode(text.data[span.start : text.code.index(b"return", span.start)]).rstrip()
    declared = squeeze(text.code, like.parameters).split(",")
    # The types that a picker takes besides its target.
    names = ", ".join(re.split(r"\W+", parameter.strip())[-1] for parameter in declared[1:])
    target = squeeze(text.code, current_picker.target)
    forwarding = (
        f"    return {like.name}<{end}        comp_target<{target}>,{end}        {names}>();"
    )
    return f"    {comment}{end}{forwarding}" if comment else forwarding
