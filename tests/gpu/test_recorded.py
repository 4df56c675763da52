"""Spaces of databases: what of them counts, and what a strategy is told."""

import re
import sqlite3

import numpy as np
import pytest

from policygen.app.inputs import ResultFiles
from policygen.app.search import Replaying, replay_search
from policygen.errors import InputError, PolicygenError
from policygen.gpu.replay import starts_in
from policygen.gpu.strategies import Domain
from policygen.results.own_tables import STARTS
from policygen.results.tables import quote
from tests.results.build import ALGORITHM, IO, Builder

SIZES = ("16", "20")
WEIGHTS = Replaying(samples=0, strategy="random")


def made(path, variants, **more):
    """A database with one workload; each variant as many times as fast as base."""
    built = Builder(path).table()
    for name, speed in {"base": 1.0, **variants}.items():
        built.rows(name, dict.fromkeys(SIZES, 0.001 / speed), "I32", **more)
    return built


def grid(**left_out):
    """Six variants of two parameters."""
    found = {f"ipt_{i}.tpb_{t}": 1 + i / 100 + t / 10_000 for i in (7, 9, 12) for t in (64, 128)}
    return {name: speed for name, speed in found.items() if name not in left_out.values()}


def replayed(path, **how):
    return replay_search(ResultFiles([str(path)]), Replaying(**{"batch": 4, **how}))


def test_all_that_a_database_has_is_evaluated_and_what_it_lacks_cannot_be(tmp_path):
    made(tmp_path / "run.db", grid(a="ipt_9.tpb_64", b="ipt_12.tpb_128"))
    for strategy in ("random", "local"):
        document = replayed(tmp_path / "run.db", strategy=strategy, samples=0)
        (space,), (run,) = document.spaces, document.runs
        assert (space.recorded, space.product, space.others) == (4, 6, 0)
        assert (run.evaluations, run.invalid) == (4, 0)
        assert space.best.variant == run.best.variant == "ipt_12.tpb_64"
        assert run.best.score == pytest.approx(1 + 0.12 + 0.0064)
        assert run.curve[-1] == (4, run.best.score)
        assert run.workload == {"T": "I32"}
        assert run.benchmark == ALGORITHM


def test_a_replay_is_the_same_for_the_same_seed(tmp_path):
    made(tmp_path / "run.db", grid())
    one, other = (replayed(tmp_path / "run.db", seed=3, seeds=2) for _ in range(2))
    assert one == other
    assert [run.seed for run in one.runs] == [3, 4]
    assert replayed(tmp_path / "run.db", seed=4).runs[0] == one.runs[1]


def test_variants_limit_evaluations(tmp_path):
    made(tmp_path / "run.db", grid())
    (run,) = replayed(tmp_path / "run.db", variants=3, batch=2).runs
    assert run.evaluations == run.curve[-1][0] == 3


def test_gpus_and_workloads_are_kept_apart(tmp_path):
    built = made(tmp_path / "run.db", grid())
    for name, speed in {"base": 1.0, "ipt_7.tpb_64": 2.0}.items():
        built.rows(name, dict.fromkeys(SIZES, 0.001 / speed), "I32", gpu="B200 (1, 2, eccon)")
        built.rows(name, dict.fromkeys(SIZES, 0.001 / speed), "I64")
    document = replayed(tmp_path / "run.db", samples=0)
    assert [(one.gpu[:4], one.workload["T"], one.recorded) for one in document.spaces] == [
        ("B200", "I32", 1),
        ("G (1", "I32", 6),
        ("G (1", "I64", 1),
    ]
    assert [run.best.variant for run in document.runs] == [
        "ipt_7.tpb_64",
        "ipt_12.tpb_128",
        "ipt_7.tpb_64",
    ]


def test_variants_with_other_parameters_are_left_out_and_counted(tmp_path):
    made(tmp_path / "run.db", {**grid(), "ipt_7": 9.0, "ipt_9.tpb_64.ld_1": 9.0, "nonsense": 9.0})
    document = replayed(tmp_path / "run.db", samples=0)
    assert (document.spaces[0].recorded, document.spaces[0].others) == (6, 2)
    assert document.runs[0].best.variant == "ipt_12.tpb_128"
    assert ["nonsense" in one.message for one in document.warnings] == [True]


def test_the_order_of_a_label_does_not_matter(tmp_path):
    made(tmp_path / "run.db", {**grid(a="ipt_7.tpb_64"), "tpb_64.ipt_7": 1.5})
    (space,) = replayed(tmp_path / "run.db", samples=0).spaces
    assert (space.recorded, space.product, space.others) == (6, 6, 0)
    assert space.best.variant == "tpb_64.ipt_7"


def test_a_variant_that_was_not_measured_whole_counts_as_not_there(tmp_path):
    built = made(tmp_path / "run.db", grid())
    built.row("ipt_7.tpb_256", 1e-5, "I32", "16")
    (space,) = replayed(tmp_path / "run.db", samples=0).spaces
    assert (space.recorded, space.incomplete) == (6, 1)


@pytest.mark.parametrize("variants", [{}, {"base": None}, {"only bad": 2.0}])
def test_a_database_without_anything_to_compare_is_refused(tmp_path, variants):
    built = Builder(tmp_path / "run.db").table()
    for name in ("base", *variants) if "base" not in variants else ("ipt_7",):
        built.rows(name, dict.fromkeys(SIZES, 1e-3), "I32")
    with pytest.raises(InputError, match=r"no variant can be compared|nothing matches"):
        replayed(tmp_path / "run.db")


def test_without_samples_a_strategy_is_told_what_was_recorded(tmp_path):
    built = Builder(tmp_path / "run.db", samples=False).table()
    for name, speed in {"base": 1.0, **grid()}.items():
        built.rows(name, dict.fromkeys(SIZES, 0.001 / speed), "I32")
    document = replayed(tmp_path / "run.db")
    assert not document.spaces[0].sampled
    assert document.runs[0].best.variant == "ipt_12.tpb_128"


def test_samples_that_cannot_be_read_are_warned_of(tmp_path):
    built = made(tmp_path / "run.db", grid())
    name = quote(f"{ALGORITHM}.base")
    built.execute(f"UPDATE {name} SET samples = x'00' WHERE variant = 'ipt_7.tpb_64'")
    document = replayed(tmp_path / "run.db")
    assert document.spaces[0].sampled
    assert sum(one.count for one in document.warnings) == 2
    assert document.runs[0].evaluations == 6


def space(path, samples=True):
    from policygen.app.inputs import open_inputs
    from policygen.gpu.replay import recorded_spaces
    from policygen.results.ranking import Warnings

    given = ResultFiles([str(path)])
    with open_inputs(given) as files:
        (found,) = recorded_spaces(
            files.databases, Warnings(), re.compile(""), {}, files.declared, sampled=samples
        )
    return found


def test_few_samples_say_about_what_all_say_and_many_say_it_better(tmp_path):
    made(tmp_path / "run.db", grid(), spread=0.05)
    found = space(tmp_path / "run.db")

    def error(samples):
        lots = [found.sampled_goals(samples, seed) for seed in range(40)]
        return np.std([[one[v] - s for v, s in found.goal.items()] for one in lots])

    assert 0.005 < error(1) < 0.1
    assert error(100) < error(10) < error(1)
    assert found.sampled_goals(5, 1) == found.sampled_goals(5, 1) != found.sampled_goals(5, 2)
    assert found.sampled_goals(0, 1) == found.goal


def test_a_variant_that_the_rule_does_not_allow_counts_by_its_loss(tmp_path):
    built = made(tmp_path / "run.db", grid())
    built.rows("ipt_20.tpb_64", {"16": 0.001 / 0.7, "20": 0.001 / 9}, "I32")
    found = space(tmp_path / "run.db")
    score = found.scores.score[found.place[20, 64]]
    assert score > max(found.goal.values())
    assert found.goal[20, 64] == pytest.approx(0.7)
    assert found.sampled_goals(5, 1)[20, 64] == pytest.approx(0.7, rel=0.05)
    document = replayed(tmp_path / "run.db", samples=0)
    assert document.spaces[0].best.variant == document.runs[0].best.variant == "ipt_12.tpb_128"


def test_runs_of_several_databases_are_one_space(tmp_path):
    made(tmp_path / "a.db", grid())
    made(tmp_path / "b.db", {name: speed * 1.02 for name, speed in grid().items()})
    document = replay_search(
        ResultFiles([str(tmp_path / "a.db"), str(tmp_path / "b.db")]), Replaying(samples=5)
    )
    assert len(document.spaces[0].databases) == 2
    assert document.spaces[0].best.score == pytest.approx((1 + 0.12 + 0.0128) * 1.01)


def with_starts(path, *rows, columns="algorithm TEXT, workload TEXT, variant TEXT"):
    built = made(path, grid())
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE {STARTS} ({columns})")
        db.executemany(f"INSERT INTO {STARTS} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return built


T_I32 = '{"T{ct}": "I32"}'


def test_a_search_begins_with_what_the_database_names(tmp_path):
    with_starts(tmp_path / "run.db", (ALGORITHM, T_I32, "ipt_10.tpb_1000"))
    document = replayed(tmp_path / "run.db", samples=0)
    assert document.spaces[0].starts == ("ipt_9.tpb_128",)
    assert document.runs[0].curve[0] == (1, pytest.approx(1 + 0.09 + 0.0128))
    assert replayed(tmp_path / "run.db", strategy="random").spaces[0].starts == ()
    assert replayed(tmp_path / "run.db", starts=()).spaces[0].starts == ()
    own = replayed(tmp_path / "run.db", strategy="random", starts=("ipt_7.tpb_64",))
    assert own.spaces[0].starts == ("ipt_7.tpb_64",)


@pytest.mark.parametrize(
    "row",
    [
        ("cub.bench.other", T_I32, "ipt_9.tpb_64"),
        (ALGORITHM, '{"T{ct}": "I64"}', "ipt_9.tpb_64"),
        (ALGORITHM, "{", "ipt_9.tpb_64"),
        (ALGORITHM, "[" * 10_000, "ipt_9.tpb_64"),
        (ALGORITHM, b"\xff", "ipt_9.tpb_64"),
        (ALGORITHM, T_I32, "ipt_9"),
        (ALGORITHM, T_I32, "\x1b[31m"),
        (ALGORITHM, T_I32, "base"),
        (ALGORITHM, T_I32, b"ipt_9.tpb_64"),
        (None, None, None),
    ],
)
def test_what_is_no_start_counts_for_nothing(tmp_path, row):
    with_starts(tmp_path / "run.db", row)
    assert replayed(tmp_path / "run.db").spaces[0].starts == ()


def test_a_table_of_another_kind_holds_no_starts(tmp_path):
    with_starts(tmp_path / "run.db", ("x", "y"), columns="variant TEXT, other TEXT")
    assert replayed(tmp_path / "run.db").spaces[0].starts == ()


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("ipt_9", "has different parameters"),
        ("\x1b[31m", "is not a variant label"),
        ("base", "is no"),
    ],
)
def test_a_start_that_is_named_has_to_be_one(label, message):
    domain = Domain({"ipt": (7, 9), "tpb": (64, 128)}, lambda values: values)
    with pytest.raises(PolicygenError, match=message) as caught:
        starts_in(domain, [label])
    assert "\x1b" not in str(caught.value)


def test_an_axis_of_run_time_can_be_asked_for(tmp_path):
    from policygen.app.filters import Filter

    made(tmp_path / "run.db", grid())
    given = ResultFiles([str(tmp_path / "run.db")], where=Filter(axes=(f"{IO}=16",)))
    assert replay_search(given, Replaying(samples=0)).spaces[0].recorded == 6
