"""What is said of an entry that nothing selects, on families of a few lines."""

import pytest

from policygen.headers.scan import read_header
from policygen.model.audits import Unreachable
from policygen.model.selection import FamilyKey
from policygen.proof.unreachable import KeysSeen, explain

HEADER = """CUB_NAMESPACE_BEGIN
namespace detail { namespace demo {
enum class flagged { no, yes };
template <class KeyT, class AccumT, flagged, int KeySize> struct sm90_tuning;
template <class KeyT, class AccumT>
struct sm90_tuning<KeyT, AccumT, flagged::no, 2> {
  static constexpr int threads = 64;
  static constexpr int items   = 7;
};
template <class KeyT, class AccumT, flagged, int KeySize> struct sm100_tuning;
ENTRY
template <class T> struct policy_hub {
  template <typename Tuning>
  static auto select_agent_policy(int)
    -> AgentPolicy<Tuning::threads, Tuning::items, Tuning::load_modifier>;
  template <typename Tuning>
  static auto select_agent_policy(long) -> typename DefaultPolicy::type;
  struct Policy900 : ChainedPolicy<900, Policy900, Policy900> {
    using Policy = AgentPolicy<sm90_tuning<T, T, flagged::no, 2>::threads>;
  };
  struct Policy1000 : ChainedPolicy<1000, Policy1000, Policy900> {
    using Policy = decltype(select_agent_policy<sm100_tuning<T, T, flagged::no, 4>>(0));
  };
  using MaxPolicy = Policy1000;
};
}}
CUB_NAMESPACE_END
"""
WHOLE = """{
  static constexpr int threads = 128;
  static constexpr int items = 11;
  static constexpr CacheLoadModifier load_modifier = LOAD_CA;
};"""
ANY_TYPE = "template <class KeyT, class AccumT> struct sm100_tuning<KeyT, AccumT, "
OWN = 7
"""The number of the entry that is explained; others are other entries."""


def why(text, keys, shown=()) -> Unreachable:
    """The explanation of the one entry of the sm100 family; a key is (entry, *arguments)."""
    header = read_header("tuning_demo.cuh", HEADER.replace("ENTRY", text).encode())
    family = header.families[1]
    (entry,) = family.specializations
    seen = KeysSeen({}, {})
    for number, *args in keys:
        key = FamilyKey(tuple(args), number=number)
        seen.note(family.name, key, number if key.args in shown else None, f"T={args[0]} on sm100")
    return explain(header, family, entry, OWN, seen)


def test_an_explanation_names_the_place():
    found = why(f"{ANY_TYPE}flagged::no, 4> {WHOLE}", [])
    assert (found.header, found.family, found.line) == ("tuning_demo.cuh", "sm100_tuning", 11)
    assert found.args == ("KeyT", "AccumT", "flagged::no", "4")


BYTE, SHORT, INT = (
    ("char", "int", "no", "1"),
    ("short", "int", "no", "2"),
    ("int", "int", "no", "4"),
)


@pytest.mark.parametrize(
    ("entry", "keys", "shown", "cause", "reason", "example"),
    [
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {WHOLE}",
            [(1, *BYTE), (2, *SHORT), (OWN, *INT)],
            {BYTE, SHORT},
            "gate",
            "the policy reads the family only where KeySize is 1 or 2",
            "T=int on sm100",
            id="a gate",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {WHOLE}",
            [(OWN, *INT)],
            set(),
            "gate",
            "its key selects it, but the policy does not use its values",
            "T=int on sm100",
            id="a family of which nothing is selected",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {WHOLE}",
            [(OWN, *INT), (1, "float", "int", "no", "4")],
            {("float", "int", "no", "4")},
            "gate",
            "its key selects it, but the policy does not use its values",
            "T=int on sm100",
            id="a gate on something that no argument tells",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {WHOLE.replace('items', 'tune_items')}",
            [(OWN, *INT)],
            set(),
            "missing member",
            "has no items; the selection needs it",
            "T=int on sm100",
            id="a misspelled member",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {{ static constexpr int threads = 1; }};",
            [],
            set(),
            "missing member",
            "has no items, load_modifier; the selection needs it",
            None,
            id="two members, and nobody has the key",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> : sm90_tuning<KeyT, AccumT, flagged::no, 2> {{}};",
            [(OWN, *INT)],
            set(),
            "inherits without",
            "inherits from sm90_tuning<KeyT, AccumT, flagged::no, 2>, which has no load_modifier;"
            " the selection needs it",
            "T=int on sm100",
            id="a base that lacks a member",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {{}};",
            [(OWN, *INT)],
            set(),
            "empty",
            "has no members: workloads with this key get the fallback",
            "T=int on sm100",
            id="an empty entry",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 4> {WHOLE}",
            [(1, *INT), (2, *SHORT)],
            {INT, SHORT},
            "shadowed",
            "another entry of the family is selected for each of its keys",
            None,
            id="a more special entry",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::yes, 4> {WHOLE}",
            [(1, *BYTE), (2, *SHORT), (-1, *INT)],
            {BYTE},
            "argument",
            "flagged is never yes; it is no",
            None,
            id="a value that an argument never has",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::yes, 8> {WHOLE}",
            [(1, *BYTE), (2, *SHORT), (-1, *INT)],
            {BYTE},
            "argument",
            "several conditions exclude it: the nearest workload has flagged no for yes and"
            " KeySize 1 for 8",
            None,
            id="two values that no workload has",
        ),
        pytest.param(
            f"template <> struct sm100_tuning<int, int, flagged::yes, 4> {WHOLE}",
            [(-1, "int", "char", "no", "4"), (-1, "char", "int", "yes", "1")],
            set(),
            "key",
            "several conditions exclude it: the nearest workload has AccumT char for int and"
            " flagged no for yes",
            None,
            id="values that workloads have, and none has most of them",
        ),
        pytest.param(
            f"template <class A> struct sm100_tuning<int, A, flagged::no, 4> {WHOLE}",
            [(1, *BYTE), (OWN, *INT)],
            {BYTE},
            "gate",
            "the policy reads the family only where KeyT is char and KeySize is 1",
            "T=int on sm100",
            id="a gate that may be on either of two",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 8> {WHOLE}",
            [(1, *BYTE), (2, *SHORT), (-1, *INT)],
            {BYTE},
            "argument",
            "KeySize is never 8; it is 1, 2 or 4",
            None,
            id="a value among three",
        ),
        pytest.param(
            f"{ANY_TYPE}flagged::no, 8> {WHOLE}",
            [],
            set(),
            "argument",
            "flagged is never no; it is nothing",
            None,
            id="nothing was tried",
        ),
        pytest.param(
            "template <class AccumT>"
            f" struct sm100_tuning<::cuda::std::int16_t, AccumT, flagged::no, 4> {WHOLE}",
            [(1, *BYTE), (2, *SHORT), (-1, *INT)],
            {BYTE},
            "key",
            "KeyT short never occurs with KeySize 4; it occurs with 2",
            None,
            id="two arguments that never come together",
        ),
        pytest.param(
            f"template <> struct sm100_tuning<int, int, flagged::no, 4> {WHOLE}",
            [(-1, *INT)],
            set(),
            "key",
            "no workload combines its arguments",
            None,
            id="the key is there, and no entry of the family",
        ),
        pytest.param(
            f"template <class T> struct sm100_tuning<int, T, flagged::yes, 4> {WHOLE}",
            [
                (1, "int", "int", "yes", "2"),
                (1, "int", "int", "no", "4"),
                (1, "char", "int", "yes", "4"),
            ],
            {("int", "int", "yes", "2")},
            "key",
            "no workload combines its arguments",
            None,
            id="any two arguments come together, all three do not",
        ),
    ],
)
def test_each_cause_is_told(entry, keys, shown, cause, reason, example):
    found = why(entry, keys, shown)
    assert (found.cause, found.reason, found.example) == (cause, reason, example)


def test_a_member_of_another_policy_is_not_asked_for():
    """Two hubs of a header may read families of the same name in namespaces of their own."""
    other = HEADER.replace("demo", "other").replace("Tuning::load_modifier", "Tuning::vec_size")
    text = HEADER.replace("ENTRY", f"{ANY_TYPE}flagged::no, 4> {WHOLE}") + other.replace(
        "ENTRY", f"{ANY_TYPE}flagged::no, 4> {WHOLE}"
    )
    header = read_header("tuning_demo.cuh", text.encode())
    missing = [
        explain(header, family, entry, OWN, KeysSeen({}, {})).reason
        for family in header.families
        if family.name == "sm100_tuning"
        for entry in family.specializations
    ]
    assert missing == [
        "flagged is never no; it is nothing",
        "has no vec_size; the selection needs it",
    ]


def test_the_entry_that_shadows_is_named_by_its_line():
    text = HEADER.replace("ENTRY", f"{ANY_TYPE}flagged::no, 4> {WHOLE}")
    header = read_header("tuning_demo.cuh", text.encode())
    family = header.families[1]
    seen = KeysSeen({}, {}, lines={1: 47})
    seen.note(family.name, FamilyKey(INT, number=1), 1, "a workload")
    found = explain(header, family, family.specializations[0], OWN, seen)
    assert found.reason == (
        "another entry of the family, that in line 47, is selected for each of its keys"
    )


def test_the_first_workload_that_led_to_an_entry_is_the_example():
    seen = KeysSeen({}, {})
    seen.note("sm100_tuning", FamilyKey(INT, number=1), 1, "the first")
    seen.note("sm100_tuning", FamilyKey(INT, number=1), 1, "the second")
    seen.note("sm100_tuning", FamilyKey(BYTE, number=2), None, "the third")
    assert seen.keys == {"sm100_tuning": {(1, INT): "the first", (2, BYTE): "the third"}}
    assert seen.shown == {"sm100_tuning": {INT}}
