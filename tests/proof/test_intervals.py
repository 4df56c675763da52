"""At which architectures headers are asked: no return begins or ends between two of them."""

from itertools import pairwise

import pytest

from policygen.bindings.words import ladder
from policygen.model.arch import arch_number
from policygen.model.selection import Differing
from policygen.proof.sites import AskedArchs, asked_archs, without_repeats
from policygen.proof.toolchain import find_toolchain
from tests.probing import TUNINGS, root


@pytest.mark.parametrize(
    "text",
    [
        "cc < ::cuda::compute_capability{10, 4}",
        "cc == cuda::compute_capability( 104 )",
        "return get_sm104_tuning(cc);",
        "struct Policy1040",
        "ChainedPolicy<1040,",
        "cc > 104",
        "case ::cuda::arch_id::sm_104:",
    ],
)
def test_what_stands_in_a_header_is_asked_and_what_comes_behind(text):
    asked = asked_archs([text.encode()], [])
    assert asked.known == {*ladder(), "sm104"}
    assert asked.between - asked_archs([], []).between == {"sm105"}
    assert list(asked.ordered) == sorted(asked.known | asked.between, key=arch_number)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("cc >= ::cuda::compute_capability{10, 39}", 139),  # CUB adds the minor version
        ("cc >= ::cuda::compute_capability{99, 99}", 998),
        ("cc.get() > 12345", 998),
    ],
)
def test_a_number_that_is_no_gpus_is_asked_too(text, number):
    asked = asked_archs([text.encode()], [])
    assert asked.known - {*ladder()} == {f"sm{number}"}
    assert asked.ordered[-1] == f"sm{number + 1}"


def test_each_interval_and_what_comes_after_all_is_asked_once():
    asked = asked_archs([], [])
    assert asked.known == {*ladder()}
    numbers = [arch_number(arch) for arch in asked.ordered]
    known = [arch_number(arch) for arch in ladder()]
    assert numbers[-1] == known[-1] + 1
    for one, following in pairwise(known):
        inside = [number for number in numbers if one < number < following]
        assert inside == ([one + 1] if following > one + 1 else [])


def test_a_compiler_may_know_more():
    assert asked_archs([], ["sm90", "sm130"]).known == {*ladder(), "sm130"}


def test_numbers_that_are_no_architectures_are_none():
    text = b"cc_items = 17; sm35 = {1, 2}; small_key_tuning_values{384,20}; key_size == 100"
    assert asked_archs([text], []).known == {*ladder()}


@pytest.mark.nvcc
def test_all_architectures_that_nvcc_lists_are_known():
    assert {*find_toolchain().archs} <= {*ladder()}


@pytest.mark.trees
@pytest.mark.parametrize("version", ["3.5.0", "3.6.0"])
def test_all_architectures_that_a_tree_names_are_known(version):
    headers = (root(version) / TUNINGS).glob("tuning_*.cuh")
    found = asked_archs([path.read_bytes() for path in headers], [])
    assert found.known == {*ladder()}
    assert found.between


def test_what_changes_as_on_the_architecture_before_is_told_once():
    def row(arch, after, legacy=False):
        values = {"before": {"items": 1}, "after": {"items": after}}
        one = {"benchmark": "cub.bench.reduce.sum", "workload": {"T": "I8"}, "arch": arch}
        return Differing(**one, **values, changed=("items",), legacy=legacy)

    archs = AskedArchs(frozenset({"sm100", "sm103", "sm110"}), frozenset({"sm101", "sm104"}))
    rows = [row("sm100", 2), row("sm101", 2), row("sm103", 2), row("sm104", 3), row("sm110", 3)]
    told = without_repeats([*rows, row("sm101", 2, legacy=True)], archs)
    assert [(one.arch, one.legacy) for one in told] == [
        ("sm100", False),
        ("sm103", False),
        ("sm104", False),
        ("sm110", False),
        ("sm101", True),
    ]
