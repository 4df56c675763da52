import pytest

from policygen.errors import SourceError
from policygen.headers.scan import read_header
from tests.headers.headers import MINI, mini, read, read_entries, wrap


def test_the_miniature_tree_has_every_construct_once():
    found = {
        (family.namespace, family.name): [
            (e.kind, e.disabled, e.inherits is not None, bool(e.values)) for e in family.entries
        ]
        for header in mini().values()
        for family in header.families
    }
    primary, values, inherits = (
        ("primary", False, False, False),
        (False, False, True),
        (False, True, False),
    )
    assert found == {
        ("cub::detail::blur::rows", "sm80_tuning"): [
            primary,
            ("partial", *values),
            ("explicit", *values),
            ("explicit", *values),
            ("explicit", *inherits),
        ],
        ("cub::detail::blur::rows", "sm100_tuning"): [
            primary,
            ("partial", *values),
            ("partial", *values),
            ("explicit", *inherits),
            ("partial", True, False, True),
            ("explicit", True, False, True),
            ("partial", True, False, True),
            ("explicit", True, True, False),
            ("explicit", True, False, False),
        ],
        ("cub::detail::blur::columns", "sm80_tuning"): [primary, ("partial", *values)],
        ("cub::detail::sift", "sm90_small_key_tuning"): [
            ("primary", *values),
            *[("explicit", *values)] * 3,
        ],
        ("cub::detail::sift", "sm100_small_key_tuning"): [
            ("primary", *inherits),
            ("partial", *inherits),
            ("partial", *values),
            ("partial", True, False, True),
        ],
        ("cub::detail::sift", "sm75_tuning_vals"): [("primary", *values)],
        ("cub::detail::sift", "sm75_tuning"): [("primary", *values)],
    }


def test_the_remark_above_a_disabled_entry_says_why():
    header = mini()["tuning_blur.cuh"]
    remarks = {e.line: e.remarks for f in header.families for e in f.entries if e.disabled}
    assert remarks == {
        103: ("todo: slower on large images. Needs another search.",),
        115: ("Replaced by the entry for single bytes.",),
        122: (),
        130: ("TODO: tune for 128 bits.",),
        132: (),
    }


def test_families_of_one_name_in_two_namespaces_stay_apart():
    names = [(f.namespace.rpartition("::")[2], f.name) for f in mini()["tuning_blur.cuh"].families]
    assert names.count(("rows", "sm80_tuning")) == names.count(("columns", "sm80_tuning")) == 1


def test_members_that_depend_on_parameters_keep_their_spelling():
    family = next(f for f in mini()["tuning_sift.cuh"].families if f.name == "sm75_tuning_vals")
    members = {m.name: (m.value, m.spelling) for m in family.entries[0].members}
    assert members["threads"] == (None, "Threads")
    assert members["large_values"] == (None, "sizeof(KeyT) > 128")
    assert family.entries[0].values["threads"] == "Threads"


@pytest.mark.parametrize(
    ("member", "kind", "spelling", "value"),
    [
        ("static constexpr int a = 7;", "int", "7", 7),
        ("static constexpr int a = -7;", "int", "-7", -7),
        ("static constexpr int a = 1 << 2;", "int", "1 << 2", 4),
        ("static constexpr int a = 3 * (2 + 1);", "int", "3 * (2 + 1)", 9),
        ("static constexpr int a = 0x10;", "int", "0x10", 16),
        ("static constexpr int a = 017;", "int", "017", 15),
        ("static constexpr int a = 1'024;", "int", "1'024", 1024),
        ("static constexpr unsigned a = 7u;", "unsigned", "7u", 7),
        ("static constexpr int a{7};", "int", "7", 7),
        ("static constexpr auto a = 7;", "auto", "7", 7),
        ("static const int a = 7;", "int", "7", 7),
        ("constexpr static int a = 7;", "int", "7", 7),
        ("static constexpr std::size_t a = sizeof(char);", "std::size_t", "sizeof(char)", None),
        ("static constexpr bool a = true;", "bool", "true", True),
        ("static constexpr bool a = 0;", "bool", "0", False),
        ("static constexpr bool a = 2 > 1;", "bool", "2 > 1", True),
        ("static constexpr bool a = !false;", "bool", "!false", True),
        ("static constexpr Unknown a = NAME;", "Unknown", "NAME", "NAME"),
        ("static constexpr ns::Unknown a = ns::NAME;", "ns::Unknown", "ns::NAME", "ns::NAME"),
        ("static constexpr int a = UNKNOWN;", "int", "UNKNOWN", None),
        ("static constexpr int a = 1 + unknown(2);", "int", "1 + unknown(2)", None),
        ("static constexpr int a = Size;", "int", "Size", None),
        ("using a = other<1, 2>;", "using", "other<1, 2>", "other<1, 2>"),
        ("using a = typename T::b;", "using", "typename T::b", "typename T::b"),
        ("using a =\n    other<1,\n          2>;", "using", "other<1, 2>", "other<1, 2>"),
    ],
)
def test_a_member_gives_type_spelling_and_value(member, kind, spelling, value):
    (entry,) = read_entries(
        f"template <class T, int Size> struct sm90_tuning<T*, Size> {{ {member} }};"
    )
    (found,) = entry.members
    assert (found.name, found.type, found.spelling, found.value) == ("a", kind, spelling, value)


@pytest.mark.parametrize(
    "other",
    [
        "int f() { return 1; }",
        "static_assert(sizeof(T) > 1);",
        "struct nested { static constexpr int inner = 3; };",
        "template <class U> using inner = U;",
        "using namespace std;",
        "sm90_tuning() = default;",
        ";",
    ],
)
def test_what_is_no_value_is_passed_over(other):
    members = f"static constexpr int a = 1; {other} using b = T;"
    (entry,) = read_entries(f"template <class T> struct sm90_tuning<T, 1> {{ {members} }};")
    assert entry.values == {"a": 1, "b": "T"}


@pytest.mark.parametrize(
    "member",
    [
        "enum { e = 4 };",
        "typedef int old;",
        "int field;",
        "static constexpr int b = 1, c = 2;",
        "static constxpr int b = 2;",
        "CUB_ODD static constexpr int b = 2;",
        "static constexpr int b = 2",
        "using b",
    ],
)
def test_what_may_carry_a_value_and_cannot_be_read_is_refused(member):
    with pytest.raises(SourceError, match=r"x.cuh:4:\d+: cannot read this member"):
        read_header(
            "x.cuh",
            wrap(f"template <> struct sm90_tuning<int, 1> {{ using a = A<1, 2>; {member} }};"),
        )


@pytest.mark.parametrize("before", ["public: ", "[[maybe_unused]] ", "public: [[x]] "])
def test_access_and_attributes_are_no_part_of_a_member(before):
    (entry,) = read_entries(
        f"template <> struct sm90_tuning<int, 1> {{ {before}static constexpr int a = 1; }};"
    )
    assert entry.values == {"a": 1}


def test_a_member_that_is_there_twice_or_sometimes_is_refused():
    a = "static constexpr int a = 1;"
    with pytest.raises(SourceError, match="4:70: a appears twice as a member"):
        read(f"template <> struct sm90_tuning<int, 1> {{ {a} {a} }};")
    with pytest.raises(
        SourceError, match=r"6:1: a depends on an #if inside its entry\n.*\n.*\n  Put"
    ):
        read(f"template <> struct sm90_tuning<int, 1> {{\n#if X\n{a}\n#endif\n}};")


@pytest.mark.parametrize("number", ["089", "1" * 5000, "0x" + "f" * 5000])
def test_a_number_that_is_none_has_no_value(number):
    (entry,) = read_entries(
        f"template <> struct sm90_tuning<int, 1> {{ static constexpr int a = {number}; }};"
    )
    assert entry.members[0].value is None
    assert entry.members[0].spelling == number


@pytest.mark.parametrize(
    "head",
    [
        "template <> struct CUB_VISIBLE sm90_tuning",
        "template <> struct __align__(16) sm90_tuning",
        "template <> struct CUB_A CUB_B(x) [[x]] alignas(8) sm90_tuning",
        "template <> CUB_2_0 struct sm90_tuning",
        "template <class T> requires (sizeof(T) > 4) struct sm90_tuning",
    ],
)
def test_macros_attributes_and_constraints_hide_no_entry(head):
    (entry,) = read_entries(f"{head}<int, 1> {{ static constexpr int a = 1; }};")
    assert entry.values == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        "MY_TEMPLATE struct sm90_tuning<int, 2> { static constexpr int a = 1; };",
        "template <> requires requires { 1; } struct sm90_tuning<int, 2> {};",
    ],
)
def test_an_entry_in_a_form_that_cannot_be_read_is_refused(text):
    with pytest.raises(SourceError, match="sm90_tuning: cannot read this declaration"):
        read(f"template <> struct sm90_tuning<int, 1> {{}};\n{text}")


def test_an_entry_that_a_macro_makes_is_refused():
    message = "5:1: ENTRY is a macro of line 4; policygen does not expand it"
    with pytest.raises(SourceError, match=message):
        read("#define ENTRY(T) template <> struct sm90_tuning<T, 1> { };\nENTRY(int)")


def test_what_only_names_an_entry_declares_none():
    (entry,) = read_entries(
        "template <> struct sm90_tuning<int, 1> {};\n"
        "struct x { friend struct sm90_tuning<int, 1>; };"
    )
    assert entry.args == ("int", "1")


@pytest.mark.parametrize(
    "expression",
    ["1" + "+1" * 40000, "!" * 40000 + "1", "A<" * 40000 + ">" * 40000, "1?" * 3000 + ":1" * 3000],
)
def test_a_long_expression_is_read_and_has_no_value(expression):
    (entry,) = read_entries(
        f"template <> struct sm90_tuning<int, 1> {{ static constexpr int a = {expression}; }};"
    )
    assert entry.members[0].value is None
    assert entry.members[0].spelling == expression


def test_long_nested_names_are_read():
    name = "::".join(["a"] * 5000)
    assert read_header(
        "x.cuh", f"namespace {name} {{ template <class T> struct sm90_x; }}".encode()
    )


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ("(sizeof(T) > 4), 1", ("(sizeof(T) > 4)", "1")),
        ("(1 < 2), 1", ("(1 < 2)", "1")),
        ("'a', 4", ("'a'", "4")),
        ("f(A<int, 2>{}), 1", ("f(A<int, 2>{})", "1")),
    ],
)
def test_arguments_keep_operators_and_literals(args, found):
    (entry,) = read_entries(f"template <> struct sm90_tuning<{args}> {{}};")
    assert entry.args == found


@pytest.mark.parametrize(
    ("condition", "never"),
    [("(0)", True), ("0 && FOO", True), ("A && (false)", True), ("0 || A", False), ("!(0)", False)],
)
def test_a_condition_that_never_holds_disables(condition, never):
    (entry,) = read_entries(
        f"#if {condition}\ntemplate <> struct sm90_tuning<int, 1> {{}};\n#endif"
    )
    assert entry.disabled is never


def test_a_comment_with_stars_at_its_lines_is_read():
    (entry,) = read_entries(
        "/*\n * template <> struct sm90_tuning<int, 1>\n * {\n"
        " *   static constexpr int a = 2 * 3;\n * };\n */"
    )
    assert entry.disabled
    assert entry.members[0].spelling == "2 * 3"


@pytest.mark.parametrize(
    ("declaration", "kind", "args"),
    [
        ("template <> struct sm90_tuning<int, 1> {};", "explicit", ("int", "1")),
        ("template <class T> struct sm90_tuning<T, 1> {};", "partial", ("T", "1")),
        ("template <>\nstruct\nsm90_tuning\n<\nint,1\n>\n{\n}\n;", "explicit", ("int", "1")),
        (
            "template <> struct sm90_tuning<a<b<int>>, (2 > 1)> {};",
            "explicit",
            ("a<b<int>>", "(2 > 1)"),
        ),
        ("template <> struct sm90_tuning<int, 1 << 3> {};", "explicit", ("int", "1 << 3")),
        ("template <> struct alignas(8) sm90_tuning<int, 1> {};", "explicit", ("int", "1")),
        ("template <> struct [[maybe_unused]] sm90_tuning<int, 1> {};", "explicit", ("int", "1")),
        ("template <> class sm90_tuning<int, 1> {};", "explicit", ("int", "1")),
        ("template <> struct sm90_tuning<int, 1>;", "explicit", ("int", "1")),
        ("template <> struct sm90_tuning<int, 1> final {};", "explicit", ("int", "1")),
        (
            "template <class F> struct sm90_tuning<F(int, int), 1> {};",
            "partial",
            ("F(int, int)", "1"),
        ),
        (
            "template <> struct sm90_tuning<unknown::type, UNKNOWN> {};",
            "explicit",
            ("unknown::type", "UNKNOWN"),
        ),
        (
            "template <> struct sm90_tuning<int, 1> : unknown<int>, private b {};",
            "explicit",
            ("int", "1"),
        ),
    ],
)
def test_a_declaration_is_read_however_it_is_laid_out(declaration, kind, args):
    (entry,) = read_entries(declaration)
    assert (entry.kind, entry.args) == (kind, args)
    assert entry.layout == ("block" if "\n" in declaration else "line")


@pytest.mark.parametrize(
    ("comment", "variant", "scores", "remarks"),
    [
        ("// ipt_19.tpb_512 1.1 0.9 1.0 1.2", "ipt_19.tpb_512", (1.1, 0.9, 1.0, 1.2), ()),
        ("//ipt_19.tpb_512   1.1\t0.9  1  1.2", "ipt_19.tpb_512", (1.1, 0.9, 1.0, 1.2), ()),
        ("// ipt_19.tpb_512 ()  1.1 0.9", "ipt_19.tpb_512", (1.1, 0.9), ()),
        ("// ipt_19.tpb_512 (39_new/2.db) 1.1", "ipt_19.tpb_512", (1.1,), ("39_new/2.db",)),
        ("// ipt_19.tpb_512", "ipt_19.tpb_512", None, ()),
        ("// ipt_19 1.5", "ipt_19", (1.5,), ()),
        ("// lbs_-2.ipt_4 1.5 see #12", "lbs_-2.ipt_4", (1.5,), ("see #12",)),
        ("// ipt_4 is what everybody used", None, None, ("ipt_4 is what everybody used",)),
        ("// even\n// odd", None, None, ("even odd",)),
        ("/// even\n//\n/// odd", None, None, ("even", "odd")),
        ("/* even\n * odd */", None, None, ("even odd",)),
        ("//! even", None, None, ("even",)),
        ("// ipt_1.tpb_2 1.0\n// todo: more runs", "ipt_1.tpb_2", (1.0,), ("todo: more runs",)),
        ("// 1 2 3 4 5 ipt_1.tpb_2", None, None, ("1 2 3 4 5 ipt_1.tpb_2",)),
        ("// ipt_1.tpb_2 1 2 3 4 5", "ipt_1.tpb_2", (1.0, 2.0, 3.0, 4.0), ("5",)),
    ],
)
@pytest.mark.parametrize("place", ["above", "inside", "below the brace, after a blank line"])
def test_a_comment_gives_variant_scores_and_remarks(comment, variant, scores, remarks, place):
    above, inside = (comment, "") if place == "above" else ("", comment)
    blank = "\n\n" if place.startswith("below") else "\n"
    (entry,) = read_entries(
        f"\n{above}\ntemplate <> struct sm90_tuning<int, 1>\n"
        f"{{{blank}{inside}\n static constexpr int a = 1;\n}};"
    )
    assert (entry.variant, entry.scores, entry.remarks) == (variant, scores, remarks)


def test_a_comment_behind_an_entry_belongs_to_it_and_one_after_a_blank_line_to_none():
    first, second = read_entries(
        "// heading\n\ntemplate <> struct sm90_tuning<int, 1> {}; // behind\n"
        "template <> struct sm90_tuning<int, 2> {};"
    )
    assert (first.remarks, second.remarks) == (("behind",), ())


def test_a_disabled_entry_does_not_lend_its_comment_to_the_next():
    entries = read_entries(
        "// why not\n// template <> struct sm90_tuning<int, 1> { // ipt_1.tpb_2 1.0\n// };\n"
        "template <> struct sm90_tuning<int, 2> {};"
    )
    assert [(e.disabled, e.remarks) for e in entries] == [(True, ("why not",)), (False, ())]


@pytest.mark.parametrize(
    ("before", "after", "guard", "disabled"),
    [
        ("#if A()", "#endif", "A()", False),
        ("#ifdef A", "#endif", "defined(A)", False),
        ("#ifndef A", "#endif", "!defined(A)", False),
        ("#if A\n#if B", "#endif\n#endif", "A && B", False),
        ("#if A || B\n#if C", "#endif\n#endif", "(A || B) && C", False),
        ("#if A\n#else", "#endif", "!(A)", False),
        ("#if A\n#elif B", "#endif", "!(A) && B", False),
        ("#if A\n#elif B\n#else", "#endif", "!(A) && !(B)", False),
        ("#if A\n#endif", "", None, False),
        ("#if 0", "#endif", "0", True),
        ("#if 1\n#else", "#endif", "!(1)", True),
        ("#  if \\\n A", "# endif", "A", False),
    ],
)
def test_the_guard_around_an_entry_is_told(before, after, guard, disabled):
    (entry,) = read_entries(f"\n{before}\ntemplate <> struct sm90_tuning<int, 1> {{}};\n{after}\n")
    assert (entry.guard, entry.disabled) == (guard, disabled)


def test_an_include_guard_is_no_guard_of_entries():
    data = (
        b"// text\n#ifndef X_H\n#define X_H\n"
        + wrap("template <> struct sm90_tuning<int, 1> {};")
        + b"#endif\n"
    )
    (family,) = read_header("x.cuh", data).families
    assert [entry.guard for entry in family.entries] == [None, None]


@pytest.mark.parametrize(
    ("parameter", "kind", "spelled_type", "name", "default"),
    [
        ("class T", "type", "class", "T", None),
        ("typename T = int", "type", "typename", "T", "int"),
        ("class", "type", "class", "", None),
        ("int N = 1 << 2", "value", "int", "N", "1 << 2"),
        ("flagged", "value", "flagged", "", None),
        ("key_size KeySize = classify<T>()", "value", "key_size", "KeySize", "classify<T>()"),
        ("template <class> class C", "template", "template <class> class", "C", None),
    ],
)
def test_a_parameter_gives_kind_type_name_and_default(parameter, kind, spelled_type, name, default):
    data = f"template <class U, {parameter}>\nstruct sm80_tuning;".encode()
    (family,) = read_header("x.cuh", data).families
    found = family.parameters[1]
    assert (found.kind, found.type, found.name, found.default) == (
        kind,
        spelled_type,
        name,
        default,
    )
    assert (found.spelling, data[slice(*found.span)].decode()) == (parameter, parameter)
    assert found.label == (name or spelled_type)


@pytest.mark.parametrize(
    "encode", [lambda d: d.replace(b"\n", b"\r\n"), lambda d: b"\xef\xbb\xbf" + d]
)
def test_line_ends_and_a_byte_order_mark_change_nothing_but_offsets(encode):
    data = (MINI / "tuning_sift.cuh").read_bytes()
    plain, other = read_header("x.cuh", data), read_header("x.cuh", encode(data))
    bare = {
        "span",
        "value_span",
        "args_span",
        "arg_spans",
        "inherits_span",
        "body_span",
        "comment_span",
        "guard_span",
    }

    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in bare}
        return [strip(v) for v in value] if isinstance(value, (list, tuple)) else value

    assert strip(plain.model_dump()["families"]) == strip(other.model_dump()["families"])
    changed = encode(data)
    for family in other.families:
        for entry in family.entries:
            for member in entry.members:
                assert changed[slice(*member.value_span)].decode() == member.spelling


def test_bytes_of_another_encoding_are_fine_in_comments():
    (entry,) = read_entries("// caf\xe9\ntemplate <> struct sm90_tuning<int, 1> {};")
    assert entry.remarks == ("café",)
    data = wrap("// caf?\ntemplate <> struct sm90_tuning<int, 1> {};").replace(b"?", b"\xe9")
    (family,) = read_header("x.cuh", data).families
    assert family.entries[1].remarks == ("café",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"int a[3;", "x.cuh:1:6: '[' is never closed"),
        (
            b"namespace a {\nint b;\n",
            "x.cuh:1:13: '{' is never closed\n  namespace a {\n              ^",
        ),
        (b"int a;\n}\n", "x.cuh:2:1: '}' has no opening bracket\n  }\n  ^"),
        (b"f(\n]", "x.cuh:2:1: ']' does not close the '(' of line 1\n  ]\n  ^"),
        (b"int a; /* text", "x.cuh:1:8: unterminated comment\n  int a; /* text\n         ^^"),
        (
            b'auto a = "text;\n',
            'x.cuh:1:10: unterminated string\n  auto a = "text;\n           ^',
        ),
        (b'R"x(text)y"', 'x.cuh:1:2: unterminated raw string\n  R"x(text)y"\n   ^^'),
        (b"#if A\nint a;\n", "x.cuh:1:1: #if without #endif\n  #if A\n  ^"),
        (b"#endif\n", "x.cuh:1:1: #endif without #if\n  #endif\n  ^"),
        (b"#else\n", "x.cuh:1:1: #else without #if\n  #else\n  ^"),
        (
            b"int\0 a;",
            "x.cuh:1:4: NUL byte: this is not a text file (perhaps UTF-16)\n"
            "  int\N{SYMBOL FOR NULL} a;\n     ^",
        ),
        (
            b"int caf\xe9;",
            "x.cuh:1:8: byte outside a comment that is not UTF-8\n  int café;\n         ^",
        ),
        (
            wrap("template <> struct sm90_tuning<int, 1> { static constexpr int a 7; };"),
            "x.cuh:4:42: cannot read this member\n"
            "  template <> struct sm90_tuning<int, 1> { static constexpr int a 7; };\n"
            + " " * 43
            + "^\n  Expected: static constexpr TYPE NAME = VALUE; or: using NAME = TYPE;",
        ),
        (
            b"struct sm_90_tuning { };\n",
            "x.cuh:1:1: no tuning family recognized, although the header contains 'struct sm'\n"
            "  struct sm_90_tuning { };\n  ^^^^^^^^^^^^^^^^^^^\n"
            "  A family is a class template named smNN_\N{HORIZONTAL ELLIPSIS}, "
            "for example sm90_tuning.",
        ),
        (
            b"#define T template\nT <class A> struct sm90_tuning;\n",
            "x.cuh:2:1: T is a macro of line 1; policygen does not expand it\n"
            "  T <class A> struct sm90_tuning;\n  ^\n"
            "  Write it out; policygen does not expand macros.",
        ),
    ],
)
def test_what_is_broken_is_told_with_its_place(data, message):
    with pytest.raises(SourceError) as caught:
        read_header("x.cuh", data)
    text = str(caught.value)
    assert text == message if "\n" in message else text.startswith(message)


def test_a_header_cut_between_its_namespaces_is_broken_too():
    data = wrap("template <> struct sm90_tuning<int, 1> {};")
    whole = data[: data.index(b"CUB_NAMESPACE_END")]
    with pytest.raises(SourceError, match=r"x\.cuh:6:1: expected '}'"):
        read_header("x.cuh", whole)


def test_branches_of_a_condition_may_share_a_closing_brace():
    data = wrap(
        "#if A\nnamespace a {\n#else\nnamespace b {\n#endif\n"
        "template <> struct sm90_tuning<int, 1>;\n}"
    )
    assert read_header("x.cuh", data).families


def test_a_file_of_another_kind_is_empty():
    assert read_header("x.cuh", b"int a;").families == ()


def test_a_plain_struct_is_a_helper_and_no_family():
    (family,) = read(
        "struct sm100_tuning_values { int items; };\ntemplate <> struct sm90_tuning<int, 1> {};"
    )
    assert family.name == "sm90_tuning"


@pytest.mark.parametrize(
    "text",
    [
        "struct small_buffer_policy {};",
        "struct smem_storage { int a; };",
        "struct sm100_tuning_values { int items; };",
        "// the struct sm90_tuning is gone",
    ],
)
def test_a_struct_of_a_like_name_is_not_mistaken_for_a_tuning(text):
    assert read_header("x.cuh", text.encode()).families == ()


@pytest.mark.parametrize(
    "text",
    [
        "template <class T> struct smXX_tuning;",
        "template <class T> struct sm_90_tuning {};",
        "// struct sm90_tuning<int> { static constexpr int items = 1;",
    ],
)
def test_a_tuning_in_an_unknown_form_is_not_passed_over(text):
    with pytest.raises(SourceError, match="no tuning family recognized"):
        read_header("x.cuh", text.encode())


def test_format_off_regions_are_told_even_when_they_never_end():
    data = b"// clang-format off\n// clang-format off\ntemplate <class T> struct sm10_b;"
    header = read_header("x.cuh", b"// clang-format on\n" + data)
    assert header.format_off == ((19, 19 + len(data)),)
    assert header.families[0].entries[0].format_off
