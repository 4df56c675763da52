"""Base and variants side by side tell how sure their ratio is."""

import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from policygen.gpu.rounds import measure_workload
from policygen.results.database import open_database
from policygen.results.own_tables import find_pairs, spread_at, spread_of_scores
from tests.gpu.measuring import LABELS, measuring, query, task
from tests.gpu.simulated import Plan
from tests.gpu.test_noise import noise_in

SIDES = {(1, f"ipt_{number}"): number for number in range(1, 5)}


def drawn(random, deviation, processes=5, sides=SIDES):
    """Logarithms of ratios of some variants."""
    return {side: random.normal(0, deviation, processes).tolist() for side in sides}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paired")
    plan = Plan(str(folder), shift=0.1)
    with measuring(folder / "run.db", plan) as (controller, session):
        measure_workload(controller, session, task(*LABELS), rounds=6, seed=1, processes=5)
    return folder / "run.db"


def test_the_spread_is_that_of_the_row():
    """Five processes are joined to a row: it knows its ratio better than one of them."""
    random = np.random.default_rng(1)
    found = [spread_at([drawn(random, 0.01)]).deviation for _ in range(500)]
    assert np.sqrt(np.mean(np.square(found))) == pytest.approx(
        0.01 / math.sqrt(5) * math.sqrt(8 / 6), rel=0.03
    )
    assert spread_at([drawn(random, 0.01)]).processes == 5
    assert spread_at([drawn(random, 0.01)]).variants == 4


def test_a_row_lies_within_two_deviations_of_the_truth():
    random = np.random.default_rng(2)
    held = 0
    for _ in range(2000):
        lot = drawn(random, 0.01)
        held += abs(np.mean(lot[1, "ipt_1"])) < 1.96 * spread_at([lot]).deviation
    assert held > 0.95 * 2000


@pytest.mark.parametrize(
    "lots",
    [
        [],
        [{}],
        [{(1, "ipt_1"): [0.1]}],
        [{(1, "ipt_1"): [0.1, 0.2, 0.3]}],
        [dict.fromkeys(SIDES, [0.1] * 5)],
        [{side: [5.0 * number, -5.0] for side, number in SIDES.items()}],
    ],
    ids=["nothing", "no side", "one process", "two differences", "no difference", "no noise"],
)
def test_too_little_tells_nothing(lots):
    assert spread_at(lots) is None


def test_a_score_s_spread_is_that_of_its_weighted_ratios():
    random = np.random.default_rng(3)
    weights = np.array([0.25, 0.75])
    runs = [[drawn(random, 0.02, 40), drawn(random, 0.001, 40)]]
    found = spread_of_scores(runs, weights)
    assert found.deviation == pytest.approx(0.25 * 0.02 / math.sqrt(40), rel=0.2)
    # Those that were not everywhere count for nothing.
    more = [{**runs[0][0], (2, "ipt_9"): [9.0] * 40}, runs[0][1]]
    assert spread_of_scores([more], weights) == found


def test_what_is_measured_side_by_side_is_the_noise(made):
    noise, _ = noise_in(made)
    assert noise.origin == f"measured: 5 processes of base next to {len(LABELS)} variants"
    # The processes differ by 10 %, and their ratios do not.
    assert noise.score < 0.01
    assert noise.points[0].max() < 0.02


def test_without_all_runtime_workloads_the_ratio_s_noise_is_not_known(made, tmp_path):
    db = tmp_path / "run.db"
    db.write_bytes(made.read_bytes())
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("""DELETE FROM policygen_rows WHERE workload LIKE '%"18"%'""")
        connection.commit()
    noise, _ = noise_in(db)
    assert noise.origin == "measured: 5 processes of base"


@pytest.mark.parametrize(
    ("column", "value"),
    [("center", "'a word'"), ("center", "-1.0"), ("workload", "'no JSON'"), ("session", "99")],
)
def test_what_is_no_time_counts_for_nothing(made, tmp_path, column, value):
    db = tmp_path / "run.db"
    db.write_bytes(made.read_bytes())
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(f"UPDATE policygen_rows SET {column} = {value}")
        connection.commit()
    assert query(db, "SELECT count(*) FROM policygen_rows") != [(0,)]
    with open_database(db) as found:
        assert not any(found.pairs.values())


def test_a_database_of_others_has_none():
    with closing(sqlite3.connect(":memory:")) as connection:
        assert find_pairs(connection, {}) == {}
