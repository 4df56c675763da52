"""Which cases `make test` takes as a sample, and which are left to `make test-slow`."""

import os
from collections.abc import Iterable

import pytest

EVERY_UNIT = bool(os.environ.get("POLICYGEN_EVERY_UNIT"))
"""Whether units of measuring are compiled for all versions and kinds of types: `make test-units`.

Else each benchmark of CUB 3.6.0 and 3.0.1 is: all of them take half an hour of two cores.
"""
slow = pytest.mark.slow


def sampled(cases: Iterable[object], *first: object) -> list[object]:
    """Cases of a parametrised test: those that are named run always, the others are slow.

    One that is named and is none of the cases would be a sample of nothing.
    """
    found = list(cases)
    assert set(first) <= set(found), first
    return [one if one in first else _slow(one) for one in found]


def _slow(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=slow)
