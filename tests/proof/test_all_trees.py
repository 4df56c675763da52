"""Every bound benchmark has an answer, on each of the six trees."""

import re

import pytest

from policygen.app.resolve import ask_reach
from policygen.bindings.load import bound
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from policygen.proof.values import resolve, unseen_since
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
    told, errors = resolve(found.cub, asked, {}, ("sm90",), find_toolchain())
    assert (errors, told.unresolved) == ((), ())
    assert len(told.rows) == workload_count(version)
    untuned = {p.call.name for place in asked if not place.tuned for p in place.points}
    assert {row.status for row in told.rows if row.benchmark in untuned} == {"default"}
    for row in told.rows:
        assert row.values, row
        for value in row.values.values():
            assert not isinstance(value, str) or NAME.fullmatch(value), row


def sites_of(tree):
    return [site for algorithm in bound(tree.cub.bindings) for site in algorithm.sites]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.5.0", "3.6.0"])
def test_every_return_is_for_something_that_a_site_asks_for(version):
    tree = read(root(version))
    unseen = {header.name: unseen_since(header, sites_of(tree)) for header in tree.headers}
    assert {name for name, arch in unseen.items() if arch is not None} == set()


def test_returns_for_a_part_that_no_site_asks_for_are_noticed():
    """Batched top-k before its cluster policy was bound: everything was called a default."""
    tree = read(root("3.6.0"))
    sites = [site.model_copy(update={"policy": ""}) for site in sites_of(tree)]
    unseen = {header.name: unseen_since(header, sites) for header in tree.headers}
    assert unseen["tuning_batched_topk.cuh"] == 100


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"])
def test_every_scanned_entry_is_reached_or_dead_or_not_asked(version):
    tree = read(root(version))
    result = ask_reach(tree, find_toolchain())
    scanned = [
        f"{family.namespace}::{family.name}"
        for header in tree.headers
        for family in (*header.families, *header.selectors)
        for entry in family.entries
        if not entry.disabled and entry.kind != "primary" and entry.specific
        if entry.members or entry.kind != "branch"
    ]
    judged = [name for name in scanned if name not in result.unasked]
    assert (result.errors, result.unknown) == ((), {})
    assert len(judged) == result.entries
    assert all(dead.reason for dead in result.unreachable)
