"""Every bound benchmark has an answer, on each of the six trees."""

import re

import pytest

from policygen.proof.resolve import resolve
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from tests.probing import read, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

# BLOCK_LOAD_DIRECT, fixed_delay_constructor_t<350, 450>
NAME = re.compile(r"\w+(<\d+(, \d+)*>)?")


@pytest.mark.parametrize(
    ("version", "workloads"),
    sampled(
        [
            ("2.8.2", 567),
            ("3.0.1", 635),
            ("3.1.4", 617),
            ("3.2.0", 783),
            ("3.5.0", 816),
            ("3.6.0", 947),
        ],
        ("3.0.1", 635),
        ("3.6.0", 947),
    ),
)
def test_every_workload_has_values_that_are_numbers_or_names(version, workloads):
    found = read(root(version))
    asked = places(found.cub, found.headers, re.compile(""), {})
    told = resolve(found.cub, asked, {}, ("sm90",), find_toolchain())
    assert (told.errors, told.unresolved) == ((), ())
    assert len(told.rows) == workloads
    untuned = {p.call.name for place in asked if not place.tuned for p in place.points}
    assert {row.status for row in told.rows if row.benchmark in untuned} == {"default"}
    for row in told.rows:
        assert row.values, row
        for value in row.values.values():
            assert not isinstance(value, str) or NAME.fullmatch(value), row
