"""Runtime axes whose values are words."""

import dataclasses

import pytest

from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.gpu.units import WorkloadRun, inputs_text, runs_of
from policygen.proof.probe import workloads
from policygen.trees.lookup import open_tree
from tests.real_trees import tree


def _runs(version: str, name: str) -> tuple[WorkloadRun, ...]:
    cub = open_tree(tree(version))
    benchmark = next(b for a in bound(cub.bindings) for b in a.benchmarks if b.name == name)
    return runs_of(cub, next(iter(workloads(benchmark, cub.bindings))))


def test_words_of_an_axis_are_numbers_in_their_order():
    runs = _runs("3.6.0", "cub.bench.transform.babelstream")
    assert [run.binding.subbench for run in runs] == ["mul", "add", "triad", "nstream"]
    points = {point.values["Aligned"]: point.numbers for point in runs[0].points}
    at = runs[0].numbers.index("Aligned")
    assert {word: numbers[at] for word, numbers in points.items()} == {"yes": 1, "no": 0}


def test_a_word_that_is_not_known_is_refused():
    run = _runs("3.6.0", "cub.bench.transform.fill")[0]
    other = dataclasses.replace(run, axes={**run.axes, "Aligned": ("perhaps",)})
    with pytest.raises(InputError, match="the value 'perhaps' of Aligned is not one of no, yes"):
        assert other.points


def test_what_belongs_to_a_set_is_kept_of_base_and_compared_with_it():
    run = _runs("3.6.0", "cub.bench.topk.pairs")[0]
    text = inputs_text(run)
    assert list(run.binding.buffers) == ["in", "values", "out", "out_values"]
    # 1 is filled, 2 is compared, 8 has exact contents.
    roles = [line.strip() for line in text.splitlines() if line.strip().startswith("roles[")]
    assert roles == ["roles[0] = 1;", "roles[1] = 9;", "roles[2] = 2;", "roles[3] = 2;"]
    assert "compare_groups(" in text.partition("policygen_compare(")[2]
    assert "(got[3])" in text
