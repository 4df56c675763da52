"""Variants and search spaces: which belongs to which, and how far two are from each other."""

from collections.abc import Sequence

from policygen.model.bench import ParameterRange
from policygen.model.labels import parse_label


def fits(label: str, space: Sequence[ParameterRange]) -> bool:
    """Whether a variant belongs to a search space."""
    values = parse_label(label)
    if values is None or set(values) != {parameter.label for parameter in space}:
        return False
    return all(values[parameter.label] in parameter.values for parameter in space)


def distance(label: str, current: str) -> float:
    """How far a variant is from another: the sum of its parameters' relative changes."""
    values, others = parse_label(label), parse_label(current)
    if values is None or others is None:
        return float("inf")
    total = 0.0
    for name in values.keys() | others.keys():
        if name not in values or name not in others:
            total += 1.0
            continue
        scale = max(abs(values[name]), abs(others[name]), 1)
        total += abs(values[name] - others[name]) / scale
    return total
