"""Commands on databases whose texts are escape sequences, and the like."""

import json

import pytest

from policygen.cli.main import main
from tests.results.build import Builder

GPU = "H200\x1b]0;owned\x07\u202e (1, 2, eccon)"
SEEN = "H200\\x1b]0;owned\\x07\\u202e (1, 2, eccon)"
VALUE = "I8\x1b[8m\x9b\n::error::fine"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "a.db"
    built = Builder(path).table()
    for variant, center in (("base", 2.0), ("ipt_1", 1.0), ("ipt_2\x1b[2J", 1.0)):
        built.row(variant, center, VALUE, "16", gpu=GPU)
    return path


@pytest.mark.parametrize("command", ["info", "top", "choose", "coverage"])
def test_a_terminal_gets_no_escape_sequence_of_a_database(capsys, hostile, command):
    assert main(["db", command, str(hostile)]) == 0
    captured = capsys.readouterr()
    told = captured.out + captured.err
    assert all(line.replace("\t", "").isprintable() for line in told.split("\n"))
    assert SEEN in told
    assert not any(line.lstrip().startswith("::") for line in told.split("\n"))


def test_json_says_the_same_with_escapes(capsys, hostile):
    assert main(["db", "top", "--json", str(hostile)]) == 0
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.split("\n"))
    (workload,) = json.loads(out)["workloads"]
    assert workload["gpu"] == GPU
    assert workload["workload"] == {"T{ct}": VALUE}
