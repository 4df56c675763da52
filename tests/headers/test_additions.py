# ruff: noqa: E501  the text of a header
"""Guarded returns that are new, on text: where they go, and what they look like."""

import pytest

from policygen.headers.scan import read_header
from policygen.headers.selectors.additions import add_beside, add_inside, take_over
from policygen.headers.selectors.arch_blocks import add_function, add_in_front
from policygen.headers.selectors.arch_places import arch_function, in_front
from policygen.headers.selectors.conditions import Truth
from policygen.headers.selectors.nearest import (
    BeforeReturn,
    HeaderReturns,
    empty_case,
    gone_before,
    nearest,
)
from policygen.headers.selectors.return_edits import add_nested, nested_case
from policygen.headers.text import Text
from policygen.model.tuning import Content

HEAD = """\
struct blur_policy
{
  int threads;
  int items;
};
struct values
{
  int items;
  int threads;
};
"""
SELECTOR = """\
struct policy_selector
{
  int key_size;
  int value_size;
  type_t key_type;
  bool primitive;

  constexpr auto operator()(::cuda::compute_capability cc) const -> blur_policy
  {
    if (!primitive)
    {
      return blur_policy{32, 1};
    }
    const bool keys = value_size == 0;
    if (cc >= ::cuda::compute_capability{10, 0})
    {
      if (keys && key_size == 2)
      {
        // ipt_2.tpb_128 1.1  1.0  1.05  1.2
        return blur_policy{128, 2};
      }
      if (keys && key_size == 8 && key_type == type_t::float64)
      {
        return blur_policy{128, 3};
      }
      if (keys && key_size == 8)
      {
        return blur_policy{128, 4};
      }

      switch (value_size)
      {
        case 1:
          return blur_policy{
            256,
            5};
        case 4:
          if (key_type == type_t::float32)
          {
            // todo: regresses for large inputs
            break;
          }
          return blur_policy{256, 6};
        default:
          break;
      }
    }

    if (cc >= ::cuda::compute_capability{9, 0})
    {
      // clang-format off
      if (keys && key_size == 1) return blur_policy{64,7};

      // if (keys && key_size == 2) // same as previous tuning

      if (keys && key_size == 4) return blur_policy{64,8};
      // clang-format on
      if (value_size == 2) { return blur_policy{64, 9}; }
      else if (value_size == 8)
      {
        return blur_policy{64, 10};
      }
    }
    return blur_policy{32, 11};
  }
};
"""
OPTIONAL = """\
constexpr auto get_sm100_tuning(op_t op, int size) -> ::cuda::std::optional<values>
{
  if (op != op_t::plus)
  {
    return {};
  }
  if (size == 4)
  {
    return values{4, 128};
  }
  return {};
}
struct policy_selector
{
  op_t op;
  int size;

  constexpr auto operator()(::cuda::compute_capability cc) const -> blur_policy
  {
    // newest first
    auto sm100_tuning = get_sm100_tuning(op, size);
    if (cc >= ::cuda::compute_capability{10, 0} && sm100_tuning)
    {
      return blur_policy{sm100_tuning->threads, sm100_tuning->items};
    }
    return blur_policy{32, size};
  }
};
"""
CALLED = OPTIONAL.replace(
    """    auto sm100_tuning = get_sm100_tuning(op, size);
    if (cc >= ::cuda::compute_capability{10, 0} && sm100_tuning)
    {
      return blur_policy{sm100_tuning->threads, sm100_tuning->items};
    }
""",
    """    if (cc >= ::cuda::compute_capability{10, 0})
    {
      return make_policy(get_sm100_tuning(op, size), true);
    }
""",
)
NESTED = """\
struct policy_selector
{
  int key_size;
  int value_size;

  constexpr auto operator()(::cuda::compute_capability cc) const -> blur_policy
  {
    if (cc >= ::cuda::compute_capability{10, 0})
    {
      switch (key_size)
      {
        // of four bytes
        case 4:
          switch (value_size)
          {
            case 1:
              return blur_policy{128, 1};
            case 2:
              return blur_policy{128, 2};
            default:
              break;
          }
          break;
        case 16:
          switch (value_size)
          {
            case 1:
              return blur_policy{256, 1};
            default:
              break;
          }
          break;
        default:
          break;
      }
    }
    return blur_policy{32, 11};
  }
};
"""
NEW = Content("values", {"threads": "512", "items": "20"}, label="ipt_20.tpb_512 1.2")
TRAITS = {"key_size": 4, "value_size": 0, "key_type": "int32", "primitive": True}


class Looked:
    """A header's returns, and what is known of one workload on an architecture."""

    def __init__(self, arch, traits, selector=SELECTOR):
        self.code = (HEAD + selector).encode()
        self.text = Text("tuning_blur.cuh", self.code)
        families = read_header("tuning_blur.cuh", self.code).selectors
        self.header = HeaderReturns(self.text, families)
        self.known = self.header.returns
        self.truth = Truth(traits, arch, self.header.constants)
        self.own = [one for one in self.known if one.family.arch == arch]

    def after(self, *additions):
        data = self.code.decode()
        for span, text in sorted(additions, reverse=True):
            data = data[: span.start] + text + data[span.end :]
        return data

    def beside(self):
        near = nearest(self.own, self.truth)
        assert near is not None
        return self.after(add_beside(self.text, near, NEW))


def traits(**more):
    return {**TRAITS, **more}


def test_an_if_goes_among_its_siblings_by_size():
    after = Looked("sm100", traits()).beside()
    assert (
        """\
        return blur_policy{128, 2};
      }
      if (keys && key_size == 4)
      {
        // ipt_20.tpb_512 1.2
        return blur_policy{512, 20};
      }
      if (keys && key_size == 8 && key_type"""
        in after
    )


def test_a_case_goes_before_the_next_one():
    after = Looked("sm100", traits(value_size=2)).beside()
    assert (
        """\
            5};
        case 2:
          // ipt_20.tpb_512 1.2
          return blur_policy{
            512,
            20};
        case 4:"""
        in after
    )


def test_a_case_that_gives_up_for_a_type_returns_for_it():
    looked = Looked("sm100", traits(value_size=4, key_type="float32"))
    found = empty_case(looked.own, looked.truth, "sm100")
    assert found is not None
    after = looked.after(take_over(looked.text, found, NEW))
    assert (
        """\
          if (key_type == type_t::float32)
          {
            // ipt_20.tpb_512 1.2
            return blur_policy{512, 20};
          }
"""
        in after
    )
    assert "regresses" not in after


def test_a_condition_that_is_commented_out_is_replaced():
    after = Looked("sm90", traits(key_size=2)).beside()
    assert (
        """\
      if (keys && key_size == 1) return blur_policy{64,7};

      // ipt_20.tpb_512 1.2
      if (keys && key_size == 2) return blur_policy{512,20};

      if (keys && key_size == 4)"""
        in after
    )
    assert "same as previous" not in after


def test_a_chain_of_else_gets_one_more():
    after = Looked("sm90", traits(value_size=16)).beside()
    assert (
        """\
        return blur_policy{64, 10};
      }
      else if (value_size == 16)
      {
        // ipt_20.tpb_512 1.2
        return blur_policy{512, 20};
      }
"""
        in after
    )


def test_what_returns_before_is_seen():
    looked = Looked("sm100", traits(primitive=False, key_size=4))
    near = nearest(looked.own, looked.truth)
    gone = gone_before(near, looked.truth)
    assert looked.text.line(gone.span.start) == HEAD.count("\n") + 12
    near = nearest(Looked("sm100", traits()).own, Truth(traits(), "sm100", looked.truth.constants))
    assert gone_before(near, Truth(traits(), "sm100", {})) is None


@pytest.mark.parametrize("below", [None, "sm103"])
def test_an_architecture_gets_a_block_of_its_own_in_front(below):
    looked = Looked("sm100", traits(key_size=1))
    front = in_front(looked.header, looked.known, looked.truth, below, None)
    assert front is not None
    end = " && cc < ::cuda::compute_capability{10, 3}" if below else ""
    assert f"""\
    const bool keys = value_size == 0;
    if (cc >= ::cuda::compute_capability{{10, 0}}{end})
    {{
      if (keys && key_size == 1)
      {{
        // ipt_20.tpb_512 1.2
        return blur_policy{{512, 20}};
      }}
    }}

    if (cc""" in looked.after(add_in_front(looked.text, [(front, NEW)]))


def test_what_returns_before_the_model_is_excluded():
    """Of 8-byte keys, `double` has a return before the one for all others."""
    looked = Looked("sm120", traits(key_size=8, key_type="int64"))
    front = in_front(looked.header, looked.known, looked.truth, None, None)
    assert front is not None
    assert front.conditions == ("keys", "key_size == 8", "key_type != type_t::float64")


def test_a_function_is_made_after_another_with_the_block_that_asks_it():
    looked = Looked("sm90", {"op": "plus", "size": 8}, OPTIONAL)
    found = arch_function(looked.header, looked.known, looked.truth, "sm100")
    assert found is not None
    assert found.name == "get_sm90_tuning"
    after = looked.after(*add_function(looked.text, [(found, NEW)]))
    assert (
        """\
constexpr auto get_sm90_tuning(op_t op, int size) -> ::cuda::std::optional<values>
{
  if (size == 8 && op == op_t::plus)
  {
    // ipt_20.tpb_512 1.2
    return values{20, 512};
  }

  return {};
}

constexpr auto get_sm100_tuning("""
        in after
    )
    assert (
        """\
      return blur_policy{sm100_tuning->threads, sm100_tuning->items};
    }

    auto sm90_tuning = get_sm90_tuning(op, size);
    if (cc >= ::cuda::compute_capability{9, 0} && cc < ::cuda::compute_capability{10, 0} && sm90_tuning)
    {
      return blur_policy{sm90_tuning->threads, sm90_tuning->items};
    }
    return blur_policy{32, size};"""
        in after
    )
    # There is one of that name now: more go into it.
    again = Looked("sm90", {"op": "plus", "size": 8}, after.removeprefix(HEAD))
    assert arch_function(again.header, again.known, again.truth, "sm100") is None


def test_a_later_architecture_asks_first():
    looked = Looked("sm120", {"op": "min", "size": 4}, OPTIONAL)
    found = arch_function(looked.header, looked.known, looked.truth, None)
    assert found.conditions == ("size == 4", "op == op_t::min")
    after = looked.after(*add_function(looked.text, [(found, NEW)]))
    assert after.index("get_sm120_tuning(op, size)") < after.index("get_sm100_tuning(op, size)")
    assert after.index("auto sm120_tuning") < after.index("// newest first")


def test_what_a_caller_makes_of_a_value_is_made_in_front_too():
    looked = Looked("sm120", {"op": "plus", "size": 8}, CALLED)
    front = in_front(looked.header, looked.known, looked.truth, None, None)
    assert front is not None
    after = looked.after(add_in_front(looked.text, [(front, NEW)]))
    assert (
        """\
    if (cc >= ::cuda::compute_capability{12, 0})
    {
      if (size == 8 && op == op_t::plus)
      {
        // ipt_20.tpb_512 1.2
        return make_policy(values{20, 512}, true);
      }
    }
"""
        in after
    )


def test_nothing_is_near_what_has_other_traits_only():
    looked = Looked("sm100", {"key_type": "other", "primitive": True})
    assert nearest(looked.own, looked.truth) is None
    assert empty_case(looked.own, looked.truth, "sm100") is None
    assert in_front(looked.header, looked.known, looked.truth, None, None) is None


def test_a_long_return_has_a_line_for_each_value():
    long = {"threads": "1" * 60, "items": "2" * 60}
    looked = Looked("sm100", traits())
    near = nearest(looked.own, looked.truth)
    after = looked.after(add_beside(looked.text, near, Content("values", long)))
    assert (
        f"""\
        return blur_policy{{
          {"1" * 60},
          {"2" * 60}}};
"""
        in after
    )


def test_a_type_of_a_size_that_nothing_asks_for_comes_by_its_size():
    """Before what asks for greater sizes, and before the same size of any type."""
    looked = Looked("sm100", traits(key_type="float32"))
    (double,) = (one for one in looked.own if "key_type == type_t::float64" in one.entry.args)
    near = nearest([double], looked.truth)
    assert near.conditions == ("keys", "key_size == 4", "key_type == type_t::float32")
    after = looked.after(add_beside(looked.text, near, NEW))
    assert after.index("key_size == 2") < after.index("type_t::float32)\n") < after.index("float64")


def test_a_type_gets_a_return_before_the_one_for_all():
    looked = Looked("sm100", traits())
    (one,) = (o for o in looked.own if o.entry.args[-1] == "key_size == 2")
    after = looked.after(
        add_inside(looked.text, BeforeReturn(one, ("key_type == type_t::int16",)), NEW)
    )
    assert (
        """\
      {
        if (key_type == type_t::int16)
        {
          // ipt_20.tpb_512 1.2
          return blur_policy{512, 20};
        }
        // ipt_2.tpb_128 1.1  1.0  1.05  1.2
        return blur_policy{128, 2};
"""
        in after
    )


def test_a_type_gets_a_line_before_that_of_all_in_a_table():
    looked = Looked("sm90", traits())
    (one,) = (o for o in looked.own if o.entry.args[-1] == "key_size == 4")
    after = looked.after(
        add_inside(looked.text, BeforeReturn(one, ("key_type == type_t::float32",)), NEW)
    )
    assert (
        """\
      // ipt_20.tpb_512 1.2
      if (keys && key_size == 4 && key_type == type_t::float32) return blur_policy{512,20};

      if (keys && key_size == 4) return blur_policy{64,8};
"""
        in after
    )


def near_in(selector, **sizes):
    looked = Looked("sm100", sizes, selector)
    return looked, nearest(looked.own, looked.truth)


@pytest.mark.parametrize(
    ("size", "above"),
    [(1, "        // of four bytes"), (8, "        case 16:"), (32, "        default:")],
)
def test_a_case_beside_switches_has_a_switch_of_its_own_for_all_that_are_new(size, above):
    pairs = [near_in(NESTED, key_size=size, value_size=value) for value in (2, 4)]
    cases = {nested_case(looked.text, near) for looked, near in pairs}
    assert len(cases) == 1
    looked = pairs[0][0]
    after = looked.after(add_nested(looked.text, [(near, NEW) for _, near in pairs]))
    assert (
        f"""\
        case {size}:
          switch (value_size)
          {{
            case 2:
              // ipt_20.tpb_512 1.2
              return blur_policy{{512, 20}};
            case 4:
              // ipt_20.tpb_512 1.2
              return blur_policy{{512, 20}};
            default:
              break;
          }}
          break;
{above}
"""
        in after
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # What no case is for would get another policy than before.
        ("        default:\n          break;\n", "        default:\n          return {};\n"),
        (
            "            default:\n              break;\n",
            "            default:\n              return {};\n",
        ),
        ("          }\n          break;\n", "          }\n          return {};\n"),
    ],
)
def test_a_switch_that_does_more_than_leave_gets_no_case(old, new):
    assert old in NESTED
    looked, near = near_in(NESTED.replace(old, new), key_size=8, value_size=2)
    assert nested_case(looked.text, near) is None
    after = looked.after(add_beside(looked.text, near, NEW))
    assert "      if (key_size == 8 && value_size == 2)\n" in after


def test_a_case_of_one_switch_is_none_of_two():
    looked, near = near_in(NESTED, key_size=4, value_size=8)
    assert near.conditions == ("value_size == 8",)
    assert nested_case(looked.text, near) is None
