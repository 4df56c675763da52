"""Guarded returns as reviewed: what is written for two workloads of every writable benchmark.

Only the added lines are kept, they are policygen's own, and how many lines go.
UPDATE_GOLDENS=1 writes them anew.
"""

import os
from collections import defaultdict

import pytest

from tests.planning.test_every_family import same_for_all, winners
from tests.planning.test_goldens import GOLDENS, shown
from tests.planning.wanted import Planned
from tests.probing import root

CASES = [("3.6.0", "sm90", "only"), ("3.5.0", "sm100", "later")]


def first_and_last(wanted):
    """Two workloads of each benchmark."""
    found = defaultdict(list)
    for one in wanted:
        found[one.algorithm].append(one)
    return [one for group in found.values() for one in (group[0], group[-1])]


@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(("version", "arch", "reach"), CASES)
def test_returns_are_written_as_reviewed(version, arch, reach):
    planned = Planned(
        root(version),
        first_and_last(winners(version)),
        together=same_for_all,
        arch=arch,
        force=True,
        reach=reach,
    )
    assert planned.effect().wrong == ()
    path = GOLDENS / f"returns_{version}_{arch}.txt"
    text = shown(planned)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text)
    assert text == path.read_text()
