"""Made-up results for tables by hand: what is written where, what is proven, and taken back."""

import re

import pytest

from policygen.cli.main import main
from tests.rocprim.places import by_hand_tree, resolved, rows_of
from tests.rocprim.tuned import against, applied, as_json, imported, on, row_for

pytestmark = [pytest.mark.trees, pytest.mark.usefixtures("wide")]

NONE = "rocprim::empty_type"
KEYS = {"key_type": "int", "value_type": NONE}
PAIR = {"key_type": "int", "value_type": "int"}


def tree_of(tmp_path, release):
    return by_hand_tree(tmp_path, release)


def contents(tree):
    return {path.name: path.read_bytes() for path in (tree / "rocprim/device").glob("*.hpp")}


def everywhere(capsys, tree, *options):
    """What every workload has on every architecture."""
    return {key: row[0] for key, row in rows_of(resolved(capsys, tree, *options)[0]).items()}


def changed(before, after):
    """The rows with other values, and those values."""
    assert before.keys() == after.keys()
    return {
        key: {name: value for name, value in after[key].items() if value != before[key].get(name)}
        for key in before
        if after[key] != before[key]
    }


def plant(capsys, tree, arch, planted):
    """Imports results that are better with some other values."""
    document = on(capsys, tree, arch)
    runs = []
    for algorithm, workload, values in planted:
        runs += against(row_for(document, algorithm, **workload), values)
    status, _, err = imported(capsys, tree, runs, arch)
    assert status == 0, err


def asked(planted):
    return "rocprim.device_(" + "|".join({one for one, _, _ in planted}) + ")$"


PLANTED = [
    (
        "5.3.3",
        "gfx803",
        [
            ("merge", KEYS, {"ipt": 12}),
            ("merge", {**KEYS, "key_type": "float"}, {"ipt": 12}),
            ("radix_sort", {**PAIR, "value_type": "short"}, {"sort_ipt": 11}),
            ("reduce", {"key_type": "double"}, {"bs": 128}),
            ("merge_sort", {"key_type": "rocprim::half", "value_type": NONE}, {"merge_bs": 512}),
        ],
        {
            ("merge", "int", NONE): {"ItemsPerThread": 12},
            ("merge", "float", NONE): {"ItemsPerThread": 12},
            ("radix_sort", "int", "short"): {"SortConfig.ItemsPerThread": 11},
            ("reduce", "double"): {"BlockSize": 128},
            ("merge_sort", "rocprim::half", NONE): {"MergeImpl1BlockSize": 512},
        },
    ),
    (
        "5.3.3",
        "gfx942",
        [
            ("merge_sort", PAIR, {"sort_ipt": 8}),
            ("scan_by_key", PAIR, {"ipt": 6}),
            (
                "histogram",
                {"value_type": "int", "channels": "3", "active_channels": "3"},
                {"max_grid_size": 512},
            ),
        ],
        {
            ("merge_sort", "int", "int"): {"SortItemsPerThread": 8},
            ("scan_by_key", "int", "int"): {"ItemsPerThread": 6},
            ("histogram", "int", "3", "3"): {"MaxGridSize": 512},
        },
    ),
    (
        "5.7.1",
        "gfx906",
        [
            ("segmented_radix_sort", PAIR, {"ipt": 9}),
            ("adjacent_difference", {"value_type": "short"}, {"ipt": 9}),
            ("select", {"data_type": "double"}, {"bs": 128}),
            ("transform", {"data_type": "int"}, {"ipt": 7}),
        ],
        {
            ("segmented_radix_sort", "int", "int"): {"SortConfig.ItemsPerThread": 9},
            ("adjacent_difference", "short"): {"ItemsPerThread": 9},
            ("select", "double"): {"BlockSize": 128},
            ("transform", "int"): {"ItemsPerThread": 7},
        },
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("release", "arch", "planted", "expected"), PLANTED)
def test_changes_are_resolved_as_written_and_nothing_else_changes(
    tmp_path, capsys, release, arch, planted, expected
):
    tree = tree_of(tmp_path, release)
    own = "gfx942" if release == "5.3.3" else "gfx1102"  # the others know no such architecture
    archs = f"unknown,gfx803,gfx900,gfx906,gfx908,gfx90a,gfx1030,{own}"
    options = ("--arch", archs, "-R", "rocprim.device_")
    before, old = everywhere(capsys, tree, *options), contents(tree)
    plant(capsys, tree, arch, planted)
    assert "reject" not in applied(capsys, tree, arch=arch)
    found = changed(before, everywhere(capsys, tree, *options))
    assert found == {
        (f"rocprim.device_{algorithm}", *types, arch): values
        for (algorithm, *types), values in expected.items()
    }
    written = contents(tree)
    assert {name for name in old if old[name] != written[name]} == {
        f"device_{algorithm}_config.hpp" for algorithm, _, _ in planted
    }
    status, effect = as_json(capsys, "verify-effect", "--cub", str(tree), "--store", "store.db")
    assert (status, effect["wrong"]) == (0, [])
    assert main(["undo", "--cub", str(tree), "--store", "store.db"]) == 0
    capsys.readouterr()
    assert contents(tree) == old
    applied(capsys, tree, arch=arch)
    assert contents(tree) == written
    assert "nothing to write\n" in applied(capsys, tree, arch=arch)


def lines(old, new):
    """What is gone, and what is new."""
    before, after = old.decode().split("\n"), new.decode().split("\n")
    return [one for one in before if one not in after], [one for one in after if one not in before]


def written(capsys, tree, arch, planted, *options):
    """What `apply` says, and the lines that are gone and new."""
    (algorithm,) = {one for one, _, _ in planted}
    name = f"device_{algorithm}_config.hpp"
    old = contents(tree)[name]
    plant(capsys, tree, arch, planted)
    told = applied(capsys, tree, *options, arch=arch)
    return told, *lines(old, contents(tree)[name])


FLOAT = {**KEYS, "key_type": "float"}


@pytest.mark.slow
def test_a_case_whose_types_all_want_the_same_changes_in_place(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    planted = [("merge", KEYS, {"ipt": 12}), ("merge", FLOAT, {"ipt": 12})]
    told, gone, new = written(capsys, tree, "gfx803", planted)
    assert len(re.findall(r"^update ", told, re.M)) == 2
    assert gone == []  # other architectures have the same line
    assert new == ["        select_type_case<sizeof(Key) <= 4, merge_config<256, 12> >,"]


@pytest.mark.slow
def test_a_type_that_was_measured_alone_gets_a_case_before_the_one_that_it_had(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    told, gone, new = written(capsys, tree, "gfx803", [("merge", KEYS, {"ipt": 12})])
    assert "add rocprim.device_merge key_type=int value_type=rocprim::empty_type: " in told
    assert gone == []
    assert new == [
        "        select_type_case<std::is_same<Key, int>::value, merge_config<256, 12>>,"
    ]
    # A case that names its type is that type's.
    told, gone, new = written(capsys, tree, "gfx803", [("merge", KEYS, {"ipt": 9})])
    assert "update rocprim.device_merge key_type=int value_type=rocprim::empty_type: " in told
    assert len(gone) == len(new) == 1


@pytest.mark.slow
def test_types_of_one_case_that_want_different_values_get_cases_of_their_own(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    plant(capsys, tree, "gfx803", [("merge", KEYS, {"ipt": 12}), ("merge", FLOAT, {"ipt": 13})])
    old = contents(tree)["device_merge_config.hpp"]
    applied(capsys, tree, arch="gfx803")
    _, new = lines(old, contents(tree)["device_merge_config.hpp"])
    assert new == [
        "        select_type_case<std::is_same<Key, float>::value, merge_config<256, 13>>,",
        "        select_type_case<sizeof(Key) <= 4, merge_config<256, 12> >,",
    ]


@pytest.mark.slow
def test_what_stays_keeps_its_case_where_others_get_another_one(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    document = on(capsys, tree, "gfx803")
    runs = against(row_for(document, "merge", **KEYS), {"ipt": 12})
    runs += against(row_for(document, "merge", **FLOAT), {"ipt": 12}, gain=0.7)
    imported(capsys, tree, runs, "gfx803")
    old = contents(tree)["device_merge_config.hpp"]
    applied(capsys, tree, "--collisions", "split", arch="gfx803")
    _, new = lines(old, contents(tree)["device_merge_config.hpp"])
    assert new == [
        "        select_type_case<std::is_same<Key, float>::value, merge_config<256, 10>>,",
        "        select_type_case<sizeof(Key) <= 4, merge_config<256, 12> >,",
    ]


@pytest.mark.slow
def test_an_architecture_that_shares_its_config_gets_a_copy(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    planted = [("merge", KEYS, {"ipt": 12}), ("merge", FLOAT, {"ipt": 12})]
    _, gone, new = written(capsys, tree, "gfx900", planted)
    assert gone == ["        select_arch_case<900, merge_config_900<Key, Value>>,"]
    assert new == [
        "struct merge_config_gfx900",
        "struct merge_config_gfx900<Key, empty_type>",
        "        select_type_case<sizeof(Key) <= 4, merge_config<256, 12> >,",
        "        select_arch_case<900, merge_config_gfx900<Key, Value>>,",
    ]


@pytest.mark.slow
def test_an_architecture_may_share_what_is_written(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    planted = [("merge", KEYS, {"ipt": 12}), ("merge", FLOAT, {"ipt": 12})]
    told, gone, new = written(capsys, tree, "gfx900", planted, "--reach", "later")
    assert "rocprim.device_merge key_type=int value_type=rocprim::empty_type on unknown" in told
    assert (gone, len(new)) == ([], 1)


@pytest.mark.slow
def test_a_table_without_rows_gets_its_first(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.7.1")
    planted = [("adjacent_difference", {"value_type": "int"}, {"ipt": 9})]
    _, gone, new = written(capsys, tree, "gfx90a", planted)
    assert gone == ["    : select_arch<TargetArch, adjacent_difference_config_fallback<Value>>"]
    assert new[0] == "struct adjacent_difference_config_gfx90a"
    assert new[-1] == (
        "    : select_arch<TargetArch, select_arch_case<ROCPRIM_ARCH_90a,"
        " adjacent_difference_config_gfx90a<Value>>, adjacent_difference_config_fallback<Value>>"
    )


@pytest.mark.slow
def test_what_a_case_takes_from_elsewhere_is_refused(tmp_path, capsys):
    tree = tree_of(tmp_path, "5.3.3")
    plant(
        capsys,
        tree,
        "gfx90a",
        [
            ("reduce_by_key", PAIR, {"scan_ipt": 3}),
            ("radix_sort", PAIR, {"merge_limit": 512}),
        ],
    )
    old = contents(tree)
    told = applied(capsys, tree, arch="gfx90a")
    assert "has no place for ScanConfig.ItemsPerThread" in told
    assert (
        "device_radix_sort_config.hpp: the config SortMergeConfig would have to be written first"
        in told
    )
    assert contents(tree) == old
