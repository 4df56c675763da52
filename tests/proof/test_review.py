"""Which entries of a change a reviewer is told, on text; tests of the command have real trees."""

from policygen.headers.reader import read_header
from policygen.model.selection import Differing, EntryPlace
from policygen.proof.changes import ReviewContext, inherited, reviewed, touched
from tests.headers.headers import wrap

HEAD = """
CUB_NAMESPACE_BEGIN
struct values
{
  int items;
  int threads;
};
namespace detail::blur
{
"""
TAIL = """
struct policy_selector
{
  int key_size;
  [[nodiscard]] constexpr auto operator()(::cuda::compute_capability cc) const -> values
  {
    %s
    if (key_size == 8)
    {
      return values{9, 64};
    }
    return values{11, 128};
  }
};
} // namespace detail::blur
CUB_NAMESPACE_END
"""
FUNCTION = """
_CCCL_HOST_DEVICE_API constexpr auto get_sm90_tuning(int key_size) -> ::cuda::std::optional<values>
{
  if (key_size == 4)
  {
    return values{%d, 256};
  }
  return {};
}
"""
CALL = """
    if (cc >= ::cuda::compute_capability{9, 0})
    {
      if (auto found = get_sm90_tuning(key_size))
      {
        return *found;
      }
    }
"""


def header(function="", call=""):
    return read_header("tuning_blur.cuh", f"{HEAD}{function}{TAIL % call}".encode())


def named(before, after):
    return [
        (one.place.name, one.before is not None, one.after is not None)
        for one in touched([before], [after])
    ]


def test_a_new_function_counts_by_what_it_returns_and_not_by_its_end():
    old, new = header(), header(FUNCTION % 7, CALL)
    value = "get_sm90_tuning: key_size == 4"
    call = "policy_selector::operator(): cc >= ::cuda::compute_capability{9, 0}"
    asks = f"{call} && auto found = get_sm90_tuning(key_size)"
    assert named(old, new) == [(value, False, True), (asks, False, True)]
    assert named(new, old) == [(value, True, False), (asks, True, False)]


def test_a_return_with_another_value_is_the_only_one():
    assert named(header(FUNCTION % 7, CALL), header(FUNCTION % 8, CALL)) == [
        ("get_sm90_tuning: key_size == 4", True, True)
    ]
    assert named(header(FUNCTION % 7, CALL), header(FUNCTION % 7, CALL)) == []


def test_a_condition_that_gives_up_counts():
    other = (FUNCTION % 7).replace("  if", "  if (key_size == 2) return {};\n  if")
    found = named(header(FUNCTION % 7, CALL), header(other, CALL))
    assert ("get_sm90_tuning: key_size == 2", False, True) in found


def test_an_end_that_returns_something_now_counts():
    other = (FUNCTION % 7).replace("return {};", "return values{5, 64};")
    found = named(header(FUNCTION % 7, CALL), header(other, CALL))
    assert found == [("get_sm90_tuning: otherwise", True, True)]


def test_a_return_under_another_condition_is_changed_and_not_gone_and_new():
    before = header(FUNCTION % 7, CALL)
    after = header((FUNCTION % 7).replace("key_size == 4", "key_size <= 4"), CALL)
    assert named(before, after) == [("get_sm90_tuning: key_size <= 4", True, True)]
    (one,), _ = reviewed(touched([before], [after]), (), ReviewContext((), (), ()))
    assert one.change == "changed"
    assert one.asks == ("get_sm90_tuning: key_size == 4", "get_sm90_tuning: key_size <= 4")
    (one,), _ = reviewed(
        touched([before], [header(FUNCTION % 8, CALL)]), (), ReviewContext((), (), ())
    )
    assert one.asks is None


def test_conditions_that_return_the_same_are_paired_once():
    twice = (FUNCTION % 7).replace(
        "  return {};", "  if (key_size == 2) { return values{7, 256}; }\n  return {};"
    )
    both = twice.replace("key_size == 4", "key_size == 3").replace("key_size == 2", "key_size == 1")
    assert named(header(twice, CALL), header(both, CALL)) == [
        ("get_sm90_tuning: key_size == 3", True, True),
        ("get_sm90_tuning: key_size == 1", True, True),
    ]
    assert named(header(FUNCTION % 7, CALL), header(both, CALL)) == [
        ("get_sm90_tuning: key_size == 3", True, True),
        ("get_sm90_tuning: key_size == 1", False, True),
    ]


def test_what_an_entry_inherits_shows_by_the_entry_that_says_it():
    base = "template <> struct sm90_tuning<int, 1> { static constexpr int items = %d; };\n"
    heir = "template <> struct sm90_tuning<int, 2> : sm90_tuning<int, 1> {};\n"
    before, after = (read_header("tuning_demo.cuh", wrap(base % n + heir)) for n in (7, 8))
    (family,) = after.families
    places = [EntryPlace.of(family, entry) for entry in family.entries]
    row = Differing(
        benchmark="cub.bench.demo",
        workload={"T": "I32"},
        arch="sm90",
        before={"items": 7},
        after={"items": 8},
        changed=("items",),
        entry_before=places[-1],
        entry_after=places[-1],
    )
    entries, bases = touched([before], [after]), inherited([after])
    assert bases == {places[-1]: [places[-2]]}
    (one,), others = reviewed(entries, [row], ReviewContext((), (), (), bases))
    assert (one.place, one.reached, others) == (places[-2], (row,), ())


def test_an_entry_that_took_workloads_from_others_without_being_selected_is_what_they_changed_by():
    general = "template <class K> struct sm90_tuning<int, K> { static constexpr int items = 9; };\n"
    special = "template <> struct sm90_tuning<int, %d> {};\n"
    before, after = (read_header("tuning_demo.cuh", wrap(general + special % n)) for n in (8, 16))
    (family,) = before.families
    row = Differing(
        benchmark="cub.bench.demo",
        workload={"T": "F64"},
        arch="sm90",
        before={"items": 7},
        after={"items": 9},
        changed=("items",),
        entry_after=EntryPlace.of(family, family.entries[-2]),
        passed=(EntryPlace.of(family, family.entries[-1]),),
    )
    found, others = reviewed(touched([before], [after]), [row], ReviewContext((), (), ()))
    assert [(one.place.args, one.reached) for one in found if one.reached] == [
        (family.entries[-1].args, (row,))
    ]
    assert others == ()
