"""A tree of rocPRIM's with one table by hand, which libclang compiles."""

from pathlib import Path

from tests.trees.debs import make_rocprim

MERGE = "rocprim/device/device_merge_config.hpp"
TYPES = """\
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#define ROCPRIM_ARCH_90a 910
struct double2
{
    double x, y;
};
namespace rocprim
{
struct half
{
    short bits;
};
struct bfloat16
{
    short bits;
};
struct empty_type
{};
using std::max;
template<unsigned int BlockSize, unsigned int ItemsPerThread, unsigned int SizeLimit = 1000>
struct kernel_config
{};
namespace detail
{
template<bool Holds, class Config>
struct select_type_case
{};
template<class... Cases>
struct first_of;
template<class Config, class... Cases>
struct first_of<select_type_case<true, Config>, Cases...>
{
    using type = Config;
};
template<class Config, class... Cases>
struct first_of<select_type_case<false, Config>, Cases...> : first_of<Cases...>
{};
template<class Config>
struct first_of<Config>
{
    using type = Config;
};
template<class... Cases>
using select_type = typename first_of<Cases...>::type;
template<class Config, class = void>
struct config_in
{
    using type = Config;
};
template<class Config>
struct config_in<Config, std::void_t<typename Config::type>>
{
    using type = typename Config::type;
};
template<unsigned int Arch, class Config>
struct select_arch_case
{};
template<unsigned int Target, class... Cases>
struct select_arch;
template<unsigned int Target, class Config, class... Cases>
struct select_arch<Target, select_arch_case<Target, Config>, Cases...> : config_in<Config>::type
{};
template<unsigned int Target, unsigned int Arch, class Config, class... Cases>
struct select_arch<Target, select_arch_case<Arch, Config>, Cases...>
    : select_arch<Target, Cases...>
{};
template<unsigned int Target, class Config>
struct select_arch<Target, Config> : config_in<Config>::type
{};
} // namespace detail
} // namespace rocprim
"""
HEAD = """\
#pragma once
#include "config_types.hpp"
namespace rocprim
{
template<unsigned int BlockSize, unsigned int ItemsPerThread>
using merge_config = kernel_config<BlockSize, ItemsPerThread>;
namespace detail
{
"""
TAIL = """
} // namespace detail
} // namespace rocprim
"""
PAIRS = """\
// Tuned by hand.
template<class Key, class Value>
struct merge_config_900
{
    using type = select_type<
        select_type_case<(sizeof(Key) == 4 && sizeof(Value) <= 4), merge_config<256, 10>>,
        select_type_case<sizeof(Key) == 3, merge_config<64, 1>>,
        merge_config<128, max(1u, 16u / unsigned(sizeof(Key)))>
    >;
};
"""
KEYS = """
template<class Key>
struct merge_config_900<Key, empty_type>
{
    using type = merge_config<256, 11>;
};
"""
OTHER = """
template<class Key, class Value>
struct merge_config_90a : merge_config<512, 2>
{};
"""
TABLE = """
template<unsigned int TargetArch, class Key, class Value>
struct default_merge_config
    : select_arch<
        TargetArch,
        select_arch_case<900, merge_config_900<Key, Value>>,
        select_arch_case<ROCPRIM_ARCH_90a, merge_config_90a<Key, Value>>,
        merge_config_900<Key, Value>
    >
{};
"""
ALONE = TABLE.replace(
    "        merge_config_900<Key, Value>\n", "        merge_config_90a<Key, Value>\n"
)
"""Where no other architecture has the config of gfx900."""


def header(*parts: str) -> str:
    """A header of configs."""
    return HEAD + "".join(parts or (PAIRS, KEYS, OTHER, ALONE)) + TAIL


def make_toy(root: Path, *parts: str) -> Path:
    """A tree with these configs of merges."""
    make_rocprim(root, "2.10.9")
    (root / "hip").mkdir()
    (root / "hip/hip_runtime.h").write_text("#pragma once\n")
    (root / "rocprim/functional.hpp").write_text("#pragma once\n")
    (root / "rocprim/device/config_types.hpp").write_text(TYPES)
    (root / "rocprim/device/detail/config/device_scan.hpp").unlink()
    (root / "rocprim/device/detail/config").rmdir()
    (root / "rocprim/device/device_scan_config.hpp").unlink()
    (root / MERGE).write_text(header(*parts))
    return root
