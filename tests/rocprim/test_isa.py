"""The machine code of rocPRIM's kernels before and after a change, by the hipcc that is here."""

import json
import re
from functools import partial
from pathlib import Path

import jsonschema
import pytest

from policygen.cli.main import main
from policygen.model.machine_code import VerifySass
from policygen.rocprim import hipcc as finding
from tests.probing import root
from tests.real_trees import rocprim_tree
from tests.rocprim.places import CONFIGS, REDUCE, changed_tree, own_tree, text_of
from tests.rocprim.toy_pickers import make_toy
from tests.rocprim.tuned import against, applied, imported, on, row_for
from tests.tiers import slow

pytestmark = pytest.mark.trees

INT = "4, ::rocprim::block_reduce_algorithm::using_warp_reduce>"
NAMED = ("-R", "rocprim.device_reduce$", "-a", "key_type=[int,short]")
TWO = ("--arch", "gfx90a", "--arch", "gfx908")
with_hipcc = partial(pytest.param, marks=pytest.mark.hipcc)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def with_entry(values="256, 8", arch="gfx90a", kind="int"):
    """The header of reductions with other values for a type on one target."""
    text = text_of(REDUCE)
    named = f"// Based on key_type = {kind}\n"
    at = next(
        start for start in _all(text, named) if f"target_arch::{arch})" in text[start : start + 200]
    )
    start = text.index(": reduce_config<", at) + len(": reduce_config<")
    end = text.index(",", text.index(",", start) + 1)
    assert text[start:end] != values
    return text[:start] + values + text[end:]


def _all(text, part):
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def base(release="5.7.1"):
    return str(rocprim_tree(release))


def verify(capsys, tree, *more, against=None):
    status = main(["verify-sass", "--cub", str(tree), "--base", against or base(), *more])
    told = capsys.readouterr()
    return status, told.out, told.err


def document(capsys, tree, *more, status=0, against=None):
    found, out, err = verify(capsys, tree, *more, "--json", "-q", against=against)
    assert found == status, err
    data = json.loads(out)
    jsonschema.validate(data, VerifySass.model_json_schema(mode="serialization"))
    return data


@pytest.mark.hipcc
def test_a_config_changes_its_own_workload_on_its_own_target_and_no_other(capsys, tmp_path):
    tree = changed_tree(tmp_path, {REDUCE: with_entry()})
    found = document(capsys, tree, *NAMED, *TWO, "--diffs", "diffs", status=1)
    assert [
        (one["arch"], one["workload"], one["kind"], one["as_written"]) for one in found["different"]
    ] == [("gfx90a", {"key_type": "int"}, "different", False)]
    assert (found["workloads"], found["kernels"], found["equal"]) == (4, 4, 3)
    assert found["identical"] == found["untouched"] == 0
    one = found["different"][0]
    assert one["kernel"].startswith("block_reduce_kernel<")
    assert one["registers"][0] < one["registers"][1]
    assert "global_load_dword" in one["summary"]
    assert any(row.startswith("+global_load_dword ") for row in one["diff"])
    (diff,) = Path("diffs").iterdir()
    assert "gfx90a" in diff.name
    hipcc = finding.find_hipcc()
    assert (
        found["toolchain"] == hipcc.name == f"hipcc {hipcc.version} (clang {hipcc.clang_version})"
    )


@pytest.mark.hipcc
def test_what_a_change_cannot_touch_is_not_compiled_and_the_rest_is(capsys, tmp_path):
    tree = changed_tree(tmp_path, {REDUCE: with_entry()})
    found = document(capsys, tree, *TWO, status=1)
    assert (found["workloads"], found["untouched"]) == (1, 15)
    assert [(one["arch"], one["workload"]) for one in found["different"]] == [
        ("gfx90a", {"key_type": "int"})
    ]
    assert any("the compiler reports which entry decides" in one for one in found["remarks"])
    # The targets that it should not change.
    found = document(capsys, tree)
    assert found["archs"][0] == "gfx803"
    assert "gfx90a" not in found["archs"]
    assert (found["kernels"], found["untouched"]) == (0, 8 * len(found["archs"]))
    assert any(one.startswith("unknown is not compared: ") for one in found["remarks"])


@pytest.mark.hipcc
def test_a_tree_as_it_was_and_a_comment_are_equal(capsys, tmp_path):
    tree = changed_tree(tmp_path, {})
    assert document(capsys, tree, *NAMED, *TWO)["identical"] == 4
    text = text_of(REDUCE)
    (tree / CONFIGS / REDUCE).unlink()
    (tree / CONFIGS / REDUCE).write_text(f"// Said at the beginning.\n\n{text}\n// And the end.\n")
    found = document(capsys, tree, *NAMED, *TWO)
    assert (found["identical"], found["kernels"], found["different"]) == (4, 0, [])
    status, out, _ = verify(capsys, tree, *NAMED, "--arch", "gfx90a")
    assert status == 0
    assert "ISA: 2 workloads with the same source; nothing was compiled (gfx90a)" in out


@pytest.mark.hipcc
def test_the_same_code_of_another_text_is_compiled_and_equal(capsys, tmp_path):
    text = text_of(REDUCE).replace("reduce_config<256, 4,", "reduce_config<2 * 128, 2 + 2,")
    assert text != text_of(REDUCE)
    tree = changed_tree(tmp_path, {REDUCE: text})
    found = document(capsys, tree, *NAMED, "-a", "key_type=int", "--arch", "gfx90a")
    assert (found["identical"], found["kernels"], found["equal"]) == (0, 1, 1)


@pytest.mark.hipcc
def test_what_does_not_compile_is_told_with_its_place_and_is_not_equal(capsys, tmp_path):
    text = with_entry(values="256, nonsense")
    line = text[: text.index("nonsense")].count("\n") + 1
    tree = changed_tree(tmp_path, {REDUCE: text})
    status, out, err = verify(capsys, tree, *NAMED, "-a", "key_type=int", "--arch", "gfx90a")
    assert status == 2
    assert "rocprim.device_reduce key_type=int on gfx90a does not compile after:" in out
    assert f"{REDUCE}:{line}:" in out
    assert "use of undeclared identifier 'nonsense'" in out
    assert "ISA: nothing was compared; 1 compile failed (gfx90a)" in out
    assert "1 workload did not compile: whether their machine code differs is unknown" in err


@pytest.mark.hipcc
@pytest.mark.slow
def test_what_was_written_is_as_written_and_other_targets_are_as_they_were(capsys, tmp_path):
    tree = own_tree(tmp_path)
    row = row_for(on(capsys, tree, "gfx90a"), "reduce", key_type="int")
    imported(capsys, tree, against(row, {"ipt": 8}), "gfx90a")
    applied(capsys, tree)
    given = ["verify-sass", "--cub", str(tree), "--store", "store.db", "--json", "-q"]
    assert main(given) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["base"] == f"before the apply for gfx90a: {REDUCE}"
    assert [(one["arch"], one["as_written"]) for one in found["different"]] == [("gfx90a", True)]
    assert found["workloads"] == 1
    assert {"gfx908", "gfx90a"} <= {*found["archs"]}
    document = Path("isa.json")
    document.write_text(json.dumps(found))
    given = ["review", "--cub", str(tree), "--store", "store.db", "--sass", str(document), "-q"]
    assert main(given) == 0
    assert "machine code: 0 of 1 kernels equal, 1 as written on " in capsys.readouterr().out


@pytest.mark.hipcc
@slow
def test_dumps_are_compared_with_later(capsys, tmp_path):
    tree = changed_tree(tmp_path, {REDUCE: with_entry()})
    given = ("--cub", base(), *NAMED, "--arch", "gfx90a", "--save", "kept", "-q")
    assert main(["verify-sass", *given]) == 0
    capsys.readouterr()
    found = document(capsys, tree, *NAMED, status=1, against="kept")
    assert found["base"].startswith("dumps of rocprim@2.13.1, hipcc ")
    assert len(found["different"]) == 1


@pytest.mark.hipcc
@slow
def test_no_path_of_a_tree_gets_to_a_shell(capsys, tmp_path):
    made = changed_tree(tmp_path, {REDUCE: with_entry()})
    tree = made.rename(tmp_path / "a \"b' $(touch pwned) `touch pwned`; touch pwned #")
    found = document(capsys, tree, *NAMED, "-a", "key_type=int", "--arch", "gfx90a", status=1)
    assert (found["kernels"], len(found["different"])) == (1, 1)
    assert not [*Path().rglob("pwned"), *tmp_path.rglob("pwned")]


@pytest.mark.hipcc
@slow
@pytest.mark.parametrize(
    "benchmark",
    [
        *("histogram", "merge_sort_block_sort", "merge_sort_block_merge", "radix_sort_block_sort"),
        *("radix_sort_onesweep", "scan", "scan_by_key"),
    ],
)
def test_the_call_of_each_benchmark_has_the_config_that_it_is_bound_to(capsys, tmp_path, benchmark):
    tree = own_tree(tmp_path)
    types = {"key_type": "int", "value_type": "int", "channels": "1", "active_channels": "1"}
    rows = on(capsys, tree, "gfx90a", "-R", f"rocprim.device_{benchmark}$")["rows"]
    row = next(
        one
        for one in rows
        if all(types.get(axis, value) == value for axis, value in one["workload"].items())
    )
    path = tree / CONFIGS / row["entry"]["header"]
    text = path.read_text()
    start = sum(map(len, text.splitlines(keepends=True)[: row["entry"]["line"] - 1]))
    # A block of half as many threads: the first number of `: scan_config<256, 8, …>`.
    found = re.compile(r"(?<=[\s>]): [\w:]*config\w*<\s*(?:[\w:]*config\w*<\s*)?(\d+)").search(
        text, start
    )
    assert found is not None
    path.write_text(f"{text[: found.start(1)]}{int(found[1]) // 2}{text[found.end(1) :]}")
    wanted = [f"-a{axis}={value}" for axis, value in row["workload"].items()]
    named = ("-R", f"rocprim.device_{benchmark}$", *wanted)
    found = document(capsys, tree, *named, "--arch", "gfx90a", "--arch", "gfx908", status=1)
    assert {one["arch"] for one in found["different"]} == {"gfx90a"}
    assert found["equal"] >= found["kernels"] // 2 > 0


@pytest.mark.hipcc
@slow
def test_values_that_what_is_called_does_not_take_are_told(capsys, tmp_path, monkeypatch):
    made = changed_tree(tmp_path, {REDUCE: with_entry()})
    wrapped = "rocprim/device/device_reduce_config.hpp"
    trees = []
    for name, tree in (("before", rocprim_tree("5.7.1")), ("after", made)):
        own = changed_tree(tmp_path / name, {REDUCE: (tree / CONFIGS / REDUCE).read_text()})
        text = (own / wrapped).read_text()
        (own / wrapped).unlink()
        (own / wrapped).write_text(text.replace("static_cast<unsigned int>(Arch)", "0u"))
        trees.append(own)
    found = document(capsys, trees[1], "--arch", "gfx90a", against=str(trees[0]))
    assert (found["kernels"], found["equal"]) == (1, 1)
    assert any(
        one.startswith(
            "rocprim.device_reduce key_type=int on gfx90a: different values, but the same"
        )
        for one in found["remarks"]
    )


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        (("--hipcc", "absent"), 3, "absent (from --hipcc) is missing"),
        with_hipcc(("--arch", "unknown"), 2, "this hipcc does not support unknown"),
        with_hipcc(("--arch", "sm90"), 2, "this hipcc does not support sm90"),
        with_hipcc(("-R", "nothing"), 2, "no workload matches -R 'nothing'"),
    ],
)
def test_what_cannot_be_compiled_is_told(capsys, tmp_path, given, status, message):
    tree = changed_tree(tmp_path, {REDUCE: with_entry()})
    found, _, err = verify(capsys, tree, *given)
    assert found == status
    assert message in err


def test_without_hipcc_it_is_said_what_to_install(capsys, tmp_path, monkeypatch):
    tree = changed_tree(tmp_path, {REDUCE: with_entry()})
    monkeypatch.setattr(finding, "INSTALLED", tmp_path / "absent")
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, err = verify(capsys, tree, *TWO)
    assert status == 3
    assert "hipcc is missing\n  Install it: apt-get install hipcc" in err


def test_a_tree_of_cub_is_compiled_by_nvcc(capsys):
    status, _, err = verify(capsys, root("3.0.1"), "--hipcc", "x", against=str(root("3.1.4")))
    assert status == 2
    assert "--hipcc names a compiler for GPUs of AMD" in err


@pytest.mark.hipcc
def test_pickers_are_not_compiled_and_it_is_said_why(capsys, tmp_path):
    tree = make_toy(tmp_path / "toy")
    status, _, err = verify(capsys, tree, "-R", "rocprim.device_reduce$", against=str(tree))
    assert status == 2
    assert "none of the chosen workloads can be compiled" in err
    assert "has configs for targets" in err
