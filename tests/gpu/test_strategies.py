"""What every strategy holds: nothing twice, nothing that cannot be, all of it in the end."""

import sys
from statistics import mean

import pytest

from policygen.errors import InputError, MissingToolError
from policygen.gpu.local_search import Neighbourhood
from policygen.gpu.strategies import STRATEGIES, choose_strategy, make_strategy
from policygen.gpu.strategy import AskedVariant, Domain
from tests.gpu.spaces import SCAN, SMALL, Counted, everything, searched, smooth

VALID = sum(i * t <= 1024 for i in SMALL["ipt"] for t in SMALL["tpb"])
QUICK = [name for name in STRATEGIES if name != "optuna"]


def plain(values):
    return 1 / (1 + abs(values[0] - 5) + abs(values[1] - 128) / 32)


@pytest.mark.parametrize(("name", "late"), [(name, late) for name in STRATEGIES for late in (0, 1)])
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
    assert strategy.ask(1) == [(2, 64, 1)]
    assert strategy.ask(5)[0] == (4, 96, 2)


def test_local_goes_on_beside_a_start_that_cannot_be_measured():
    """Base itself is not measured as a variant; its neighbours are."""
    base = (4, 128, 1)
    domain = Domain(SMALL, lambda values: None if values == base else values)
    asked = make_strategy("local", domain, 1, [base]).ask(16)
    beside = [one for one in asked if sum(a != b for a, b in zip(one, base, strict=True)) == 1]
    assert base not in asked
    assert len(beside) >= 10


def test_a_start_between_the_values_of_a_space_has_neighbours():
    domain = Domain({"ns": range(0, 2000, 100), "dcid": range(4)}, lambda values: values)
    near = [values for values in Neighbourhood(domain).around((648, 1)) if values[1] == 1]
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


@pytest.mark.parametrize("name", QUICK)
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


def test_a_missing_optuna_is_told_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingToolError, match="optuna is missing") as caught:
        make_strategy("optuna", Domain(SMALL, lambda values: values), 1)
    assert "[search]" in str(caught.value)


def test_optuna_beats_random():
    def best(name, seed):
        domain, score = smooth(seed)
        return max(searched(make_strategy(name, domain, seed), score, count=64, batch=8))

    seeds = range(4)
    assert mean(best("optuna", s) for s in seeds) > mean(best("random", s) for s in seeds)


def test_random_variants_are_spread_as_chance_spreads_them():
    domain = Domain({"ipt": range(100)}, lambda values: values)
    first = [make_strategy("random", domain, seed).ask(1)[0][0] for seed in range(1000)]
    counts = [sum(value // 10 == part for value in first) for part in range(10)]
    # The standard deviation of a count is 9.5.
    assert all(60 < count < 140 for count in counts)


@pytest.mark.parametrize(
    ("distinct", "left", "name"),
    [
        (804, 1000, "exhaustive"),
        (804, 804, "exhaustive"),
        (805, 804, "local"),
        (None, 10**6, "local"),
        (10, None, "local"),
    ],
)
def test_a_strategy_is_chosen_by_what_is_left(distinct, left, name):
    assert choose_strategy(distinct, left) == name


def test_an_unknown_strategy_is_refused():
    with pytest.raises(InputError, match="no strategy is called 'tpe'"):
        make_strategy("tpe", Domain(SMALL, lambda values: values), 1)
