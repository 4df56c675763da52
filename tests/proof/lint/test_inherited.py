import pytest

from tests.proof.lint.toys import find

RULE = "same-as-inherited"
# Families as CUB's radix sort has them: a primary template with values, one that inherits it.
FAMILIES = """
template <int Key, int Value> struct sm80_key_tuning
{ static constexpr int threads = 384; static constexpr int items = 23; };
template <> struct sm80_key_tuning<1, 4> {
  static constexpr int threads = 512; static constexpr int items = 19; };
template <class T, int Key, int Value> struct sm100_key_tuning : sm80_key_tuning<Key, Value> {};
"""


def values(threads, items):
    return f"{{ static constexpr int threads = {threads}; static constexpr int items = {items}; }};"


@pytest.mark.parametrize(
    ("body", "at", "message"),
    [
        (
            f"template <> struct sm80_key_tuning<2, 4> {values(384, 23)}",
            "2, 4",
            "the primary template gives the same: threads 384, items 23",
        ),
        (
            f"template <class T> struct sm100_key_tuning<T, 2, 4> {values(384, 23)}",
            "T, 2, 4",
            "the primary template gives the same: threads 384, items 23",
        ),
        (
            f"template <class T> struct sm100_key_tuning<T, 1, 4> {values(512, 19)}",
            "T, 1, 4",
            "the primary template gives the same: threads 512, items 19",
        ),
        (
            "template <class T> struct sm100_key_tuning<T, 1, 4> : sm80_key_tuning<1, 4>"
            " { static constexpr int threads = 512; };",
            "static constexpr int threads = 512;",
            "sm80_key_tuning<1, 4> gives the same threads",
        ),
        (
            "template <class T> struct sm100_key_tuning<T, 2, 4> : sm80_key_tuning<2, 4>"
            " { static constexpr int items = 23; };",
            "static constexpr int items = 23;",
            "sm80_key_tuning<2, 4> gives the same items",
        ),
        # What a value is inherited from may be an argument.
        (
            "template <int Threads> struct sm90_tuning_vals\n"
            "{ static constexpr int threads = Threads; };\n"
            "template <class T> struct sm90_tuning<T, 4> : sm90_tuning_vals<128>"
            " { static constexpr int threads = 128; };",
            "static constexpr int threads = 128;",
            "sm90_tuning_vals<128> gives the same threads",
        ),
        # The base is a partial specialization with parameters of its own.
        (
            "template <class K> struct sm90_tuning<K, 8>\n"
            "{ using delay = detail::no_delay_constructor_t<5>; };\n"
            "template <class T> struct sm90_tuning<T, 4> : sm90_tuning<T, 8>"
            " { using delay = no_delay_constructor_t< 5 >; };",
            "using delay = no_delay_constructor_t< 5 >;",
            "sm90_tuning<T, 8> gives the same delay",
        ),
    ],
)
def test_finds_values_that_are_there_without_being_written(body, at, message):
    assert find(RULE, FAMILIES + body) == [(at, message)]


@pytest.mark.parametrize(
    "body",
    [
        # Only inherits: says on purpose that it is the same.
        "template <class T> struct sm100_key_tuning<T, 1, 4> : sm80_key_tuning<1, 4> {};",
        f"template <class T> struct sm100_key_tuning<T, 1, 4> {values(384, 23)}",
        f"template <> struct sm80_key_tuning<2, 4> {values(384, 22)}",
        # One value more than the primary template has.
        f"template <> struct sm80_key_tuning<2, 4> {values(384, 23)}".replace(
            "};", "static constexpr int vec_size = 1; };"
        ),
        "template <> struct sm80_key_tuning<2, 4> { static constexpr int threads = 384; };",
        # Keeps the entry for all types away from doubles.
        f"template <class T> struct sm100_key_tuning<T, 2, 4> {values(512, 20)}\n"
        f"template <> struct sm100_key_tuning<double, 2, 4> {values(384, 23)}",
        # The primary template is declared only.
        "template <class T> struct sm90_tuning<T, 4> { static constexpr int items = 4; };",
        # An empty body is a veto.
        "template <class T> struct sm90_tuning<T, 4> {};",
        "template <class T> struct sm90_tuning<T, 4> : elsewhere<1>"
        " { static constexpr int items = 4; };",
        "template <class T> struct sm90_tuning<T, 4> : sm80_key_tuning<1, 4>"
        " { static constexpr int items = 20; };",
        # Which specialization a base is depends on what V is.
        "template <class T, int V> struct sm100_key_tuning<T, 7, V> : sm80_key_tuning<1, V>"
        " { static constexpr int threads = 512; };",
        # Two specializations match, and which is closer is C++'s business.
        "template <int V> struct sm80_key_tuning<5, V> { static constexpr int items = 7; };\n"
        "template <int K> struct sm80_key_tuning<K, 6> { static constexpr int items = 7; };\n"
        "template <class T> struct sm100_key_tuning<T, 5, 6> : sm80_key_tuning<5, 6>"
        " { static constexpr int items = 7; };",
        # What no compiler takes: bases that go in a circle.
        "template <class T> struct sm90_tuning<T, 4> : sm90_tuning<T, 4>"
        " { static constexpr int items = 7; };",
        "template <class T> struct sm90_tuning<T, 4> : sm90_tuning<T, 8>"
        " { static constexpr int items = 7; };\n"
        "template <class T> struct sm90_tuning<T, 8> : sm90_tuning<T, 4>"
        " { static constexpr int items = 7; };",
        # A value that is an unknown expression.
        "template <class T> struct sm100_key_tuning<T, 1, 4> : sm80_key_tuning<1, 4>"
        " { static constexpr int threads = some(); };",
        # The same words, but not the same type.
        "template <class U> struct sm90_tuning<U, 8> { using delay = wait<T>; };\n"
        "template <class T> struct sm90_tuning<T, 4> : sm90_tuning<T, 8>"
        " { using delay = wait<T>; };",
        # A list of arguments that relies on defaults.
        "template <class T> struct sm100_key_tuning<T, 1, 4> : sm80_key_tuning<1>"
        " { static constexpr int threads = 512; };",
        "template <class T> struct sm90_tuning<T, 4> : decltype(base())"
        " { static constexpr int threads = 512; };",
    ],
)
def test_leaves_values_alone_that_are_needed_or_meant(body):
    assert find(RULE, FAMILIES + body) == []
