from types import SimpleNamespace

import pytest

from policygen.planning.plan import unmet

WORKLOAD = (("key_type", "int"),)


def case(name, *needs):
    benchmark = SimpleNamespace(needs=needs)
    measurement = SimpleNamespace(point=(name, WORKLOAD), benchmark=benchmark)
    return SimpleNamespace(measurement=measurement)


def action(name, decision, workload=WORKLOAD):
    written = decision in {"update", "add"}
    return SimpleNamespace(point=(name, workload), decision=decision, written=written)


CASES = [case("onesweep", "block_sort"), case("block_sort", "onesweep")]


@pytest.mark.parametrize("other", ["update", "add", "keep", "fallback"])
def test_what_is_settled_lets_the_other_one_be_written(other):
    assert unmet(CASES, [action("onesweep", "update"), action("block_sort", other)]) == {}


def test_what_is_rejected_keeps_the_other_one_from_being_written():
    (point,) = unmet(CASES, [action("onesweep", "update"), action("block_sort", "reject")]).items()
    assert point == (
        ("onesweep", WORKLOAD),
        "it is chosen together with block_sort, which is rejected or has no results",
    )


def test_what_was_not_measured_does_so_too_and_other_types_are_others():
    other = action("block_sort", "update", (("key_type", "float"),))
    assert unmet(CASES[:1], [action("onesweep", "add"), other]).keys() == {("onesweep", WORKLOAD)}


def test_what_is_not_written_needs_nothing():
    assert unmet(CASES, [action("onesweep", "keep")]) == {}
    assert unmet([case("reduce")], [action("reduce", "update")]) == {}
