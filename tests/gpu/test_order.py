"""Rounds: base among the variants, shuffled by a seed, each second one backwards."""

from collections import Counter

import pytest

from policygen.gpu.control import bases_among, round_order

VARIANTS = [f"ipt_{number}" for number in range(100)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 100, 1044])
def test_each_variant_runs_once_and_base_several_times(count):
    variants = [f"ipt_{number}" for number in range(count)]
    ran = Counter(round_order("base", variants, 0, 1))
    assert ran.pop("base") == bases_among(count) >= 2
    assert ran == dict.fromkeys(variants, 1)


def test_base_runs_evenly_among_them():
    """Each tenth of a round has one."""
    order = round_order("base", VARIANTS, 0, 1)
    places = [place for place, one in enumerate(order) if one == "base"]
    assert len(places) == 10
    assert all(11 * number <= place <= 11 * number + 10 for number, place in enumerate(places))


def test_each_second_round_is_the_one_before_backwards():
    first, second, third = (round_order("base", VARIANTS, number, 1) for number in range(3))
    assert second == first[::-1]
    assert third not in (first, second)


def test_a_seed_is_an_order():
    assert round_order("base", VARIANTS, 4, 1) == round_order("base", VARIANTS, 4, 1)
    assert round_order("base", VARIANTS, 4, 1) != round_order("base", VARIANTS, 4, 2)
    assert round_order("base", VARIANTS, 2, 1) != round_order("base", VARIANTS, 0, 2)
