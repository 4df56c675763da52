"""Headers of configs that are cut, changed or made to hurt: read, or refused with a place."""

import random

import pytest

from policygen.errors import SourceError
from policygen.headers.scan import read_header, scan_headers
from tests.real_trees import rocprim_tree
from tests.rocprim.toys import FORMS, TYPES
from tests.tiers import sampled
from tests.trees.debs import make_rocprim

SIGNS = b"<>(){}[],;:&|!=\"'/*\\#\n \xff\x00\xc3\xa4@0x"
WORDS = (
    b"template<",
    b"struct ",
    b"return ",
    b"if constexpr(",
    b"target_arch::",
    b"select_arch<",
    b"select_type_case<",
    b"using type = ",
    b"comp_target<",
    b"#if 0\n",
    b"#endif\n",
    b"std::enable_if_t<",
    b"static_cast<unsigned int>(",
)
BRACKETS = b"<>(){}[]"


def cut_off(data, rng):
    return data[: rng.randrange(len(data))]


def without_a_bracket(data, rng):
    at = rng.choice([n for n, byte in enumerate(data) if byte in BRACKETS])
    return data[:at] + data[at + 1 :]


def with_a_sign(data, rng):
    at, sign = rng.randrange(len(data)), rng.choice(SIGNS)
    return data[:at] + bytes([sign]) + data[at:]


def with_a_word(data, rng):
    at = rng.randrange(len(data))
    return data[:at] + rng.choice(WORDS) + data[at:]


def without_a_part(data, rng):
    start, end = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:start] + data[min(end, start + 200) :]


def with_a_part_twice(data, rng):
    start, end = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:end] + data[start : min(end, start + 200)] + data[end:]


CHANGES = (cut_off, without_a_bracket, with_a_sign, with_a_word, without_a_part, with_a_part_twice)


def read_or_refused(data, beside):
    """Whether it was read; what is refused has a place in it, what is read has spans of it."""
    refused = None
    try:
        header = read_header("device_x_config.hpp", data, beside)
    except SourceError as error:
        refused = error
    if refused:
        assert 1 <= refused.line <= data.count(b"\n") + 1
        assert refused.column >= 1
        assert refused.message
        return False
    for family in header.families:
        for entry in family.entries:
            assert 0 <= entry.span.start < entry.span.end <= len(data)
            for member in entry.members:
                assert entry.span.start <= member.value_span.start
                assert member.value_span.end <= len(data)
    return True


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", FORMS)
def test_changed_toys_are_read_or_refused(form, change):
    rng = random.Random(f"{form} {change.__name__}")
    seen = set()
    for _ in range(150):
        data = FORMS[form].encode()
        for _ in range(rng.randint(1, 3)):
            data = change(data, rng) or b" "
            if not any(byte in BRACKETS for byte in data):
                break
        seen.add(read_or_refused(data, {"config_types.hpp": TYPES}))
    assert False in seen or change in {with_a_part_twice, without_a_part, with_a_word}


@pytest.mark.slow
@pytest.mark.trees
@pytest.mark.parametrize(
    ("release", "name"),
    sampled(
        [
            ("5.7.1", "detail/config/device_reduce.hpp"),
            ("5.7.1", "detail/device_config_helper.hpp"),
            ("5.3.3", "device_merge_sort_config.hpp"),
        ],
        ("5.7.1", "detail/device_config_helper.hpp"),
    ),
)
@pytest.mark.parametrize("share", sampled(range(3), 0))
def test_changed_headers_of_releases_are_read_or_refused(release, name, share):
    rng = random.Random(f"{release} {name} {share}")
    data = (rocprim_tree(release) / "rocprim/device" / name).read_bytes()
    for _ in range(9):
        read_or_refused(rng.choice(CHANGES)(data, rng), {})


OPEN = "namespace rocprim {\n"
HOSTILE = {
    "conditions in parentheses": f"{OPEN}template<class T> constexpr auto x_config_picker() ->"
    " comp_target<a, target_arch::gfx942, c, d> { if constexpr("
    f"{'(' * 20_000}A{')' * 20_000}) return x{{1}}; }} }}",
    "configs in configs": f"{OPEN}template<unsigned int arch, class T> struct default_x_config :"
    f" {'x_config<' * 5_000}1{'>' * 5_000} {{}};\n}}",
    "braces in braces": f"{OPEN}template<class T> constexpr auto x_config_picker() ->"
    f" comp_target<a, target_arch::gfx942, c, d> {{ return x{'{' * 5_000}1{'}' * 5_000}; }} }}",
    "openings": OPEN + "template<" * 200_000,
    "namespaces": "namespace rocprim {\n" + "namespace a {" * 20_000 + "}" * 20_001,
    "conjunctions": f"{OPEN}template<class T> constexpr auto x_config_picker() ->"
    " comp_target<a, target_arch::gfx942, c, d> { if constexpr("
    f"{' && '.join(['(sizeof(T) > 1)'] * 50_000)}) return x{{1}}; }} }}",
    "arguments": f"{OPEN}template<unsigned int arch, class T> struct default_x_config :"
    f" x_config<{', '.join(['1'] * 40_000)}> {{}};\n}}",
    "tables": f"{OPEN}template<unsigned int arch, class T> struct default_x_config : select_arch<T,"
    f" {', '.join(f'select_arch_case<900, x_config_{n}<T>>' for n in range(5_000))}> {{}};\n}}",
    "many structs": OPEN
    + "".join(f"template<class T> struct x_config_{n} : x_config<1> {{}};\n" for n in range(3_000))
    + "template<unsigned int arch, class T> struct default_x_config : select_arch<T, "
    + ", ".join(f"select_arch_case<900, x_config_{n}<T>>" for n in range(3_000))
    + "> {};\n}",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_header_ends_within_limits(what, tmp_path):
    """Each is read, or refused; none keeps the others from being read."""
    root = make_rocprim(tmp_path / "tree") / "rocprim/device"
    bad, good = root / "device_a_config.hpp", root / "device_b_config.hpp"
    bad.write_text(HOSTILE[what])
    good.write_text(FORMS["generated"])
    found = scan_headers([bad, good], cached=False)
    assert "device_b_config.hpp" in {header.name for header in found.headers}
    assert len(found.headers) + len(found.errors) == 2
    for error in found.errors:
        assert error.message
