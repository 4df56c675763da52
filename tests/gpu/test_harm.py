"""`--sanitize` of a search: finalists that read where they must not are none."""

import pytest

from policygen.app.search import _findings
from policygen.errors import InputError
from policygen.gpu.finalists import findings_of
from policygen.model.workload import BASE
from policygen.results.own_tables import LAST
from tests.gpu.measuring import SIZES
from tests.gpu.searching import NAME, PretendedGpu, driving, query, workload

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
    with pytest.raises(InputError, match=f"base of {NAME} cannot run: compute-sanitizer"):
        searched(db, (BASE,))
    assert query(db, "SELECT * FROM policygen_rungs WHERE rung = ?", LAST) == []


def memchecked(db, memchecks, failing=None):
    """A search with a variant that fails, and what memcheck says of it."""
    failing = failing or {"ipt_9.tpb_32": "crash"}
    one = workload()
    with driving(db, PretendedGpu(does=failing), one=one) as driver:
        driver.bench.memchecks = memchecks
        driver.run()
        return one, _findings(one, driver.bench, driver.notes)


@pytest.mark.parametrize(
    ("memchecks", "outcome", "words"),
    [
        (None, "not run", "compute-sanitizer runs only on GPUs of this machine"),
        (lambda _: [{}], "clean", ""),
        (lambda _: [{BASE: WHY}], "base", "Invalid __global__ read of size 4 bytes"),
        (lambda _: [{"ipt_9.tpb_32": WHY}], "error", "Invalid __global__ read of size 4 bytes"),
    ],
)
def test_a_variant_that_fails_is_a_finding(db, memchecks, outcome, words):
    _, (finding,) = memchecked(db, memchecks)
    assert (finding.kind, finding.variants) == ("crash", ("ipt_9.tpb_32",))
    assert (finding.memcheck.outcome, finding.memcheck.words) == (outcome, words)


def test_a_gpu_that_is_lost_under_memcheck_is_a_reason(db):
    def lost(_):
        raise InputError("base failed", "Wait.")

    _, (finding,) = memchecked(db, lost)
    assert finding.memcheck.outcome == "not run"
    assert finding.memcheck.words == "base failed. Wait."


def test_memcheck_runs_one_variant_of_each_finding_once(db):
    """Where it failed, and not again in another session; what memcheck itself said is known."""
    asked = []

    def memchecks(workloads):
        asked.extend((one.case.axes, one.variants[0].variant) for one in workloads)
        return [{} for _ in workloads]

    failing = {"ipt_9.tpb_32": "crash", "ipt_6.tpb_32": "crash", "ipt_4.tpb_32": "wrong"}
    one, findings = memchecked(db, memchecks, failing)
    assert [(finding.kind, finding.count) for finding in findings] == [("wrong", 1), ("crash", 2)]
    assert len(asked) == 2
    assert {axes for axes, _ in asked} <= {(size,) for size in SIZES}
    _, same = memchecked(db, memchecks, failing)
    assert len(asked) == 2
    assert [finding.memcheck for finding in same] == [finding.memcheck for finding in findings]
    one.failed = {"ipt_2.tpb_32": ("error", WHY), "ipt_3.tpb_32": ("error", "invalid argument")}
    (finding,) = findings_of(one.failed, {})
    assert finding.memcheck.outcome == "error"
