"""`policygen audit lint` on trees of rocPRIM."""

import json

import pytest

from policygen.cli.main import main
from tests.real_trees import rocprim_tree
from tests.rocprim.toy import ENTRIES, WORDS, config, full, make_toy

ASKED = ["threads-not-warp-multiple", "threads-over-limit", "duplicate-key", "not-provable"]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def lint(capsys, root, *words):
    status = main(["audit", "lint", "--cub", str(root), "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_a_sound_tree_has_no_findings_and_says_which_rules_were_asked(capsys, tmp_path):
    root = make_toy(tmp_path / "toy")
    status, told = lint(capsys, root)
    assert (status, told["findings"], list(told["counts"])) == (0, [], ASKED)
    assert main(["audit", "lint", "--cub", str(root)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"rules that apply to rocPRIM's configs: {', '.join(ASKED)}"
    assert last == "0 findings in 5 entries of 1 family; 6 rules off"


@pytest.mark.parametrize(
    ("entry", "rule", "message"),
    [
        (
            config("gfx942", "sizeof(key_type) > 8", "100, 4"),
            "threads-not-warp-multiple",
            "100 threads are not a multiple of the warp size 32",
        ),
        (
            config("gfx942", "sizeof(key_type) > 8", "2048, 4"),
            "threads-over-limit",
            "2048 threads: a block has at most 1024",
        ),
        (
            config("gfx942", " && ".join(reversed(WORDS.split(" && "))), "64, 4"),
            "duplicate-key",
            "line 12 specializes the same arguments",
        ),
    ],
)
def test_what_cannot_be_is_found_at_its_place(capsys, tmp_path, entry, rule, message):
    status, told = lint(capsys, make_toy(tmp_path / "toy", *ENTRIES, entry))
    (found,) = told["findings"]
    assert status == 1
    assert (found["rule"], found["family"]) == (rule, "default_reduce_config")
    assert found["message"].startswith(message)


def test_the_same_types_on_another_architecture_are_no_duplicates(capsys, tmp_path):
    copies = (config("gfx906", WORDS, "256, 8"), full("gfx942", "double", "64, 2"))
    assert lint(capsys, make_toy(tmp_path / "toy", *ENTRIES, *copies))[0] == 0


def test_a_rule_for_cub_alone_is_refused(capsys, tmp_path):
    root = make_toy(tmp_path / "toy")
    assert main(["audit", "lint", "--cub", str(root), "--only", "same-as-inherited"]) == 2
    assert capsys.readouterr().err == (
        "policygen: error: none of the chosen rules applies to rocPRIM's headers\n"
        f"  Rules that apply: {', '.join(ASKED)}\n"
    )


def test_the_real_5_7_1_has_none(capsys):
    status, told = lint(capsys, rocprim_tree("5.7.1"))
    assert (status, told["findings"], told["entries"]) == (0, [], 1475)
