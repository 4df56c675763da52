"""Pairs the kernels of before and after, and tells whether they are the same."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from policygen.model.sass import Kernel
from policygen.proof.sass.names import function, lasting

Verdict = Literal["equal", "renamed", "moved", "different"]
# R12, UR4, P0, UP1, B3, R2.64, SB1; RZ and PT are what they are.
_REGISTER = re.compile(r"\b(U?R|U?P|B|SB)\d+\b")
# v12, s[4:5], a3 of AMD
_OF_AMD = re.compile(r"\b([vsa])(?:\d+|\[\d+:\d+\])(?!\w)")
_REUSE = re.compile(r"\.reuse\b")
# BRA +0xe10
_DISTANCE = re.compile(r"[+-]0x[0-9a-f]+$")


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel on both sides, or on one of them."""

    before: Kernel | None
    after: Kernel | None


def verdict(before: Kernel, after: Kernel) -> Verdict:
    """Judges whether a kernel is the same."""
    if same(before, after):
        return "equal" if before.name == after.name else "renamed"
    alike = _usage(before) == _usage(after) and _kinds(before) == _kinds(after)
    return "moved" if alike else "different"


def same(before: Kernel, after: Kernel) -> bool:
    """Whether two kernels differ in their names at most."""
    return before.code == after.code and _usage(before) == _usage(after)


def pairs(
    before: Sequence[Kernel], after: Sequence[Kernel], cpp: Mapping[str, str]
) -> tuple[Pair, ...]:
    """Pairs by what remains of names, then by content, then by what kernels are called.

    `cpp` has the C++ name of each.
    """
    left, right = list(before), list(after)
    found: list[Pair] = []
    rules: tuple[Callable[[Kernel], object], ...] = (
        lambda kernel: kernel.name,
        lambda kernel: (lasting(cpp[kernel.name]), _content(kernel)),
        lambda kernel: lasting(cpp[kernel.name]),
        _content,
        lambda kernel: function(lasting(cpp[kernel.name])),
    )
    for rule in rules:
        found += _take(left, right, rule)
    found += [Pair(kernel, None) for kernel in left]
    found += [Pair(None, kernel) for kernel in right]
    return tuple(sorted(found, key=_name))


def _take(left: list[Kernel], right: list[Kernel], rule: Callable[[Kernel], object]) -> list[Pair]:
    """Pairs the kernels that a rule gives the same, and takes them from both lists."""
    waiting: defaultdict[object, list[Kernel]] = defaultdict(list)
    for kernel in right:
        waiting[rule(kernel)].append(kernel)
    found = [Pair(k, waiting[rule(k)].pop(0)) for k in left if waiting[rule(k)]]
    taken = {id(kernel) for pair in found for kernel in (pair.before, pair.after)}
    left[:] = [kernel for kernel in left if id(kernel) not in taken]
    right[:] = [kernel for kernel in right if id(kernel) not in taken]
    return found


def _usage(kernel: Kernel) -> tuple[dict[str, int], int | None]:
    return kernel.resources, kernel.max_threads


def _content(kernel: Kernel) -> object:
    return kernel.code, tuple(sorted(kernel.resources.items())), kernel.max_threads


def _kinds(kernel: Kernel) -> Counter[str]:
    """Its instructions without registers and order."""
    return Counter(_kind(instruction) for instruction in kernel.code)


def _kind(instruction: str) -> str:
    text = _DISTANCE.sub("→", _REUSE.sub("", instruction))
    return _OF_AMD.sub(r"\1", _REGISTER.sub(r"\1", text))


def _name(pair: Pair) -> str:
    kernel = pair.after or pair.before
    assert kernel is not None
    return kernel.name
