"""Which cases `make test` takes as a sample, and which are left to the other tiers."""

from collections.abc import Iterable

import pytest

slow = pytest.mark.slow
thorough = pytest.mark.thorough


def sampled(cases: Iterable[object], *first: object, left: Iterable[object] = ()) -> list[object]:
    """Cases of a parametrized test: those named first run always, others are slow.

    Those left are thorough. One that is named and is no case would be a sample of nothing.
    """
    found, most = list(cases), list(left)
    assert all(one in found for one in (*first, *most)), (first, most)
    return [
        one if one in first else _marked(one, thorough if one in most else slow) for one in found
    ]


def without(cases: Iterable[object], *left: object) -> list[object]:
    """Cases of a parametrized test, of which those left are thorough."""
    found = list(cases)
    return sampled(found, *(one for one in found if one not in left), left=left)


def earlier(cases: Iterable[tuple[str, object]]) -> list[object]:
    """Of cases with their version of CUB all but 3.6.0's and a fourth of 3.0.1's."""
    found = list(cases)
    older = [case for version, case in found if version == "3.0.1"]
    return [case for version, case in found if version != "3.6.0" and case not in older[::4]]


def _marked(case: object, mark: pytest.MarkDecorator) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=mark)
