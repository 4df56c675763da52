"""What upstream wrote is written again from its own labels."""

import pytest

from benchmarks.replays import SAID_OTHERWISE, SAME, deleted
from tests.probing import root
from tests.tiers import slow


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_entries_that_were_taken_out_come_back():
    """Also the first of a family, and with members that no entry has; none is refused."""
    found = deleted(root("3.0.1"), "sm100")
    assert {one.ending for one in found} == {SAME, SAID_OTHERWISE}
    otherwise = [one for one in found if one.ending == SAID_OTHERWISE]
    # Upstream's labels and values differ there: counts that were scaled, exponents, delays.
    assert {one.reason.partition(" ")[0] for one in otherwise} <= {
        "items",
        "items_per_vec_load",
        "delay_constructor",
    }
    assert len(otherwise) < len(found) / 4
