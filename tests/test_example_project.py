"""The example for users of CUB is built as its page says; to run it takes a GPU."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from policygen.proof.toolchain import find_toolchain
from tests.probing import root
from tests.tiers import slow

PROJECT = Path(__file__).parent.parent / "docs/examples/emit"
PROGRAMS = Path(sys.executable).parent


@slow
@pytest.mark.trees
@pytest.mark.nvcc
def test_the_project_emits_its_header_and_compiles(tmp_path):
    cmake = shutil.which("cmake", path=PROGRAMS)
    assert cmake, "cmake comes with the extra dev"
    given = {
        "POLICYGEN": PROGRAMS / "policygen",
        "CUB": root("3.6.0"),
        "CMAKE_CUDA_COMPILER": find_toolchain().nvcc,
    }
    options = [f"-D{name}={value}" for name, value in given.items()]
    for command in (["-S", PROJECT, "-B", tmp_path, *options], ["--build", tmp_path]):
        done = subprocess.run([cmake, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    header = (tmp_path / "include/my_tunings.cuh").read_text("utf-8")
    assert "// ipt_22.tpb_256.ns_200.dcid_1.l2w_600.trp_1.ld_0 1.087719" in header
    done = subprocess.run([tmp_path / "scan"], capture_output=True, text=True, check=False)
    told = done.stderr or done.stdout
    assert "the results are the same" in told or f"{PROJECT / 'scan.cu'}:" in told
