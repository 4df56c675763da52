"""A copy of a tuning header in which every entry can be recognised by what is selected."""

from dataclasses import dataclass

from policygen.model.tuning import Entry, Family, TuningHeader

STEP = 4096
"""More than what any scaling by a type's size divides by."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The copy; the number of an entry is its place in `entries`."""

    header: TuningHeader
    data: bytes
    entries: tuple[tuple[Family, Entry], ...]
    traits: tuple[str, ...] = ()
    """What a policy selector knows of its types: its members, which the copy tells."""

    def entry(self, items: object) -> int | None:
        """Which entry a count of items in a selected policy comes from, if it is a mark."""
        if not isinstance(items, int) or items < STEP // 16:
            return None
        while items % 2 == 0:
            items //= 2
        number = items // 2
        return number if number < len(self.entries) else None


def mark(number: int) -> int:
    """An odd multiple of a power of two: what is odd survives a scaling by a type's size."""
    return STEP * (2 * number + 1)
