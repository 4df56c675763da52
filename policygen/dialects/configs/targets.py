"""Targets of pickers as headers spell them, and the list of those that there are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policygen.bindings.archs import generation
from policygen.dialects.configs.pickers import GENERIC
from policygen.errors import InputError
from policygen.model.arch import arch_and_gpu
from policygen.model.base import Span
from policygen.source.brackets import closing_angle, split_list
from policygen.source.spelling import line_start
from policygen.source.splice import replaced
from policygen.source.text import Text, squeeze

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
