import pytest

from policygen.headers.selectors.functions import Field, returned
from policygen.headers.user.header import comment, condition, split, wrapped

DELAY = (Field("kind", "LookbackDelayAlgorithm"), Field("delay", "unsigned int"))
POLICY = (Field("threads", "int"), Field("delay", "LookbackDelayPolicy", DELAY))
VALUES = {"threads": "128", "delay.kind": "::cub::none", "delay.delay": "0"}
LONG = {**VALUES, "delay.kind": f"::cub::{'very_' * 18}long"}


@pytest.mark.parametrize(
    ("std", "text"),
    [
        (20, "  return {.threads = 128, .delay = {.kind = ::cub::none, .delay = 0}};"),
        (
            17,
            "  return {/* threads */ 128, /* delay */ {/* kind */ ::cub::none, /* delay */ 0}};",
        ),
    ],
)
def test_a_policy_that_fits_is_on_one_line(std, text):
    assert returned(POLICY, VALUES, std, 1) == text


def test_a_policy_that_does_not_fit_has_a_field_on_each_line():
    assert returned(POLICY, LONG, 20, 0).splitlines() == [
        "return {",
        "  .threads = 128,",
        "  .delay = {",
        f"    .kind = {LONG['delay.kind']},",
        "    .delay = 0,",
        "  },",
        "};",
    ]


@pytest.mark.parametrize(
    ("alternatives", "text"),
    [
        ([["A", "B"]], "if constexpr (A && B)"),
        ([["A", "B"], ["C"]], "if constexpr ((A && B)\n              || (C))"),
        (
            [["A" * 60, "B" * 60]],
            f"if constexpr ({'A' * 60}\n              && {'B' * 60})",
        ),
        (
            [["A"], [f"same<T, {'t' * 94}>"]],
            f"if constexpr ((A)\n              || (same<T,\n{' ' * 23}{'t' * 94}>))",
        ),
        (
            [[f"is_same_of_all_of_them<T, {'t' * 98}>"]],
            f"if constexpr (is_same_of_all_of_them<T,\n                  {'t' * 98}>)",
        ),
    ],
)
def test_conditions_break_before_operators_and_behind_commas(alternatives, text):
    assert condition(alternatives, 0) == text


@pytest.mark.parametrize("count", [1, 2])
def test_no_line_of_a_condition_is_too_long_and_none_breaks_too_soon(count):
    widths = set()
    for length in range(30, 70):
        rows = condition([["a" * 40, "b" * length]] * count, 1).splitlines()
        assert max(map(len, rows)) <= 120
        if len(rows) == count:
            widths.add(len(rows[-1]))
    assert max(widths) >= 119


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("f(a, b)", ["x = f(a, b);"]),
        ("f(aaaaaa, bbbbbb, cccccc)", ["x = f(", "  aaaaaa, bbbbbb,", "  cccccc);"]),
        (
            "f(a, std::pair<aaaaaa, bbbbbb, cc>, d)",
            ["x = f(", "  a,", "  std::pair<", "    aaaaaa, bbbbbb,", "    cc>, d);"],
        ),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ["x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;"]),
    ],
)
def test_a_call_that_does_not_fit_has_its_arguments_below(text, rows):
    assert wrapped("x = ", text, ";", 0, 20) == rows


def test_lists_are_split_where_no_bracket_is_open():
    assert split("a, f(b, c), d<e, f>, {}") == ["a", "f(b, c)", "d<e, f>", "{}"]


def test_words_of_a_comment_are_on_as_many_lines_as_they_take():
    assert comment(["one", "two", "three"], "//", 10) == ["// one two", "// three"]
