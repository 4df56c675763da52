"""All families of all trees with specializations: what is planned is what the compiler selects."""

from collections import Counter

import pytest

from policygen.errors import InputError
from policygen.headers.scan import read_header
from policygen.model.results import ScoredWorkload
from policygen.results.together import Together
from tests.planning.wanted import Planned, every_benchmark, label, points, scored
from tests.probing import changed_tree, root
from tests.tiers import slow, without

VERSIONS = without(("2.8.2", "3.0.1", "3.1.4", "3.2.0"), "2.8.2", "3.1.4", "3.2.0")
FLOATS = {"F32", "F64"}
pytestmark = [pytest.mark.trees, pytest.mark.nvcc]


def same_for_all(cases):
    """The variant that was chosen for the first is good for all."""
    found = [case.measurement.scored.chosen for case in cases]
    # Benchmarks that share an entry search ranges of their own: one variant must lie in all.
    chosen = [v for v in found if v]
    first = next((v for v in chosen if all(_means(case, v) for case in cases)), chosen[0])
    return Together(tuple(first for _ in cases), "the same for all")


def _means(case, variant) -> bool:
    try:
        return bool(case.measurement.parameters(variant.variant))
    except InputError:
        return False


def winners(version: str, *, floats: bool = True) -> list[ScoredWorkload]:
    """A variant for every workload of every benchmark, by its types; base for floats if asked."""
    wanted = []
    for benchmark in every_benchmark(version):
        for workload in points(benchmark, version):
            types = [value for axis, value in workload.items() if axis != "OffsetT"]
            base = not floats and FLOATS & set(types)
            # Benchmarks that share entries and parameters want the same of them.
            seed = f"{benchmark.parameters} {types}"
            variant = None if base else label(benchmark, seed)
            wanted.append(scored(benchmark, workload, variant, version, "any"))
    return wanted


def written_families(planned: Planned) -> set[tuple[str, str]]:
    """Namespace and family of all that was written."""
    return {
        (action.target.namespace, action.target.family)
        for action in planned.plan.actions
        if action.decision in {"update", "add"}
    }


def families_of(planned: Planned, arch: str) -> set[tuple[str, str]]:
    """The families of an arch that a policy reads."""
    used = {
        (chain.namespace, use.family)
        for header in planned.tree.headers
        for chain in header.chains
        for policy in chain.policies
        for use in policy.uses
    }
    return {
        (family.namespace, family.name)
        for header in planned.tree.headers
        for family in header.families
        if family.arch == arch and (family.namespace, family.name) in used
    }


def check(planned: Planned) -> None:
    """The compiler agrees, every header is read, and no byte changed but those of the edits."""
    effect = planned.effect()
    assert [f"{one.name}: {one.reason}" for one in effect.wrong] == []
    written = {a.benchmark for a in planned.plan.actions if a.decision in {"update", "add"}}
    assert {one.benchmark for one in effect.changed if one.role == "written"} == written
    for name, after in planned.after.items():
        read_header(name, after)
    for action in planned.plan.actions:
        assert action.reason


@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_family_of_sm90_is_updated_and_later_archs_keep_theirs(version):
    planned = Planned(
        root(version), winners(version), together=same_for_all, arch="sm90", force=True
    )
    check(planned)
    written, known = written_families(planned), families_of(planned, "sm90")
    assert written >= known
    # Sums have families of later architectures alone, and get one that is made after those.
    assert {namespace for namespace, _ in written - known} == {"cub::detail::reduce"}
    decisions = Counter(action.decision for action in planned.plan.actions)
    # Families of sm90 have no load modifier: what was measured with another one is rejected.
    assert decisions["update"] > 150
    assert decisions["add"] > 10
    kept = Counter((one.arch, one.kept) for one in planned.plan.reached if one.arch != "sm90")
    assert set(kept) == {("sm100", True)}
    assert kept["sm100", True] > 60


@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_family_of_sm100_is_written_where_floats_keep_what_they_had(version):
    planned = Planned(root(version), winners(version, floats=False), arch="sm100", force=True)
    check(planned)
    assert written_families(planned) >= families_of(planned, "sm100")
    floats = [a for a in planned.plan.actions if FLOATS & set(a.workload.values())]
    assert {a.decision for a in floats} == {"fallback"}
    assert all(a.before == a.after for a in floats)


@slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_architecture_gets_a_family_in_every_header_and_the_next_one_keeps_its_own(version):
    planned = Planned(root(version), winners(version), arch="sm120", force=True, collisions="split")
    check(planned)
    newest = {
        (namespace, f"sm120{name.partition('_')[1]}{name.partition('_')[2]}")
        for arch in ("sm90", "sm100")
        for namespace, name in families_of(planned, arch)
        if "topk" not in namespace
    }
    assert written_families(planned) == newest
    assert set(planned.plan.policies) == {"Policy1200", "Policy1210"}
    assert {one.arch for one in planned.plan.reached} <= {"sm120"}


@slow
def test_planned_again_nothing_is_left_to_write(tmp_path):
    wanted = winners("3.0.1")
    first = Planned(root("3.0.1"), wanted, together=same_for_all, arch="sm90", force=True)
    made = changed_tree(tmp_path, "3.0.1", first.after)
    again = Planned(made, wanted, together=same_for_all, arch="sm90", force=True)
    assert again.plan.edits == ()
    before = {k: d for k, d in first.decisions.items() if d in {"update", "add"}}
    assert {again.decisions[name] for name in before} == {"keep"}
