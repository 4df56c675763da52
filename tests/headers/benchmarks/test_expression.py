import pytest

from policygen.headers.expressions import evaluate

NAMES = {"ONE": 1, "ZERO": 0, "defined ONE": 1, "defined NOT": 0, "a::b": 7}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0x1F", 31),
        ("010", 8),
        ("08", 8),
        ("1'000'000", 1_000_000),
        ("64 * 1024", 65536),
        ("1 << 20", 1 << 20),
        ("256 >> 4", 16),
        ("2 + 3 * 4 - 1", 13),
        ("(2 + 3) * 4", 20),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("~0", -1),
        ("+5", 5),
        ("6 & 3 | 8 ^ 1", 11),
        ("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2", 1),
        ("1 == 2 || 0", 0),
        ("!ONE", 0),
        ("defined(ONE) && !defined NOT", 1),
        ("ZERO && UNKNOWN", 0),
        ("UNKNOWN && ZERO", 0),
        ("ONE || UNKNOWN", 1),
        ("ONE(a, >=, 12)", 1),
        ("a::b + 1", 8),
        ("uint32_t{3}", None),
    ],
)
def test_an_expression_has_the_value_that_cpp_gives_it(text: str, value: int | None) -> None:
    assert evaluate(text, NAMES.get) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "UNKNOWN",
        "!UNKNOWN",
        "-UNKNOWN",
        "ONE && UNKNOWN",
        "UNKNOWN || ZERO",
        "UNKNOWN + 1",
        "1 +",
        "(1",
        ")",
        "1 2",
        "ONE(1",
        "defined(ONE",
        "1 / 0",
        "1 % 0",
        "1 << 64",
        "1 >> -1",
        "1 << 63 << 63",
        '"text"',
        "1.5",
        "(" * 60 + "1" + ")" * 60,
        "1" + " + 1" * 400,
    ],
)
def test_what_is_unknown_or_no_integer_has_no_value(text: str) -> None:
    assert evaluate(text, NAMES.get) is None
