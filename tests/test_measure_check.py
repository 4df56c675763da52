"""`make measure-check`: what it compares, without a GPU."""

import csv
import sqlite3
from contextlib import closing

import pytest

from benchmarks import measure_check
from benchmarks.measure_check import disagreements, lost
from policygen.model.measured import (
    MeasuredVariant,
    MeasuredVariants,
    MeasuredWorkload,
    VariantFailure,
)
from policygen.model.results import Interval
from policygen.model.trees import Cub
from policygen.rendering import folder
from policygen.results.cases import importance
from tests.gpu.measuring import measure

LABEL = "ipt_16.tpb_512"


def variant(score=1.1, width=0.01, failed=None):
    if failed:
        return MeasuredVariant(
            variant=LABEL, failed=VariantFailure(kind=failed, reason="3 elements differ")
        )
    interval = Interval(low=score - width, high=score + width)
    return MeasuredVariant(variant=LABEL, score=score, interval=interval)


def document(*variants, problem=None):
    workload = MeasuredWorkload(
        benchmark="cub.bench.reduce.sum", workload={}, variants=variants, problem=problem
    )
    return MeasuredVariants(
        cub=Cub(root="/cub", version="3.6.0", dialect="selectors", found="--cub"),
        arch="sm90",
        toolchain="nvcc 13.2.86",
        driver="580.82.07",
        method="events",
        processes=5,
        rounds=20,
        seed=1,
        database=None,
        workloads=(workload,),
        seconds=9.0,
        compiling=5.0,
        gpu="H200 (6144, 132, eccon)",
        ctk="13.2.86",
        cccl="v3.6.0",
    )


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (variant(1.1), variant(1.115), []),
        (
            variant(1.1),
            variant(1.2),
            ["ipt_16.tpb_512: 1.1000 and 1.2000, whose intervals are apart"],
        ),
        (variant(failed="compile"), variant(failed="compile"), []),
        (variant(), variant(failed="crash"), ["ipt_16.tpb_512 fails in one run alone"]),
        (
            variant(failed="wrong"),
            variant(failed="wrong"),
            ["ipt_16.tpb_512 is wrong: 3 elements differ"] * 2,
        ),
    ],
    ids=["agree", "apart", "fail alike", "one fails", "wrong"],
)
def test_two_runs_agree_or_it_says_how_not(one, other, words):
    found = list(disagreements(document(one), document(other)))
    assert found == [f"cub.bench.reduce.sum: {each}" for each in words]


def test_a_workload_that_cannot_be_measured_does_not_agree():
    (found,) = disagreements(document(problem="no run"), document())
    assert found == "cub.bench.reduce.sum: no run"


def test_each_workload_is_measured_twice_with_the_same_variants(monkeypatch, capsys):
    asked = []

    def measured(session, where, wanted, *, effort):
        asked.append((where.regex, wanted.labels, wanted.count, effort.seed))
        return document(variant(1.1 if effort.seed == 1 else 1.3))

    monkeypatch.setattr(measure_check, "measure_variants", measured)
    found = list(measure_check.compare(None))
    assert len(found) == len(measure_check.WORKLOADS)
    assert asked[:2] == [
        ("cub.bench.reduce.sum$", (), 5, 1),
        ("cub.bench.reduce.sum$", (LABEL,), None, 2),
    ]
    assert f"  {LABEL}: 1.1000, 1.3000\n" in capsys.readouterr().out


def test_both_ways_measure_the_same_variants(monkeypatch, capsys, tmp_path):
    asked = []

    def by_events(_session, _where, wanted, *, effort):
        asked.append(("events", wanted.labels, effort.processes))
        return document(variant(1.1))

    def by_nvbench(_checkout, _where, labels, *, effort):
        asked.append(("nvbench", labels, effort.rounds))
        return document(variant(1.2 if "ipt_11.tpb_800" in labels else 1.105))

    monkeypatch.setattr(measure_check, "open_session", lambda _: None)
    monkeypatch.setattr(measure_check, "measure_variants", by_events)
    monkeypatch.setattr(measure_check, "measure_checkout", by_nvbench)
    (found,) = measure_check.compare_ways(tmp_path)
    assert "1.1000 and 1.2000, whose intervals are apart" in found
    assert [way for way, *_ in asked] == ["events", "nvbench"] * 4
    assert all(a[1] == b[1] for a, b in zip(asked[::2], asked[1::2], strict=True))
    assert "by events and by NVBench" in capsys.readouterr().out


def ways():
    """By benchmark and variant: both scores, of what was measured on an H200."""
    with (folder("fixtures") / "measured/both_ways.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        sizes = sorted({r["point"].split()[0] for r in rows if r["benchmark"] == row["benchmark"]})
        weight = importance(sizes.index(row["point"].split()[0]), len(sizes))
        ratios = [
            float(row[f"{way}_base"]) / float(row[way]) * weight for way in ("events", "nvbench")
        ]
        found.setdefault((row["benchmark"], row["variant"]), []).append((*ratios, weight))
    return {
        key: [sum(one[n] for one in all_of) / sum(one[2] for one in all_of) for n in (0, 1)]
        for key, all_of in found.items()
    }


def test_events_and_cccl_s_own_benchmarks_agreed_on_a_gpu():
    found = ways()
    assert len({benchmark for benchmark, _ in found}) == 4
    assert len(found) == 8
    for key, (events, nvbench) in found.items():
        # What scores of repeated searches differ by at most; see docs/measuring.md.
        assert events == pytest.approx(nvbench, abs=0.012), key


def test_rows_that_are_lost_are_found(tmp_path):
    db = tmp_path / "run.db"
    measure(db, tmp_path)
    assert list(lost(db)) == []
    with closing(sqlite3.connect(db)) as connection:
        connection.execute('DELETE FROM "cub.bench.demo.base" WHERE rowid = 1')
        connection.execute("DELETE FROM runs WHERE rowid = 1")
        connection.commit()
    assert list(lost(db)) == [
        "15 rows were written, and 14 runs are told",
        "14 rows are there, and 15 were written",
    ]
