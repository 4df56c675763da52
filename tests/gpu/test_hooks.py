"""What units of kernels of one's own have beside functions, and when the real device calls it."""

import ctypes
import subprocess

import pytest

from policygen.gpu import cuda_device, machine
from policygen.gpu.cuda_device import CudaDevice
from policygen.gpu.device import MEMORY, DeviceError, Launch, RuntimeCase, VariantFunction
from tests.gpu import compiled
from tests.gpu.stub import HERE, stub

pytestmark = pytest.mark.nvcc
GCC = ("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")


class Unit:
    """The unit, and what was called of it."""

    def __init__(self, path):
        subprocess.run([*GCC, "-o", str(path), str(HERE / "hooks.c")], check=True)
        self.path, self._library = str(path), ctypes.CDLL(str(path))
        self._library.hooks_told.restype = ctypes.c_char_p

    def function(self, number):
        return VariantFunction(f"ipt_{number}", self.path, f"policygen_run_{number}")

    def told(self):
        """Since it was asked before."""
        found = self._library.hooks_told().decode().split()
        self._library.hooks_forget()
        return found


@pytest.fixture
def unit(tmp_path):
    return Unit(tmp_path / "unit.so")


@pytest.fixture
def device(unit, monkeypatch):
    monkeypatch.setattr(machine, "clocks", lambda _: None)
    made = CudaDevice(0, compiled.runner(), stub().path)
    stub().forget()
    made.open(RuntimeCase(unit.path, (64,), 2, 1))
    yield made
    made.close()
    stub().forget()


@pytest.mark.slow
def test_a_reference_says_what_is_right_and_base_is_compared_with_it(device, unit):
    device.reference(unit.function(0))
    assert unit.told() == ["reference", "before", "base", "after"]
    assert device.check(unit.function(1)) is None
    assert unit.told() == ["plain"]
    assert not stub().harm


def test_base_that_is_not_what_its_reference_computes_is_told(device, unit, monkeypatch):
    before = device._call_hook
    monkeypatch.setattr(device, "_call_hook", lambda one, what: None)
    with pytest.raises(DeviceError) as raised:
        device.reference(unit.function(2))
    assert raised.value.words == (
        "base differs from its reference: 64 elements of result 1 differ from base's, the first"
        " at 0"
    )
    assert unit.told() == ["other", "wrong"]
    monkeypatch.setattr(device, "_call_hook", before)


def test_memory_is_prepared_before_each_kind_of_run(device, unit):
    device.reference(unit.function(0))
    unit.told()
    assert device.sample(unit.function(0)) == 0.25e-3
    assert unit.told() == ["before", "base", "before", "base"]  # the first run warms both
    device.sample(unit.function(0))
    assert unit.told() == ["base", "base"]  # the first one warms


def test_what_takes_long_is_not_run_once_more_before_it_is_timed(device, unit, monkeypatch):
    base, plain = unit.function(0), unit.function(1)
    device.sample(base)
    monkeypatch.setattr(cuda_device, "LONG", 0.25e-3 / 2)  # each call takes 0.25 ms
    unit.told()
    assert [device.sample(base) for _ in range(3)] == [0.25e-3] * 3
    assert unit.told() == ["base"] * 4  # only before it was known
    device.sample(plain)
    assert unit.told() == ["plain", "plain"]  # the first run still makes its storage
    device.sample(plain)
    assert unit.told() == ["plain"]


def test_what_cannot_be_prepared_does_not_run(device, unit):
    with pytest.raises(DeviceError) as raised:
        device.sample(unit.function(2))
    assert raised.value.code == MEMORY
    assert unit.told() == []


def test_launches_are_told_of_those_that_know_them(device, unit):
    assert device.launch(unit.function(0)) == Launch(*range(64, 73))
    assert device.launch(unit.function(2)) is None
    with pytest.raises(DeviceError, match="an error of the stub"):
        device.launch(unit.function(1))


@pytest.mark.slow
def test_a_copy_takes_time_on_the_stub_too(device):
    before = stub().allocated
    assert device.bandwidth() == 2 * (16 << 25) / 0.25e-3
    assert stub().allocated == before
