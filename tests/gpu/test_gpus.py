"""Which GPUs are listed: those that are meant for the process, as a batch system says it."""

import stat

import pytest

from policygen.errors import InputError, MissingToolError
from policygen.gpu.machine import VISIBLE, device_environment, find_gpu, list_gpus

ROWS = """NVIDIA H200, GPU-5f3b, 9.0, 580.82.07
NVIDIA H200, GPU-7c1d, 9.0, 580.82.07
NVIDIA A100, GPU-7e90, 8.0, 580.82.07"""


@pytest.fixture(autouse=True)
def smi(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{ROWS}\nEND\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv(VISIBLE, raising=False)


def test_all_are_listed_where_none_is_hidden():
    assert [(one.number, one.uuid, one.arch) for one in list_gpus()] == [
        (0, "GPU-5f3b", "sm90"),
        (1, "GPU-7c1d", "sm90"),
        (2, "GPU-7e90", "sm80"),
    ]
    assert device_environment() == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("names", "uuids"),
    [
        ("2,0", ["GPU-7e90", "GPU-5f3b"]),
        (" 1 ", ["GPU-7c1d"]),
        ("GPU-7c,0", ["GPU-7c1d", "GPU-5f3b"]),
        ("1,9,0", ["GPU-7c1d"]),  # CUDA looks no further than the first that is none
    ],
)
def test_a_number_counts_those_that_are_meant(monkeypatch, names, uuids):
    monkeypatch.setenv(VISIBLE, names)
    assert [one.uuid for one in list_gpus()] == uuids
    assert [one.number for one in list_gpus()] == list(range(len(uuids)))
    assert find_gpu(len(uuids) - 1).uuid == uuids[-1]
    assert device_environment()[VISIBLE] == names
    with pytest.raises(InputError, match=f"there is no GPU {len(uuids)}"):
        find_gpu(len(uuids))


@pytest.mark.parametrize("names", ["", "-1", "7", "MIG-1"])
def test_where_none_is_meant_it_is_said(monkeypatch, names):
    monkeypatch.setenv(VISIBLE, names)
    with pytest.raises(MissingToolError, match=f"visible GPU .{VISIBLE}='{names}' names none"):
        list_gpus()
