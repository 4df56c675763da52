"""Databases for any benchmark: `db choose` chooses the winners that were asked for."""

import json

import pytest

from fixtures.databases import every
from fixtures.databases.every import GPUS, benchmark_database, benchmark_of, labels, workloads
from policygen.bindings.load import bound
from policygen.bindings.words import gpu_arch
from policygen.cli.main import main
from policygen.model.trees import BoundVersion

NAMES = [b.name for a in bound(BoundVersion("3.0.1")) for b in a.benchmarks if b.writable]


def chosen(capsys, path):
    assert main(["db", "choose", "--json", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)["workloads"]
    return {tuple(w["workload"].values()): w["choice"]["variant"] for w in found}


def first(benchmark):
    return next(labels(benchmark))


@pytest.mark.parametrize("name", NAMES)
def test_the_winners_are_chosen_and_no_others(capsys, tmp_path, name):
    benchmark = benchmark_of(name, "3.0.1")
    one, other, *_ = workloads(benchmark, "3.0.1")
    won = {one: first(benchmark), other: None}
    benchmark_database(tmp_path / "a.db", name, "3.0.1", GPUS["sm90"], won)
    assert chosen(capsys, tmp_path / "a.db") == won


def test_each_workload_can_have_its_own_winner(capsys, tmp_path):
    name = "cub.bench.radix_sort.keys"
    points = workloads(benchmark_of(name, "3.0.1"), "3.0.1")
    won = {("I8", "I32"): "ipt_19.tpb_384", ("F64", "I64"): "ipt_7.tpb_128", None: None}
    benchmark_database(tmp_path / "a.db", name, "3.0.1", GPUS["sm100"], won, variants=1)
    assert chosen(capsys, tmp_path / "a.db") == {p: won.get(p) for p in points}


def test_a_workload_can_have_several_winners_the_best_first(capsys, tmp_path):
    name, best = "cub.bench.radix_sort.keys", ("ipt_19.tpb_384", "ipt_7.tpb_128", "ipt_8.tpb_128")
    path = tmp_path / "a.db"
    benchmark_database(path, name, "3.0.1", GPUS["sm90"], {("I8", "I32"): best})
    assert main(["db", "top", "--json", str(path)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["workloads"]
    assert [
        (v["variant"], round(v["score"], 2)) for v in found["variants"] if v["score"] > 1
    ] == list(zip(best, (1.1, 1.09, 1.08), strict=True))


def test_all_workloads_can_be_won_at_once(capsys, tmp_path):
    name, won = "cub.bench.reduce.sum", {None: "ipt_20.tpb_256.ipv_2"}
    benchmark_database(tmp_path / "a.db", name, "3.2.0", GPUS["sm100"], won)
    found = chosen(capsys, tmp_path / "a.db")
    assert set(found.values()) == {"ipt_20.tpb_256.ipv_2"}
    assert len(found) == len(workloads(benchmark_of(name, "3.2.0"), "3.2.0"))


def test_the_gpus_are_those_of_their_architectures():
    assert {gpu_arch(gpu): arch for arch, gpu in GPUS.items()} == {a: a for a in GPUS}


def test_the_labels_are_the_whole_search_space_in_order():
    found = list(labels(benchmark_of("cub.bench.reduce.sum", "3.0.1")))
    assert len(found) == len(set(found)) == 18 * 29 * 2
    assert found[:2] == ["ipt_7.tpb_128.ipv_1", "ipt_7.tpb_128.ipv_2"]
    assert found[-1] == "ipt_24.tpb_1024.ipv_2"


@pytest.mark.parametrize(
    ("name", "winners", "message"),
    [
        ("cub.bench.sort", {None: None}, "cub.bench.sort is not bound for CUB 3.0.1"),
        ("cub.bench.reduce.sum", {("I32",): None}, "cub.bench.reduce.sum has no workload I32"),
        ("cub.bench.reduce.sum", {None: "ipt_7"}, "ipt_7 is no variant of cub.bench.reduce.sum"),
        (
            "cub.bench.reduce.sum",
            {None: "tpb_128.ipt_7.ipv_1"},
            "tpb_128.ipt_7.ipv_1 is no variant of cub.bench.reduce.sum",
        ),
        (
            "cub.bench.reduce.sum",
            {None: "ipt_99.tpb_128.ipv_1"},
            "ipt_99.tpb_128.ipv_1 is no variant of cub.bench.reduce.sum",
        ),
    ],
)
def test_what_the_bindings_do_not_know_is_refused(tmp_path, name, winners, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        benchmark_database(tmp_path / "a.db", name, "3.0.1", GPUS["sm90"], winners)
    assert not (tmp_path / "a.db").exists()


def test_the_command_line_writes_the_same(capsys, tmp_path):
    name, label = "cub.bench.reduce.sum", "ipt_20.tpb_256.ipv_2"
    won = {("I32", "I32"): label, ("F64", "I64"): None}
    benchmark_database(tmp_path / "a.db", name, "3.0.1", GPUS["sm90"], won)
    wins = ["--win", f"I32,I32={label}", "--win", "F64,I64=base"]
    every.main([str(tmp_path / "b.db"), name, *wins])
    assert (tmp_path / "a.db").read_bytes() == (tmp_path / "b.db").read_bytes()
    every.main([str(tmp_path / "c.db"), name, "--win", f"*={label}", "--arch", "sm100"])
    assert set(chosen(capsys, tmp_path / "c.db").values()) == {label}


@pytest.mark.parametrize("win", ["I32,I32", "I32,I32=ipt_1", "I1,I32=base"])
def test_a_mistyped_winner_is_told(capsys, tmp_path, win):
    with pytest.raises(SystemExit):
        every.main([str(tmp_path / "a.db"), "cub.bench.reduce.sum", "--win", win])
    assert "error: " in capsys.readouterr().err
