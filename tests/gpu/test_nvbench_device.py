"""NVBench measures functions of units: with its Python package as it is called, and no GPU.

The runner and the units are objects of the C compiler that keep buffers in the host's memory; the
package is one with the same names, which runs each state a few times and writes samples as
NVBench does. What NVBench itself does is tried on a GPU.
"""

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from policygen.gpu.cuda_device import NvbenchDevice
from policygen.gpu.device import MEMORY, UNSUPPORTED, DeviceError, RuntimeCase, VariantFunction
from policygen.installation import add

RUNNER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char* base; size_t capacity, used, needed; } arena_t;
typedef int (*function_t)(void* const*, const long long*, arena_t*, void*);
static arena_t arena;
int policygen_open(int device) { return 0; }
int policygen_allocate(void** to, size_t bytes) { *to = malloc(bytes ? bytes : 1); return 0; }
int policygen_release(void* from) { free(from); return 0; }
int policygen_clear(void* to, size_t bytes) { memset(to, 90, bytes); return 0; }
int policygen_copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); return 0; }
int policygen_error(int code, char* text, size_t bytes)
{
  snprintf(text, bytes, "error %d", code);
  return 0;
}
int policygen_run(function_t function, void* const* buffers, const long long* sizes)
{
  int error = function(buffers, sizes, &arena, NULL);
  if (error == 2 && arena.needed > arena.capacity)
  {
    arena.base = malloc(arena.needed);
    arena.capacity = arena.needed;
    error = function(buffers, sizes, &arena, NULL);
  }
  return error;
}
int policygen_time(
  function_t function, void* const* buffers, const long long* sizes, int warm, int held, float* ms)
{
  // The time says whether it was held.
  *ms = held ? HELD : 2000;
  return function(buffers, sizes, &arena, NULL);
}
"""
UNIT = """
#include <stddef.h>
typedef struct { char* base; size_t capacity, used, needed; } arena_t;
int policygen_shape(const long long* axes, long long* sizes, long long* bytes)
{
  bytes[0] = bytes[1] = axes[0];
  sizes[0] = axes[0];
  return 0;
}
int policygen_roles(int* roles) { roles[0] = 1; roles[1] = ROLE; return 0; }
int policygen_fill(void* const* buffers, const long long* axes, long long* sizes, int checking)
{
  return 0;
}
int policygen_run_0(void* const* buffers, const long long* sizes, arena_t* arena, void* stream)
{
  arena->needed = 64;
  if (arena->capacity < 64) { return 2; }
  // One of its runs was given a stream.
  if (stream) { ++((char*) buffers[1])[0]; ((char*) buffers[1])[1] = *(char*) stream; }
  return 0;
}
int policygen_run_1(void* const* buffers, const long long* sizes, arena_t* arena, void* stream)
{
  arena->needed = arena->capacity < 1000 ? arena->capacity + 400 : 0;
  return arena->needed ? 2 : 0;
}
int policygen_run_2(void* const* buffers, const long long* sizes, arena_t* arena, void* stream)
{
  return stream ? CODE : 0;
}
int policygen_run_3(void* const* buffers, const long long* sizes, arena_t* arena, void* stream)
{
  return 2;
}
"""
COMPARED, MODIFIED = 2, 4
ILLEGAL = 700


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Makes objects of C sources."""
    folder = tmp_path_factory.mktemp("objects")

    def make(name, text, *options):
        source, made = folder / f"{name}.c", folder / f"{name}.so"
        source.write_text(text)
        subprocess.run(["gcc", "-shared", "-fPIC", *options, "-o", made, source], check=True)
        return made

    return make


@pytest.fixture(scope="module")
def runner(objects):
    return objects("runner", RUNNER, "-DHELD=1")


@pytest.fixture(scope="module")
def unit(objects):
    return objects("unit", UNIT, f"-DROLE={COMPARED}", "-DCODE=9")


STREAM = ctypes.create_string_buffer(b"s")


class Bench:
    """What `cuda.bench` has, as far as it is used; it runs each state so many times."""

    def __init__(self, samples=5):
        self.samples = samples
        self.argv = None
        self.ends = None
        """What running all ends with."""
        self.fails = None
        """What a state ends with."""
        self.states = []

    def register(self, function):
        self.function = function
        return self

    def add_int64_axis(self, name, values):
        self.axis = (name, values)
        return self

    def run_all_benchmarks(self, argv):
        self.argv = argv
        self.result = argv[argv.index("--jsonbin") + 1]
        name, values = self.axis
        for value in values:
            state = State(self, name, value)
            self.states.append(state)
            self.function(state)
        if self.ends:
            raise self.ends


class State:
    def __init__(self, bench, name, value):
        self.bench, self.axes, self.skipped = bench, {name: value}, None

    def get_int64(self, name):
        return self.axes[name]

    def skip(self, reason):
        self.skipped = reason

    def exec(self, function, /, *, batched, sync):
        assert not batched
        self.synchronizes = sync
        stream = SimpleNamespace(addressof=lambda: ctypes.addressof(STREAM))
        for _ in range(self.bench.samples or 1):
            function(SimpleNamespace(get_stream=lambda: stream))
        if self.bench.fails:
            raise self.bench.fails
        if not self.bench.samples:
            return
        folder = Path(f"{self.bench.result}-bin")
        folder.mkdir(exist_ok=True)
        number = len(list(folder.iterdir()))
        times = np.arange(self.bench.samples, 0, -1, dtype="<f4") / 8 + number
        times.tofile(folder / f"{number}.bin")


@pytest.fixture
def bench(monkeypatch):
    one = Bench()
    monkeypatch.setitem(sys.modules, "cuda.bench", one)
    return one


@pytest.fixture
def device(bench, runner, unit):
    one = NvbenchDevice(1, runner, None, ("--stopping-criterion", "entropy"))
    assert one.open(RuntimeCase(str(unit), (16,), 2, 1))
    return one


def functions(unit, *numbers):
    return [VariantFunction(f"v_{n}", str(unit), f"policygen_run_{n}") for n in numbers]


def measured(device, order):
    """What is told of each place."""
    found = {}

    def around(place, take):
        try:
            found[place] = list(take())
        except DeviceError as error:
            if error.sticky:
                raise
            found[place] = (error.code, error.words)

    device.nvbench(order, around)
    return found


def test_samples_are_those_of_nvbench_in_their_order(device, bench, unit):
    (one,) = functions(unit, 0)
    assert measured(device, [one, one]) == {
        0: [0.625, 0.5, 0.375, 0.25, 0.125],
        1: [1.625, 1.5, 1.375, 1.25, 1.125],
    }
    assert bench.argv == [
        *("policygen", "--quiet", "--jsonbin", bench.result, "-d", "1"),
        *("--stopping-criterion", "entropy"),
    ]
    # Both places ran five times, each with NVBench's stream.
    place = ctypes.string_at(device._opened.buffers[1], 2)
    assert (place[0] - 90, place[1]) == (10, ord("s"))


def test_a_call_that_waits_for_the_gpu_is_timed_without_being_held(bench, objects, unit):
    for held, seconds in ((1, 0.001), (-1, 2.0)):
        runner = objects(f"runner{held}", RUNNER, f"-DHELD={held}")
        device = NvbenchDevice(1, runner, None)
        assert device.open(RuntimeCase(str(unit), (16,), 2, 1))
        (variant,) = functions(unit, 0)
        assert device.sample(variant) == pytest.approx(seconds)
        assert len(measured(device, [variant])[0]) == 5
        assert bench.states[-1].synchronizes is (held < 0)


def test_storage_grows_until_it_is_enough_and_is_given_back(device, unit):
    growing = VariantFunction("v_1", str(unit), "policygen_run_1")
    assert device._storage.capacity == 0
    device._make_storage(device._function(growing))
    assert device._storage.capacity == 1200
    device.close()
    assert (device._storage.base, device._storage.capacity) == (None, 0)


def test_a_launch_that_is_refused_is_told_with_cudas_number(device, unit):
    refused, fine = functions(unit, 2, 0)
    found = measured(device, [refused, fine])
    assert found[0] == (9, "error 9")
    assert len(found[1]) == 5


def test_storage_that_is_never_enough_is_refused(device, unit):
    (one,) = functions(unit, 3)
    assert measured(device, [one])[0] == (MEMORY, "error 2")


def test_an_error_that_stays_ends_it_and_the_rest_is_skipped(bench, runner, objects):
    unit = objects("sticky", UNIT, f"-DROLE={COMPARED}", f"-DCODE={ILLEGAL}")
    device = NvbenchDevice(0, runner)
    device.open(RuntimeCase(str(unit), (16,), 2, 1))
    bench.fails = RuntimeError("Cuda API call returned error")
    # NVBench has an error of its own for what it finds at the end.
    bench.ends = RuntimeError("Cuda API call returned error")
    with pytest.raises(DeviceError) as error:
        measured(device, functions(unit, 2, 0))
    assert error.value.code == ILLEGAL
    assert bench.states[0].skipped == "NVBench failed: Cuda API call returned error"
    assert bench.states[1].skipped == "measured before it failed"


def test_what_nvbench_cannot_do_is_told(device, bench, unit):
    bench.fails = RuntimeError("no such thing")
    with pytest.raises(DeviceError, match="NVBench failed: no such thing") as error:
        measured(device, functions(unit, 0))
    assert (error.value.code, error.value.sticky) == (0, True)


def test_nvbench_that_does_not_begin_is_told(device, bench, unit):
    bench.ends = RuntimeError("no such option")
    bench.axis = None
    with pytest.raises(DeviceError, match="NVBench failed: no such option"):
        measured(device, [])


def test_without_samples_there_is_a_reason(device, bench, unit):
    bench.samples = 0
    code, words = measured(device, functions(unit, 0))[0]
    assert (code, words.split(":")[0]) == (UNSUPPORTED, "NVBench took no samples")


def test_nvbench_runs_once_in_a_process(device, unit):
    assert measured(device, functions(unit, 0))
    with pytest.raises(DeviceError, match="NVBench has run in this process already"):
        measured(device, functions(unit, 0))


def test_inputs_that_a_run_changes_are_refused(bench, runner, objects):
    unit = objects("modified", UNIT, f"-DROLE={MODIFIED}", "-DCODE=0")
    device = NvbenchDevice(0, runner)
    device.open(RuntimeCase(str(unit), (16,), 2, 1))
    with pytest.raises(DeviceError, match="a run changes its inputs") as error:
        measured(device, functions(unit, 0))
    assert not error.value.sticky
    device.close()


def test_a_package_that_is_missing_is_told_with_the_command_that_installs_it(monkeypatch, runner):
    monkeypatch.setitem(sys.modules, "cuda.bench", None)
    with pytest.raises(DeviceError) as error:
        NvbenchDevice(0, runner)
    assert error.value.words.startswith("cuda.bench cannot be loaded: ")
    assert error.value.words.endswith(f"Install it: {add('measure')}")
