"""The real device's Python, against a CUDA runtime on which kernels do not run.

Buffers, copies, storage and errors are real; what kernels would compute and compare is not there,
so that all results are equal here.
"""

import pytest

from policygen.gpu import machine
from policygen.gpu.cuda_device import CudaDevice
from policygen.gpu.device import DeviceError, RuntimeCase, VariantFunction
from policygen.gpu.units import WorkloadRun
from tests.gpu import compiled
from tests.gpu.stub import stub

COPIED = ("3.6.0", "cub.bench.adjacent_difference.subtract_left", {"OffsetT": "I64"})
IN_PLACE = ("3.6.0", "cub.bench.select.flagged", {"T": "I128", "InPlace": "true"})
ELEMENTS = 1 << 16
BASE = "base"


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """The stub as a GPU of a machine without the driver's library."""
    monkeypatch.setattr(machine, "clocks", lambda _: None)
    made = CudaDevice(0, compiled.runner(), stub().path)
    stub().forget()
    return made


def _opened(asked: tuple[str, str, dict[str, str]]) -> tuple[RuntimeCase, VariantFunction]:
    version, benchmark, axes = asked
    (run,) = compiled.runs(version, benchmark, **axes)
    return _case(run, 0), _base(run)


def _case(run: WorkloadRun, at: int) -> RuntimeCase:
    units, binding = compiled.units(run), run.binding
    numbers = run.points[at].numbers
    return RuntimeCase(str(units.inputs), numbers, len(binding.buffers), len(binding.sizes))


def _base(run: WorkloadRun) -> VariantFunction:
    return VariantFunction(BASE, str(compiled.units(run).base), "policygen_run_0")


@pytest.mark.slow
def test_a_device_tells_what_it_is(device: CudaDevice) -> None:
    facts = device.facts()
    assert facts.name == "NVIDIA H200"
    assert facts.uuid == "GPU-61207374-7562-2c20-6e6f-204750552100"
    assert (facts.arch, facts.sms, facts.bus_width, facts.ecc) == ("sm90", 132, 6144, True)
    assert (facts.sm_clock, facts.memory_clock) == (1980, 3201)
    assert device.clocks().sm == 0  # the kernel that counts cycles does not run


@pytest.mark.slow
def test_a_workload_is_checked_and_timed_in_memory_that_is_given_back(device: CudaDevice) -> None:
    case, base = _opened(COPIED)
    assert device.open(case)  # the runner keeps what flushes the cache
    device.close()
    before = stub().allocated
    assert device.open(case)
    item = 4
    # Input, output, and what base makes of it.
    assert stub().allocated - before == 3 * item * ELEMENTS
    device.reference(base)
    assert device.check(base) is None
    assert device.sample(base) == 0.25e-3
    assert any("wait_for_host" in one.name for one in stub().launches)
    assert not stub().harm
    device.close()
    assert stub().allocated - before < 3 * item * ELEMENTS  # the runner keeps its storage


@pytest.mark.slow
def test_what_a_run_changes_is_made_anew_before_each(device: CudaDevice) -> None:
    case, base = _opened(IN_PLACE)
    assert device.open(case)
    device.reference(base)
    assert device.check(base) is None
    assert device.sample(base) == 0.25e-3
    assert not stub().harm
    device.close()


@pytest.mark.slow
def test_a_point_that_the_benchmark_skips_is_not_opened(device: CudaDevice) -> None:
    (run,) = compiled.runs("3.6.0", "cub.bench.histogram.even", SampleT="I8")
    at = next(n for n, one in enumerate(run.points) if one.values["Bins"] == "2048")
    assert not device.open(_case(run, at))
    assert device.open(_case(run, 0))
    device.close()


@pytest.mark.slow
def test_what_cannot_be_done_is_an_error_with_words(device: CudaDevice) -> None:
    case, base = _opened(COPIED)
    with pytest.raises(DeviceError, match="no runtime workload is open"):
        device.sample(base)
    with pytest.raises(DeviceError, match="the unit cannot be loaded"):
        device.open(RuntimeCase(f"{case.inputs}.gone", case.axes, case.buffers, case.sizes))
    with pytest.raises(DeviceError, match="cudaErrorInvalidValue: an error of the stub"):
        device.clear(1, 16)
    with pytest.raises(DeviceError):
        CudaDevice(7, compiled.runner(), stub().path).open(case)
    stub().forget()
