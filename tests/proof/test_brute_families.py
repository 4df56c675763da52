"""What a change of an entry of a family does, by another way than the probe's.

A program walks each hub's chain of policies and prints their members by name.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from policygen import tree
from policygen.app.filters import Filter
from policygen.app.resolve import compare_trees
from policygen.app.review import review_change
from policygen.app.session import Session
from policygen.dialects.specializations.older import older
from policygen.model.arch import arch_number
from policygen.model.selection import WHOLE
from policygen.model.tuning import spell
from policygen.proof.sites import places
from tests.brute import CAPABILITIES, Printer, program, run
from tests.family_changes import changed
from tests.probing import changed_tree, header, read, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

CASES = [("3.2.0", "tuning_three_way_partition.cuh", "value", 0)]
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
    values = {name: f"({text})" for name, text in site.values.items()} | {WHOLE: "policy"}
    prints = [f"std::cout << \"\\t{n}\\t\" << told<{text}>();" for n, text in values.items()]
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


def around(before):
    """The compute capabilities at which policies begin, those before and those behind."""
    begins = {
        cc for (point, cc), values in before.items() if values != before.get((point, cc - 1), values)
    }
    return {50} | {cc + i for cc in begins for i in (-1, 0, 1)} & {*CAPABILITIES}


def unlike(before, after):
    """What differs between two sides: by workload and compute capability, old and new by name.

    A difference that no name tells is one of the policy's type.
    """
    found = {}
    for spot, old in before.items():
        pairs = {n: (v, after[spot][n]) for n, v in old.items() if v != after[spot][n]}
        whole = pairs.pop(WHOLE, None)
        if pairs or whole:
            found[spot] = pairs or {WHOLE: None}
    return found


def told_by(rows):
    """The same of what policygen says."""
    return {
        (row.point, arch_number(row.arch)): {
            name: (spell(row.before[name]), spell(row.after[name])) if name != WHOLE else None
            for name in row.changed
        }
        for row in rows
    }


@pytest.mark.parametrize(("version", "name", "kind", "seed"), CASES)
def test_a_review_tells_what_a_program_that_walks_all_chains_tells(
    tmp_path, tmp_path_factory, version, name, kind, seed
):
    (found,) = read(root(version), name).headers
    change = changed(found, header(version, name), f"{version} {name} {seed}", kind)
    include = changed_tree(tmp_path, version, {name: change.data})
    before = unchanged(version, name, tmp_path_factory.getbasetemp())
    wanted = unlike(before, policies(version, name, tmp_path, include))
    session = Session(tree.open_tree(include), tmp_path / "policygen.db")
    review = review_change(session, str(root(version)))
    check(session, review, wanted, str(root(version)), name, around(before))


def check(session, review, wanted, base, name, asked_at):
    """Whether a review and a comparison say what differs, and nothing else."""
    rows = [*review.others, *(row for entry in review.entries for row in entry.reached)]
    known = {s: n for s, n in told_by(rows).items() if s[1] in CAPABILITIES}
    beside = session.cub.has_selectors
    assert all(row.legacy == beside for row in rows)
    asked = Filter((name,), archs=tuple(f"sm{cc}" for cc in sorted(asked_at)))
    told, errors = compare_trees(session, base, asked)
    assert errors == ()
    there = {spot: values for spot, values in wanted.items() if spot[1] in asked_at}
    assert told_by(told.different) == ({} if beside else there)
    assert known.keys() <= wanted.keys()
    archs = [arch_number(arch) for arch in review.archs]
    for (point, cc), values in wanted.items():
        # The review asks where something can change; in between is what was before it.
        last = max(arch for arch in archs if arch <= cc)
        assert known[point, last] == values, (point, cc)
    assert wanted or review.failures, "what decides nothing that is bound is told as such"
