"""What a run leaves out, for its last lines: nothing is left out in silence."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

TIERS = {
    "slow": ("slow test", ""),
    "thorough": ("thorough test", ""),
    "browser": ("test", " that need Chromium"),
    "hipcc": ("test", " that need hipcc"),
}
"""How tests of each tier are called; a make target runs each: `make test-slow` those of `slow`."""


def tier(markers: Collection[str]) -> str | None:
    """The tier of a test with these markers: the last that is named; none for the fast one."""
    return next((name for name in reversed(TIERS) if name in markers), None)


def unwanted(expression: str) -> set[str]:
    """The tiers that an expression of markers leaves out: it ends with `not (…)` of them."""
    return {name for name in TIERS if name in expression.partition("not ")[2]}


def counted(left: Iterable[Collection[str]], tiers: Collection[str]) -> Counter[str]:
    """How many of the tests that were left out are of each of these tiers."""
    found = Counter(tier(markers) for markers in left)
    return Counter({name: found[name] for name in TIERS if found[name] and name in tiers})


def sentences(left: Mapping[str, int]) -> list[str]:
    """What was left out and which command runs it, one sentence for each tier."""
    told = []
    for name, count in left.items():
        what, need = TIERS[name]
        if count == 1:
            told.append(f"1 {what}{need.replace('need', 'needs')} was not run: make test-{name}")
        else:
            told.append(f"{count:,} {what}s{need} were not run: make test-{name}")
    return told
