"""Which cases `make test` takes as a sample, and which are left to `make test-slow`."""

from collections.abc import Iterable

import pytest

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
