"""What an entry is a specialization for, whatever its parameters are called."""

import re

from policygen.bindings.load import types
from policygen.model.tuning import Entry

# "cuda::std::int8_t", "::cuda::std::plus<>", "std::int8_t"
_STANDARD = re.compile(r"(?<![\w:])(?:::)?(?:cuda::)?std::")
_WORD = re.compile(r"[A-Za-z_]\w*")
# "sm90_tuning<double, accum_size::_8>"
_TEMPLATE = re.compile(r"(?:[\w:]*::)?(\w+)\s*(?:<(.*)>)?\s*$", re.DOTALL)
_OPEN, _CLOSE = "<([{", ">)]}"


def normal(text: str) -> str:
    """A spelling without spaces and standard namespaces, with one name for each type."""
    names = types().spellings
    plain = _WORD.sub(lambda word: names.get(word[0], word[0]), _STANDARD.sub("", text))
    return "".join(plain.split())


def parameter_names(entry: Entry) -> tuple[str, ...]:
    """What an entry's own template parameters are called."""
    return tuple(entry.own_parameters)


def key(entry: Entry) -> tuple[str, ...]:
    """The arguments, with template parameters numbered in the order in which they appear."""
    names = set(parameter_names(entry))
    numbers: dict[str, str] = {}

    def number(word: re.Match[str]) -> str:
        if word[0] not in names:
            return word[0]
        return numbers.setdefault(word[0], f"${len(numbers)}")

    return tuple(normal(_WORD.sub(number, arg)) for arg in entry.args)


def mentions(text: str, names: tuple[str, ...]) -> bool:
    """Whether one of the names is in a spelling."""
    return not set(names).isdisjoint(_WORD.findall(text))


def overlap(one: Entry, other: Entry) -> bool:
    """Whether some arguments might match both; in doubt they might."""
    if len(one.args) != len(other.args):
        return True
    mine, theirs = parameter_names(one), parameter_names(other)
    return all(
        mentions(a, mine) or mentions(b, theirs) or normal(a) == normal(b)
        for a, b in zip(one.args, other.args, strict=True)
    )


def split_template(text: str) -> tuple[str, tuple[str, ...]]:
    """`sm90_tuning<KeyT, 4>` as its name and its arguments."""
    match = _TEMPLATE.match(text)
    if match is None:
        return text, ()
    return match[1], split_args(match[2] or "")


def split_args(text: str) -> tuple[str, ...]:
    """What stands between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in _OPEN) - (char in _CLOSE)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts if part.strip())
