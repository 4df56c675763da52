"""Variant labels: `ipt_19.tpb_512` is two parameters with their values."""

import re

# "lbs_-2", "ipt_19": values can be negative, names can hold underscores
_PART = re.compile(r"(.+)_(-?\d+)")


def label_parts(label: str) -> list[tuple[str, int] | None]:
    """Each part's parameter and value; none for a part that is no parameter."""
    parts = (_PART.fullmatch(part) for part in label.split("."))
    return [(part[1], int(part[2])) if part else None for part in parts]
