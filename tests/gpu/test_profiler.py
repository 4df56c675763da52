"""Variants under ncu, with a tool that only pretends to be it."""

import pytest

from policygen.errors import MissingToolError
from policygen.gpu.tools import METRIC, TOOL, WatchedWorkload, achieved, find_profiler
from policygen.proof.toolchain import Toolchain
from tests.app.searched import own_locks
from tests.gpu.pretended_ncu import profiling
from tests.gpu.simulated import BASE, Plan, case, variants

LABELS = ("ipt_1", "ipt_2", "ipt_3")


def run(tmp_path, monkeypatch, tool, **plan):
    own_locks(tmp_path, monkeypatch)
    one = WatchedWorkload(case(16), BASE, variants(*LABELS))
    return achieved(tool, Plan(str(tmp_path), **plan).command(), ["saxpy"], one)


def test_each_variant_has_the_share_of_its_own_launch(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path))
    assert found == {"base": 0.11, "ipt_1": 0.12, "ipt_2": 0.13, "ipt_3": 0.14}


def test_one_that_is_wrong_was_launched_as_well(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path), does={"ipt_2": "wrong"})
    assert found["ipt_3"] == 0.14


def test_launches_that_cannot_be_told_apart_tell_nothing(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path, lacking=2))
    assert found == "3 launches were reported for 4 variants"


def test_a_process_that_is_lost_takes_its_launches_along(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path), does={"ipt_2": "crash"})
    assert found.endswith("launches were reported for 3 variants")


def test_what_the_tool_says_is_told(tmp_path, monkeypatch):
    why = "ERR_NVGPUCTRPERM - The user does not have permission"
    found = run(tmp_path, monkeypatch, profiling(tmp_path, error=why))
    assert found == why


def test_what_is_no_number_is_not_known(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path, told="n/a"))
    assert found == f"it does not report {METRIC}"


def test_inputs_that_cannot_be_made_are_told(tmp_path, monkeypatch):
    found = run(tmp_path, monkeypatch, profiling(tmp_path), skips=[16])
    assert isinstance(found, str)


def test_the_tool_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("policygen.proof.toolchain.which", lambda _: None)
    toolchain = Toolchain(tmp_path / "nvcc", "13.2.86", ("sm90",))
    with pytest.raises(MissingToolError, match="Nsight Compute"):
        find_profiler(toolchain)
    (tmp_path / TOOL).touch()
    assert find_profiler(toolchain) == tmp_path / TOOL
