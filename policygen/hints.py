"""What a person may have meant who typed what nothing matches."""

import re
from collections.abc import Iterable

SHOWN = 12
"""As many names as a message lists."""


def anchored(pattern: re.Pattern[str], names: Iterable[str]) -> str | None:
    """That -R matches from the beginning of a name, where it would match further behind."""
    if not pattern.pattern or not (near := [n for n in names if pattern.search(n)]):
        return None
    return (
        f"-R matches from the beginning of a name: -R '.*{pattern.pattern}' matches {listed(near)}"
    )


def listed(names: Iterable[str]) -> str:
    """`a, b and 48 more`."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
