"""Which entries of a change a reviewer is told, on text; tests of the command have real trees."""

import pytest

from policygen.headers.scan import read_header
from policygen.model.reviews import Leak
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


def block(conditions, value):
    """A header whose selector has a return for an architecture; no value makes no block."""
    text = f"if ({conditions}) {{ if (key_size == 4) return {value}; }}"
    return header(call=text if value else "")


def differing_on(archs, before=None, after=None):
    """A workload changed on architectures."""
    return [
        Differing(
            benchmark="cub.bench.blur",
            workload={"T": name},
            arch=arch,
            before={"items": 7},
            after={"items": 8},
            changed=("items",),
            entry_before=before,
            entry_after=after,
        )
        for arch in archs
        for name in ("I32", "F32")
    ]


def place_of(read):
    """The return for keys of four bytes."""
    return next(
        EntryPlace.of(family, entry)
        for family in read.selectors
        for entry in family.entries
        if "key_size == 4" in entry.args
    )


SINCE = "cc >= ::cuda::compute_capability{10, 7}"
BOUND = "cc < ::cuda::compute_capability{11, 0}"
ARCHS = ("sm107", "sm108", "sm110", "sm121")
LATER = [("sm110", BOUND), ("sm121", "cc < ::cuda::compute_capability{12, 1}")]


@pytest.mark.parametrize(
    ("conditions", "tuned", "leaks"),
    [
        (SINCE, None, LATER),
        (
            "cc >= compute_capability{10, 7}",
            None,
            [(a, b.replace("::cuda::", "")) for a, b in LATER],
        ),
        # Of a plan for sm121 that changes a return of sm107.
        (
            SINCE,
            "sm121",
            [("sm107", "an entry for sm121 alone"), ("sm110", "an entry for sm121 alone")],
        ),
        # A plan for an architecture on which this return changes nothing.
        (SINCE, "sm90", LATER),
        # It does not name an architecture, so that it is for all.
        ("key_size < 9", None, []),
    ],
)
def test_a_return_leaks_to_each_known_architecture_that_is_not_its_own(conditions, tuned, leaks):
    before, after = block(conditions, ""), block(conditions, "values{7, 64}")
    rows = differing_on(ARCHS, after=place_of(after))
    context = ReviewContext((), (), (), tuned=tuned)
    (entry,), _ = reviewed(touched([before], [after]), rows, context)
    assert [(leak.arch, leak.bound) for leak in entry.leaks] == leaks
    assert {leak.workloads for leak in entry.leaks} <= {2}


def test_an_entry_that_stops_deciding_leaks_nowhere():
    before, after = (block(f"{SINCE}{end}", "values{7, 64}") for end in ("", f" && {BOUND}"))
    rows = differing_on(["sm110"], before=place_of(before))
    (entry,), _ = reviewed(touched([before], [after]), rows, ReviewContext((), (), ()))
    assert (entry.change, len(entry.reached), entry.leaks) == ("changed", 2, ())


@pytest.mark.parametrize(("end", "leaks"), [("", LATER), (f" && {BOUND}", [])])
def test_what_returns_compute_leaks_by_the_first_of_them(end, leaks):
    text = "const values same{{7, 64}}; if (key_size == {}) return values{{same}};"
    text = f"{text.format(4)} {text.format(2).partition(';')[2]}"
    before, after = header(), header(call=f"if ({SINCE}{end}) {{ {text} }}")
    headers = {"cub.bench.blur": ["tuning_blur.cuh"]}
    entries, others = reviewed(
        touched([before], [after]), differing_on(ARCHS), ReviewContext((), (), (), headers=headers)
    )
    assert len(others) == 8
    first, second = (entry.leaks for entry in entries)
    assert first == tuple(Leak(arch=a, workloads=2, bound=b, among=2) for a, b in leaks)
    assert second == ()


def test_an_entry_of_a_family_leaks_to_what_inherits_it():
    base = "template <> struct sm90_tuning<int, 1> { static constexpr int items = %d; };\n"
    heir = "template <> struct sm90_tuning<int, 2> : sm90_tuning<int, 1> {};\n"
    before, after = (read_header("tuning_demo.cuh", wrap(base % n + heir)) for n in (7, 8))
    (family,) = after.families
    place, bases = EntryPlace.of(family, family.entries[-1]), inherited([after])
    rows = differing_on(["sm90", "sm100"], place, place)
    (entry,), _ = reviewed(touched([before], [after]), rows, ReviewContext((), (), (), bases))
    bound = "an entry of sm100_tuning with the values before"
    assert entry.leaks == (Leak(arch="sm100", workloads=2, bound=bound),)
