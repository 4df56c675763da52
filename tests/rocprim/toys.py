"""Headers of a few lines, in each form in which rocPRIM writes its configs."""

from policygen.headers.scan import read_header

TYPES = b"""namespace rocprim {
enum class blend_method { fast, exact };
template<unsigned int BlockSize, unsigned int ItemsPerThread> struct kernel_config {};
template<unsigned int BlockSize,
         unsigned int ItemsPerThread,
         blend_method Method = blend_method::fast,
         class Inner = kernel_config<1, 1>>
struct blend_config {};
struct kernel_config_params { unsigned int block_size; unsigned int items_per_thread; };
struct blend_config_params { kernel_config_params kernel_config; blend_method method; };
}
"""

GENERATED = """\
BEGIN_ROCPRIM_NAMESPACE
namespace detail
{
template<unsigned int arch, class key_type, class enable = void>
struct default_blend_config : default_blend_config_base<key_type>
{};

// Based on key_type = double
template<class key_type>
struct default_blend_config<
    static_cast<unsigned int>(target_arch::gfx942),
    key_type,
    std::enable_if_t<(bool(rocprim::is_floating_point<key_type>::value) && (sizeof(key_type) <= 8)
                      && (sizeof(key_type) > 4))>>
    : blend_config<256, 8, ::rocprim::blend_method::exact, kernel_config<64, 2>>
{};

#if BLEND_BYTES
// Based on key_type = int8_t
// todo: search again
template<class key_type>
struct default_blend_config<static_cast<unsigned int>(target_arch::gfx942),
                            key_type,
                            std::enable_if_t<(!bool(rocprim::is_floating_point<key_type>::value)
                                              && (sizeof(key_type) <= 1))>>
    : blend_config<128, 16>
{};
#endif

#if 0
template<class key_type>
struct default_blend_config<static_cast<unsigned int>(target_arch::gfx90a),
                            key_type,
                            std::enable_if_t<(sizeof(key_type) <= 1)>>
    : blend_config<64, 1>
{};
#endif
}
END_ROCPRIM_NAMESPACE
"""

BY_HAND = """\
BEGIN_ROCPRIM_NAMESPACE
namespace detail
{
template<class Key, class Value>
struct blend_config_900
{
    using type = blend_config<256, max(1u, 10u / sizeof(Key))>;
};

// TODO: tune
template<class Key>
struct blend_config_900<Key, empty_type>
{
    using type = select_type<
        select_type_case<sizeof(Key) <= 2, blend_config<256, 11> >,
        select_type_case<(sizeof(Key) <= 4 && sizeof(Key) > 2), blend_config<256, 10> >,
        blend_config<64, 1>
    >;
};

template<class Key, class Value>
struct blend_config_90a : blend_config<512, 2> {};

template<unsigned int TargetArch, class Key, class Value>
struct default_blend_config
    : select_arch<
        TargetArch,
        select_arch_case<900, blend_config_900<Key, Value> >,
        select_arch_case<ROCPRIM_ARCH_90a, blend_config_90a<Key, Value>>,
        blend_config_900<Key, Value>
    > { };
}
END_ROCPRIM_NAMESPACE
"""

PICKERS = """\
BEGIN_ROCPRIM_NAMESPACE
namespace detail
{
template<class Target, class key_type>
constexpr auto blend_config_picker() -> std::enable_if_t<
    std::is_same_v<Target, comp_target<gen::cdna3, target_arch::gfx942, gpu::mi300x, rep::amdgcn>>,
    blend_config_params>
{
    // CONFIG: {"key_type": "double"}
    if constexpr(bool(rocprim::is_floating_point<key_type>::value) && (sizeof(key_type) <= 8))
    {
        return blend_config_params{
            {256, 8},
            ::rocprim::blend_method::exact
        };
    }
    // CONFIG: {"key_type": "int"}
    if constexpr((sizeof(key_type) <= 4))
    {
        return blend_config_params{kernel_config_params{128, 4}, ::rocprim::blend_method::fast};
    }
    return blend_config_params_base<key_type>();
}

template<class Target, class key_type>
constexpr auto blend_config_picker() -> std::enable_if_t<
    std::is_same_v<Target,
                   comp_target<gen::cdna3, target_arch::gfx942, gpu::generic, rep::amdgcn>>,
    blend_config_params>
{
    return blend_config_params_base<key_type>();
}

template<class Target, class key_type>
constexpr auto blend_config_picker() -> std::enable_if_t<
    std::is_same_v<Target, comp_target<gen::none, target_arch::unknown, gpu::generic, rep::none>>,
    blend_config_params>
{
    return blend_config_picker<
        comp_target<gen::cdna3, target_arch::gfx942, gpu::mi300x, rep::amdgcn>, key_type>();
}
}
END_ROCPRIM_NAMESPACE
"""

FORMS = {"generated": GENERATED, "by hand": BY_HAND, "pickers": PICKERS}


def read_toy(text):
    """A header beside what declares its configs."""
    data = text if isinstance(text, bytes) else text.encode()
    return read_header("device_blend.hpp", data, {"config_types.hpp": TYPES})


def families(header):
    """Those of a header by name and architecture."""
    return {(one.name, one.arch): one for one in header.families}


def cut(text, span):
    """What stands in a span."""
    return text.encode()[span.start : span.end].decode()
