"""Configs as functions: `reduce_config_picker<Target, key_type>()`, one for each target."""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policygen.bindings.words import generation
from policygen.errors import InputError
from policygen.headers.comments import SourceFile
from policygen.headers.selectors.functions import find_structs
from policygen.headers.specializations.families import template_parameters
from policygen.headers.specializations.siblings import member_edits
from policygen.headers.spelling import edit_at, line_start, replaced, same
from policygen.headers.syntax import closing_angle, closing_brace, closing_bracket, split_list, trim
from policygen.headers.text import Text, squeeze
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.edits import Edit
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member
from policygen.rocprim.entries import (
    FoundConfig,
    applied,
    arch_of,
    config_entry,
    enabling,
    facts,
    known_arch,
    namespace_at,
    value_member,
)
from policygen.rocprim.placement import PickerSpot

# "template<class Target, class key_type> constexpr auto reduce_config_picker() -> …{"
_PICKER = re.compile(rb"\btemplate\s*<")
_HEAD = re.compile(
    rb"\s*(?:(?:inline|constexpr|static)\s+)*auto\s+(\w+_config_picker)\s*\(\s*\)\s*->\s*"
)
_TARGET = re.compile(rb"\bcomp_target\s*<")
_CASE = re.compile(rb"\bif\s+constexpr\s*\(|\breturn\b")
# "{ return", behind a condition
_OWN = re.compile(rb"\s*(\{)?\s*return\b")
_CLOSED = re.compile(rb"\s*\}")
_NAMED = re.compile(rb"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*\{")
# "reduce_config_picker<comp_target<…>, key_type>()"
_OTHER = re.compile(rb"(?:::)?(?:\w+\s*::\s*)*\w+_config_picker\s*<")
# "enum class target_arch : unsigned int { invalid = 0, gfx803 = 803, …"
_ARCHS = re.compile(rb"\benum\s+class\s+target_arch\b[^{};]*\{([^{}]*)\}")
_ARCH = re.compile(rb"\b(gfx[0-9a-f]+)\s*=")
ARCHS = "target_arch"
"""The enumeration of the architectures that devices have."""
PICKER = "_config_picker"
GENERIC = "generic"
Fields = MutableMapping[str, tuple[tuple[str, str], ...]]
"""The fields of structs, with their types."""


@dataclass(frozen=True, slots=True)
class Picker:
    """One picker: for which target, with which parameters, and its body."""

    name: str
    span: Span
    name_span: Span
    parameters: Span
    target: Span
    """The arguments of its `comp_target`."""
    arch: str
    """The target's; with its GPU, where it is for one."""
    returned: Span | None
    """The type that it returns, where it is told beside its target."""
    body: Span


@dataclass(frozen=True, slots=True)
class PickerReturn:
    """One return of a picker: what it asks for, and what it gives."""

    facts: tuple[str, ...]
    span: Span
    """With its condition."""
    value: Span
    floor: int
    """Where the one before it ends."""


def read_pickers(source: SourceFile, header: str, fields: Fields) -> tuple[Family, ...]:
    """The pickers of a header, a family for each target; `fields` are those of what they return."""
    text = source.text
    groups: dict[tuple[str, str], list[Picker]] = {}
    for picker in find_pickers(text):
        groups.setdefault((picker.name, picker.arch), []).append(picker)
    return tuple(
        Family(
            name=name,
            arch=arch,
            header=header,
            namespace=namespace_at(text.code, lot[0].span.start),
            parameters=template_parameters(text.data, text.code, lot[0].parameters)[1:],
            entries=tuple(
                config_entry(source, _found(one, each), tuple(_values(text, each.value, fields)))
                for one in lot
                for each in returns(text, one)
            ),
        )
        for (name, arch), lot in groups.items()
    )


def struct_fields(headers: Sequence[bytes]) -> Fields:
    """The fields of all structs that some headers declare."""
    return ChainMap(*map(_fields, headers))


@lru_cache(maxsize=128)  # all headers of a tree have the same ones beside them
def _fields(data: bytes) -> Fields:
    code = Text("", data).code
    found = {
        name: tuple(zip(struct.fields, struct.types, strict=True))
        for name, struct in find_structs(code).items()
    }
    if listed := _ARCHS.search(code):
        found[ARCHS] = tuple((name.decode(), "") for name in _ARCH.findall(listed[1]))
    return found


def find_pickers(text: Text) -> Iterator[Picker]:
    """All pickers of a file, in order."""
    code = text.code
    for match in _PICKER.finditer(code):
        close = closing_angle(code, match.end() - 1)
        head = None if close is None else _HEAD.match(code, close + 1)
        if close is None or head is None:
            continue
        opened = code.find(b"{", head.end())
        if b";" in code[head.end() : opened if opened >= 0 else len(code)]:
            continue  # declared, and defined elsewhere
        closed = closing_brace(code, opened) if opened >= 0 else None
        found = _TARGET.search(code, head.end(), opened) if closed is not None else None
        end = None if found is None else closing_angle(code, found.end() - 1)
        if closed is None or found is None or end is None:
            raise text.error(
                head.start(1),
                f"{head[1].decode()}: cannot tell for which target this is",
                width=len(head[1]),
                remedy="Expected: std::is_same_v<Target, comp_target<GEN, ARCH, GPU, REP>>",
            )
        target = Span(found.end(), end)
        arch = target_arch(code, target)
        if arch is None:
            raise text.error(found.start(), "cannot tell which architecture this target is")
        yield Picker(
            name=head[1].decode(),
            span=Span(match.start(), closed + 1),
            name_span=Span(*head.span(1)),
            parameters=Span(match.end(), close),
            target=target,
            arch=arch,
            returned=_returned(code, trim(code, head.end(), opened)),
            body=Span(opened + 1, closed),
        )


def target_arch(code: bytes, target: Span) -> str | None:
    """What the arguments of a `comp_target` name: `gfx942:mi300x`, of any GPU `gfx942`."""
    args = [squeeze(code[s.start : s.end]) for s in split_list(code, *target)]
    arch = arch_of(args[1]) if len(args) > 1 else None
    gpu = args[2].rpartition("::")[2] if len(args) > 2 else GENERIC
    return arch if arch in {None, UNKNOWN} or gpu == GENERIC else known_arch(f"{arch}:{gpu}")


def _returned(code: bytes, span: Span) -> Span | None:
    """The second argument of `std::enable_if_t<…>`."""
    condition = enabling(code, span)
    if condition is None:
        return None
    args = split_list(code, condition.start, condition.end)
    return args[1] if len(args) == 2 else None


def returns(text: Text, one: Picker) -> Iterator[PickerReturn]:
    """Each return of a picker, with what it asks for."""
    code, at, floor = text.code, one.body.start, one.body.start
    while match := _CASE.search(code, at, one.body.end):
        asked: tuple[str, ...] = ()
        begin = match.start()
        opened = None
        returned = match
        if match[0] != b"return":
            close = closing_bracket(code, match.end() - 1)
            inner = None if close is None else _OWN.match(code, close + 1, one.body.end)
            if close is None or inner is None:
                raise text.error(begin, "a condition without a return of its own")
            asked, opened, returned = facts(code, Span(match.end(), close)), inner[1], inner
        end = code.find(b";", returned.end(), one.body.end)
        stop = one.body.end if end < 0 else end
        value = trim(code, returned.end(), stop)
        at = stop + 1
        if opened:
            brace = _CLOSED.match(code, at, one.body.end)
            if brace is None:
                raise text.error(begin, "a condition without a return of its own")
            at = brace.end()
        yield PickerReturn(asked, Span(begin, at), value, floor)
        floor = at


def gives_another(code: bytes, value: Span) -> bool:
    """Whether what is returned is what the picker of another target has."""
    return _OTHER.match(code, *value) is not None


def _found(one: Picker, each: PickerReturn) -> FoundConfig:
    start = each.span.start
    return FoundConfig(each.facts, each.span, each.value, one.parameters, start, start, each.floor)


def _values(text: Text, span: Span, fields: Fields) -> Iterator[Member]:
    """`reduce_config_params{{256, 8}, using_warp_reduce}`; none of what calls another one."""
    named = _NAMED.match(text.code, *span)
    if named is None or applied(text.code, span) is not None:
        return
    yield from _braced(text, Span(named.end() - 1, span.end), named[1].decode(), fields, "")


def _braced(text: Text, span: Span, of: str, fields: Fields, prefix: str) -> Iterator[Member]:
    close = closing_brace(text.code, span.start)
    if close is None:
        return
    known = fields.get(of, ())
    for position, part in enumerate(split_list(text.code, span.start + 1, close)):
        name, kind = known[position] if position < len(known) else (str(position), "auto")
        inner = _NAMED.match(text.code, *part)
        if text.code[part.start : part.start + 1] == b"{":
            yield from _braced(text, part, last_name(kind), fields, f"{prefix}{name}.")
        elif inner:
            at = Span(inner.end() - 1, part.end)
            yield from _braced(text, at, inner[1].decode(), fields, f"{prefix}{name}.")
        else:
            yield value_member(text, part, f"{prefix}{name}", kind)


def last_name(kind: str) -> str:
    """A type without what qualifies it."""
    return kind.rpartition("::")[2]


WIDTH = 100
"""Columns that rocPRIM's clang-format allows."""
# "std::is_same_v<Target, comp_target<…>>,", "std::is_same<Target, comp_target<…>>::value,"
_SAME = re.compile(
    r"( *)(std::is_same(?:_v)?<)\s*(Target),\s*(comp_target<[^<>]*>)(>(?:::value)?,)"
)
_LIST = r"\busing\s+{}\s*=\s*comp_targets\s*<"
_LAST = re.compile(rb"\w+\s*\Z")


@dataclass(frozen=True, slots=True)
class TargetWords:
    """What a target is called."""

    gen: str
    arch: str
    gpu: str


# Targets of pickers as headers spell them, and the list of those that there are.


def words_of(arch: str) -> TargetWords:
    """`gfx942:mi300x` in rocPRIM's words."""
    plain, gpu = arch_and_gpu(arch)
    gen = generation(plain)
    if gen is None:
        raise InputError(f"policygen does not know of which generation {plain} is")
    return TargetWords(gen, plain, gpu or GENERIC)


def target_changes(code: bytes, target: Span, words: TargetWords) -> list[tuple[Span, str]]:
    """What changes in the arguments of a `comp_target`."""
    changes = []
    new = (words.gen, words.arch, words.gpu)
    for arg, word in zip(split_list(code, *target), new, strict=False):
        last = _LAST.search(code, *arg)
        assert last is not None, "it is a name"
        changes.append((Span(*last.span()), word))
    return changes


def spelled_like(text: Text, target: Span, words: TargetWords) -> str:
    """`comp_target<…>` of other words, spelled as one that is there."""
    changes = [
        (Span(span.start - target.start, span.end - target.start), word)
        for span, word in target_changes(text.code, target, words)
    ]
    inner = replaced(text.code[target.start : target.end], changes)
    return f"comp_target<{squeeze(inner)}>"


def commented(comment: str, words: TargetWords) -> str:
    """A comment that names a target, `TARGET: {'gen': 'cdna3', …}`, with other words."""
    for key, word in (("gen", words.gen), ("arch", words.arch), ("gpu", words.gpu)):
        comment = re.sub(rf"""(['"]{key}['"]\s*:\s*['"])\w+""", rf"\g<1>{word}", comment)
    return comment


def laid_out(head: str) -> str:
    """The head of a picker with its condition broken as clang-format breaks it."""
    found = _SAME.search(head)
    if found is None:
        return head
    lead, same, name, target, end = found.groups()
    column = " " * (len(lead) + len(same))
    forms = (
        f"{lead}{same}{name}, {target}{end}",
        f"{lead}{same}{name},\n{column}{target}{end}",
        f"{lead}{same}\n{lead}    {name},\n{lead}    {target}{end}",
    )
    fits = (form for form in forms if max(map(len, form.split("\n"))) <= WIDTH)
    return head[: found.start()] + next(fits, forms[-1]) + head[found.end() :]


def listed(text: Text, name: str, target: str, arch: str) -> tuple[int, str]:
    """Where a target goes in a list, and what is written there.

    Of those that are alike the last one wins: it stands before all of its generation, and one of
    any GPU, which is taken by whoever has none of its own, before all others.
    """
    code = text.code
    opened = re.search(_LIST.format(name).encode(), code)
    close = None if opened is None else closing_angle(code, opened.end() - 1)
    items = [] if opened is None or close is None else split_list(code, opened.end(), close)
    if not items:
        raise InputError(f"{text.path}: there is no list {name}", "Write it by hand.")
    at = items[_place(code, items, arch)].start
    column = at - line_start(text.data, at)
    return at, f"{target},\n{' ' * column}"


def _place(code: bytes, items: Sequence[Span], arch: str) -> int:
    words = words_of(arch)
    if words.gpu == GENERIC:
        return 0
    for number, item in enumerate(items):
        first = squeeze(code[item.start : item.end]).partition(",")[0]
        if first.rpartition("::")[2] == words.gen:
            return number
    return len(items) - 1


# "'block_size_x': 256" of "// CONFIG: {'key_type': 'int', 'block_size_x': 256, 'ipt': 8}"
_TOLD = re.compile(rb"""['"](\w+)['"]\s*:\s*(-?\d+)\b""")


# Other values for a return of a picker, and for the comment above it that repeats them.


def with_values(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> list[Edit]:
    """The edits of a return: of its values, of those that it leaves out, and of its comment."""
    edits = member_edits(text, entry, values, reason)
    if unsaid := spot.left_out(entry, values):
        edits += _said(text, entry, unsaid, spot, reason)
    return [*edits, *_commented(text, entry, values, spot, reason)]


def _said(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> Iterator[Edit]:
    """Values behind the last one of their struct, up to those that have to be said."""
    assert entry.inherits_span is not None, "it returns something"
    opened = text.code.find(b"{", entry.inherits_span.start, entry.inherits_span.end)
    left = dict(values)
    structs = _structs(text, opened, spot.site.configs[0], "", spot) if opened >= 0 else ()
    for prefix, of, at in structs:
        given = len(split_list(text.code, at.start, at.end))
        fields = spot.parameters.get(of, ())[given:]
        wanted = [n for n, (name, _) in enumerate(fields) if prefix + name in left]
        if not wanted:
            continue
        parts = []
        for name, kind in fields[: wanted[-1] + 1]:
            parts.append(spot.argument(kind, left.pop(prefix + name, None), prefix + name))
        last = split_list(text.code, at.start, at.end)[-1].end
        new = "".join(f", {part}" for part in parts)
        yield edit_at(text.data, Span(last, last), new, reason)
    if left:
        raise InputError(f"{spot.header}:{entry.line} has no place for {', '.join(left)}")


def _structs(
    text: Text, opened: int, of: str, prefix: str, spot: PickerSpot
) -> Iterator[tuple[str, str, Span]]:
    """The braces of a return: the path of each, the struct that it is, and what is in it."""
    close = closing_brace(text.code, opened)
    assert close is not None, "the header was read"
    inside = Span(opened + 1, close)
    yield prefix, of, inside
    for (name, kind), part in zip(
        spot.parameters.get(of, ()), split_list(text.code, *inside), strict=False
    ):
        brace = text.code.find(b"{", part.start, part.end)
        if brace >= 0:
            yield from _structs(text, brace, last_name(kind), f"{prefix}{name}.", spot)


def _commented(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot, reason: str
) -> Iterator[Edit]:
    """The numbers of a comment that are those of the values: by their names, else the only ones."""
    if entry.comment_span is None:
        return
    told = {
        match[1].decode(): Span(*match.span(2))
        for match in _TOLD.finditer(text.data, *entry.comment_span)
    }
    for member in entry.members:
        new = values.get(member.name)
        if new is None or same(member, new) or not new.lstrip("-").isdigit():
            continue
        old = {n: s for n, s in told.items() if text.data[slice(*s)].decode() == member.spelling}
        named = next((name for name in spot.called.get(member.name, ()) if name in old), None)
        if named is None and len(old) == 1:
            (named,) = old
        if named is not None:
            yield edit_at(text.data, told.pop(named), new, reason)
