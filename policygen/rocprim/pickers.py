"""Reads configs as functions: `reduce_config_picker<Target, key_type>()`, one for each target."""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policygen.bindings.words import generation
from policygen.errors import InputError
from policygen.headers.comments import SourceFile
from policygen.headers.selectors.functions import HeaderCode
from policygen.headers.specializations.families import template_parameters
from policygen.headers.specializations.siblings import member_changes
from policygen.headers.spelling import Change, line_start, rewritten, same
from policygen.headers.syntax import closing_angle, closing_bracket, split_list, trim
from policygen.headers.text import Text, squeeze
from policygen.model.arch import UNKNOWN, arch_and_gpu
from policygen.model.records import Span, grouped
from policygen.model.tuning import Entry, Family, Member
from policygen.rocprim.entries import (
    applied,
    arch_of,
    config_entry,
    enabling,
    facts,
    known_arch,
    namespace_at,
    value_member,
)
from policygen.rocprim.placement import ConfigSpot, PickerSpot, unqualified

# "template<class Target, class key_type> constexpr auto reduce_config_picker() -> …{"
_PICKER = re.compile(rb"\btemplate\s*<")
_HEAD = re.compile(
    rb"\s*(?:(?:inline|constexpr|static)\s+)*auto\s+(\w+_config_picker)\s*\(\s*\)\s*->\s*"
)
_TARGET = re.compile(rb"\bcomp_target\s*<")
_CASE = re.compile(rb"\bif\s+constexpr\s*\(|\breturn\b")
# "{ return", after a condition
_NESTED_RETURN = re.compile(rb"\s*(\{)?\s*return\b")
_CLOSING_BRACE = re.compile(rb"\s*\}")
_STRUCT_VALUE = re.compile(rb"(?:::)?(?:\w+\s*::\s*)*(\w+)\s*\{")
# "reduce_config_picker<comp_target<…>, key_type>()", which calls the picker of another target
PICKER_CALL = re.compile(rb"(?:::)?(?:\w+\s*::\s*)*\w+_config_picker\s*<")
# "enum class target_arch : unsigned int { invalid = 0, gfx803 = 803, …"
_ARCHS = re.compile(rb"\benum\s+class\s+target_arch\b[^{};]*\{([^{}]*)\}")
_ARCH = re.compile(rb"\b(gfx[0-9a-f]+)\s*=")
# "enum class gpu { generic, mi50, mi300x"
_GPUS = re.compile(rb"\benum\s+class\s+gpu\b[^{};]*\{([^{}]*)\}")
_ENUMERATOR = re.compile(rb"(?:^|,)\s*(\w+)")
ARCHS = "target_arch"
"""The enumeration of device architectures."""
GPUS = "gpu"
"""The enumeration of GPUs."""
PICKER = "_config_picker"
GENERIC = "generic"
Fields = MutableMapping[str, tuple[tuple[str, str], ...]]
"""The fields of structs, with their types."""


@dataclass(frozen=True, slots=True)
class Picker:
    """A picker: its target, its parameters, and its body."""

    name: str
    span: Span
    name_span: Span
    parameters: Span
    target: Span
    """The arguments of its `comp_target`."""
    arch: str
    """The target's architecture, with its GPU if it is for one."""
    returned: Span | None
    """The return type, if it is stated next to the target."""
    body: Span


@dataclass(frozen=True, slots=True)
class PickerReturn:
    """A return of a picker: its conditions and its value."""

    facts: tuple[str, ...]
    span: Span
    """Including its condition."""
    value: Span
    floor: int
    """The end of the previous return."""


def read_pickers(source: SourceFile, header: str, fields: Fields) -> tuple[Family, ...]:
    """Reads the pickers of a header, one family per target; `fields` are of returned structs."""
    text = source.text
    groups = grouped(find_pickers(text), lambda picker: (picker.name, picker.arch))
    return tuple(
        Family(
            name=name,
            arch=arch,
            header=header,
            namespace=namespace_at(text.code, first.span.start),
            parameters=template_parameters(text, first.parameters)[1:],
            entries=tuple(
                config_entry(
                    source,
                    tuple(_values(text, picker_return.value, fields)),
                    facts=picker_return.facts,
                    span=picker_return.span,
                    value=picker_return.value,
                    parameters=picker.parameters,
                    top=picker_return.span.start,
                    named=picker_return.span.start,
                    floor=picker_return.floor,
                )
                for picker in (first, *rest)
                for picker_return in returns(text, picker)
            ),
        )
        for (name, arch), (first, *rest) in groups.items()
    )


def struct_fields(headers: Sequence[bytes]) -> Fields:
    """Returns the fields of all structs that the headers declare."""
    return ChainMap(*map(_fields, headers))


@lru_cache(maxsize=128)  # all headers of a tree share the same companions
def _fields(data: bytes) -> Fields:
    code = Text("", data).code
    fields = {name: struct.typed_fields for name, struct in HeaderCode(code).structs.items()}
    if arch_list := _ARCHS.search(code):
        fields[ARCHS] = tuple((name.decode(), "") for name in _ARCH.findall(arch_list[1]))
    if gpu_list := _GPUS.search(code):
        fields[GPUS] = tuple((name.decode(), "") for name in _ENUMERATOR.findall(gpu_list[1]))
    return fields


def find_pickers(text: Text) -> Iterator[Picker]:
    """Yields all pickers of a file, in order."""
    code = text.code
    for match in _PICKER.finditer(code):
        close = closing_angle(code, match.end() - 1)
        signature = None if close is None else _HEAD.match(code, close + 1)
        if close is None or signature is None:
            continue
        open_brace = code.find(b"{", signature.end())
        if b";" in code[signature.end() : open_brace if open_brace >= 0 else len(code)]:
            continue  # declared here, defined elsewhere
        close_brace = closing_bracket(code, open_brace) if open_brace >= 0 else None
        target_match = (
            _TARGET.search(code, signature.end(), open_brace) if close_brace is not None else None
        )
        end = None if target_match is None else closing_angle(code, target_match.end() - 1)
        if close_brace is None or target_match is None or end is None:
            raise text.error(
                signature.start(1),
                f"{signature[1].decode()}: cannot determine its target",
                width=len(signature[1]),
                remedy="Expected: std::is_same_v<Target, comp_target<GEN, ARCH, GPU, REP>>",
            )
        target = Span(target_match.end(), end)
        arch = target_arch(code, target)
        if arch is None:
            raise text.error(
                target_match.start(), "cannot determine the architecture of this target"
            )
        yield Picker(
            name=signature[1].decode(),
            span=Span(match.start(), close_brace + 1),
            name_span=Span(*signature.span(1)),
            parameters=Span(match.end(), close),
            target=target,
            arch=arch,
            returned=_return_type(code, trim(code, signature.end(), open_brace)),
            body=Span(open_brace + 1, close_brace),
        )


def target_arch(code: bytes, target: Span) -> str | None:
    """Returns the target of a `comp_target`: `gfx942:mi300x`, or `gfx942` for any GPU."""
    args = [squeeze(code, arg) for arg in split_list(code, *target)]
    arch = arch_of(args[1]) if len(args) > 1 else None
    gpu = args[2].rpartition("::")[2] if len(args) > 2 else GENERIC
    return arch if arch in {None, UNKNOWN} or gpu == GENERIC else known_arch(f"{arch}:{gpu}")


def _return_type(code: bytes, span: Span) -> Span | None:
    """Returns the second argument of `std::enable_if_t<…>`."""
    condition = enabling(code, span)
    if condition is None:
        return None
    args = split_list(code, condition.start, condition.end)
    return args[1] if len(args) == 2 else None


def returns(text: Text, picker: Picker) -> Iterator[PickerReturn]:
    """Yields each return of a picker, with its conditions."""
    code, floor, limit = text.code, *picker.body
    while match := _CASE.search(code, floor, limit):
        begin, returned = match.start(), match
        conditions: tuple[str, ...] = ()
        if match[0] != b"return":
            close = closing_bracket(code, match.end() - 1) or limit
            nested = _NESTED_RETURN.match(code, close + 1, limit)
            if nested is None:
                raise text.error(begin, "a condition without a return of its own")
            conditions, returned = facts(squeeze(code, Span(match.end(), close))), nested
        end = code.find(b";", returned.end(), limit)
        stop = limit if end < 0 else end
        position = stop + 1
        if returned.lastindex:  # there is a brace before it
            brace = _CLOSING_BRACE.match(code, position, limit)
            if brace is None:
                raise text.error(begin, "a condition without a return of its own")
            position = brace.end()
        value = trim(code, returned.end(), stop)
        yield PickerReturn(conditions, Span(begin, position), value, floor)
        floor = position


def _values(text: Text, span: Span, fields: Fields) -> Iterator[Member]:
    """Yields the values of `reduce_config_params{{256, 8}, using_warp_reduce}`; none for a call."""
    struct_match = _STRUCT_VALUE.match(text.code, *span)
    if struct_match is None or applied(text.code, span) is not None:
        return
    inside = Span(struct_match.end() - 1, span.end)
    yield from _braced(text, inside, struct_match[1].decode(), fields, "")


def _braced(text: Text, span: Span, struct: str, fields: Fields, prefix: str) -> Iterator[Member]:
    close = closing_bracket(text.code, span.start)
    if close is None:
        return
    declared = fields.get(struct, ())
    for position, part in enumerate(split_list(text.code, span.start + 1, close)):
        is_declared = position < len(declared)
        name, kind = declared[position] if is_declared else (str(position), "auto")
        inner = _STRUCT_VALUE.match(text.code, *part)
        if text.code[part.start : part.start + 1] == b"{":
            yield from _braced(text, part, unqualified(kind), fields, f"{prefix}{name}.")
        elif inner:
            inner_span = Span(inner.end() - 1, part.end)
            yield from _braced(text, inner_span, inner[1].decode(), fields, f"{prefix}{name}.")
        else:
            yield value_member(text, part, f"{prefix}{name}", kind)


WIDTH = 100
"""The column limit of rocPRIM's clang-format."""
# "std::is_same_v<Target, comp_target<…>>,", "std::is_same<Target, comp_target<…>>::value,"
_IS_SAME = re.compile(
    r"( *)(std::is_same(?:_v)?<)\s*(Target),\s*(comp_target<[^<>]*>)(>(?:::value)?,)"
)
_LIST = r"\busing\s+{}\s*=\s*comp_targets\s*<"
_LAST_WORD = re.compile(rb"\w+\s*\Z")


# Targets of pickers as headers spell them, and the list of all targets.


def words_of(arch: str) -> dict[str, str]:
    """Returns the parts of a target's name, in rocPRIM's words for `gfx942:mi300x`."""
    plain, gpu = arch_and_gpu(arch)
    generation_name = generation(plain)
    if generation_name is None:
        raise InputError(f"the generation of {plain} is unknown")
    return {"gen": generation_name, "arch": plain, "gpu": gpu or GENERIC}


def target_changes(code: bytes, target: Span, words: Mapping[str, str]) -> list[tuple[Span, str]]:
    """Returns the changes that turn the arguments of a `comp_target` into another target."""
    changes = []
    for arg, word in zip(split_list(code, *target), words.values(), strict=False):
        last = _LAST_WORD.search(code, *arg)
        assert last is not None, "it is a name"
        changes.append((Span(*last.span()), word))
    return changes


def commented(comment: str, words: Mapping[str, str]) -> str:
    """Replaces the target in a comment such as `TARGET: {'gen': 'cdna3', …}`."""
    for key, word in words.items():
        comment = re.sub(rf"""(['"]{key}['"]\s*:\s*['"])\w+""", rf"\g<1>{word}", comment)
    return comment


def laid_out(head: str) -> str:
    """Breaks the condition in a picker's head as clang-format does."""
    match = _IS_SAME.search(head)
    if match is None:
        return head
    lead, is_same, name, target, end = match.groups()
    column = " " * (len(lead) + len(is_same))
    forms = (
        f"{lead}{is_same}{name}, {target}{end}",
        f"{lead}{is_same}{name},\n{column}{target}{end}",
        f"{lead}{is_same}\n{lead}    {name},\n{lead}    {target}{end}",
    )
    fits = (form for form in forms if max(map(len, form.split("\n"))) <= WIDTH)
    return head[: match.start()] + next(fits, forms[-1]) + head[match.end() :]


def listed(text: Text, name: str, like: Span, words: Mapping[str, str]) -> tuple[int, str]:
    """Returns where a target goes in a list, and the text to insert, spelled like another one.

    Among equal matches the last one wins, so a target goes before all others of its generation, and
    a target for any GPU, the fallback, before all targets.
    """
    code = text.code
    start = re.search(_LIST.format(name).encode(), code)
    end = None if start is None else closing_angle(code, start.end() - 1)
    items = [] if start is None or end is None else split_list(code, start.end(), end)
    if not items:
        raise InputError(f"{text.path}: there is no list {name}", "Write it by hand.")
    position = items[_place(code, items, words)].start
    column = position - line_start(text.data, position)
    arguments = squeeze(rewritten(code, like, target_changes(code, like, words)))
    return position, f"comp_target<{arguments}>,\n{' ' * column}"


def _place(code: bytes, items: Sequence[Span], words: Mapping[str, str]) -> int:
    if words["gpu"] == GENERIC:
        return 0
    for number, item in enumerate(items):
        first = squeeze(code, item).partition(",")[0]
        if first.rpartition("::")[2] == words["gen"]:
            return number
    return len(items) - 1


# "'block_size_x': 256" of "// CONFIG: {'key_type': 'int', 'block_size_x': 256, 'ipt': 8}"
_COMMENT_NUMBER = re.compile(rb"""['"](\w+)['"]\s*:\s*(-?\d+)\b""")


# Changes of a picker's return, and of the comment above that repeats its values.


def with_values(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot
) -> list[Change]:
    """Returns the changes of a return: values, omitted ones it must state now, and its comment."""
    changes = member_changes(text, entry, values)
    if unsaid := spot.left_out(entry, values):
        changes += _unsaid(text, entry, unsaid, spot)
    return [*changes, *_comment_changes(text, entry, values, spot)]


def _unsaid(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot
) -> Iterator[Change]:
    """Appends values after the last one of their struct, up to those that must be stated."""
    assert entry.inherits_span is not None, "it returns something"
    open_brace = text.code.find(b"{", *entry.inherits_span)
    unplaced = set(values)
    structs = _structs(text, open_brace, spot.site.configs[0], "", spot) if open_brace >= 0 else ()
    for prefix, struct, inside in structs:
        parts, fields = split_list(text.code, *inside), spot.parameters.get(struct, ())
        if change := appended(parts, fields, values, prefix, spot):
            unplaced.difference_update(prefix + name for name, _ in fields[len(parts) :])
            yield change
    if unplaced:
        missing = ", ".join(name for name in values if name in unplaced)
        raise InputError(f"{spot.header}:{entry.line} has no place for {missing}")


def appended(
    parts: Sequence[Span],
    fields: Sequence[tuple[str, str]],
    values: Mapping[str, str],
    prefix: str,
    spot: ConfigSpot,
) -> Change | None:
    """Appends values to those of a list, up to the last one that must be stated."""
    unstated = [(prefix + name, kind) for name, kind in fields[len(parts) :]]
    places = [place for place, (name, _) in enumerate(unstated) if name in values]
    if not places:
        return None
    stated = unstated[: places[-1] + 1]
    new = "".join(f", {spot.argument(kind, values.get(name), name)}" for name, kind in stated)
    return Span(parts[-1].end, parts[-1].end), new


def _structs(
    text: Text, open_brace: int, struct: str, prefix: str, spot: PickerSpot
) -> Iterator[tuple[str, str, Span]]:
    """Yields the braces of a return: the path, the struct, and the span of each."""
    close = closing_bracket(text.code, open_brace)
    assert close is not None, "the header was read"
    inside = Span(open_brace + 1, close)
    yield prefix, struct, inside
    parts = split_list(text.code, *inside)
    for (name, kind), part in zip(spot.parameters.get(struct, ()), parts, strict=False):
        brace = text.code.find(b"{", part.start, part.end)
        if brace >= 0:
            yield from _structs(text, brace, unqualified(kind), f"{prefix}{name}.", spot)


def _comment_changes(
    text: Text, entry: Entry, values: Mapping[str, str], spot: PickerSpot
) -> Iterator[Change]:
    """Updates the numbers in a comment that repeat values: matched by name, or if unique."""
    if entry.comment_span is None:
        return
    numbers_by_name = {
        match[1].decode(): Span(*match.span(2))
        for match in _COMMENT_NUMBER.finditer(text.data, *entry.comment_span)
    }
    for member in entry.members:
        new = values.get(member.name)
        if new is None or same(member, new) or not new.lstrip("-").isdigit():
            continue
        matching = {
            number_name: number_span
            for number_name, number_span in numbers_by_name.items()
            if text.data[slice(*number_span)].decode() == member.spelling
        }
        chosen = next((name for name in spot.called.get(member.name, ()) if name in matching), None)
        if chosen is None and len(matching) == 1:
            (chosen,) = matching
        if chosen is not None:
            yield numbers_by_name.pop(chosen), new
