"""What every strategy holds: nothing twice, nothing that cannot be, all of it in the end."""

from itertools import product
from statistics import mean

import pytest

from policygen.errors import InputError
from policygen.gpu.strategies import STRATEGIES, AskedVariant, Domain, Neighborhood, make_strategy
from tests.gpu.spaces import SCAN, SMALL, Counted, everything, searched, smooth

VALID = sum(i * t <= 1024 for i in SMALL["ipt"] for t in SMALL["tpb"])


def plain(values):
    return 1 / (1 + abs(values[0] - 5) + abs(values[1] - 128) / 32)


@pytest.mark.parametrize(("name", "late"), [*product(STRATEGIES, (0, 1))])
def test_all_of_a_space_is_asked_for_once(name, late):
    counted = Counted(SMALL)
    found = everything(make_strategy(name, counted.domain, 1), plain, batch=16, late=late)
    assert len(found) == len(set(found)) == 3 * VALID
    assert all(counted.key(values) is not None for values in found)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_comes_to_the_same_is_asked_for_once(name):
    counted = Counted(SMALL, same=True)
    found = everything(make_strategy(name, counted.domain, 1), plain, batch=16)
    keys = [counted.key(values) for values in found]
    assert len(keys) == len(set(keys)) == 3 * VALID - 2 * len(SMALL["ipt"])


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_seed_asks_the_same(name):
    def order(seed):
        domain, score = smooth(1)
        strategy = make_strategy(name, domain, seed)
        found = []
        for _ in range(4):
            asked = strategy.ask(12)
            strategy.tell([AskedVariant(values, score(values)) for values in asked])
            found += asked
        return found

    assert order(7) == order(7)
    assert order(7) != order(8)


@pytest.mark.parametrize("name", STRATEGIES)
def test_starts_come_first_and_those_that_cannot_be_are_passed_over(name):
    counted = Counted(SMALL)
    starts = [(8, 256, 0), (2, 64, 1), (2, 64, 1), (4, 96, 2)]
    strategy = make_strategy(name, counted.domain, 1, starts)
    assert strategy.ask(2) == [(2, 64, 1), (4, 96, 2)]


def test_local_begins_with_all_neighbors_of_base_which_is_not_measured_itself():
    base = (4, 128, 1)
    domain = Domain(SMALL, lambda values: None if values == base else values)
    strategy = make_strategy("local", domain, 1, [base])
    strategy.tell([AskedVariant(base, 1.0)])
    neighbors = [*Neighborhood(domain).around(base)]
    asked = strategy.ask(len(neighbors))
    assert base not in asked
    assert sorted(asked) == sorted(neighbors)


def test_what_cub_selects_elsewhere_follows_the_neighbors_of_base():
    base, elsewhere = (4, 128, 1), (8, 64, 2)
    domain = Domain(SMALL, lambda values: None if values == base else values)
    strategy = make_strategy("local", domain, 1, [base])
    strategy.start([elsewhere])
    count = len([*Neighborhood(domain).around(base)])
    assert strategy.ask(count + 1)[count] == elsewhere


def test_delays_are_varied_after_threads_and_items_and_coarsely():
    ranges = {"ipt": range(7, 25), "ns": range(0, 2049, 4), "l2w": range(0, 1201, 5)}
    domain, base = Domain(ranges, lambda values: values), (17, 76, 1150)
    strategy = make_strategy("local", domain, 1, [base])
    first = strategy.ask(8)
    strategy.tell([AskedVariant(values, 1.0) for values in first])
    assert {values[1:] for values in first} == {base[1:]}
    moves = {values[1] for values in Neighborhood(domain).around(base) if values[1] != 76}
    assert min(abs(ns - 76) for ns in moves) >= 16


def test_a_start_between_the_values_of_a_space_has_neighbours():
    domain = Domain({"ns": range(0, 2000, 100), "dcid": range(4)}, lambda values: values)
    near = [values for values in Neighborhood(domain).around((648, 1)) if values[1] == 1]
    assert sorted(ns for ns, _ in near) == [200, 400, 500, 700, 800, 1000, 1400]


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_an_earlier_session_has_measured_is_not_asked_for(name):
    counted = Counted(SMALL)
    known = [(i, t, 0) for i in SMALL["ipt"] for t in SMALL["tpb"] if i * t <= 1024]
    strategy = make_strategy(name, counted.domain, 1)
    strategy.tell([AskedVariant(values, plain(values)) for values in known])
    found = everything(strategy, plain, batch=16)
    assert len(found) == 2 * VALID
    assert not set(found) & set(known)


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_fails_does_not_end_a_search(name):
    counted = Counted(SMALL)
    found = everything(
        make_strategy(name, counted.domain, 1),
        lambda values: plain(values) if values[2] == 1 else None,
        batch=16,
    )
    assert len(found) == 3 * VALID


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_search_goes_on_when_all_that_is_known_failed(name):
    counted = Counted(SMALL)
    found = everything(make_strategy(name, counted.domain, 1), lambda _: None, batch=16)
    assert len(found) == 3 * VALID


@pytest.mark.parametrize("name", STRATEGIES)
def test_nothing_told_is_nothing_lost(name):
    """Batches are asked for while none is measured yet."""
    domain, _ = smooth(1)
    strategy = make_strategy(name, domain, 1)
    found = [values for _ in range(3) for values in strategy.ask(16)]
    assert len(set(found)) == 48
    assert strategy.ask(0) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_space_of_billions_is_not_gone_through(name):
    counted = Counted(SCAN)
    assert counted.domain.count > 2e9
    strategy = make_strategy(name, counted.domain, 1)
    for _ in range(4):
        asked = strategy.ask(128)
        assert len(set(asked)) == 128
        strategy.tell([AskedVariant(values, 1.0 + values[0] / 100) for values in asked])
    assert counted.asked < 4 * 128 * 20


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_space_without_variants_has_none(name):
    nothing = Domain(SMALL, lambda _: None)
    assert make_strategy(name, nothing, 1).ask(8) == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_space_of_one_variant(name):
    one = Domain({"ipt": (7,)}, lambda values: values)
    strategy = make_strategy(name, one, 1)
    assert strategy.ask(8) == [(7,)]
    strategy.tell([AskedVariant((7,), 1.0)])
    assert strategy.ask(8) == []


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "count"), [(16, 256), (64, 512)])
def test_local_beats_random_on_smooth_spaces_of_billions(batch, count):
    """With noise of 1 % and told one batch late: better than twice as many random ones."""

    def best(name, count, seed):
        domain, score = smooth(seed)
        strategy = make_strategy(name, domain, seed)
        return max(
            searched(strategy, score, count=count, batch=batch, late=1, noise=0.01, seed=seed)
        )

    seeds = range(12)
    local = [best("local", count, seed) for seed in seeds]
    drawn = [best("random", 2 * count, seed) for seed in seeds]
    assert mean(local) > mean(drawn) + 0.005
    assert sum(one > other for one, other in zip(local, drawn, strict=True)) >= 8


def test_random_variants_are_spread_as_chance_spreads_them():
    domain = Domain({"ipt": range(100)}, lambda values: values)
    first = [make_strategy("random", domain, seed).ask(1)[0][0] for seed in range(1000)]
    counts = [sum(value // 10 == part for value in first) for part in range(10)]
    # The standard deviation of a count is 9.5.
    assert all(60 < count < 140 for count in counts)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(InputError, match="unknown strategy 'tpe'"):
        make_strategy("tpe", Domain(SMALL, lambda values: values), 1)
