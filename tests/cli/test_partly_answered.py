"""A header that the compiler refuses is told, and ends nothing that is said of the others."""

import json

import pytest

from tests.cli.test_resolve import OLD_ITEMS, THREE
from tests.cli.tuned import run
from tests.probing import changed_tree, header, replaced, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

HEADER, MERGE = "tuning_three_way_partition.cuh", "tuning_merge.cuh"
BROKEN = OLD_ITEMS.replace("BlockLoadAlgorithm", "BlockLoadAlgorithmm")
WHY = 'identifier "BlockLoadAlgorithmm" is undefined'


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A tree with one header that does not compile, and one with fewer threads."""
    changed = {
        HEADER: replaced(header("3.0.1", HEADER), (OLD_ITEMS, BROKEN)),
        MERGE: replaced(header("3.0.1", MERGE), ("agent_policy_t<256,", "agent_policy_t<128,")),
    }
    return changed_tree(tmp_path_factory.mktemp("broken"), "3.0.1", changed)


def review(capsys, tree, base):
    arguments = ("review", "-q", "--format", "json", "--cub", tree, "--base", base)
    status, out, err = run(capsys, *arguments)
    assert out, err
    return status, json.loads(out), err


@pytest.mark.slow
@pytest.mark.parametrize("when", ["after", "before"])
def test_a_review_of_a_side_that_does_not_compile_tells_the_rest(capsys, broken, when):
    sides = (broken, root("3.0.1")) if when == "after" else (root("3.0.1"), broken)
    status, found, err = review(capsys, *sides)
    assert status == 1
    (lost,) = found["uncovered"]
    assert lost["header"] == HEADER
    assert lost["what"].startswith(f"no answer: {THREE}: {when} the change it does not compile")
    assert lost["what"].endswith(WHY)
    assert {row["benchmark"] for row in found["others"]} == {
        "cub.bench.merge.keys",
        "cub.bench.merge.pairs",
    }
    assert "command failed with status" in err


@pytest.mark.slow
def test_a_header_that_cannot_be_read_is_told_and_the_rest_is_compared(capsys, tmp_path):
    data = header("3.0.1", HEADER)
    changed = {
        HEADER: data[: data.index(b"struct policy_hub")],
        MERGE: replaced(header("3.0.1", MERGE), ("agent_policy_t<256,", "agent_policy_t<128,")),
    }
    tree = changed_tree(tmp_path, "3.0.1", changed)
    status, found, _ = review(capsys, tree, root("3.0.1"))
    assert status == 1
    unread, lost = found["uncovered"]
    assert unread["header"] == lost["header"] == HEADER
    assert unread["what"].startswith("it cannot be read, so its entries are unknown: ")
    assert lost["what"].startswith(f"no answer: {THREE}: after the change it does not compile")
    assert {row["benchmark"] for row in found["others"]} > {"cub.bench.merge.keys"}


@pytest.mark.slow
def test_a_family_of_another_shape_ends_the_question_of_its_header_alone(capsys, tmp_path):
    data = header("3.0.1", HEADER)
    data = data.replace(b"template <class InputT,\n", b"template <class, class InputT,\n")
    tree = changed_tree(tmp_path, "3.0.1", {HEADER: data})
    arguments = ("three_way_partition", "merge", "--arch", "sm100", "--json", "-q")
    status, out, err = run(capsys, "resolve", *arguments, "--cub", tree)
    assert status == 2
    found = json.loads(out)
    assert {row["benchmark"] for row in found["rows"]} == {
        "cub.bench.merge.keys",
        "cub.bench.merge.pairs",
    }
    why = f"{HEADER}: sm80_tuning has 5 template parameters, and 4 are bound"
    assert found["unresolved"] == [{"benchmark": THREE, "reason": why, "header": HEADER}]
    assert why in err


@pytest.mark.slow
def test_what_one_side_does_not_answer_is_neither_equal_nor_different(capsys, broken):
    arguments = ("--arch", "sm100", "--json", "-q", "--cub", broken, "--compare", root("3.0.1"))
    names = ("three_way_partition", "merge")
    status, out, _ = run(capsys, "resolve", *names, *arguments)
    assert status == 2
    found = json.loads(out)
    (lost,) = found["unresolved"]
    assert (lost["benchmark"], lost["header"]) == (THREE, HEADER)
    assert THREE not in {row["benchmark"] for row in found["different"]}
    assert all(row["before"] and row["after"] for row in found["different"])


@pytest.mark.slow
def test_coverage_counts_what_is_answered(capsys, broken):
    names = ("three_way_partition", "merge")
    status, out, _ = run(
        capsys, "audit", "coverage", *names, "--arch", "sm100", "--json", "-q", "--cub", broken
    )
    assert status == 2
    found = json.loads(out)
    assert [one["benchmark"] for one in found["unresolved"]] == [THREE]
    assert {cell["benchmark"] for cell in found["cells"]} >= {"cub.bench.merge.keys"}
