"""`--sanitize` of a search: finalists that read where they must not are none."""

import pytest

from policygen.errors import InputError
from policygen.model.workload import BASE
from policygen.results.own_tables import LAST
from tests.gpu.measuring import SIZES
from tests.gpu.searching import NAME, driving, query, workload

WHY = "compute-sanitizer: Invalid __global__ read of size 4 bytes"


@pytest.fixture
def db(tmp_path):
    return tmp_path / "run.db"


def searched(db, bad):
    """A search whose finalists are looked at; what was asked."""
    asked = []

    def sanitizes(workloads):
        (one,) = workloads
        labels = [each.variant for each in one.variants]
        asked.append((one.case.axes, labels))
        return [{label: WHY for label in (BASE, *labels) if label in bad}]

    one = workload()
    with driving(db, one=one) as driver:
        driver.bench.sanitizes = sanitizes
        driver.run()
    return one, asked


def test_who_does_harm_makes_room_for_the_next(db, tmp_path):
    best, *_ = searched(tmp_path / "before.db", ())[0].last
    one, asked = searched(db, (best,))
    assert best not in one.last
    assert one.failed == {best: ("error", WHY)}
    assert {axes for axes, _ in asked} == {(min(SIZES),)}
    looked = [label for _, labels in asked for label in labels]
    assert len(looked) == len({*looked})
    assert {*one.last} == {*looked} - {best}


def test_nothing_is_kept_of_what_it_took(db, tmp_path):
    best, *_ = searched(tmp_path / "before.db", ())[0].last
    searched(db, (best,))
    assert query(db, "SELECT * FROM policygen_rungs WHERE variant = ?", best) == []
    (table,) = {
        name
        for (name,) in query(
            db, "SELECT name FROM sqlite_master WHERE sql LIKE '%samples%' AND name LIKE 'cub%'"
        )
    }
    assert query(db, f'SELECT * FROM "{table}" WHERE variant = ?', best) == []
    told = query(db, "SELECT DISTINCT kind, reason FROM policygen_failures WHERE variant = ?", best)
    assert told == [("error", WHY)]


def test_another_session_knows_who_did_harm(db, tmp_path):
    best, *_ = searched(tmp_path / "before.db", ())[0].last
    searched(db, (best,))
    with driving(db, one=(one := workload())) as driver:
        driver.run()
    assert best not in one.last
    assert one.failed[best] == ("error", WHY)


def test_base_that_does_harm_ends_the_search(db):
    with pytest.raises(InputError, match=f"base of {NAME} must not run: compute-sanitizer"):
        searched(db, (BASE,))
    assert query(db, "SELECT * FROM policygen_rungs WHERE rung = ?", LAST) == []
