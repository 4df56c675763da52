"""A free function is given the members of the selector that a new return in it tests."""

from types import SimpleNamespace

import pytest

from policygen.headers.scan import read_header
from policygen.headers.selectors import return_edits
from policygen.headers.selectors.nearest import BeforeReturn, HeaderReturns
from policygen.headers.selectors.return_edits import argument_edits
from policygen.headers.spelling import splice
from policygen.headers.text import Text

HEADER = """\
struct policy
{
  int threads;
};
constexpr auto get_sm100_tuning(int size) -> policy
{
  if (size == 1) return {128};
  return {};
}
constexpr auto get_sm107_tuning(int size) -> policy
{
  if (size == 1) return {256};
  return {};
}
struct policy_selector
{
  int size;
  type_t kind;
  constexpr auto operator()(compute_capability cc) const -> policy
  {
    if (cc >= compute_capability{10, 7})
    {
      return get_sm107_tuning(size);
    }
    return get_sm100_tuning(size);
  }
};
constexpr auto elsewhere(int size) -> policy
{
  return get_sm100_tuning(size);
}
"""


@pytest.fixture
def returns():
    data = HEADER.encode()
    return HeaderReturns(Text("x", data), read_header("tuning_x.cuh", data).selectors)


def of(returns, name):
    return next(model for model in returns.returns if model.function.name == name)


def test_members_are_tested_where_they_are_parameters_and_given_where_all_callers_have_them(
    returns,
):
    inside = HEADER.index("if (cc >=")
    assert returns.tests_at(inside) == {"size": "int", "kind": "type_t"}
    assert returns.passable_at(inside) == {}
    newer = of(returns, "get_sm107_tuning").start
    assert (returns.tests_at(newer), returns.passable_at(newer)) == (
        {"size": "int"},
        {"kind": "type_t"},
    )
    # A function without the member calls this one as well.
    assert returns.passable_at(of(returns, "get_sm100_tuning").start) == {}


def test_the_function_and_its_calls_are_given_the_member_once(returns, monkeypatch):
    model = of(returns, "get_sm107_tuning")
    at = BeforeReturn(model, ("kind == type_t::int32",), (("kind", "type_t"),))
    write = SimpleNamespace(new=SimpleNamespace(at=at))
    monkeypatch.setattr(return_edits, "return_of", lambda spot: spot)
    edits = sorted(argument_edits(returns.text, [write, write]), key=lambda edit: edit.span)
    changed = splice("x", HEADER.encode(), edits).decode()
    assert changed == HEADER.replace(
        "get_sm107_tuning(int size)", "get_sm107_tuning(int size, type_t kind)"
    ).replace("get_sm107_tuning(size)", "get_sm107_tuning(size, kind)")
