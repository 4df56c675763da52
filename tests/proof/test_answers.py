# ruff: noqa: E501  a row of a table is one line
from contextlib import suppress
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen.errors import InputError
from policygen.proof import ask, probe
from policygen.proof.answers import key, pack, plain, read_answers, unpack, value

CUB = "cub::CUB_300001_SM_900"
PROBE = f"{CUB}::policygen_probe"
NOTHING = "the probe's PTX contains no answers\n  Please report this."
UNREADABLE = "the probe's PTX contains an unreadable answer: "


def row(*facts: str) -> str:
    """What `__PRETTY_FUNCTION__` says of a row."""
    listed = "; ".join(f"Answers = {PROBE}::{fact}" for fact in facts)
    return f"static constexpr const char *{PROBE}::row<Answers...>::text() [with {listed}]"


def ptx(*texts: str | bytes) -> str:
    """Constants as nvcc 13.2 writes them."""
    lines = [".version 9.2", ".target sm_90", ".address_size 64", ""]
    for number, text in enumerate(texts, start=1):
        data = (text.encode() if isinstance(text, str) else text) + b"\0"
        listed = ", ".join(map(str, data))
        lines.append(f".global .align 1 .b8 __unnamed_{number}[{len(data)}] = {{{listed}}};")
        lines.append(
            f".visible .global .align 8 .u64 answer_{number} = generic(__unnamed_{number});"
        )
    return "\n".join(lines)


def test_rows_come_under_their_numbers() -> None:
    text = ptx(row("value<7>", "value<128>"), row("value<0>", "value<64>", "type<float>"))
    assert read_answers(text) == {
        7: (f"{PROBE}::value<128>",),
        0: (f"{PROBE}::value<64>", f"{PROBE}::type<float>"),
    }


def shared(*numbers: int) -> str:
    """What `__PRETTY_FUNCTION__` says of what a workload's rows share."""
    names = ["First", "Count", *["Facts"] * (len(numbers) - 2)]
    listed = "; ".join(f"int {name} = {n}" for name, n in zip(names, numbers, strict=True))
    name = f"{PROBE}::shared<First, Count, Facts...>::text()"
    return f"static constexpr const char *{name} [with {listed}]"


def test_rows_that_repeat_others_are_told_once() -> None:
    """Of three rows, the second repeats the first."""
    told = (row("value<4>", "value<128>"), row("value<6>", "value<64>"))
    first, other = (f"{PROBE}::value<128>",), (f"{PROBE}::value<64>",)
    assert read_answers(ptx(*told, shared(4, 3, 0, 0, 2))) == {4: first, 5: first, 6: other}
    besides = (90, 90, 100, 1, 0, 0)
    assert read_answers(ptx(shared(4, 3, 0, 0, 2, *besides), *told)) == {
        4: (*first, "value<90>", "value<true>"),
        5: (*first, "value<90>", "value<false>"),
        6: (*other, "value<100>", "value<false>"),
    }


@pytest.mark.parametrize(
    "numbers",
    [
        (4, 3, 0, 0, 1),  # a row that is not told
        (4, 3, 0, 2, 2),  # one that comes later
        (4, 3, 0, 0),  # too few
        (4, 3, 0, 0, 2, 90),  # neither nothing nor all besides
        (4, 0),
        (4, -1, 0),
        (9, 1, 0),
    ],
)
def test_rows_that_repeat_what_is_not_told_are_refused(numbers: tuple[int, ...]) -> None:
    told = (row("value<4>", "value<128>"), row("value<6>", "value<64>"))
    with pytest.raises(InputError, match="an unreadable answer"):
        read_answers(ptx(*told, shared(*numbers)))


@pytest.mark.parametrize(
    "more",
    [
        row("value<4>", "value<9>"),  # another answer to what is told
        row("value<5>", "value<9>"),  # one to what repeats another
        shared(4, 3, 0, 1, 2),
        shared(6, 1, 0),
    ],
)
def test_a_header_that_holds_an_answer_is_found_out(more: str) -> None:
    told = (row("value<4>", "value<128>"), row("value<5>", "value<9>"), row("value<6>", "value<6>"))
    genuine = (told[0], told[2], shared(4, 3, 0, 0, 2))
    assert len(read_answers(ptx(*genuine))) == 3
    with pytest.raises(InputError, match=r"two answers to question [456]|unreadable answer"):
        read_answers(ptx(*genuine, more))


def test_the_same_answer_twice_is_one() -> None:
    assert read_answers(ptx(row("value<4>", "value<1>"), row("value<4>", "value<1>")))


def test_what_rows_share_is_numbers() -> None:
    text = shared(4, 1, 0).replace("Count = 1", "Count = x")
    with pytest.raises(InputError, match="an unreadable answer"):
        read_answers(ptx(row("value<4>", "value<1>"), text))


def test_a_row_may_have_no_facts() -> None:
    assert read_answers(ptx(row("value<3>"))) == {3: ()}


@pytest.mark.parametrize(
    "fact",
    [
        "value<-1>",
        "type<const char *(*)(int, float)>",
        "type<int [3]>",
        "type<cuda::std::__4::array<std::pair<int, cuda::std::__4::complex<float>>, 2UL>>",
        "family<value<4>, type<cub::policy<int, 7>>, value<cub::offset_size::_4>>",
    ],
)
def test_a_fact_stays_whole(fact: str) -> None:
    """`;` and `,` inside brackets separate nothing."""
    found = read_answers(ptx(row("value<0>", "value<1>", fact, "value<2>")))
    assert found == {0: (f"{PROBE}::value<1>", f"{PROBE}::{fact}", f"{PROBE}::value<2>")}


def test_packed_answers_are_the_same() -> None:
    rows = [row(f"value<{i}>", "type<float>", f"value<{i % 3}>") for i in range(40)]
    text = ptx(*rows, row("value<99>"))
    assert unpack(pack(text)) == read_answers(text)
    assert pack(text).count("type<float>") == 1


def test_other_constants_are_no_answers() -> None:
    text = ptx("a message", b"\xff\xfe", b"", row("value<0>"), b"policygen_probe::rows<")
    assert read_answers(text) == {0: ()}


@pytest.mark.parametrize("text", ["", ptx(), ptx("a message"), ptx(b"\xff"), ptx("row<int>")])
def test_no_answer_is_an_error(text: str) -> None:
    with pytest.raises(InputError) as raised:
        read_answers(text)
    assert str(raised.value) == NOTHING


@pytest.mark.parametrize(
    ("damaged", "shown"),
    [
        ("policygen_probe::row<", "policygen_probe::row<"),
        ("policygen_probe::row<> [with A = value<x>]", "policygen_probe::row<> [with A = value<x>]"),
        ("policygen_probe::row<> [with A = 7]", "policygen_probe::row<> [with A = 7]"),
        ("policygen_probe::row<> [with A = >1<]", "policygen_probe::row<> [with A = >1<]"),
        (b"policygen_probe::row<\xff [with A = value<\xff>]", "policygen_probe::row<\ufffd [with A = value<\ufffd>]"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_is_shown(damaged: str | bytes, shown: str) -> None:
    with pytest.raises(InputError) as raised:
        read_answers(ptx(row("value<0>"), damaged))
    assert str(raised.value) == f"{UNREADABLE}{shown}\n  Please report this."


def test_bytes_that_are_not_utf8_stand_for_themselves() -> None:
    data = row("value<0>", "type<\N{LATIN SMALL LETTER E WITH ACUTE}>").encode("latin-1")
    assert read_answers(ptx(data)) == {0: (f"{PROBE}::type<\ufffd>",)}


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("128", 128),
        ("-1", -1),
        ("0", 0),
        ("688U", 688),
        ("4UL", 4),
        ("-5L", -5),
        ("18446744073709551615ULL", 2**64 - 1),
        ("-9223372036854775807LL", -(2**63) + 1),
        ("true", True),
        ("false", False),
        (f"{CUB}::LOAD_CA", "LOAD_CA"),
        (f"{CUB}::detail::scan::keep_rejects::_yes", "_yes"),
        ("<unnamed>::LOAD_CA", "LOAD_CA"),
        ("(anonymous namespace)::cub::LOAD_CA", "LOAD_CA"),
        (f"({CUB}::BlockLoadAlgorithm)7", "(BlockLoadAlgorithm)7"),
        ("(<unnamed>::E)5", "(E)5"),
        ("nullptr", "nullptr"),
    ],
)
def test_a_value(inside: str, expected: object) -> None:
    found = value(f"{PROBE}::value<{inside}>")
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("float", "float"),
        ("unsigned __int128", "unsigned __int128"),
        (f"{CUB}::detail::fixed_delay_constructor_t<688U, 1140U>", "fixed_delay_constructor_t<688, 1140>"),
        (f"{CUB}::detail::no_delay_constructor_t<450U>", "no_delay_constructor_t<450>"),
        ("cuda::std::__4::complex<cuda::std::__4::complex<float>>", "complex<complex<float>>"),
        ("<unnamed>::U<<unnamed>::Anon>", "U<Anon>"),
        ("cub::Outer<cub::In>::Inner", "Outer<In>::Inner"),
        ("cub::Outer<cub::In>::Inner::Deep", "Outer<In>::Inner::Deep"),
        ("::cuda::std::plus<::cuda::std::int8_t, (::cub::E)1>", "plus<int8_t, (E)1>"),
        ("cub::<unnamed>::U", "U"),
        ("int (cub::A::*)(cub::B)", "int (A::*)(B)"),
        ("cub::a<-1, 2UL, cub::b::_4>", "a<-1, 2, _4>"),
        ("sm90U", "sm90U"),
    ],
)  # fmt: skip
def test_a_type(inside: str, expected: str) -> None:
    assert value(f"{PROBE}::type<{inside}>") == expected
    assert plain(inside) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("family<value<-1>>", (-1, ())),
        ("family<{0}::value<12>, {0}::type<int>>", (12, ("int",))),
        (
            "{0}::family<{0}::value<7>, {0}::type<cub::a<int, cub::b<2UL>>>,"
            " {0}::value<cub::offset_size::_4>,"
            " {0}::value<4UL>, {0}::value<true>>",
            (7, ("a<int, b<2>>", "_4", "4", "true")),
        ),
    ],
)  # fmt: skip
def test_a_key(text: str, expected: tuple[int, tuple[str, ...]]) -> None:
    assert key(text.format(PROBE)) == expected


HALVES = st.sampled_from(
    [b"policygen_probe::row<", b"[with ", b" = ", b"value<", b">", b";", b"<", b"1"]
)
DAMAGED = st.lists(HALVES | st.binary(max_size=6), max_size=12).map(b"".join)


@given(st.lists(DAMAGED | st.binary(), min_size=1, max_size=4))
def test_any_bytes_are_read_or_refused(texts: list[bytes]) -> None:
    with suppress(InputError):
        assert read_answers(ptx(*texts))


FACTS = st.recursive(
    st.sampled_from(["int", "-1", "4UL", "cub::_4", "true"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(
        lambda args: f"cub::t<{', '.join(args)}>"
    ),
    max_leaves=8,
)


@given(st.lists(FACTS, max_size=5), st.integers(0, 10**6))
def test_whatever_was_answered_is_read_back(facts: list[str], number: int) -> None:
    asked = [f"type<{fact}>" for fact in facts]
    found = read_answers(ptx(row(f"value<{number}>", *asked)))
    assert found == {number: tuple(f"{PROBE}::{fact}" for fact in asked)}
    args = ", ".join(f"{PROBE}::{fact}" for fact in asked)
    read = key(f"{PROBE}::family<{PROBE}::value<{number}>{', ' * bool(args)}{args}>")
    assert read == (number, tuple(plain(fact) for fact in facts))


def test_answers_that_are_missing_are_counted() -> None:
    query = SimpleNamespace(spots=[("T=I8", "sm90"), ("T=I16", "sm90")])
    batch = SimpleNamespace(queries=[query], whole=True, marked=False)
    told = r"the probe's PTX lacks 1 of 2 answers\n  It was not judged\. Check whether this nvcc"
    with pytest.raises(InputError, match=told):
        list(probe._read(batch, pack(ptx(row("value<0>", "value<1>")))))


def test_a_delay_that_no_binding_knows_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        ask._delay("random")
    assert str(caught.value) == (
        "unknown delay constructor 'random'\n  Add it to schemas/bindings/types.toml."
    )
