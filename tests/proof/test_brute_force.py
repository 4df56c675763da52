"""What a change does, by another way: a program prints each policy at each compute capability.

CUB's policies print themselves, with all fields by name; nothing of the probe is used.
"""

import random
import re
from itertools import product

import pytest

from policygen import trees
from policygen.app.filters import Filter
from policygen.app.resolve import compare_trees
from policygen.app.review import review_change
from policygen.app.session import Session
from policygen.model.arch import arch_number
from policygen.proof.sites import places
from tests.brute import CAPABILITIES, Printer, program, run
from tests.probing import TUNINGS, changed_tree, header, read, root
from tests.tiers import sampled

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

FIRST = ("3.6.0", "tuning_three_way_partition.cuh", 0, False)
OTHERS = [
    ("3.6.0", f"tuning_{name}.cuh", 2, True)
    for name in ("histogram", "adjacent_difference", "scan_by_key", "rle_encode", "reduce_by_key")
]
CASES = sampled([FIRST, (*FIRST[:2], 1, True), *OTHERS], FIRST)
"""The last says whether the return that changes decides a workload of a benchmark."""
# "  .items_per_thread = 16,"
FIELD = re.compile(r"\.(\w+) = (?!\w+ \{)(-?[\w:]+)")
NUMBER = re.compile(r"\d+")
SUPPORT = """
template <class Selector> constexpr auto policy_on(int cc)
{ return Selector{}(::cuda::compute_capability{cc / 10, cc % 10}); }
"""
PRINTER = Printer(
    support=SUPPORT,
    workload=lambda site, index: (
        "for (int cc = 50; cc <= 130; ++cc) "
        f"{{ std::cout << {index} << ' ' << cc << ' '"
        f" << w{index}::hub{{}}(::cuda::compute_capability{{cc / 10, cc % 10}}) << '\\n'; }}"
    ),
)


def asked_of(version, name):
    """The sites of a header that have selectors, with all workloads."""
    found = read(root(version), name)
    everything = re.compile("")
    known = places(found.cub, found.headers, everything, {}, frozenset({name}))
    return found.cub.bindings, [place for place in known if place.site.is_selector]


def printed(folder, text, points, include):
    """Workload and compute capability → the fields of the policy, in order."""
    found = {}
    for row in run(folder, text, include):
        index, cc, policy = row.split(" ", 2)
        found[points[int(index)], int(cc)] = FIELD.findall(policy)
    assert found.keys() == set(product(points, CAPABILITIES))
    return found


def changed_header(version, name, seed):
    """One value of one guarded return is another one."""
    rng = random.Random(f"{version} {name} {seed}")
    (found,) = read(root(version), name).headers
    members = [
        member
        for family in found.selectors
        for entry in family.entries
        if entry.specific and not entry.disabled
        for member in entry.members
        if NUMBER.fullmatch(member.spelling) or member.spelling.isidentifier()
    ]
    data = header(version, name)
    spelled = {}
    for member in members:
        spelled.setdefault(member.name, set()).add(member.spelling)
    able = [m for m in members if m.spelling.isdigit() or len(spelled[m.name]) > 1]
    member = rng.choice(able)
    others = sorted(spelled[member.name] - {member.spelling})
    digits = member.spelling.isdigit()
    new = str(int(member.spelling) + 1) if digits else rng.choice(others)
    start, end = member.value_span
    return data[:start] + new.encode() + data[end:]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name", "seed", "decides"), CASES)
def test_a_review_tells_what_a_program_that_prints_all_policies_tells(
    tmp_path, version, name, seed, decides
):
    changed = changed_tree(tmp_path, version, {name: changed_header(version, name, seed)})
    assert (changed / TUNINGS / name).read_bytes() != header(version, name)
    text, points = program(name, *asked_of(version, name), PRINTER)
    before = printed(tmp_path, text, points, root(version))
    after = printed(tmp_path, text, points, changed)
    wanted = {}
    for spot, fields in before.items():
        pairs = zip(fields, after[spot], strict=True)
        if names := {old[0] for old, new in pairs if old != new}:
            wanted[spot] = names
    session = Session(trees.open_tree(changed), tmp_path / "policygen.db")
    review = review_change(session, str(root(version)))
    rows = [*review.others, *(row for entry in review.entries for row in entry.reached)]
    known = {(r.point, arch_number(r.arch)): r for r in rows if not r.legacy}
    asked = Filter((name,), archs=tuple(f"sm{cc}" for cc in CAPABILITIES))
    told, errors = compare_trees(session, str(root(version)), asked)
    assert errors == ()
    assert {(row.point, arch_number(row.arch)) for row in told.different} == wanted.keys()
    assert known.keys() <= wanted.keys()
    assert bool(wanted) == decides
    assert wanted or review.failures, "what decides nothing that is bound is told as such"
    archs = [arch_number(arch) for arch in review.archs]
    for (point, cc), names in wanted.items():
        # The review asks where something can change; in between is what was before it.
        last = max(arch for arch in archs if arch <= cc)
        row = known[point, last]
        assert fields_of(session, row) == names, (point, cc)


def fields_of(session, row):
    """What a row says that differs, by the names of fields."""
    name = row.benchmark
    (site,) = {
        place.site.name: place.site
        for place in places(session.cub, [], re.compile(re.escape(name) + "$"), {})
        if place.site.is_selector
    }.values()
    found = set()
    for value in {n for n in row.after if row.before.get(n) != row.after[n]}:
        if value == "delay_constructor":
            delay, *_ = (path.rpartition(".")[2] for path in site.delay)
            found.add(delay)
        else:
            found.add(site.values.get(value, value).rpartition(".")[2])
    return found
