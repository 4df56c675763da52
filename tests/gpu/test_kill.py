"""kill -9 at any moment: no row is lost, none is doubled, and the next run goes on."""

from random import Random

import pytest

from policygen.results.database import open_database
from policygen.results.samples import decode
from tests.gpu.killing import Moments, kill_worker, killed_at
from tests.gpu.measuring import LABELS, SIZES, measure, query, rows
from tests.tiers import sampled

ALL = {(label, size) for label in ("base", *LABELS) for size in SIZES}
TIMES = range(50)
ROUNDS = 2


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """How many there are in a run that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    with Moments(0, kill_worker).counted() as counted:
        measure(folder / "run.db", folder, rounds=ROUNDS, noise=True)
    assert rows(folder / "run.db").keys() == ALL
    assert counted.count > 300
    return counted.count


def drawn(moments, number):
    """The moments of a seed; all parts of a run are hit."""
    at = [Random(f"kill/{seed}").randint(1, moments) for seed in TIMES]
    return at[number]


def samples_told(db):
    """What the sessions say that they added, by variant and size."""
    found = {}
    told = query(db, "SELECT variant, workload, samples, session FROM policygen_rows")
    for variant, workload, count, session in told:
        size = next(size for size in SIZES if f'"{size}"' in workload)
        found.setdefault((variant, size), []).append((session, count))
    return found


def is_whole(db):
    """Each row has the samples that are told of it, and no session added to one twice."""
    told = samples_told(db)
    found = rows(db)
    assert found.keys() == told.keys()
    for key, (_, center, blob) in found.items():
        times = decode(blob)
        assert len(times) == sum(count for _, count in told[key])
        assert times[0] <= center <= times[-1]
        assert len({session for session, _ in told[key]}) == len(told[key])
    runs = query(db, "SELECT code FROM runs")
    assert runs == [("0",)] * sum(map(len, told.values()))
    return found


@pytest.mark.parametrize("number", sampled(TIMES, 1, left=TIMES[20:]))
def test_a_measurement_that_is_killed_goes_on(tmp_path, moments, number):
    db, moment = tmp_path / "run.db", drawn(moments, number)
    measured = {"rounds": ROUNDS, "noise": True}
    assert killed_at(moment, lambda: measure(db, tmp_path, **measured))
    there = {}
    if db.exists() and query(db, "SELECT 1 FROM sqlite_master WHERE name LIKE 'cub.%'"):
        there = is_whole(db)
        with open_database(db) as found:
            assert len(found.tables) == 1
    assert measure(db, tmp_path, **measured).failed == {}
    after = is_whole(db)
    assert after.keys() == ALL
    # What was there is there as it was; base is measured again beside what was not.
    assert {key: cells for key, cells in after.items() if key in there and key[0] != "base"} == {
        key: cells for key, cells in there.items() if key[0] != "base"
    }
    noise = query(db, "SELECT workload, count(*) FROM policygen_noise GROUP BY 1")
    assert {count >= 5 for _, count in noise} == {True}
    assert [one.name for one in tmp_path.glob("run.db*")] == ["run.db"]


@pytest.mark.parametrize("number", sampled(TIMES, 1, left=TIMES[20:]))
def test_a_worker_that_is_killed_costs_nothing(tmp_path, moments, number):
    """Whoever is at work then is asked once more."""
    db, moment = tmp_path / "run.db", drawn(moments, number)
    with Moments(moment, kill_worker).counted():
        assert measure(db, tmp_path, rounds=ROUNDS, noise=True).failed == {}
    assert is_whole(db).keys() == ALL
    noise = query(db, "SELECT workload, count(*) FROM policygen_noise GROUP BY 1")
    assert {count >= 5 for _, count in noise} == {True}
