"""Runtime axes whose values are words."""

import dataclasses

import pytest

from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.measure.runs import WorkloadRun, runs_of
from policygen.proof.probe import workloads
from policygen.tree.given import open_tree
from tests.trees import tree


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
    with pytest.raises(InputError, match="'perhaps' of Aligned is none of no, yes"):
        assert other.points
