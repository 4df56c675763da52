"""What a change touches and nobody was asked about."""

from dataclasses import replace

import pytest

from policygen.headers.scan import read_header
from policygen.model.machine_code import VerifySass
from policygen.model.reviews import UNBOUND, Review, Uncovered
from policygen.model.selection import Differing, EntryPlace, Resolution, ResolvedRow
from policygen.model.trees import BoundVersion, Cub
from policygen.proof import sites
from policygen.proof.changes import ReviewContext, Touched, inherited, reviewed, touched
from policygen.proof.lexemes import first_difference
from policygen.proof.uncovered import (
    ChangedHeader,
    uncovered_code,
    uncovered_entries,
    uncovered_headers,
    undecided,
    unqueried_policies,
)
from tests.proof.test_review import CALL, FUNCTION, HEAD, TAIL, header

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


def differing(place: EntryPlace, changed: tuple[str, ...]) -> Differing:
    values = dict.fromkeys(changed, 7)
    return Differing(
        benchmark="cub.bench.blur",
        workload={"T": "I32"},
        arch="sm90",
        before=values,
        after=dict.fromkeys(changed, 8),
        changed=changed,
        entry_before=place,
        entry_after=place,
    )


def told(entries, sides):
    left = undecided(entries, sides)
    found, _ = reviewed(entries, (), ReviewContext((), (), ()), left)
    return [one.decides for one in found], [one.where for one in uncovered_entries(found)]


def test_an_entry_that_decides_no_workload_is_told(changed):
    decides, where = told([changed], [resolution()])
    assert decides == [False]
    line = changed.place.line
    assert where == [
        f"tuning_blur.cuh:{line}: get_sm90_tuning: key_size == 4 decides no bound workload, so the"
        " effect of its change is unknown"
    ]


def test_one_that_decides_a_workload_is_compared(changed):
    assert told([changed], [resolution(), resolution(changed.place)]) == ([True], [])


def test_one_that_is_gone_decides_nothing_any_more(changed):
    gone = Touched(changed.family, changed.before, None)
    assert told([gone], [resolution(gone.place), resolution()]) == ([True], [])


def test_one_that_is_gone_and_decided_nothing_is_told(changed):
    gone = Touched(changed.family, changed.before, None)
    assert told([gone], [resolution(), resolution()])[0] == [False]


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
    assert [one.where for one in uncovered_headers(lines, BoundVersion("3.6.0"), lines.get)] == [
        "tuning_blur.cuh:7: no binding covers this header, so the effect of its change is unknown"
    ]


HUB = """
CUB_NAMESPACE_BEGIN
namespace detail::radix
{
template <class KeyT>
struct policy_hub
{
  struct Policy900 : ChainedPolicy<900, Policy900, Policy900>
  {
    enum
    {
      BITS = 6,
      SEGMENTED_BITS = 5,
    };
    using Base            = agent_policy<256, 21>;
    using OnesweepPolicy  = onesweep_policy<Base, BITS>;
    using SegmentedPolicy = segmented_policy<Base, 192, 39, SEGMENTED_BITS>;
  };
  using MaxPolicy = Policy900;
};
} // namespace detail::radix
CUB_NAMESPACE_END
"""


@pytest.mark.parametrize(
    ("old", "new", "policies"),
    [
        ("39", "38", "SegmentedPolicy"),
        ("SEGMENTED_BITS = 5", "SEGMENTED_BITS = 4", "SegmentedPolicy"),
        ("21", "22", ""),  # it is in the onesweep policy, which workloads show
        ("BITS = 6", "BITS = 7", ""),
        ("// namespace", "// a namespace", ""),
        ("MaxPolicy = Policy900", "MaxPolicy  =  Policy900", ""),
    ],
)
def test_a_policy_of_a_hub_that_no_workload_shows_is_told(old, new, policies):
    name, after = "tuning_radix_sort.cuh", HUB.replace(old, new, 1)
    rows = unqueried_policies(
        [read_header(name, after.encode())],
        {name: (HUB.encode(), after.encode())},
        BoundVersion("3.0.1"),
        {name: 15}.get,
    )
    message = "no bound workload shows it, so the effect of its change is unknown"
    assert [one.where for one in rows] == [f"{name}:15: {policies}: {message}"] * bool(policies)


def test_a_header_of_benchmarks_that_a_tree_lacks_has_no_binding(monkeypatch):
    """Its site is bound, and there is no workload to ask about."""
    lines = {"tuning_segmented_radix_sort.cuh": 7}
    version = BoundVersion("3.6.0")
    assert [*uncovered_headers(lines, version, lines.get)] == []
    algorithms = [replace(one, benchmarks=()) for one in sites.bound(version)]
    monkeypatch.setattr(sites, "bound", lambda _: algorithms)
    (row,) = uncovered_headers(lines, version, lines.get)
    assert (row.header, row.what) == ("tuning_segmented_radix_sort.cuh", UNBOUND)


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


BODY = f"{HEAD}{FUNCTION % 7}{TAIL % CALL}"
SIZE = ("  int key_size;\n", "  int key_size = 8;\n")
FIELD = ("  int threads;\n", "  int threads;\n  int load = 0;\n")


@pytest.mark.parametrize(
    ("changes", "reached", "lines"),
    [
        ([("{7, 256}", "{8, 256}")], ["items"], []),
        # The values of an entry, and its condition: for calls of other sizes, if for any.
        ([("{7, 256}", "{8, 256}")], [], [15]),
        ([("key_size == 4", "key_size <= 4")], [], [15]),
        # Code of none of the entries.
        ([SIZE], [], [22]),
        ([SIZE, ("{7, 256}", "{8, 256}")], ["items"], [22]),
        # What only adds serves an entry that changes a workload.
        ([FIELD, ("{7, 256}", "{8, 256, 1}")], ["items", "load"], []),
        ([FIELD], [], [7]),
        ([("  int items;\n", "  int items;  // of a thread\n")], [], []),
    ],
)
def test_code_that_changes_no_bound_workload_is_told(changes, reached, lines):
    after = BODY
    for old, new in changes:
        assert after.count(old) == 1
        after = after.replace(old, new)
    name = "tuning_blur.cuh"
    contents = (BODY.encode(), after.encode())
    headers = tuple(read_header(name, data) for data in contents)
    entries = touched(headers[:1], headers[1:])
    rows = [differing(entry.place, tuple(reached)) for entry in entries if reached]
    found, _ = reviewed(entries, rows, ReviewContext((), (), ()))
    changed_header = ChangedHeader(contents, headers, entries)
    assert [row.line for row in uncovered_code(name, changed_header, found)] == lines


OWN = """sm90_tuning<__uint128_t>
{
  static constexpr int threads = 128;
  static constexpr int items = ITEMS;
};"""


@pytest.mark.parametrize(
    ("base", "items", "is_told"),
    [
        ("sm90_tuning<int>", "7", False),
        ("sm90_tuning<int>", "8", True),
        ("sm90_tuning_vals<int, 128, 7>", "7", True),  # its values are those of parameters
    ],
)
def test_an_entry_that_writes_out_what_it_inherited_is_no_change(base, items, is_told):
    inheriting = FAMILIES.replace("BASE", base)
    own = OWN.replace("ITEMS", items)
    after = inheriting.replace(f"sm90_tuning<__uint128_t> : {base}\n{{}};", own)
    name = "tuning_blur.cuh"
    contents = (inheriting.encode(), after.encode())
    headers = tuple(read_header(name, data) for data in contents)
    entries = touched(headers[:1], headers[1:])
    found, _ = reviewed(entries, (), ReviewContext((), (), ()))
    rows = [*uncovered_code(name, ChangedHeader(contents, headers, entries), found)]
    assert [row.what.partition(" differs")[0] for row in rows] == (
        ["sm90_tuning<__uint128_t>"] if is_told else []
    )


def test_a_guard_of_a_new_function_is_no_entry_of_its_own():
    """It leaves the function for what decided before; in an older one it may hide a return."""
    guard = "{\n  if (key_size != 4)\n  {\n    return {};\n  }\n  if (key_size == 4)"
    guarded = (FUNCTION % 7).replace("{\n  if (key_size == 4)", guard)
    names = [
        [entry.place.name for entry in touched([before], [header(guarded, CALL)])]
        for before in (header(), BEFORE)
    ]
    assert [any("!= 4" in name for name in entries) for entries in names] == [False, True]


EQUAL = {"whole": True, "workloads": 9, "untouched": 0, "base": "CUB 3.6.0"}


@pytest.mark.parametrize(
    ("sass", "judged"),
    [
        (None, False),
        ({}, True),
        ({"whole": False}, False),
        ({"workloads": 0}, False),
        ({"untouched": 3}, False),
        ({"base": "HEAD"}, False),
    ],
)
def test_equal_machine_code_of_all_workloads_covers_a_header(sass, judged):
    cub = Cub(root="/", version="3.6.0", dialect="selectors", found="--cub")
    empty = {"toolchain": "nvcc", "archs": (), "rows": (), "identical": 0, "kernels": 9, "equal": 9}
    code = {**empty, **EQUAL, "renamed": 0, **(sass or {})}
    place = Uncovered(header="cub/common.cuh", line=7, what="not judged", by_machine_code=True)
    document = Review(
        cub=cub,
        base="CUB 3.6.0",
        toolchain="nvcc",
        archs=(),
        entries=(),
        compared=9,
        diffs=(),
        commands=(),
        uncovered=(place,),
        sass=None if sass is None else VerifySass(cub=cub, **code),
    )
    told = [] if judged else ["not proven: cub/common.cuh:7: not judged"]
    assert list(document.failures) == told
