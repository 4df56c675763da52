"""Which of the measured variants a workload's policy shows: whoever wrote its values."""

from collections.abc import Sequence
from contextlib import suppress

from policygen.errors import InputError
from policygen.planning.places import PlacedResult


def shown_variant(case: PlacedResult, labels: Sequence[str], named: str | None) -> str | None:
    """The one with its values; the one that its comment names first, where it has them.

    One whose benchmark fixes more than an entry says comes last: what the entry says is the same.
    """
    ordered = [label for label in dict.fromkeys((named, *labels)) if label]
    for whole in (True, False):
        for label in ordered:
            if _shows(case, label, whole=whole):
                return label
    return None


def _shows(case: PlacedResult, label: str, *, whole: bool) -> bool:
    with suppress(InputError):  # a label that the entry cannot say is not what it has
        members = case.members(label)
        if whole:
            return case.has(members, label)
        now, wanted = case.spot.told.values, case.spot.expected(members)
        return bool(wanted) and all(now.get(name) == value for name, value in wanted.items())
    return False
