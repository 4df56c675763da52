"""Noise is measured: base against itself in fresh processes, and what comes of it."""

import json
import math
import shutil
import sqlite3
from contextlib import ExitStack, closing

import numpy as np
import pytest

from policygen.gpu.rounds import NOISE_PHASE, measure_noise
from policygen.results.cases import build_cases, weights
from policygen.results.database import open_database, read_rows
from policygen.results.noise import noise_of, prior_of
from policygen.results.own_tables import Spread, pool_spreads, spread_of
from policygen.results.ranking import rank
from tests.gpu.measuring import ALGORITHM, SIZES, measure, measuring, points, query, spot
from tests.gpu.simulated import BASE, FACTS, Plan


@pytest.fixture
def db(tmp_path):
    return tmp_path / "run.db"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    measure(folder / "run.db", folder, noise=True, shift=0.1)
    return folder / "run.db"


@pytest.fixture
def noisy(made, db):
    """A database with noise, to be changed."""
    return shutil.copy(made, db)


def noise_in(*paths):
    """Of the one case that databases have."""
    with ExitStack() as stack:
        opened = [stack.enter_context(open_database(path)) for path in paths]
        tables = [read_rows(d, table, {}, print) for d in opened for table in d.tables]
        (case,) = build_cases(tables, print)
        by_part, _ = weights(case, opened[0].declared)
        return noise_of(case, by_part), case


@pytest.mark.slow
def test_each_process_is_a_fresh_one(db, tmp_path):
    told = []
    plan = Plan(str(tmp_path), shift=0.1)
    with measuring(db, plan) as (controller, session):
        found = measure_noise(
            controller,
            session,
            BASE,
            points(),
            rounds=4,
            seed=1,
            processes=4,
            progress=told.append,
        )
        assert controller.restarts == 4
        centers = session.noise_centers(spot(16))
    assert [(one.phase, one.done, one.total) for one in told] == [
        (NOISE_PHASE, n, 4) for n in range(5)
    ]
    assert len(centers) == 4
    assert max(centers) / min(centers) > 1.1
    assert found.keys() == {f"{ALGORITHM} T=I8 Elements={size}" for size in SIZES}
    assert {spread.processes for spread in found.values()} == {4}
    assert query(db, "SELECT DISTINCT process, samples FROM policygen_noise ORDER BY 1") == [
        (number, 4) for number in range(1, 5)
    ]


@pytest.mark.slow
def test_only_processes_that_are_lacking_are_started(db, tmp_path):
    for processes, restarts in ((2, 2), (4, 2), (4, 0)):
        with measuring(db, Plan(str(tmp_path))) as (controller, session):
            found = measure_noise(
                controller, session, BASE, points(16), rounds=3, seed=1, processes=processes
            )
            assert controller.restarts == restarts
    assert [spread.processes for spread in found.values()] == [4]


@pytest.mark.slow
def test_what_is_skipped_has_no_noise(db, tmp_path):
    with measuring(db, Plan(str(tmp_path), skips=[18])) as (controller, session):
        found = measure_noise(controller, session, BASE, points(), rounds=2, seed=1, processes=4)
    assert [spread is None for spread in found.values()] == [False, True, False]


def test_the_spread_is_that_of_another_process():
    """Five processes know their spread as Student's distribution says: 4 / 2 of its variance."""
    centers = [1.00, 1.01, 0.99, 1.02, 0.98]
    spread = spread_of(centers)
    assert spread == Spread(float(np.std(np.log(centers), ddof=1)) * math.sqrt(2), 5)
    assert spread.freedom == 4


def test_it_covers_what_it_says():
    """Of 4,000 sixth processes, 95 % lie within two deviations of the five before."""
    random = np.random.default_rng(1)
    drawn = np.exp(random.normal(0, 0.01, (4000, 6)))
    inside = [abs(math.log(six[5])) < 1.96 * spread_of(six[:5].tolist()).deviation for six in drawn]
    assert 0.94 < np.mean(inside) < 0.99


@pytest.mark.parametrize(
    "centers",
    [[], [1.0], [1.0, 1.1, 0.9], [1.0] * 5, [1.0, 1e9, 1e-9, 1.0]],
    ids=["none", "one", "three", "all the same", "no noise of a measurement"],
)
def test_too_little_tells_nothing(centers):
    assert spread_of(centers) is None


def test_databases_are_taken_together():
    assert pool_spreads([]) is None
    assert pool_spreads([Spread(0.01, 5)]) == Spread(0.01, 5)
    both = pool_spreads([Spread(0.01, 5), Spread(0.02, 13)])
    assert both == Spread(math.sqrt((4 * 0.01**2 + 12 * 0.02**2) / 16), 18)


@pytest.mark.slow
def test_measured_noise_is_the_width_in_place_of_the_prior(noisy):
    noise, case = noise_in(noisy)
    assert noise.origin == "measured: 5 processes of base"
    centers = [
        [
            c
            for (c,) in query(
                noisy, "SELECT center FROM policygen_noise WHERE workload LIKE ?", f'%"{size}"%'
            )
        ]
        for size in SIZES
    ]
    assert noise.points[0].tolist() == pytest.approx(
        [math.sqrt(2) * spread_of(one).deviation for one in centers]
    )
    prior = prior_of(FACTS.label, ALGORITHM)
    assert noise.points[0].min() > 5 * prior.deviation(case.parts[0].centers[0, 0]).max()


def test_without_it_the_prior_counts(db, tmp_path):
    measure(db, tmp_path)
    noise, _ = noise_in(db)
    assert noise.origin == prior_of(FACTS.label, ALGORITHM).origin


def test_where_it_lacks_a_runtime_workload_the_prior_counts_there(noisy):
    with closing(sqlite3.connect(noisy)) as connection:
        connection.execute("""DELETE FROM policygen_noise WHERE workload LIKE '%"18"%'""")
        connection.execute(
            """DELETE FROM policygen_noise WHERE workload LIKE '%"20"%' AND process = 1"""
        )
        connection.commit()
    noise, case = noise_in(noisy)
    prior = prior_of(FACTS.label, ALGORITHM)
    assert noise.origin == (
        f"measured: 4 to 5 processes of base; 1 of 3 runtime workloads: {prior.origin}"
    )
    expected = math.sqrt(2) * prior.deviation(case.parts[0].centers[0, 0])
    assert noise.points[0][1] == pytest.approx(expected[1])
    assert noise.points[0][0] > 5 * expected[0]


@pytest.mark.slow
def test_rows_that_are_measured_again_join_in(tmp_path):
    paths = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        measure(folder / "run.db", folder, noise=number == 0, shift=0.05)
        paths.append(folder / "run.db")
    noise, _ = noise_in(*paths)
    assert noise.origin == "measured: 5 processes of base, and 15 rows measured again"


def test_it_is_told_beside_a_choice(noisy):
    (workload,) = rank([noisy]).workloads
    assert workload.choice.noise_origin == "measured: 5 processes of base"
    assert workload.choice.noise > 0.1
    assert workload.choice.decision == "keep base"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("center", "'a word'"),
        ("center", "-1.0"),
        ("center", "9e999"),
        ("workload", "'no JSON'"),
        ("workload", "'[1]'"),
        ("workload", """'{"T{ct}": 1}'"""),
        ("workload", "x'ff'"),
        ("workload", "'" + "[" * 100_000 + "'"),
        ("session", "99"),
    ],
)
def test_what_is_no_noise_counts_for_nothing(noisy, column, value):
    with closing(sqlite3.connect(noisy)) as connection:
        connection.execute("UPDATE policygen_noise SET process = rowid + 99")
        connection.execute(f"UPDATE policygen_noise SET {column} = {value}")
        connection.commit()
    noise, _ = noise_in(noisy)
    assert noise.origin == prior_of(FACTS.label, ALGORITHM).origin


@pytest.mark.parametrize("version", ["2", "'1'"])
def test_tables_of_another_version_are_not_read(noisy, version):
    with closing(sqlite3.connect(noisy)) as connection:
        connection.execute("CREATE TABLE other (version)")
        connection.execute("DROP TABLE policygen_format")
        connection.execute("ALTER TABLE other RENAME TO policygen_format")
        connection.execute(f"INSERT INTO policygen_format VALUES ({version})")
        connection.commit()
    noise, _ = noise_in(noisy)
    assert noise.origin == prior_of(FACTS.label, ALGORITHM).origin


def test_workloads_are_spelled_alike(noisy):
    """Whoever wrote them in another order of the axes means the same."""
    with closing(sqlite3.connect(noisy)) as connection:
        for rowid, text in connection.execute(
            "SELECT rowid, workload FROM policygen_noise"
        ).fetchall():
            turned = json.dumps(dict(reversed(json.loads(text).items())), indent=1)
            connection.execute(
                "UPDATE policygen_noise SET workload = ? WHERE rowid = ?", (turned, rowid)
            )
        connection.commit()
    assert noise_in(noisy)[0].origin == "measured: 5 processes of base"
