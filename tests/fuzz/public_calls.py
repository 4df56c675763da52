"""Sixty public calls of CUB with types, operators and iterators that no benchmark has."""

# ruff: noqa: E501

import re

HEAD = """
struct three { int x, y, z; };
struct odd { unsigned char bytes[5]; };
struct plus { template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; } };
struct least { template <class T> __host__ __device__ T operator()(T a, T b) const { return a < b ? a : b; } };
struct sum3 { __host__ __device__ three operator()(three a, three b) const {
  return {a.x + b.x, a.y + b.y, a.z + b.z}; } };
struct less3 { __host__ __device__ bool operator()(three a, three b) const { return a.x < b.x; } };
struct first { __host__ __device__ bool operator()(three a) const { return a.x < 9; } };
struct minus { template <class T> __host__ __device__ T operator()(T a, T b) const { return a - b; } };
struct below { template <class T> __host__ __device__ bool operator()(T a) const { return a < T{9}; } };
struct less { template <class T> __host__ __device__ bool operator()(T a, T b) const { return a < b; } };
struct twice { template <class T> __host__ __device__ T operator()(T a) const { return a + a; } };
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
template <class T> T* p();
"""
BODY = "void call_{number}(void* temp, size_t& bytes, int n, u64 m) {{ cub::{call}; }}\n"
# Of each algorithm some calls, which are compiled together with the headers of these alone.
CALLS = {
    "all": [],
    "reduce": [
        "DeviceReduce::Sum(temp, bytes, p<u16>(), p<u16>(), n)",
        "DeviceReduce::Min(temp, bytes, p<u32>(), p<u32>(), m)",
        "DeviceReduce::Reduce(temp, bytes, p<three>(), p<three>(), n, sum3{}, three{})",
        "DeviceReduce::TransformReduce(temp, bytes, p<u8>(), p<u8>(), n, plus{}, twice{}, u8{})",
        "DeviceReduce::Sum(temp, bytes, p<u64>(), p<u64>(), n)",
        "DeviceReduce::Max(temp, bytes, p<float>(), p<float>(), m)",
    ],
    "segmented_reduce": [
        "DeviceSegmentedReduce::Sum(temp, bytes, p<u8>(), p<u8>(), n, p<int>(), p<int>())",
        "DeviceSegmentedReduce::Max(temp, bytes, p<double>(), p<double>(), n, p<int>(), p<int>())",
    ],
    "scan": [
        "DeviceScan::InclusiveSum(temp, bytes, p<u8>(), p<u8>(), n)",
        "DeviceScan::ExclusiveScan(temp, bytes, p<three>(), p<three>(), sum3{}, three{}, n)",
        "DeviceScan::InclusiveScan(temp, bytes, p<u32>(), p<u32>(), least{}, n)",
        "DeviceScan::ExclusiveSum(temp, bytes, p<u16>(), p<float>(), m)",
        "DeviceScan::InclusiveSum(temp, bytes, p<u64>(), p<u64>(), n)",
        "DeviceScan::InclusiveScan(temp, bytes, p<double>(), p<double>(), least{}, m)",
    ],
    "scan_by_key": [
        "DeviceScan::ExclusiveSumByKey(temp, bytes, p<u16>(), p<float>(), p<float>(), n)",
        "DeviceScan::InclusiveScanByKey(temp, bytes, p<u8>(), p<three>(), p<three>(), sum3{}, n)",
        "DeviceScan::InclusiveSumByKey(temp, bytes, p<u64>(), p<u8>(), p<u8>(), n)",
    ],
    "select": [
        "DeviceSelect::If(temp, bytes, p<u16>(), p<u16>(), p<int>(), n, below{})",
        "DeviceSelect::Flagged(temp, bytes, p<u32>(), p<char>(), p<u32>(), p<int>(), n)",
        "DeviceSelect::Flagged(temp, bytes, p<three>(), p<char>(), p<three>(), p<int>(), n)",
        "DeviceSelect::Unique(temp, bytes, p<u8>(), p<u8>(), p<int>(), n)",
    ],
    "unique_by_key": [
        "DeviceSelect::UniqueByKey(temp, bytes, p<u16>(), p<float>(), p<u16>(), p<float>(), p<int>(), n)",
        "DeviceSelect::UniqueByKey(temp, bytes, p<u8>(), p<u8>(), p<u8>(), p<u8>(), p<int>(), m)",
        "DeviceSelect::UniqueByKey(temp, bytes, p<u64>(), p<odd>(), p<u64>(), p<odd>(), p<int>(), n)",
    ],
    "partition": [
        "DevicePartition::If(temp, bytes, p<u16>(), p<u16>(), p<int>(), n, below{})",
        "DevicePartition::If(temp, bytes, p<three>(), p<three>(), p<int>(), n, first{})",
        "DevicePartition::Flagged(temp, bytes, p<u32>(), p<char>(), p<u32>(), p<int>(), n)",
    ],
    "three_way": [
        "DevicePartition::If(temp, bytes, p<u16>(), p<u16>(), p<u16>(), p<u16>(), p<int>(), n, below{}, below{})",
        "DevicePartition::If(temp, bytes, p<float>(), p<float>(), p<float>(), p<float>(), p<int>(), n, below{},"
        " below{})",
    ],
    "radix_sort": [
        "DeviceRadixSort::SortKeys(temp, bytes, p<u16>(), p<u16>(), n)",
        "DeviceRadixSort::SortKeysDescending(temp, bytes, p<u32>(), p<u32>(), m)",
        "DeviceRadixSort::SortPairs(temp, bytes, p<u8>(), p<u8>(), p<three>(), p<three>(), n)",
        "DeviceRadixSort::SortPairsDescending(temp, bytes, p<double>(), p<double>(), p<u8>(), p<u8>(), n)",
    ],
    "segmented_radix_sort": [
        "DeviceSegmentedRadixSort::SortKeys(temp, bytes, p<u16>(), p<u16>(), n, n, p<int>(), p<int>())",
        "DeviceSegmentedRadixSort::SortPairs(temp, bytes, p<u8>(), p<u8>(), p<u64>(), p<u64>(), n, n, p<int>(),"
        " p<int>())",
    ],
    "segmented_sort": [
        "DeviceSegmentedSort::SortKeys(temp, bytes, p<u16>(), p<u16>(), n, n, p<int>(), p<int>())",
        "DeviceSegmentedSort::SortPairs(temp, bytes, p<u8>(), p<u8>(), p<u16>(), p<u16>(), n, n, p<int>(), p<int>())",
    ],
    "merge_sort": [
        "DeviceMergeSort::SortKeys(temp, bytes, p<three>(), n, less3{})",
        "DeviceMergeSort::SortPairs(temp, bytes, p<u16>(), p<odd>(), n, less{})",
        "DeviceMergeSort::SortKeysCopy(temp, bytes, p<u64>(), p<u64>(), n, less{})",
        "DeviceMergeSort::StableSortKeys(temp, bytes, p<u8>(), n, less{})",
    ],
    "merge": [
        "DeviceMerge::MergeKeys(temp, bytes, p<u16>(), n, p<u16>(), n, p<u16>(), less{})",
        "DeviceMerge::MergePairs(temp, bytes, p<u8>(), p<three>(), n, p<u8>(), p<three>(), n, p<u8>(), p<three>(),"
        " less{})",
    ],
    "histogram": [
        "DeviceHistogram::HistogramEven(temp, bytes, p<u16>(), p<int>(), n, u16{0}, u16{9}, n)",
        "DeviceHistogram::HistogramRange(temp, bytes, p<float>(), p<int>(), n, p<float>(), n)",
        "DeviceHistogram::MultiHistogramEven<4, 3>(temp, bytes, p<u8>(), hist, levels, low, low, n)",
    ],
    "run_length_encode": [
        "DeviceRunLengthEncode::Encode(temp, bytes, p<u16>(), p<u16>(), p<int>(), p<int>(), n)",
        "DeviceRunLengthEncode::Encode(temp, bytes, p<u64>(), p<u64>(), p<u64>(), p<int>(), n)",
        "DeviceRunLengthEncode::NonTrivialRuns(temp, bytes, p<u32>(), p<int>(), p<int>(), p<int>(), n)",
    ],
    "reduce_by_key": [
        "DeviceReduce::ReduceByKey(temp, bytes, p<u16>(), p<u16>(), p<float>(), p<float>(), p<int>(), plus{}, n)",
        "DeviceReduce::ReduceByKey(temp, bytes, p<u8>(), p<u8>(), p<three>(), p<three>(), p<int>(), sum3{}, n)",
        "DeviceReduce::ReduceByKey(temp, bytes, p<u64>(), p<u64>(), p<u16>(), p<u16>(), p<int>(), least{}, n)",
    ],
    "adjacent_difference": [
        "DeviceAdjacentDifference::SubtractLeftCopy(temp, bytes, p<u16>(), p<u16>(), n, minus{})",
        "DeviceAdjacentDifference::SubtractRightCopy(temp, bytes, p<u8>(), p<u8>(), m, minus{})",
        "DeviceAdjacentDifference::SubtractRight(temp, bytes, p<double>(), n, minus{})",
    ],
    "transform": [
        "DeviceFor::ForEachN(p<u16>(), n, twice{})",
        "DeviceTransform::Transform(p<u16>(), p<u16>(), n, twice{})",
        "DeviceTransform::Transform(::cuda::std::make_tuple(p<u8>(), p<u8>()), p<u8>(), n, plus{})",
    ],
    "batched": [
        "DeviceMemcpy::Batched(temp, bytes, p<const void*>(), p<void*>(), p<u32>(), n)",
        "DeviceCopy::Batched(temp, bytes, p<u16*>(), p<u16*>(), p<u32>(), n)",
    ],
}
VALUES = "int* hist[3] = {}; int levels[3] = {}; int low[3] = {};"


def unit(name: str) -> str:
    """The source of an algorithm's calls."""
    body = BODY.replace("{{ ", "{{ " + VALUES.replace("{", "{{").replace("}", "}}") + " ", 1)
    calls = [body.format(number=n, call=call) for n, call in enumerate(CALLS[name])]
    classes = {re.match(r"\w+", call)[0] for call in CALLS[name]}
    headers = [f"device/{re.sub('(?<!^)(?=[A-Z])', '_', each).lower()}" for each in sorted(classes)]
    includes = (f"#include <cub/{header}.cuh>\n" for header in headers or ["cub"])
    return "".join([*includes, HEAD, *calls])
