"""A tree of rocPRIM's of a few entries, which libclang compiles."""

from pathlib import Path

from tests.trees.debs import CONFIGS, make_rocprim

COMMON = """\
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
namespace rocprim
{
struct half
{
    short bits;
};
struct empty_type
{};
template<class T>
struct is_floating_point : std::is_floating_point<T>
{};
template<>
struct is_floating_point<half> : std::true_type
{};
namespace detail
{
enum class target_arch : unsigned int
{
"""
"""What is the same in both forms, up to the architectures."""
TYPES = (
    COMMON
    + """\
    gfx906 = 906,
    gfx942 = 942,
    unknown = std::numeric_limits<unsigned int>::max(),
};
} // namespace detail
} // namespace rocprim
"""
)
HELPER = """\
#pragma once
#include "../config_types.hpp"
namespace rocprim
{
enum class block_reduce_algorithm
{
    using_warp_reduce,
    raking_reduce,
    raking_reduce_commutative_only,
};
template<unsigned int           BlockSize,
         unsigned int           ItemsPerThread,
         block_reduce_algorithm BlockReduceMethod = block_reduce_algorithm::using_warp_reduce>
struct reduce_config
{};
} // namespace rocprim
"""
HEAD = """\
#pragma once
#include "../device_config_helper.hpp"
namespace rocprim
{
namespace detail
{
template<unsigned int arch, class key_type, class enable = void>
struct default_reduce_config : reduce_config<256, 4>
{};
"""
TAIL = """
} // namespace detail
} // namespace rocprim
"""
REDUCE = f"{CONFIGS}/device_reduce.hpp"


def config(arch: str, condition: str, values: str) -> str:
    """An entry for types that a condition names."""
    return f"""
template<class key_type>
struct default_reduce_config<
    static_cast<unsigned int>(target_arch::{arch}),
    key_type,
    std::enable_if_t<({condition})>>
    : reduce_config<{values}>
{{}};
"""


def full(arch: str, name: str, values: str) -> str:
    """An entry for a type by its name."""
    return f"""
template<>
struct default_reduce_config<static_cast<unsigned int>(target_arch::{arch}), {name}>
    : reduce_config<{values}>
{{}};
"""


FLOATS = "bool(rocprim::is_floating_point<key_type>::value)"
WORDS = f"(!{FLOATS}) && (sizeof(key_type) <= 4) && (sizeof(key_type) > 2)"
SMALL = f"(!{FLOATS}) && (sizeof(key_type) <= 2)"
ENTRIES = (
    config("gfx942", WORDS, "256, 8, block_reduce_algorithm::using_warp_reduce"),
    config("gfx942", SMALL, "128, 16"),
    full("gfx906", "double", "64, 2"),
    config("gfx906", f"{FLOATS} && (sizeof(key_type) <= 4)", "512, 4"),
)


def header(*entries: str) -> str:
    """A header of configs."""
    return HEAD + "".join(entries) + TAIL


def write(root: Path, *entries: str) -> None:
    """Has the header hold these entries."""
    (root / REDUCE).write_text(header(*entries))


def make_toy(root: Path, *entries: str) -> Path:
    """A tree with these entries for reductions, else with a few sound ones."""
    make_rocprim(root)
    (root / "hip").mkdir()
    (root / "hip/hip_runtime.h").write_text("#pragma once\n")
    (root / "rocprim/device/config_types.hpp").write_text(TYPES)
    (root / "rocprim/device/detail/device_config_helper.hpp").write_text(HELPER)
    (root / f"{CONFIGS}/device_scan.hpp").unlink()
    write(root, *(entries or ENTRIES))
    return root
