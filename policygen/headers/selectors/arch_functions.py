"""Adds a function for an architecture and the block that calls it, modeled on another's.

auto sm90_tuning = get_sm90_tuning(accum_t, operation_t, offset_size, accum_size);
if (cc >= ::cuda::compute_capability{9, 0} && sm90_tuning)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.headers.selectors.additions import (
    above,
    below_line,
    condition_lines,
    insert,
    wrapped,
)
from policygen.headers.selectors.arch_blocks import (
    ArchReturn,
    besides_arch,
    bounds,
    leaving,
    likeness_of,
    nested_return,
    nested_rows,
    number_of,
    since_of,
)
from policygen.headers.selectors.conditions import Truth, simplest
from policygen.headers.selectors.functions import Function, HeaderCode, Struct, arguments
from policygen.headers.selectors.nearest import HeaderReturn, HeaderReturns
from policygen.headers.selectors.statements import Clause, read_body
from policygen.headers.spelling import (
    UNIT,
    Change,
    copy,
    indent_of,
    leading_space,
    line_end,
    line_start,
    newline,
    spelled_as,
    text_of,
)
from policygen.headers.syntax import closing_bracket, opening_bracket, split_list
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.records import Span
from policygen.model.tuning import AddedMember, Content, Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchFunction(ArchReturn):
    """A return in a new function; `block` uses the result of the model function."""

    asked: int
    """The offset of the call of the model function."""
    variable: str
    """The variable that holds the model function's result."""

    @property
    def function(self) -> Function:
        """The model function."""
        return self.beside.function

    @property
    def name(self) -> str:
        """`get_sm90_tuning`."""
        return self.function.name.replace(self.beside.family.arch, self.since)


def arch_function(
    header: HeaderReturns, returns: Sequence[HeaderReturn], truth: Truth, below: str | None
) -> ArchFunction | None:
    """Models it on the newest function of an earlier architecture that has the arch in its name."""
    flags = {fact for model in returns for fact in model.entry.args}
    candidates: list[tuple[tuple[int, ...], ArchFunction]] = []
    for model in returns:
        name = model.function.name.replace(model.family.arch, truth.arch)
        if not model.function.optional or name in {own.name for own in header.deciding}:
            continue
        likeness = likeness_of(model, model.clauses, truth, flags)
        if likeness is None:
            continue
        cost = -arch_number(model.family.arch), likeness.changed, len(likeness.conditions)
        place = model, likeness.steps, tuple(simplest(likeness.conditions)), truth.arch, below
        for block, asked, variable in _calls(header, model.function):
            new_function = ArchFunction(*place, block, asked=asked, variable=variable)
            candidates.append((cost, new_function))
    best = min(candidates, key=lambda candidate: candidate[0], default=None)
    return best[1] if best else None


def _calls(header: HeaderReturns, model: Function) -> Iterator[tuple[Clause, int, str]]:
    """Finds `auto sm100_tuning = get_sm100_tuning(…);` and the block that tests the result."""
    call = re.compile(rb"(?:const\s+)?auto\s+(\w+)\s*=\s*" + model.name.encode() + rb"\s*\(")
    for function, body in header.bodies:
        for match in call.finditer(header.code, function.body.start, function.body.end):
            variable = match[1].decode()
            for clause in body.clauses:
                if since_of(clause) and variable in clause.facts:
                    yield clause, match.start(), variable


@dataclass(frozen=True, slots=True)
class AddedFields:
    """Fields that a policy needs added, and the places that give them values."""

    struct: Struct
    members: Mapping[str, AddedMember]
    function: Function | None = None
    """The function that makes the policy of its parameters, if there is one."""

    @property
    def name(self) -> str:
        """The name of what gets the fields."""
        return self.function.name if self.function else self.struct.name

    def changes(self, header: HeaderReturns) -> Iterator[Change]:
        """Yields the fields that the struct lacks, or the parameters that the function lacks."""
        text = header.text
        if self.function is not None:
            yield from self._parameters(text, self.function)
            return
        end = line_end(text.data, len(text.code[: self.struct.body.end].rstrip()) - 1)
        indent = indent_of(text.data, self.struct.span.start) + UNIT
        for name, member in self.members.items():
            if name not in self.struct.fields:
                row = f"{indent}{_type(header, name)} {name} = {member.default};"
                yield Span(end, end), f"{newline(text.data)}{row}"

    def _parameters(self, text: Text, function: Function) -> Iterator[Change]:
        """Yields the changes of the parameter list and of the policy that the function returns.

        constexpr auto make_scaled_policy(int threads_per_block, …,
                                          LoadPrefetch load_prefetch = LoadPrefetch::none)
        """
        types = dict(self.struct.typed_fields)
        *_, last_parameter = split_list(text.code, *function.parameter_list)
        indent = indent_of(text.data, last_parameter.start)
        for name, member in self.members.items():
            parameter, type_name, default = name.strip("_"), types[name], member.default
            if parameter in function.parameters:
                continue
            if default.isidentifier() and default not in {"true", "false"}:
                default = f"{type_name}::{default}"
            gap = f",{newline(text.data)}{indent}" if indent else ", "
            end = last_parameter.end
            yield Span(end, end), f"{gap}{type_name} {parameter} = {default}"
            end = self._end_of_values(text, function, name)
            yield rewrapped(text, Span(end, end), f", {parameter}")

    def _end_of_values(self, text: Text, function: Function, name: str) -> int:
        """Returns where the policy that a function returns gets the value of a field."""
        returns = read_body(text.code, function.body).returns
        call = arguments(text.code, returns[0].value) if len(returns) == 1 else None
        if call is None or len(call[1]) != self.struct.fields.index(name):
            raise InputError(
                f"{text.path}:{text.line(function.span.start)}: {function.name} has no place for"
                f" {name}: it must have one return, which lists the values before it"
            )
        return call[1][-1].end

    def read(self, text: Text, scope: Span, variable: str) -> list[Change]:
        """Reads the fields where a policy is constructed from the struct's other fields."""
        changes: list[Change] = []
        for name, member in self.members.items():
            if name in self.struct.fields:
                continue  # the policy reads it already
            uses = re.compile(rb"\b%b->" % variable.encode()).finditer(text.code, *scope)
            lists = {_list_around(text.code, scope, match.start()) for match in uses}
            items = {item for span in lists if span for item in split_list(text.code, *span)}
            matching = spelled_as(text.code, items, member.default)
            if len(matching) != 1:
                raise InputError(
                    f"{text.path}:{text.line(scope.start)}: {self.struct.name} cannot get a field"
                    f" {name}: {member.default} is not among the values computed from the struct"
                )
            changes += [(span, f"{variable}->{name}") for span in matching]
        return changes


def add_function(
    text: Text,
    functions: Sequence[tuple[ArchFunction, Content]],
    fields: AddedFields | None = None,
) -> tuple[Change, Change]:
    """Returns the function with all returns for the architecture, and the block that calls it."""
    return _function(text, functions), _block(text, functions[0][0], fields)


def _function(text: Text, functions: Sequence[tuple[ArchFunction, Content]]) -> Change:
    first = functions[0][0]
    model = first.function
    start = line_start(text.data, model.span.start)
    head = text.data[start : model.body.start].decode().splitlines()
    indent = leading_space(head[0])
    rows = [_renamed(row, first) for row in head]
    body_indent = indent + UNIT
    exit_lines, returns = leaving([nested_return(text, *pair) for pair in functions], body_indent)
    rows += [*exit_lines, *nested_rows(returns, body_indent)]
    rows += ["", f"{indent}{UNIT}return {{}};", f"{indent}}}", ""]
    return insert(text, above(text, start), rows)


def _block(text: Text, place: ArchFunction, fields: AddedFields | None) -> Change:
    """Writes the block before that of an earlier architecture, or behind that of a later one."""
    data, block = text.data, place.block
    indent = indent_of(data, block.start)
    call = data[line_start(data, place.asked) : data.index(b";", place.asked) + 1].decode()
    body_start = _body(text, block)
    changes = fields.read(text, Span(body_start, block.end), place.variable) if fields else []
    body = copy(text, Span(line_start(data, body_start), block.end), changes)
    conditions = [*bounds(block, place.since, place.below), *besides_arch(block)]
    rows = [*call.splitlines(), *condition_lines(conditions, indent), *body.splitlines()]
    rows = [part for row in rows for part in wrapped(_renamed(row, place), indent)]
    if arch_number(place.since) > number_of(block):
        return insert(text, above(text, place.asked), [*rows, ""])
    return insert(text, below_line(text, block.end), ["", *rows])


def _body(text: Text, block: Clause) -> int:
    """Returns the offset of the brace that opens a block."""
    condition = closing_bracket(text.code, text.code.index(b"(", block.start))
    assert condition is not None, "its condition was read"
    return text.code.index(b"{", condition)


def _renamed(row: str, place: ArchFunction) -> str:
    """Replaces the model's names with those of the new architecture."""
    row = re.sub(rf"\b{place.function.name}\b", place.name, row)
    variable = place.variable.replace(place.beside.family.arch, place.since)
    return re.sub(rf"\b{place.variable}\b", variable, row)


# "sm100_tuning_values{16, 512, 2}"
_NAMED = re.compile(rb"(?:\w+::)*(\w+)\s*\{")


# Added struct fields
#
# struct sm100_tuning_values
# {
#   int items;
#   CacheLoadModifier load_modifier = LOAD_LDG;
# };


def added_fields(
    header: HeaderReturns, entry: Entry, members: Mapping[str, AddedMember]
) -> AddedFields:
    """Finds the function or the struct that makes a return's policy; raises if there is none."""
    functions = [function for function in header.deciding if function.name == entry.inherits]
    struct = header.structs[functions[0].returns] if len(functions) == 1 else None
    if struct is not None and members.keys() <= {*struct.fields}:
        return AddedFields(struct, members, functions[0])
    assert entry.body_span is not None, "it has values"
    text = header.text
    match = _NAMED.match(text.code, *entry.body_span)
    struct = header.structs.get(match[1].decode()) if match else None
    if struct is None or struct.unread is not None:
        expression = text.data[slice(*entry.body_span)].partition(b"(")[0].decode(errors="replace")
        raise InputError(
            f"{text.path}:{entry.line}: {expression.strip()} has no place for {', '.join(members)}"
        )
    return AddedFields(struct, members)


def qualified(header: HeaderReturns, name: str, value: str) -> str:
    """Qualifies a value like others of its type: `LoadPrefetch::l1`, `LOAD_DEFAULT`."""
    for type_name in sorted(_types(header, name)):
        scope = type_name.rpartition("::")[2]
        match = re.search(rb"((?:\w+::)*%b::)\w+" % scope.encode(), header.code)
        if match:
            return f"{match[1].decode()}{value}"
    return value


def _type(header: HeaderReturns, name: str) -> str:
    """Returns the field's type, taken from the policy field of the same name."""
    types = _types(header, name)
    if len(types) != 1:
        raise InputError(
            f"{header.text.path}: policies declare {name} with {len(types)} types, not with one"
        )
    return types.pop()


def _types(header: HeaderReturns, name: str) -> set[str]:
    typed_fields = (pair for struct in header.structs.values() for pair in struct.typed_fields)
    return {type_name for field, type_name in typed_fields if field == name}


def _list_around(code: bytes, scope: Span, offset: int) -> Span | None:
    """Returns the list in braces or parentheses that encloses an offset."""
    opening = opening_bracket(code, scope.start, offset)
    if opening is None or b";" in code[opening:offset]:
        return None
    close = closing_bracket(code, opening)
    return Span(opening + 1, close) if close else None


def rewrapped(text: Text, span: Span, replacement: str) -> tuple[Span, str]:
    """Rewraps the whole line around a change, one value per line if it is too long."""
    start, end = line_start(text.data, span.start), line_end(text.data, span.end)
    before, behind = text_of(text.data, Span(start, span.start)), Span(span.end, end)
    row = f"{before}{replacement}{text_of(text.data, behind)}"
    return Span(start, end), newline(text.data).join(wrapped(row, leading_space(row)))


def calls_of(declared: HeaderCode, function: str) -> Iterator[tuple[Span, str]]:
    """Finds the calls of a function, as the scope and name of the variable with the result."""
    call = re.compile(rb"\bauto\s+(\w+)\s*=\s*(?:\w+::)*%b\s*\(" % function.encode())
    for caller in declared.deciding:
        for match in call.finditer(declared.code, caller.body.start, caller.body.end):
            yield _scope(declared.code, match.start()), match[1].decode()


def _scope(code: bytes, offset: int) -> Span:
    """Returns the rest of a variable's block, or of the `if` that declares it."""
    opening = opening_bracket(code, 0, offset)
    if opening is None:
        return Span(offset, offset)
    close = closing_bracket(code, opening) or offset
    if code.startswith(b"(", opening):
        close = closing_bracket(code, code.index(b"{", close)) or close
    return Span(offset, close)
