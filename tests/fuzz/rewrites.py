"""Rewrites of a header that mean the same to a compiler, each at a random place."""

import random
import re
from collections.abc import Callable
from itertools import pairwise

from policygen.headers.syntax import closing_bracket
from policygen.headers.text import Text
from policygen.model.records import Span

Rewrite = Callable[[bytes, random.Random], bytes | None]

STRUCT = re.compile(rb"\bstruct(?= +(?!sm\d)\w+\s*\{)")
ENTRY = re.compile(rb"\bstruct(?= +sm\d+_\w+\s*<)")
# "constexpr auto get_sm90_tuning(…) const -> policy {"
HEAD = re.compile(rb"\bconstexpr auto(?=\s+(?:operator\s*\(\s*\)|\w+)\s*\()")
TAIL = re.compile(rb"\)(?P<const> const)?(?= -> [\w:<>]+\s*\{)")
RESULT = re.compile(rb" -> (?P<type>\w+)(?=\s*\{)")
RETURN = re.compile(rb"\breturn (?=[\w:]+\s*\{)")
IF = re.compile(rb"\bif(?: constexpr)?\s*\(")
MEMBER = re.compile(rb"static constexpr (?P<type>\w+)\s+(?P<name>\w+)\s*= (?P<value>[\w:]+);")
FIELD = re.compile(rb"(?m)^  (?P<type>int|bool)\s+(?P<name>\w+);")
WORD = re.compile(rb"\b(?:struct|template|return|constexpr|static|sm\d+_\w+|if|operator)\b")
WHOLE = re.compile(rb"(?m)^template <[^;{}]*>\s*struct sm\d+_\w+\s*<[^;{}]*\{")
GAP = re.compile(rb"(?<=[\w>)]) (?=[\w<(])")
SIGNS = {b"{": b"<%", b"}": b"%>", b"[": b"<:", b"]": b":>"}


def places(data: bytes, pattern: re.Pattern[bytes]) -> list[re.Match[bytes]]:
    """Where a pattern stands in code."""
    return list(pattern.finditer(Text("", data).code))


def chosen(data: bytes, pattern: re.Pattern[bytes], rng: random.Random) -> re.Match[bytes] | None:
    found = places(data, pattern)
    return rng.choice(found) if found else None


def put(data: bytes, start: int, end: int, text: bytes) -> bytes:
    return data[:start] + text + data[end:]


def replacing(pattern: re.Pattern[bytes], *texts: bytes) -> Rewrite:
    """Another spelling in one place; `\\g<name>` stands for a group."""

    def rewrite(data: bytes, rng: random.Random) -> bytes | None:
        match = chosen(data, pattern, rng)
        if match is None:
            return None
        text = rng.choice(texts)
        return put(data, *match.span(), match.expand(text) if b"\\" in text else text)

    return rewrite


def plain_result(data: bytes, rng: random.Random) -> bytes | None:
    """`constexpr auto f(…) -> policy` as `constexpr policy f(…)`."""
    match = chosen(data, RESULT, rng)
    if match is None:
        return None
    heads = [m for m in places(data, HEAD) if m.end() < match.start()]
    if not heads or b"{" in data[heads[-1].end() : match.start()]:
        return None
    data = put(data, *match.span(), b"")
    return put(data, *heads[-1].span(), b"constexpr " + match["type"])


def deduced_result(data: bytes, rng: random.Random) -> bytes | None:
    """Without `-> policy`, where each return says it."""
    match = chosen(data, RESULT, rng)
    if match is None:
        return None
    opened = data.index(b"{", match.end())
    body = Text("", data).code[opened : closing_bracket(Text("", data).code, opened)]
    returned = re.findall(rb"\breturn\s+([^;]*)", body)
    if not all(value.startswith(match["type"] + b"{") for value in returned):
        return None
    return put(data, *match.span(), b"")


def alias(data: bytes, rng: random.Random) -> bytes | None:
    """A second name for a policy, in front of the function that returns it."""
    match = chosen(data, RESULT, rng)
    if match is None:
        return None
    structs = places(data, re.compile(rb"\bstruct\s+" + match["type"] + rb"\s*\{"))
    if not structs or structs[0].start() > match.start():
        return None
    close = closing_bracket(Text("", data).code, structs[0].end() - 1)
    if close is None or data[close : close + 2] != b"};":
        return None
    data = put(data, *match.span("type"), b"policygen_alias")
    one = b"\nusing policygen_alias = " + match["type"] + b";"
    two = b"\ntypedef " + match["type"] + b" policygen_alias;"
    return put(data, close + 2, close + 2, rng.choice((one, two)))


def macro(data: bytes, rng: random.Random) -> bytes | None:
    """A word of the language, or a name, behind a macro of the header."""
    match = chosen(data, WORD, rng)
    if match is None:
        return None
    data = put(data, *match.span(), b"POLICYGEN_WORD")
    define = b"#pragma once\n#define POLICYGEN_WORD " + match[0]
    return data.replace(b"#pragma once", define, 1) if b"#pragma once" in data else None


def returned_by_macro(data: bytes, rng: random.Random) -> bytes | None:
    match = chosen(data, RETURN, rng)
    if match is None:
        return None
    end = Text("", data).code.index(b";", match.end())
    value = data[match.end() : end]
    if b"//" in value or b"#" in value:
        return None
    data = put(data, match.start(), end, b"POLICYGEN_RETURN(" + value + b")")
    define = b"#pragma once\n#define POLICYGEN_RETURN(...) return __VA_ARGS__"
    return data.replace(b"#pragma once", define, 1)


def spliced(data: bytes, rng: random.Random) -> bytes | None:
    """A line that ends in the middle of a word."""
    match = chosen(data, WORD, rng)
    if match is None:
        return None
    at = match.start() + rng.randrange(1, len(match[0]))
    return put(data, at, at, rng.choice((b"\\\n", b"\\\r\n")))


def spliced_gap(data: bytes, rng: random.Random) -> bytes | None:
    match = chosen(data, GAP, rng)
    return None if match is None else put(data, match.start(), match.end(), b" \\\n ")


def digraph(data: bytes, rng: random.Random) -> bytes | None:
    match = chosen(data, re.compile(rb"[{}\[\]]"), rng)
    return None if match is None else put(data, *match.span(), SIGNS[match[0]])


def digraph_directive(data: bytes, rng: random.Random) -> bytes | None:
    match = rng.choice(list(re.finditer(rb"(?m)^#(?=include|if|endif|pragma)", data)))
    return put(data, *match.span(), b"%:")


def spread(data: bytes, rng: random.Random) -> bytes | None:
    match = chosen(data, GAP, rng)
    texts = (b"\n", b"\t", b" /* struct sm90_x { return */ ", b" // }\n", b"   \r\n")
    return None if match is None else put(data, *match.span(), rng.choice(texts))


def as_class(pattern: re.Pattern[bytes]) -> Rewrite:
    """`struct x {` as `class x { public:`."""

    def rewrite(data: bytes, rng: random.Random) -> bytes | None:
        match = chosen(data, pattern, rng)
        if match is None:
            return None
        opened = re.compile(rb"[{;]").search(Text("", data).code, match.end())
        if opened is None or opened[0] == b";" or b":" in data[match.end() : opened.start()]:
            return None
        data = put(data, *opened.span(), b"{ public: ")
        return put(data, *match.span(), b"class")

    return rewrite


def whole_entry(data: bytes, rng: random.Random) -> Span | None:
    """An entry with its `template <…>` on lines of its own."""
    code = Text("", data).code
    match = chosen(data, WHOLE, rng)
    close = None if match is None else closing_bracket(code, match.end() - 1)
    if match is None or close is None or data[close : close + 2] != b"};":
        return None
    return Span(match.start(), close + 2)


def around(before: bytes, after: bytes) -> Rewrite:
    """Something around a whole entry."""

    def rewrite(data: bytes, rng: random.Random) -> bytes | None:
        span = whole_entry(data, rng)
        if span is None:
            return None
        inner = before + data[span.start : span.end] + after
        return put(data, span.start, span.end, inner)

    return rewrite


def by_statement(made: Callable[[bytes], bytes]) -> Rewrite:
    """`return value;` as another statement."""

    def rewrite(data: bytes, rng: random.Random) -> bytes | None:
        match = chosen(data, RETURN, rng)
        if match is None:
            return None
        end = Text("", data).code.index(b";", match.end()) + 1
        return put(data, match.start(), end, made(data[match.start() : end]))

    return rewrite


def condition(made: Callable[[bytes], bytes]) -> Rewrite:
    """Another spelling of what stands in the parentheses of an `if`."""

    def rewrite(data: bytes, rng: random.Random) -> bytes | None:
        code = Text("", data).code
        match = chosen(data, IF, rng)
        close = None if match is None else closing_bracket(code, match.end() - 1)
        if match is None or close is None:
            return None
        return put(data, match.end(), close, made(data[match.end() : close]))

    return rewrite


def joined_fields(data: bytes, rng: random.Random) -> bytes | None:
    """`int a; int b;` as `int a, b;`."""
    found = places(data, FIELD)
    pairs = [
        (one, two)
        for one, two in pairwise(found)
        if one["type"] == two["type"] and not data[one.end() : two.start()].strip()
    ]
    if not pairs:
        return None
    one, two = rng.choice(pairs)
    text = b"  " + one["type"] + b" " + one["name"] + b", " + two["name"] + b";"
    return put(data, one.start(), two.end(), text)


REWRITES: dict[str, Rewrite] = {
    "struct alignas": replacing(STRUCT, b"struct alignas(8)", b"struct alignas(sizeof(long))"),
    "struct attribute": replacing(
        STRUCT, b"struct [[maybe_unused]]", b"struct __attribute__((aligned(8)))", b"struct CUB_X"
    ),
    "struct final": replacing(
        re.compile(rb"(?<=struct )(?P<n>[A-Z]\w+Policy)(?=\s*\{)"), rb"\g<n> final"
    ),
    "struct as class": as_class(STRUCT),
    "head order": replacing(
        HEAD,
        b"constexpr _CCCL_HOST_DEVICE_API auto",
        b"auto constexpr",
        b"inline constexpr auto",
        b"constexpr inline auto",
        b"constexpr\n  auto",
    ),
    "consteval": replacing(HEAD, b"consteval auto", b"auto consteval"),
    "const &": replacing(TAIL, rb")\g<const> & noexcept", rb")\g<const> noexcept(true)"),
    "const noexcept": replacing(
        TAIL, rb")\g<const> noexcept", rb")\g<const> noexcept(noexcept(1))"
    ),
    "plain result": plain_result,
    "deduced result": deduced_result,
    "alias": alias,
    "qualified result": replacing(RESULT, rb" -> cub::\g<type>", rb" -> \g<type> const"),
    "macro": macro,
    "returned by macro": returned_by_macro,
    "splice": spliced,
    "splice between words": spliced_gap,
    "digraph": digraph,
    "digraph directive": digraph_directive,
    "space": spread,
    "entry alignas": replacing(
        ENTRY, b"struct alignas(4)", b"struct [[maybe_unused]]", b"struct CUB_X"
    ),
    "entry attribute": replacing(ENTRY, b"struct __attribute__((aligned(4)))"),
    "entry as class": as_class(ENTRY),
    "template list": replacing(re.compile(rb"\btemplate <>"), b"template<>", b"template <\n >"),
    "entry in #if 1": around(b"#if 1\n", b"\n#endif"),
    "entry in #else": around(b"#if 0\n#else\n", b"\n#endif"),
    "entry in extern": around(b'extern "C++" {\n', b"\n}"),
    "entry beside raw string": around(b'constexpr auto q = R"x(/* { " )x";\n', b""),
    "entry beside quote": around(b"constexpr auto q = '\"';\n", b""),
    "member braces": replacing(MEMBER, rb"static constexpr \g<type> \g<name>{\g<value>};"),
    "member order": replacing(
        MEMBER,
        rb"constexpr static \g<type> \g<name> = \g<value>;",
        rb"\g<type> static constexpr \g<name> = \g<value>;",
        rb"alignas(8) static constexpr \g<type> \g<name> = \g<value>;",
        rb"[[maybe_unused]] static constexpr \g<type> \g<name> = \g<value>;",
        rb"__attribute__((unused)) static constexpr \g<type> \g<name> = \g<value>;",
        rb"static constexpr \g<type> \g<name> [[maybe_unused]] = \g<value>;",
    ),
    "likely": replacing(RETURN, b"[[likely]] return ", b"[[likely]] [[maybe_unused]] return "),
    "block": by_statement(lambda text: b"{ " + text + b" }"),
    "do": by_statement(lambda text: b"do { " + text + b" } while (false);"),
    "while": by_statement(lambda text: b"while (true) { " + text + b" }"),
    "for": by_statement(lambda text: b"for (;;) " + text),
    "label": by_statement(lambda text: b"here: " + text),
    "lambda": by_statement(lambda text: b"return [&] { " + text + b" }();"),
    "try": by_statement(lambda text: b"try { " + text + b" } catch (...) { throw; }"),
    "if with init": condition(lambda text: b"int one = 1; " + text),
    "fields on one line": joined_fields,
    "field attribute": replacing(
        FIELD, rb"  [[maybe_unused]] \g<type> \g<name>;", rb"  alignas(8) \g<type> \g<name>;"
    ),
    "field order": replacing(
        FIELD, rb"  \g<type> \g<name> [[maybe_unused]];", rb"  \g<type> (\g<name>);"
    ),
    "operator": replacing(re.compile(rb"operator\(\)\("), b"operator ( ) (", b"operator()\n("),
    "parameter default": replacing(
        re.compile(rb"compute_capability cc\)"), b"compute_capability cc = {})"
    ),
    "line ends": lambda data, _: data.replace(b"\n", b"\r\n"),
    "byte-order mark": lambda data, _: b"\xef\xbb\xbf" + data,
}
