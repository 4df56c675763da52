import pytest

from policygen.proof.lint_checks import conditions
from policygen.proof.lint_subject import key, normal, overlap, split_template
from tests.headers.headers import read_entries
from tests.proof.lint.toys import entry, find

RULE = "duplicate-key"
FIRST = "template <class T> struct sm90_tuning<T, 4> { static constexpr int items = 4; };\n"


@pytest.mark.parametrize(
    ("body", "at", "line"),
    [
        (FIRST + FIRST, "T, 4", 4),
        (FIRST + FIRST.replace("class T", "typename Key").replace("<T", "<Key"), "Key, 4", 4),
        (FIRST + FIRST.replace("T, 4", "T,4"), "T,4", 4),
        (
            entry(["items = 1"], args="__int128_t, 4") + entry(["items = 1"], args="__int128, 4"),
            "__int128, 4",
            4,
        ),
        (
            entry(["items = 1"], args="::cuda::std::int8_t, 4")
            + entry(["items = 1"], args="int8_t, 4"),
            "int8_t, 4",
            4,
        ),
        (f"#if A()\n{FIRST}#endif\n{FIRST}", "T, 4", 5),
        (f"#if A()\n{FIRST}#if B()\n{FIRST}#endif\n#endif\n", "T, 4", 5),
    ],
)
def test_finds_two_entries_for_the_same_arguments(body, at, line):
    message = f"line {line} specializes the same arguments"
    assert find(RULE, body) == [(at, message)]


def test_of_three_equal_entries_two_are_told():
    assert [message for _, message in find(RULE, FIRST * 3)] == [
        "line 4 specializes the same arguments"
    ] * 2


@pytest.mark.parametrize(
    "body",
    [
        FIRST,
        FIRST + FIRST.replace("T, 4", "T, 8"),
        FIRST + FIRST.replace("T, 4", "float, 4"),
        FIRST + "// " + FIRST,
        f"#if A()\n{FIRST}#else\n{FIRST}#endif\n",
        f"#if A()\n{FIRST}#elif B()\n{FIRST}#endif\n",
        f"#if A()\n{FIRST}#endif\n#if B()\n{FIRST}#endif\n",
        f"#if A() || B() && C()\n{FIRST}#endif\n#if C()\n{FIRST}#endif\n",
        f"{FIRST}#if 0\n{FIRST}#endif\n",
        f"}} namespace other {{ template <class T, int Size> struct sm90_tuning;\n{FIRST}",
    ],
)
def test_leaves_entries_alone_that_are_for_different_arguments(body):
    assert find(RULE, body) == []


@pytest.mark.parametrize(
    ("guard", "parts"),
    [
        (None, set()),
        ("A()", {"A()"}),
        ("A() && (B || C)", {"A()", "(B||C)"}),
        ("A && !( B & 1 )", {"A", "!(B&1)"}),
        ("A || B && C", {"A||B&&C"}),
    ],
)
def test_a_guard_falls_into_its_parts(guard, parts):
    assert conditions(guard) == parts


def test_a_key_does_not_depend_on_names():
    (one, other) = read_entries(
        "template <class A, int B> struct sm90_tuning<pair<A, A>, B> {};\n"
        "template <int B, class C> struct sm90_tuning<pair<C, C>, B> {};"
    )
    assert key(one) == key(other) == ("pair<$0,$0>", "$1")


def test_lists_of_different_lengths_might_overlap():
    (one,) = read_entries("template <> struct sm90_tuning<int, 4> {};")
    assert overlap(one, one.model_copy(update={"args": ("int",)}))


def test_spellings_of_one_type_are_one():
    assert normal("::cuda::std::plus< >") == normal("std::plus<>") == "plus<>"
    assert normal("my::std::thing") == "my::std::thing"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sm90<pair<A, B>, f(1, 2)>", ("sm90", ("pair<A, B>", "f(1, 2)"))),
        ("detail::sm90<4>", ("sm90", ("4",))),
        ("sm90", ("sm90", ())),
        ("sm90<>", ("sm90", ())),
        ("decltype(f<1>(0))", ("decltype(f<1>(0))", ())),
    ],
)
def test_a_base_is_split_into_name_and_arguments(text, parts):
    assert split_template(text) == parts
