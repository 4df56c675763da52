"""Every bound benchmark has an answer, on each of the six trees."""

import re

import pytest

from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve
from tests.planning.wanted import workload_count
from tests.probing import read, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

# BLOCK_LOAD_DIRECT, fixed_delay_constructor_t<350, 450>
NAME = re.compile(r"\w+(<\d+(, \d+)*>)?")


@pytest.mark.slow
@pytest.mark.parametrize(
    "version",
    sampled(["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"], "3.0.1", "3.6.0"),
)
def test_every_workload_has_values_that_are_numbers_or_names(version):
    found = read(root(version))
    asked = places(found.cub, found.headers, re.compile(""), {})
    told = resolve(found.cub, asked, {}, ("sm90",), find_toolchain())
    assert (told.errors, told.unresolved) == ((), ())
    assert len(told.rows) == workload_count(version)
    untuned = {p.call.name for place in asked if not place.tuned for p in place.points}
    assert {row.status for row in told.rows if row.benchmark in untuned} == {"default"}
    for row in told.rows:
        assert row.values, row
        for value in row.values.values():
            assert not isinstance(value, str) or NAME.fullmatch(value), row
