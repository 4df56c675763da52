"""Whatever is chosen for whatever header: the edits are exact, can be taken back, and end.

The compiler is asked once, about CUB's own headers; where a key leads in a changed header is found
out here, by comparing it with the arguments of the entries.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from policygen import trees
from policygen.bindings.variants import member_values
from policygen.headers.protocol import TuningTree
from policygen.headers.scan import read_changed
from policygen.headers.specializations.placement import family_spot
from policygen.model.plans import Options
from policygen.model.selection import FamilyKey, Selected
from policygen.model.workload import parse_label
from policygen.planning.plan import Planner
from policygen.planning.saved import changed_headers
from policygen.proof.oracle import open_compiler
from policygen.results.together import Together
from tests.planning.wanted import GPUS, assert_taken_back, benchmark, label, made, points, scored
from tests.probing import header, root
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, slow]

VERSION = "3.0.1"
SITES = {
    "tuning_radix_sort.cuh": ("radix_sort.keys", "radix_sort.pairs"),
    "tuning_scan.cuh": ("scan.exclusive.sum",),
    "tuning_select_if.cuh": ("select.flagged", "partition.if"),
}
ARCHS = ("sm90", "sm100")
# What the compiler prints → what headers write.
TYPES = {"__int128": "__int128_t", "unsigned __int128": "__uint128_t"}


class Recorded(dict):
    """By header: its tree, and what the compiler tells, by architecture and workload."""

    def __repr__(self):
        return "what the compiler told"  # a failure prints it, and it is 30 MB


@pytest.fixture(scope="module")
def recorded():
    found = Recorded()
    for name, benchmarks in SITES.items():
        compiler = open_compiler(trees.open_tree(root(VERSION)), [name])
        lot = [
            (of.name, tuple(point.items()))
            for of in (benchmark(VERSION, short) for short in benchmarks)
            for point in points(of, VERSION)
        ]
        found[name] = compiler.tree, {arch: compiler.tell(lot, arch) for arch in ARCHS}
    return found


def told_value(spelled):
    """`primitive_op::yes` as the compiler prints it: yes."""
    return spelled.rpartition("::")[2]


def told_type(printed):
    """`signed int` as headers have it: int."""
    plain = printed if printed == "signed char" else printed.removeprefix("signed ")
    return TYPES.get(plain, plain)


def lead(family, args):
    """The most special entry that takes a key; the primary template is none."""
    found = []
    for entry in family.specializations:
        own = entry.own_parameters
        pairs = [(s, p) for s, p in zip(entry.args, args, strict=True) if s not in own]
        if all(told_value(spelled) == told_type(printed) for spelled, printed in pairs):
            found.append((len(pairs), entry))
    most = max((count for count, _ in found), default=0)
    best = [entry for count, entry in found if count == most]
    assert len(best) <= 1, (family.name, args)
    return best[0] if best else None


@dataclass(frozen=True)
class Known:
    """An oracle that remembers; `written` are workloads that have other values by now."""

    told: dict
    header: object
    written: dict
    toolchain = "nvcc, as it was"

    def tell(self, asked, arch):
        return {point: self._told(point, arch) for point in asked}

    def _told(self, point, arch):
        was = self.told[arch][point]
        leads = {}
        for family in self.header.families:
            if family.name in was.keys:
                args = was.keys[family.name].args
                entry = lead(family, args)
                leads[family.name] = FamilyKey(args, entry and (family, entry))
        return Selected(self.written.get(point, was.values), None, leads, was.sizes)


def first_for_all(cases):
    """The variant of the first workload that has one, for all that share its entry."""
    chosen = next(case.choice.variant for case in cases if case.choice.variant)
    variants = [case.measurement.scored.variants[0] for case in cases]
    made = tuple(variant.model_copy(update={"variant": chosen}) for variant in variants)
    return Together(made, "it is the first one")


@st.composite
def dresses(draw, data):
    """The same header as an editor may have left it: line ends, BOM, spaces, the last line."""
    rows = data.split(b"\n")
    blank = [at for at, row in enumerate(rows) if not row.strip()]
    for at in draw(st.lists(st.sampled_from(blank), max_size=6, unique=True)):
        rows[at] += draw(st.sampled_from([b" ", b"  \t"]))
    made = b"\n".join(rows)
    if draw(st.booleans()):
        made = made.rstrip()
    if draw(st.booleans()):
        made = made.replace(b"\n", b"\r\n")
    return (b"\xef\xbb\xbf" if draw(st.booleans()) else b"") + made


@cache
def pool(name):
    """A few variants of each benchmark: so few that workloads share some."""
    of = benchmark(VERSION, name)
    return [None, *(label(of, f"{name} {number}") for number in range(3))]


@st.composite
def wanted(draw, name, arch):
    """Some workloads of a header, each with a variant, or with none that is better than base."""
    found = []
    for short in SITES[name]:
        of = benchmark(VERSION, short)
        lot = points(of, VERSION)
        for point in draw(st.lists(st.sampled_from(lot), max_size=8, unique_by=repr)):
            variant = draw(st.sampled_from(pool(short)))
            found.append(scored(of, point, variant, VERSION, gpu=GPUS[arch]))
    return found


@st.composite
def situations(draw):
    """A header, what was measured for it, and how to plan."""
    name, arch = draw(st.sampled_from(sorted(SITES))), draw(st.sampled_from(ARCHS))
    options = Options(
        arch=arch,
        collisions=draw(st.sampled_from(["best-worst", "split"])),
    )
    return name, draw(dresses(header(VERSION, name))), draw(wanted(name, arch)), options


class Attempt:
    """A plan for a header that holds some data."""

    def __init__(self, recorded, name, data, options, written=()):
        tree, told = recorded[name]
        self.name, self.data = name, data
        self.header = read_changed(tree.paths[name], data)
        self.oracle = Known(told, self.header, dict(written))
        self.sources = TuningTree(tree.cub, {name: self.header}, {name: data})
        self.options = options
        self.path = tree.paths[name]

    def plan(self, choices):
        planner = Planner(self.sources, self.options, self.oracle, first_for_all, prove=False)
        return made(planner, choices)


def same_everywhere(data):
    """Whether all its lines end in the same way."""
    return data.count(b"\r\n") in {0, data.count(b"\n")} and b"\r" not in data.replace(b"\r\n", b"")


def spliced(data, edits):
    """The plainest way to do some edits: from the last one to the first."""
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        start, end = edit.span
        assert data[start:end] == edit.old.encode()
        data = data[:start] + edit.new.encode() + data[end:]
    return data


def entries(header, data):
    """Each entry with its family and its bytes."""
    return [
        (family.name, entry, data[entry.span.start : entry.span.end])
        for family in header.families
        for entry in family.entries
    ]


def plain(spelling):
    return re.sub(r"\s+|detail::|cub::", "", spelling)


def holds(entry, members):
    """Whether an entry has values of its own, or inherits them as arguments of a base."""
    if entry.members:
        own = {member.name: plain(member.spelling) for member in entry.members}
        return own == {name: plain(value) for name, value in members.items()}
    args = re.findall(r"\w+", entry.inherits.partition("<")[2])
    numbers = [n for v in members.values() for n in re.findall(r"\b\d+\b", v)]
    return all(number in args for number in numbers)


@pytest.mark.parametrize("name", SITES)
def test_the_keys_lead_where_the_compiler_says(recorded, name):
    """What the other tests of this file rest on."""
    tree, told = recorded[name]
    (read,) = (h for h in tree.headers if h.name == name)
    families = {family.name: family for family in read.families}
    for lot in told.values():
        for one in lot.values():
            for family, known in one.keys.items():
                entry = known.entry and known.entry[1]
                if entry is not None and entry.kind == "primary":
                    entry = None
                assert lead(families[family], known.args) == entry


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(situation=situations())
def test_a_plan_is_exact_reversible_and_done_once(recorded, situation):
    name, data, choices, options = situation
    attempt = Attempt(recorded, name, data, options)
    plan = attempt.plan(choices)
    assume(plan.edits)
    after = changed_headers(plan, {name: data})[name]
    assert after == spliced(data, plan.edits)
    assert same_everywhere(after)
    now = read_changed(attempt.path, after)
    check_entries(attempt, plan, now, after)
    check_values(attempt, plan, now)
    assert_taken_back({name: data}, {name: after})
    written = {
        (a.benchmark, tuple(a.workload.items())): a.after
        for a in plan.actions
        if a.decision in {"update", "add"}
    }
    again = Attempt(recorded, name, after, options, written).plan(choices)
    assert again.edits == ()
    assert again.files == ()


def check_entries(attempt, plan, now, after):
    """What no edit touches is there as it was; what one touches is what was to be updated."""
    lines = {a.target.line for a in plan.actions if a.decision == "update"}
    spans = [edit.span for edit in plan.edits]
    untouched = Counter()
    for family, entry, text in entries(attempt.header, attempt.data):
        if any(s.start < entry.span.end and s.end > entry.span.start for s in spans):
            assert entry.line in lines
        else:
            untouched[family, entry.args, text] += 1
    there = Counter((family, entry.args, text) for family, entry, text in entries(now, after))
    assert not untouched - there


def check_values(attempt, plan, now):
    """The entry that a written workload's key leads to holds exactly what was planned."""
    of = {b.name: b for b in (benchmark(VERSION, n) for n in SITES[attempt.name])}
    families = {family.name: family for family in now.families}
    for action in plan.actions:
        if action.decision not in {"update", "add"}:
            continue
        point = action.benchmark, tuple(action.workload.items())
        told = attempt.oracle.told[plan.options.arch][point]
        sources = TuningTree(attempt.sources.cub, {now.name: now}, {})
        to = family_spot(of[action.benchmark], told, sources, plan.options.arch)
        parameters = parse_label(action.variant)
        members = member_values(to.binding, of[action.benchmark], parameters, told.sizes)
        entry = lead(families[action.target.family], told.keys[action.target.family].args)
        assert holds(entry, members), (action, entry)
        assert entry.variant == action.variant
