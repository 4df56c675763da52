"""Values before and after a change, in words."""

from collections.abc import Mapping

from policygen.model.tuning import Value, spell


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[str]:
    """`items 4 → 7` for each value that differs; one that only one side has is told, too."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        f"{name} {spell(before.get(name, 'nothing'))} → {spell(after.get(name, 'nothing'))}"
        for name in names
        if before.get(name) != after.get(name)
    ]
