"""An entry that starts to decide on an architecture that nobody measured fails its review."""

import json

import jsonschema
import pytest

from fixtures.databases.every import GPUS, benchmark_database
from policygen.model.reviews import Review
from tests.cli.tuned import HEADER, LABEL, database, run, tuned, writable_tree
from tests.probing import TUNINGS, changed_tree, header, replaced, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

BOUND = "cc < ::cuda::compute_capability{11, 0}"
SM90 = "no_delay_constructor_t<445>"


def reviewed(capsys, tree, base, *arguments, status):
    given = ("review", "-q", "--cub", tree, "--base", base, "--json", *arguments)
    exit_status, out, err = run(capsys, *given)
    assert exit_status == status, err
    found = json.loads(out)
    jsonschema.validate(found, Review.model_json_schema(mode="serialization"))
    return found


@pytest.fixture
def unbounded(tmp_path):
    """CUB 3.6.0, whose returns for sm107 have no upper bound."""
    data = replaced(header("3.6.0", HEADER), (f" && {BOUND}", ""))
    return changed_tree(tmp_path / "unbounded", "3.6.0", {HEADER: data})


@pytest.mark.slow
def test_a_return_without_an_upper_bound_leaks_to_later_architectures(capsys, unbounded, tmp_path):
    found = reviewed(capsys, unbounded, root("3.6.0"), status=1)
    assert [len(entry["leaks"]) for entry in found["entries"]] == [3] * 5
    entry = found["entries"][0]
    assert [(leak["arch"], leak["workloads"], leak["bound"]) for leak in entry["leaks"]] == [
        ("sm110", 2, BOUND),
        ("sm120", 2, "cc < ::cuda::compute_capability{12, 0}"),
        ("sm121", 2, "cc < ::cuda::compute_capability{12, 1}"),
    ]
    saved = tmp_path / "review.json"
    saved.write_text(json.dumps(found))
    status, out, _ = run(capsys, "review", "--from", saved)
    assert status == 1
    line = entry["place"]["line"]
    leak = "the entry leaks to sm110, sm120, sm121 (2 each):"
    assert f"{HEADER}:{line}: {leak} cc &lt; ::cuda::compute_capability{{11, 0}} stops it" in out
    status, out, _ = run(capsys, "review", "--from", saved, "--annotate", "github")
    assert status == 1
    assert f"line={line},title=policygen leak::{leak} {BOUND} stops it, and" in out
    status, out, _ = run(
        capsys, "review", "--from", saved, "--reaches", "sm110", "--annotate", "github"
    )
    assert status == 1
    assert "the entry leaks to sm120, sm121 (2 each): cc < ::cuda::compute_capability{12, 0}" in out
    allowed = ("--reaches", "sm110,12.0", "--reaches", "sm_121")
    assert run(capsys, "review", "--from", saved, *allowed)[0] == 0
    found = reviewed(capsys, unbounded, root("3.6.0"), *allowed, status=0)
    assert found["reaches"] == ["sm110", "sm120", "sm121"]
    assert " --reaches sm110,sm120,sm121" in found["commands"][-1]


@pytest.mark.slow
def test_within_its_bound_nothing_leaks_nor_does_what_adds_the_bound(capsys, unbounded, tmp_path):
    data = replaced(header("3.6.0", HEADER), ("no_delay, 84, 500}", "no_delay, 84, 510}"))
    bounded = changed_tree(tmp_path / "bounded", "3.6.0", {HEADER: data})
    (entry,) = reviewed(capsys, bounded, root("3.6.0"), status=0)["entries"]
    assert {row["arch"] for row in entry["reached"]} == {"sm107"}
    found = reviewed(capsys, root("3.6.0"), unbounded, status=0)
    archs = {row["arch"] for entry in found["entries"] for row in entry["reached"]}
    assert {"sm110", "sm120", "sm121"} <= archs


@pytest.mark.slow
def test_an_entry_that_other_inputs_of_later_architectures_reach_is_bounded(capsys, tmp_path):
    """`get_sm100_tuning` has no entry for flags with other offsets than those of benchmarks."""
    won = {("I32", "false"): "trp_0.ld_0.ipt_15.tpb_384.ns_416.dcid_1.l2w_1125.pf_2"}
    results = tmp_path / "flagged.db"
    benchmark_database(results, "cub.bench.select.flagged", "3.6.0", GPUS["sm90"], won)
    name = "tuning_select_if.cuh"
    tree = changed_tree(tmp_path / "tree", "3.6.0", {name: header("3.6.0", name)})
    given = ("apply", "--db", results, "--arch", "sm90", "--cub", tree, "--json")
    status, out, err = run(capsys, *given)
    assert status == 0, err
    (action,) = (row for row in json.loads(out)["actions"] if row["variant"])
    assert action["decision"] == "add"


@pytest.mark.slow
def test_an_entry_of_a_family_that_a_later_policy_falls_back_to_leaks(capsys, tmp_path):
    """`sm100_tuning` has no entry for items of 1 byte."""
    tree = writable_tree(tmp_path)
    place = tree / TUNINGS / HEADER
    place.write_bytes(replaced(place.read_bytes(), (SM90, SM90.replace("445", "500"))))
    found = reviewed(capsys, tree, root("3.0.1"), status=1)
    (entry,) = found["entries"]
    leaks = [(leak["arch"], leak["workloads"], leak["bound"]) for leak in entry["leaks"]]
    assert leaks[0] == ("sm100", 2, "an entry of sm100_tuning with the values before")


@pytest.mark.slow
def test_apply_fails_where_nothing_bounds_what_it_writes(capsys, tmp_path):
    """No policy of 3.0.1 follows that of sm100, which later architectures have as well."""
    tree = writable_tree(tmp_path)
    before = tuned(tree).read_bytes()
    db = database(tmp_path / "run.db", {("I32", "I32"): LABEL}, "sm100")
    given = ("apply", "-q", "--cub", tree, "--db", db, "--arch", "sm100")
    status, _, err = run(capsys, *given)
    assert (status, tuned(tree).read_bytes()) == (1, before)
    later = "--reaches sm103,sm107,sm110,sm120,sm121"
    told = " ".join(err.split())
    assert told.endswith(f"({HEADER}): they get the written values. {later} allows it")
    assert run(capsys, *given, "--reaches", "sm103")[0] == 1
    status, _, err = run(capsys, *given, *later.split())
    assert status == 0, err
    assert tuned(tree).read_bytes() != before
    status, out, err = run(capsys, "review", "-q", "--cub", tree, "--json")
    assert status == 0, err
    assert later in json.loads(out)["commands"][0]
    assert set(later.partition(" ")[2].split(",")) <= {*json.loads(out)["reaches"]}
