"""Policies and conditions as lines of C++, as clang-format lays them out in CUB's style."""

from collections.abc import Mapping, Sequence

from policygen.dialects.selectors.aggregates import Field

WIDTH = 120
INDENT = "  "
OPENING, CLOSING = "(<{", ")>}"


def returned(fields: Sequence[Field], values: Mapping[str, str], std: int, indent: int) -> str:
    """`return {.threads_per_block = 512, …};`, with as many lines as it takes."""
    lines = _aggregate("return ", fields, values, std, indent, "", ";")
    return "\n".join(lines)


def _aggregate(
    lead: str,
    fields: Sequence[Field],
    values: Mapping[str, str],
    std: int,
    indent: int,
    within: str,
    end: str,
) -> list[str]:
    """On one line where it fits; else each field on lines of its own, behind the brace."""
    space = INDENT * indent
    line = f"{space}{lead}{_in_line(fields, values, std, within)}{end}"
    if len(line) <= WIDTH:
        return [line]
    lines = [f"{space}{lead}{{"]
    for field in fields:
        path = f"{within}{field.name}"
        name = _name(field, std)
        if field.fields:
            inner = f"{path}."
            lines += _aggregate(name, field.fields, values, std, indent + 1, inner, ",")
        else:
            lines.append(f"{space}{INDENT}{name}{values[path]},")
    return [*lines, f"{space}}}{end}"]


def _in_line(fields: Sequence[Field], values: Mapping[str, str], std: int, within: str) -> str:
    parts = [
        _name(field, std) + _in_line(field.fields, values, std, f"{within}{field.name}.")
        if field.fields
        else _name(field, std) + values[f"{within}{field.name}"]
        for field in fields
    ]
    return f"{{{', '.join(parts)}}}"


def _name(field: Field, std: int) -> str:
    """The field's designator, or a comment in its place."""
    return f".{field.name} = " if std >= 20 else f"/* {field.name} */ "


def wrapped(lead: str, text: str, end: str, indent: int, width: int = WIDTH) -> list[str]:
    """A call or a type on one line, or with what stands in its last brackets on lines below."""
    space = INDENT * indent
    line = f"{space}{lead}{text}{end}"
    if len(line) <= width or text[-1] not in CLOSING:
        return [line]
    opened = _last_opened(text)
    parts = [part.strip() for part in split(text[opened + 1 : -1])]
    ends = [","] * (len(parts) - 1) + [f"{text[-1]}{end}"]
    below = f"{space}{INDENT}"
    lines, row = [f"{space}{lead}{text[: opened + 1]}"], ""
    for part, behind in zip(parts, ends, strict=True):
        joined = f"{row} {part}{behind}" if row else f"{part}{behind}"
        if len(below) + len(joined) <= width:
            row = joined
            continue
        lines += [f"{below}{row}"] if row else []
        *whole, row = wrapped("", part, behind, indent + 1, width)
        lines += whole
        row = row.removeprefix(below)
    return [*lines, f"{below}{row}"]


def statement(left: str, right: str, indent: int) -> list[str]:
    """On as many lines as it takes; choices stand below each other."""
    space = INDENT * indent
    if len(f"{space}{left} {right};") <= WIDTH:
        return [f"{space}{left} {right};"]
    if len(f"{space}{INDENT}{right};") <= WIDTH:
        return [f"{space}{left}", f"{space}{INDENT}{right};"]
    first, *others = right.split(" : ")
    lines = [f"{space}{INDENT}{first}", *(f"{space}{INDENT}: {one}" for one in others)]
    return [f"{space}{left}", *lines[:-1], f"{lines[-1]};"]


def _last_opened(text: str) -> int:
    """Where the bracket is that the last character closes."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in CLOSING) - (text[at] in OPENING)
        if depth == 0:
            return at
    raise ValueError(text)


def split(text: str) -> list[str]:
    """The parts of a list, where no bracket is open."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in OPENING) - (char in CLOSING)
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def condition(alternatives: Sequence[Sequence[str]], indent: int) -> str:
    """`if constexpr (A && B)`, or `((A && B) || (C && D))`; lines break before operators."""
    space = INDENT * indent
    lead = f"{space}if constexpr ("
    behind = " " * len(lead)
    if len(alternatives) == 1:
        parts = _joined(alternatives[0], "&&", len(lead), behind)
        return f"{lead}{parts})"
    groups = [
        f"({_joined(one, '&&', len(lead) + len(mark) + 1, behind + ' ' * (len(mark) + 1))})"
        for one, mark in zip(alternatives, ["", *["|| "] * len(alternatives)], strict=False)
    ]
    return f"{lead}{f'{chr(10)}{behind}|| '.join(groups)})"


def _joined(parts: Sequence[str], operator: str, start: int, hang: str) -> str:
    """Conditions side by side as long as they fit; what is too long alone breaks in its list."""
    lines, row, column = [], "", start
    for part in parts:
        joined = f"{row} {operator} {part}" if row else part
        if column + len(joined) + len("))") <= WIDTH or not row:
            row = joined
        else:
            lines.append(row)
            row, column = f"{operator} {part}", len(hang)
        if column + len(row) + len("))") > WIDTH and ", " in part:
            first, comma, rest = part.partition(", ")
            head = row.removesuffix(part)
            lines.append(f"{head}{first}{comma.strip()}")
            inner = len(head) + first.rindex("<") + 1
            if len(hang) + inner + len(rest) + len("))") > WIDTH:
                inner = 2 * len(INDENT)
            row, column = f"{' ' * inner}{rest}", len(hang)
    return f"\n{hang}".join([*lines, row])


def comment(items: Sequence[str], lead: str, width: int = WIDTH) -> list[str]:
    """Words of a comment, on as many lines as they take."""
    lines, row = [], lead
    for item in items:
        if row != lead and len(row) + 1 + len(item) > width:
            lines.append(row)
            row = lead
        row = f"{row} {item}"
    return [*lines, row]
