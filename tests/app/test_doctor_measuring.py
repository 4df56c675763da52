"""What a machine can measure is told; what is missing, and what mends it, too."""

import os
from importlib import metadata
from types import SimpleNamespace

import jsonschema
import pytest

from policygen.app.doctor import examine_measuring, measuring_status
from policygen.gpu import machine, measuring_checks
from policygen.gpu.machine import ClockState
from policygen.installation import add
from policygen.model.machine import Doctor
from policygen.proof import toolchain
from tests.proof.test_toolchain import fake_nvcc
from tests.trees.places import empty_machine

# As nvidia-smi lists an H200, and another GPU.
H200 = "NVIDIA H200, GPU-5f3b, 9.0, 580.159.04"
B200 = "NVIDIA B200, GPU-77aa, 10.0, 580.159.04"
RELEASE = "Cuda compilation tools, release {0}, V{0}.78"


class NvmlError(Exception):
    """What the library raises."""


class Nvml:
    """The management library, with what is asked of it; what is not set is not supported."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
    nvmlClocksEventReasonSwThermalSlowdown = 4  # noqa: N815  the library's name

    def __init__(self, **told):
        self.told = {
            "MemoryInfo": SimpleNamespace(total=141 << 30, used=1 << 30),
            "ClockInfo": 345,
            "MaxClockInfo": 1980,
            "EnforcedPowerLimit": 700_000,
            "PowerManagementLimitConstraints": [200_000, 700_000],
            "CurrentClocksEventReasons": 0,
            "ComputeMode": 0,
            "Temperature": 31,
            "PersistenceMode": 1,
            "CurrentEccMode": [1, 1],
            "MigMode": [0, 0],
            "ComputeRunningProcesses": [],
        } | told

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802  the library's name
        if uuid not in {"GPU-5f3b", "GPU-77aa"}:
            raise NvmlError(uuid)
        return uuid

    def __getattr__(self, name):
        value = self.told.get(name.removeprefix("nvmlDeviceGet"))
        if value is None:
            raise AttributeError(name)

        def ask(*_):
            if isinstance(value, Exception):
                raise value
            return value

        return ask


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A machine that has nothing but Python."""
    found = empty_machine(tmp_path, monkeypatch)
    monkeypatch.setattr(toolchain, "INSTALLED", tmp_path / "usr/local/cuda/bin/nvcc")
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda _: str(found.site))
    monkeypatch.setattr(machine, "_VERSION_FILE", tmp_path / "proc/version")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/cat").symlink_to("/bin/cat")
    library(monkeypatch, None)
    return found


def library(monkeypatch, one):
    for module in (machine, measuring_checks):
        monkeypatch.setattr(module, "management_library", lambda: one)


def smi(places, text, status=0):
    path = places.base / "bin/nvidia-smi"
    where = ">&2" if status else ""
    path.write_text(f"#!/bin/sh\ncat {where} <<'END'\n{text}\nEND\nexit {status}\n")
    path.chmod(0o755)


def nvcc(places, release="13.2", archs="compute_90"):
    fake_nvcc(places.base / f"cuda-{release}/bin/nvcc", RELEASE.format(release), archs)
    return str(places.base / f"cuda-{release}")


def checks():
    document = examine_measuring()
    jsonschema.validate(
        document.model_dump(mode="json"), Doctor.model_json_schema(mode="serialization")
    )
    return {one.name: one for one in document.checks}, measuring_status(document)


def test_a_machine_without_anything_is_told_all_of_it(places, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    found, status = checks()
    assert status == 3
    assert {name: one.state for name, one in found.items()} == {
        "driver": "missing",
        "GPU": "missing",
        "nvcc": "missing",
        "compiles": "fine",
        "nvidia-ml-py": "optional",
        "cuda-bench": "optional",
        "cuda-bindings": "optional",
        "nvidia-curand": "optional",
    }
    assert (
        found["GPU"].found
        == "no GPU on this machine; policygen measure --compile-only works without a GPU"
    )
    assert found["driver"].remedy.startswith("NVIDIA's driver 580, or a newer one: https://")
    assert found["nvcc"].remedy == found["cuda-bench"].remedy == add("measure")


def test_a_gpu_is_told_with_its_clocks_and_limits(places, monkeypatch):
    smi(places, H200)
    monkeypatch.setenv("CUDA_HOME", nvcc(places))
    library(monkeypatch, Nvml())
    found, status = checks()
    assert status == 0
    assert found["driver"].found == "580.159.04; CUDA 13 needs 580 or newer"
    assert found["GPU 0"].found == (
        "NVIDIA H200, sm90, 141 GiB, 140 free, SM clock 345 of at most 1980 MHz, memory clock 345"
        " of at most 1980 MHz, power limit 700 of at most 700 W, 31 °C, persistence on, ECC on"
    )
    assert found["GPU 0 use"].found == "no other process is using it"
    assert found["nvcc"].found == "13.2.78, compiles for sm90 to sm90"
    assert "GPU 0 speed" not in found
    assert "GPU 0 MIG" not in found
    noise = found["noise of NVIDIA H200"].found
    assert noise.startswith("consecutive runs differ by 1.65% of 10 µs, 0.18% of 100 µs, 0.08%")


def test_what_disturbs_a_measurement_is_told(places, monkeypatch):
    smi(places, H200)
    monkeypatch.setenv("CUDA_HOME", nvcc(places))
    own, other = SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=4711)
    library(
        monkeypatch,
        Nvml(
            ComputeRunningProcesses=[other, own],
            CurrentClocksEventReasons=4,
            MigMode=[1, 1],
            ComputeMode=3,
        ),
    )
    found, status = checks()
    assert status == 0
    assert found["GPU 0 use"].found.startswith("1 other process is using it and disturbs")
    assert found["GPU 0 use"].found.endswith(": 4711")
    assert found["GPU 0 speed"].found == "throttled now: its temperature"
    assert found["GPU 0 MIG"].state == "optional"
    assert found["GPU 0"].found.endswith("exclusive-process mode")


def test_what_the_library_does_not_tell_is_not_known(places, monkeypatch):
    smi(places, H200)
    monkeypatch.setenv("CUDA_HOME", nvcc(places))
    none = dict.fromkeys(Nvml().told)
    library(monkeypatch, Nvml(**none | {"MaxClockInfo": 1980}))
    found, _ = checks()
    assert found["GPU 0"].found == (
        "NVIDIA H200, sm90, SM clock not known of at most 1980 MHz, memory clock not known of at"
        " most 1980 MHz, persistence not known, ECC not known"
    )
    assert found["GPU 0 use"].found.startswith("unknown: ")
    refused = {name: NvmlError("no permission") for name in none}
    library(monkeypatch, Nvml(**refused | {"ClockInfo": 300, "EnforcedPowerLimit": 650_000}))
    found, _ = checks()
    assert "SM clock 300 MHz" in found["GPU 0"].found
    assert "power limit 650 W" in found["GPU 0"].found
    library(monkeypatch, None)
    found, _ = checks()
    assert found["GPU 0"].found == "NVIDIA H200, sm90; its clocks and limits are unknown"
    assert "a kernel that counts cycles" in found["clocks"].found


def test_a_gpu_that_the_library_does_not_know_is_told_without_clocks(monkeypatch):
    library(monkeypatch, Nvml())
    assert machine.gpu_state("GPU-0000") is None
    assert machine.gpu_state("GPU-77aa").sm == ClockState(345, 1980)


def test_who_may_lock_clocks_is_told_and_nothing_is_tried(places, monkeypatch):
    smi(places, H200)
    library(monkeypatch, Nvml())
    found, _ = checks()
    assert found["clocks"].state == "optional"
    assert found["clocks"].found.startswith("only root may lock clocks")
    assert found["clocks"].found.endswith("are repeated")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found, _ = checks()
    assert found["clocks"].state == "fine"
    assert found["clocks"].found.endswith("policygen never does")


@pytest.mark.parametrize(
    ("driver", "release", "words"),
    [
        ("570.1", "13.2", "CUDA_HOME with its toolkit (its wheels have no nvcc), and the packages"),
        ("440.1", "13.2", "NVIDIA's driver 580"),
        ("470.1", "12.9", "NVIDIA's driver 525"),
    ],
)
def test_a_driver_that_is_too_old_is_told_with_what_fits(
    places, monkeypatch, driver, release, words
):
    smi(places, H200.replace("580.159.04", driver))
    monkeypatch.setenv("CUDA_HOME", nvcc(places, release))
    found, status = checks()
    assert status == 1
    assert found["driver"].state == "broken"
    assert found["driver"].found.startswith(
        f"{driver}; programs built by nvcc of CUDA {release[:2]} need"
    )
    assert words in found["driver"].remedy
    assert ("cuda-bindings==12.*" in found["driver"].remedy) is (driver == "570.1")


def test_a_driver_that_is_new_enough_for_its_toolkit_is_fine(places, monkeypatch):
    smi(places, H200.replace("580.159.04", "570.1"))
    monkeypatch.setenv("CUDA_HOME", nvcc(places, "12.9"))
    found, status = checks()
    assert (found["driver"].found, status) == ("570.1; CUDA 12 needs 525 or newer", 0)


def test_a_compiler_that_does_not_know_the_gpu_is_told(places, monkeypatch):
    smi(places, f"{H200}\n{B200}")
    monkeypatch.setenv("CUDA_HOME", nvcc(places))
    found, status = checks()
    assert status == 1
    assert found["nvcc"].found == "13.2.78 compiles for sm90 to sm90, but not for sm100"
    assert {"GPU 0", "GPU 1", "noise of NVIDIA B200"} <= found.keys()


def test_a_driver_without_a_gpu_that_answers_is_told(places):
    path = places.base / "proc/version"
    path.parent.mkdir()
    path.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Thu Aug 28\n")
    smi(places, "NVIDIA-SMI has failed because it\ncould not communicate", status=9)
    found, status = checks()
    assert status == 3
    assert found["driver"].found == "580.82.07; CUDA 13 needs 580 or newer"
    assert found["GPU"].found.startswith(
        "nvidia-smi does not respond: NVIDIA-SMI has failed because it; policygen measure"
    )
    smi(places, "", status=9)
    assert checks()[0]["GPU"].found.startswith("nvidia-smi does not respond; policygen measure")
