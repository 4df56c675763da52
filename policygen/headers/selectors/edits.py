"""Guarded returns as edits of a header; new ones of one block come together, as whole lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policygen.bindings.variants import selected_path
from policygen.bindings.words import words
from policygen.errors import InputError
from policygen.headers.protocol import EntryWrite, HeaderEdits, Insertion, with_insertions
from policygen.headers.provenance import Provenance
from policygen.headers.selectors.additions import (
    COLUMNS,
    UNIT,
    Addition,
    Returned,
    above,
    add_beside,
    add_inside,
    condition_lines,
    delay_fields,
    guarded,
    insert,
    labelled_lines,
    sizes_of,
    statement,
    take_over,
    updated,
)
from policygen.headers.selectors.arch_blocks import ArchBlock, add_in_front, capability_of
from policygen.headers.selectors.arch_functions import (
    AddedFields,
    AddedParameters,
    ArchFunction,
    add_function,
    calls_of,
    helper_of,
    qualified,
    returned_struct,
    rewrapped,
)
from policygen.headers.selectors.branches import EQUAL
from policygen.headers.selectors.functions import Field, Function, Struct, find_structs, leaves
from policygen.headers.selectors.guarded_returns import FirstReturn, GuardedReturn
from policygen.headers.selectors.nearest import BeforeReturn, BesideReturn, EmptyCase, read_bodies
from policygen.headers.selectors.statements import Clause
from policygen.headers.spelling import edit_at, indent_of, line_end, line_start, newline
from policygen.headers.text import Text
from policygen.model.arch import arch_number
from policygen.model.edits import AddedMember, Content, Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, TuningHeader, spell


def write_returns(header: TuningHeader, data: bytes, writes: Sequence[EntryWrite]) -> HeaderEdits:
    """The edits of all returns of a header; those for one place are one edit."""
    text = Text(header.name, data)
    provenance = Provenance(text)
    edits: list[Edit] = []
    inserted: list[Insertion] = []
    added: list[EntryWrite] = []
    firsts: dict[str, list[tuple[FirstReturn, EntryWrite]]] = {}
    for write in writes:
        if isinstance(spot := write.spots[0], FirstReturn):
            firsts.setdefault(spot.name, []).append((spot, write))
    writes = [write for write in writes if not isinstance(write.spots[0], FirstReturn)]
    fields = field_edits(text, writes)
    for write in writes:
        if (entry := return_of(write).entry) is None:
            added.append(write)
        else:
            content = replace(write.content, values=fields.values(write))
            edits += update_return(text, provenance, entry, content, write.reason)
    edits += fields.edits(writes)
    for addition, reason in [*_added(text, added, fields), *_first(text, firsts.values())]:
        if addition.span.start == addition.span.end:
            inserted.append((addition.span.start, addition.text, reason))
        else:
            edits.append(edit_at(data, addition.span, addition.text, reason))
    return HeaderEdits(with_insertions(edits, inserted))


def update_return(
    text: Text, provenance: Provenance, entry: Entry, content: Content, reason: str
) -> list[Edit]:
    """Other values for a return, by its own names; nothing where it has them."""
    edits = updated(text, entry, content.values, reason)
    return edits + provenance.noted(entry, content, reason) if edits else []


@dataclass(frozen=True, slots=True)
class FieldEdits:
    """The structs of a header whose values are returned, and what some of them have to have."""

    text: Text
    structs: Mapping[str, Struct]
    by_struct: Mapping[str, AddedFields]
    helpers: Mapping[str, AddedParameters]
    """Functions that make policies, and have to be told more."""

    def edits(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        """The fields, and where the functions are called whose returns tell more."""
        for name, fields in self.by_struct.items():
            for at, row in fields.declared(self.text, self.structs):
                yield edit_at(self.text.data, Span(at, at), row, f"{name} tells more")
        for name, helper in self.helpers.items():
            for span, new in helper.edits(self.text):
                yield edit_at(self.text.data, span, new, f"{name} takes more")
        if self.by_struct:
            yield from self._read(writes)

    def of(self, write: EntryWrite) -> AddedFields | None:
        """What the struct of a return has to have; none where a function makes it."""
        if not write.content.added or _like(write).inherits in self.helpers:
            return None
        return self.by_struct[_struct(self.text, self.structs, write).name]

    def values(self, write: EntryWrite) -> dict[str, str]:
        """The values by what the return calls them; those that it has not, as the header does."""
        names = return_of(write).fields
        found = {names[name]: value for name, value in write.content.values.items()}
        for name in write.content.added:
            found[name] = qualified(self.text, self.structs, name, found[name])
        return found

    def _read(self, writes: Sequence[EntryWrite]) -> Iterator[Edit]:
        text, bodies = self.text, read_bodies(self.text)
        changes: dict[Span, str] = {}
        for write in writes:
            spot, fields = return_of(write), self.of(write)
            if fields and not (spot.new and isinstance(spot.new.at, ArchFunction)):
                for scope, variable in calls_of(text, spot.family.name, bodies):
                    changes |= dict(fields.read(text, scope, variable))
        for at, new in changes.items():
            span, lines = rewrapped(text, at, new)
            yield edit_at(text.data, span, lines, "what is returned tells it")


def _added(
    text: Text, writes: Sequence[EntryWrite], fields: FieldEdits
) -> Iterator[tuple[Addition, str]]:
    """What is added, and for which variants; at one place what asks for more comes first."""
    blocks: dict[tuple[int, str | None], list[tuple[ArchBlock, EntryWrite]]] = {}
    nested: dict[NestedCase, list[tuple[BesideReturn, EntryWrite]]] = {}
    functions: dict[tuple[str, str | None], list[tuple[ArchFunction, EntryWrite]]] = {}
    for write in sorted(writes, key=_order):
        new = return_of(write).new
        assert new is not None, "it is a return that is not there yet"
        at = new.at
        if isinstance(at, ArchFunction):
            functions.setdefault((at.function.name, at.below), []).append((at, write))
        elif isinstance(at, ArchBlock):
            blocks.setdefault((at.block.start, at.below), []).append((at, write))
        elif isinstance(at, BeforeReturn):
            yield add_inside(text, at, _returned(fields, write)), write.reason
        elif isinstance(at, EmptyCase):
            yield take_over(text, at, _returned(fields, write)), write.reason
        elif case := nested_case(text, at):
            nested.setdefault(case, []).append((at, write))
        else:
            yield add_beside(text, at, _returned(fields, write)), write.reason
    for beside in nested.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in beside))
        yield add_nested(text, [(at, _returned(fields, write)) for at, write in beside]), reasons
    for pairs in functions.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        made = [(at, _returned(fields, write)) for at, write in pairs]
        more = [write for _, write in pairs if write.content.added]
        told = fields.of(more[0]) if more else None
        for addition in add_function(text, made, told):
            yield addition, reasons
    for group in blocks.values():
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in group))
        yield add_in_front(text, [(at, _returned(fields, write)) for at, write in group]), reasons


def _first(
    text: Text, firsts: Iterable[Sequence[tuple[FirstReturn, EntryWrite]]]
) -> Iterator[tuple[Addition, str]]:
    for group in firsts:
        pairs = sorted(group, key=lambda pair: (sizes_of(pair[0].conditions), pair[0].conditions))
        reasons = "; ".join(dict.fromkeys(write.reason for _, write in pairs))
        for addition in add_first(text, [(spot, write.content) for spot, write in pairs]):
            yield addition, reasons


def _order(write: EntryWrite) -> tuple[object, ...]:
    """By sizes; of what asks for the same sizes, the one that asks for more comes first.

    What is like a return of a later architecture comes before what is like one of an earlier.
    """
    spot = return_of(write)
    facts = tuple(fact for fact in spot.slots if fact)
    newest = -arch_number(spot.family.arch)
    return newest, sizes_of(facts), -len(facts), facts


def _returned(fields: FieldEdits, write: EntryWrite) -> Returned:
    return Returned(fields.values(write), write.content.label)


_CAPABILITY = "::cuda::compute_capability"
_TYPE = "compute_capability"
_ENUMERATOR = re.compile(r"[A-Za-z_]\w*")


# Returns that come first in a function, as lines of C++ in a block for their architecture.
#
# if (cc >= ::cuda::compute_capability{10, 0} && cc < ::cuda::compute_capability{10, 3})
# {
#   if (key_size == 4)
#   {
#     return MergeSortPolicy{512, 14, BLOCK_LOAD_DIRECT, LOAD_DEFAULT, BLOCK_STORE_DIRECT, 1};


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
        made = _add_first_returned(
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


def _add_first_returned(
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
        return _add_first_returned(f"{lead}{made.type}{{", inner, values, path, indent, f"}}{end}")
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
        found += (
            _add_first_returned("", field, values, path, below, behind)
            if nested
            else [f"{below}{row}"]
        )
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


# What a workload meets that no case is for: nothing, which leaves the switch.
_LEFT = re.compile(rb"\s*default\s*:\s*break\s*;\s*")
# Behind an inner switch: "} break;"
_BEHIND = re.compile(rb"\}\s*break\s*;\s*")


@dataclass(frozen=True, slots=True)
class NestedCase:
    """Where a `case` would stand, and which one it is."""

    scope: int
    """Where the outer `switch` begins."""
    condition: str


# A `case` that is new, with a `switch` of its own, where those beside it have one.


def nested_case(text: Text, near: BesideReturn) -> NestedCase | None:
    """The `case` that a return needs; none where its neighbours are not two switches.

    Both leave what they have no case for to what stands below them.
    """
    inner, outer = near.beside.clauses[-1], near.clause
    names = [match[1] for one in near.conditions if (match := EQUAL.fullmatch(one))]
    two = near.beside.clauses[-2:] == (outer, inner) and outer.kind == inner.kind == "case"
    if not two or len(names) != 2 or names != [_subject(outer), _subject(inner)]:
        return None
    others = _cases(near, outer)
    behind = _BEHIND.fullmatch(text.code, inner.scope.end, outer.end)
    if any(near.conditions[0] in one.text.split(" || ") for one in others) or not behind:
        return None
    if not all(_left(text, one) for clause in (outer, inner) for one in _cases(near, clause)):
        return None
    return NestedCase(outer.scope.start, near.conditions[0])


def add_nested(text: Text, group: Sequence[tuple[BesideReturn, Returned]]) -> Addition:
    """The `case` with all returns that are new in it, among the others by size."""
    near, data = group[0][0], text.data
    outer, inner = near.clause, near.beside.clauses[-1]
    entry = near.beside.entry
    assert entry.span is not None, "it is in a header"
    case, label = indent_of(data, outer.start), indent_of(data, inner.start)
    switch = indent_of(data, inner.scope.end)
    inside = indent_of(data, entry.span.start)
    rows = [f"{case}case {_value(near.conditions[0])}:"]
    rows += [f"{switch}switch ({_subject(inner)})", f"{switch}{{"]
    for one, new in group:
        rows += [f"{label}case {_value(one.conditions[1])}:"]
        rows += statement(text, one.beside.entry, new, inside)
    if any(_is_default(clause) for clause in _cases(near, inner)):
        rows += [f"{label}default:", f"{inside}break;"]
    rows += [f"{switch}}}", f"{switch}break;"]
    later = [
        clause
        for clause in _cases(near, outer)
        if _is_default(clause) or sizes_of([clause.text]) > sizes_of([near.conditions[0]])
    ]
    at = above(text, later[0].start) if later else line_start(data, outer.scope.end)
    return insert(text, at, rows)


def _cases(near: BesideReturn, clause: Clause) -> list[Clause]:
    """The cases of a switch."""
    found = near.beside.body.clauses
    return [one for one in found if one.scope == clause.scope and one.kind == "case"]


def _is_default(clause: Clause) -> bool:
    return clause.text.endswith(": default")


def _left(text: Text, clause: Clause) -> bool:
    """Whether a default, if that is what it is, does nothing."""
    if not clause.text.endswith("default"):
        return "default" not in clause.text
    return bool(_LEFT.fullmatch(text.code, clause.start, clause.end))


def _subject(clause: Clause) -> str | None:
    """Of which value a case is one."""
    match = EQUAL.fullmatch(clause.text)
    return match[1] if match else None


def _value(condition: str) -> str:
    return condition.partition(" == ")[2]


# What a header has to tell besides, so that returns can give what its policies had for all.


def field_edits(text: Text, writes: Sequence[EntryWrite]) -> FieldEdits:
    """Finds what structs have to tell besides."""
    structs = find_structs(text.code)
    found: dict[str, dict[str, AddedMember]] = {}
    helpers: dict[str, AddedParameters] = {}
    for write in writes:
        added = write.content.added
        if added and (helper := helper_of(text, structs, _like(write), added)):
            known = helpers.get(helper.function.name, helper)
            members = {**known.members, **added}
            helpers[helper.function.name] = replace(known, members=members)
        elif added:
            found.setdefault(_struct(text, structs, write).name, {}).update(added)
    fields = {name: AddedFields(structs[name], members) for name, members in found.items()}
    return FieldEdits(text, structs, fields, helpers)


def return_of(write: EntryWrite) -> GuardedReturn:
    """Where a write goes, which is a return."""
    spot = write.spots[0]
    assert isinstance(spot, GuardedReturn), "it is a return"
    return spot


def _struct(text: Text, structs: Mapping[str, Struct], write: EntryWrite) -> Struct:
    """What is made by the return that changes, or by the one that a new one is like."""
    return returned_struct(text, structs, _like(write), write.content.added)


def _like(write: EntryWrite) -> Entry:
    """The return that changes, or the one that a new one is like."""
    spot = return_of(write)
    entry = spot.new.at.beside.entry if spot.new else spot.entry
    assert entry is not None, "it changes, or is like another"
    return entry
