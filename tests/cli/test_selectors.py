"""`apply`, `verify-effect`, `review` and `undo` on a tree that chooses by policy selectors."""

import json

import pytest

from fixtures.databases.every import GPUS, benchmark_database
from tests.cli.tuned import run
from tests.probing import TUNINGS, changed_tree, header, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

HEADER = "tuning_radix_sort.cuh"
KEYS = "cub.bench.radix_sort.keys"


@pytest.fixture
def selectors(tmp_path):
    """CUB 3.6.0, with a header that can be written."""
    return changed_tree(tmp_path, "3.6.0", {HEADER: header("3.6.0", HEADER)})


@pytest.fixture
def measured(tmp_path):
    """A workload with a return of its own, one that falls through, and one that nothing tunes."""
    won = {
        ("I16", "I64"): "ipt_18.tpb_256",
        ("I8", "I32"): "ipt_19.tpb_384",
        ("F32", "I32"): "ipt_18.tpb_256",
    }
    path = tmp_path / "run.db"
    benchmark_database(path, KEYS, "3.6.0", GPUS["sm100"], won)
    return path


@pytest.mark.slow
def test_a_guarded_return_is_changed_proven_reviewed_and_taken_back(capsys, selectors, measured):
    given = ("--cub", selectors, "-q")
    status, out, err = run(
        capsys,
        "apply",
        *given,
        "--db",
        measured,
        "--arch",
        "sm100",
        "--diff",
        "--provenance",
        "full",
    )
    assert status == 0, err
    changed = [row for row in out.splitlines() if row[:1] in "+-" and row[1:2] == " "]
    assert [row.strip() for row in changed if "// ipt" not in row] == [
        # What later architectures fall through to as well has a block of its own for sm100, and
        # the returns that are there stay.
        "+    if (cc >= ::cuda::compute_capability{10, 0}"
        " && cc < ::cuda::compute_capability{10, 3})",
        "+    {",
        # Large keys have a formula, unless the caller says otherwise, as that of sm107 does.
        "+      if (offset_size == 4 && key_size == 4 && key_type == type_t::float32"
        " && value_size == 0)",
        "+      {",
        "+        return make_onesweep_small_key_policy(small_key_tuning_values{256, 18},"
        " /*use_tuning_for_large_keys=*/true);",
        "+      }",
        "+      if (value_size == 0)",
        "+      {",
        "+        if (offset_size == 4 && key_size == 1)",
        "+        {",
        "+          return make_onesweep_small_key_policy(small_key_tuning_values{384, 19});",
        "+        }",
        "+        if (offset_size == 8 && key_size == 2)",
        "+        {",
        "+          return make_onesweep_small_key_policy(small_key_tuning_values{256, 18});",
        "+        }",
        "+      }",
        "+    }",
    ]
    told = [row for row in changed if row.startswith("+") and "// ipt" in row]
    assert told[0].startswith("+        // ipt_18.tpb_256 1.09")
    assert all("(Demo B200, CUDA 13.0.88, CCCL v3.6.0, " in row for row in told)
    before = (selectors / TUNINGS / HEADER).read_bytes()
    status, out, err = run(
        capsys, "apply", "--cub", selectors, "--db", measured, "--arch", "sm100", "--json", "-q"
    )
    assert status == 0, err
    actions = {a["workload"]["T"]: a for a in json.loads(out)["actions"]}
    for name, offset, key in (("I16", 8, 2), ("I8", 4, 1)):
        assert actions[name]["decision"] == "add"
        assert actions[name]["target"]["args"] == [
            "before sm103",
            "value_size == 0",
            f"offset_size == {offset}",
            f"key_size == {key}",
        ]
    assert actions["F32"]["decision"] == "add"
    status, out, err = run(capsys, "verify-effect", *given, "--json")
    assert status == 0, err
    effect = json.loads(out)
    assert effect["wrong"] == []
    changed = [one for one in effect["changed"] if one["arch"] not in effect["between"]]
    assert [(c["workload"]["T"], c["arch"], c["role"]) for c in changed] == [
        ("F32", "sm100", "written"),
        ("I8", "sm100", "written"),
        ("I16", "sm100", "written"),
    ]
    assert {"sm90", "sm107", "sm110"} < set(effect["archs"])
    status, out, err = run(capsys, "review", *given)
    assert status == 0, err
    titles = [row for row in out.splitlines() if row.startswith("### added: ")]
    assert len(titles) == 3
    assert "value_size == 0 && " in titles[1].replace("\\", "").replace("&amp;", "&")
    count, every = len(effect["changed"]), effect["compared"]
    assert f"effect: {count} of {every:,} as planned" in out
    assert f"{every - count:,} of {every:,} unchanged (workloads times architectures)" in out
    assert "are counted above" not in out
    assert "the struct families of the older dispatchers are unchanged" in str(
        run(capsys, "plan", "--cub", root("3.6.0"), "--db", measured, "--arch", "sm100", "-q")
    ).replace("\\n", " ")
    # In a block for sm100 alone: no other architecture's machine code may change.
    one = (*given, "-R", "cub.bench.radix_sort.keys", "-a", "T=I8", "-a", "OffsetT=I32")
    assert run(capsys, "verify-sass", *one, "--arch", "sm90")[0] == 0
    status, out, _ = run(capsys, "verify-sass", *one, "--arch", "sm100")
    assert status == 0
    assert "as written" in out
    assert run(capsys, "undo", *given)[0] == 0
    assert (selectors / TUNINGS / HEADER).read_bytes() == before


@pytest.mark.slow
def test_what_later_architectures_get_is_told(capsys, selectors, tmp_path):
    path = tmp_path / "run.db"
    won = {("I16", "I32"): "ipt_22.tpb_384"}
    benchmark_database(path, KEYS, "3.6.0", GPUS["sm100"], won)
    given = ("--cub", selectors, "--db", path, "--arch", "sm100", "-q")
    _, out, _ = run(capsys, "plan", *given, "--json")
    (action,) = (
        a for a in json.loads(out)["actions"] if a["workload"]["T"] == "I16" and a["after"]
    )
    assert (action["decision"], action["target"]["args"][0]) == ("add", "before sm103")
    # No GPU is known between sm100 and sm103.
    assert {(r["arch"], r["between"]) for r in json.loads(out)["reached"]} == {("sm101", True)}
    status, out, err = run(capsys, "plan", *given, "--reach", "later")
    assert status == 0, err
    told = " ".join(out.split())
    assert "update T=I16 OffsetT=I32 ipt_22.tpb_384" in told
    assert "sm107" in told
    inherit = told.partition("later architectures inherit: ")[2]
    assert "T=I16 OffsetT=I32 on sm103 " in inherit
    # Of those that may inherit, sm107 has returns of its own: nothing from there on changes.
    status, out, err = run(capsys, "plan", *given, "--reaches", "sm103,sm120", "--json")
    assert status == 0, err
    document = json.loads(out)
    assert document["options"]["reaches"] == ["sm103", "sm120"]
    (action,) = (a for a in document["actions"] if a["workload"]["T"] == "I16" and a["after"])
    assert (action["decision"], action["target"]["args"][0]) == ("add", "before sm107")
    assert {row["arch"] for row in document["reached"]} == {"sm101", "sm103", "sm104"}


@pytest.mark.slow
def test_results_reach_no_architecture_that_the_tree_does_not_name(capsys, tmp_path):
    """On 3.5.0 nothing stands for sm107 and sm110, and both take what sm103 and sm100 get."""
    name = "tuning_scan_by_key.cuh"
    tree = changed_tree(tmp_path, "3.5.0", {name: header("3.5.0", name)})
    path = tmp_path / "run.db"
    label = "ipt_11.tpb_256.ns_404.dcid_1.l2w_710.trp_1.ld_0"
    won = {("I8", "I8", "I32"): label}
    benchmark_database(path, "cub.bench.scan.exclusive.by_key", "3.5.0", GPUS["sm103"], won)
    given = ("--cub", tree, "-q")
    status, _, err = run(capsys, "apply", *given, "--db", path, "--arch", "sm103")
    assert status == 0, err
    assert b"cc < ::cuda::compute_capability{10, 7})" in (tree / TUNINGS / name).read_bytes()
    status, out, err = run(capsys, "verify-effect", *given, "--json")
    assert status == 0, err
    effect = json.loads(out)
    assert {(c["arch"], c["role"]) for c in effect["changed"]} == {
        ("sm103", "written"),
        ("sm104", "later"),
    }
    assert "sm104" in effect["between"]
    assert {"sm107", "sm110", "sm120", "sm121"} < {*effect["archs"]}
    archs = ("--arch", "sm107", "--arch", "sm110", "--arch", "sm120")
    compared = ("resolve", "scan_by_key", *given, "--compare", root("3.5.0"), *archs, "--json")
    status, out, err = run(capsys, *compared)
    assert (status, json.loads(out)["different"]) == (0, []), err
