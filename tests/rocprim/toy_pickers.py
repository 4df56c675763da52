"""A tree of rocPRIM's newest form, of a few targets: pickers, which libclang evaluates."""

from pathlib import Path

from tests.rocprim.toy import COMMON
from tests.trees.debs import CONFIGS, make_rocprim

TYPES = (
    COMMON
    + """\
    invalid = 0,
    gfx906  = 906,
    gfx908  = 908,
    gfx942  = 942,
    gfx1100 = 1100,
    gfx1101 = 1101,
    unknown = std::numeric_limits<unsigned int>::max(),
};
enum class gen { unknown, gcn5, cdna1, cdna3, rdna3 };
enum class gpu { generic, mi50, mi100, mi300x, mi308x, rx7900 };
enum class rep { amdgcn };
template<gen g_, target_arch i_ = target_arch::unknown, gpu s_ = gpu::generic, rep r_ = rep::amdgcn>
struct comp_target
{
    static constexpr gen         g = g_;
    static constexpr target_arch i = i_;
    static constexpr gpu         s = s_;
    static constexpr rep         r = r_;
};
constexpr gen generation_of(target_arch arch)
{
    return arch == target_arch::gfx906   ? gen::gcn5
           : arch == target_arch::gfx908 ? gen::cdna1
           : arch == target_arch::gfx942 ? gen::cdna3
           : arch == target_arch::gfx1100 || arch == target_arch::gfx1101 ? gen::rdna3
                                                                         : gen::unknown;
}
struct target
{
    gen         g;
    target_arch i;
    gpu         s;
    rep         r = rep::amdgcn;
    constexpr target(target_arch arch, gpu device = gpu::generic)
        : g(generation_of(arch)), i(arch), s(device)
    {}
};
template<class... Targets>
struct comp_targets
{};
// How near one is: of the GPU, of the architecture, of the generation, or of none.
template<class Known>
constexpr int nearness(target device)
{
    if(Known::s == device.s && Known::s != gpu::generic)
        return 3;
    if(Known::i == target_arch::unknown)
        return 0;
    return Known::i == device.i ? 2 : Known::g == device.g ? 1 : -1;
}
template<class... Targets>
constexpr target nearest(comp_targets<Targets...>, target device)
{
    target found{target_arch::unknown};
    int    best = -1;
    // The last one of those that are as near.
    ((nearness<Targets>(device) >= best
          ? (best = nearness<Targets>(device),
             found.g = Targets::g, found.i = Targets::i, found.s = Targets::s, 0)
          : 0),
     ...);
    return found;
}
template<class Targets>
constexpr target most_common_config(target device)
{
    return nearest(Targets{}, device);
}
struct kernel_config_params
{
    unsigned int block_size       = 64;
    unsigned int items_per_thread = 1;
    unsigned int size_limit       = 4096;
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
namespace detail
{
struct reduce_config_params
{
    kernel_config_params   kernel_config;
    block_reduce_algorithm block_reduce_method = block_reduce_algorithm::using_warp_reduce;
};
template<class T>
constexpr reduce_config_params reduce_config_params_base()
{
    return reduce_config_params{
        {256, sizeof(T) > 8 ? 2u : 4u}
    };
}
} // namespace detail
} // namespace rocprim
"""
HEAD = """\
#pragma once
#include "../device_config_helper.hpp"
namespace rocprim
{
namespace detail
{
"""
TAIL = """
} // namespace detail
} // namespace rocprim
"""
REDUCE = f"{CONFIGS}/device_reduce.hpp"
FLOATS = "bool(rocprim::is_floating_point<key_type>::value)"
WORDS = f"(!{FLOATS} && (sizeof(key_type) <= 4) && (sizeof(key_type) > 2))"
SMALL = f"(!{FLOATS} && (sizeof(key_type) <= 2))"
REAL = f"({FLOATS} && (sizeof(key_type) <= 8) && (sizeof(key_type) > 4))"
OTHER = """\
    // What no condition above takes
    return reduce_config_params_base<key_type>();
"""
COMP = "comp_target<gen::{}, target_arch::{}, gpu::{}, rep::amdgcn>"
GENS = {"gfx906": "gcn5", "gfx908": "cdna1", "gfx942": "cdna3", "gfx1100": "rdna3"}
UNKNOWN = COMP.format("unknown", "unknown", "generic")


def branch(condition: str, values: str, comment: str = "") -> str:
    """A return for types that a condition names."""
    lines = values.replace(" | ", ",\n            ")
    return f"""\
{f"    // CONFIG: {{{comment}}}" if comment else "    // what was found"}
    if constexpr({condition})
    {{
        return reduce_config_params{{
            {lines}
        }};
    }}
"""


def picker(arch: str, gpu: str, *branches: str, other: str = OTHER) -> str:
    """The picker of a target."""
    gen = GENS[arch]
    target = COMP.format(gen, arch, gpu)
    gap = " " if len(target) <= 67 else "\n" + " " * 23
    return f"""\
// TARGET: {{'gen': '{gen}', 'arch': '{arch}', 'gpu': '{gpu}', 'rep': 'amdgcn'}}
template<class Target, class key_type>
constexpr auto reduce_config_picker()
    -> std::enable_if_t<
        std::is_same_v<Target,{gap}{target}>,
        reduce_config_params>
{{
{"".join(branches)}{other}}}

"""


def other_target(arch: str, gpu: str) -> str:
    """What another target has."""
    target = COMP.format(GENS[arch], arch, gpu)
    return f"    return reduce_config_picker<\n        {target},\n        Args...>();\n"


def targets(*known: tuple[str, str]) -> str:
    """The list of targets; what no target is for is the last."""
    found = [COMP.format(GENS[arch], arch, gpu) for arch, gpu in known]
    listed = ",\n                   ".join([*found, UNKNOWN])
    return f"using reduce_targets\n    = comp_targets<{listed}>;\n"


UNKNOWN_PICKER = f"""\
// TARGET: {{'gen': 'unknown', 'arch': 'unknown', 'gpu': 'generic', 'rep': 'amdgcn'}}
template<class Target, class... Args>
constexpr auto reduce_config_picker()
    -> std::enable_if_t<
        std::is_same_v<Target,
                       {UNKNOWN}>,
        reduce_config_params>
{{
{other_target("gfx908", "mi100")}}}

"""
METHOD = "::rocprim::block_reduce_algorithm::using_warp_reduce"
MI300X = (
    branch(REAL, f"{{256, 8}} | {METHOD}", "'key_type': 'double', 'block_size_x': 256, 'ipt': 8"),
    branch(WORDS, f"{{128, 4}} | {METHOD}", "'key_type': 'int', 'block_size_x': 128, 'ipt': 4"),
)
MI100 = (
    branch(WORDS, "{256, 16}", "'key_type': 'int', 'ipt': 256, 'block_size_x': 16"),
    branch(SMALL, "{64, 2}"),
)
RX7900 = (branch(SMALL, f"{{512, 2, 1024}} | {METHOD}", "'key_type': 'short', 'ipt': 512"),)
KNOWN = (("gfx942", "mi300x"), ("gfx908", "mi100"), ("gfx1100", "rx7900"))
PICKERS = (
    picker("gfx942", "mi300x", *MI300X),
    picker("gfx908", "mi100", *MI100),
    picker("gfx1100", "rx7900", *RX7900),
)


def header(*pickers: str, known: tuple[tuple[str, str], ...] = KNOWN) -> str:
    """A header of pickers."""
    return HEAD + "".join(pickers or PICKERS) + UNKNOWN_PICKER + targets(*known) + TAIL


def make_toy(root: Path, text: str = "") -> Path:
    """A tree with these pickers for reductions, else with a few sound ones."""
    make_rocprim(root)
    (root / "hip").mkdir()
    (root / "hip/hip_runtime.h").write_text("#pragma once\n")
    (root / "rocprim/device/config_types.hpp").write_text(TYPES)
    (root / "rocprim/device/detail/device_config_helper.hpp").write_text(HELPER)
    (root / f"{CONFIGS}/device_scan.hpp").unlink()
    (root / REDUCE).write_text(text or header())
    return root
