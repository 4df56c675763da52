"""A tree with benchmarks in it, as a checkout has them: what they can be tuned by, and no more."""

from policygen.bindings.load import bound
from policygen.model.trees import BoundVersion
from tests.probing import changed_tree

REDUCE = """\
#include <nvbench_helper.cuh>
// %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1
// %RANGE% TUNE_THREADS_PER_BLOCK tpb 128:1024:32
// %RANGE% TUNE_ITEMS_PER_VEC_LOAD_POW2 ipv 1:2:1
"""
_GENERATORS = """
#pragma once
#include <cub/util_macro.cuh>
#include <cuda/std/complex>
#include <cuda/std/type_traits>
#include <thrust/device_vector.h>
#include <map>
#include <nvbench/nvbench.cuh>
using int128_t = __int128_t;
NVBENCH_DECLARE_TYPE_STRINGS(int128_t, "I128", "int128_t");
NVBENCH_DECLARE_TYPE_STRINGS(::cuda::std::false_type, "false", "false_type");
NVBENCH_DECLARE_TYPE_STRINGS(::cuda::std::true_type, "true", "true_type");
enum class bit_entropy { _1_000, _0_544 };
bit_entropy str_to_entropy(std::string);
struct generated
{
  template <class T>
  operator thrust::device_vector<T>() const;
};
struct generator
{
  generated operator()(std::size_t, bit_entropy = bit_entropy::_1_000) const;
  template <class T>
  generated operator()(std::size_t, bit_entropy, T, T) const;
  struct
  {
    generated key_segments(std::size_t, std::size_t, std::size_t) const;
  } uniform;
  struct
  {
    generated segment_offsets(std::size_t, std::size_t) const;
  } power_law;
};
inline generator generate;
"""
HELPER = (
    _GENERATORS
    + """
#include <cuda/functional>
#include <cuda/memory_resource>
#include <cuda/std/execution>
#include <cuda/stream>
struct caching_allocator_t
{
  void* allocate(::cuda::stream_ref, std::size_t, std::size_t);
  void deallocate(::cuda::stream_ref, void*, std::size_t, std::size_t) noexcept;
  void* allocate_sync(std::size_t, std::size_t);
  void deallocate_sync(void*, std::size_t, std::size_t) noexcept;
  friend bool operator==(const caching_allocator_t&, const caching_allocator_t&);
  friend bool operator!=(const caching_allocator_t&, const caching_allocator_t&);
  friend constexpr void get_property(const caching_allocator_t&, cuda::mr::device_accessible)
  {}
};
template <class... More>
auto cub_bench_env(caching_allocator_t& alloc, nvbench::launch& launch, More... more)
{
  return cuda::std::execution::env{
    ::cuda::stream_ref{launch.get_stream().get_stream()},
    ::cuda::std::execution::prop{cuda::mr::get_memory_resource, ::cuda::mr::resource_ref<>{alloc}},
    more...};
}
"""
)
"""What CCCL's own header has, as far as a compiler asks; nothing is linked with it."""
EARLIER_HELPER = _GENERATORS
"""The same for a CUB that has no environments."""


def make_benchmarks(folder, version="3.6.0"):
    """A tree whose benchmarks have the parameters of their bindings: `TUNE_IPT` for `ipt`."""
    tree = changed_tree(folder, version, {})
    for algorithm in bound(BoundVersion(version)):
        for one in algorithm.benchmarks:
            lines = [
                f"// %RANGE% TUNE_{label.upper()} {label} {values}\n"
                for label, values in one.parameters.items()
            ]
            _, _, *folders, name = one.name.split(".")
            place = tree.joinpath("cub/benchmarks/bench", *folders, f"{name}.cu")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("".join(lines) or "\n")
    (tree / "cub/benchmarks/bench/reduce/sum.cu").write_text(REDUCE)
    return tree


def place_in(tree, name):
    """Where a benchmark stands: `mine/sum.cu`."""
    return tree / "cub/benchmarks/bench" / name
