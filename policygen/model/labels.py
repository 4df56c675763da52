"""Variant labels: `ipt_19.tpb_512` is two parameters with their values; `base` is none."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from policygen.untrusted import visible

BASE = "base"
IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
"""What a parameter can be called."""
LIMIT = 1 << 31
"""A value fits an `int` of C++."""
MOST = 64
"""Parameters of a benchmark."""
# "lbs_-2", "ipt_19": values can be negative, names can hold underscores
_PART = re.compile(rf"({IDENTIFIER})_(0|-?[1-9][0-9]{{0,9}})")


def parse_label(label: str) -> dict[str, int] | None:
    """The parameters by name; none for what is no variant label, as base is none.

    A label is `name_value` joined by dots; no name twice, no value with a zero before it.
    """
    parts = label.split(".", MOST)
    found = [match for part in parts if (match := _PART.fullmatch(part))]
    values = {match[1]: int(match[2]) for match in found}
    if len(values) != len(parts) or len(parts) > MOST:
        return None
    return values if all(-LIMIT <= value < LIMIT for value in values.values()) else None


def as_label(values: Mapping[str, int]) -> str:
    """`ipt_19.tpb_512`: what parses as these values."""
    return ".".join(f"{name}_{value}" for name, value in values.items())


def is_label(text: str) -> bool:
    """Whether something is the name of a variant, or of base."""
    return text == BASE or parse_label(text) is not None


def _checked(text: str) -> str:
    if not is_label(text):
        raise ValueError(f"{shortened(text)} is no variant label")
    return text


def shortened(text: str) -> str:
    """What is no label, in quotes, as far as it fits a message."""
    shown = visible(text[:60])
    return f"'{shown}{'…' if len(text) > 60 else ''}'"


Variant = Annotated[str, AfterValidator(_checked)]
"""The label of a variant, in what is read from a file."""
