"""Policies and conditions as lines of C++, as clang-format lays them out in CUB's style."""

from collections.abc import Mapping, Sequence

from policygen.emit.aggregates import Field

WIDTH = 120
INDENT = "  "


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


def condition(alternatives: Sequence[Sequence[str]], indent: int) -> str:
    """`if constexpr (A && B)`, or `((A && B) || (C && D))`; lines break before operators."""
    space = INDENT * indent
    lead = f"{space}if constexpr ("
    behind = " " * len(lead)
    if len(alternatives) == 1:
        parts = _joined(alternatives[0], "&&", len(lead), behind)
        return f"{lead}{parts})"
    inner = " " * (len(lead) + len("|| ("))
    groups = [f"({_joined(one, '&&', len(inner), inner)})" for one in alternatives]
    return f"{lead}{f'{chr(10)}{behind}|| '.join(groups)})"


def _joined(parts: Sequence[str], operator: str, start: int, hang: str) -> str:
    """Conditions side by side as long as they fit."""
    text, column = "", start
    for part in parts:
        if text and column + len(operator) + len(part) + 4 > WIDTH:
            text, column = f"{text}\n{hang}", len(hang) - 1
        elif text:
            text += " "
        added = f"{operator} {part}" if text else part
        text += added
        column += len(added) + 1
    return text
