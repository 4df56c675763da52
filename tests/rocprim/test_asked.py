"""Facts of configs, held against types of which size and kind are known."""

import pytest

from policygen.app.db_import import library_parameters
from policygen.rocprim.placement import TypeFacts, holds

TYPES = {
    "key": TypeFacts("double", 8, floating=True),
    "value": TypeFacts("rocprim::empty_type", None),
    "count": TypeFacts("3", None),
}


@pytest.mark.parametrize(
    ("fact", "true"),
    [
        ("is_floating_point<key>", True),
        ("!is_floating_point<key>", False),
        ("is_floating_point<other>", False),
        ("!is_floating_point<other>", False),
        ("sizeof(key) <= 8", True),
        ("sizeof(key) < 8", False),
        ("sizeof(key) > 4", True),
        ("sizeof(key) >= 9", False),
        ("sizeof(key) == 8", True),
        ("sizeof(value) <= 1", False),
        ("sizeof(other) <= 1", False),
        ("std::is_same<value, rocprim::empty_type>::value", True),
        ("!std::is_same<value, rocprim::empty_type>::value", False),
        ("!std::is_same<key, empty_type>::value", True),
        ("std::is_same<other, empty_type>::value", False),
        ("!std::is_same<other, empty_type>::value", False),
        ("count == 3", True),
        ("count == 4", False),
        ("other == 3", False),
        ("something(key)", False),
    ],
)
def test_a_fact_holds_where_that_is_known(fact, true):
    assert holds([fact], TYPES) is true
    assert holds(["is_floating_point<key>", fact], TYPES) is true


def test_benchmarks_that_nothing_binds_have_no_parameters():
    assert not library_parameters("rocprim.device_unheard_of").renamed
    assert library_parameters("rocprim.device_reduce").renamed == {"block_size_x": "bs"}
