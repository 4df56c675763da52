"""Expressions of kernels' files: what they come to, here and in C++, and what is none."""

import subprocess
from random import Random

import pytest
from pydantic import TypeAdapter, ValidationError

from policygen.errors import InputError
from policygen.model.expression import DEPTH, LIMIT, Expression, ExpressionText

NAMES = {"elements": 1000, "tpb": 96, "ipt": 7, "zero": 0, "less": -5}
VALUES = {
    "7": 7,
    "1_000 + 1": 1001,
    " tpb*ipt ": 672,
    "elements / tpb": 10,
    "elements // tpb": 10,
    "elements % tpb": 40,
    "1 << ipt": 128,
    "elements >> 3": 125,
    "1 << 2 + 1": 8,
    "-ipt + 3": -4,
    "tpb * ipt * 4 <= 49152": 1,
    "tpb != 96 || ipt == 7 && !zero": 1,
    "!tpb + 1": 1,
    "!!tpb * 3": 3,
    "!tpb == zero": 1,
    "(tpb > ipt) << 40": 1 << 40,
    "less < zero": 1,
    "min(ipt, max(zero, less)) + 1": 1,
    "ceil_div(elements, tpb * ipt)": 2,
    "ceil_div(zero, 5)": 0,
    "zero != 0 && 1 / zero": 0,
    "tpb >= 96": 1,
}
BOUND = """\
namespace policygen_kernel
{
constexpr long long ceil_div(long long left, long long right) { return (left + right - 1) / right; }
constexpr long long min(long long left, long long right) { return left < right ? left : right; }
constexpr long long max(long long left, long long right) { return left < right ? right : left; }
}
"""


@pytest.mark.parametrize("text", VALUES)
def test_it_comes_to_a_number(text):
    assert Expression(text).value(NAMES) == VALUES[text]


def test_it_is_as_deep_as_it_may_be():
    deepest = "-" * (DEPTH - 1) + "2"
    assert abs(Expression(deepest).value({})) == 2
    with pytest.raises(InputError, match="nested too deeply"):
        Expression(f"-{deepest}").value({})


def test_it_asks_for_names_and_not_for_functions():
    assert Expression("min(a, b * 2) < ceil_div(a, c)").names == {"a", "b", "c"}
    assert Expression("1 + 2").names == frozenset()


def random_text(draw, depth):
    """An expression with parentheses around each part; its names are never negative."""
    kind = draw.randrange(7) if depth else draw.randrange(2)
    if kind == 0:
        return draw.choice(["elements", "tpb", "ipt", "zero"])
    if kind == 1:
        return str(draw.choice([0, 1, 3, 62, 4096]))
    left, right = (random_text(draw, depth - 1) for _ in range(2))
    if kind == 2:
        return f"({left} {draw.choice(['<', '<=', '>', '>=', '==', '!=', '&&', '||'])} {right})"
    if kind == 3:
        return f"(!{left})"
    if kind == 4:
        return f"{draw.choice(['min', 'max', 'ceil_div'])}({left}, {right})"
    return f"({left} {draw.choice(['+', '*', '/', '%', '<<', '>>'])} {right})"


def in_python(text):
    """The same of what Python itself makes of it."""
    plain = text.replace("/", "//").replace("(!", "(not ")
    names = {**NAMES, "min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}
    return int(eval(plain, {"__builtins__": {}}, names))


def test_random_ones_come_to_what_python_and_cpp_make_of_them(tmp_path):
    draw = Random(7)
    found = {}
    while len(found) < 400:
        text = random_text(draw, 4)
        try:
            found[text] = Expression(text).value(NAMES)
        except InputError as error:
            words = str(error)
            assert any(one in words for one in ("zero", "too large", "shift")), words
            continue
    plain = [text for text in found if "&&" not in text and "||" not in text]
    assert [found[text] for text in plain] == [in_python(text) for text in plain]
    values = {**{t: VALUES[t] for t in VALUES if "/ zero" not in t}, **found}
    checks = [f"static_assert({Expression(t).cpp} == {v}ll);" for t, v in values.items()]
    known = [f"constexpr int {name} = {value};" for name, value in NAMES.items()]
    unit = tmp_path / "unit.cpp"
    unit.write_text("\n".join([BOUND, *known, *checks, ""]))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", str(unit)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tpb / zero", "tpb / zero: integer division or modulo by zero"),
        ("ceil_div(tpb, zero)", "by zero"),
        ("tpb % zero", "by zero"),
        ("1 << 62", "62 is not a valid shift count"),
        ("1 << less", "-5 is negative"),
        ("less / 2", "less / 2: -5 is negative and cannot be divided or shifted"),
        ("7 % less", "-5 is negative"),
        ("less >> 1", "-5 is negative"),
        ("ceil_div(less, 2)", "-5 is negative"),
        ("nothing + 1", "nothing is not known"),
        (f"{LIMIT - 1} + 1", "it is too large"),
        (f"-{LIMIT - 1} - 1", "it is too large"),
        (f"{LIMIT - 1} << 61", "it is too large"),
    ],
)
def test_what_comes_to_no_number_is_told_with_it(text, told):
    with pytest.raises(InputError) as raised:
        Expression(text).value(NAMES)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "something in it is missing"),
        ("a b", "something in it is missing or out of place"),
        ("a ** 2", "a ** 2 is not integer arithmetic"),
        ("a.b", ": a.b is not integer"),
        ("a[0]", ": a[0] is not integer"),
        ("__import__('os')", ": __import__('os') is not integer"),
        ("a / print(1, 2 / b) && !a", ": print(1, 2 / b) is not integer"),
        ("min(1)", ": min(1) is not integer"),
        ("min(1, b=2)", ": min(1, b=2) is not integer"),
        ("min(*a)", ": min(*a) is not integer"),
        ("min(1, 2)(3, 4)", ": min(1, 2)(3, 4) is not integer"),
        ("1 if a && !b else 2", ": 1 if a && !b else 2 is not integer"),
        ("a < b < c", ": a < b < c is not integer"),
        ("a in b", ": a in b is not integer"),
        ("lambda: 1", ": lambda: 1 is not integer"),
        ("[1 for a in b]", ": [1 for a in b] is not integer"),
        ("(a := 1)", ": a := 1 is not integer"),
        ("'text'", ": 'text' is not integer"),
        ("True", ": True is not integer"),
        ("a + größe", ": größe is not integer"),
        ("a | b", ": a | b is not integer"),
        ("+a", ": +a is not integer"),
        ("1.5", "1.5 is not allowed in it"),
        ("0x10", "0x10 is not allowed in it"),
        ("1or 2", "1or is not allowed in it"),
        ("a and b", "and is not allowed in it"),
        ("not a", "not is not allowed in it"),
        ("~a", "~ is not allowed in it"),
        ("a # b", "# is not allowed in it"),
        ("a\0b", "something in it is missing"),
        (f"{LIMIT}", f": {LIMIT} is too large"),
        ("9" * 5000, ""),
        ("-" * (DEPTH + 1) + "a", "it is nested too deeply"),
        ("min(a, " * DEPTH + "a" + ")" * DEPTH, "it is nested too deeply"),
        ("(" * 300 + "a" + ")" * 300, "something in it is missing"),
        ("-" * 100_000 + "a", ""),
        ("a; b", "something in it is missing"),
        ("a\nb", "something in it is missing"),
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.filterwarnings("error")
def test_what_is_more_than_arithmetic_is_refused_with_what_there_is(text, told):
    with pytest.raises(InputError) as raised:
        _ = Expression(text).tree
    assert told in str(raised.value)
    assert "min, max, ceil_div" in raised.value.remedy


def test_it_is_read_where_a_file_is():
    adapter = TypeAdapter(ExpressionText)
    assert adapter.validate_python("a * 2") == "a * 2"
    for text in ("", "a.b", "a" * 401):
        with pytest.raises(ValidationError):
            adapter.validate_python(text)
