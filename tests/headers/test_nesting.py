"""Returns of a new function stand within each other as those of its model do."""

import pytest

from policygen.headers.selectors.arch_blocks import block_rows, leaving, nested, nested_rows
from policygen.headers.selectors.arch_places import Step


def one(name, *steps, more=()):
    """A return: `if a && b`, `case size == 4`, and what is asked for besides."""
    levels = [
        Step(kind, tuple(facts.split(" && ")))
        for kind, _, facts in (text.partition(" ") for text in steps)
    ]
    asks = [*(fact for level in levels for fact in level.facts), *more]
    return nested(levels, asks, lambda indent: [f"{indent}return {name};"])


def shown(rows):
    return "\n".join(rows)


def body(condition, inner):
    rows = "\n".join(f"  {row}" for row in inner.splitlines())
    return f"if ({condition})\n{{\n{rows}\n}}"


FOUR = one("a", "if k == 4", "if v == 2")
A, B, C = "return a;", "return b;", "return c;"


@pytest.mark.parametrize(
    ("ones", "expected"),
    [
        pytest.param(
            [one("a", "if k == 4", "if v == 2 && plus", more=["t != x"])],
            body("k == 4 && v == 2 && plus && t != x", A), id="one alone",
        ),
        pytest.param(
            [one("a", "if k == 4", "if v == 2"), one("b", "if k == 4", "if v == 8")],
            body("k == 4", f"{body('v == 2', A)}\n{body('v == 8', B)}"), id="what is shared",
        ),
        pytest.param(
            [one("a", "if p", "if k == 4", "if v == 2"), one("b", "if p", "if k == 4")],
            body("p && k == 4", f"{body('v == 2', A)}\n{B}"), id="all that is shared, at once",
        ),
        pytest.param(
            [FOUR, one("b", "if k == 8"), one("c", "if k == 4", "if q")],
            f"{body('k == 4', body('v == 2', A) + chr(10) + body('q', C))}\n{body('k == 8', B)}",
            id="one for something else is passed",
        ),
        pytest.param(
            [FOUR, one("b", "if q"), one("c", "if k == 4", "if v == 8")],
            f"{body('k == 4 && v == 2', A)}\n{body('q', B)}\n{body('k == 4 && v == 8', C)}",
            id="one that may be for the same is not",
        ),
        pytest.param(
            [one("a", "if k == 4"), one("b", "if k == 8")],
            f"{body('k == 4', A)}\n{body('k == 8', B)}", id="nothing is shared",
        ),
    ],
)  # fmt: skip
def test_a_condition_is_said_once_for_those_that_share_it(ones, expected):
    assert shown(nested_rows(ones, "")) == expected


def test_cases_are_those_of_a_switch_by_their_size():
    found = [one("a", "case k == 8"), one("b", "case k == 4", "if v == 2"), one("c", "case k == 2")]
    assert shown(nested_rows(found, "")) == (
        "switch (k)\n{\n"
        "  case 2:\n    return c;\n"
        "  case 4:\n    if (v == 2)\n    {\n      return b;\n    }\n    break;\n"
        "  case 8:\n    return a;\n"
        "  default:\n    break;\n}"
    )


def test_each_case_has_a_switch_where_one_of_them_has():
    found = [
        one("a", "case k == 4", "case v == 2"),
        one("b", "case k == 4", "case v == 1"),
        one("c", "case k == 8", "case v == 1"),
    ]
    inner = "    switch (v)\n    {{\n{}      default:\n        break;\n    }}\n    break;\n"
    case = "      case {}:\n        return {};\n"
    assert shown(nested_rows(found, "")) == (
        "switch (k)\n{\n"
        f"  case 4:\n{inner.format(case.format(1, 'b') + case.format(2, 'a'))}"
        f"  case 8:\n{inner.format(case.format(1, 'c'))}"
        "  default:\n    break;\n}"
    )


def test_one_case_alone_or_one_for_two_values_is_no_switch():
    found = [one("a", "case k == 4"), one("b", "case k == 1 || k == 2")]
    expected = f"{body('k == 4', A)}\n{body('k == 1 || k == 2', B)}"
    assert shown(nested_rows(found, "")) == expected


def test_a_case_that_always_returns_has_no_break():
    found = [one("a", "case k == 4", "if t"), one("b", "case k == 4"), one("c", "case k == 8")]
    assert "return b;\n  case 8:" in shown(nested_rows(found, ""))


def test_what_all_ask_for_besides_is_left_for_first():
    found = [
        one("a", "if k == 4", more=["op == sum", "p"]),
        one("b", "if k == 8", more=["op == sum"]),
    ]
    rows, ones = leaving(found, "")
    assert shown(rows) == f"{body('op != sum', 'return {};')}\n"
    assert [left.asks for left in ones] == [("k == 4", "p"), ("k == 8",)]
    expected = f"{body('k == 4', A)}\n{body('k == 8', B)}"
    assert shown(block_rows(found, "")) == body(
        "op == sum", expected.replace("k == 4", "k == 4 && p")
    )


def test_a_return_that_is_alone_says_all_itself():
    found = [one("a", "if k == 4", more=["op == sum"])]
    assert leaving(found, "") == ([], found)
    assert shown(block_rows(found, "")) == body("k == 4 && op == sum", A)
