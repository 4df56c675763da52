"""Guarded returns as entries: what must hold, and which values are returned."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policygen.bindings.words import ladder
from policygen.headers.comments import Comments, Line, SourceFile, comment_lines, read_notes
from policygen.headers.expressions import evaluate
from policygen.headers.parsers import check_returns, look
from policygen.headers.selectors.functions import (
    NAMED,
    Function,
    Struct,
    arguments,
    find_namespaces,
    functions_of,
    result_of,
    structs_of,
)
from policygen.headers.selectors.statements import (
    Block,
    Body,
    Clauses,
    Return,
    UnreadableError,
    conditions_of,
    find_blocks,
    read_body,
)
from policygen.headers.syntax import literal, member_values
from policygen.headers.text import Text, squeeze
from policygen.model.arch import arch_number
from policygen.model.records import Span
from policygen.model.tuning import Entry, Family, Member, Value, conjunction

# "cc >= ::cuda::compute_capability{10, 7}"
_SINCE = re.compile(r"cc\s*>=?\s*(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
# "if (key_size == 16) // same as previous tuning"
COMMENTED = re.compile(r"(?:else\s+)?if\s*\((.*?)\)\s*(?:return\b\s*(.*?);)?\s*(//.*)?$")
# "int", "unsigned long", "bool": no policy, whatever decides it
_SCALAR = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|bool|void|double|float|size_t|::|std|cuda)\s*)+"
)
_SELECTS = re.compile(rb"\bcompute_capability\b")


def holds_selectors(data: bytes) -> bool:
    """Whether there can be a policy selector in a header."""
    return _SELECTS.search(data) is not None


@dataclass(frozen=True, slots=True)
class _Branches:
    source: SourceFile
    structs: Mapping[str, Struct]
    functions: Mapping[str, Function]

    @property
    def text(self) -> Text:
        return self.source.text


def read_selectors(source: SourceFile, header: str) -> tuple[Family, ...]:
    """The returns of each function that decides something, by architecture."""
    code = source.text.code
    blocks = list(find_blocks(code))
    structs = structs_of(code, blocks)
    functions = list(functions_of(code, blocks, structs))
    bodies = [block.body for block in blocks if block.kind == "function"]
    check_returns(source.text, look(source.text.data), bodies)
    _check_results(source.text, blocks, functions)
    namespaces = find_namespaces(code)
    known = _Branches(source, structs, {f.name: f for f in functions})
    families: list[Family] = []
    for function in functions:
        if function.helps:
            continue
        try:
            body = read_body(code, function.body)
        except UnreadableError as error:
            raise source.text.error(
                error.offset, f"{function.label}: cannot read this statement"
            ) from error
        entries = list(_entries(known, function, body))
        if not any(entry.args for _, entry in entries):
            continue  # it decides nothing
        if (unread := structs[function.returns].unread) is not None:
            raise source.text.error(unread, f"{function.returns}: cannot read this field")
        at = function.span.start
        space = "::".join(name for span, name in namespaces if span.start <= at < span.end)
        families += [
            Family(
                name=function.label,
                arch=arch,
                header=header,
                namespace=space,
                parameters=(),
                entries=tuple(entry for own, entry in entries if own == arch),
            )
            for arch in dict.fromkeys(arch for arch, _ in entries)
        ]
    return tuple(families)


def _check_results(
    text: Text,
    blocks: Sequence[Block],
    functions: Sequence[Function],
) -> None:
    """Raises at a function that asks for the architecture, and returns what is not known here."""
    read = {function.body for function in functions}
    for block in blocks:
        if block.kind != "function" or block.body in read or block.parameters is None:
            continue
        result = result_of(text.code, block)
        asks = _SELECTS.search(text.code, *block.parameters) or NAMED.search(block.name)
        if asks and not _SCALAR.fullmatch(result):
            named = f"{result}, which is no struct of this header"
            returned = named if result else "what it deduces"
            raise text.error(
                block.start,
                f"{block.name}: cannot read the policies of a function that returns {returned}",
                remedy="Expected: constexpr auto NAME(…) -> TYPE { … }",
            )


def _entries(known: _Branches, function: Function, body: Body) -> Iterator[tuple[str, Entry]]:
    found = [
        (arch_of(function, one.conditions), _entry(known, function, one)) for one in body.returns
    ]
    found += _disabled(known, function, body)
    yield from sorted(found, key=lambda pair: pair[1].span.start)


def arch_of(function: Function, conditions: tuple[str, ...]) -> str:
    """The architecture that a return is for: the last that is asked for, or the function's.

    What holds for any compute capability counts as of the oldest.
    """
    facts = [text for text in conjuncts(conditions) if "||" not in text]
    since = [match for text in facts if (match := _SINCE.match(text))]
    if since:
        return f"sm{since[-1][1]}{since[-1][2]}"
    named = NAMED.search(function.name)
    return f"sm{named[1]}" if named else ladder()[0]


def _entry(known: _Branches, function: Function, one: Return) -> Entry:
    text, comments = known.text, known.source.comments
    members, inherits = _members(known, function, one.value)
    lines = list(_lines(text, comments, one))
    notes = read_notes(lines, lives=True)
    label = next((found for found in notes.labels if not found.rejected), None)
    above = comments.above(one.statement)
    guard = known.source.guards.at(one.span.start)
    return Entry(
        kind="branch",
        args=tuple(conjuncts(one.conditions)),
        values=member_values(members),
        inherits=inherits,
        guard=guard.spelling,
        disabled=guard.never,
        variant=label.variant if label else None,
        scores=label.scores or None if label else None,
        line=text.line(one.span.start),
        remarks=notes.remarks,
        labels=notes.labels,
        members=members,
        layout="block" if b"\n" in text.data[one.statement : one.span.end] else "line",
        format_off=known.source.format_is_off(one.span.start),
        span=Span(one.statement, one.span.end),
        inherits_span=one.value if inherits else None,
        body_span=one.value,
        comment_span=Span(above[0].start, above[-1].end) if above else None,
        guard_span=guard.span,
    )


def _lines(text: Text, comments: Comments, one: Return) -> Iterator[Line]:
    """What stands above the return, or above an `if` on the same line, and behind it."""
    around = [*comments.above(one.statement), *comments.inside(Span(one.statement, one.span.end))]
    for comment in [*around, *comments.trailing(one.span.end)]:
        for line in comment_lines(text.data, comment):
            if not COMMENTED.match(line.text):
                yield line


def facts_of(clauses: Clauses) -> list[str]:
    """What must hold inside of clauses, one fact each."""
    return list(conjuncts(conditions_of(clauses)))


def conjuncts(conditions: tuple[str, ...]) -> Iterator[str]:
    """What must hold, one fact each."""
    for text in conditions:
        depth, start = 0, 0
        for match in re.finditer(r"[({\[]|[)}\]]|&&|\|\|", text):
            if match[0] == "||" and depth == 0:
                start = -1
                break
            if match[0] == "&&" and depth == 0:
                yield text[start : match.start()].strip()
                start = match.end()
            elif match[0] in "({[":
                depth += 1
            elif match[0] in ")}]":
                depth -= 1
        yield text if start < 0 else text[start:].strip()


def _members(
    known: _Branches, function: Function, value: Span
) -> tuple[tuple[Member, ...], str | None]:
    """The values by name; what another function decides is inherited from it."""
    code = known.text.code
    given = arguments(code, value)
    spelling = squeeze(known.text.uncommented[value.start : value.end])
    if given is None:
        return (), None if spelling.endswith("nullopt") else spelling
    name, parts = given
    short = name.rpartition("::")[2]
    if short in known.functions and short not in known.structs:
        names = known.functions[short].parameters
    else:
        struct = known.structs.get(short or function.returns)
        names = struct.fields if struct else ()
    if not parts:
        return (), None
    members = tuple(_flat(known, names, parts))
    # `make_policy(*found, true)`: what is found has the numbers.
    if len(parts) > len(names) or not any(type(m.value) is int for m in members):
        return (), spelling
    return members, name if short in known.functions else None


def _flat(known: _Branches, names: tuple[str, ...], parts: list[Span]) -> Iterator[Member]:
    """The values of an aggregate, and of those within it: `lookback.items_per_thread`."""
    for name, part in zip(names, parts, strict=False):
        given = arguments(known.text.code, part)
        struct = known.structs.get(given[0].rpartition("::")[2]) if given and given[0] else None
        if given is None or struct is None or len(given[1]) > len(struct.fields):
            yield _member(known.text, name, part)
        else:
            inner = tuple(f"{name}.{field}" for field in struct.fields)
            yield from _flat(known, inner, given[1])


def _member(text: Text, name: str, part: Span) -> Member:
    spelling = squeeze(text.uncommented[part.start : part.end])
    return Member(
        name=name,
        kind="value",
        type="",
        spelling=spelling,
        value=_value(spelling),
        span=part,
        value_span=part,
    )


def _value(spelling: str) -> Value | None:
    """`104 - 1` as 103, `1 << 2` as 4, an enumerator by its name; a formula has no value."""
    number = evaluate(spelling, lambda _: None)
    if number is not None:
        return number
    found = literal("", spelling)
    return found if isinstance(found, bool) or re.fullmatch(r"[A-Z][A-Z0-9_]*", spelling) else None


def _disabled(known: _Branches, function: Function, body: Body) -> Iterator[tuple[str, Entry]]:
    """Conditions that are commented out: `// if (key_size == 16) // same as previous tuning`."""
    text = known.text
    remarks: list[str] = []
    last = None
    for comment in known.source.comments.inside(function.body):
        for line in comment_lines(text.data, comment):
            match = COMMENTED.match(line.text)
            number = text.line(line.span.start)
            if last != number - 1:
                remarks = []
            last = number
            if match is None:
                if line.text:
                    remarks.append(line.text)
                continue
            around = [s for s in body.scopes if s.span.start <= line.span.start < s.span.end]
            inner = max(around, key=lambda s: s.span.start)
            conditions = (*inner.conditions, match[1].strip())
            behind = (match[3] or "").lstrip("/ ").strip()
            yield (
                arch_of(function, conditions),
                Entry(
                    kind="branch",
                    args=tuple(conjuncts(conditions)),
                    values=_spelled(known, function, match[2]),
                    inherits=None,
                    guard=None,
                    disabled=True,
                    variant=None,
                    scores=None,
                    line=number,
                    remarks=tuple(word for word in (*remarks, behind) if word),
                    span=line.span,
                ),
            )
            remarks = []


def _spelled(known: _Branches, function: Function, value: str | None) -> dict[str, Value]:
    """The values of a return that is commented out, as far as they are constants."""
    data = (value or "").encode()
    given = arguments(data, Span(0, len(data))) if data else None
    if given is None:
        return {}
    struct = known.structs.get(given[0].rpartition("::")[2] or function.returns)
    parts = [data[part.start : part.end].decode() for part in given[1]]
    pairs = zip(struct.fields if struct else (), parts, strict=False)
    return {name: text if (found := _value(text)) is None else found for name, text in pairs}


# "::cuda::compute_capability{10, 7}"
_CAPABILITY = re.compile(r"(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
# "const bool has_flags = flag_size_bytes != 0;", "constexpr auto x = a ? b : c;"
_LOCAL = re.compile(rb"\bconst(?:expr)?\s+[\w:]+\s+(\w+)\s*=\s*([^;{}]+);")
_CHOICE = re.compile(r"([^?]+)\?([^:?]+(?:::[^:?]+)*):(?!:)(.+)")
_WORDS = {"not": "!", "and": "&&", "or": "||"}
_WORD = re.compile(r"\b(?:not|and|or)\b")
_DEEPEST = 8
"""Constants that are made from others."""


# Whether a condition of a policy selector holds for one workload on one architecture.


def locals_of(code: bytes, bodies: Iterable[Span]) -> dict[str, str]:
    """The constants that functions compute, where a name means one thing in all of them."""
    found: dict[str, set[str]] = {}
    for body in bodies:
        for match in _LOCAL.finditer(code, body.start, body.end):
            found.setdefault(match[1].decode(), set()).add(squeeze(match[2]))
    return {name: texts.pop() for name, texts in found.items() if len(texts) == 1}


def defined(code: bytes, body: Span, name: str) -> int | None:
    """Where a function computes a constant."""
    found = (m for m in _LOCAL.finditer(code, body.start, body.end) if m[1].decode() == name)
    return next((match.start() for match in found), None)


@dataclass(slots=True)
class Truth:
    """What is known of a workload on an architecture."""

    traits: Mapping[str, Value]
    arch: str
    constants: Mapping[str, str]
    """What functions compute from the traits."""
    _enumerators: dict[str, int] = field(default_factory=dict)

    def holds(self, condition: str) -> bool | None:
        """Whether a condition holds; none where that is not known."""
        found = self._value(condition, 0)
        return None if found is None else bool(found)

    def _value(self, text: str, depth: int) -> int | None:
        if depth > _DEEPEST:
            return None
        text = _WORD.sub(lambda match: _WORDS[match[0]], text)
        text = _CAPABILITY.sub(lambda match: f"{match[1]}{match[2]}", text)
        if match := _CHOICE.fullmatch(text):
            chosen = self._value(match[1], depth)
            return None if chosen is None else self._value(match[2 if chosen else 3], depth)
        return evaluate(text, lambda name: self._named(name, depth + 1))

    def _named(self, name: str, depth: int) -> int | None:
        if name == "cc":
            return arch_number(self.arch)
        if name in self.traits:
            value = self.traits[name]
            return self._enumerator(value) if isinstance(value, str) else int(value)
        if name in self.constants:
            return self._value(self.constants[name], depth)
        return self._enumerator(name.rpartition("::")[2]) if "::" in name else None

    def _enumerator(self, name: str) -> int:
        """A number of its own for each: they are only compared."""
        return self._enumerators.setdefault(name, len(self._enumerators))


# "key_size == 4", "accum_t == type_t::float32"
EQUAL = re.compile(r"(\w+) == ((?:\w+::)*)(\w+)")
UNEQUAL = re.compile(r"(\w+) != ((?:\w+::)*)(\w+)")
FLAG = re.compile(r"(not\s+|!\s*)?(\w+)")
_NOT = re.compile(r"!\((.*)\)")


# Conditions of policy selectors: opposites, what excludes what, and what is said twice.


def opposites(facts: Sequence[str]) -> list[str]:
    """What holds where not all of some facts do."""
    if len(facts) > 1:
        return [f"!({conjunction(tuple(facts))})"]
    (fact,) = facts
    either = alternatives(fact)
    if len(either) > 1:
        return [text for one in either for text in opposites([one])]
    if match := EQUAL.fullmatch(fact):
        return [f"{match[1]} != {match[2]}{match[3]}"]
    if match := UNEQUAL.fullmatch(fact):
        return [f"{match[1]} == {match[2]}{match[3]}"]
    if flag := FLAG.fullmatch(fact):
        return [flag[2] if flag[1] else f"!{flag[2]}"]
    return [f"!({fact})"]


def alternatives(fact: str) -> list[str]:
    """`(a == x || a == y)` as two."""
    inner = fact[1:-1] if fact.startswith("(") and fact.endswith(")") else fact
    return [part.strip() for part in inner.split("||")] if "&&" not in inner else [fact]


def excluded(fact: str, held: Iterable[str]) -> bool:
    """Whether a fact cannot hold where others do."""
    known = list(held)
    return all(any(_contradict(one, other) for other in known) for one in alternatives(fact))


def _contradict(one: str, other: str) -> bool:
    if mine := EQUAL.fullmatch(one):
        values = [m for part in alternatives(other) if (m := EQUAL.fullmatch(part))]
        if values and len(values) == len(alternatives(other)):
            same = all(value[1] == mine[1] for value in values)
            return same and all(value[3] != mine[3] for value in values)
        unlike = UNEQUAL.fullmatch(other)
        return bool(unlike and unlike[1] == mine[1] and unlike[3] == mine[3])
    if UNEQUAL.fullmatch(one):
        return bool(EQUAL.fullmatch(other)) and _contradict(other, one)
    mine, theirs = FLAG.fullmatch(one), FLAG.fullmatch(other)
    return bool(mine and theirs and mine[2] == theirs[2] and bool(mine[1]) != bool(theirs[1]))


def simplest(facts: Sequence[str]) -> list[str]:
    """The same without what is said twice, or follows from the others."""
    found: list[str] = []
    for fact in dict.fromkeys(plain(fact) for fact in facts):
        others = [other for other in map(plain, facts) if other != fact]
        inner = _NOT.fullmatch(fact)
        if inner and any(excluded(part, others) for part in conjuncts((inner[1],))):
            continue
        if (unlike := UNEQUAL.fullmatch(fact)) and excluded(
            f"{unlike[1]} == {unlike[2]}{unlike[3]}", others
        ):
            continue
        found.append(fact)
    return found


def plain(fact: str) -> str:
    """`!(is_even)`, of an `else`, as `!is_even`; `not x` beside `!x` is one of them."""
    inner = _NOT.fullmatch(fact)
    return f"!{inner[1]}" if inner and inner[1].isidentifier() else fact
