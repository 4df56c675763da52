"""`policygen review` on trees of rocPRIM."""

import json
import subprocess

import pytest

from policygen.app.change import Base, read_before
from policygen.app.filters import Filter
from policygen.app.resolve import ask_values
from policygen.app.session import open_session
from policygen.cli.main import main
from policygen.proof.reading import read_tree
from policygen.report.plan_views import measured_with
from tests.rocprim.toy import ENTRIES, SMALL, WORDS, config, header, make_toy, write


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toy(tmp_path):
    root = make_toy(tmp_path / "toy")
    run = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@invalid"]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "add", "-A"], check=True)
    subprocess.run([*run, "commit", "-qm", "base"], check=True)
    return root


def review(capsys, root, *words):
    status = main(["review", "--cub", str(root), "--base", "HEAD", "--json", *words])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


@pytest.mark.slow
def test_other_values_are_told_with_the_workloads_that_get_them(capsys, toy):
    write(toy, config("gfx942", WORDS, "256, 16"), *ENTRIES[1:])
    status, told, errors = review(capsys, toy)
    assert (status, errors, told["changed"]) == (0, "", 1)
    (entry,) = told["entries"]
    assert (entry["before"]["ItemsPerThread"], entry["after"]["ItemsPerThread"]) == (8, 16)
    (row,) = entry["reached"]
    assert (row["arch"], row["workload"]) == ("gfx942", {"key_type": "int"})
    assert not any("verify-sass" in command for command in told["commands"])
    assert main(["review", "--cub", str(toy), "--base", "HEAD"]) == 0
    shown = capsys.readouterr().out
    assert "compared with: rocPRIM 4.2.0, HEAD" in shown
    assert "1 of 2 proofs hold" in shown
    assert "inherits reduce_config" in shown
    assert "CUB" not in shown.partition("To reproduce")[0].replace("--cub", "")


@pytest.mark.slow
def test_an_entry_that_takes_other_types_besides_is_told(capsys, toy):
    wide = ENTRIES[0].replace("sizeof(key_type) <= 4", "sizeof(key_type) <= 8")
    write(toy, wide, *ENTRIES[1:])
    status, told, _ = review(capsys, toy)
    (entry,) = told["entries"]
    assert (status, entry["asks"] is not None) == (0, True)
    assert [row["workload"] for row in entry["reached"]] == [{"key_type": "int64_t"}]


@pytest.mark.slow
def test_an_entry_that_no_type_gets_any_more_must_not_be_merged(capsys, toy):
    none = WORDS.replace("sizeof(key_type) > 2", "sizeof(key_type) > 4")
    write(toy, config("gfx942", none, "256, 7"), *ENTRIES[1:])
    status, told, _ = review(capsys, toy)
    added = next(entry for entry in told["entries"] if entry["change"] == "added")
    gone = next(entry for entry in told["entries"] if entry["change"] == "removed")
    assert status == 1
    assert added["unreachable"]["cause"] == "condition"
    assert [row["workload"] for row in gone["reached"]] == [{"key_type": "int"}]


@pytest.mark.slow
def test_two_entries_for_the_same_types_must_not_be_merged(capsys, toy):
    both = SMALL.replace("sizeof(key_type) <= 2", "sizeof(key_type) <= 4")
    write(toy, ENTRIES[0], config("gfx942", both, "128, 16"), *ENTRIES[2:])
    status, told, errors = review(capsys, toy)
    assert status == 1
    (lost,) = told["uncovered"]
    assert "ambiguous partial specializations" in lost["what"]
    assert "ambiguous partial specializations" in errors


def test_a_config_that_decides_nothing_that_is_asked_is_told(capsys, toy):
    write(toy, *ENTRIES, config("gfx942", "sizeof(key_type) > 16", "64, 1"))
    status, told, _ = review(capsys, toy)
    assert status == 1
    assert [one["what"].partition(" decides ")[2][:20] for one in told["uncovered"]] == [
        "no bound workload, s"
    ]
    assert main(["review", "--cub", str(toy), "--base", "HEAD", "--format", "html"]) == 1
    assert "computes its values from other returns" not in capsys.readouterr().out


@pytest.mark.slow
def test_what_an_apply_replaced_is_asked_in_the_place_of_its_files(toy):
    after = config("gfx942", WORDS, "256, 16"), *ENTRIES[1:]
    write(toy, *after)
    cub = open_session(str(toy)).cub
    old = {"device_reduce.hpp": header(*ENTRIES).encode()}
    before = read_before(Base("an apply", cub, old), ["device_reduce.hpp"])
    then, errors = ask_values(before, Filter(("reduce",), archs=("gfx942",)))
    rows = {row.workload["key_type"]: row.values["ItemsPerThread"] for row in then.rows}
    assert (errors, rows["int"]) == ((), 8)
    now, _ = ask_values(read_tree(cub, ["device_reduce.hpp"]), Filter(archs=("gfx942",)))
    rows = {row.workload["key_type"]: row.values["ItemsPerThread"] for row in now.rows}
    assert rows["int"] == 16


def test_what_an_apply_replaced_and_cannot_be_read_is_told(toy):
    cub = open_session(str(toy)).cub
    broken = header(*ENTRIES).replace("static_cast<unsigned int>(target_arch::gfx906)", "odd")
    base = Base("an apply", cub, {"device_reduce.hpp": broken.encode()})
    before = read_before(base, ["device_reduce.hpp"])
    assert before.headers == ()
    assert "cannot determine its architecture" in str(before.errors[0])


@pytest.mark.parametrize(
    ("ctk", "release", "words"),
    [
        ("13.1", "3.2.0", "CUDA 13.1, CCCL 3.2.0"),
        ("", "rocprim@4.2.0", "rocPRIM 4.2.0"),
        ("13.1", "other@1", "CUDA 13.1, other 1"),
    ],
)
def test_what_was_measured_with_is_named_as_people_call_it(ctk, release, words):
    assert measured_with(ctk, release) == words
