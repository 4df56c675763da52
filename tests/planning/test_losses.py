"""Of two algorithms for the same calls one is written; tests/cli/test_rivals.py compiles them."""

from types import SimpleNamespace

from policygen.planning.losses import outranked
from policygen.planning.places import PlacedResult


def result(algorithm, score, type_name="I8"):
    """A result that each algorithm writes into an entry of its own."""
    measurement = SimpleNamespace(
        benchmark=SimpleNamespace(
            name=algorithm, always={"algorithm": algorithm}, roles={"T": "axis::T"}, site="encode"
        ),
        workload={"T": type_name},
        point=(algorithm, type_name),
        scored=SimpleNamespace(gpu="B200", ctk="13.0", cccl="v3.6.0"),
        choice=SimpleNamespace(decision="use", score=score, variant=f"of_{algorithm}"),
    )
    selected = SimpleNamespace(values={"algorithm": "lookback"})
    spot = SimpleNamespace(place=algorithm, header="tuning_rle_encode.cuh", selected=selected)
    return PlacedResult(spot, measurement)


def test_of_two_algorithms_the_better_one_is_written_for_a_call():
    results = [result("lookback", 1.1), result("lookahead", 1.2)]
    assert outranked(results) == {
        ("lookback", "I8"): "lookahead is better for the calls of this entry; for this one"
        " of_lookahead has 1.2000 against 1.1000"
    }


def test_of_two_equal_ones_the_current_one_stays():
    results = [result("lookahead", 1.1), result("lookback", 1.1)]
    assert outranked(results).keys() == {("lookahead", "I8")}


def test_algorithms_for_other_calls_do_not_compete():
    assert outranked([result("lookback", 1.1), result("lookahead", 1.2, "I16")]) == {}
