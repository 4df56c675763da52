# ruff: noqa: E501  a row of a table is one line
from pathlib import Path

import pytest

from tests.headers.benchmarks.places import failures, read, read_axes, write

I8_TO_I64 = ("I8", "I16", "I32", "I64")
FUNDAMENTAL = (*I8_TO_I64, "I128", "F32", "F64")


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("using x = integral_types;", I8_TO_I64),
        ("using y = fundamental_types; using x = y;", FUNDAMENTAL),
        ("using x = all_types;", (*FUNDAMENTAL, "C32")),
        ("using x = nvbench::type_list<cuda::std::complex<float>, cuda::std::complex<double>>;", ("C32", "C64")),
        ("using x = type_list<std::int8_t, nvbench::uint16_t, unsigned long long, char, ::std::int64_t>;", ("I8", "U16", "U64", "I8", "I64")),
        ("using x = nvbench::type_list<__int128, uint128_t, __half, bool_t>; using bool_t = cuda::std::false_type;", ("I128", "U128", "F16", "false")),
        ("typedef nvbench::type_list<float> x;", ("F32",)),
        ("using x [[maybe_unused]] = nvbench::type_list<float>;", ("F32",)),
        ("using x = nvbench::type_list<cub::ArgMin, arg_max>;", ("ArgMin", "arg_max")),
        ("using x = push_back_t<uint8_t, integral_types>;", (*I8_TO_I64, "U8")),
        ("using x = nvbench::tl::concat<nvbench::type_list<float>, offset_types>;", ("F32", "I32", "I64")),
        ("constexpr int n = 4; constexpr int m{n * 2}; using x = nvbench::enum_type_list<n, m, 1 + 1>;", ("4", "8", "2")),
        ("using x = nvbench::type_list<std::integral_constant<int, 32>>;", ("32",)),
        ("#ifdef TUNE_T\nusing x = nvbench::type_list<TUNE_T>;\n#else\nusing x = nvbench::type_list<float>;\n#endif", ("F32",)),
        ("#ifndef TUNE_T\nusing x = nvbench::type_list<float>;\n#else\nusing x = nvbench::type_list<TUNE_T>;\n#endif", ("F32",)),
        ("#if TUNE_T\nusing x = nvbench::type_list<TUNE_T>;\n#elif !TUNE_BASE\n#elif 1\nusing x = nvbench::type_list<float>;\n#elif 1\nBAD(\n#else\nBAD(\n#endif", ("F32",)),
        ("#define A 1\n#define B A + 1\n#if B == 2\nusing x = type_list<float>;\n#endif\n#undef A\n", ("F32",)),
        ("struct mine {\n}; using x = type_list<mine>;", ("mine",)),
        ("using x = nvbench::type_list<>;", ()),
    ],
)  # fmt: skip
def test_type_lists_give_nvbench_s_input_strings(
    tmp_path: Path, source: str, values: tuple[str, ...]
) -> None:
    [axis] = read_axes(tmp_path, f"{source}\nNVBENCH_BENCH_TYPES(f, NVBENCH_TYPE_AXES(x));")
    assert (axis.name, axis.kind, axis.values, axis.spelling) == ("T", "type", values, "x")
    assert axis.complete


@pytest.mark.parametrize(
    ("source", "values", "conditions"),
    [
        ("", (), ()),
        ("using x = x;", (), ()),
        ("using x = 3;", (), ()),
        ("using x = unknown<int>;", (), ()),
        ("using x = nvbench::type_list<int", (), ()),
        ("using x = nvbench::type_list<other::unknown>;", ("other::unknown",), ()),
        ("using x = conditional_t<WHO(), type_list<int>, type_list<float>>;", ("I32",), ("WHO()",)),
        ("#define A A\n#if A\nusing x = type_list<int>;\n#else\nusing x = type_list<float>;\n#endif", ("I32",), ("A",)),
        ("using x = type_list<int\n#ifdef WHO\n, float\n#else\n, double\n#endif\n>;", ("I32", "F32", "F64"), ("defined(WHO)", "!(defined(WHO))")),
        ("using x = type_list<int\n#ifdef WHO\n// , float\n#endif\n, __float128>;", ("I32", "__float128"), ()),
    ],
)  # fmt: skip
def test_lists_that_the_source_does_not_tell_are_incomplete(
    tmp_path: Path, source: str, values: tuple[str, ...], conditions: tuple[str, ...]
) -> None:
    [axis] = read_axes(tmp_path, f"{source}\nNVBENCH_BENCH_TYPES(f, NVBENCH_TYPE_AXES(x));")
    assert (axis.values, axis.conditions, axis.complete) == (values, conditions, False)


@pytest.mark.parametrize(
    ("call", "name", "values"),
    [
        ('add_int64_axis("N", {1, 64 * 1024, -3})', "N", ("1", "65536", "-3")),
        ('add_int64_axis("N", nvbench::range(0, 6, 4))', "N", ("0", "4")),
        ('add_int64_axis("N", nvbench::range<int>(5, 6))', "N", ("5", "6")),
        ('add_int64_axis("N", nvbench::range(6, 5))', "N", ()),
        ('add_int64_axis("N", std::vector<nvbench::int64_t>{1\'000, 2})', "N", ("1000", "2")),
        ('add_int64_axis("N", std::vector<nvbench::int64_t>({7}))', "N", ("7",)),
        ('add_int64_axis("N", (std::vector<int>{}))', "N", ()),
        ('add_int64_axis("N", some)', "N", ("3", "5")),
        ('add_int64_axis("N", more)', "N", ("8",)),
        ('add_int64_axis("N", {number, number + 1})', "N", ("3", "4")),
        ('add_int64_axis("N", {1}, nvbench::int64_axis_flags::power_of_two)', "N[pow2]", ("1",)),
        ('add_int64_power_of_two_axis("N{io}", {0, 20})', "N{io}[pow2]", ("0", "20")),
        ('add_float64_axis("F", {1.0, 0.25, 1e-4f, .5, 2, -1.5e10, 1e30L})', "F",
         ("1", "0.25", "0.0001", "0.5", "2", "-1.5e+10", "1e+30")),
        ('add_float64_axis("F", nvbench::range(0.0, 1.0))', "F", ("0", "1")),
        ('add_float64_axis("F", {1.0 / 3})', "F", None),
        ('add_string_axis("S", {"1.000", "a" "b", "q\\"", "\u00fc"})', "S",
         ("1.000", "ab", 'q"', "\u00fc")),
        ('add_string_axis("S", {name})', "S", None),
        ('add_string_axis("S", name)', "S", None),
        ('add_int64_axis("N", nvbench::range(0, 1 << 40))', "N", None),
        ('add_int64_axis("N", nvbench::range(0, 8, 0))', "N", None),
        ('add_int64_axis("N", nvbench::range(0))', "N", None),
        ('add_int64_axis("N", nvbench::range(0, n))', "N", None),
        ('add_int64_axis("N", {9223372036854775808})', "N", None),
        ('add_int64_axis("N", round)', "N", None),
    ],
)  # fmt: skip
def test_runtime_axes_have_the_values_that_nvbench_prints(
    tmp_path: Path, call: str, name: str, values: tuple[str, ...] | None
) -> None:
    source = (
        "const std::vector<int> some = {number, 5}; auto more{std::vector{8}}; auto round = round;"
    )
    axes = read_axes(
        tmp_path, f"constexpr int number = 3; {source}\nNVBENCH_BENCH(f)\n  .{call}\n  ->other();"
    )
    assert [axis.name for axis in axes] == [name]
    assert axes[0].complete is (values is not None)
    assert axes[0].values == (values or ())
    assert axes[0].flags == ("pow2" if "pow2" in name else "")


@pytest.mark.parametrize(
    ("source", "subs"),
    [
        ("NVBENCH_BENCH(f);", [("f", 0)]),
        ("NVBENCH_BENCH();", [("", 0)]),
        ("NVBENCH_BENCH(f).set_name(name()).add_int64_axis(\"only a name\").set_name();", [("name()", 0)]),
        ("NVBENCH_BENCH_TYPES(ns::f<int>, nvbench::type_list<type_list<int>, type_list<char>>)", [("ns::f<int>", 2)]),
        ("using axes = nvbench::type_list<type_list<int>>;\nNVBENCH_BENCH_TYPES(f, axes);", [("f", 1)]),
        ("using axes = axes;\nNVBENCH_BENCH_TYPES(f, axes)\nNVBENCH_BENCH(g)", [("f", 0), ("g", 0)]),
        ("// NVBENCH_BENCH(f);\n/* NVBENCH_BENCH(g) */ char s[] = \"NVBENCH_BENCH(h)\";", []),
        ("#if 0\nNVBENCH_BENCH(f);\n#else\nNVBENCH_BENCH(g);\n#endif", [("g", 0)]),
        ("#ifdef WHO\nNVBENCH_BENCH(f);\n#else\nNVBENCH_BENCH(g);\n#endif", [("f", 0), ("g", 0)]),
        ("#define REGISTER(x, y) \\\r\n NVBENCH_BENCH(x ## y) \\\r\n .set_name(# x \"_\" #z) \r\nREGISTER(a, b); REGISTER(c)", [("a_z", 0), ("c_z", 0)]),
        ("#define REGISTER(x) NVBENCH_BENCH(x)\nREGISTER(REGISTER(f));", [("REGISTER(f)", 0)]),
        ("#define NOT_ONE NVBENCH_BENCH\n#define\n#nothing\n# \nNOT_ONE(f);", []),
        ("#define LONG(x) NVBENCH_BENCH(x)" + " " * 20_000 + ";\nLONG(f);", []),
    ],
)  # fmt: skip
def test_registrations_are_found_wherever_they_are_compiled(
    tmp_path: Path, source: str, subs: list[tuple[str, int]]
) -> None:
    one = read(tmp_path, source)
    assert [(sub.name, len(sub.axes)) for sub in one.subbenches] == subs


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("NVBENCH_BENCH(f", "1:14: '(' is never closed\n  NVBENCH_BENCH(f\n  " + " " * 13 + "^"),
        ("NVBENCH_BENCH(f)\n  .add_int64_axis(\"N\", {1, 2);", "2:24: '{' is never closed\n    .add_int64_axis(\"N\", {1, 2);\n  " + " " * 23 + "^"),
        ("NVBENCH_BENCH(f)\n  .set_name(\"a\";", "2:12: '(' is never closed\n    .set_name(\"a\";\n  " + " " * 11 + "^"),
        ("#define R(x) NVBENCH_BENCH(x)\nR(f", "2:2: '(' is never closed\n  R(f\n   ^"),
        ("#define R(x) NVBENCH_BENCH(x\nint; R(f)", "2:6: '(' is never closed\n  int; R(f)\n       ^"),
        ("int x;\n\t/* open", "2:2: unterminated comment\n  \t/* open\n  \t^^"),
        ("#ifdef TUNE_T\n#if 1\n#endif", "1:1: #if without #endif\n  #ifdef TUNE_T\n  ^"),
        ("#else", "1:1: #else without #if\n  #else\n  ^"),
        ("\n  #endif", "2:1: #endif without #if\n    #endif\n  ^"),
        (
            "ab\0cd",
            "1:3: NUL byte: this is not a text file (perhaps UTF-16)\n  ab\N{SYMBOL FOR NULL}cd\n"
            "    ^",
        ),
    ],
)  # fmt: skip
def test_a_source_that_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, source: str, message: str
) -> None:
    assert failures(write(tmp_path, source)) == [f"one.cu:{message}"]


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbfNVBENCH_BENCH(f).set_name(\"b\xc3\xa4se\");\r\n// caf\xe9 \r\n",
        b"// Ma\xdf\r\nNVBENCH_BENCH(f)\r\n  .set_name(\"b\xc3\xa4se\"); // \xe9\r\n",
    ],
)  # fmt: skip
def test_byte_order_marks_line_ends_and_latin_1_comments_do_no_harm(
    tmp_path: Path, source: bytes
) -> None:
    assert [sub.name for sub in read(tmp_path, source).subbenches] == ["b\u00e4se"]


def test_macros_that_double_are_computed_once(tmp_path: Path) -> None:
    doubles = "\n".join(f"#define A{n} (A{n - 1} + A{n - 1})" for n in range(1, 30))
    one = 'NVBENCH_BENCH(f).set_name("one");'
    text = (
        f"#define A0 1\n{doubles}\n#if A29 > 7\n{one}\n#else\n{one.replace('one', 'two')}\n#endif\n"
    )
    assert [sub.name for sub in read(tmp_path, text).subbenches] == ["one"]
