"""Reads a probe's answers out of its PTX."""

import json
import re
from collections.abc import Mapping
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
"""Size of the caches of parsed answers."""
# cub::CUB_300600_SM_520::LOAD_CA, cuda::std::__4::plus<void>, cub::_V_300600_SM_520::NullType
_INLINE = re.compile(r"\b(?:CUB_\d\w*|_V_\w+|__\d+|cuda14std_\w+)::")
# "signed int" for std::int32_t, "__nv_bool *": the compiler's own spellings
_OWN_WORDS = re.compile(r"\bsigned (?=short\b|int\b|long\b)|\b__nv_(?=bool\b)")
# The start of a qualified name, where a leading `::` is missing.
_OUTERMOST = re.compile(r"(?<![\w:])(?=(?:cub|cuda)::)")
_OPENING, _CLOSING = "<([{", ">)]}"
_PUNCTUATION = re.compile(r"[<([{>)\]},;]")


def read_answers(ptx: str) -> dict[int, tuple[str, ...]]:
    """Returns the answers by row, each as the compiler prints the type."""
    answers_by_row: dict[int, tuple[str, ...]] = {}
    shared_texts, repeated = [], dict[int, tuple[str, ...]]()
    for match in _BYTES.finditer(ptx):
        data = _bytes(match)
        if b"policygen_probe::row<" in data:
            text = data.decode(errors="replace")
            try:
                number, *answers = _facts(text)
                row, row_answers = int(_inside(number)), tuple(answers)
            except ValueError as error:
                raise _unreadable_answer(text) from error
            if answers_by_row.setdefault(row, row_answers) != row_answers:
                raise _duplicate_answer(row)
        elif b"policygen_probe::shared<" in data:
            shared_texts.append(data.decode(errors="replace"))
    source_by_row = {row: row for row in answers_by_row}
    for text in shared_texts:
        for row, (source, besides) in _shared_rows(text, answers_by_row).items():
            if source_by_row.setdefault(row, source) != source or row in repeated:
                raise _duplicate_answer(row)
            repeated[row] = (*answers_by_row[source], *besides)
    answers_by_row |= repeated
    if not answers_by_row:
        # An empty result must not be mistaken for "nothing is selected".
        raise InputError("the probe's PTX contains no answers", "Please report this.")
    return answers_by_row


def _duplicate_answer(row: int) -> InputError:
    """A header may contain text that looks like an answer."""
    return InputError(
        f"the probe's PTX contains two answers to question {row}",
        "Check whether a header contains text that looks like an answer.",
    )


def _shared_rows(
    text: str, answers_by_row: Mapping[int, tuple[str, ...]]
) -> dict[int, tuple[int, tuple[str, ...]]]:
    """Maps each row of a workload to the row whose answers it repeats, and its extra answers."""
    # … [with int First = 7; int Count = 2; int Facts = 0; …]
    try:
        first, count, *facts = (int(part.rstrip("UL")) for part in _facts(text))
    except ValueError as error:
        raise _unreadable_answer(text) from error
    if count < 1 or len(facts) not in {count, 3 * count}:
        raise _unreadable_answer(text)
    offsets, *remaining = (
        facts[position : position + count] for position in range(0, len(facts), count)
    )
    if not all(
        offset <= position and first + offset in answers_by_row
        for position, offset in enumerate(offsets)
    ):
        raise _unreadable_answer(text)
    since, default = remaining or ([], [])
    extra: list[tuple[str, ...]] = [
        (f"value<{arch}>", f"value<{str(bool(is_default)).lower()}>")
        for arch, is_default in zip(since, default, strict=True)
    ]
    return {
        first + position: (first + offset, extra[position] if extra else ())
        for position, offset in enumerate(offsets)
    }


def pack(ptx: str) -> str:
    """Packs the answers of a PTX, storing each text once: thousands of rows repeat the same few."""
    rows = read_answers(ptx)
    texts = list(dict.fromkeys(text for row in rows.values() for text in row))
    indices = {text: index for index, text in enumerate(texts)}
    packed = {row: [indices[text] for text in row_answers] for row, row_answers in rows.items()}
    return json.dumps([texts, packed], separators=(",", ":"))


def unpack(packed: str) -> dict[int, tuple[str, ...]]:
    """Unpacks what `pack` returned."""
    texts, rows = json.loads(packed)
    return {int(row): tuple([texts[index] for index in indices]) for row, indices in rows.items()}


def _bytes(match: re.Match[str]) -> bytes:
    try:
        # json.loads is the fastest parser available; a large unit has a million digits.
        return bytes(json.loads(f"[{match[1]}]")).rstrip(b"\0")
    except ValueError as error:
        raise _unreadable_answer(match[0]) from error


# Thousands of rows have the same few answers.
@lru_cache(maxsize=KNOWN)
def value(answer: str) -> Value:
    """Parses `value<128>` as 128, `value<cub::…::LOAD_CA>` as `LOAD_CA`, `type<…>` as the type."""
    text = plain(_inside(answer))
    if match := _NUMBER.fullmatch(text):
        return int(match[1])
    return {"true": True, "false": False}.get(text, text)


@lru_cache(maxsize=KNOWN)
def key(answer: str) -> tuple[int, tuple[str, ...]]:
    """Parses `family<value<7>, type<int>, value<…::_4>>` as the entry and the arguments.

    The entry is -1 if there is none: the primary template is only declared.
    """
    number, *args = split(_inside(answer), ",")
    return int(_inside(number)), tuple(plain(_inside(arg)) for arg in args)


@lru_cache(maxsize=KNOWN)
def types(answer: str) -> tuple[str, ...]:
    """Parses `family<type<int>, type<cub::…::CacheLoadModifier>>` as the types."""
    inside = _inside(answer)
    return tuple(map(type_name, split(inside, ","))) if inside else ()


@lru_cache(maxsize=KNOWN)
def type_name(answer: str) -> str:
    """Parses `type<cub::…::policy<signed long>>` as `policy<long>`, however it was declared."""
    return _OWN_WORDS.sub("", plain(_inside(answer)))


@lru_cache(maxsize=KNOWN)
def fields(answer: str) -> tuple[str, tuple[int, ...] | None]:
    """Parses `fields<cub::…::ReducePolicy, 256L, 16L>` as type and values; None if unreadable."""
    first, *rest = split(_inside(answer), ",")
    if answer.startswith("type<"):
        return plain(_inside(answer)), None
    return plain(first), tuple(int(text.rstrip("UL")) for text in rest)


@lru_cache(maxsize=KNOWN)
def spelled(answer: str) -> str:
    """Spells `value<cub::…::LOAD_CA>` as `::cub::LOAD_CA`, which is valid anywhere in C++."""
    text = _OWN_WORDS.sub("", _OUTERMOST.sub("::", _INLINE.sub("", _inside(answer))))
    return match[1] if (match := _NUMBER.fullmatch(text)) else text


def plain(text: str) -> str:
    """Removes namespaces from a name; `688U` becomes 688."""
    return re.sub(r"\b(\d+)U?L{0,2}\b", r"\1", _SCOPE.sub("", text))


def _unreadable_answer(text: str) -> InputError:
    return InputError(
        f"the probe's PTX contains an unreadable answer: {text}", "Please report this."
    )


def _facts(text: str) -> list[str]:
    """Splits `… [with Answers = A; Answers = B]` or `[with Answers = <A, B>]` into its values."""
    inside = text.partition("[with ")[2].removesuffix("]")
    return [part.partition(" = ")[2] for part in split(inside, ";")]


def _inside(text: str) -> str:
    """Returns the text between the outermost angle brackets."""
    return text[text.index("<") + 1 : text.rindex(">")].strip()


def split(text: str, separator: str) -> list[str]:
    """Splits at separators outside of brackets."""
    parts, depth, start = [], 0, 0
    for match in _PUNCTUATION.finditer(text):
        character = match[0]
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == separator and depth == 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()]
