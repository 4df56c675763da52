"""What a replay asks, tells and counts."""

import gzip
import json

import pytest

from benchmarks.strategies import Row, best_after, hub_space, reached, table, tried
from policygen.gpu.replay import curve_of, replay
from policygen.gpu.strategies import AskedVariant
from tests.results.tuner_files import BEST, document, failed, t4_document


class Scripted:
    """Asks for numbers in their order, and writes down what it is told, and when."""

    def __init__(self, count):
        self.left = [(number,) for number in range(count)]
        self.log = []

    def ask(self, count):
        asked, self.left = self.left[:count], self.left[count:]
        self.log.append(("asked", len(asked)))
        return asked

    def tell(self, outcomes):
        self.log.append(("told", *(one.score for one in outcomes)))


TOLD = {(number,): number / 10 for number in range(10)}


def test_a_batch_is_told_before_the_next_is_asked_for():
    strategy = Scripted(5)
    evaluated, _ = replay(strategy, TOLD, most=99, batch=2)
    assert evaluated == [(0,), (1,), (2,), (3,), (4,)]
    assert strategy.log == [
        ("asked", 2),
        ("told", 0.0, 0.1),
        ("asked", 2),
        ("told", 0.2, 0.3),
        ("asked", 1),
        ("told", 0.4),
        ("asked", 0),
    ]


def test_a_strategy_that_has_no_more_just_now_may_have_some_later():
    class Hesitant(Scripted):
        def ask(self, count):
            told = sum(len(one) - 1 for one in self.log if one[0] == "told")
            return super().ask(min(count, 2 + told))

    assert len(replay(Hesitant(10), TOLD, most=99, batch=4)[0]) == 10


@pytest.mark.parametrize(("most", "count"), [(1, 1), (3, 3), (10, 10), (11, 10)])
def test_no_more_are_evaluated_than_were_asked_for(most, count):
    assert len(replay(Scripted(10), TOLD, most=most, batch=4)[0]) == count


def test_what_was_not_recorded_is_told_as_failed_and_costs_nothing():
    strategy = Scripted(13)
    evaluated, invalid = replay(strategy, TOLD, most=11, batch=13)
    assert (len(evaluated), invalid) == (10, 3)
    assert strategy.log[1][-1] is None
    evaluated, invalid = replay(Scripted(30), TOLD, most=11, batch=6)
    assert (len(evaluated), invalid) == (10, 20)


def test_a_curve_has_a_point_where_it_rises_and_one_at_the_end():
    assert curve_of([0.9, 0.8, 1.1, 1.1, 1.0]) == ((1, 0.9), (3, 1.1), (5, 1.1))
    assert curve_of([0.9, 1.1]) == ((1, 0.9), (2, 1.1))
    assert curve_of([]) == ()


def test_a_curve_tells_when_and_how_far():
    curve = curve_of([0.9, 0.8, 1.1, 1.1, 1.0])
    assert [reached(curve, score) for score in (0.5, 0.9, 1.0, 1.1, 1.2)] == [1, 1, 3, 3, None]
    assert [best_after(curve, count) for count in (0, 1, 2, 3, 9)] == [None, 0.9, 0.9, 1.1, 1.1]


def test_an_outcome_says_what_became_of_a_variant():
    assert AskedVariant((7,), None).score is None


def test_a_cache_of_the_benchmark_hub_is_a_space_without_a_start(tmp_path):
    made = document()
    made["cache"]["64,2"] = failed({"block_size_x": 64, "tile": 2}, "InvalidConfig")
    path = tmp_path / "A100.json.gz"
    path.write_bytes(gzip.compress(json.dumps(made).encode()))
    space = hub_space("adds A100", path)
    assert space.ranges == {"block_size_x": (64, 128, 256), "tile": (1, 2, 4)}
    # Neither what failed nor the first configuration, which the others are compared with
    assert (64, 1) not in space.goal
    assert (64, 2) not in space.goal
    assert len(space.goal) == 7
    assert max(space.goal, key=space.goal.get) == tuple(BEST.values())
    assert (space.seen, space.starts, space.near) == ([space.goal], (), 1)
    rows = [Row("local"), Row("local", is_seeded=True), Row("random", batch=1)]
    found = tried(space, rows, 3, 1)
    assert [one.row for one in found] == [rows[0], rows[2]]
    assert all(1 <= one.soon <= 7 for one in found)
    lines = [*table(found)]
    assert lines[0] == "| | adds A100 |"
    assert lines[2:4] == ["| variants | 7 |", "| of them within 1 % | 1 |"]
    assert [line.split(" |")[0] for line in lines[4:]] == ["| local", "| random, 1 at once"]


def test_t4_results_of_the_hub_are_the_same_measurements_and_left_out(tmp_path):
    path = tmp_path / "A100_T4.json"
    path.write_text(json.dumps(t4_document()))
    assert hub_space("adds A100_T4", path) is None
