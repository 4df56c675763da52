"""Units of workloads of one's own run against a CUDA runtime that is no GPU's."""

import json
from types import SimpleNamespace

import pytest

from policygen.app.own_workloads import read_workload, with_own
from policygen.bindings import load
from policygen.bindings.own_workloads import own_binding
from policygen.gpu.units import runs_of
from policygen.proof.probe import workloads
from tests.gpu import compiled
from tests.gpu.stub import OUT_OF_MEMORY, Arena
from tests.gpu.test_on_the_host import Called
from tests.own.written import EXAMPLE
from tests.tiers import without

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]
VERSION = "3.6.0"
FUNCTORS = """\
#pragma once
namespace mine
{
struct Pair
{
  float left;
  float right;
};
struct make_pair
{
  __host__ __device__ Pair operator()(long long index, unsigned long long random) const
  {
    return {static_cast<float>(index), static_cast<float>(random >> 40)};
  }
};
struct is_large
{
  __host__ __device__ bool operator()(const Pair& one) const
  {
    return one.right > 0.5f;
  }
  __host__ __device__ bool operator()(float one) const
  {
    return one > 0.5f;
  }
};
struct comes_first
{
  __host__ __device__ bool operator()(const Pair& one, const Pair& other) const
  {
    return one.right < other.right;
  }
};
struct both
{
  __host__ __device__ Pair operator()(const Pair& one, const Pair& other) const
  {
    return {one.left + other.left, one.right + other.right};
  }
};
struct twice
{
  template <class T>
  __host__ __device__ T operator()(const T& one) const
  {
    return one + one;
  }
};
struct same_left
{
  __host__ __device__ bool operator()(const Pair& one, const Pair& other) const
  {
    return one.left == other.left;
  }
};
} // namespace mine
"""
PAIRS = '[input]\nhow = "generator"\ngenerator = "mine::make_pair"\n'
SAME = '[result]\nsame = "mine::same_left"\n'
BOTH = 'operator = "mine::both"\n'
LARGE = 'operator = "mine::is_large"\n'
FIRST = 'operator = "mine::comes_first"\n'


def of(**types):
    return (
        f"types = {{ {', '.join(f'{axis} = {json.dumps(one)}' for axis, one in types.items())} }}\n"
    )


PAIR, VALUES = of(T="mine::Pair"), of(ValueT="mine::Pair")
FLOAT = of(T="float")
# What is said of an algorithm before its sizes, and behind them; else it is of floats.
SAID = {
    "DeviceReduce::Reduce": (BOTH + PAIR, PAIRS),
    "DeviceScan::ExclusiveScan": (BOTH + PAIR, PAIRS + SAME),
    "DeviceMergeSort::SortKeysCopy": (FIRST + PAIR, '[input]\nhow = "bytes"\n'),
    "DeviceMergeSort::SortPairsCopy": (FIRST + of(KeyT="mine::Pair", ValueT="mine::Pair"), PAIRS),
    "DeviceSelect::If": (LARGE + PAIR, PAIRS + SAME),
    "DeviceSelect::Flagged": (PAIR, '[input]\nhow = "constant"\n'),
    "DevicePartition::If": (LARGE + PAIR, PAIRS),
    "DeviceFind::FindIf": (LARGE + FLOAT, '[input]\nhow = "sorted"\n'),
    "DeviceReduce::ReduceByKey": (BOTH + VALUES, PAIRS),
    "DeviceScan::ExclusiveScanByKey": (BOTH + VALUES, PAIRS),
    "DeviceSelect::UniqueByKey": (VALUES, PAIRS),
    "DeviceSegmentedReduce::Reduce": (BOTH + PAIR, PAIRS),
    "DeviceSegmentedScan::ExclusiveSegmentedScan": (BOTH + PAIR, PAIRS),
    "DeviceTransform::Transform": (
        'operator = "mine::twice"\n' + FLOAT,
        "[result]\ntolerance = 1e-6\n",
    ),
    "DeviceRadixSort::SortKeys": (FLOAT, '[input]\nhow = "file"\nfile = "x.bin"\n'),
    "DeviceRadixSort::SortPairs": (of(KeyT="int", ValueT="mine::Pair"), ""),
    "DeviceHistogram::HistogramEven": (of(SampleT="float"), ""),
    "DeviceMerge::MergeKeys": (of(KeyT="float"), ""),
    "DeviceMemcpy::Batched": ("", ""),
}
SAMPLE = {"DeviceSelect::If"}
COUNTED = {"DeviceMemcpy::Batched"}
"""How many buffers there are is counted on a GPU: without one there are none, and it says so."""


def cases():
    names = sorted({call.algorithm for binding in load.bindings() for call in binding.own})
    return without(names, *(name for name in names if name not in SAMPLE))


def write(folder, algorithm):
    above, below = SAID.get(algorithm, (FLOAT, ""))
    (folder / "mine.cuh").write_text(FUNCTORS)
    (folder / "x.bin").write_bytes(bytes(range(256)) * 16)
    path = folder / "mine.toml"
    sizes = "".join(f"[[size]]\nelements = {count}\n" for count in (1000, 70_001))
    path.write_text(f'algorithm = "{algorithm}"\nheader = "mine.cuh"\n{above}{sizes}{below}')
    return path


@pytest.fixture(params=cases())
def case(request, tmp_path):
    cub = with_own(compiled.cub(VERSION), read_workload(write(tmp_path, request.param)))
    (workload,) = workloads(own_binding(cub.bindings).benchmark, cub.bindings)
    (run,) = runs_of(cub, workload)
    return SimpleNamespace(run=run, counted=request.param in COUNTED)


@pytest.mark.slow
def test_it_compiles_and_runs_within_its_buffers(case):
    small, large = (Called(case, point) for point in case.run.points)
    assert not small.skips
    grown = [name for name, size in small.bytes.items() if large.bytes[name] > size]
    assert grown
    if case.counted:
        with pytest.raises(AssertionError):
            small.fill(exact=False)
        return
    for called in (small, large):
        called.fill(exact=False)
        arena = Arena(None, 0, 0, 0)
        if called.call(arena) == OUT_OF_MEMORY:
            arena.base, arena.capacity = called.runtime.allocate(arena.needed), arena.needed
            assert not called.call(arena)
            called.runtime.release(int(arena.base))
        assert called.runtime.launches
        assert not called.runtime.harm
        called.close()


def test_every_algorithm_is_said():
    """What is not above is of numbers alone."""
    known = {call.algorithm for binding in load.bindings() for call in binding.own}
    assert {*SAID} <= known
    assert known >= SAMPLE
    assert (EXAMPLE / "particles.toml").exists()
