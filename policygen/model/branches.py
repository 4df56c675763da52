"""For which architectures the returns of policy selectors are."""

import re
from collections.abc import Iterable

from policygen.model.arch import arch_number
from policygen.model.tuning import Family

# "cc < ::cuda::compute_capability{11, 0}"
_BELOW = re.compile(r"cc\s*<\s*(?:::)?(?:\w+::)*compute_capability\{(\d+),\s*(\d+)\}")
ALWAYS = 1 << 16
"""A number that no architecture has."""


def ends(families: Iterable[Family]) -> dict[int, int]:
    """Where the returns that are for an architecture end: before which one, by number.

    A function such as `get_sm107_tuning` has its bound where it is called.
    """
    found: dict[int, int] = {}
    for family in families:
        start = arch_number(family.arch)
        bounds = [
            int(f"{match[1]}{match[2]}")
            for entry in family.entries
            for fact in entry.args
            if (match := _BELOW.fullmatch(fact))
        ]
        above = [bound for bound in bounds if bound > start]
        found[start] = max([*above, found.get(start, 0)])
    return {start: end or ALWAYS for start, end in found.items()}


def steps(families: Iterable[Family]) -> set[str]:
    """The architectures at which another return may decide."""
    found = ends(families)
    return {f"sm{number}" for number in {*found, *found.values()} if number != ALWAYS}


def own(number: int, families: Iterable[Family], target: int) -> bool:
    """Whether a later architecture has returns besides those of an earlier one."""
    return any(target < start <= number < end for start, end in ends(families).items())
