"""Every tuning header of every tree is bound, and what changes in any of them is told."""

import json

import pytest

from policygen import trees
from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion
from tests.cli.tuned import run
from tests.probing import changed_tree, header, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

VERSIONS = ("2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0")
# By header what is changed in all places, and where the workloads get other threads.
CHANGES = {
    "3.6.0": {
        "tuning_for.cuh": (b"ForPolicy{256, 2}", b"ForPolicy{1000, 2}"),
        "tuning_segmented_radix_sort.cuh": (b"192,", b"1000,"),
        "tuning_transform_tile.cuh": (b"return items *", b"return 2 * items *"),
        "tuning_find_bound_sorted_values.cuh": (b"Policy{512, ipt", b"Policy{1000, ipt"),
    },
    "2.8.2": {
        "tuning_for.cuh": (b"policy_t<256, 2>", b"policy_t<1000, 2>"),
        "tuning_merge.cuh": (b"agent_policy_t<512,", b"agent_policy_t<1000,"),
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_header_that_holds_policies_is_bound(version):
    known = {site.header for algorithm in bound(BoundVersion(version)) for site in algorithm.sites}
    named = {path.name for path in trees.tuning_headers(trees.open_tree(root(version)))}
    assert named - known == set()


@pytest.mark.slow
@pytest.mark.parametrize("version", sampled(CHANGES, "3.6.0"))
def test_a_value_that_changes_in_a_header_without_entries_is_told(capsys, tmp_path, version):
    made = {
        name: header(version, name).replace(*change) for name, change in CHANGES[version].items()
    }
    assert all(made[name] != header(version, name) for name in made)
    changed = changed_tree(tmp_path, version, made)
    decided = [
        benchmark.name
        for algorithm in bound(BoundVersion(version))
        for benchmark in algorithm.benchmarks
        for site in algorithm.sites
        if site.name == benchmark.site and site.header in made
    ]
    given = ("--cub", changed, "-q")
    arguments = ("--compare", root(version), "--arch", "sm90", "--json")
    status, out, _ = run(capsys, "resolve", *made, *given, *arguments)
    assert status == 1
    rows = json.loads(out)["different"]
    assert {row["benchmark"] for row in rows} == set(decided)
    status, out, _ = run(capsys, "review", *given, "--base", root(version), "--format", "json")
    others = json.loads(out)["others"]
    sizes = {row["benchmark"] for row in others if {"threads", "tile_size"} & {*row["changed"]}}
    assert sizes == set(decided)
