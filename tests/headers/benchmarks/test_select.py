import re

import pytest

from policygen.errors import InputError
from policygen.headers.benchmark_sources import select
from tests.headers.benchmarks.places import checkout


def test_names_are_matched_at_their_beginning() -> None:
    document = select(checkout(), re.compile(r"cub\.bench\.(sum|odd\.n)"), {})
    assert [one.name for one in document.benchmarks] == [
        "cub.bench.odd.names",
        "cub.bench.sum.plain",
    ]


def test_named_axes_are_cut_to_the_values_asked_for_and_others_stay() -> None:
    chosen = {"T{ct}": frozenset({"I8", "C32"}), "Elements{io}[pow2]": frozenset({"28"})}
    document = select(checkout(), re.compile(""), chosen)
    names, one = document.benchmarks[1], document.benchmarks[3]
    assert one.ct_axes == {"T{ct}": ("I8", "C32"), "OffsetT{ct}": ("I32", "I64")}
    assert one.rt_axes == {"Elements{io}[pow2]": ("28",), "Entropy": ("1.000", "0.201")}
    assert names == checkout().benchmarks[1]


@pytest.mark.parametrize(
    ("names", "axes", "message"),
    [
        (
            "bench",
            {},
            "-R 'bench' does not match the start of any benchmark's name\n"
            "  -R matches from the start of a name: -R '.*bench' matches cub.bench.odd.incomplete,"
            " cub.bench.odd.names,"
            " cub.bench.shuffle.deep.warp.lookahead, cub.bench.sum.plain",
        ),
        (
            "cub.bench.sum",
            {"KeyT{ct}": frozenset({"I8"})},
            "-a KeyT{ct}: none of these benchmarks has this axis\n"
            "  They have: Elements{io}[pow2], Entropy, OffsetT{ct}, T{ct}",
        ),
        (
            "cub.bench.sum",
            {"OffsetT{ct}": frozenset({"I8", "U8"})},
            "-a OffsetT{ct}: no benchmark has the value I8, U8\n  They have: I32, I64",
        ),
    ],
)
def test_what_matches_nothing_is_refused_with_what_there_is(
    names: str, axes: dict[str, frozenset[str]], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        select(checkout(), re.compile(names), axes)
    assert str(caught.value) == message
