"""The example for users of CUB is built as its page says; to run it takes a GPU."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from policygen.cli.main import main
from policygen.proof.toolchain import find_toolchain
from tests.probing import root
from tests.tiers import slow

EXAMPLES = Path(__file__).parent.parent / "docs/examples"
PROJECT = EXAMPLES / "emit"
PROGRAMS = Path(sys.executable).parent


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_project_emits_its_header_and_compiles(tmp_path):
    build(PROJECT, tmp_path)
    header = (tmp_path / "include/my_tunings.cuh").read_text("utf-8")
    assert "// ipt_22.tpb_256.ns_200.dcid_1.l2w_600.trp_1.ld_0 1.087719" in header
    done = subprocess.run([tmp_path / "scan"], capture_output=True, text=True, check=False)
    told = done.stderr or done.stdout
    assert "the results are the same" in told or f"{PROJECT / 'scan.cu'}:" in told


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_thrust_program_is_built_with_and_without_an_overlay(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build(EXAMPLES / "overlay", tmp_path)
    rows = json.loads((tmp_path / "compile_commands.json").read_text("utf-8"))
    plain, tuned = sorted((flags(row, tmp_path) for row in rows), key=len)
    assert f"-I{tmp_path}/tuned-cub" not in plain
    assert tuned.index(f"-I{tmp_path}/tuned-cub") < tuned.index(f"-I{root('3.6.0')}")
    tag = json.loads((tmp_path / "tuned-cub/policygen-overlay.json").read_text("utf-8"))["tag"]
    for name in ("plain", "tuned"):
        done = subprocess.run([tmp_path / name], capture_output=True, text=True, check=False)
        assert "exclusive_scan" in done.stdout or "no GPU" in done.stderr
        assert main(["calls", str(tmp_path / name), "--cub", str(root("3.6.0")), "--json"]) == 0
        calls = json.loads(capsys.readouterr().out)["calls"]
        assert {call["overlay"] for call in calls} == {None if name == "plain" else tag}
        threads = {k["threads"] for call in calls if call["algorithm"] == "scan"
                   for k in call["kernels"] if k["name"] == "DeviceScanKernel"}  # fmt: skip
        assert threads == ({128} if name == "plain" else {256})


def flags(row, folder):
    """The flags of a compile command; some versions of CMake write include folders into a file."""
    words = shlex.split(row["command"])
    for place in reversed([place for place, word in enumerate(words) if word == "--options-file"]):
        words[place : place + 2] = shlex.split((folder / words[place + 1]).read_text("utf-8"))
    return words


def build(project, folder):
    """Configures and builds a project as its page says."""
    cmake = shutil.which("cmake", path=PROGRAMS)
    assert cmake, "cmake comes with the extra dev"
    given = {
        "POLICYGEN": PROGRAMS / "policygen",
        "CUB": root("3.6.0"),
        "CMAKE_CUDA_COMPILER": find_toolchain().nvcc,
    }
    options = [f"-D{name}={value}" for name, value in given.items()]
    for command in (["-S", project, "-B", folder, *options], ["--build", folder]):
        done = subprocess.run([cmake, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
