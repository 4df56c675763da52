"""`policygen search --replay`: the document, the tables, and what is refused."""

import json
from pathlib import Path

import jsonschema
import pytest

from policygen import rendering
from policygen.cli.main import main
from tests.results.build import Builder

SPACES = Path(__file__).parents[2] / "fixtures/spaces"
RADIX = str(SPACES / "radix_sort_keys_I16.db")
REDUCE = str(SPACES / "reduce_sum_F32.db")
SCHEMA = rendering.folder("schemas") / "json" / "search-replay-1.schema.json"


@pytest.fixture
def search(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments, status=0):
        assert main(["search", *arguments]) == status
        return capsys.readouterr()

    return run


def test_a_replay_is_one_document(search):
    out = search("--replay", RADIX, "--variants", "40", "--seed", "7", "--seeds", "2", "--json").out
    document = json.loads(out)
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert next(iter(document)) == "format"
    assert (document["strategy"], document["batch"], document["samples"]) == ("local", 16, 10)
    (space,) = document["spaces"]
    assert (space["recorded"], space["product"]) == (520, 522)
    assert space["best"]["variant"] == "ipt_20.tpb_384"
    for run, seed in zip(document["runs"], (7, 8), strict=True):
        assert run["benchmark"] == "cub.bench.radix_sort.keys"
        assert run["workload"] == {"T": "I16", "OffsetT": "I32"}
        assert (run["strategy"], run["seed"], run["evaluations"]) == ("local", seed, 40)
        counts, scores = zip(*run["curve"], strict=True)
        assert list(counts) == sorted(set(counts))
        assert list(scores) == sorted(scores)
        assert counts[-1] == 40
        assert scores[-1] == run["best"]["score"]


@pytest.mark.parametrize("strategy", ["random", "local"])
def test_every_strategy_replays(search, strategy):
    out = search("--replay", REDUCE, "--strategy", strategy, "--variants", "32", "--json").out
    (run,) = json.loads(out)["runs"]
    assert (run["strategy"], run["evaluations"], run["invalid"]) == (strategy, 32, 0)


def test_scores_are_those_of_db_top(search, capsys):
    (run,) = json.loads(search("--replay", REDUCE, "--strategy", "random", "--json").out)["runs"]
    assert run["evaluations"] == 804
    assert main(["db", "top", "--json", REDUCE]) == 0
    best, *_ = json.loads(capsys.readouterr().out)["workloads"][0]["variants"]
    assert run["best"] == {"variant": best["variant"], "score": best["score"]}


@pytest.mark.slow
def test_tables_fit_a_terminal(search):
    said = search("--replay", RADIX, "--replay", REDUCE, "--variants", "30", "--seeds", "3", "-v")
    rows = said.out.splitlines()
    assert max(map(len, rows)) <= 80
    assert "best: ipt_20.tpb_384 1.025325" in rows
    assert "begins with: ipt_19.tpb_512" in rows
    assert any("520 of 522 variants are recorded; 3 runs" in row for row in rows)
    assert any(row.split()[:4] == ["99", "%", "of", "the"] for row in rows)


@pytest.mark.slow
def test_a_regular_expression_chooses_workloads(search):
    said = search("--replay", RADIX, "--replay", REDUCE, "-R", "cub.bench.reduce", "--json")
    assert [one["benchmark"] for one in json.loads(said.out)["spaces"]] == ["cub.bench.reduce.sum"]
    said = search("--replay", RADIX, "-R", "cub.bench.nothing", status=2)
    assert "nothing matches" in said.err


@pytest.mark.slow
def test_nothing_to_begin_with_can_be_asked_for(search):
    few = ["--replay", RADIX, "--variants", "1", "--json"]
    assert json.loads(search(*few, "--start", "none").out)["spaces"][0]["starts"] == []
    said = search(*few, "--start", "ipt_20.tpb_390", "--strategy", "random")
    assert json.loads(said.out)["runs"][0]["best"]["variant"] == "ipt_20.tpb_384"


def test_what_a_stranger_wrote_is_shown_and_not_obeyed(search, tmp_path):
    built = Builder(tmp_path / "run.db").table()
    for name in ("base", "ipt_7", "\x1b[31mred", "ipt_8"):
        built.rows(name, {"16": 1e-3}, "\x1b[2J")
    said = search("--replay", str(tmp_path / "run.db"))
    assert "\x1b" not in said.out + said.err
    assert "rows with a variant that is not a label" in said.err


def test_without_a_database_it_is_said_what_a_search_and_a_replay_need(search):
    assert "--replay DB" in search(status=2).err


def test_a_file_that_is_none_is_refused(search, tmp_path):
    assert "cannot be read" in search("--replay", str(tmp_path / "no.db"), status=2).err
