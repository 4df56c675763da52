"""Spells code as a header does: its qualifiers, parameter names and columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise

from policygen.errors import InputError
from policygen.headers.text import Text, decode, with_changes
from policygen.model.records import Span
from policygen.model.tuning import Edit, Entry, Family, Member, Slot, spell

WIDTH = 120
"""The column limit of CUB's clang-format."""
UNIT = "  "
"""The indentation of one level."""
# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIER = re.compile(r"(?:::)?(?:\w+::)*")
# "fixed_delay_constructor_t<350, 450>", "LOAD_CA"; not "::LOAD_CA", "1 << 2", "large ? A : B"
_PLAIN = re.compile(r"(?!true$|false$)[A-Za-z_]\w*(?:<.*>)?")
# "1 << 2"
_SHIFT = re.compile(r"1\s*<<\s*\d+")


def like(old: str, value: str) -> str:
    """Spells a new value like an old one, with its namespaces or its `1 << n`."""
    if _SHIFT.fullmatch(old) and value.isdigit() and (number := int(value)).bit_count() == 1:
        return f"1 << {number.bit_length() - 1}"
    return _qualifier(old) + value if _PLAIN.fullmatch(value) else value


def same(old: Member, new: str) -> bool:
    """Tells whether a member already has a value."""
    value = old.spelling if old.value is None else spell(old.value)
    return new in {old.spelling, value} or _bare(value) == _bare(new)


def _bare(text: str) -> str:
    return "".join(text.removeprefix(_qualifier(text)).split())


def _qualifier(text: str) -> str:
    match = _QUALIFIER.match(text)
    assert match is not None, "it may be empty"
    return match[0]


def parameters(
    family: Family, key: Sequence[Slot], sibling: Entry | None
) -> tuple[list[str], list[str]]:
    """Returns the declarations of an entry's own parameters, and its arguments."""
    declarations_by_name = sibling.own_parameters if sibling else {}
    declared, args = [], []
    for position, slot in enumerate(key):
        if slot is not None:
            args.append(slot)
            continue
        name = sibling.args[position] if sibling else ""
        text = declarations_by_name.get(name)
        if text is None or name in args:
            parameter = family.parameters[position]
            name, text = parameter.name, f"{parameter.type} {parameter.name}"
        if not name:
            raise InputError(
                f"{family.header}: a parameter of {family.name} has no name",
                "An entry that takes any argument there needs one.",
            )
        declared.append(text)
        args.append(name)
    return declared, args


def head(name: str, args: Sequence[str], *, lead: int) -> str:
    """Writes `sm90_tuning<…>` on one line if it fits, else one argument per line.

    CUB's clang-format weighs a break like one and a half excess columns: a head with seven
    arguments stays on one line of 124.
    """
    single_line = f"{name}<{', '.join(args)}>"
    if lead + len(single_line) <= WIDTH + 3 * (len(args) - 1) // 2:
        return single_line
    separator = ",\n" + " " * (lead + len(name) + 1)
    return f"{name}<{separator.join(args)}>"


def columns(entries: Sequence[Entry], args: Sequence[str]) -> str:
    """Aligns arguments with those of one-line entries, given closest first."""
    if not args:
        return ""
    row = args[0]
    for position, (before, arg) in enumerate(pairwise(args), 1):
        row += f",{' ' * _gap(entries, position, len(before), len(arg))}{arg}"
    return row


def _gap(entries: Sequence[Entry], position: int, before: int, width: int) -> int:
    """Returns the gap before an argument: that of one of equal width, else right-aligned."""
    pairs = [
        entry.arg_spans[position - 1 : position + 1]
        for entry in entries
        if entry.layout == "line" and position < len(entry.arg_spans)
    ]
    gaps = [
        (first.end - first.start, second.end - second.start, second.start - first.end - 1)
        for first, second in pairs
    ]
    equal = [gap for *widths_there, gap in gaps if widths_there == [before, width]]
    equal += [gap for _, width_there, gap in gaps if width_there == width]
    if equal or not gaps:
        return equal[0] if equal else 1
    return max(1, gaps[0][1] + gaps[0][2] - width)


def declarations(
    values: Mapping[str, str], types: Mapping[str, tuple[str, str]], *, aligned: bool
) -> list[str]:
    """Declares members; `types` maps each to its type and an example value."""
    rows = []
    for name, value in values.items():
        type_name, example = types[name]
        keywords = "using" if type_name == "using" else f"static constexpr {type_name}"
        rows.append((f"{keywords} {name}", like(example, value)))
    aligned_widths = widths([(UNIT + left_side, value) for left_side, value in rows])
    column_widths = aligned_widths if aligned else [0] * len(rows)
    return [
        f"{left_side.ljust(width - len(UNIT))} = {value};"
        for (left_side, value), width in zip(rows, column_widths, strict=True)
    ]


def widths(rows: Sequence[tuple[str, str]]) -> list[int]:
    """Returns the column widths with which clang-format aligns members, in runs that fit."""
    result: list[int] = []
    run: list[tuple[str, str]] = []
    for row in rows:
        wider = [*run, row]
        if run and any(_run_width(wider) + len(f" = {value};") > WIDTH for _, value in wider):
            result += [_run_width(run)] * len(run)
            run = []
        run.append(row)
    return result + [_run_width(run)] * len(run)


def _run_width(run: Sequence[tuple[str, str]]) -> int:
    return max((len(left) for left, _ in run), default=0)


def spelled_as(code: bytes, spans: Iterable[Span], name: str) -> list[Span]:
    """Returns the spans that spell a name, with any qualifier: `cub::LOAD_LDG`."""
    texts = ((span, code[slice(*span)].decode(errors="replace").strip()) for span in spans)
    return [span for span, text in texts if text.rpartition("::")[2] == name]


def newline(data: bytes) -> str:
    """Returns the line ending of most lines."""
    return "\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else "\n"


def indent_of(data: bytes, offset: int) -> str:
    """Returns the white space before an offset, or nothing if other text precedes it."""
    text = data[line_start(data, offset) : offset]
    return "" if text.strip() else text.decode()


def leading_space(row: str) -> str:
    """Returns the white space at the start of a row."""
    return row[: len(row) - len(row.lstrip())]


def line_end(data: bytes, offset: int) -> int:
    """Returns the end of an offset's line, before its line ending."""
    end = data.find(b"\n", offset)
    end = len(data) if end < 0 else end
    return end - data.endswith(b"\r", 0, end)


def line_start(data: bytes, offset: int) -> int:
    """Returns the start of an offset's line."""
    return data.rfind(b"\n", 0, offset) + 1


def text_of(data: bytes, span: Span) -> str:
    """Returns the text of a span."""
    return data[slice(*span)].decode()


Change = tuple[Span, str]
"""A span of the original, and its replacement in the copy."""
# "    using SingleTilePolicy = ReducePolicy;", "  static constexpr int items = 4;"
_ASSIGNMENT = re.compile(r"(\s*)((?:using|static constexpr)\s.*?\S)\s* = (.*;)")


# Copies of header text with replacements, laid out as by clang-format
#
# Copies use LF line endings, whatever the header uses.


def copy(text: Text, span: Span, changes: Sequence[Change] = ()) -> str:
    """Copies a span with changes; text aligned with an opening bracket stays aligned."""
    parts, end = [], span.start
    for changed_span, replacement in sorted([*changes, *_realigned(text, span, changes)]):
        parts += [decode(text.data[end : changed_span.start]), replacement]
        end = changed_span.end
    parts.append(decode(text.data[end : span.end]))
    return wrap("".join(parts).replace("\r\n", "\n"))


def wrap(text: str) -> str:
    """Breaks members that are too long behind their `=`."""
    return "\n".join(_wrapped_line(line) for line in text.split("\n"))


def align(text: str) -> str:
    """Aligns the `=` signs of members on consecutive lines."""
    rows: list[str] = []
    matches = ((line, _ASSIGNMENT.fullmatch(line)) for line in text.split("\n"))
    for is_member, run in groupby(matches, lambda pair: pair[1] is not None):
        lines = list(run)
        parts = [match.groups() for _, match in lines if match]
        width = max((len(left_side) for _, left_side, _ in parts), default=0)
        aligned = [f"{space}{name.ljust(width)} = {value}" for space, name, value in parts]
        rows += aligned if is_member else [line for line, _ in lines]
    return wrap("\n".join(rows))


def indent(text: str, indentation: str) -> str:
    """Indents all nonempty lines."""
    return re.sub(r"(?m)^(?=.)", indentation, text)


def dedent(text: str, indentation: str) -> str:
    """Removes a common indentation."""
    return re.sub(rf"(?m)^{indentation}", "", text)


def _wrapped_line(line: str) -> str:
    match = _ASSIGNMENT.fullmatch(line) if len(line) > WIDTH else None
    return f"{match[1]}{match[2]} =\n{match[1]}  {match[3]}" if match else line


def _realigned(text: Text, span: Span, changes: Sequence[Change]) -> list[Change]:
    """Returns the indentation changes of lines aligned with a bracket that moves."""
    data = text.data
    line_ends = re.compile(rb"\n").finditer(data, span.start, span.end)
    lines = [line_start(data, span.start), *(match.end() for match in line_ends)]
    shift_by_line: dict[int, int] = {}
    realigned: list[Change] = []
    for number, start in enumerate(lines[1:], 1):
        width = _indentation(data, start)
        bracket = _bracket(data, lines[:number], width)
        if bracket is None or any(changed.start < start <= changed.end for changed, _ in changes):
            continue
        line, column = bracket
        shift = shift_by_line.get(line, 0) + sum(
            len(replacement) - (changed_span.end - changed_span.start)
            for changed_span, replacement in changes
            if line <= changed_span.start and changed_span.end <= column
        )
        shift_by_line[start] = shift
        if shift:
            realigned.append((Span(start, start + width), " " * (width + shift)))
    return realigned


def _indentation(data: bytes, start: int) -> int:
    match = re.compile(rb"[ ]*").match(data, start)
    return match.end() - start if match else 0


def _bracket(data: bytes, lines: Sequence[int], width: int) -> tuple[int, int] | None:
    """Returns the line and offset of the bracket that an indentation is aligned with."""
    for start in reversed(lines):
        end = data.find(b"\n", start)
        offset = start + width - 1
        if start <= offset < end and data[offset : offset + 1] in {b"<", b"("}:
            return start, offset
        if _indentation(data, start) < width:
            break
    return None


# Byte edits, checked for expected content and overlap


def edit_at(data: bytes, span: Span, replacement: str, reason: str) -> Edit:
    """Builds an edit that replaces the current content of a span."""
    try:
        old = data[slice(*span)].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {span.start + error.start} of a comment to be replaced is not UTF-8",
            "Save the header as UTF-8, so that a plan can store the replaced text.",
        ) from error
    return Edit(span=span, old=old, new=replacement, reason=reason)


def edits_of(data: bytes, changes: Iterable[Change], reason: str) -> list[Edit]:
    """Builds the edits of changes that have one reason."""
    return [edit_at(data, span, text, reason) for span, text in changes]


def splice(path: str, data: bytes, edits: Sequence[Edit]) -> bytes:
    """Applies all edits at once."""
    ordered = sorted(edits, key=lambda edit: edit.span)
    before = Span(-1, 0)
    for edit in ordered:
        start, end = edit.span
        # Two insertions at one offset have no order; an insertion behind a replacement does.
        if start < before.end or edit.span == before:
            raise InputError(f"{path}: two edits overlap at byte {start}", edit.reason)
        if end > len(data) or data[start:end] != edit.old.encode():
            raise Text(path, data).error(
                start,
                "the header differs from the one that the plan was made for: expected"
                f" {edit.old!r} here",
                remedy="Make the plan again.",
            )
        before = edit.span
    return with_changes(data, ((edit.span, edit.new.encode()) for edit in ordered))


def rewritten(data: bytes, span: Span, changes: Iterable[Change]) -> bytes:
    """Returns the bytes of a span, with changes to parts of it."""
    moved = [(Span(s.start - span.start, s.end - span.start), new) for s, new in changes]
    return replaced(data[slice(*span)], moved)


def replaced(data: bytes, changes: Iterable[tuple[Span, str]]) -> bytes:
    """Replaces spans unconditionally."""
    return with_changes(data, ((span, text.encode()) for span, text in sorted(changes)))
