import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from policygen.app import comparison
from policygen.cli import verify_sass
from policygen.errors import InputError
from policygen.model.machine_code import SassCompiles, VerifySass
from policygen.proof.toolchain import find_toolchain
from tests.cli.tuned import HEADER, THREE, committed_tree, database, others, run, tuned
from tests.probing import changed_tree, header, replaced, root
from tests.tiers import sampled, slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

SCAN = "tuning_scan.cuh"
SUM = "cub.bench.scan.exclusive.sum"
ONE = ("-R", f"{THREE}$", "-a", "T=I32", "-a", "OffsetT=I32")
ENTRY = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")


ENTRY_OF_THREE = (
    "  static constexpr int threads                       = 320;\n"
    "  static constexpr int items                         = 12;\n",
    "  static constexpr int threads                       = 256;\n"
    "  static constexpr int items                         = 12;\n",
)


def verify(capsys, *arguments):
    return run(capsys, "verify-sass", *arguments)


def document(capsys, *arguments, status=0):
    found, out, err = verify(capsys, "--json", "-q", *arguments)
    assert found == status, err
    data = json.loads(out)
    jsonschema.validate(data, VerifySass.model_json_schema(mode="serialization"))
    return data


def edited(tree, *changes):
    tuned(tree).write_bytes(replaced(tuned(tree).read_bytes(), *changes))


def scan_tree(folder, *changes):
    return changed_tree(folder, "3.0.1", {SCAN: replaced(header("3.0.1", SCAN), *changes)})


@slow
def test_an_entry_of_sm90_changes_its_own_kernels_there_and_nothing_on_sm80(capsys, tmp_path):
    tree = scan_tree(tmp_path, ENTRY)
    given = ("--cub", tree, "--base", root("3.0.1"), "-R", f"{SUM}$", "--arch", "90")
    found = document(capsys, *given, "--arch", "sm80", "--diffs", tmp_path / "diffs", status=1)
    assert {
        (one["arch"], one["workload"]["T"], one["workload"]["OffsetT"], one["kind"])
        for one in found["different"]
    } == {("sm90", "F32", "I32", "different"), ("sm90", "F32", "I64", "different")}
    assert all(one["kernel"].startswith("DeviceScanKernel<") for one in found["different"])
    assert (found["workloads"], found["kernels"], found["equal"]) == (32, 64, 62)
    assert found["renamed"] == found["identical"] == 0
    assert [row["different"] for row in found["rows"]] == [0, 2]
    one = found["different"][0]
    assert one["registers"][0] > one["registers"][1]
    assert "bytes of shared memory 13,328 → 11,280" in one["summary"]
    assert any(line.startswith("-") for line in one["diff"])
    files = sorted((tmp_path / "diffs").iterdir())
    assert [path.name[:32] for path in files] == [
        "001.sm90.cub.bench.scan.exclusiv",
        "002.sm90.cub.bench.scan.exclusiv",
    ]
    assert files[0].read_text().splitlines()[4:] == one["diff"][2:]
    status, out, _ = verify(capsys, *given, "-a", "T=[F32,I8]", "-a", "OffsetT=I32", "-q")
    assert status == 1
    assert "\n  different DeviceScanKernel<policy_hub<float, float, float, unsigned int," in out


@pytest.mark.slow
def test_a_comment_compiles_nothing(capsys, tmp_path, monkeypatch):
    tree = scan_tree(tmp_path, ("namespace scan\n{", "// one\n\n/* two\n */ namespace scan\n{"))
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    given = ("--cub", tree, "--base", root("3.0.1"), "--arch", "sm90")
    found = document(capsys, *given)
    assert found["workloads"] == found["identical"] > 30
    assert found["kernels"] == 0
    assert (tmp_path / "cache/preprocessed").is_dir()
    assert not (tmp_path / "cache/cubin").exists()
    status, out, err = verify(capsys, *given)
    assert status == 0
    assert re.search(
        r"SASS: \d+ workloads with the same source; nothing was compiled \(sm90\)", out
    )
    assert " ".join(others(err)).startswith("at most 64 compiles: 32 workloads, ")


@pytest.mark.slow
def test_another_architecture_renames_kernels_and_changes_none(capsys, tree, tmp_path):
    data = database(tmp_path / "run.db")
    given = ("--db", data, "--arch", "sm120", "--any-gpu", "--cub", tree, "--no-prove", "-q")
    assert run(capsys, "apply", *given)[0] == 0
    assert b"Policy1200" in tuned(tree).read_bytes()
    found = document(
        capsys, "--cub", tree, "--arch", "sm80", "--arch", "sm90", "-a", "T=[I8,F32]", "-R", THREE
    )
    assert found["base"] == f"before the apply for sm120: {HEADER}"
    assert found["different"] == found["only_before"] == found["only_after"] == []
    assert found["renamed"] + found["equal"] == found["kernels"]
    names = {(one["name_before"], one["name_after"]) for one in found["renamings"]}
    assert len(found["renamings"]) == 2 * found["workloads"] - found["equal"] > 0
    # sm121 keeps what it had by a policy of its own, which is the newest one.
    assert all("Policy1210" in after for _, after in names)
    assert all(after.replace("Policy1210", "Policy1000") == before for before, after in names)
    status, out, _ = verify(capsys, "--cub", tree, "--arch", "sm90", *ONE)
    assert status == 0
    assert "renamed, with equal code" in out


@slow
def test_without_arch_all_that_the_apply_should_not_reach_are_compared(capsys, tree, three):
    assert run(capsys, "apply", "--cub", tree, "--db", three, "--arch", "sm90", "-q")[0] == 0
    earlier = [
        arch for arch in find_toolchain().archs if int(arch[2:]) < 90 or int(arch[2:]) >= 100
    ]
    found = document(capsys, "--cub", tree, *ONE, "--arch", "earlier")
    assert found["archs"] == earlier
    assert found["equal"] == found["kernels"] > 0
    found = document(capsys, "--cub", tree, *ONE)
    assert sorted(found["archs"]) == sorted([*earlier, "sm90"])
    (one,) = found["different"]
    assert (one["arch"], one["as_written"]) == ("sm90", True)
    assert "launch bound 320 → 512" in one["summary"]
    found = document(capsys, "--cub", tree, *ONE, "--arch", "earlier,sm90")
    assert "sm90" in found["archs"]
    assert "sm80" in found["archs"]


@slow
def test_edits_that_are_not_committed_are_compared_with_the_last_commit(capsys, tmp_path):
    tree = committed_tree(tmp_path / "tree")
    place = tree / "cub/device/dispatch/tuning" / SCAN
    given = ("--cub", tree, "-R", f"{SUM}$", "-a", "T=F32", "-a", "OffsetT=I32", "--arch", "sm90")
    status, _, err = verify(capsys, *given)
    assert status == 2
    assert "nothing was applied to the tree (policygen.db), and no tuning header" in err
    place.write_bytes(replaced(place.read_bytes(), ENTRY))
    found = document(capsys, *given, status=1)
    assert found["base"] == "HEAD"
    assert len(found["different"]) == 1
    assert document(capsys, *given, "--base", "HEAD", status=1)["different"] == found["different"]


@pytest.fixture
def saved(capsys, tree, tmp_path):
    """Reference dumps of one workload."""
    status, out, _ = verify(
        capsys, "--cub", tree, *ONE, "--arch", "sm90", "--save", tmp_path / "kept", "-q"
    )
    assert status == 0
    assert out == f"saved in {tmp_path / 'kept'}: 1 dump (nvcc {find_toolchain().version})\n"
    return tmp_path / "kept"


def dump(folder):
    (path,) = folder.glob("cub*.json")
    return path, json.loads(path.read_text())


def with_code(folder, change):
    path, data = dump(folder)
    kernel = max(data["kernels"], key=lambda one: len(one["code"]))
    kernel["code"] = change(kernel["code"])
    path.write_text(json.dumps(data))


def swap(code):
    at = next(i for i in range(9, len(code)) if code[i].split()[0] != code[i + 1].split()[0])
    return [*code[:at], code[at + 1], code[at], *code[at + 2 :]]


def test_dumps_are_compared_with_later(capsys, tree, saved):
    given = ("--cub", tree, "--base", saved)
    found = document(capsys, *given)
    assert (found["workloads"], found["archs"]) == (1, ["sm90"])
    assert found["equal"] == found["kernels"] > 0
    assert found["base"].startswith("dumps of CUB 3.0.1, nvcc ")
    with_code(saved, swap)
    found = document(capsys, *given, status=1)
    assert [one["kind"] for one in found["different"]] == ["moved"]
    assert verify(capsys, *given, "--allow-moved", "-q")[0] == 0
    index = saved / "policygen-sass.json"
    index.write_text(index.read_text().replace("nvcc ", "nvcc 12.9 or "))
    assert "note: the dumps were made with nvcc 12.9 or" in verify(capsys, *given)[1]
    with_code(saved, lambda code: code[:-1])
    found = document(capsys, *given, "--allow-moved", status=1)
    assert [one["kind"] for one in found["different"]] == ["different"]


def test_dumps_without_kernels_or_with_other_workloads_are_no_answer(capsys, tree, saved):
    path, data = dump(saved)
    status, _, err = verify(capsys, "--cub", tree, "--base", saved, "--arch", "sm80", "-q")
    assert status == 2
    assert "the dumps contain none of the chosen workloads" in err
    path.write_text(json.dumps({**data, "kernels": []}))
    status, _, err = verify(capsys, "--cub", tree, "--base", saved)
    assert status == 2
    assert "is not a dump of this version of policygen" in err


@pytest.mark.slow
def test_dumps_are_all_or_none(capsys, tree, tmp_path):
    edited(tree, ("struct policy_hub\n{", "struct policy_hub\n{\n  static_assert(sizeof(T) == 0);"))
    given = ("--cub", tree, *ONE, "--arch", "sm90", "--save", tmp_path / "kept")
    status, _, err = verify(capsys, *given)
    assert status == 2
    assert " -cubin " in err
    assert not (tmp_path / "kept").exists()


def test_dumps_can_be_kept_while_comparing(capsys, tree, saved, tmp_path):
    given = ("--cub", tree, "--base", saved, "--save", tmp_path / "more")
    assert document(capsys, *given)["equal"] > 0
    assert dump(tmp_path / "more")[1] == dump(saved)[1]
    given = ("--cub", tree, *ONE, "--arch", "sm90", "--save", tmp_path / "third", "--json", "-q")
    status, out, _ = verify(capsys, *given)
    assert status == 0
    assert json.loads(out)["format"] == "policygen/sass-dumps/1"


def test_a_kernel_that_is_gone_or_new_is_told(capsys, tree, saved):
    path, data = dump(saved)
    kernels = [one for one in data["kernels"] if "EmptyKernel" not in one["name"]]
    lone = {**kernels[0], "name": "_Z4lonev", "code": ["EXIT"]}
    path.write_text(json.dumps({**data, "kernels": [*data["kernels"], lone]}))
    status, out, _ = verify(capsys, "--cub", tree, "--base", saved)
    assert status == 1
    assert f"only before:\n  {THREE} T=I32 OffsetT=I32 on sm90: lone\n" in out
    path.write_text(
        json.dumps({**data, "kernels": [one for one in data["kernels"] if one != kernels[0]]})
    )
    status, out, _ = verify(capsys, "--cub", tree, "--base", saved)
    assert status == 1
    assert "only after:" in out


@pytest.mark.slow
def test_what_does_not_compile_is_neither_equal_nor_different(capsys, tree):
    edited(tree, ("struct policy_hub\n{", "struct policy_hub\n{\n  static_assert(sizeof(T) == 0);"))
    given = ("--cub", tree, "--base", root("3.0.1"), *ONE, "--arch", "sm90")
    status, out, err = verify(capsys, *given)
    assert status == 2
    assert f"{THREE} T=I32 OffsetT=I32 on sm90 does not compile after:" in out
    assert " -cubin " in out
    assert "SASS: nothing was compared; 1 compile failed (sm90)" in out
    assert "1 workload did not compile" in err
    found = document(capsys, *given, status=2)
    assert [(one["side"], one["arch"]) for one in found["refused"]] == [("after", "sm90")]
    assert found["kernels"] == found["equal"] == 0


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ((), 2, "Name what to compare with: --base REVISION"),
        (("--base", "no-such-thing"), 2, "'no-such-thing' is neither a folder"),
        (("--base", "TREE", "--arch", "sm50"), 2, "this nvcc does not support sm50\n"),
        (("--base", "TREE", "--arch", "new"), 2, "new"),
        (("--base", "TREE", "-R", "nothing"), 2, "no workload matches -R 'nothing'"),
        (("--base", "TREE", "-j", "0"), 2, "Invalid value for '-j'"),
        (("--base", "TREE", "--arch", "sm90"), 0, ""),
        pytest.param(("--base", "TREE"), 0, "", marks=slow),  # eleven architectures
    ],
)
def test_what_cannot_be_asked_is_told(capsys, tree, given, status, message):
    given = [str(root("3.0.1")) if text == "TREE" else text for text in given]
    found, out, err = verify(capsys, "--cub", tree, *given)
    assert found == status
    assert message in err
    if not status:
        assert "SASS: nothing differs; nothing was compiled" in out


def test_without_a_compiler_the_extra_is_named(capsys, tree, monkeypatch, tmp_path):
    home = tmp_path / "bin"
    home.mkdir()
    shutil.copy(find_toolchain().nvcc, home / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "absent"))
    status, _, err = verify(capsys, "--cub", tree, "--base", root("3.0.1"), *ONE)
    assert status == 3
    assert "CUDA_HOME" in err


@pytest.mark.slow
@pytest.mark.parametrize("end", sampled([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_interrupted_it_leaves_no_process_and_a_usable_cache(tree, tmp_path, end):
    real = find_toolchain().nvcc
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    for name in ("cuobjdump", "nvdisasm"):
        (home / "bin" / name).symlink_to(real.with_name(name))
    nvcc = home / "bin" / "nvcc"
    nvcc.write_text(
        f'#!/bin/sh\ncase "$*" in *-cubin*) echo $$ >> {tmp_path}/pids; sleep 300 & echo $! >>'
        f' {tmp_path}/pids; wait;; *) exec {real} "$@";; esac\n'
    )
    nvcc.chmod(0o755)
    command = [sys.executable, "-m", "policygen", "verify-sass", "--cub", tree, *ONE]
    command += ["--arch", "sm90", "--save", tmp_path / "kept"]
    environment = {**os.environ, "CUDA_HOME": str(home), "POLICYGEN_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        list(map(str, command)), env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 120
    while not (pids.is_file() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(end)
    words = process.communicate(timeout=30)
    assert process.returncode == 130, words
    for pid in pids.read_text().split():
        assert not running(int(pid))
    kept = [path for path in (tmp_path / "cache" / "units").iterdir() if path.is_dir()]
    assert kept == []
    command[-1] = tmp_path / "again"
    environment.pop("CUDA_HOME")
    subprocess.run(list(map(str, command)), env=environment, check=True, capture_output=True)


def running(pid):
    """Whether a process works; one that ended may wait for whoever takes its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def applied(capsys, tree, db):
    assert run(capsys, "apply", "--cub", tree, "--db", db, "--arch", "sm90", "-q")[0] == 0


def planned_compiles(capsys, *arguments):
    status, out, err = verify(capsys, "--dry-run", "--json", "-q", *arguments)
    assert (status, err) == (0, "")
    data = json.loads(out)
    jsonschema.validate(data, SassCompiles.model_json_schema(mode="serialization"))
    return data


@pytest.mark.slow
def test_only_what_the_change_can_touch_is_compiled_and_the_changed_comes_first(
    capsys, tree, three, monkeypatch, tmp_path
):
    applied(capsys, tree, three)
    monkeypatch.setenv("POLICYGEN_CACHE", str(tmp_path / "cache"))
    # Of another cache it is not known that the store was made here.
    tree_and_store = ("--cub", tree, "--store", "policygen.db")
    told = planned_compiles(capsys, *tree_and_store)
    assert not (tmp_path / "cache/cubin").exists()
    assert not (tmp_path / "cache/preprocessed").exists()
    every = planned_compiles(capsys, *tree_and_store, "-R", THREE)
    assert told["workloads"] + told["untouched"] == every["workloads"] > 5 * told["workloads"]
    assert every["untouched"] == 0
    assert told["archs"] == every["archs"] == list(find_toolchain().archs)
    assert told["changed"] == 4  # one was written, and three share its entry
    assert told["units"] == 2 * told["workloads"]
    (remark,) = told["remarks"]
    assert f"{told['untouched']:,} of {every['workloads']:,} workloads, times arch" in remark
    assert "the headers have the same code on both sides; no policy of sm75, sm80, " in remark
    status, out, _ = verify(capsys, *tree_and_store, "--dry-run")
    words = " ".join(out.split())
    assert status == 0
    assert f"at most {told['units']} compiles: {told['workloads']} workloads" in words
    assert ", 4 changed ones first; about " in words


@pytest.mark.slow
def test_what_was_written_is_told_as_written_and_is_no_failure(capsys, tree, three):
    applied(capsys, tree, three)
    status, out, err = verify(capsys, "--cub", tree, "--arch", "sm90")
    assert status == 0, err
    words, said = " ".join(out.split()), " ".join(err.split())
    assert "different, with the written values: DeviceThreeWayPartitionKernel<" in words
    assert " 4 different because of written values; " in words
    assert " workloads that the change cannot touch (sm90)" in words
    at = said.index("at most ")
    assert ", 4 changed ones first; about " in said[at:]
    found = document(capsys, "--cub", tree, "--arch", "sm90")
    assert all(one["as_written"] for one in found["different"])
    assert {"T": "I32", "OffsetT": "I32"} in [one["workload"] for one in found["different"]]
    assert sum(row["as_written"] for row in found["rows"]) == len(found["different"]) == 4
    assert sum(row["different"] for row in found["rows"]) == 0


@pytest.mark.slow
def test_a_difference_that_nobody_wrote_is_one(capsys, tree, tmp_path):
    """An edit by hand has no plan that could have meant it."""
    edited(tree, ENTRY_OF_THREE)
    found = document(capsys, "--cub", tree, "--base", root("3.0.1"), "--arch", "sm90", status=1)
    assert found["untouched"] > 0
    assert all(not one["as_written"] for one in found["different"])
    assert {one["workload"]["T"] for one in found["different"]} == {"I32", "F32"}


@pytest.mark.slow
def test_what_an_entry_is_inherited_by_is_touched_on_the_architectures_of_the_heirs(
    capsys, tmp_path
):
    """The policies of sm100 read families of their own, whose entries inherit from sm90's."""
    name = "tuning_radix_sort.cuh"
    entry = "sm90_small_key_tuning<1,  0, 4> { static constexpr int threads = 512;"
    data = replaced(header("3.0.1", name), (entry, entry.replace("512", "384")))
    tree = changed_tree(tmp_path, "3.0.1", {name: data})
    given = ("--cub", tree, "--base", root("3.0.1"))
    found = {a: planned_compiles(capsys, *given, "--arch", a) for a in ("sm80", "sm90", "sm100")}
    assert (found["sm80"]["workloads"], found["sm80"]["changed"]) == (0, 0)
    assert found["sm90"]["changed"] > 0
    assert found["sm100"]["changed"] > 0
    assert all(one["workloads"] + one["untouched"] == 54 for one in found.values())


def test_what_differs_outside_of_entries_can_touch_everything(capsys, tree):
    edited(tree, ("namespace three_way_partition\n{", "namespace three_way_partition\n{int a();"))
    given = ("--cub", tree, "--base", root("3.0.1"), "--arch", "sm80")
    told = planned_compiles(capsys, *given)
    every = planned_compiles(capsys, *given, "-R", THREE)
    assert (told["untouched"], told["changed"]) == (0, 0)
    assert told["workloads"] == every["workloads"] > 10


def test_parts_are_all_of_it_and_each_is_as_large(capsys, tree, three):
    applied(capsys, tree, three)
    given = ("--cub", tree, "-R", THREE, "--arch", "sm80,sm90")
    every = planned_compiles(capsys, *given)["workloads"]
    parts = [planned_compiles(capsys, *given, "--shard", f"{i}/3") for i in (1, 2, 3)]
    assert sum(part["workloads"] for part in parts) == every
    assert {part["workloads"] - every // 3 for part in parts} <= {0, 1}
    assert parts[1]["remarks"][-1] == (
        f"part 2 of 3: {parts[1]['workloads']} of {every} workloads, times architectures"
    )
    for wrong in ("0/3", "4/3", "3", "a/b", "1/0"):
        status, _, err = verify(capsys, *given, "--shard", wrong)
        assert (status, f"'{wrong}' is not a shard; write 2/4" in err) == (2, True)


@slow
def test_machine_code_for_sm107_is_compared_where_nvcc_knows_it(capsys, tmp_path):
    """CUDA 13.4 and later compile for sm107; earlier ones are refused with what they can."""
    name = "tuning_adjacent_difference.cuh"
    data = replaced(header("3.6.0", name), ("{128, 20, BLOCK_LOAD", "{128, 18, BLOCK_LOAD"))
    tree = changed_tree(tmp_path, "3.6.0", {name: data})
    given = ("--cub", tree, "--base", root("3.6.0"), "-R", "cub.bench.adjacent_difference")
    given += ("-a", "T=[I32,I64]", "--arch", "sm107", "--arch", "sm90")
    if "sm107" not in find_toolchain().archs:
        status, _, err = verify(capsys, *given)
        assert status == 2
        assert "sm107" in err
        return
    found = document(capsys, *given, status=1)
    assert {(one["arch"], one["workload"]["T"]) for one in found["different"]} == {("sm107", "I32")}
    assert found["archs"] == ["sm90", "sm107"]


def test_what_did_not_compile_is_unknown(capsys, monkeypatch, tree):
    document = SimpleNamespace(refused=["T=I8"], changed=False)
    monkeypatch.setattr(verify_sass, "verify", lambda *_, **__: document)
    monkeypatch.setattr(verify_sass.value_views, "sass", lambda *_, **__: [])
    status, _, err = verify(capsys, "--cub", tree)
    assert status == 2
    assert "1 workload did not compile: whether their machine code differs is unknown" in err


def test_dumps_of_calls_are_not_compared_with_benchmarks(monkeypatch):
    base = SimpleNamespace(label="kept", cub=None, index=SimpleNamespace(units="calls"))
    chosen = SimpleNamespace(pattern=None, axes={}, named=False, units="benchmarks", checkout="x")
    monkeypatch.setattr(comparison, "_changed_headers", lambda *_: (None, []))
    monkeypatch.setattr(comparison, "_select_units", lambda *_: ({}, {}))
    cub = SimpleNamespace(include_folders=())
    with pytest.raises(InputError) as caught:
        comparison.choose_compiles(cub, base, chosen, ("sm90",), None)
    assert str(caught.value) == (
        "kept: the dumps are of calls of the algorithms\n  Compare them without --benchmarks."
    )
