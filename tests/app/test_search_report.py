"""The report of a search, from databases as searches leave them, and from those of others."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from statistics import fmean, stdev

import numpy as np
import pytest

from policygen.app.databases import report_search
from policygen.app.filters import Filter
from policygen.app.inputs import ResultFiles
from policygen.errors import InputError
from policygen.gpu import finalists, search_report
from policygen.gpu.statistics import student
from policygen.model.searches import QUANTILES, SearchReport
from policygen.results.merge import merge
from policygen.results.own_tables import RUNGS, SEARCHES
from tests.results.build import Builder, simple
from tests.results.measured import MEASURED
from tests.results.searched import BEGUN, CT, IO, SIZES, Searched, gain, label_of, searched

TWO = {"16": 2.0, "20": 2.0}


@pytest.fixture(scope="module")
def run_db(tmp_path_factory):
    return searched(tmp_path_factory.mktemp("searched") / "run.db")


@pytest.fixture(scope="module")
def document(run_db):
    return report_search(ResultFiles([str(run_db)]))


def told(path, *axes, regex=""):
    return report_search(ResultFiles([str(path)], where=Filter(regex=regex, axes=axes)))


def values_of(label):
    return {name: int(value) for name, _, value in (p.partition("_") for p in label.split("."))}


@pytest.mark.slow
def test_the_winner_is_the_best_that_was_tried(document):
    first, second = document.workloads
    assert first.workload == {CT: "I8"}
    assert (first.origin, first.rung) == ("search", "last")
    really = {one.variant: gain(values_of(one.variant), "I8") for one in first.variants}
    assert first.best == max(really, key=really.__getitem__)
    winner = first.finalists[0]
    assert winner.variant == first.best
    assert winner.interval.low < really[first.best] * 1.003
    assert winner.interval.high > really[first.best] * 0.997
    assert (winner.verdict, winner.processes) == ("faster", 5)
    assert first.base == "ipt_15.tpb_256.ns_500.trp_1"
    assert second.base is None
    assert [run.ended for one in document.workloads for run in one.searches] == ["count", "budget"]


def test_scores_and_intervals_are_those_of_the_rows(document, run_db):
    with closing(sqlite3.connect(run_db)) as connection:
        rows = connection.execute(
            f"SELECT process, workload, base / center FROM {RUNGS} WHERE rung = 3 AND variant = ?"
            " AND workload LIKE '%\"I8\"%'",
            (document.workloads[0].best,),
        ).fetchall()
    winner = document.workloads[0].finalists[0]
    weights = {row.point[IO]: row.weight for row in winner.runtime}
    assert sum(weights.values()) == pytest.approx(1)
    scores = {}
    for process, workload, ratio in rows:
        part = weights[json.loads(workload)[IO]] * ratio
        scores[process] = scores.get(process, 0) + part
    assert winner.score == pytest.approx(fmean(scores.values()))
    # Never surer than these processes are; others may differ more.
    half = student(4) * stdev(scores.values()) / 5**0.5
    assert winner.interval.high - winner.score >= half * 0.999


def test_the_screening_is_told_beside_the_result(document):
    for one in document.workloads:
        scores = {variant.variant: variant.score for variant in one.variants}
        ranked = sorted(scores, key=lambda label: -scores[label])
        for final in one.finalists:
            assert final.screened == scores[final.variant]
            assert final.rank == ranked.index(final.variant) + 1
            assert final.sharper is not None
        assert {v.rung for v in one.variants if v.variant in ranked} <= {
            "screening", "sharper", "last"
        }  # fmt: skip
        assert sum(v.rung == "last" for v in one.variants) == len(one.finalists) == 8


def test_convergence_is_the_best_so_far(document):
    first = document.workloads[0]
    curve = first.curve
    assert [one.evaluation for one in first.variants] == list(range(1, 301))
    best = 0.0
    rises = []
    for one in first.variants:
        if one.score > best:
            best = one.score
            rises.append((one.evaluation, one.variant, one.score))
    assert [(one.evaluation, one.variant, one.score) for one in curve.best] == rises
    assert curve.evaluations == 300
    times = [one.seconds for one in first.variants]
    assert times == sorted(times)
    # Compiling took a minute before.
    assert 60 < times[0] < times[-1] < curve.seconds
    assert [span.rung for span in curve.spans] == ["screening", "sharper", "last"]
    assert all(a.end <= b.start for a, b in zip(curve.spans, curve.spans[1:], strict=False))


def test_what_failed_is_counted_by_its_reason(document):
    one = document.workloads[0]
    counts = one.counts
    assert (counts.tried, counts.measured, counts.failed, counts.wrong) == (330, 300, 28, 2)
    assert [group.kind for group in one.failures] == ["wrong", "compile", "hang", "memory"]
    assert sum(group.count for group in one.failures) == 30
    assert len(one.failed_variants) == 30
    assert all(len(group.variants) <= 5 for group in one.failures)


def test_quantiles_are_of_all_samples_of_the_last_rung(document):
    one = document.workloads[0]
    assert len(document.quantiles) == len(QUANTILES) == 21
    with_them = [final for final in one.finalists if final.quantiles]
    assert with_them == list(one.finalists[:5])
    for final in with_them:
        assert [found.point[IO] for found in final.quantiles] == list(SIZES)
        for found, row in zip(final.quantiles, final.runtime, strict=True):
            assert found.ratios[10] == pytest.approx(row.ratio, rel=0.01)


def test_noise_and_machine_are_told(document):
    one = document.workloads[0]
    assert [row.point[IO] for row in one.noise] == list(SIZES)
    assert 0.003 < one.noise[0].between < 0.03
    assert 0 < one.score_noise < 0.01
    (session,) = document.sessions
    assert (session.driver, session.sm_clock, session.restarts) == ("580.159.04", 1980, 2)
    assert session.steps[0].step == "compiling"
    assert 100 < session.seconds < 1000
    assert document.workloads[0].arch == "sm90"


def test_the_document_is_read_again(document):
    again = SearchReport.model_validate_json(document.to_json())
    assert again.to_json() == document.to_json()


def test_a_search_that_was_killed_tells_how_far_it_came(tmp_path):
    path = tmp_path / "run.db"
    with Searched(path) as made:
        made.begin()
        made.search("I8", ended=None)
        made.whole("I8", 40, last=False)
    (one,) = told(path).workloads
    assert (one.rung, one.best) == ("sharper", None)
    assert one.searches[0].ended is None
    assert one.finalists[0].screened is not None
    assert one.finalists[0].sharper is None
    assert one.finalists[0].interval is None


def test_a_search_that_only_screened_has_a_best_so_far(tmp_path):
    path = tmp_path / "run.db"
    with Searched(path) as made:
        made.begin()
        made.search("I8", ended=None)
        drawn = made.draw(30)
        made.rung("I8", drawn, 1, count=10, noise=0.01)
    (one,) = told(path).workloads
    assert (one.rung, one.best) == ("screening", None)
    assert len(one.finalists) == 24
    assert one.other_finalists == 6
    assert one.finalists[0].screened is None


def test_a_search_without_a_whole_variant_has_none(tmp_path):
    path = tmp_path / "run.db"
    with Searched(path) as made:
        made.begin()
        made.search("I8", ended=None)
        drawn = made.draw(3)
        made.rung("I8", [], 1, count=10, noise=0.01)
        made.rung("I8", drawn, 1, count=10, noise=0.01, sizes=SIZES[:2])
        made.search("I32", ended=None)
        made.fail("I32", label_of(drawn[0]), "strange", "no reason")
    (one, other) = told(path).workloads
    assert (one.finalists, one.curve, one.variants) == ((), None, ())
    assert one.counts.incomplete == 3
    assert (other.workload, other.runtime_workloads) == ({"T": "I32"}, 0)
    assert other.failures[0].kind == "error"
    assert other.databases == (str(path),)
    assert other.arch == "sm90"


def test_only_what_is_asked_for_is_told(run_db):
    (one,) = told(run_db, "T=I32").workloads
    assert one.workload == {CT: "I32"}
    part = told(run_db, f"{IO}=[16,28]").workloads[0]
    assert (part.runtime_workloads, part.declared) == (2, 4)
    assert part.choice is None
    assert {row.point[IO] for final in part.finalists for row in final.runtime} == {"16", "28"}
    with pytest.raises(InputError, match="nothing matches"):
        told(run_db, regex="cub.bench.reduce")


def test_several_databases_are_one_search(run_db, tmp_path):
    other = tmp_path / "later.db"
    with Searched(other, seed=5) as made:
        made.at(86400)
        made.begin()
        made.process = 1000
        made.whole("I8", 32)
    found = report_search(ResultFiles([str(run_db), str(other)])).workloads[0]
    assert found.curve.evaluations > 300
    assert [one.evaluation for one in found.variants] == list(range(1, len(found.variants) + 1))
    times = [one.seconds for one in found.variants]
    assert times == sorted(times)
    assert set(found.databases) == {str(run_db), str(other)}


def test_base_beside_itself_is_the_control(tmp_path):
    path = tmp_path / "run.db"
    searched(path, count=32, finalists=3)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"UPDATE {RUNGS} SET base = base * (1 + (rowid % 7 - 3) / 1000.0)"
            " WHERE variant = 'base' AND rung = 3"
        )
    one = told(path).workloads[0]
    assert one.control.variant == "base"
    assert one.control.score == pytest.approx(1, abs=0.004)
    assert one.control.processes == 5


def test_measurements_without_a_search_have_no_way_to_it(tmp_path):
    path = searched(tmp_path / "run.db", count=32)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in (RUNGS, SEARCHES):
            connection.execute(f"DROP TABLE {table}")
    one = told(path).workloads[0]
    assert (one.origin, one.rung, one.curve) == ("measure", None, None)
    assert len(one.finalists) == 8
    assert all(v.evaluation is None for v in one.variants)
    scores = [v.score for v in one.variants]
    assert scores == sorted(scores, reverse=True)
    assert one.choice is not None
    assert one.best == (one.choice.variant if one.choice.decision == "use" else None)
    assert one.finalists[0].quantiles
    assert one.noise


def test_rows_of_another_program_tell_what_they_can():
    path = MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db"
    document = told(path)
    one = document.workloads[0]
    assert (one.origin, one.curve, document.sessions) == ("rows", None, ())
    assert one.best == one.choice.variant
    assert one.finalists[0].interval is not None
    assert one.finalists[0].runtime[0].seconds > 0


def test_logs_of_another_program_tell_what_failed(tmp_path):
    path = tmp_path / "a.db"
    simple(path, base=TWO, ipt_1={"16": 1.0, "20": 1.0}, ipt_2={"16": 1.5})
    made = Builder.__new__(Builder)
    made.path = path
    made.execute("CREATE TABLE builds (ctk TEXT, cccl TEXT, bench TEXT, code TEXT, elapsed REAL)")
    made.execute(
        "INSERT INTO builds VALUES ('13', 'v3', ?, ?, 1.0)",
        ("cub.bench.demo.ipt_3", "2"),
        ("cub.bench.demo.ipt_4", "2"),
        ("cub.bench.demo.ipt_5", "0"),
        ("cub.bench.demo", "2"),
    )
    one = told(path).workloads[0]
    assert one.counts.incomplete == 1
    assert [(g.kind, g.reason, g.count) for g in one.failures] == [("build", "code 2", 2)]
    assert one.failures[0].variants == ("ipt_3", "ipt_4")


def test_what_is_too_much_is_counted(run_db, monkeypatch):
    monkeypatch.setattr(finalists, "LISTED", 10)
    monkeypatch.setattr(finalists, "GROUPS", 2)
    monkeypatch.setattr(finalists, "STEPS", 2)
    monkeypatch.setattr(search_report, "MOST", 0)
    document = report_search(ResultFiles([str(run_db)]))
    one = document.workloads[0]
    assert (len(one.variants), one.unlisted) == (10, 290)
    assert one.counts.measured == 300
    assert (len(one.failures), one.other_failures) == (2, 2)
    assert len(one.curve.best) == 2
    assert one.curve.evaluations == 300


def test_steps_that_are_too_many_are_one(tmp_path, monkeypatch):
    path = tmp_path / "run.db"
    with Searched(path) as made:
        made.begin(ended="2025-01-01T00:00:00")
        for number in range(20):
            made.db.execute(f"INSERT INTO policygen_times VALUES (1, 'step {number}', {number})")
        made.rung("I8", made.draw(2), 1, count=10, noise=0.01)
    (session,) = told(path).sessions
    assert len(session.steps) == 12
    assert (session.other_steps.count, session.other_steps.seconds) == (9, 36)
    # It ended before it began: nobody knows how long it took.
    assert session.seconds is None


def test_nothing_at_all_is_refused(tmp_path):
    with pytest.raises(InputError, match="no file matches"):
        told(tmp_path / "*.db")


def test_what_searches_recorded_is_merged(tmp_path):
    """Two searches of one GPU, one workload each, are one report; merged again, too."""
    whole = tmp_path / "whole.db"
    halves = [tmp_path / "a.db", tmp_path / "b.db"]
    for path, searches in ((whole, ("I8", "I32")), (halves[0], ("I8",)), (halves[1], ("I32",))):
        with Searched(path) as made:
            for workload in searches:
                number = ("I8", "I32").index(workload)
                made.rng, made.process = np.random.default_rng(number), 0
                made.now = BEGUN + timedelta(hours=number)
                made.begin()
                made.search(workload)
                made.whole(workload, 24, finalists=3)
    merge(halves, tmp_path / "m.db")
    merge([tmp_path / "m.db", halves[1], halves[0]], tmp_path / "again.db")

    def workloads(path):
        return [row.model_copy(update={"databases": ()}) for row in told(path).workloads]

    assert len(workloads(whole)) == 2
    for name in ("m.db", "again.db"):
        assert workloads(tmp_path / name) == workloads(whole)
