"""Reads a probe's answers out of its PTX."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from policygen.errors import InputError
from policygen.model.tuning import Value

# .global .align 1 .b8 __unnamed_1[250] = {115, 116, 97, …};
_BYTES = re.compile(r"\.b8 [\w$]+\[\d+\] = \{(\d+(?:, ?\d+)*)\}")
# 4U, 4UL, -1
_NUMBER = re.compile(r"(-?\d+)(?:U?L{0,2})")
# cub::CUB_300001_SM_900::policygen_probe::, <unnamed>::; not what follows Outer<int>
_SCOPE = re.compile(r"(?<![\w:>])(?:::)?(?:(?:<unnamed>|\(anonymous namespace\)|\w+)::)+(?=\w)")
KNOWN = 1 << 14
"""Answers that are not read again."""
# cub::CUB_300600_SM_520::LOAD_CA, cuda::std::__4::plus<void>, cub::_V_300600_SM_520::NullType
_INLINE = re.compile(r"\b(?:CUB_\d\w*|_V_\w+|__\d+|cuda14std_\w+)::")
# "signed int" for what is declared as std::int32_t, "__nv_bool *": the compiler's own words
_OWN_WORDS = re.compile(r"\bsigned (?=short\b|int\b|long\b)|\b__nv_(?=bool\b)")
# What begins a qualified name, and is not qualified itself.
_OUTERMOST = re.compile(r"(?<![\w:])(?=(?:cub|cuda)::)")
_OPENING, _CLOSING = "<([{", ">)]}"
_MARKS = re.compile(r"[<([{>)\]},;]")


@dataclass(frozen=True, slots=True)
class Key:
    """Which entry of a family the compiler takes for a workload, and with which arguments."""

    entry: int
    """-1: none, the primary template is only declared."""
    args: tuple[str, ...]


def read_answers(ptx: str) -> dict[int, tuple[str, ...]]:
    """Row → its answers, each as the compiler prints the type."""
    found: dict[int, tuple[str, ...]] = {}
    shared, whole = [], dict[int, tuple[str, ...]]()
    for match in _BYTES.finditer(ptx):
        data = _bytes(match)
        if b"policygen_probe::row<" in data:
            text = data.decode(errors="replace")
            try:
                number, *answers = _facts(text)
                row, told = int(_inside(number)), tuple(answers)
            except ValueError as error:
                raise _unreadable(text) from error
            if found.setdefault(row, told) != told:
                raise _twice(row)
        elif b"policygen_probe::shared<" in data:
            shared.append(data.decode(errors="replace"))
    told_of = {row: row for row in found}
    for text in shared:
        for row, (other, besides) in _shared(text, found).items():
            if told_of.setdefault(row, other) != other or row in whole:
                raise _twice(row)
            whole[row] = (*found[other], *besides)
    found |= whole
    if not found:
        # No answer must not read as "nothing is selected".
        raise InputError("the probe's PTX holds no answers", "Please report this.")
    return found


def _twice(row: int) -> InputError:
    """A header may hold what looks like an answer."""
    return InputError(
        f"the probe's PTX holds two answers to question {row}",
        "Does a header have text that looks like one?",
    )


def _shared(
    text: str, told: Mapping[int, tuple[str, ...]]
) -> dict[int, tuple[int, tuple[str, ...]]]:
    """A workload's rows: which one that is told each of them repeats, and its answers besides."""
    first, count, *facts = _integers(text)
    if count < 1 or len(facts) not in {count, 3 * count}:
        raise _unreadable(text)
    places, *more = (facts[at : at + count] for at in range(0, len(facts), count))
    if not all(place <= at and first + place in told for at, place in enumerate(places)):
        raise _unreadable(text)
    since, default = more or ([], [])
    besides: list[tuple[str, ...]] = [
        (f"value<{arch}>", f"value<{str(bool(is_default)).lower()}>")
        for arch, is_default in zip(since, default, strict=True)
    ]
    return {
        first + at: (first + place, besides[at] if besides else ())
        for at, place in enumerate(places)
    }


def _integers(text: str) -> list[int]:
    """`… [with int First = 7; int Count = 2; int Facts = 0; …]` as the numbers."""
    try:
        found = [int(part.rstrip("UL")) for part in _facts(text)]
        return found if len(found) > 1 else [0, 0]
    except ValueError as error:
        raise _unreadable(text) from error


def pack(ptx: str) -> str:
    """The answers of a PTX, each once: thousands of rows say the same few things."""
    rows = read_answers(ptx)
    texts = list(dict.fromkeys(text for row in rows.values() for text in row))
    places = {text: place for place, text in enumerate(texts)}
    packed = {row: [places[text] for text in found] for row, found in rows.items()}
    return json.dumps([texts, packed], separators=(",", ":"))


def unpack(packed: str) -> dict[int, tuple[str, ...]]:
    """Row → its answers, as `read_answers` told them."""
    texts, rows = json.loads(packed)
    return {int(row): tuple([texts[place] for place in found]) for row, found in rows.items()}


def _bytes(match: re.Match[str]) -> bytes:
    try:
        # JSON's reader is the fastest there is: a large unit has a million digits.
        return bytes(json.loads(f"[{match[1]}]")).rstrip(b"\0")
    except ValueError as error:
        raise _unreadable(match[0]) from error


# Thousands of rows say the same few things.
@lru_cache(maxsize=KNOWN)
def value(answer: str) -> Value:
    """`value<128>` as 128, `value<cub::…::LOAD_CA>` as `LOAD_CA`, `type<…>` as the type."""
    text = plain(_inside(answer))
    if match := _NUMBER.fullmatch(text):
        return int(match[1])
    return {"true": True, "false": False}.get(text, text)


@lru_cache(maxsize=KNOWN)
def key(answer: str) -> Key:
    """`family<value<7>, type<int>, value<…::_4>>`."""
    number, *args = _split(_inside(answer), ",")
    return Key(int(_inside(number)), tuple(plain(_inside(arg)) for arg in args))


@lru_cache(maxsize=KNOWN)
def types(answer: str) -> tuple[str, ...]:
    """`family<type<int>, type<cub::…::CacheLoadModifier>>` as the types."""
    inside = _inside(answer)
    return tuple(map(type_name, _split(inside, ","))) if inside else ()


@lru_cache(maxsize=KNOWN)
def type_name(answer: str) -> str:
    """`type<cub::…::policy<signed long>>` as `policy<long>`, however it was declared."""
    return _OWN_WORDS.sub("", plain(_inside(answer)))


@lru_cache(maxsize=KNOWN)
def fields(answer: str) -> tuple[str, tuple[int, ...] | None]:
    """`fields<cub::…::ReducePolicy, 256L, 16L>` as the type and its values; none if unreadable."""
    first, *rest = _split(_inside(answer), ",")
    if answer.startswith("type<"):
        return plain(_inside(answer)), None
    return plain(first), tuple(int(text.rstrip("UL")) for text in rest)


@lru_cache(maxsize=KNOWN)
def spelled(answer: str) -> str:
    """`value<cub::…::LOAD_CA>` as `::cub::LOAD_CA`: what stands for it in C++, anywhere."""
    text = _OWN_WORDS.sub("", _OUTERMOST.sub("::", _INLINE.sub("", _inside(answer))))
    return match[1] if (match := _NUMBER.fullmatch(text)) else text


def plain(text: str) -> str:
    """A name without the namespaces that it lives in; `688U` is 688."""
    return re.sub(r"\b(\d+)U?L{0,2}\b", r"\1", _SCOPE.sub("", text))


def _unreadable(text: str) -> InputError:
    return InputError(
        f"the probe's PTX holds an answer that cannot be read: {text}", "Please report this."
    )


def _facts(text: str) -> list[str]:
    """`… [with Answers = A; Answers = B]`, or `[with Answers = <A, B>]`."""
    inside = text.partition("[with ")[2].removesuffix("]")
    return [part.partition(" = ")[2] for part in _split(inside, ";")]


def _inside(text: str) -> str:
    """What stands between the outermost angle brackets."""
    return text[text.index("<") + 1 : text.rindex(">")].strip()


def _split(text: str, separator: str) -> list[str]:
    """Splits where no bracket is open."""
    parts, depth, start = [], 0, 0
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
        elif mark == separator and depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    return [*parts, text[start:].strip()]
