"""Returns that come first in a function, as lines of C++ in a block for their architecture.

if (cc >= ::cuda::compute_capability{10, 0} && cc < ::cuda::compute_capability{10, 3})
{
  if (key_size == 4)
  {
    return MergeSortPolicy{512, 14, BLOCK_LOAD_DIRECT, LOAD_DEFAULT, BLOCK_STORE_DIRECT, 1};
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from policygen.bindings.expected import selected_path
from policygen.bindings.words import words
from policygen.dialects.selectors.additions import (
    COLUMNS,
    UNIT,
    Addition,
    condition_lines,
    guarded,
    insert,
    labelled_lines,
)
from policygen.dialects.selectors.aggregates import Field, leaves
from policygen.dialects.selectors.arch_blocks import capability_of
from policygen.dialects.selectors.edits import delay_fields
from policygen.dialects.selectors.first_return import FirstReturn
from policygen.dialects.selectors.functions import Function
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.entry_text import Content
from policygen.model.tuning import spell
from policygen.source.spelling import indent_of, line_end, line_start, newline
from policygen.source.text import Text

_CAPABILITY = "::cuda::compute_capability"
_TYPE = "compute_capability"
_ENUMERATOR = re.compile(r"[A-Za-z_]\w*")


def add_first(text: Text, returns: Sequence[tuple[FirstReturn, Content]]) -> Iterator[Addition]:
    """One block with all of them, and a name for the capability where it has none."""
    first = returns[0][0]
    body = first.function.body
    (name,) = first.function.parameters
    if name == _TYPE:
        name = "cc"
        yield _named(text, first.function, name)
    begin = line_end(text.data, body.start) + len(newline(text.data))
    inside = indent_of(text.data, begin + len(text.code[begin:]) - len(text.code[begin:].lstrip()))
    held = [f"{name} >= {capability_of(_CAPABILITY, first.since)}"]
    if first.below:
        held.append(f"{name} < {capability_of(_CAPABILITY, first.below)}")
    rows: list[str] = []
    for one, content in returns:
        by = inside + UNIT * 2
        values = dict(_values(text, one, content))
        made = _returned(
            "return ", Field("", one.function.returns, one.fields), values, "", by, ";"
        )
        rows += guarded(one.conditions, [*labelled_lines(content.label, by), *made], inside + UNIT)
    block = [*condition_lines(held, inside), f"{inside}{{", *rows, f"{inside}}}", ""]
    yield insert(text, begin, block)


def _named(text: Text, function: Function, name: str) -> Addition:
    """A function's head with a name for what it is asked for."""
    at = text.code.rindex(_TYPE.encode(), function.span.start, function.body.start) + len(_TYPE)
    start, end = line_start(text.data, at), line_end(text.data, at)
    row = f"{text.data[start:at].decode()} {name}{text.data[at:end].decode()}"
    head, arrow, returns = row.rpartition(" -> ")
    if len(row) > COLUMNS and arrow:
        indent = row[: len(row) - len(row.lstrip())] + UNIT
        row = f"{head}{newline(text.data)}{indent}-> {returns}"
    return Addition(Span(start, end), row)


def _returned(
    lead: str, made: Field, values: Mapping[str, str], within: str, indent: str, end: str
) -> list[str]:
    """`return X{…};` on one line, else as clang-format breaks it in CUB's style."""
    parts = [_in_line(field, values, within) for field in made.fields]
    head, listed = f"{indent}{lead}{made.type}{{", f"{', '.join(parts)}}}{end}"
    if len(head) + len(listed) <= COLUMNS:
        return [head + listed]
    if not any(field.fields for field in made.fields):
        below = indent + UNIT
        whole = len(below) + len(listed) <= COLUMNS
        ends = [",", f"}}{end}"]
        last = len(parts) - 1
        rows = [f"{below}{part}{ends[place == last]}" for place, part in enumerate(parts)]
        return [head, *([below + listed] if whole else rows)]
    if len(parts) == 1:
        (inner,) = made.fields
        path = f"{within}{inner.name}."
        return _returned(f"{lead}{made.type}{{", inner, values, path, indent, f"}}{end}")
    return _broken(head, made, parts, values, within, indent, end)


def _broken(
    head: str,
    made: Field,
    parts: Sequence[str],
    values: Mapping[str, str],
    within: str,
    indent: str,
    end: str,
) -> list[str]:
    """Parts of a policy below each other, behind the brace where they fit."""
    ends = [","] * (len(parts) - 1) + [f"}}{end}"]
    rows = [part + behind for part, behind in zip(parts, ends, strict=True)]
    if max(map(len, rows)) + len(head) <= COLUMNS:
        first, *rest = rows
        return [head + first, *(" " * len(head) + row for row in rest)]
    found, below = [head], indent + UNIT
    for field, row, behind in zip(made.fields, rows, ends, strict=True):
        path = f"{within}{field.name}."
        nested = field.fields and len(below) + len(row) > COLUMNS
        found += _returned("", field, values, path, below, behind) if nested else [f"{below}{row}"]
    return found


def _in_line(field: Field, values: Mapping[str, str], within: str) -> str:
    if not field.fields:
        return values[f"{within}{field.name}"]
    inner = f"{within}{field.name}."
    return f"{field.type}{{{', '.join(_in_line(one, values, inner) for one in field.fields)}}}"


def _values(text: Text, one: FirstReturn, content: Content) -> Iterator[tuple[str, str]]:
    """Each value of the policy: what is tuned, what has a name, and the numbers of the rest."""
    told = one.told.fields
    if told is None:
        raise InputError(f"{text.path}: the compiler does not tell all that {one.name} returns")
    known = dict(_known(one, content))
    for leaf, kind in leaves(one.fields):
        path = f"{one.part}{leaf}"
        number = told.values.get(path)
        if path not in known:
            # CUB gives several parts of a policy the same: they have the same afterwards.
            last = path.rpartition(".")[2]
            twins = (p for p in known if p.rpartition(".")[2] == last)
            twin = next((p for p in twins if told.values.get(p) == number), None)
            yield leaf, _spelled(text, one, path, kind, known[twin] if twin else number)
        else:
            yield leaf, _spelled(text, one, path, kind, known[path])


def _known(one: FirstReturn, content: Content) -> Iterator[tuple[str, str]]:
    """The values that bindings name, by their path in what is selected."""
    site = one.site
    values = {n: spell(v) for n, v in one.told.values.items()} | content.values
    for name, where in site.values.items():
        if (path := selected_path(site.policy, where)) and name in values:
            yield path, values[name]
    delay = delay_fields(values.get(words().values.delay, ""))
    if site.delay and delay is not None:
        for where, value in zip(site.delay, delay, strict=True):
            path = selected_path(site.policy, where)
            assert path is not None, "it is one of a field"
            yield path, value


def _spelled(text: Text, one: FirstReturn, path: str, kind: str, value: object) -> str:
    if kind == "bool":
        return {"0": "false", "1": "true"}.get(str(value), str(value))
    if isinstance(value, str) and _ENUMERATOR.fullmatch(value) and value not in {"true", "false"}:
        scoped = re.search(rb"\b%b::\w" % kind.encode(), text.code)
        return f"{kind}::{value}" if scoped else value
    if value is None or (not isinstance(value, str) and not _is_number(kind)):
        raise InputError(f"{text.path}: no binding tells what {path} of {one.name} is")
    return str(value)


def _is_number(kind: str) -> bool:
    return {*kind.split()} <= {"int", "unsigned", "long", "short", "size_t", "char"}
