import pytest

from policygen.errors import InputError
from policygen.headers import spelling
from policygen.model.records import Span
from tests.headers.headers import read, read_entries


def member(declaration):
    (entry,) = read_entries(f"template <> struct sm90_tuning<int, 1> {{ {declaration} }};")
    return entry.members[0]


@pytest.mark.parametrize(
    ("old", "new", "spelled"),
    [
        ("7", "8", "8"),
        ("1 << 2", "8", "1 << 3"),
        ("1<<0", "4", "1 << 2"),
        ("1 << 2", "6", "6"),
        ("1 << 2", "1 << 4", "1 << 4"),
        ("true", "false", "false"),
        ("detail::flag", "true", "true"),
        ("LOAD_CA", "LOAD_LDG", "LOAD_LDG"),
        ("cub::LOAD_CA", "LOAD_LDG", "cub::LOAD_LDG"),
        ("::cub::LOAD_CA", "LOAD_LDG", "::cub::LOAD_LDG"),
        ("cub::LOAD_CA", "::cub::LOAD_LDG", "::cub::LOAD_LDG"),
        ("fixed_delay_constructor_t<350, 450>", "no_delay_constructor_t<8>",
         "no_delay_constructor_t<8>"),
        ("detail::fixed_delay_constructor_t<350, 450>", "no_delay_constructor_t<8>",
         "detail::no_delay_constructor_t<8>"),
        ("detail::no_delay_constructor_t<8>", "detail::no_delay_constructor_t<9>",
         "detail::no_delay_constructor_t<9>"),
        ("detail::A", "large ? A : B", "large ? A : B"),
        ("detail::A", "-1", "-1"),
        ("large ? A : B", "A", "A"),
    ],
)  # fmt: skip
def test_a_value_is_spelled_like_the_one_before(old, new, spelled):
    assert spelling.like(old, new) == spelled


@pytest.mark.parametrize(
    ("declaration", "new", "is_same"),
    [
        ("static constexpr int a = 7;", "7", True),
        ("static constexpr int a = 7;", "8", False),
        ("static constexpr int a = 0x10;", "16", True),
        ("static constexpr int a = 1 << 2;", "4", True),
        ("static constexpr int a = 1 << 2;", "1 << 2", True),
        ("static constexpr int a = 1 << 2;", "8", False),
        ("static constexpr int a = sizeof(T);", "sizeof(T)", True),
        ("static constexpr bool a = true;", "true", True),
        ("static constexpr bool a = true;", "false", False),
        ("static constexpr M a = LOAD_CA;", "LOAD_CA", True),
        ("static constexpr M a = cub::LOAD_CA;", "LOAD_CA", True),
        ("static constexpr M a = cub::LOAD_CA;", "cub::LOAD_CA", True),
        ("static constexpr M a = cub::LOAD_CA;", "LOAD_LDG", False),
        ("using a = detail::delay_t<350,450>;", "delay_t<350, 450>", True),
        ("using a = detail::delay_t<350, 450>;", "detail::delay_t<350, 450>", True),
        ("using a = delay_t<350, 450>;", "delay_t<350, 451>", False),
    ],
)
def test_a_value_is_compared_by_what_it_means(declaration, new, is_same):
    assert spelling.same(member(declaration), new) is is_same


def family(primary, entry):
    found, *_ = read(f"{primary}\n{entry}")[::-1]
    return found, found.specializations[0]


PRIMARY = "template <class KeyT, typename ValueT, size S> struct sm100_x;"


@pytest.mark.parametrize(
    ("entry", "key", "declared", "args"),
    [
        ("template <> struct sm100_x<int, int, s::_1> {};", ("int", None, "s::_2"),
         ["typename ValueT"], ["int", "ValueT", "s::_2"]),
        ("template <class K, class V> struct sm100_x<K, V, s::_1> {};", (None, "float", "s::_2"),
         ["class K"], ["K", "float", "s::_2"]),
        ("template <class K, size S> struct sm100_x<K, int, S> {};", (None, None, None),
         ["class K", "typename ValueT", "size S"], ["K", "ValueT", "S"]),
        ("template <class T> struct sm100_x<T, T, s::_1> {};", (None, None, "s::_1"),
         ["class T", "typename ValueT"], ["T", "ValueT", "s::_1"]),
    ],
)  # fmt: skip
def test_parameters_are_called_as_by_the_sibling_else_as_by_the_family(entry, key, declared, args):
    found, sibling = family(PRIMARY, entry)
    assert spelling.parameters(found, key, sibling) == (declared, args)


def test_without_a_sibling_parameters_are_called_as_by_the_family():
    found, _ = family(PRIMARY, "template <> struct sm100_x<int, int, s::_1> {};")
    assert spelling.parameters(found, (None, "int", None), None) == (
        ["class KeyT", "size S"],
        ["KeyT", "int", "S"],
    )


def test_an_open_argument_whose_parameter_has_no_name_is_refused():
    found, sibling = family(
        "template <class T, flagged> struct sm100_x;", "template <> struct sm100_x<int, f::no> {};"
    )
    with pytest.raises(InputError, match=r"tuning_demo.cuh: a parameter of sm100_x has no name"):
        spelling.parameters(found, ("int", None), sibling)


@pytest.mark.parametrize(
    ("count", "width", "broken"),
    [(2, 120, False), (2, 121, False), (2, 122, True), (7, 124, False), (7, 129, False),
     (7, 130, True), (1, 121, True)],
)  # fmt: skip
def test_a_head_is_broken_where_clang_format_breaks_it(count, width, broken):
    """The limits are those of clang-format; 124 columns with seven arguments are CUB's own."""
    args = ["a"] * count
    short = "struct sm100_x<" + ", ".join(args) + ">"
    args[-1] += "b" * (width - len(short))
    found = spelling.head("sm100_x", args, lead=len("struct "))
    lines = [("struct " if i == 0 else "") + line for i, line in enumerate(found.split("\n"))]
    if broken:
        assert lines == [
            ("struct sm100_x<" if i == 0 else " " * 15) + arg + (">" if i == count - 1 else ",")
            for i, arg in enumerate(args)
        ]
    else:
        assert [len(line) for line in lines] == [width]


PACKED = """template <> struct sm90_tuning<float,  1, 4> {};
template <> struct sm90_tuning<double, 1, 8> {};
template <> struct sm90_tuning<double, 16,  8> {};
template <>
struct sm90_tuning<int,    1,   2> {};"""


@pytest.mark.parametrize(
    ("args", "columns"),
    [
        (["float", "1", "4"], "float,  1, 4"),
        (["double", "1", "4"], "double, 1, 4"),
        (["double", "16", "4"], "double, 16,  4"),
        (["short", "1", "8"], "short,  1, 8"),
        (["double", "128", "4"], "double, 128, 4"),
        (["double", "1", "16"], "double, 1, 16"),
        (["T"], "T"),
        ([], ""),
        (["T", "2", "4", "8"], "T,  2, 4, 8"),
    ],
)
def test_arguments_stand_in_the_columns_of_entries_on_one_line(args, columns):
    assert spelling.columns(read_entries(PACKED), args) == columns


def test_numbers_end_where_the_others_do():
    entries = read_entries("template <> struct sm90_tuning<1,  0, 4> {};")
    assert spelling.columns(entries, ["1", "16", "4"]) == "1, 16, 4"


@pytest.mark.parametrize(
    ("aligned", "rows"),
    [
        (True, ["static constexpr int items = 8;", "using delay                = detail::b<1>;"]),
        (False, ["static constexpr int items = 8;", "using delay = detail::b<1>;"]),
    ],
)
def test_members_are_declared_with_the_types_of_others(aligned, rows):
    types = {"delay": ("using", "detail::a"), "items": ("int", "7")}
    values = {"items": "8", "delay": "b<1>"}
    assert spelling.declarations(values, types, aligned=aligned) == rows


@pytest.mark.parametrize(
    ("rows", "widths"),
    [
        ([], []),
        ([("a", "1")], [1]),
        ([("a", "1"), ("bbb", "2")], [3, 3]),
        ([("a", "1"), ("b" * 50, "2"), ("c", "3" * 70)], [50, 50, 1]),
        ([("a", "1"), ("c", "3" * 70), ("b" * 50, "2"), ("d", "4")], [1, 1, 50, 50]),
        ([("a" * 60, "1" * 60), ("b", "2")], [60, 1]),
        ([("a", "1"), ("b" * 50, "2" * 66)], [50, 50]),
        ([("a", "1"), ("b" * 50, "2" * 67)], [1, 50]),
    ],
)
def test_members_are_aligned_in_runs_that_fit(rows, widths):
    """As clang-format does: a line that would become too long begins another run."""
    assert spelling.widths(rows) == widths


def test_no_members_are_no_declarations():
    assert spelling.declarations({}, {}, aligned=True) == []


@pytest.mark.parametrize(
    ("data", "ending"),
    [(b"", "\n"), (b"a\n", "\n"), (b"a\r\nb\r\n", "\r\n"), (b"a\nb\r\nc\n", "\n"),
     (b"a\r\nb\r\nc\n", "\r\n")],
)  # fmt: skip
def test_lines_end_as_most_lines_do(data, ending):
    assert spelling.newline(data) == ending


DATA = b"\tint a;\r\n  int b;\r\n\r\nint c;"


@pytest.mark.parametrize(
    ("offset", "start", "end"),
    [(0, 0, 7), (5, 0, 7), (7, 0, 7), (8, 0, 7), (9, 9, 17), (19, 19, 19), (20, 19, 19),
     (21, 21, 27), (27, 21, 27)],
)  # fmt: skip
def test_a_line_is_found_from_any_place_on_it(offset, start, end):
    """Also from the line feed of CRLF: a comment's span ends behind the carriage return."""
    assert (spelling.line_start(DATA, offset), spelling.line_end(DATA, offset)) == (start, end)


@pytest.mark.parametrize(("offset", "indent"), [(1, "\t"), (11, "  "), (15, ""), (21, "")])
def test_an_indentation_is_white_space_only(offset, indent):
    assert spelling.indent_of(DATA, offset) == indent


def test_a_span_holds_text():
    assert spelling.text_of("// é".encode(), Span(3, 5)) == "é"
