"""Writes an architecture's own returns: a block in front of an earlier one's, or a function.

    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})

The upper bound hides the block from later architectures; it is omitted if they may use it. A
function comes with the block that calls it, modeled on another's.

    auto sm90_tuning = get_sm90_tuning(accum_t, operation_t, offset_size, accum_size);
    if (cc >= ::cuda::compute_capability{9, 0} && sm90_tuning)
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from policygen.errors import InputError
from policygen.headers.selectors.additions import (
    above,
    below_line,
    condition_lines,
    guarded,
    insert,
    sizes_of,
    spaced,
    statement,
    wrapped,
)
from policygen.headers.selectors.arch_places import (
    ArchBlock,
    ArchFunction,
    ArchReturn,
    Step,
    besides_arch,
    number_of,
    since_of,
)
from policygen.headers.selectors.conditions import excluded, opposites, plain
from policygen.headers.selectors.functions import Function, HeaderCode, Struct, arguments
from policygen.headers.selectors.nearest import HeaderReturns
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

# "{480,16}": spacing in code that clang-format leaves alone
_SQUEEZED = re.compile(r",(?=\S)")


def add_in_front(text: Text, blocks: Sequence[tuple[ArchBlock, Content]]) -> Change:
    """Writes one block with all returns that go in front of the same block."""
    first = blocks[0][0]
    indent = indent_of(text.data, first.block.start)
    rows = block_rows([nested_return(text, *pair) for pair in blocks], indent + UNIT)
    arch_conditions = bounds(first.block, first.since, first.below)
    gap = [""] if spaced(text, first.block) else []
    lines = guarded(arch_conditions, rows, indent)
    if first.behind:
        return insert(text, below_line(text, first.block.end), [*gap, *lines])
    lines += gap
    return insert(text, above(text, first.block.start), lines)


@dataclass(frozen=True, slots=True)
class Nested:
    """A return with its conditions."""

    steps: tuple[Step, ...]
    more: tuple[str, ...]
    """Conditions that occur at no nesting level of the model."""
    rows: Callable[[str], list[str]]
    """Returns its lines at the given indentation."""

    @property
    def asks(self) -> tuple[str, ...]:
        """All conditions of the return."""
        return (*(fact for step in self.steps for fact in step.facts), *self.more)


def nested_return(text: Text, place: ArchReturn, content: Content) -> Nested:
    """Returns a return like its model, with its conditions."""

    def rows(indent: str) -> list[str]:
        lines = statement(text, place.beside.entry, content, indent, place.around)
        is_unformatted = place.beside.entry.format_off
        return [_SQUEEZED.sub(", ", row) for row in lines] if is_unformatted else lines

    return nested(place.steps, place.conditions, rows)


def bounds(block: Clause, since: str, below: str | None) -> list[str]:
    """Returns the conditions of an architecture block in the spelling of an existing block."""
    spelling = since_of(block)
    assert spelling is not None, "it is a block for an architecture"
    conditions = [f"cc >= {capability_of(spelling[1], since)}"]
    return [*conditions, f"cc < {capability_of(spelling[1], below)}"] if below else conditions


def capability_of(name: str, arch: str) -> str:
    """`::cuda::compute_capability{10, 0}`."""
    number = arch_number(arch)
    return f"{name}{{{number // 10}, {number % 10}}}"


# Nested returns
#
# Returns of a new function or block are nested like their models:
#
#     switch (key_size)
#     {
#       case 4:
#         switch (value_size)
#
# A return that shares no condition with another one gets a plain `if`.


def nested(steps: Sequence[Step], asks: Sequence[str], rows: Callable[[str], list[str]]) -> Nested:
    """Assigns each condition to the first level of the model that has it."""
    remaining = list(asks)
    steps_found: list[Step] = []
    for step in steps:
        matching = [fact for fact in dict.fromkeys(map(plain, step.facts)) if fact in remaining]
        remaining = [fact for fact in remaining if fact not in matching]
        if matching:
            steps_found.append(replace(step, facts=tuple(matching)))
    return Nested(tuple(steps_found), tuple(remaining), rows)


def leaving(returns: Sequence[Nested], indent: str) -> tuple[list[str], list[Nested]]:
    """Turns conditions that all returns share into an early `return {};`, as in their model."""
    shared = [fact for fact in _shared_conditions(returns) if len(opposites([fact])) == 1]
    if not shared:
        return [], list(returns)
    exit_condition = " || ".join(opposites([fact])[0] for fact in shared)
    rows = guarded((exit_condition,), [f"{indent}{UNIT}return {{}};"], indent)
    return [*rows, ""], _without_shared(returns, shared)


def _shared_conditions(returns: Sequence[Nested]) -> list[str]:
    """Returns the conditions that all returns share and that their models do not have."""
    candidates = returns[0].more if len(returns) > 1 else ()
    return [fact for fact in candidates if all(fact in own.more for own in returns)]


def _without_shared(returns: Sequence[Nested], shared: Sequence[str]) -> list[Nested]:
    return [replace(own, more=tuple(f for f in own.more if f not in shared)) for own in returns]


def block_rows(returns: Sequence[Nested], indent: str) -> list[str]:
    """Writes the returns of a block, within one `if` for the conditions they all share."""
    if shared := _shared_conditions(returns):
        shared_step = Step("if", tuple(shared))
        others = _without_shared(returns, shared)
        returns = [replace(own, steps=(shared_step, *own.steps)) for own in others]
    return nested_rows(returns, indent)


def nested_rows(
    returns: Sequence[Nested], indent: str, switched: Collection[str] = ()
) -> list[str]:
    """Writes the returns of one block; operands in `switched` get a `switch` even for one case."""
    rows: list[str] = []
    for subject, groups in _runs(_groups(returns), switched):
        if subject is None:
            for group in groups:
                rows += _if_rows(group, indent)
        else:
            rows += _switch_rows(subject, groups, indent)
    return rows


_Group = list[Nested]


def _groups(returns: Sequence[Nested]) -> list[_Group]:
    """Groups returns by their first step where reordering does not change which one is taken."""
    groups: list[_Group] = []
    for nested_return in returns:
        for index in range(len(groups) - 1, -1, -1):
            if nested_return.steps and groups[index][0].steps[:1] == nested_return.steps[:1]:
                groups[index].append(nested_return)
                break
            if not all(
                any(excluded(fact, other.asks) for fact in nested_return.asks)
                for other in groups[index]
            ):
                groups.append([nested_return])
                break
        else:
            groups.append([nested_return])
    return groups


def _runs(
    groups: Sequence[_Group], switched: Collection[str] = ()
) -> Iterator[tuple[str | None, list[_Group]]]:
    """Splits groups into runs that are cases of one `switch` and runs that are not."""
    by_subject = groupby(groups, lambda each: each[0].steps[0].subject if each[0].steps else None)
    for subject, grouped in by_subject:
        run = list(grouped)
        yield (subject if len(run) > 1 or subject in switched else None), run


def _if_rows(group: _Group, indent: str) -> list[str]:
    """Writes one `if` for the conditions that a group shares, or none if there are none."""
    if len(group) == 1:
        (only,) = group
        inner = only.rows(indent + UNIT if only.asks else indent)
        return guarded(only.asks, inner, indent) if only.asks else inner
    facts: list[str] = []
    while (step := group[0].steps[:1]) and all(own.steps[:1] == step for own in group):
        facts += step[0].facts
        group = [_inside_first_step(nested_return) for nested_return in group]
    return guarded(facts, nested_rows(group, indent + UNIT), indent)


def _switch_rows(subject: str, groups: Sequence[_Group], indent: str) -> list[str]:
    """Writes a `switch`; workloads that match no case, or no return in it, continue behind it."""
    label_indent, body_indent = indent + UNIT, indent + UNIT * 2
    rows = [f"{indent}switch ({subject})", f"{indent}{{"]
    cases = [[_inside_first_step(nested_return) for nested_return in group] for group in groups]
    switched = {inner for case in cases for inner, _ in _runs(_groups(case)) if inner}
    pairs = zip(groups, cases, strict=True)
    for group, returns in sorted(pairs, key=lambda pair: sizes_of(pair[0][0].steps[0].facts)):
        rows.append(f"{label_indent}case {group[0].steps[0].facts[0].partition(' == ')[2]}:")
        rows += nested_rows(returns, body_indent, switched)
        rows += [f"{body_indent}break;"] if returns[-1].asks else []
    return [*rows, f"{label_indent}default:", f"{body_indent}break;", f"{indent}}}"]


def _inside_first_step(nested_return: Nested) -> Nested:
    """Returns a return as seen from inside the block of its first step."""
    return replace(nested_return, steps=nested_return.steps[1:])


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
