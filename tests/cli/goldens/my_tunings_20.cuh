// Made by policygen VERSION; make it again rather than edit it.
//
// Measured on Demo H200, CUDA 13.0.88, CCCL v3.6.0: sums.db
//
// Policy selectors for CUB's device algorithms on sm90. Give one to an algorithm in its environment, as the comment
// above each selector shows. What was not tuned, and every other architecture, gets what CUB selects by itself. A
// selector is found by the policy that it returns: an environment can have one for each kind of policy.
//
// A selector takes the template arguments of CUB's own selector, which it passes on for what was not tuned. Give it
// those of your call: its iterators, and what follows from a determinism that the environment requires.
//
// Needs CUB 3.6 and C++20.

#pragma once

#include <cub/version.cuh>

#if CUB_VERSION / 100 != 3006
#  error "These tuning policies are those of CUB 3.6: make the header again with policygen emit --cub TREE"
#endif

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#  error "This header needs C++20: compile with -std=c++20, or make it again with policygen emit --std 17"
#endif

#include <cub/device/device_reduce.cuh>
#include <cuda/std/type_traits>

namespace my_tunings
{
//! What cub.bench.reduce.sum found.
//!
//! @code
//! #include <my_tunings.cuh>
//!
//! cudaError_t tuned(const float* in, float* out, unsigned int num_items, cudaStream_t stream)
//! {
//!   using selector = my_tunings::reduce<
//!     float, unsigned int, ::cuda::std::plus<>, ::cuda::execution::determinism::__determinism_t::__run_to_run>;
//!
//!   const auto tuning = cuda::execution::tune(selector{});
//!   const auto env    = cuda::std::execution::env{cuda::stream_ref{stream}, tuning};
//!   return cub::DeviceReduce::Reduce(in, out, num_items, ::cuda::std::plus<>{}, float{}, env);
//! }
//! @endcode
template <
  typename AccumT, typename OffsetT, typename ReductionOpT, ::cuda::execution::determinism::__determinism_t Determinism>
struct reduce
{
  [[nodiscard]] _CCCL_HOST_DEVICE_API constexpr auto operator()(::cuda::compute_capability cc) const
    -> ::cub::ReducePolicy
  {
    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0})
    {
      // ipt_20.tpb_512.ipv_2 1.098198  1.098946  1.099677  1.100844
      if constexpr (::cuda::std::is_same_v<AccumT, float> && sizeof(OffsetT) == 4
                    && ::cuda::std::is_same_v<ReductionOpT, ::cuda::std::plus<>>
                    && Determinism == ::cuda::execution::determinism::__determinism_t::__run_to_run)
      {
        return {
          .multi_tile = {
            .threads_per_block = 512,
            .items_per_thread = 20,
            .vec_size = 4,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
          .single_tile = {
            .threads_per_block = 512,
            .items_per_thread = 20,
            .vec_size = 4,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
        };
      }
      // ipt_20.tpb_512.ipv_2 1.099270  1.100055  1.100729  1.101438
      if constexpr (::cuda::std::is_same_v<AccumT, ::cuda::std::int64_t> && sizeof(OffsetT) == 4
                    && ::cuda::std::is_same_v<ReductionOpT, ::cuda::std::plus<>>
                    && Determinism == ::cuda::execution::determinism::__determinism_t::__run_to_run)
      {
        return {
          .multi_tile = {
            .threads_per_block = 512,
            .items_per_thread = 10,
            .vec_size = 4,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
          .single_tile = {
            .threads_per_block = 512,
            .items_per_thread = 10,
            .vec_size = 4,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
        };
      }
#if _CCCL_HAS_INT128()
      // ipt_10.tpb_384.ipv_1 1.099247  1.097747  1.100528  1.102324
      if constexpr (::cuda::std::is_same_v<AccumT, __int128_t> && sizeof(OffsetT) == 4
                    && ::cuda::std::is_same_v<ReductionOpT, ::cuda::std::plus<>>
                    && Determinism == ::cuda::execution::determinism::__determinism_t::__run_to_run)
      {
        return {
          .multi_tile = {
            .threads_per_block = 384,
            .items_per_thread = 2,
            .vec_size = 2,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
          .single_tile = {
            .threads_per_block = 384,
            .items_per_thread = 2,
            .vec_size = 2,
            .reduce_algorithm = ::cub::BLOCK_REDUCE_WARP_REDUCTIONS,
            .load_modifier = ::cub::LOAD_DEFAULT,
          },
        };
      }
#endif // _CCCL_HAS_INT128()
    }
    return ::cub::detail::reduce::policy_selector_from_types<AccumT, OffsetT, ReductionOpT, Determinism>{}(cc);
  }
};
} // namespace my_tunings
