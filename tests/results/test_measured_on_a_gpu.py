"""What `policygen measure` wrote on an H200: two runs agree, and base is as fast as itself."""

import math

import pytest

from policygen.model.results import Rules
from policygen.results.ranking import rank
from tests.results.measured import MEASURED

RUNS = [MEASURED / f"C_reduce_sum_{name}.db" for name in ("first", "second")]
BESIDE_ITSELF = MEASURED / "C_scan_beside_itself.db"
ITSELF, FAST = "ipt_0", "ipt_22.tpb_256.ns_200.dcid_1.l2w_600.trp_1.ld_0"


def ranked(path):
    """The one workload of a database, and the scores of its variants."""
    (workload,) = rank([path], rules=Rules()).workloads
    return workload, {one.variant: one for one in workload.variants if one.variant != "base"}


def test_two_runs_agree_within_the_noise_that_they_measured():
    (first, one), (second, other) = map(ranked, RUNS)
    assert one.keys() == other.keys()
    assert len(one) == 5
    allowed = 1.96 * math.hypot(first.choice.noise, second.choice.noise)
    assert max(abs(one[label].score - other[label].score) for label in one) < allowed
    assert allowed < 0.011


def test_no_variant_of_either_is_chosen():
    for path in RUNS:
        workload, _ = ranked(path)
        assert workload.choice.decision == "keep base"
        assert workload.choice.noise_origin == "measured: 5 processes of base next to 5 variants"


def test_the_noise_is_less_than_that_of_separate_runs():
    """What drifts from process to process drifts for base and variants alike."""
    for path in RUNS:
        assert 0.002 < ranked(path)[0].choice.noise < 0.005


def test_base_as_a_variant_is_as_fast_as_base():
    workload, scores = ranked(BESIDE_ITSELF)
    assert scores[ITSELF].score == pytest.approx(1, abs=2 * workload.choice.noise)
    assert scores[FAST].score == pytest.approx(1.091, abs=0.001)
    assert (workload.choice.decision, workload.choice.variant) == ("use", FAST)
