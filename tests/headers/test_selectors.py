# ruff: noqa: E501  a row of a table is one line
"""Guarded returns of policy selectors, on text and on the real trees."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygen.errors import SourceError
from policygen.headers.scan import read_header
from policygen.headers.selectors.branches import enable_returns
from policygen.model.tuning import STEP
from tests.probing import TUNINGS, root
from tests.tiers import sampled

HEAD = """
CUB_NAMESPACE_BEGIN
struct blur_policy
{
  int threads_per_block;
  int items_per_thread; //!< of a thread
  BlockLoadAlgorithm load_algorithm;
  delay lookback_delay = {kind::fixed, 350, 450};
  bool operator==(const blur_policy& other) const { return threads_per_block == other.threads_per_block; }
};
struct values
{
  int items, unused;
  int threads;
};
namespace detail::blur
{
"""
BODY = """
_CCCL_HOST_DEVICE_API constexpr auto get_sm100_tuning(int key_size, type_t key_type) noexcept
  -> ::cuda::std::optional<blur_policy>
{
  if (key_type == type_t::other)
  {
    return {}; // not measured
  }
  switch (key_size)
  {
    case 1:
    case 2:
      // ipt_7.tpb_128 1.1  1.0  1.05  1.2
      return blur_policy{128, 7, BLOCK_LOAD_DIRECT, {kind::none, 0, 9}};
    case 4:
      if (key_type == type_t::float32)
      {
        break;
      }
      return blur_policy{256, 8 - 1, BLOCK_LOAD_DIRECT};
      // if (key_size == 16) return blur_policy{64, 1 << 1, BLOCK_LOAD_DIRECT}; // regresses
    default:
      break;
  }
  return {};
}
struct policy_selector
{
  int key_size;
private:
  [[nodiscard]] constexpr auto helper(int items, bool fast) const -> blur_policy
  {
    return blur_policy{32, items, BLOCK_LOAD_DIRECT};
  }
public:
  [[nodiscard]] constexpr auto operator()(::cuda::compute_capability cc) const -> blur_policy
  {
    const auto scaled = [&](int n) -> int { return n * key_size; };
    if (cc >= ::cuda::compute_capability{10, 7} && cc < ::cuda::compute_capability{11, 0})
    {
      if (const auto tuned = get_sm100_tuning(key_size, type_t::int8)) return *tuned;
      else if (key_size == 3) return helper(1 << 2, true);
    }
    if (cc < ::cuda::compute_capability{6, 0} || cc >= ::cuda::compute_capability{8, 0})
      return {96, 5, BLOCK_LOAD_DIRECT};
    for (int i = 0; i < key_size; ++i)
    {
      static_cast<void>(i);
    }
    return {scaled(1), 2, BLOCK_LOAD_DIRECT};
  }
};
"""
TAIL = "} // namespace detail::blur\nCUB_NAMESPACE_END\n"


def read(body=BODY, head=HEAD):
    return read_header("tuning_blur.cuh", (head + body + TAIL).encode()).selectors


def told(families):
    return [
        (f.arch, f.name.rpartition("::")[2], e.args, e.values, e.inherits, e.disabled)
        for f in families
        for e in f.entries
    ]


SINCE = "cc >= ::cuda::compute_capability{10, 7}"
BELOW = "cc < ::cuda::compute_capability{11, 0}"
NONE = {"lookback_delay": "{kind::none, 0, 9}"}


def policy(threads, items, **more):
    counts = {"threads_per_block": threads, "items_per_thread": items}
    return {**counts, "load_algorithm": "BLOCK_LOAD_DIRECT", **more}


def test_each_return_has_its_conditions_in_the_order_of_the_source():
    own, call = "get_sm100_tuning", "operator()"
    found = "const auto tuned = get_sm100_tuning(key_size, type_t::int8)"
    assert told(read()) == [
        ("sm100", own, ("key_type == type_t::other",), {}, None, False),
        ("sm100", own, ("key_size == 1 || key_size == 2",), policy(128, 7, **NONE), None, False),
        ("sm100", own, ("key_size == 4",), policy(256, 7), None, False),
        ("sm100", own, ("key_size == 4", "key_size == 16"), policy(64, 2), None, True),
        ("sm100", own, (), {}, None, False),
        ("sm107", call, (SINCE, BELOW, found), {}, "*tuned", False),
        ("sm107", call, (SINCE, BELOW, f"!({found})", "key_size == 3"), {"items": 4, "fast": True}, "helper", False),
        ("sm50", call, ("cc < ::cuda::compute_capability{6, 0} || cc >= ::cuda::compute_capability{8, 0}",), policy(96, 5), None, False),
        ("sm50", call, (), policy("scaled(1)", 2), None, False),
    ]  # fmt: skip


def test_what_belongs_to_a_return_is_read_with_it():
    families = read()
    assert {f.namespace for f in families} == {"cub::detail::blur"}
    assert families[1].name == "policy_selector::operator()"
    entries = families[0].entries
    assert {e.kind for e in entries} == {"branch"}
    assert (entries[1].variant, entries[1].scores) == ("ipt_7.tpb_128", (1.1, 1.0, 1.05, 1.2))
    assert entries[0].remarks == ("not measured",)
    assert entries[3].remarks == ("regresses",)
    data = (HEAD + BODY + TAIL).encode()
    items = entries[2].members[1]
    assert data[slice(*items.value_span)] == b"8 - 1"
    assert data[slice(*entries[2].span)].startswith(b"return blur_policy{256")
    assert [e.specific for e in families[1].entries] == [True, True]


def test_a_function_that_decides_nothing_holds_no_entries():
    assert "helper" not in str([f.name for f in read()])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("constexpr auto f(compute_capability cc) -> blur_policy { if cc { return {}; } }", "f: cannot read this statement"),
        ("constexpr auto f(compute_capability cc) -> blur_policy { switch (cc) return {}; }", "f: cannot read this statement"),
        ("constexpr auto f(compute_capability cc) -> blur_policy { switch (cc) { case 1 } }", "f: cannot read this statement"),
        ("constexpr auto f(compute_capability cc) -> blur_policy { return {} }", "f: cannot read this statement"),
        (f"constexpr auto f(compute_capability cc) -> blur_policy {{ {'{' * 99} {'}' * 99} }}", "f: cannot read this statement"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_told_with_its_place(body, message):
    with pytest.raises(SourceError) as raised:
        read(body)
    assert message in str(raised.value)
    assert str(raised.value).startswith("tuning_blur.cuh:")


@given(st.data())
def test_damage_is_read_or_told(data):
    text = HEAD + BODY + TAIL
    at = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(at, min(len(text), at + 60)))
    put = data.draw(
        st.sampled_from(
            ["", "{", "}", "(", ")", ";", "if", "switch (x)", "case 1:", "return", ":", "<"]
        )
    )
    with suppress(SourceError):  # anything else is a failure
        read_header("tuning_blur.cuh", (text[:at] + put + text[end:]).encode())


# How many returns of each function have values: counted in the headers by hand.
COUNTS = {
    ("histogram", "operator()", "sm100"): 2,
    ("histogram", "operator()", "sm90"): 2,
    ("radix_sort", "get_sm90_tuning", "sm90"): 25,
    ("radix_sort", "get_sm100_tuning", "sm100"): 35,
    ("reduce", "get_sm100_tuning", "sm100"): 4,
    ("reduce_by_key", "get_lookback_policy", "sm100"): 16,
    ("scan_by_key", "get_lookback_policy", "sm100"): 16,
    ("scan_by_key", "get_lookback_policy", "sm90"): 25,
    ("unique_by_key", "get_sm100_tuning", "sm100"): 13,
}


@pytest.mark.trees
@pytest.mark.parametrize("version", sampled(["3.5.0", "3.6.0"], "3.6.0"))
def test_the_real_headers_have_as_many_as_they_show(version):
    found = {}
    for path in sorted((Path(root(version)) / TUNINGS).glob("tuning_*.cuh")):
        header = read_header(path.name, path.read_bytes(), path=str(path))
        for family in header.selectors:
            name = path.stem.removeprefix("tuning_"), family.name.rpartition("::")[2], family.arch
            found[name] = sum(bool(e.members) and not e.disabled for e in family.entries)
            for entry in family.entries:
                for member in entry.members:
                    text = path.read_bytes()[slice(*member.value_span)].decode()
                    assert "".join(member.spelling.split()) == "".join(text.split())
    renamed = {k: v for k, v in COUNTS.items() if version == "3.6.0" or k in found}
    assert {name: found[name] for name in renamed} == renamed
    assert len(renamed) >= 5


def test_conditions_that_are_commented_out_become_code_with_a_mark():
    data = (HEAD + BODY + TAIL).encode()
    copy = enable_returns(read_header("tuning_blur.cuh", data), data)
    ((family, entry),) = copy.entries
    assert (family.name, entry.args[-1]) == ("get_sm100_tuning", "key_size == 16")
    text = copy.data.decode()
    mark = f"return ::policygen_marks::marked(blur_policy{{}}, {STEP});"
    assert f"      // \nif (key_size == 16) {mark}\n" in text
    # A policy without a count of items gets a member that tells the mark.
    assert text.count("int policygen_entry = -1;}") == 1
    assert text.replace("int policygen_entry = -1;", "").startswith(HEAD)


def test_a_header_without_such_conditions_stays_as_it_is():
    data = (HEAD + BODY.replace("// if (key", "// for (key") + TAIL).encode()
    copy = enable_returns(read_header("tuning_blur.cuh", data), data)
    assert copy.entries == ()
    assert copy.data == data


def test_a_call_that_passes_what_was_found_has_no_values_of_its_own():
    body = BODY.replace("helper(1 << 2, true)", "helper(*tuned, true)")
    (call,) = [e for f in read(body) for e in f.entries if "key_size == 3" in e.args]
    assert (call.values, call.members, call.inherits) == ({}, (), "helper(*tuned, true)")
