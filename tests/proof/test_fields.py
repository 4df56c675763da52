"""Every field of a policy is compared, also those that no binding names."""

import pytest

from policygen.model.selection import WHOLE, PolicyFields, Selected, differs, in_full
from policygen.proof.oracle import compiler_for
from tests.probing import header, read, root

THREE = "tuning_three_way_partition.cuh"
PASS = {"multi_tile.items": 4, "multi_tile.hint": 0, "single_tile.items": 4}


def selected(values, **fields):
    numbers = PASS | {name.replace("__", "."): value for name, value in fields.items()}
    return Selected(values, fields=PolicyFields(numbers, frozenset({"multi_tile.items"})))


def test_a_field_that_no_binding_names_is_told():
    before, after = selected({"items": 4}), selected({"items": 4}, multi_tile__hint=2)
    assert differs(before, after)
    assert in_full(before, after) == (
        {"items": 4, "multi_tile.hint": 0},
        {"items": 4, "multi_tile.hint": 2},
    )


def test_what_another_part_gets_with_it_is_told_once():
    before = selected({"items": 4})
    after = selected({"items": 5}, multi_tile__items=5, single_tile__items=5)
    assert in_full(before, after) == ({"items": 4}, {"items": 5})
    alone = selected({"items": 4}, single_tile__items=5)
    assert in_full(before, alone)[1] == {"items": 4, "single_tile.items": 5}
    otherwise = selected({"items": 5}, multi_tile__items=5, single_tile__items=6)
    assert in_full(before, otherwise)[1] == {"items": 5, "single_tile.items": 6}


def test_the_type_of_a_policy_tells_what_its_values_do_not():
    def typed(items, spelled):
        return Selected({"items": items}, fields=PolicyFields({WHOLE: spelled}, frozenset()))

    before = typed(4, "agent<4, WARP>")
    assert in_full(before, typed(5, "agent<5, WARP>")) == ({"items": 4}, {"items": 5})
    assert in_full(before, typed(4, "agent<4, RAKING>"))[1] == {
        "items": 4,
        WHOLE: "agent<4, RAKING>",
    }
    assert not differs(before, typed(4, "agent<4, WARP>"))


def test_nothing_is_said_of_fields_that_are_not_known():
    before, after = selected({"items": 4}), Selected({"items": 4})
    assert not differs(before, after)
    fewer = Selected({"items": 4}, fields=PolicyFields({"multi_tile.items": 4}, frozenset()))
    assert not differs(before, fewer)


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("version", "field"), [("3.6.0", "lookback.scan_algorithm"), ("3.0.1", WHOLE)]
)
def test_a_scan_algorithm_that_changes_is_seen_by_the_compiler(version, field):
    """No binding names it, and no parameter tunes it."""
    compiler = compiler_for(read(root(version), THREE))
    data = header(version, THREE)
    changed = {THREE: data.replace(b"BLOCK_SCAN_WARP_SCANS", b"BLOCK_SCAN_RAKING")}
    found = compiler.compare(changed)
    assert found.changes
    assert {len(row.after) - len(row.before) for row in found.changes} == {0}
    assert {
        tuple(name for name, value in row.after.items() if row.before[name] != value)
        for row in found.changes
    } == {(field,)}
    assert compiler.compare({THREE: data + b"\n"}).changes == ()
