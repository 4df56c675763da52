"""One compile for all architectures, against a compile for each; and what marked rows tell."""

import re
from dataclasses import replace

import pytest

from policygen.model.trees import BoundVersion
from policygen.proof.answers import plain
from policygen.proof.ask import ask
from policygen.proof.oracle import marked_copies
from policygen.proof.probe import QueriedTree, probe
from policygen.proof.sites import places
from policygen.proof.toolchain import find_toolchain
from tests.probing import changed_tree, header, read, replaced, root
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc]

THREE = "tuning_three_way_partition.cuh"
ARCHS = ("sm75", "sm86", "sm90", "sm100")
HUB = """template <class InputT, class OffsetT>
struct policy_hub
"""
# One architecture late; it stands beside the hub, and is found before that of CUB.
LATE = """template <int Since, class Policy, class Before> struct ChainedPolicy
{
  using ActivePolicy =
    ::cuda::std::_If<(CUB_PTX_ARCH <= Since), typename Before::ActivePolicy, Policy>;
};
template <int Since, class Policy> struct ChainedPolicy<Since, Policy, Policy>
{ using ActivePolicy = Policy; };
"""


def asked(path, pattern, axes=None, archs=ARCHS, *headers):
    """What to ask of a tree, and the tree."""
    found = read(path, *headers)
    wanted = {axis: frozenset(values) for axis, values in (axes or {}).items()}
    known = places(found.cub, found.headers, re.compile(f"cub.bench.{pattern}$"), wanted)
    questions = [replace(place, archs=archs) for place in known]
    marked = marked_copies(found, "specializations")
    return questions, QueriedTree(BoundVersion(found.cub.version), (str(path),), marked)


def rows(told, questions):
    """Without namespaces: CUB's tells which architectures a unit is compiled for."""
    return {
        (index, number, arch, marked): [*map(plain, told.rows[point, arch, marked])]
        for index, question in enumerate(questions)
        for number, point in enumerate(question.points)
        for arch in question.archs
        for marked in (False, True)
    }


@slow
def test_a_compile_for_each_architecture_answers_the_same():
    """Where CUB itself says in each of them which policy is active."""
    types = {"T": ["I8", "F32", "I64"]}
    questions, tree = asked(root("3.2.0"), "(radix_sort.keys|reduce.sum|scan.exclusive.sum)", types)
    toolchain = find_toolchain()
    assert set(ARCHS) <= set(toolchain.archs)
    together = probe(questions, tree, toolchain)
    assert together.errors == ()
    found = rows(together, questions)
    apart = {}
    for arch in ARCHS:
        alone = [replace(question, archs=(arch,)) for question in questions]
        told = probe(alone, tree, toolchain)
        assert told.errors == ()
        apart |= rows(told, alone)
    assert apart == found
    assert len({str(found[0, 0, arch, False]) for arch in ARCHS}) > 1


@pytest.mark.slow
def test_a_tree_whose_chains_work_in_another_way_is_refused(tmp_path):
    """At sm90, which it is compiled for, the policy of sm80 is active."""
    data = replaced(header("3.0.1", THREE), (HUB, LATE + HUB))
    path = changed_tree(tmp_path, "3.0.1", {THREE: data})
    questions, tree = asked(path, "partition.three_way", None, ("sm90", "sm100"), THREE)
    told = probe(questions, tree, find_toolchain())
    assert not told.rows
    assert len(told.errors) == 2  # values, and entries
    for error in told.errors:
        assert (
            'static assertion failed with "policygen walks this chain of policies in another way'
            ' than CUB"' in str(error)
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "axes", "sizes"),
    [
        pytest.param("reduce.sum", {"T": ["I8"]}, {"AccumT": 4, "axis::T": 1}, marks=slow),
        pytest.param("reduce.sum", {"T": ["I64"]}, {"AccumT": 8, "axis::T": 8}, marks=slow),
        ("radix_sort.pairs", {"KeyT": ["I8"], "ValueT": ["I128"]}, {"DominantT": 16}),
        pytest.param("scan.exclusive.sum", {"T": ["I16"]}, {"AccumT": 4}, marks=slow),
        pytest.param("histogram.even", {"SampleT": ["I8"]}, {}, marks=slow),
    ],
)
def test_a_marked_row_tells_the_sizes_of_roles(pattern, axes, sizes):
    """The accumulator's, which is often larger than the input."""
    questions, tree = asked(root("3.0.1"), pattern, axes, ("sm90", "sm100"))
    told = ask(tree, questions, find_toolchain())
    (question,) = questions
    for point in question.points:
        for arch in question.archs:
            found = told.rows[point, arch]
            assert found.sizes == sizes
            assert set(found.keys) == {binding.name for binding, _ in question.families}
