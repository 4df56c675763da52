"""`policygen audit coverage` on real trees."""

import csv
import dataclasses
import io
import json
import os

import jsonschema
import pytest

from policygen.cli.main import main
from policygen.demo.database import demo_database
from policygen.model.audits import Coverage
from policygen.proof import values
from tests.cli.tuned import LABEL, THREE, database, run
from tests.planning.wanted import workload_count
from tests.probing import changed_tree, header, root
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]


def audit(capsys, *arguments):
    return run(capsys, "audit", "coverage", "--cub", root("3.0.1"), *arguments)


def document(capsys, *arguments, status=0):
    found, out, err = audit(capsys, "--json", "-q", *arguments)
    assert found == status, err
    data = json.loads(out)
    jsonschema.validate(data, Coverage.model_json_schema(mode="serialization"))
    return data


def counts(data, arch):
    (share,) = [s for s in data["shares"] if s["benchmark"] is None and s["arch"] == arch]
    return share["counts"]


@pytest.mark.slow
def test_every_workload_has_a_status_on_every_architecture(capsys):
    found = document(capsys)
    assert found["archs"] == ["sm80", "sm90", "sm100"]
    every = workload_count("3.0.1")
    assert len(found["cells"]) == 3 * every
    assert counts(found, "sm80")["tuned"] == 239
    assert counts(found, "sm90") == {
        "tuned": 271, "inherited": 0, "default": every - 271, "disabled": 0, "unreachable": 0,
        "unknown": 0,
    }  # fmt: skip
    others = {"tuned": 198, "inherited": 44, "disabled": 40, "unreachable": 33, "unknown": 0}
    assert counts(found, "sm100") == {**others, "default": every - sum(others.values())}


@pytest.mark.slow
def test_sm100_radix_sort_of_wider_keys_is_unreachable(capsys):
    """NVIDIA/cccl#11083."""
    found = document(capsys, "radix_sort", "-R", "cub.bench.radix_sort.keys", "--arch", "sm100")
    by_type = {(c["workload"]["T"], c["status"]) for c in found["cells"]}
    assert by_type == {
        ("I8", "tuned"),
        ("I16", "tuned"),
        *((name, "unreachable") for name in ("I32", "I64", "I128", "F32", "F64")),
    }


@pytest.mark.slow
def test_a_disabled_entry_tells_the_recorded_reason(capsys):
    given = ("-R", THREE, "-a", "T=[I8,I16]", "-a", "OffsetT=I32", "--arch", "sm100")
    found = document(capsys, *given)
    assert [(c["status"], c["since"], c["entry"]["line"]) for c in found["cells"]] == [
        ("disabled", "sm90", 235),
        ("disabled", "sm90", 246),
    ]
    assert all("regressed during validation" in c["reason"] for c in found["cells"])
    status, out, _ = audit(capsys, *given)
    assert status == 0
    assert "disabled (2 cells): its entry is commented out" in out
    assert "This tuning regressed during validation" in out
    assert "sm100: 0 of 2 workloads tuned (0 %), 2 disabled" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "status"),
    [
        (("-R", THREE, "--fail-under", "100", "--arch", "sm90"), 0),
        (("-R", THREE, "--fail-under", "60", "--arch", "sm100"), 1),
        pytest.param(("-R", THREE, "--fail-under", "57", "--arch", "sm100"), 0, marks=slow),
        pytest.param(
            ("-R", THREE, "--fail-under", "60", "--arch", "sm90", "--arch", "sm100"), 1, marks=slow
        ),
        pytest.param(
            ("-R", THREE, "--fail-under", "60", "--arch", "sm100", "--inherited"), 0, marks=slow
        ),
        pytest.param(("-R", THREE, "--fail-under", "1", "--arch", "sm120"), 1, marks=slow),
        pytest.param(("--fail-under", "50"), 1, marks=slow),
        pytest.param(("--fail-under", "28"), 0, marks=slow),
    ],
)
def test_the_exit_status_tells_whether_enough_is_tuned(capsys, given, status):
    assert audit(capsys, "-q", *given)[0] == status


@slow
def test_databases_tell_what_they_could_fill(capsys, tmp_path):
    data = database(tmp_path / "run.db", {("I128", "I32"): LABEL, ("I32", "I32"): LABEL}, "sm100")
    given = ("-R", f"{THREE}$", "--db", data)
    found = document(capsys, *given, "--arch", "sm100", "--arch", "sm90")
    (one,) = found["fillable"]
    assert (one["workload"]["T"], one["arch"], one["variant"]) == ("I128", "sm100", LABEL)
    assert one["score"] > 1.015
    assert one["databases"] == [os.path.relpath(data)]
    status, out, _ = audit(capsys, *given, "--arch", "sm100")
    assert status == 0
    assert "the databases could fill 1 cell:" in out
    status, _, err = audit(capsys, *given, "--arch", "sm90")
    assert status == 2
    assert "the results are from" in err
    assert "(sm100), but --arch is sm90" in err


@pytest.mark.slow
def test_what_a_plan_rejects_is_not_promised(capsys, tmp_path):
    """The guide's own question: I32 wins, and the policy never asks the family for its size."""
    data = tmp_path / "demo.db"
    demo_database(data)
    tree = root("3.0.1")
    given = ("--cub", tree, "--db", data, "--arch", "sm90", "-R", "cub.bench.radix_sort.keys$")
    status, out, err = run(capsys, "audit", "coverage", *given, "--json", "-q")
    assert status == 0, err
    found = json.loads(out)
    jsonschema.validate(found, Coverage.model_json_schema(mode="serialization"))
    status, out, _ = run(capsys, "plan", *given, "--json", "-q")
    plan = json.loads(out)
    assert status == 0
    tuned = [c["workload"] for c in found["cells"] if c["status"] == "tuned"]
    planned = [a for a in plan["actions"] if a["variant"] and a["workload"] not in tuned]
    assert [a["decision"] for a in planned] == ["reject"]
    assert found["fillable"] == []
    (one,) = found["unfilled"]
    assert (one["workload"]["T"], one["variant"]) == ("I32", "ipt_19.tpb_256")
    assert one["reason"] == planned[0]["reason"]
    status, out, _ = run(capsys, "audit", "coverage", *given, "-q")
    assert status == 0
    assert "the databases could fill none of the untuned cells\n" in out
    assert "policygen plan rejects their variants for 1 cell:\n" in out
    assert "would be unreachable: the policy reads" in out
    assert "policygen apply" not in out
    status, out, _ = run(capsys, "audit", "coverage", *given, "-q", "--format", "md")
    assert "## Variants that policygen plan rejects\n" in out


@slow
def test_another_version_gains_and_loses(capsys):
    found = document(capsys, "--compare", root("3.2.0"), "-R", "cub.bench.(scan.excl.*sum|reduce)")
    kinds = {(one["before"], one["after"]) for one in found["compared"]["turned"]}
    assert kinds == {("tuned", None), (None, "tuned")}
    assert found["compared"]["cub"]["version"].startswith("3.2")
    given = ("--cub", root("3.2.0"), "--compare", root("3.0.1"), "-R", "cub.bench.scan.excl.*sum")
    status, out, _ = run(capsys, "audit", "coverage", *given, "-q")
    assert status == 0
    assert "  2 gained, 0 lost\n" in out
    assert "scan.exclusive.sum T=I32 OffsetT=I64 on sm75 default → tuned" in out


@slow
def test_the_selector_trees_are_covered_too(capsys):
    given = ("--cub", root("3.6.0"), "--arch", "sm100", "-R", "cub.bench.scan.exclusive.sum$")
    status, out, _ = run(capsys, "audit", "coverage", *given, "--json", "-q")
    assert status == 0
    found = json.loads(out)
    assert counts(found, "sm100")["tuned"] > 5


@pytest.mark.slow
def test_conditions_that_are_commented_out_disable_what_they_would_decide(capsys):
    given = ("--cub", root("3.6.0"), "radix_sort", "--arch", "sm90", "--arch", "sm100")
    status, out, err = run(capsys, "audit", "coverage", *given, "--json", "-q")
    assert status == 0, err
    found = json.loads(out)
    off = [cell for cell in found["cells"] if cell["status"] == "disabled"]
    assert {(cell["arch"], cell["entry"]["family"]) for cell in off} == {
        ("sm100", "get_sm100_tuning")
    }
    keys = [tuple(c["workload"].values()) for c in off if c["benchmark"].endswith("keys")]
    assert keys == [("I8", "I32"), ("I8", "I64")]
    # Larger keys have such conditions, too, and a policy that uses none of their values.
    assert {cell["workload"].get("KeyT", "I8") for cell in off} == {"I8", "I16"}
    assert (counts(found, "sm100")["disabled"], counts(found, "sm90")["disabled"]) == (11, 0)
    reasons = {cell["reason"] for cell in off}
    assert "same as previous tuning" in reasons
    assert any("regresses for large problem sizes" in reason for reason in reasons)


@pytest.mark.slow
def test_conditions_that_are_no_code_are_named(capsys, tmp_path):
    name = "tuning_radix_sort.cuh"
    data = header("3.6.0", name)
    at = data.index(b"// if (key_size == 16) // same")
    wrong = data[:at] + b"// if (the key is large) // as it was" + data[data.index(b"\n", at) :]
    tree = changed_tree(tmp_path, "3.6.0", {name: wrong})
    given = ("--cub", tree, "radix_sort", "--arch", "sm100", "-R", "cub.bench.radix_sort.keys")
    status, out, err = run(capsys, "audit", "coverage", *given, "--json", "-q")
    assert status == 0, err
    found = json.loads(out)
    assert counts(found, "sm100")["disabled"] == 0
    assert (
        f"commented-out conditions in {name} do not compile, so what they would decide is unknown"
    ) in found["remarks"]


@pytest.fixture
def given(tmp_path):
    return ("-R", f"{THREE}$", "--arch", "sm100", "-q", "-o", tmp_path / "file")


@pytest.mark.slow
def test_csv_has_a_line_for_each_cell(capsys, tmp_path, given):
    data = database(tmp_path / "run.db", {("I128", "I32"): LABEL}, "sm100")
    assert audit(capsys, *given, "--format", "csv", "--db", data)[0] == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "file").read_text())))
    assert len(rows) == 14
    assert {row["status"] for row in rows} == {"tuned", "inherited", "disabled"}
    (filled,) = [row for row in rows if row["variant"]]
    assert (filled["workload"], filled["variant"]) == ("T=I128 OffsetT=I32", LABEL)


@pytest.mark.slow
def test_markdown_has_the_same(capsys, tmp_path, given):
    assert audit(capsys, *given, "--format", "md", "--compare", root("3.2.0"))[0] == 0
    text = (tmp_path / "file").read_text()
    assert text.startswith("# Tuning coverage of CUB 3.0.1\n\n")
    assert "\n| partition.three_way | 8/14 |" in text
    assert "| disabled | `tuning_three_way_partition.cuh:235` | partition.three_way T=I8" in text
    assert "\n## Since CUB 3.2.0" in text
    assert "\n\n\n" not in text


@pytest.mark.slow
def test_a_file_is_for_formats_that_are_no_table(capsys, tmp_path):
    status, _, err = audit(capsys, "-o", tmp_path / "file")
    assert status == 2
    assert "-o is for --json and --format csv, md and html" in err
    status, _, err = audit(
        capsys, "-R", THREE, "--format", "csv", "-o", "/dev/null/x", "--arch", "90"
    )
    assert status == 2
    assert "cannot write /dev/null/x" in err


@pytest.mark.slow
def test_what_is_not_there_is_told(capsys):
    status, _, err = audit(capsys, "-R", "nothing")
    assert status == 2
    assert "no workload matches" in err
    status, _, err = audit(capsys, "nothing")
    assert status == 2
    assert "no tuning header is named 'nothing'" in err
    assert main(["audit", "coverage", "--fail-under", "101"]) == 2


@pytest.mark.slow
def test_what_no_binding_asks_for_has_a_mark_of_its_own(capsys, monkeypatch):
    """Batched top-k as it was bound first: without the part that its entries are for."""
    every = values.bound

    def without_parts(version):
        for algorithm in every(version):
            sites = [site.model_copy(update={"policy": ""}) for site in algorithm.sites]
            yield dataclasses.replace(algorithm, sites=tuple(sites))

    monkeypatch.setattr(values, "bound", without_parts)
    given = ("segmented_topk", "--arch", "sm100", "-R", ".*topk.fixed", "-a", "MaxSegmentSize=64")
    status, out, _ = run(capsys, "audit", "coverage", "--cub", root("3.6.0"), *given)
    assert status == 0
    assert "?/6" in out
    status, out, _ = run(capsys, "resolve", "--cub", root("3.6.0"), *given)
    assert "6 workloads on sm100: 0 tuned, 0 inherited, 0 default, 6 unknown" in " ".join(
        out.split()
    )
