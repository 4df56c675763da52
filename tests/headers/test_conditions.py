"""Conditions of policy selectors: whether they hold, exclude each other, or say the same."""

import pytest

from policygen.headers.selectors.conditions import Truth, excluded, locals_of, opposites, simplest
from policygen.model.records import Span

TRAITS = {
    "key_size": 4,
    "value_size": 0,
    "key_type": "float32",
    "primitive": True,
    "impl": "Select",
}
CODE = b"""
  const bool has_values = value_size != 0;
  const bool partition  = impl == SelectImpl::Partition;
  constexpr auto kind   = key_type != type_t::other ? primitive_op::yes : primitive_op::no;
  const int round       = round + 1;
"""


def truth(arch="sm90"):
    return Truth(TRAITS, arch, locals_of(CODE, [Span(0, len(CODE))]))


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        ("key_size == 4", True),
        ("key_size == 4 && key_type == type_t::float64", False),
        ("(key_type == type_t::int32 || key_type == type_t::float32)", True),
        ("not has_values", True),
        ("has_values and primitive", False),
        ("partition or primitive", True),
        ("!(key_size == 8)", True),
        ("kind == primitive_op::yes", True),
        ("kind == primitive_op::no", False),
        ("cc >= ::cuda::compute_capability{9, 0}", True),
        ("cc >= ::cuda::compute_capability{10, 0}", False),
        ("unknown_size == 4", None),
        ("unknown_size == 4 && key_size == 8", False),
        ("round == 1", None),
        ("is_primitive(key_size)", None),
        ("key_size: default", None),
    ],
)
def test_a_condition_holds_or_not_or_is_not_known(condition, held):
    assert truth().holds(condition) is held


def test_a_constant_that_two_functions_compute_in_two_ways_is_not_known():
    code = b"const bool flag = key_size == 4;\nconst bool flag = key_size == 8;"
    assert locals_of(code, [Span(0, len(code))]) == {}
    assert locals_of(code, [Span(0, 33)]) == {"flag": "key_size == 4"}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (["key_size == 4"], ["key_size != 4"]),
        (["operation_t != op_kind_t::plus"], ["operation_t == op_kind_t::plus"]),
        (["primitive"], ["!primitive"]),
        (["not primitive"], ["primitive"]),
        (["(a == 1 || a == 2)"], ["a != 1", "a != 2"]),
        (["a == 1", "(b == 1 || b == 2)"], ["!(a == 1 && (b == 1 || b == 2))"]),
        (["a < 4"], ["!(a < 4)"]),
    ],
)
def test_the_opposite_of_facts(facts, found):
    assert opposites(facts) == found


@pytest.mark.parametrize(
    ("fact", "held", "is_excluded"),
    [
        ("key_size == 4", ["key_size == 8"], True),
        ("key_size == 4", ["value_size == 8"], False),
        ("key_size == 4", ["key_size != 4"], True),
        ("key_size != 4", ["key_size == 4"], True),
        ("key_size != 4", ["key_size != 4"], False),
        ("flag", ["not flag"], True),
        ("!flag", ["not flag"], False),
        ("flag", ["other"], False),
        ("t == type_t::int8", ["(t == type_t::int16 || t == type_t::int32)"], True),
        ("t == type_t::int8", ["(t == type_t::int8 || t == type_t::int32)"], False),
        ("(t == type_t::int8 || t == type_t::int16)", ["t == type_t::int32"], True),
        ("(t == type_t::int8 || flag)", ["t == type_t::int32"], False),
    ],
)
def test_what_excludes_a_fact(fact, held, is_excluded):
    assert excluded(fact, held) is is_excluded


def test_what_follows_from_others_is_left_out():
    assert simplest(
        [
            "!(not has_flags && not keep_rejects)",
            "!(has_flags && not keep_rejects)",
            "keep_rejects",
            "size == 8",
            "!(size == 1)",
            "size != 4",
            "type != type_t::int128",
            "!(is_even)",
            "!is_even",
        ]
    ) == ["keep_rejects", "size == 8", "type != type_t::int128", "!is_even"]
