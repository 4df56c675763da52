"""What a change touches and nobody was asked about."""

import pytest

from policygen.headers.reader import read_header
from policygen.model.selection import EntryPlace, Resolution, ResolvedRow
from policygen.model.trees import Cub
from policygen.proof.changes import (
    ReviewContext,
    Touched,
    inherited,
    reviewed,
    touched,
    uncovered_entries,
    uncovered_headers,
    undecided,
)
from policygen.proof.lexemes import first_difference
from tests.proof.test_review import CALL, FUNCTION, header

BEFORE = header(FUNCTION % 7, CALL)
AFTER = header(FUNCTION % 8, CALL)

FAMILIES = """
CUB_NAMESPACE_BEGIN
namespace detail::blur
{
template <class T, int Threads, int Items>
struct sm90_tuning_vals
{
  static constexpr int threads = Threads;
  static constexpr int items   = Items;
};
template <class T>
struct sm90_tuning;
template <>
struct sm90_tuning<int>
{
  static constexpr int threads = 128;
  static constexpr int items = 7;
};
template <>
struct sm90_tuning<__uint128_t> : BASE
{};
} // namespace detail::blur
CUB_NAMESPACE_END
"""


def resolution(*places: EntryPlace) -> Resolution:
    return Resolution(
        cub=Cub(root="/", version="3.6.0", dialect="selectors", found="--cub"),
        toolchain="nvcc",
        archs=("sm90",),
        rows=tuple(
            ResolvedRow(
                benchmark="cub.bench.blur",
                workload={"T": "I32"},
                arch="sm90",
                values={},
                entry=place,
                status="tuned",
            )
            for place in places
        ),
    )


@pytest.fixture
def changed() -> Touched:
    (one,) = touched([BEFORE], [AFTER])
    return one


def told(entries, sides):
    left = undecided(entries, sides)
    found, _ = reviewed(entries, (), ReviewContext((), (), ()), left)
    return [one.decides for one in found], [one.where for one in uncovered_entries(found)]


def test_an_entry_that_decides_no_workload_is_told(changed):
    decides, where = told([changed], [resolution()])
    assert decides == [False]
    line = changed.place.line
    assert where == [
        f"tuning_blur.cuh:{line}: get_sm90_tuning: key_size == 4 decides no workload that is"
        " bound: what its change selects is not known"
    ]


def test_one_that_decides_a_workload_is_compared(changed):
    assert told([changed], [resolution(), resolution(changed.place)]) == ([True], [])


def test_one_that_is_gone_decides_nothing_any_more(changed):
    gone = Touched(changed.family, changed.before, None)
    assert told([gone], [resolution()]) == ([True], [])


def test_what_others_inherit_from_shows_in_these(changed):
    base = Touched(changed.family, None, changed.after)
    other = changed.after.model_copy(update={"inherits": f"{changed.family.name}<int>"})
    assert told([base, Touched(changed.family, None, other)], [resolution()]) == ([True, True], [])


@pytest.mark.parametrize(
    ("base", "decides"),
    [("sm90_tuning<__int128_t>", True), ("sm90_tuning_vals<T, 192, 22>", False)],
)
def test_an_entry_is_told_by_another_of_its_family_and_not_by_what_holds_values(base, decides):
    before, after = (
        read_header("tuning_blur.cuh", FAMILIES.replace("BASE", name).encode())
        for name in ("sm90_tuning<int>", base)
    )
    (one,) = touched([before], [after])
    assert (one.place.name, one.after.inherits) == ("sm90_tuning<__uint128_t>", base)
    assert told([one], [resolution()])[0] == [decides]


def test_a_family_is_no_base_because_its_name_begins_as_one_does():
    before = FAMILIES.replace("BASE", "sm90_tuning_vals<T, 192, 22>")
    after = before.replace("22>", "23>").replace("items = 7", "items = 8")
    headers = (read_header("tuning_blur.cuh", text.encode()) for text in (before, after))
    entries = touched(*([one] for one in headers))
    names = ["sm90_tuning<int>", "sm90_tuning<__uint128_t>"]
    assert [one.place.name for one in entries] == names
    assert told(entries, [resolution()])[0] == [False, False]


def test_an_entry_decides_what_is_decided_by_one_that_inherits_from_it():
    text = FAMILIES.replace("BASE", "sm90_tuning<int>")
    before, after = (
        read_header("tuning_blur.cuh", one.encode()) for one in (text, text.replace("= 7", "= 8"))
    )
    entries, bases = touched([before], [after]), inherited([after])
    ((heir, (base,)),) = bases.items()
    assert undecided(entries, [resolution(heir)], bases) == set()
    assert undecided(entries, [resolution()], bases) == {base}


def test_a_default_is_no_entry_of_a_workload(changed):
    default = changed.after.model_copy(update={"args": ("cc >= ::cuda::compute_capability{8, 0}",)})
    assert told([Touched(changed.family, changed.before, default)], [resolution()]) == ([True], [])


def test_headers_without_a_binding_are_told_where_their_code_differs():
    lines = {"tuning_blur.cuh": 7, "tuning_same.cuh": None, "tuning_scan.cuh": 3}
    assert [one.where for one in uncovered_headers(lines, "3.6.0", lines.get)] == [
        "tuning_blur.cuh:7: no binding covers this header: what its change selects is not known"
    ]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("a b;\n", "a  b; // c\n\n/* d\n */\n", None),
        ("a;\nb;\n", "a;\n// c\nc;\n", 3),
        ("a;\n", "a;\nb;\n", 2),
        ("a;\nb;\n", "a;\n", 2),
        ("", "", None),
    ],
)
def test_where_code_begins_to_differ(before, after, line):
    assert first_difference("a.cuh", before.encode(), after.encode()) == line
