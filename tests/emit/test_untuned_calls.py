"""Calls that were not tuned: with an emitted header they are compiled to what they are without."""

import re
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion
from policygen.proof.kernel_code import read_cubin
from tests.emit.made import FILE, every_result, make
from tests.probing import root
from tests.toolchain import nvcc

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
VERSION = "3.6.0"
PRELUDE = """
#include <cub/cub.cuh>
#include <cub/device/device_segmented_scan.cuh>
#include <cuda/iterator>
#include <cuda_fp16.h>
#ifdef TUNED
#  include <my_tunings.cuh>
#  define TUNE(...) , cuda::execution::tune(my_tunings::__VA_ARGS__{})
#else
#  define TUNE(...)
#endif
struct triple
{
  int a, b, c;
  __host__ __device__ bool operator==(const triple& other) const { return a == other.a; }
};
struct own
{
  template <class T, class U>
  __host__ __device__ T operator()(T a, U) const { return a; }
};
struct lower
{
  __host__ __device__ bool operator()(triple x, triple y) const { return x.a < y.a; }
};
struct every
{
  template <class T>
  __host__ __device__ bool operator()(const T&) const { return true; }
};
struct same
{
  template <class T>
  __host__ __device__ T operator()(T value) const { return value; }
};
template <class T>
using fancy = cuda::transform_iterator<same, const T*>;
template <class T>
const T* in = nullptr;
template <class T>
T* out = nullptr;
template <class T>
fancy<T> odd{nullptr, same{}};
using cuda::std::plus;
using cub::NullType, cub::SelectImpl;
using mode            = cuda::execution::determinism::__determinism_t;
using wide            = unsigned long long;
using i64             = cuda::std::int64_t;
const auto stable     = cuda::execution::require(cuda::execution::determinism::run_to_run);
const auto exact      = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
const auto loose      = cuda::execution::require(cuda::execution::determinism::not_guaranteed);
"""
CALLS = Path(__file__).with_name("untuned_calls.txt").read_text(encoding="utf-8")
"""The selector with the arguments that CUB derives itself, and below it the call."""
AHEAD = re.compile(r"lookahead$|warpspeed$")
TUNED_ON = {"sm90": "sm_90", "sm100": "sm_100"}
NAMES = sorted({line.partition("<")[0] for line in CALLS.splitlines()[::2]})


def calls(name):
    """The calls of a selector, each with what its environment requires."""
    lines = CALLS.splitlines()
    for selector, call in zip(lines[::2], lines[1::2], strict=True):
        if selector.partition("<")[0] == name:
            required = re.search(r", (stable|exact|loose)\)$", call)
            text = call[: required.start()] if required else call.removesuffix(")")
            yield selector, text.strip(), f", {required[1]}" if required else ""


def unit(called):
    """A function for each call; what it launches is compiled with it."""
    functions = (
        f"cudaError_t call_{number}(cudaStream_t s) {{ return cub::{call},"
        f" cuda::std::execution::env{{cuda::stream_ref{{s}}{required} TUNE({selector})}}); }}"
        for number, (selector, call, required) in enumerate(called)
    )
    return "\n".join([PRELUDE, *functions, ""])


def kernels(folder, called, arch, *options):
    """How often each kernel stands there: its code, its launch bound, what it needs."""
    source = folder / f"{'_'.join(['unit', *options])}.cu"
    source.write_text(unit(called))
    command = [nvcc(), "-cubin", "-std=c++20", f"-arch={arch}", "-w", *options, "-o"]
    command += [source.with_suffix(".cubin"), f"-I{folder}", f"-I{root(VERSION)}", source]
    done = subprocess.run(command, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:4000]
    found = read_cubin(source.with_suffix(".cubin").read_bytes(), source.name)
    return Counter(
        (one.code, one.max_threads, *sorted(one.resources.items())) for one in found.values()
    )


def assert_as_without(folder, name, arch, called, wanted):
    """With a header that tunes plain calls, these are compiled as they are without."""
    made = make(VERSION, every_result(VERSION, arch, wanted), 20, arch)
    assert name in {one.name for one in made.selectors}
    (folder / FILE).write_text(made.text)
    with ThreadPoolExecutor() as pool:
        plain, tuned = pool.map(
            lambda options: kernels(folder, called, TUNED_ON[arch], *options), [(), ("-DTUNED",)]
        )
    assert plain == tuned


@pytest.mark.slow
def test_a_scan_over_an_iterator_and_one_in_order_get_what_cub_selects(tmp_path):
    """A lookahead policy does not compile for an iterator; in order, a scan has other threads."""
    called = list(calls("scan"))[:2]
    only = "cub.bench.scan.exclusive.sum".__eq__
    assert_as_without(tmp_path, "scan", "sm100", called, only)


def test_each_selector_with_arguments_has_calls_that_were_not_tuned():
    selectors = {
        selector.name
        for algorithm in bound(BoundVersion(VERSION))
        for selector in algorithm.selectors
    }
    assert selectors - {"batched_copy"} == {*NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("arch", TUNED_ON)
@pytest.mark.parametrize("name", NAMES)
def test_calls_that_were_not_tuned_get_what_cub_selects(name, arch, tmp_path):
    serving = {
        benchmark.name
        for algorithm in bound(BoundVersion(VERSION))
        for selector in algorithm.selectors
        for benchmark in algorithm.benchmarks
        if selector.name == name and selector.site == benchmark.site
    }
    # Two benchmarks of one call want different values: on sm100 those that look ahead are tuned.
    ahead = {benchmark for benchmark in serving if AHEAD.search(benchmark)}
    wanted = ahead if ahead and arch == "sm100" else serving - ahead
    assert_as_without(tmp_path, name, arch, list(calls(name)), wanted.__contains__)
