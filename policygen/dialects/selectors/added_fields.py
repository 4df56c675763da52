"""Makes a policy read a value from what a function returns, where it had the same for all.

struct sm100_tuning_values
{
  int items;
  CacheLoadModifier load_modifier = LOAD_LDG;
};
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from policygen.dialects.selectors.additions import wrapped
from policygen.dialects.selectors.functions import Struct
from policygen.dialects.selectors.nearest import Bodies
from policygen.errors import InputError
from policygen.model.base import Span
from policygen.model.entry_text import AddedMember
from policygen.model.tuning import Entry
from policygen.source.brackets import closing_bracket, opening_bracket, split_list
from policygen.source.copying import Change
from policygen.source.spelling import indent_of, line_end, line_start, newline, spelled_as
from policygen.source.text import Text

# "sm100_tuning_values{16, 512, 2}"
_NAMED = re.compile(rb"(?:\w+::)*(\w+)\s*\{")
_UNIT = "  "


@dataclass(frozen=True, slots=True)
class AddedFields:
    """What a struct of returned values has to have besides, and where that is read."""

    struct: Struct
    members: Mapping[str, AddedMember]

    def declared(self, text: Text, structs: Mapping[str, Struct]) -> Iterator[tuple[int, str]]:
        """The fields that the struct does not have yet, behind its last one."""
        end = line_end(text.data, len(text.code[: self.struct.body.end].rstrip()) - 1)
        by = indent_of(text.data, self.struct.span.start) + _UNIT
        for name, member in self.members.items():
            if name not in self.struct.fields:
                row = f"{by}{_type(text, structs, name)} {name} = {member.default};"
                yield end, f"{newline(text.data)}{row}"

    def read(self, text: Text, scope: Span, variable: str) -> list[Change]:
        """Reads the fields where a policy is made of the others of the struct."""
        changes: list[Change] = []
        for name, member in self.members.items():
            if name in self.struct.fields:
                continue  # what is made of it has it already
            uses = re.compile(rb"\b%b->" % variable.encode()).finditer(text.code, *scope)
            lists = {_list_around(text.code, scope, match.start()) for match in uses}
            items = {s for one in lists if one for s in split_list(text.code, *one)}
            found = spelled_as(text.code, items, member.default)
            if len(found) != 1:
                raise InputError(
                    f"{text.path}:{text.line(scope.start)}: {self.struct.name} cannot have {name}:"
                    f" {member.default} is not one of the values that are made of it"
                )
            changes += [(span, f"{variable}->{name}") for span in found]
        return changes


def returned_struct(
    text: Text, structs: Mapping[str, Struct], entry: Entry, names: Collection[str]
) -> Struct:
    """Finds the struct that a return makes; refused where it is none of the header's."""
    assert entry.body_span is not None, "it has values"
    named = _NAMED.match(text.code, *entry.body_span)
    struct = structs.get(named[1].decode()) if named else None
    if struct is None or struct.unread is not None:
        what = text.data[slice(*entry.body_span)].partition(b"(")[0].decode(errors="replace")
        raise InputError(
            f"{text.path}:{entry.line}: {what.strip()} has no place for {', '.join(names)}"
        )
    return struct


def qualified(text: Text, structs: Mapping[str, Struct], name: str, value: str) -> str:
    """A value as the header has others of its type: `LoadPrefetch::l1`, `LOAD_DEFAULT`."""
    for kind in sorted(_types(structs, name)):
        scope = kind.rpartition("::")[2]
        used = re.search(rb"((?:\w+::)*%b::)\w+" % scope.encode(), text.code)
        if used:
            return f"{used[1].decode()}{value}"
    return value


def _type(text: Text, structs: Mapping[str, Struct], name: str) -> str:
    """The type of the field that takes the value: that of a policy has the same name."""
    types = _types(structs, name)
    if len(types) != 1:
        raise InputError(f"{text.path}: no policy tells the type of {name}")
    return types.pop()


def _types(structs: Mapping[str, Struct], name: str) -> set[str]:
    pairs = (p for s in structs.values() for p in zip(s.fields, s.types, strict=True))
    return {kind for field, kind in pairs if field == name}


def _list_around(code: bytes, scope: Span, at: int) -> Span | None:
    """The list in braces or parentheses that a place is an item of."""
    opened = opening_bracket(code, scope.start, at)
    if opened is None or b";" in code[opened:at]:
        return None
    close = closing_bracket(code, opened)
    return Span(opened + 1, close) if close else None


def rewrapped(text: Text, span: Span, new: str) -> tuple[Span, str]:
    """The whole line in which something changes, with a line for each value where it is long."""
    start, end = line_start(text.data, span.start), line_end(text.data, span.end)
    row = f"{text.data[start : span.start].decode()}{new}{text.data[span.end : end].decode()}"
    indent = row[: len(row) - len(row.lstrip())]
    return Span(start, end), newline(text.data).join(wrapped(row, indent))


def calls_of(text: Text, function: str, bodies: Bodies) -> Iterator[tuple[Span, str]]:
    """Finds where a function's answer is used, and what it is called there."""
    call = re.compile(rb"\bauto\s+(\w+)\s*=\s*(?:\w+::)*%b\s*\(" % function.encode())
    code = text.code
    for caller, _ in bodies:
        for match in call.finditer(code, caller.body.start, caller.body.end):
            yield _scope(code, match.start()), match[1].decode()


def _scope(code: bytes, at: int) -> Span:
    """The rest of the block in which a variable is declared; that of the `if` around it."""
    opened = opening_bracket(code, 0, at)
    if opened is None:
        return Span(at, at)
    close = closing_bracket(code, opened) or at
    if code.startswith(b"(", opened):
        close = closing_bracket(code, code.index(b"{", close)) or close
    return Span(at, close)
