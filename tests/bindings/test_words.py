"""What `schemas/words.toml` calls things is what bindings call them."""

import pytest

from policygen.bindings.load import bindings, types
from policygen.bindings.words import words

SCALED = {
    path.rpartition(".")[2]
    for binding in bindings()
    for one in (*binding.families, *binding.selectors)
    for path, rule in one.members.items()
    if rule.unit
}


@pytest.mark.parametrize("member", sorted(SCALED))
def test_what_has_a_unit_counts_items_or_threads(member):
    assert (member in words().members.items) != words().members.counts_threads(member)


def test_a_member_is_told_by_the_last_part_of_its_path():
    assert words().members.counts_threads("multi_tile.threads_per_block")
    assert not words().members.counts_threads("threads_per_block.items")


def test_threads_and_items_have_limits():
    known = {member for limit in types().limits for member in limit.members}
    assert {*words().members.threads, *words().members.items, *words().members.vectors} <= known
