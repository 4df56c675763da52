"""A function of its own for an architecture, and the block that asks it, made after another's.

auto sm90_tuning = get_sm90_tuning(accum_t, operation_t, offset_size, accum_size);
if (cc >= ::cuda::compute_capability{9, 0} && sm90_tuning)
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.headers.selectors.additions import (
    UNIT,
    Addition,
    Returned,
    above,
    below_line,
    condition_lines,
    insert,
    statement,
    wrapped,
)
from policygen.headers.selectors.arch_blocks import (
    Nested,
    Step,
    besides_arch,
    bounds,
    leaving,
    nested,
    nested_rows,
    since_of,
    steps_of,
)
from policygen.headers.selectors.branches import Truth, facts_of, simplest
from policygen.headers.selectors.functions import Function, Struct, arguments, find_functions
from policygen.headers.selectors.nearest import Bodies, KnownReturn, asked, own_condition
from policygen.headers.selectors.statements import Clause, read_body
from policygen.headers.spelling import (
    Change,
    copy,
    indent_of,
    line_end,
    line_start,
    newline,
    spelled_as,
)
from policygen.headers.syntax import closing_bracket, opening_bracket, split_list
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.edits import AddedMember
from policygen.model.records import Span
from policygen.model.tuning import Entry


@dataclass(frozen=True, slots=True)
class ArchFunction:
    """A return in a function that is made after another one."""

    beside: KnownReturn
    """The return that it is like, of the function that is the model."""
    asked: int
    """Where the model is called."""
    variable: str
    """What its answer is called there."""
    block: Clause
    """What is done with the answer."""
    steps: tuple[Step, ...]
    """The levels at which the model asks for them."""
    conditions: tuple[str, ...]
    since: str
    below: str | None

    @property
    def function(self) -> Function:
        """The model."""
        return self.beside.function

    @property
    def name(self) -> str:
        """`get_sm90_tuning`."""
        return self.function.name.replace(self.beside.family.arch, self.since)


def arch_function(
    text: Text, known: Sequence[KnownReturn], bodies: Bodies, truth: Truth, below: str | None
) -> ArchFunction | None:
    """After the newest function of an earlier architecture, where it can be told apart by name."""
    flags = {fact for one in known for fact in one.entry.args}
    found: list[tuple[tuple[int, ...], ArchFunction]] = []
    for one in known:
        name = one.function.name.replace(one.family.arch, truth.arch)
        if not one.function.optional or name in {function.name for function, _ in bodies}:
            continue
        wanted = asked(one, facts_of(one.clauses), truth, flags)
        if wanted is None:
            continue
        conditions, other = wanted
        asks = tuple(simplest(conditions))
        steps = steps_of(one.clauses, lambda fact: own_condition(fact, truth, flags))
        for at, variable, block in _calls(text, one.function, bodies):
            made = ArchFunction(one, at, variable, block, steps, asks, truth.arch, below)
            cost = -arch_number(one.family.arch), other, len(conditions)
            found.append((cost, made))
    best = min(found, key=lambda pair: pair[0], default=None)
    return best[1] if best else None


def _calls(text: Text, model: Function, bodies: Bodies) -> Iterator[tuple[int, str, Clause]]:
    """`auto sm100_tuning = get_sm100_tuning(…);`, and the block that asks for it."""
    call = re.compile(rb"(?:const\s+)?auto\s+(\w+)\s*=\s*" + model.name.encode() + rb"\s*\(")
    for function, body in bodies:
        for match in call.finditer(text.code, function.body.start, function.body.end):
            variable = match[1].decode()
            for clause in body.clauses:
                if since_of(clause) and variable in facts_of((clause,)):
                    yield match.start(), variable, clause


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


def add_function(
    text: Text,
    functions: Sequence[tuple[ArchFunction, Returned]],
    fields: AddedFields | None = None,
) -> tuple[Addition, Addition]:
    """The function with all returns for the architecture, and the block that asks it."""
    return _function(text, functions), _block(text, functions[0][0], fields)


def _function(text: Text, functions: Sequence[tuple[ArchFunction, Returned]]) -> Addition:
    first = functions[0][0]
    model = first.function
    start = line_start(text.data, model.span.start)
    head = text.data[start : model.body.start].decode().splitlines()
    indent = indent_of(text.data, start + len(head[0]) - len(head[0].lstrip()))
    rows = [_renamed(row, first) for row in head]
    inside = indent + UNIT
    left, ones = leaving([_nested(text, *pair) for pair in functions], inside)
    rows += [*left, *nested_rows(ones, inside)]
    rows += ["", f"{indent}{UNIT}return {{}};", f"{indent}}}", ""]
    return insert(text, above(text, start), rows)


def _nested(text: Text, one: ArchFunction, new: Returned) -> Nested:
    def rows(indent: str) -> list[str]:
        return statement(text, one.beside.entry, new, indent)

    return nested(one.steps, one.conditions, rows)


def _block(text: Text, one: ArchFunction, fields: AddedFields | None) -> Addition:
    """Before that of an earlier architecture, behind that of a later one."""
    data, block = text.data, one.block
    indent = indent_of(data, block.start)
    call = data[line_start(data, one.asked) : data.index(b";", one.asked) + 1].decode()
    opened = _body(text, block)
    reads = fields.read(text, Span(opened, block.end), one.variable) if fields else []
    body = copy(text, Span(line_start(data, opened), block.end), reads)
    held = [*bounds(block, one.since, one.below), *besides_arch(block)]
    rows = [*call.splitlines(), *condition_lines(held, indent), *body.splitlines()]
    rows = [part for row in rows for part in wrapped(_renamed(row, one), indent)]
    since = since_of(block)
    assert since is not None, "it is the block of an architecture"
    if arch_number(one.since) > int(f"{since[2]}{since[3]}"):
        return insert(text, above(text, one.asked), [*rows, ""])
    return insert(text, below_line(text, block.end), ["", *rows])


def _body(text: Text, block: Clause) -> int:
    """The brace that opens a block."""
    condition = closing_bracket(text.code, text.code.index(b"(", block.start))
    assert condition is not None, "its condition was read"
    return text.code.index(b"{", condition)


def _renamed(row: str, one: ArchFunction) -> str:
    """A line with the names of the new architecture."""
    row = re.sub(rf"\b{one.function.name}\b", one.name, row)
    variable = one.variable.replace(one.beside.family.arch, one.since)
    return re.sub(rf"\b{one.variable}\b", variable, row)


# "sm100_tuning_values{16, 512, 2}"
_NAMED = re.compile(rb"(?:\w+::)*(\w+)\s*\{")
_UNIT = "  "


# Makes a policy read a value from what a function returns, where it had the same for all.
#
# struct sm100_tuning_values
# {
#   int items;
#   CacheLoadModifier load_modifier = LOAD_LDG;
# };


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


@dataclass(frozen=True, slots=True)
class AddedParameters:
    """A function, and the fields of its policy that returns are to tell it."""

    function: Function
    struct: Struct
    members: Mapping[str, AddedMember]

    def edits(self, text: Text) -> Iterator[tuple[Span, str]]:
        """What its list of parameters gets, and the policy that it makes."""
        function, code = self.function, text.code
        types = dict(zip(self.struct.fields, self.struct.types, strict=True))
        opened = code.index(b"(", code.index(function.name.encode(), function.span.start))
        close = closing_bracket(code, opened)
        assert close is not None, "it was read"
        *_, last = split_list(code, opened + 1, close)
        own = indent_of(text.data, last.start)
        for name, member in self.members.items():
            if _parameter(name) in function.parameters:
                continue
            kind = types[name]
            declared = f"{kind} {_parameter(name)} = {_default(kind, member.default)}"
            gap = f",{newline(text.data)}{own}" if own else ", "
            yield Span(last.end, last.end), gap + declared
            yield self._made(text, name)

    def _made(self, text: Text, name: str) -> tuple[Span, str]:
        """The policy with the parameter behind its last value."""
        returns = read_body(text.code, self.function.body).returns
        given = arguments(text.code, returns[0].value) if len(returns) == 1 else None
        if given is None or len(given[1]) != self.struct.fields.index(name):
            line = text.line(self.function.span.start)
            raise InputError(
                f"{text.path}:{line}: {self.function.name} has no place for {name}: what it returns"
                " is no list of the values before it"
            )
        at = given[1][-1].end
        return rewrapped(text, Span(at, at), f", {_parameter(name)}")


# Makes a function that makes policies take one value more, which it gave all of them.
#
# constexpr auto make_scaled_policy(int threads_per_block, …, LookbackDelayPolicy delay,
#                                   detail::LoadPrefetch load_prefetch =
# detail::LoadPrefetch::none)


def helper_of(
    text: Text, structs: Mapping[str, Struct], entry: Entry, members: Mapping[str, AddedMember]
) -> AddedParameters | None:
    """Finds the function that makes what a return gives, where its policy has the fields."""
    found = [f for f in find_functions(text.code, structs) if f.name == entry.inherits]
    if len(found) != 1 or not members.keys() <= {*structs[found[0].returns].fields}:
        return None
    return AddedParameters(found[0], structs[found[0].returns], members)


def _parameter(field: str) -> str:
    """`_load_prefetch` as a parameter is called."""
    return field.strip("_")


def _default(kind: str, value: str) -> str:
    return f"{kind}::{value}" if value.isidentifier() and value not in {"true", "false"} else value
