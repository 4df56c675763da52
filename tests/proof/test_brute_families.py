"""What a change of an entry of a family does, by another way than the probe's.

A program walks each hub's chain of policies and prints their members by name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from policygen import trees
from policygen.app.filters import Filter
from policygen.app.resolve import compare_trees
from policygen.app.review import review_change
from policygen.app.session import Session
from policygen.headers.specializations.siblings import older
from policygen.model.arch import arch_number
from policygen.model.tuning import spell
from policygen.proof.sites import places
from tests.brute import CAPABILITIES, Printer, program, run
from tests.family_changes import changed
from tests.probing import changed_tree, header, read, root
from tests.tiers import without

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

CASES = without(
    [
        ("2.8.2", "tuning_histogram.cuh", "value", 0, True),
        ("3.0.1", "tuning_reduce.cuh", "key", 0, True),
        ("3.1.4", "tuning_histogram.cuh", "value", 0, True),
        ("3.2.0", "tuning_three_way_partition.cuh", "value", 1, True),
        ("3.2.0", "tuning_run_length_encode.cuh", "key", 0, True),
        ("3.2.0", "tuning_scan.cuh", "base", 0, True),
        ("3.2.0", "tuning_radix_sort.cuh", "key", 0, False),
        ("3.2.0", "tuning_radix_sort.cuh", "value", 33, True),
        ("3.5.0", "tuning_three_way_partition.cuh", "value", 0, True),
        ("3.6.0", "tuning_three_way_partition.cuh", "value", 0, True),
        ("3.2.0", "tuning_scan.cuh", "base", 24, False),
    ],
    ("3.1.4", "tuning_histogram.cuh", "value", 0, True),
    ("3.2.0", "tuning_radix_sort.cuh", "value", 33, True),
    ("3.2.0", "tuning_scan.cuh", "base", 24, False),
    ("3.5.0", "tuning_three_way_partition.cuh", "value", 0, True),
)
"""The last says whether a workload of a benchmark gets other values."""
BETWEEN = [
    ("2.8.2", "tuning_histogram.cuh", "value", 0),
    ("3.2.0", "tuning_three_way_partition.cuh", "value", 1),
    ("3.6.0", "tuning_three_way_partition.cuh", "value", 0),
]
SUPPORT = """\
template <auto Value> const char* told() { return __PRETTY_FUNCTION__; }
template <class Type> const char* told() { return __PRETTY_FUNCTION__; }
// A delay with all of its arguments: the compiler leaves those out that are the usual ones.
template <template <unsigned int...> class Delay, unsigned int... Args>
void tell(const char* name, const Delay<Args...>*)
{
  const char* comma = "";
  std::cout << '\\t' << name << '\\t' << told<Delay<Args...>>() << '<';
  ((std::cout << comma << Args, comma = ", "), ...);
  std::cout << '>';
}
template <template <class> class Fields, template <int, class, class> class Chain, int Number,
          class Policy, class Older>
void walk(int workload, const Chain<Number, Policy, Older>*)
{
  std::cout << workload << '\\t' << Number / 10;
  Fields<Policy>::tell();
  std::cout << '\\n';
  if constexpr (!::cuda::std::is_same_v<Policy, Older>)
  {
    walk<Fields>(workload, static_cast<const Older*>(nullptr));
  }
}
"""
FIELDS = """\
template <class Active> struct fields
{{
  using policy = {policy};
  {setup}
  static void tell()
  {{
    {prints}
  }}
}};
"""
# "… [with auto Value = cub::CUB_300200_SM_750::LOAD_CA]", "… [with Type = cub::…_t<1, 2>]<1, 2, 3>"
TOLD = re.compile(r" = (?:\w+::)*(?:(\w+)<.*\](<.*>)|(.*)\])")


def fields(site):
    """Prints what a site's policy holds, by the names of the policy's members."""
    values = {name: f"({text})" for name, text in site.values.items()}
    prints = [f'std::cout << "\\t{n}\\t" << told<{text}>();' for n, text in values.items()]
    for name, text in site.types.items():
        delay = f"typename {text.removeprefix('typename ')}"
        prints.append(f'brute::tell("{name}", static_cast<const {delay}*>(nullptr));')
    policy = f"typename Active::{site.policy}" if site.policy else "Active"
    setup = "\n".join(site.setup)
    return FIELDS.format(policy=policy, setup=setup, prints="\n    ".join(prints))


def walk(site, index):
    """Begins at the newest policy."""
    return f"walk<fields>({index}, static_cast<const w{index}::hub::{site.max_policy}*>(nullptr));"


PRINTER = Printer(walk, SUPPORT, fields)


@cache
def asked_of(version, name):
    """A program for the sites of a header whose policies stand in chains, and its workloads."""
    found = read(root(version), name)
    known = places(older(found.cub), found.headers, re.compile(""), {}, frozenset({name}))
    return program(name, found.cub.bindings, [p for p in known if not p.site.is_selector], PRINTER)


def policies(version, name, folder, include):
    """Workload and compute capability → the values of the policy, as the compiler spells them.

    It is that of the greatest number that is not above, or else the oldest.
    """
    text, points = asked_of(version, name)
    chains = {}
    for row in run(folder, text, include):
        index, number, *cells = row.split("\t")
        told = ("".join(filter(None, TOLD.search(cell).groups())) for cell in cells[1::2])
        values = dict(zip(cells[::2], told, strict=True))
        chains.setdefault(points[int(index)], {})[int(number)] = values
    assert chains.keys() == set(points)
    return {
        (point, cc): chain[max((n for n in chain if n <= cc), default=min(chain))]
        for point, chain in chains.items()
        for cc in CAPABILITIES
    }


@cache
def unchanged(version, name, folder):
    """What a tree says as CUB has it."""
    return policies(version, name, folder, root(version))


def unlike(before, after):
    """What differs between two sides: by workload and compute capability, old and new by name."""
    found = {}
    for spot, old in before.items():
        if pairs := {n: (v, after[spot][n]) for n, v in old.items() if v != after[spot][n]}:
            found[spot] = pairs
    return found


def told_by(rows):
    """The same of what policygen says."""
    return {
        (row.point, arch_number(row.arch)): {
            name: (spell(row.before[name]), spell(row.after[name])) for name in row.changed
        }
        for row in rows
    }


def steps(*sides):
    """The compute capabilities at which policies begin to be others, those before and behind."""
    begins = {
        cc
        for side in sides
        for (point, cc), values in side.items()
        if values != side.get((point, cc - 1), values)
    }
    return sorted({50} | {cc + i for cc in begins for i in (-1, 0, 1)} & {*CAPABILITIES})


@dataclass(frozen=True)
class Tried:
    """A change, and what the program says of it."""

    version: str
    name: str
    session: Session
    before: Mapping
    after: Mapping

    @property
    def base(self):
        """The tree without it."""
        return str(root(self.version))


@pytest.fixture
def tried(tmp_path, tmp_path_factory):
    def make(version, name, kind, seed):
        (found,) = read(root(version), name).headers
        change = changed(found, header(version, name), f"{version} {name} {seed}", kind)
        include = changed_tree(tmp_path, version, {name: change.data})
        session = Session(trees.open_tree(include), tmp_path / "policygen.db")
        before = unchanged(version, name, tmp_path_factory.getbasetemp())
        return Tried(version, name, session, before, policies(version, name, tmp_path, include))

    return make


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name", "kind", "seed", "decides"), CASES)
def test_a_review_tells_what_a_program_that_walks_all_chains_tells(
    tried, version, name, kind, seed, decides
):
    one = tried(version, name, kind, seed)
    review = review_change(one.session, one.base)
    wanted = unlike(one.before, one.after)
    assert bool(wanted) == decides
    same_as_review(review, wanted)
    assert review.others == (), "all differ by the entry that changed"
    assert wanted or review.failures, "what decides nothing that is bound is told as such"


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name", "kind", "seed"), BETWEEN)
def test_a_comparison_tells_the_same_before_and_behind_each_step(tried, version, name, kind, seed):
    one = tried(version, name, kind, seed)
    wanted = unlike(one.before, one.after)
    assert wanted
    same_as_comparison(one, wanted)


def same_as_review(review, wanted):
    """Whether a review says what differs, and nothing else."""
    rows = [*review.others, *(row for entry in review.entries for row in entry.reached)]
    assert all(row.legacy == review.cub.has_selectors for row in rows)
    known = {spot: values for spot, values in told_by(rows).items() if spot[1] in CAPABILITIES}
    archs = [arch_number(arch) for arch in review.archs]
    # It asks where something can change; in between is what was before it.
    lasts = {spot: (spot[0], max(arch for arch in archs if arch <= spot[1])) for spot in wanted}
    assert {spot: known.get(last) for spot, last in lasts.items()} == wanted
    assert known.keys() <= wanted.keys()


def same_as_comparison(one, wanted):
    """Whether two trees that are compared differ in that; policy selectors read no families."""
    asked_at = steps(one.before, one.after)
    asked = Filter((one.name,), archs=tuple(f"sm{cc}" for cc in asked_at))
    told, errors = compare_trees(one.session, one.base, asked)
    assert errors == ()
    there = {spot: values for spot, values in wanted.items() if spot[1] in asked_at}
    assert told_by(told.different) == ({} if one.session.cub.has_selectors else there)
