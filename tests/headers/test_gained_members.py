# ruff: noqa: E501  the text of a header
"""A selector gets a member for what a new first return must test, if it has none of its name."""

import pytest

from policygen.bindings.load import site_of
from policygen.errors import InputError
from policygen.headers.dialects import Selectors
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_header
from policygen.headers.selectors.nearest import HeaderReturns
from policygen.headers.selectors.return_edits import _member_changes
from policygen.headers.spelling import edits_of, splice
from policygen.headers.text import Text
from policygen.model.selection import Selected
from policygen.model.trees import BoundVersion, GainedMember
from tests.planning.pretend import CUB
from tests.planning.wanted import benchmark

HEADER = """\
#include <cub/agent/agent_reduce.cuh>
#include <cub/util_device.cuh>

#include <cuda/std/concepts>

namespace detail::reduce
{
struct ReducePolicy
{
  int threads_per_block;
};
struct policy_selector
{
  type_t accum_t;
  op_kind_t operation_t;
  int accum_size; // in bytes
  int offset_size;
  determinism_t determinism = determinism_t::run_to_run; //!< not for sums

  constexpr auto get_two_phase_tuning(compute_capability cc) const -> ReducePolicy
  {
    const determinism_t other = determinism;
    return ReducePolicy{scaled(accum_size)};
  }
};

// for kernels
template <typename AccumT, typename OffsetT, typename ReductionOpT, determinism_t Determinism>
struct policy_selector_from_types
{
  constexpr auto operator()(compute_capability cc) const -> ReducePolicy
  {
    constexpr auto policies = policy_selector{classify_type<AccumT>, op<ReductionOpT>, int{sizeof(AccumT)}, sizeof(OffsetT), Determinism};
    return policies(cc);
  }
};
} // namespace detail::reduce
"""
INCLUDE = "#include <cub/agent/agent_reduce.cuh>\n"
LAST = "  determinism_t determinism = determinism_t::run_to_run; //!< not for sums\n"
ONE_LINE = (
    "{classify_type<AccumT>, op<ReductionOpT>, int{sizeof(AccumT)}, sizeof(OffsetT), Determinism};"
)
MORE_LINES = """{
      classify_type<AccumT>, op<ReductionOpT>, int{sizeof(AccumT)}, sizeof(OffsetT), Determinism, input_of<AccumT>};"""
MEMBER = GainedMember(
    type="type_t",
    default="type_t::other",
    argument="input_of<AccumT>",
    template="// what is compared\ntemplate <typename T>\ninline constexpr auto input_of = 1;\n",
    includes=("cub/util_device.cuh", "cub/thread/thread_operators.cuh"),
    axis="T",
    values={"I8": "int8"},
)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_member_is_last_with_a_default_and_given_where_the_types_are_known(ending):
    data = HEADER.replace("\n", ending).encode()
    edits = edits_of(
        data, list(_member_changes(HeaderReturns(Text("x", data), ()), "input_t", MEMBER)), "why"
    )
    written = splice("x", data, sorted(edits, key=lambda edit: edit.span)).decode()
    expected = HEADER
    for old, new in (
        (INCLUDE, f"{INCLUDE}#include <cub/thread/thread_operators.cuh>\n"),
        ("struct policy_selector\n", f"{MEMBER.template}\nstruct policy_selector\n"),
        (LAST, f"{LAST}  type_t input_t            = type_t::other;\n"),
        (ONE_LINE, MORE_LINES),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert written == expected.replace("\n", ending)


EXTREMA = benchmark("3.6.0", "reduce.arg_extrema")
TRAITS = {
    "accum_t": "other",
    "operation_t": "other",
    "accum_size": 8,
    "determinism": "run_to_run",
}


def first(text, traits, version="3.6.0", **axes):
    """Where the return of a workload comes first."""
    name, data = "tuning_reduce.cuh", text.encode()
    tree = CUB.model_copy(update={"dialect": "selectors", "version": version})
    sources = TuningTree(tree, {name: read_header(name, data)}, {name: data})
    return Selectors(sources, "sm107").first(
        EXTREMA, Selected({}, traits=traits), (EXTREMA.name, (*axes.items(),))
    )


def test_a_return_tests_the_member_and_the_size_that_tells_other_operators_apart():
    spot = first(HEADER, TRAITS, T="I16", Operation="arg_min")
    assert spot.gained == site_of(EXTREMA, BoundVersion("3.6.0"), "selectors")[1].gains
    assert spot.conditions == (
        "operation_t == op_kind_t::other",
        "input_t == type_t::int16",
        "accum_size == 8",
    )
    # Nothing else of the selector tells the same.
    assert set(spot.tests) == {"accum_t", "offset_size", "determinism"}


@pytest.mark.parametrize(
    ("given", "size"),
    [("classify_arg_input<AccumT, ReductionOpT>", True), ("input<AccumT>", False)],
)
def test_a_selector_that_has_it_already_gets_none(given, size):
    text = HEADER.replace(LAST, f"{LAST}  type_t input_t = type_t::other;\n")
    spot = first(
        text.replace("Determinism}", f"Determinism, {given}}}"), TRAITS | {"input_t": "float64"}
    )
    assert spot.gained == {}
    assert spot.conditions[1] == "input_t == type_t::float64"
    # Where upstream added it, operators have their own kinds.
    assert ("accum_size == 8" in spot.conditions) is size


@pytest.mark.parametrize(
    ("version", "axes"), [("3.6.0", {"T": "U8"}), ("3.6.0", {}), ("3.5.0", {"T": "I8"})]
)
def test_a_type_of_no_binding_and_a_tree_without_its_operators_have_no_place(version, axes):
    with pytest.raises(
        InputError, match=r"get_two_phase_tuning that can test operation_t, input_t"
    ):
        first(HEADER, TRAITS, version, **axes)
