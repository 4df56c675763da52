"""Variants under compute-sanitizer, with a tool that only pretends to be it."""

import pytest

from policygen.errors import MissingToolError
from policygen.gpu import tools
from policygen.gpu.tools import WatchedWorkload, find_sanitizer, memcheck_of, sanitize
from policygen.model.workload import BASE
from policygen.proof.toolchain import Toolchain
from tests.app.searched import own_locks
from tests.gpu.pretended_sanitizer import sanitizing
from tests.gpu.simulated import BASE as OWN
from tests.gpu.simulated import Plan, case, variants


@pytest.fixture
def tool(tmp_path):
    return sanitizing(tmp_path)


def run(tmp_path, monkeypatch, tool, labels, **plan):
    own_locks(tmp_path, monkeypatch)
    told = []
    asked = WatchedWorkload(case(16), OWN, variants(*labels))
    command = Plan(str(tmp_path), **plan).command()
    return sanitize(tool, command, [asked], progress=told.append), told


def test_what_reads_where_it_must_not_is_named(tmp_path, monkeypatch, tool):
    labels = ["ipt_1", "ipt_2", "ipt_3"]
    (found,), told = run(tmp_path, monkeypatch, tool("ipt_2"), labels)
    assert found == {
        "ipt_2": "compute-sanitizer: Invalid __global__ read of size 4 bytes"
        " at saxpy(const float *, float *)+0x90 in saxpy.cu:9"
    }
    assert [one.running for one in told][:2] == [("base",), ("ipt_1",)]


def test_base_that_does_so_ends_the_workload(tmp_path, monkeypatch, tool):
    (found,), _ = run(tmp_path, monkeypatch, tool(BASE), ["ipt_1"])
    assert list(found) == [BASE]


def test_the_tool_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("policygen.proof.toolchain.which", lambda _: None)
    toolchain = Toolchain(tmp_path / "nvcc", "13.2.86", ("sm90",))
    with pytest.raises(MissingToolError, match="compute-sanitizer"):
        find_sanitizer(toolchain)
    (tmp_path / tools.SANITIZER_TOOL).touch()
    assert find_sanitizer(toolchain) == tmp_path / tools.SANITIZER_TOOL


READ = "compute-sanitizer: Invalid __global__ read of size 4 bytes"
KERNEL = f"{READ} at void cub::CUB_300_SM_90::DeviceReduceKernel<float *>(float *)+0x90"


@pytest.mark.parametrize(
    ("errors", "outcome", "in_cub"),
    [
        ({}, "clean", False),
        ({"ipt_1": "ran for more than 30 seconds"}, "clean", False),
        ({"ipt_1": KERNEL}, "error", True),
        ({"ipt_1": f"{READ} at void mine::cub::CUB_300::Kernel(int *)+0x90"}, "error", True),
        ({"ipt_1": f"{READ} at saxpy(const cub::Pair *, float *)+0x90 in a.cu:9"}, "error", False),
        ({"ipt_1": READ}, "error", False),
        ({BASE: KERNEL, "ipt_1": KERNEL}, "base", False),
    ],
)
def test_cub_itself_fails_only_if_base_passes_and_the_frame_is_its_own(errors, outcome, in_cub):
    judged = memcheck_of("ipt_1", errors)
    assert (judged.variant, judged.outcome, judged.in_cub) == ("ipt_1", outcome, in_cub)
    assert not judged.words.startswith("compute-sanitizer")
