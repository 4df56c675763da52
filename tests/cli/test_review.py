"""`policygen review` on real changes of CUB 3.0.1."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from policygen.app import sass
from policygen.errors import InputError
from policygen.model.machine_code import SassCompiles
from policygen.model.reviews import Review
from policygen.proof import kernel_comparison
from policygen.proof.oracle import Compiler
from tests.cli.tuned import HEADER, LABEL, OTHER, THREE, committed_tree, database, run, tuned
from tests.planning.wanted import workload_count
from tests.probing import TUNINGS, changed_tree, header, replaced, root
from tests.tiers import sampled, slow, thorough

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

SCAN = "tuning_scan.cuh"
ENTRY = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")
# Minima and maxima, which no benchmark has, fall back to the entry there.
SM100_TOO = ("--reaches", "sm100")


def review(capsys, *arguments):
    return run(capsys, "review", "-q", *arguments)


def document(capsys, *arguments, status=0):
    found, out, err = review(capsys, "--format", "json", *arguments)
    assert status in {None, found}, err
    data = json.loads(out)
    jsonschema.validate(data, Review.model_json_schema(mode="serialization"))
    return data


@pytest.fixture
def applied(capsys, tree, three, tmp_path):
    """A tree with one tuning applied, and the database that it comes from."""
    data = shutil.copy(three, tmp_path / "run.db")
    assert run(capsys, "apply", "--cub", tree, "--db", data, "--arch", "sm90", "-q")[0] == 0
    return tree, data


@pytest.mark.slow
def test_an_apply_is_shown_with_its_reason_and_its_proof(capsys, applied):
    tree, data = applied
    found = document(capsys, "--cub", tree)
    assert found["base"] == f"before the apply for sm90: {HEADER}"
    written = [one for one in found["entries"] if one["reached"]]
    (one,) = written
    assert (one["change"], one["arch"], one["variant"]) == ("changed", "sm90", LABEL)
    # One entry decides all types of four bytes.
    assert {(r["arch"], r["workload"]["T"], r["workload"]["OffsetT"]) for r in one["reached"]} == {
        ("sm90", name, offset) for name in ("I32", "F32") for offset in ("I32", "I64")
    }
    (evidence,) = one["evidence"]
    assert evidence["scored"]["variant"] == LABEL
    assert evidence["scored"]["interval"]["low"] > 1.015
    assert evidence["databases"] == [f"../{data.parent.name}/run.db"]
    assert len(evidence["runtime"]) > 1
    assert all(point["ratio"] > 1 for point in evidence["runtime"])
    assert found["effect"]["wrong"] == []
    assert [c["role"] for c in found["effect"]["changed"]] == ["written", *["shared"] * 3]
    assert [(a["workload"]["T"], a["decision"]) for a in found["actions"]] == [("I8", "fallback")]
    assert f"--db ../{data.parent.name}/run.db" in found["commands"][0]
    status, out, _ = review(capsys, "--cub", tree)
    assert status == 0
    assert "| **Is it proven** | **2 of 3 proofs hold: in part**<br>effect: 4 of " in out
    assert (
        f"\n**partition.three_way T=I32 OffsetT=I32**: score {evidence['scored']['score']:.3f}"
        in out
    )


@pytest.mark.slow
def test_the_proof_of_a_review_is_that_of_verify_effect_and_costs_no_other_question(
    capsys, applied, monkeypatch
):
    tree, _ = applied
    status, out, err = run(capsys, "verify-effect", "--cub", tree, "--json", "-q")
    assert status == 0, err

    def asked(*_):
        raise AssertionError("both sides are compared a second time")

    monkeypatch.setattr(Compiler, "_compared", asked)
    assert document(capsys, "--cub", tree)["effect"] == json.loads(out)


@pytest.mark.slow
def test_its_commands_make_the_change_again(capsys, tree, tmp_path):
    winners = {("I32", "I32"): LABEL, ("I8", "I32"): OTHER, ("I64", "I64"): OTHER}
    data = database(tmp_path / "run.db", winners)
    given = ("--least-score", "1.03", "--worst", "0.9", "--confidence", "0.9", "--reach", "later")
    given += ("-a", "T=[I32,I8]", "-R", THREE, "--accept-unconfirmed")
    assert run(capsys, "apply", "--cub", tree, "--db", data, "--arch", "sm90", *given)[0] == 0
    made = tuned(tree).read_bytes()
    found = document(capsys, "--cub", tree, "--db", data)
    commands = [shlex.split(text) for text in found["commands"]]
    assert [words[:2] for words in commands] == [
        ["policygen", name] for name in ("apply", "verify-effect", "verify-sass", "review")
    ]
    assert {*map(str, given), "--db"} <= {*commands[0]}
    assert run(capsys, "undo", "-q")[0] == 0
    assert tuned(tree).read_bytes() != made
    again, proof, sass_words, page = (words[1:] for words in commands)
    assert run(capsys, *again)[0] == 0
    assert tuned(tree).read_bytes() == made
    assert run(capsys, *proof)[0] == 0
    assert run(capsys, *sass_words, "--dry-run")[0] == 0
    text = run(capsys, *page, "--format", "json")[1]
    assert {**json.loads(text), "remarks": []} == {**found, "remarks": []}


@pytest.mark.slow
def test_a_change_without_a_label_is_found_in_databases_by_its_values(capsys, tree, tmp_path):
    """Somebody typed values that were measured, and are slower; no comment says which they are."""
    data = database(tmp_path / "a.db", {("I32", "I32"): OTHER})
    assert run(capsys, "apply", "--cub", tree, "--db", data, "--arch", "sm90", "-q")[0] == 0
    Path("policygen.db").unlink()
    text = tuned(tree).read_text()
    comments = [row for row in text.splitlines(keepends=True) if f"// {OTHER}" in row]
    assert len(comments) == 1
    tuned(tree).write_text(text.replace(comments[0], ""))
    measured = database(tmp_path / "b.db", {("I32", "I32"): LABEL, ("I8", "I32"): OTHER})
    given = ("--cub", tree, "--base", root("3.0.1"), "--db", measured)
    found = document(capsys, *given)
    evidence = [e for one in found["entries"] for e in one["evidence"]]
    assert [(e["workload"], e["scored"]["variant"]) for e in evidence] == [
        ({"T": "I32", "OffsetT": "I32"}, OTHER)
    ]
    assert evidence[0]["scored"]["score"] < 1
    _, out, _ = review(capsys, *given)
    assert "no measurement" not in out
    assert "4 of 4 runtime workloads slower" in out
    # A label that stayed where other values stand now is not what was measured.
    stale = text.replace(OTHER, LABEL)
    tuned(tree).write_text(stale)
    again = document(capsys, *given, status=None)
    evidence = [e for one in again["entries"] for e in one["evidence"]]
    assert [e["scored"]["variant"] for e in evidence] == [OTHER]
    only = database(tmp_path / "c.db", {("I32", "I32"): LABEL})
    given = (*given[:-1], only)
    again = document(capsys, *given, status=None)
    assert [e for one in again["entries"] for e in one["evidence"]] == []
    assert "Not measured: no row of " in review(capsys, *given)[1]


@pytest.mark.slow
def test_a_database_that_is_gone_is_told(capsys, applied):
    tree, data = applied
    data.unlink()
    found = document(capsys, "--cub", tree)
    assert found["remarks"] == [
        f"missing database: ../{data.parent.name}/run.db; name it with --db"
    ]
    assert all(one["evidence"] == [] for one in found["entries"])


def hand_edited(folder, *changes):
    return changed_tree(folder, "3.0.1", {SCAN: replaced(header("3.0.1", SCAN), *changes)})


@pytest.mark.slow
def test_a_change_by_hand_gets_the_same_page(capsys, tmp_path):
    tree = hand_edited(tmp_path, ENTRY)
    given = ("--cub", tree, "--base", root("3.0.1"))
    assert "no benchmark measures it: --reaches sm100 allows it" in review(capsys, *given)[1]
    given += SM100_TOO
    found = document(capsys, *given)
    (one,) = found["entries"]
    assert (one["change"], one["place"]["line"]) == ("changed", 272)
    assert [i.rpartition("128, ")[2] for i in one["inherits"]] == [
        "24, 688, 1140>",
        "20, 688, 1140>",
    ]
    assert {(r["arch"], r["workload"]["T"], *r["changed"]) for r in one["reached"]} == {
        ("sm90", "F32", "items")
    }
    assert found["effect"] is None
    assert found["others"] == []
    assert found["compared"] == 7 * workload_count("3.0.1", SCAN)
    status, out, _ = review(capsys, *given)
    assert status == 0
    assert "\nNot measured: no database given (--db).\n" in out
    assert "- on sm90: items 24 → 20, for scan.exclusive.sum T=F32 OffsetT=I32" in out
    status, out, _ = review(capsys, *given, "--annotate", "github")
    assert status == 0
    assert out == (
        "::notice file=cub/device/dispatch/tuning/tuning_scan.cuh,line=272,title=policygen not"
        " measured::no database given (--db)\n"
    )


@slow
def test_a_branch_for_architectures_between_others_is_seen(capsys, tmp_path):
    """The selector of scan has a lookahead policy from compute capability 10.7 on."""
    data = replaced(
        header("3.6.0", SCAN), ("Policy{2, 88 - 1, 7, -2, -2}", "Policy{2, 88 - 1, 6, -2, -2}")
    )
    tree = changed_tree(tmp_path, "3.6.0", {SCAN: data})
    found = document(capsys, "--cub", tree, "--base", root("3.6.0"))
    (one,) = found["entries"]
    assert (one["change"], one["arch"]) == ("changed", "sm107")
    assert one["place"]["family"] == "policy_selector::get_lookahead_policy"
    assert one["place"]["args"][-1] == "input_value_size == 8"
    values = [one[side]["lookahead_items_per_thread"] for side in ("before", "after")]
    assert values == [7, 6]
    assert {(row["arch"], *row["changed"]) for row in one["reached"]} == {
        ("sm107", "lookahead_items_per_thread")
    }
    assert "cub.bench.scan.exclusive.sum" in {row["benchmark"] for row in one["reached"]}
    assert found["others"] == []
    status, out, _ = review(capsys, "--cub", tree, "--base", root("3.6.0"))
    assert status == 0
    assert "7 → **6**" in out
    # Whether a tile fits depends on several sizes at once.
    assert "not compared for all inputs" not in out
    assert re.search(
        r"scan::policy_selector on sm107: input_value_size is 8 and .*: lookahead\.lookahead_items"
        r"_per_thread 7 → 6 \| cub\.bench\.scan",
        out,
    )


@pytest.mark.slow
def test_what_must_not_be_merged_gives_exit_status_1(capsys, tmp_path):
    # The selection needs a load modifier: an entry without one is never taken (NVIDIA/cccl#3691).
    text = (
        "template <> struct sm90_tuning<float,  primitive_op::yes, primitive_accum::yes,"
        " accum_size::_4> : sm90_tuning_vals<float,  128, 24, 688, 1140> {};"
    )
    bad = text.replace(
        ": sm90_tuning_vals<float,  128, 24, 688, 1140> {}", "{ static constexpr int items = 7; }"
    )
    tree = hand_edited(tmp_path, (text, bad))
    given = ("--cub", tree, "--base", root("3.0.1"))
    status, out, _ = review(capsys, *given)
    assert status == 1
    assert "\n**Not to be merged:**\n" in out
    assert "is never selected" in out
    status, out, _ = review(capsys, *given, "--annotate", "github")
    assert status == 1
    assert "::error file=" in out
    assert "title=policygen never selected::" in out


@pytest.mark.slow
def test_a_review_that_was_saved_is_written_again_without_a_tree(capsys, tmp_path):
    tree = hand_edited(tmp_path, ENTRY)
    saved = tmp_path / "review.json"
    given = ("--cub", tree, "--base", root("3.0.1"), *SM100_TOO)
    assert review(capsys, *given, "--format", "json", "-o", saved)[0] == 0
    shutil.rmtree(tree)
    assert "items 24 → 20" in review(capsys, "--from", saved)[1]
    status, out, _ = review(capsys, "--from", saved, "--format", "html")
    assert status == 0
    assert out.startswith("<!doctype html>")
    saved.write_text(saved.read_text().replace("policygen/review/1", "policygen/review/9"))
    status, _, err = review(capsys, "--from", saved)
    assert status == 2
    assert "is not a policygen/review/1: format:" in err
    saved.write_text("{")
    assert review(capsys, "--from", saved)[0] == 2
    assert "cannot read" in review(capsys, "--from", tmp_path / "none")[2]


@pytest.mark.slow
def test_machine_code_is_run_or_read(capsys, applied, tmp_path):
    tree, _ = applied
    given = ("-R", f"{THREE}$", "-a", "T=I32", "-a", "OffsetT=I32", "--arch", "sm90")
    sass_json = tmp_path / "sass.json"
    kept = ("--json", "-q", "-o", sass_json)
    assert run(capsys, "verify-sass", "--cub", tree, *given, *kept)[0] == 0
    found = document(capsys, "--cub", tree, "--sass", sass_json)
    assert found["sass"]["archs"] == ["sm90"]
    _, out, _ = review(capsys, "--cub", tree, "--sass", sass_json)
    assert "machine code: 1 of 2 kernels equal, 1 as written on sm90" in out
    status, out, err = review(capsys, "--cub", root("3.0.1"), "--base", tree, "--sass", sass_json)
    assert (status, out) == (2, "")
    assert "a different tree than the CUB 3.0.1 under review: another CUB 3.0.1" in err.replace(
        "\n  ", " "
    )
    # Nobody wrote it since that tree, as far as anybody knows.
    given = (*given, "--base", root("3.0.1"), *kept)
    assert run(capsys, "verify-sass", "--cub", tree, *given)[0] == 1
    found = document(capsys, "--cub", tree, "--sass", sass_json, status=1)
    assert len(found["sass"]["different"]) == 1
    _, out, _ = run(capsys, "verify-effect", "--cub", tree, "--json", "-q")
    (tmp_path / "effect.json").write_text(out)
    found = document(
        capsys, "--cub", tree, "--base", root("3.0.1"), "--effect", tmp_path / "effect.json"
    )
    assert len(found["effect"]["changed"]) == 4
    assert review(capsys, "--cub", tree, "--sass", "x", "--run-sass")[0] == 2


AGENTS = "tuning_adjacent_difference.cuh"
EVERYWHERE = ("Nominal8BItemsToItems<ValueT>(7)", "(11)")


@pytest.mark.slow
def test_how_much_machine_code_would_be_compiled_is_said_before(capsys, tmp_path, monkeypatch):
    data = replaced(header("3.0.1", AGENTS), EVERYWHERE)
    tree = changed_tree(tmp_path, "3.0.1", {AGENTS: data})
    whole = kernel_comparison.find_toolchain()
    monkeypatch.setattr(
        kernel_comparison, "find_toolchain", lambda: replace(whole, archs=("sm80",))
    )
    given = ("review", "--cub", tree, "--base", root("3.0.1"), "--run-sass")
    status, out, _ = run(capsys, *given, "--dry-run", "--json")
    assert status == 0
    told = json.loads(out)
    jsonschema.validate(told, SassCompiles.model_json_schema(mode="serialization"))
    assert told["archs"] == ["sm80"]
    assert told["units"] == 2 * told["workloads"] > 0
    status, out, _ = run(capsys, *given, "--dry-run")
    assert (status, out.count(f"at most {told['units']} compiles: ")) == (0, 1)
    assert run(capsys, "review", "--cub", tree, "--dry-run")[0] == 2

    def compiled(*_args, **_more):
        raise InputError("it begins")

    monkeypatch.setattr(sass, "_compare", compiled)
    status, out, err = run(capsys, *given)
    assert (status, out) == (2, "")
    assert err.index(f"at most {told['units']} compiles: ") < err.index("it begins")
    assert "at most" not in run(capsys, *given, "-q")[2]


def test_the_machine_code_of_a_review_is_what_the_change_can_touch(capsys, applied):
    tree, _ = applied
    status, out, _ = run(capsys, "review", "--cub", tree, "--run-sass", "--dry-run", "--json")
    told = json.loads(out)
    assert status == 0
    assert "sm90" not in told["archs"]
    assert told["untouched"] > told["workloads"]


@slow
def test_machine_code_of_other_architectures_is_compared(capsys, tmp_path, monkeypatch):
    data = replaced(header("3.0.1", AGENTS), EVERYWHERE)
    tree = changed_tree(tmp_path, "3.0.1", {AGENTS: data})
    whole = kernel_comparison.find_toolchain()
    monkeypatch.setattr(
        kernel_comparison, "find_toolchain", lambda: replace(whole, archs=("sm80",))
    )
    found = document(capsys, "--cub", tree, "--base", root("3.0.1"), "--run-sass", status=1)
    assert found["entries"] == []
    assert {tuple(row["changed"]) for row in found["others"]} == {("items",)}
    assert found["sass"]["archs"] == ["sm80"]
    assert len(found["sass"]["different"]) == 2
    status, out, _ = review(capsys, "--cub", tree, "--base", root("3.0.1"))
    assert status == 0
    assert "\n### Workloads that change through none of these entries\n" in out


@thorough
def test_another_version_is_compared_and_said(capsys):
    found = document(capsys, "--cub", root("3.2.0"), "--base", root("3.0.1"), status=1)
    assert any(remark.startswith("the tree before is CUB 3.0.1") for remark in found["remarks"])
    assert any("exist in only one of the trees" in remark for remark in found["remarks"])
    assert any("tuning_topk.cuh exists in only one of the trees" in r for r in found["remarks"])


@pytest.mark.slow
def test_what_cannot_be_compared_is_told(capsys, tree, tmp_path):
    status, _, err = review(capsys, "--cub", tree)
    assert status == 2
    assert "Name what to compare with" in err
    status, _, err = review(capsys, "--cub", tree, "--base", "no-such-thing")
    assert status == 2
    assert "'no-such-thing' is neither a folder" in err
    found = document(capsys, "--cub", tree, "--base", root("3.0.1"))
    assert found["remarks"] == ["no tuning header differs"]
    (tmp_path / "policygen-sass.json").write_text("{}")
    assert review(capsys, "--cub", tree, "--base", tmp_path)[0] == 2


@pytest.mark.slow
def test_edits_that_are_not_committed_are_reviewed(capsys, tmp_path):
    tree = committed_tree(tmp_path / "tree")
    place = tree / "cub/device/dispatch/tuning" / SCAN
    place.write_bytes(replaced(place.read_bytes(), ENTRY))
    data = database(tmp_path / "run.db")
    found = document(capsys, "--cub", tree, "--db", data, *SM100_TOO)
    assert found["base"] == "HEAD"
    assert len(found["entries"]) == 1
    assert tuned(tree).is_file()


NEW = "tuning_new.cuh"
UNBOUND = "struct policy_hub {{ static constexpr int threads = {}; }};\n"


def tree_with(folder, text, more=b""):
    """CUB 3.0.1 with a header that no binding names, and more behind one that is bound."""
    found = changed_tree(folder, "3.0.1", {HEADER: header("3.0.1", HEADER) + more})
    (found / TUNINGS / NEW).write_text(text)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("more", sampled([b"", b"// a comment\n"], b""))
def test_what_no_binding_covers_is_said_first(capsys, tmp_path, more):
    """Alone, and beside a header whose workloads keep their values."""
    before = tree_with(tmp_path / "before", UNBOUND.format(192))
    after = tree_with(tmp_path / "after", UNBOUND.format(1000), more)
    status, out, err = review(capsys, "--cub", after, "--base", before)
    assert status == 1, err
    told = f"not proven: {NEW}:1: no binding covers this header, so the effect of its change is"
    assert out.index(told) < out.index("~~~diff")
    assert ("no binding covers what changed" in out) != bool(more)
    assert ("unchanged (workloads times architectures)" in out) == bool(more)


@pytest.mark.slow
def test_a_comment_in_a_header_that_no_binding_covers_is_no_change(capsys, tmp_path):
    before = tree_with(tmp_path / "before", UNBOUND.format(192))
    after = tree_with(tmp_path / "after", "\n// a comment\n" + UNBOUND.format(192))
    status, out, err = review(capsys, "--cub", after, "--base", before)
    assert status == 0, err
    assert "not proven" not in out
