// Part of policygen's miniature tree. Primaries with defaults, one-line layout, values that depend on parameters, and
// policies that read a family through an alias or a base class.

#pragma once

CUB_NAMESPACE_BEGIN
namespace detail::sift
{
// the default
template <size_t KeySize, size_t ValueSize>
struct sm90_small_key_tuning
{
  static constexpr int threads = 384;
  static constexpr int items   = 23;
};

// clang-format off

// keys
template <> struct sm90_small_key_tuning<1,  0> { static constexpr int threads = 512; static constexpr int items = 19; };
template <> struct sm90_small_key_tuning<2,  0> { static constexpr int threads = 512; static constexpr int items = 19; };

// pairs
template <> struct sm90_small_key_tuning<1, 16> { static constexpr int threads = 448; static constexpr int items = 16; };
// clang-format on

template <typename ValueT, size_t KeySize, size_t ValueSize>
struct sm100_small_key_tuning : sm90_small_key_tuning<KeySize, ValueSize>
{};

// clang-format off

// same as previous tuning
template <typename ValueT> struct sm100_small_key_tuning<ValueT, 1,  0> : sm90_small_key_tuning<1, 0> {};

// ipt_20.tpb_512 1.031250  0.968750  1.015625  1.046875
// todo: hardly a gain, needs more runs.
template <typename ValueT> struct sm100_small_key_tuning<ValueT, 2,  0> { static constexpr int threads = 512; static constexpr int items = 20; };

// todo: regresses.
// template <typename ValueT> struct sm100_small_key_tuning<ValueT, 4,  0> { static constexpr int threads = 288; static constexpr int items = 16; };
// clang-format on

template <class KeyT, int Threads, int Items>
struct sm75_tuning_vals
{
  static constexpr int threads       = Threads;
  static constexpr int items         = Items;
  static constexpr bool large_values = sizeof(KeyT) > 128;
};

template <class KeyT>
struct sm75_tuning
{
  static constexpr int threads       = 512; // per block
  static constexpr int nominal_items = 4;
  static constexpr int items         = max_of(1, nominal_items * 4 / static_cast<int>(sizeof(KeyT)));
};

template <class KeyT, class ValueT>
struct policy_hub
{
  struct Policy500 : ChainedPolicy<500, Policy500, Policy500>
  {
    using SiftPolicy = AgentSiftPolicy<128, 8>;
  };

  struct Policy750 : ChainedPolicy<750, Policy750, Policy500>
  {
    using tuning     = sm75_tuning<KeyT>;
    using SiftPolicy = AgentSiftPolicy<tuning::threads, tuning::items>;
  };

  template <typename SmallKeyTuning>
  struct SmallKeyTunedPolicy
  {
    using SiftPolicy = AgentSiftPolicy<SmallKeyTuning::threads, SmallKeyTuning::items>;
  };

  struct Policy900
      : ChainedPolicy<900, Policy900, Policy750>
      , SmallKeyTunedPolicy<sm90_small_key_tuning<sizeof(KeyT), sizeof(ValueT)>>
  {};

  struct Policy1000
      : ChainedPolicy<1000, Policy1000, Policy900>
      , SmallKeyTunedPolicy<sm100_small_key_tuning<ValueT, sizeof(KeyT), sizeof(ValueT)>>
  {};

  using MaxPolicy = Policy1000;
};
} // namespace detail::sift
CUB_NAMESPACE_END
