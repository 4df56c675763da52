"""What a plan says of results that it rejects: each command that it names does what it says."""

import json
import shlex

import jsonschema
import pytest

from policygen.model.plans import Plan
from policygen.rendering import folder
from tests.cli.tuned import run
from tests.probing import root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

SCAN = "cub.bench.scan.exclusive.sum"
MEASURED = folder("cub_headers").parent / "fixtures/measured"
DB = MEASURED / "A_scan_exclusive_sum/cccl_meta_bench.db"
BEST = "ipt_16.tpb_256.ns_600.dcid_0.l2w_400.trp_1.ld_0"
I8 = {"T": "I8", "OffsetT": "I32"}
REASON = (
    "one entry decides 2 workloads, and nothing that an entry can name distinguishes them, and no"
    f" variant suits all of them: {BEST} scores 1.077072 for"
    " T=I8 OffsetT=I32 and 0.966311 for T=I32 OffsetT=I32; T=I8 OffsetT=I32 wants"
    f" {BEST}, T=I32 OffsetT=I32 wants base"
)


def planned(capsys, *arguments):
    status, out, err = run(capsys, "plan", *arguments, "--json", "-q")
    assert status == 0, err
    document = json.loads(out)
    jsonschema.validate(document, Plan.model_json_schema(mode="serialization"))
    return document


def of_bytes(document):
    (action,) = [a for a in document["actions"] if a["workload"] == I8]
    return action


def printed(capsys, *arguments):
    """The commands that a terminal shows, each on a line of its own."""
    status, out, _ = run(capsys, "plan", *arguments, "-q")
    assert status == 0
    at = out.index(f"options that would accept rejected results:\n  {SCAN} T=I8 OffsetT=I32\n")
    return [line.strip() for line in out[at:].splitlines() if line.startswith("      policygen ")]


def words_of(command, tree=None):
    """The command as `main` takes it; instead of a version that is fetched a tree that is here."""
    *_, last = command.split(" && ")
    words = shlex.split(last)[1:]
    if tree is not None:
        words[words.index("--cub") + 1] = str(tree)
    return words


@pytest.mark.slow
def test_the_best_real_result_gets_a_return_for_its_type_on_a_tree_with_selectors(capsys):
    given = ("--db", DB, "--arch", "sm90", "--cub", root("3.6.0"))
    made = planned(capsys, *given)
    assert (of_bytes(made)["decision"], of_bytes(made)["variant"]) == ("add", BEST)
    assert made["ways"] == []
    # Of the same type with other offsets, which nobody measured.
    assert sum(one["arch"] == "sm90" for one in made["reached"]) == 2


@pytest.mark.slow
def test_on_a_tree_before_selectors_a_program_of_ones_own_takes_it(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POLICYGEN_CUB_HEADERS", str(tmp_path))  # whatever this machine has fetched
    tree = root("3.0.1")
    given = ("--db", DB, "--arch", "sm90", "--cub", tree)
    made = planned(capsys, *given)
    assert of_bytes(made)["reason"] == REASON
    (emit,) = made["ways"]  # nothing that an entry can name tells both apart
    assert emit["what"].endswith(
        "; for CUB 3.5 and later, where emit reports whether this is possible"
    )
    (command,) = printed(capsys, *given)
    assert command.startswith("policygen headers fetch 3.6.0 && policygen emit --db ")
    status, out, err = run(capsys, *words_of(command, root("3.6.0")))
    assert status == 0, err
    assert f"write {SCAN} T=I8 OffsetT=I32: scan" in " ".join(out.split())


@pytest.mark.slow
def test_the_command_has_the_options_of_the_plan(capsys):
    given = ("--db", DB, "--arch", "sm90", "--cub", root("3.0.1"), "--least-score", "1.02")
    (emit,) = printed(capsys, *given, "--reach", "later")
    assert " --least-score 1.02 " in emit
    assert "--reach" not in emit


@pytest.mark.slow
def test_what_is_not_proved_has_no_ways(capsys):
    given = ("--db", DB, "--arch", "sm90", "--cub", root("3.0.1"), "--no-prove")
    assert planned(capsys, *given)["ways"] == []


@pytest.mark.slow
def test_a_plan_that_was_kept_is_applied_with_what_it_says(capsys, tmp_path):
    kept = tmp_path / "plan.json"
    given = ("--db", DB, "--arch", "sm90", "--cub", root("3.0.1"))
    assert run(capsys, "plan", *given, "-q", "-o", kept)[0] == 0
    status, out, err = run(
        capsys, "apply", "--plan", kept, "--cub", root("3.0.1"), "--check", "--json", "-q"
    )
    assert status == 0, err
    assert json.loads(out)["ways"] == json.loads(kept.read_text())["ways"]
