"""What `resolve --compare` and `emit` print, and what `tune` says of a workload."""

import pytest

from policygen.model.emitted import Emitted, TuneOutcome
from policygen.model.results import Interval
from policygen.model.selection import Comparison, Differing
from policygen.model.trees import Cub
from policygen.report import plan_views, value_views
from policygen.report.search_views import outcome_words
from tests.report.shown import lines as shown

CUB = Cub(root="tree", version="3.6.0", dialect="selectors", found="--cub")


def differing(**given):
    values = {"benchmark": "cub.bench.a", "workload": {"T": "I8"}, "arch": "sm90"}
    return Differing.model_validate(values | given)


def test_the_values_that_differ_are_shown_and_no_others():
    document = Comparison(
        before=CUB,
        after=CUB,
        toolchain="nvcc 13.2.86",
        archs=("sm90",),
        compared=1_000,
        different=(
            differing(
                before={"threads": 128, "items": 7, "wide": True},
                after={"threads": 256, "items": 7, "wide": False},
                changed=("threads", "wide"),
            ),
            differing(before=None, after={"threads": 1}, changed=("threads",)),
        ),
    )
    lines = shown(value_views.comparison(document, head=True, verbose=False), 80)
    assert "      before: threads=128  wide=true" in lines
    assert "      after:  threads=256  wide=false" in lines
    assert "  1 workload only after" in lines
    assert "2 workloads differ of 1,000, on sm90" in lines
    assert not [line for line in lines if "items" in line]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.985, 0.988, "base is best: what comes next is slower, 0.986 (0.985 to 0.988)"),
        (0.985, 1.001, "best 0.986 (0.985 to 1.001): not faster than base beyond noise"),
    ],
)
def test_a_best_that_is_slower_leaves_base_the_best(low, high, words):
    interval = Interval(low=low, high=high)
    outcome = TuneOutcome.model_construct(
        variant=None, score=0.986, interval=interval, least_score=1.01
    )
    assert outcome_words(outcome) == words


def test_the_best_finalist_is_named_where_another_is_in_the_header():
    outcome = TuneOutcome.model_construct(
        variant="ipt_9", best="ipt_7", passed_over="slow there: 0.94"
    )
    assert outcome_words(outcome) == "ipt_7 is not in the header: slow there: 0.94"


def test_the_first_line_of_emit_fits_a_terminal():
    document = Emitted(
        cub=CUB,
        toolchain="nvcc 13.2.86",
        arch="sm90",
        std=17,
        namespace="mine",
        selectors=(),
        actions=(),
    )
    lines = shown(plan_views.emitted(document, None, verbose=False), 40)
    expected = ["CUB 3.6.0 (selectors), tree [--cub],", "nvcc 13.2.86"]
    assert [line.rstrip() for line in lines[:2]] == expected
