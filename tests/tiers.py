"""Which cases `make test` takes as a sample, and which are left to `make test-slow`."""

import os
from collections.abc import Iterable

import pytest

EVERY_UNIT = bool(os.environ.get("POLICYGEN_EVERY_UNIT"))
"""Whether all versions and kinds of types are compiled: `make test-units`.

Else each benchmark of CUB 3.6.0 is measured, and some of 3.0.1, and what compiles most has two or
three versions: CI has an hour of two cores.
"""
slow = pytest.mark.slow


def of_each(cases: Iterable[tuple[str, object]]) -> list[object]:
    """Of cases with their version of CUB: those of 3.6.0, and each fourth of 3.0.1; or all."""
    found = list(cases)
    if EVERY_UNIT:
        return [case for _, case in found]
    newest = [case for version, case in found if version == "3.6.0"]
    return newest + [case for version, case in found if version == "3.0.1"][::4]


def in_ci(cases: Iterable[object], *left: object) -> list[object]:
    """Cases without those that `make test-units` alone has."""
    found = list(cases)
    assert all(one in found for one in left), left
    return [one for one in found if EVERY_UNIT or one not in left]


def sampled(cases: Iterable[object], *first: object) -> list[object]:
    """Cases of a parametrised test: those that are named run always, the others are slow.

    One that is named and is none of the cases would be a sample of nothing.
    """
    found = list(cases)
    assert all(one in found for one in first), first
    return [one if one in first else _slow(one) for one in found]


def _slow(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=slow)
