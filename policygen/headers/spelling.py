"""How a header spells things: the qualifiers it uses, the names of its parameters, its columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from policygen.errors import InputError
from policygen.headers.text import Text, decode
from policygen.model.edits import Edit, Slot
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member, spell

WIDTH = 120
"""Columns that CUB's clang-format allows."""
_INDENT = "  "
# "detail::" of "detail::fixed_delay_constructor_t<350, 450>"
_QUALIFIER = re.compile(r"(?:::)?(?:\w+::)*")
# "fixed_delay_constructor_t<350, 450>", "LOAD_CA"; not "::LOAD_CA", "1 << 2", "large ? A : B"
_PLAIN = re.compile(r"(?!true$|false$)[A-Za-z_]\w*(?:<.*>)?")
# "1 << 2"
_SHIFT = re.compile(r"1\s*<<\s*\d+")


def like(old: str, new: str) -> str:
    """A new value in the manner of an old one: its namespaces, its `1 << n`."""
    if _SHIFT.fullmatch(old) and new.isdigit() and (number := int(new)).bit_count() == 1:
        return f"1 << {number.bit_length() - 1}"
    if not _PLAIN.fullmatch(new):
        return new
    return _qualifier(old) + new


def same(old: Member, new: str) -> bool:
    """Whether a member has a value already."""
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
    """The declarations of an entry's own parameters, and its arguments."""
    known = sibling.own_parameters if sibling else {}
    declared, args = [], []
    for position, slot in enumerate(key):
        if slot is not None:
            args.append(slot)
            continue
        name = sibling.args[position] if sibling else ""
        text = known.get(name)
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
    """`sm90_tuning<…>`, on one line where it fits, else an argument a line.

    CUB's clang-format weighs a break like one and a half columns too many: a head with seven
    arguments stays on one line of 124.
    """
    one = f"{name}<{', '.join(args)}>"
    if lead + len(one) <= WIDTH + 3 * (len(args) - 1) // 2:
        return one
    gap = ",\n" + " " * (lead + len(name) + 1)
    return f"{name}<{gap.join(args)}>"


def columns(entries: Sequence[Entry], args: Sequence[str]) -> str:
    """A list of arguments in the columns of entries on one line, the closest of them first."""
    if not args:
        return ""
    found = args[0]
    for position, (before, arg) in enumerate(pairwise(args), 1):
        found += f",{' ' * _gap(entries, position, len(before), len(arg))}{arg}"
    return found


def _gap(entries: Sequence[Entry], position: int, before: int, wide: int) -> int:
    """The spaces before an argument: as before one as wide, else ending where others end."""
    shown = []
    for entry in entries:
        if entry.layout == "line" and position < len(entry.arg_spans):
            left, right = entry.arg_spans[position - 1 : position + 1]
            shown.append(
                (left.end - left.start, right.end - right.start, right.start - left.end - 1)
            )
    for left_wide, right_wide, gap in shown:
        if (left_wide, right_wide) == (before, wide):
            return gap
    for _, right_wide, gap in shown:
        if right_wide == wide:
            return gap
    return max(1, shown[0][1] + shown[0][2] - wide) if shown else 1


def declarations(
    values: Mapping[str, str], types: Mapping[str, tuple[str, str]], *, aligned: bool
) -> list[str]:
    """Members as they are declared; `types` holds each one's type and a value to take after."""
    rows = []
    for name, value in values.items():
        kind, old = types[name]
        left = f"using {name}" if kind == "using" else f"static constexpr {kind} {name}"
        rows.append((left, like(old, value)))
    wide = widths([(_INDENT + left, value) for left, value in rows]) if aligned else [0] * len(rows)
    return [
        f"{left.ljust(width - len(_INDENT))} = {value};"
        for (left, value), width in zip(rows, wide, strict=True)
    ]


def widths(rows: Sequence[tuple[str, str]]) -> list[int]:
    """How wide the left sides of members are as clang-format aligns them: in runs that fit."""
    found: list[int] = []
    run: list[tuple[str, str]] = []
    for row in rows:
        if run and not _fits([*run, row]):
            found += [_width(run)] * len(run)
            run = []
        run.append(row)
    return found + [_width(run)] * len(run)


def _fits(run: Sequence[tuple[str, str]]) -> bool:
    return all(_width(run) + len(f" = {value};") <= WIDTH for _, value in run)


def _width(run: Sequence[tuple[str, str]]) -> int:
    return max((len(left) for left, _ in run), default=0)


def spelled_as(code: bytes, spans: Iterable[Span], name: str) -> list[Span]:
    """The parts of a list that are a name, whatever qualifies it: `cub::LOAD_LDG`."""
    return [s for s in spans if _last(code[s.start : s.end]) == name]


def _last(value: bytes) -> str:
    return value.decode(errors="replace").strip().rpartition("::")[2]


def newline(data: bytes) -> str:
    """The line ending of most of a header's lines."""
    return "\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else "\n"


def indent_of(data: bytes, offset: int) -> str:
    """What stands before a place on its line, when that is white space."""
    text = data[line_start(data, offset) : offset]
    return "" if text.strip() else text.decode()


def line_end(data: bytes, offset: int) -> int:
    """Where the line of a place ends, before its line ending."""
    end = data.find(b"\n", offset)
    end = len(data) if end < 0 else end
    return end - data.endswith(b"\r", 0, end)


def line_start(data: bytes, offset: int) -> int:
    """Where the line of a place begins."""
    return data.rfind(b"\n", 0, offset) + 1


def text_of(data: bytes, span: Span) -> str:
    """What a span holds."""
    return data[span.start : span.end].decode()


Change = tuple[Span, str]
"""A place of the original, and what the copy has there."""
# "    using SingleTilePolicy = ReducePolicy;", "  static constexpr int items = 4;"
_ASSIGNMENT = re.compile(r"(\s*)((?:using|static constexpr)\s.*?\S)\s* = (.*;)")


# Copies of a stretch of a header with other words in some places, laid out as clang-format does.
#
# A copy ends its lines as Python does, whatever the header does.


def copy(text: Text, span: Span, changes: Sequence[Change] = ()) -> str:
    """A stretch with changes; what stood in line below an opened bracket still does."""
    parts, at = [], span.start
    for place, new in sorted([*changes, *_realigned(text, span, changes)]):
        parts += [decode(text.data[at : place.start]), new]
        at = place.end
    parts.append(decode(text.data[at : span.end]))
    return wrap("".join(parts).replace("\r\n", "\n"))


def wrap(text: str) -> str:
    """Members that are too long for a line, broken behind their `=`."""
    return "\n".join(_wrapped(line) for line in text.split("\n"))


def align(text: str) -> str:
    """Members on consecutive lines, with their `=` below each other."""
    lines = text.split("\n")
    found = [_ASSIGNMENT.fullmatch(line) for line in lines]
    for i, match in enumerate(found):
        if match is None or (i and found[i - 1]):
            continue
        run = [m for m in found[i : _run_end(found, i)] if m]
        width = max(len(m[2]) for m in run)
        lines[i : i + len(run)] = [f"{m[1]}{m[2].ljust(width)} = {m[3]}" for m in run]
    return wrap("\n".join(lines))


def indent(text: str, by: str) -> str:
    """Every line that holds something, further to the right."""
    return re.sub(r"(?m)^(?=.)", by, text)


def dedent(text: str, by: str) -> str:
    """Lines without what stood before all of them."""
    return re.sub(rf"(?m)^{by}", "", text)


def _run_end(found: Sequence[re.Match[str] | None], at: int) -> int:
    return next((i for i in range(at, len(found)) if found[i] is None), len(found))


def _wrapped(line: str) -> str:
    match = _ASSIGNMENT.fullmatch(line) if len(line) > WIDTH else None
    return f"{match[1]}{match[2]} =\n{match[1]}  {match[3]}" if match else line


def _realigned(text: Text, span: Span, changes: Sequence[Change]) -> list[Change]:
    """Other indentations for the lines below a bracket that has moved."""
    data = text.data
    lines = [line_start(data, span.start)]
    lines += [m.end() for m in re.finditer(rb"\n", data[: span.end]) if m.end() > span.start]
    moved: dict[int, int] = {}
    found: list[Change] = []
    for number, start in enumerate(lines[1:], 1):
        width = _indentation(data, start)
        bracket = _bracket(data, lines[:number], width)
        if bracket is None or any(c.start < start <= c.end for c, _ in changes):
            continue
        line, at = bracket
        by = moved.get(line, 0) + sum(
            len(new) - (place.end - place.start)
            for place, new in changes
            if line <= place.start and place.end <= at
        )
        moved[start] = by
        if by:
            found.append((Span(start, start + width), " " * (width + by)))
    return found


def _indentation(data: bytes, start: int) -> int:
    match = re.compile(rb"[ ]*").match(data, start)
    return match.end() - start if match else 0


def _bracket(data: bytes, lines: Sequence[int], width: int) -> tuple[int, int] | None:
    """The line, and the place on it, of the bracket that an indentation is in line with."""
    for start in reversed(lines):
        end = data.find(b"\n", start)
        at = start + width - 1
        if start <= at < end and data[at : at + 1] in {b"<", b"("}:
            return start, at
        if _indentation(data, start) < width:
            break
    return None


# Edits to bytes: checked for what they expect and for overlap, then spliced once.


def edit_at(data: bytes, span: Span, new: str, reason: str) -> Edit:
    """An edit of what a place holds now."""
    try:
        old = data[span.start : span.end].decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {span.start + error.start} of a comment that is to be replaced is not UTF-8",
            "Save the header as UTF-8; a plan can then hold what it replaces.",
        ) from error
    return Edit(span=span, old=old, new=new, reason=reason)


def splice(path: str, data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes with all edits done; nothing else moves."""
    parts: list[bytes] = []
    at = 0
    before: Span | None = None
    for edit in sorted(edits, key=lambda edit: edit.span):
        start, end = edit.span
        # Two insertions at one place have no order; one behind what is replaced has.
        if start < at or edit.span == before:
            raise InputError(f"{path}: two edits meet at byte {start}", edit.reason)
        if end > len(data) or data[start:end] != edit.old.encode():
            raise Text(path, data).error(
                start,
                f"the header is not what the plan was made for: expected {edit.old!r} here",
                remedy="Make the plan again.",
            )
        parts += [data[at:start], edit.new.encode()]
        at, before = end, edit.span
    parts.append(data[at:])
    return b"".join(parts)


def replaced(data: bytes, changes: Iterable[tuple[Span, str]]) -> bytes:
    """A copy with other text at some places, whatever stands there."""
    for span, text in sorted(changes, reverse=True):
        data = data[: span.start] + text.encode() + data[span.end :]
    return data
