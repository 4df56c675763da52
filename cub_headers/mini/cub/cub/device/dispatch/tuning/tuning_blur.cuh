// Part of policygen's miniature tree. Two namespaces that hold families of the same names, block layout, guards, and
// every way of switching an entry off.

#pragma once

#include <cub/device/dispatch/tuning/common.cuh>
#include <cub/util_type.cuh>

CUB_NAMESPACE_BEGIN
namespace detail
{
namespace blur
{
enum class pixel_size
{
  _1,
  _4,
  _16,
  unknown
};

namespace rows
{
template <class PixelT, shade Shade, pixel_size PixelSize = classify_pixel_size<PixelT>()>
struct sm80_tuning;

template <class PixelT>
struct sm80_tuning<PixelT, shade::light, pixel_size::_1>
{
  static constexpr int threads                       = 256;
  static constexpr int items                         = 1 << 4;
  static constexpr bool reuse                        = true;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = detail::no_delay_constructor_t<1155>;
};

template <>
struct sm80_tuning<float, shade::light, pixel_size::_4>
{
  static constexpr int threads                       = 128;
  static constexpr int items                         = 12;
  static constexpr bool reuse                        = false;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_WARP_TRANSPOSE;
  using delay_constructor                            = fixed_delay_constructor_t<350, 450>;
};

#if _CCCL_HAS_INT128()
template <>
struct sm80_tuning<__int128_t, shade::light, pixel_size::_16>
{
  static constexpr int threads                       = 64;
  static constexpr int items                         = 4;
  static constexpr bool reuse                        = false;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = no_delay_constructor_t<700>;
};

template <>
struct sm80_tuning<__uint128_t, shade::light, pixel_size::_16>
    : sm80_tuning<__int128_t, shade::light, pixel_size::_16>
{};
#endif // _CCCL_HAS_INT128()

template <class PixelT, shade Shade, pixel_size PixelSize = classify_pixel_size<PixelT>()>
struct sm100_tuning;

// rows of single bytes
template <class PixelT>
struct sm100_tuning<PixelT, shade::light, pixel_size::_1>
{
  // ipt_20.tpb_384.ns_228.dcid_7.l2w_775.trp_1 1.125000  0.975000  1.110000  1.250000
  static constexpr int items                         = 20;
  static constexpr int threads                       = 384;
  static constexpr bool reuse                        = true;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_WARP_TRANSPOSE;
  using delay_constructor                            = exponential_backon_constructor_t<228, 775>;
};

template <class PixelT>
struct sm100_tuning<PixelT, shade::dark, pixel_size::_1>
{
  // ipt_9.tpb_320 (db 7)   1.0625   1.0

  // a blank line after the label, and only two of the four numbers
  static constexpr int items                         = 9;
  static constexpr int threads                       = 320;
  static constexpr bool reuse                        = true;
  static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
  using delay_constructor                            = no_delay_constructor_t<600>;
};

// todo: slower on large images, keep what sm80 had.
template <>
struct sm100_tuning<float, shade::light, pixel_size::_4> : sm80_tuning<float, shade::light, pixel_size::_4>
{
  // // ipt_14.tpb_512.ns_408.dcid_7.l2w_960.trp_0 1.031250  0.812500  1.015625  1.062500
  // static constexpr int items = 14;
};

// todo: slower on large images.
// Needs another search.
// template <class PixelT>
// struct sm100_tuning<PixelT, shade::light, pixel_size::_4>
// {
//   // ipt_17.tpb_256.ns_512.dcid_2.l2w_500.trp_0 1.015625  0.750000  1.000000  1.125000
//   static constexpr int items                         = 17;
//   static constexpr int threads                       = 256;
//   static constexpr bool reuse                        = true;
//   static constexpr BlockLoadAlgorithm load_algorithm = BLOCK_LOAD_DIRECT;
//   using delay_constructor                            = exponential_backoff_constructor_t<512, 500>;
// };

/* Replaced by the entry for single bytes.
template <>
struct sm100_tuning<bool, shade::dark, pixel_size::_1>
{
  static constexpr int items = 8;
}; */

#if 0
template <class PixelT>
struct sm100_tuning<PixelT, shade::dark, pixel_size::_4>
{
  static constexpr int items = 5;
};
#endif

// TODO: tune for 128 bits.
#if _CCCL_HAS_INT128()
// template <> struct sm100_tuning<__int128_t, shade::light, pixel_size::_16>
// : sm80_tuning<__int128_t, shade::light, pixel_size::_16> {}; template <> struct
// sm100_tuning<__uint128_t, shade::light, pixel_size::_16>;
#endif

template <class PixelT, shade Shade>
struct policy_hub
{
  template <CacheLoadModifier LoadModifier>
  struct DefaultPolicy
  {
    using BlurPolicyT = AgentBlurPolicy<128, 8, BLOCK_LOAD_DIRECT, LoadModifier, false>;
  };

  struct Policy500
      : DefaultPolicy<LOAD_LDG>
      , ChainedPolicy<500, Policy500, Policy500>
  {};

  template <typename Tuning>
  static auto select_agent_policy(int)
    -> AgentBlurPolicy<Tuning::threads,
                       Tuning::items,
                       Tuning::load_algorithm,
                       LOAD_DEFAULT,
                       Tuning::reuse,
                       typename Tuning::delay_constructor>;
  template <typename Tuning>
  static auto select_agent_policy(long) -> typename DefaultPolicy<LOAD_DEFAULT>::BlurPolicyT;

  struct Policy800 : ChainedPolicy<800, Policy800, Policy500>
  {
    using BlurPolicyT = decltype(select_agent_policy<sm80_tuning<PixelT, Shade>>(0));
  };

  struct Policy1000 : ChainedPolicy<1000, Policy1000, Policy800>
  {
    // Its own selection hides the hub's.
    template <typename Tuning>
    static auto select_agent_policy(int) -> AgentBlurPolicy<Tuning::threads, Tuning::items, Tuning::load_algorithm>;
    template <typename Tuning>
    static auto select_agent_policy(long) -> typename Policy800::BlurPolicyT;

    using BlurPolicyT = decltype(select_agent_policy<sm100_tuning<PixelT, Shade>>(0));
  };

  using MaxPolicy = Policy1000;
};
} // namespace rows

namespace columns
{
template <class PixelT, pixel_size>
struct sm80_tuning;

template <class PixelT>
struct sm80_tuning<PixelT, pixel_size::_1>
{
  static constexpr int threads = 96;
  static constexpr int items   = 10;
};
} // namespace columns
} // namespace blur
} // namespace detail
CUB_NAMESPACE_END
