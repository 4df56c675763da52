"""The machine code of what a table by hand gives to a target, before and after it is written."""

import pytest

from tests.rocprim.places import by_hand_tree
from tests.rocprim.test_planned_tables import KEYS, PAIR, plant
from tests.rocprim.tuned import applied, as_json

pytestmark = [
    pytest.mark.trees,
    pytest.mark.hipcc,
    pytest.mark.slow,
    pytest.mark.usefixtures("wide"),
]

THREE = {"value_type": "int", "channels": "3", "active_channels": "3"}
OLDEST = [
    ("adjacent_difference", {"value_type": "int"}, {"bs": 128}),
    ("histogram", THREE, {"bs": 128}),
    ("merge", KEYS, {"bs": 128}),
    ("merge_sort", PAIR, {"sort_bs": 128}),
    ("radix_sort", PAIR, {"sort_bs": 128}),
    ("reduce", {"key_type": "double"}, {"bs": 128}),
    ("reduce_by_key", PAIR, {"bs": 128}),
    ("scan", {"value_type": "int", "exclusive": "true"}, {"bs": 128}),
    ("scan_by_key", PAIR, {"bs": 128}),
    ("segmented_radix_sort", PAIR, {"bs": 128}),
    ("select", {"data_type": "double"}, {"bs": 128}),
    ("transform", {"data_type": "int"}, {"bs": 128}),
]
NEWER = [one for one in OLDEST if one[0] in {"adjacent_difference", "merge", "select", "transform"}]
CASES = [
    pytest.param(release, *one, id=f"{release} {one[0]}")
    for release, known in (("5.3.3", OLDEST), ("5.7.1", NEWER))
    for one in known
]


@pytest.mark.parametrize(("release", "algorithm", "workload", "values"), CASES)
def test_what_is_written_changes_the_code_of_its_call(
    tmp_path, capsys, release, algorithm, workload, values
):
    tree = by_hand_tree(tmp_path, release)
    plant(capsys, tree, "gfx90a", [(algorithm, workload, values)])
    assert "reject" not in applied(capsys, tree)
    name = f"rocprim.device_{algorithm}"
    named = ["-R", f"{name}$", *(f"-a{axis}={value}" for axis, value in workload.items())]
    given = ["--cub", str(tree), "--store", "store.db", "--arch", "gfx90a"]
    status, found = as_json(capsys, "verify-sass", *given, *named)
    assert status == 0
    assert {(one["benchmark"], one["as_written"]) for one in found["different"]} == {(name, True)}
