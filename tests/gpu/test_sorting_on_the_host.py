"""Sorts, merges, reductions, top-k and transforms against a CUDA runtime that is no GPU's."""

import pytest

from tests.gpu import compiled
from tests.gpu.stub import OUT_OF_MEMORY, Arena
from tests.gpu.test_on_the_host import Called, Case
from tests.gpu.test_sorting_units import CALLED
from tests.tiers import sampled

QUICK = Case("3.6.0", "cub.bench.transform.fill", (("T", "I16"),), "fill")
CASES = (
    QUICK,
    Case("3.6.0", "cub.bench.merge.pairs", (("KeyT", "F32"), ("ValueT", "I8"))),
    Case("3.6.0", "cub.bench.merge_sort.keys", (("T", "C32"),)),
    Case("3.6.0", "cub.bench.radix_sort.pairs", (("KeyT", "I8"), ("ValueT", "I64"))),
    Case("3.6.0", "cub.bench.reduce.sum", (("T", "BF16"),)),
    Case("3.6.0", "cub.bench.reduce.deterministic", (("T", "F64"), ("OffsetT", "I64"))),
    Case("3.6.0", "cub.bench.reduce.arg_minmax", (("T", "I8"),)),
    Case("3.6.0", "cub.bench.segmented_reduce.argmin", (("T", "I8"),), "medium"),
    Case("3.6.0", "cub.bench.segmented_scan.sum", (("T", "C32"),), "varying_size_segments"),
    Case("3.6.0", "cub.bench.topk.pairs", (("KeyT", "I16"), ("ValueT", "I8"))),
    Case(
        "3.6.0",
        "cub.bench.segmented_topk.variable.indexed",
        (("MaxSegmentSize", "512"), ("K", "512")),
        "decode_style_variable_topk_indexed",
    ),
    Case("3.6.0", "cub.bench.transform.babelstream", (("T", "I8"),), "nstream"),
    Case("3.6.0", "cub.bench.transform.pytorch", (("T", "F16"),), "gelu"),
    Case("3.0.1", "cub.bench.radix_sort.keys", (("T", "F64"),)),
    Case("3.0.1", "cub.bench.reduce.arg_extrema", (("T", "I8"),)),
    Case("3.0.1", "cub.bench.merge.keys", (("KeyT", "I128"),)),
    Case("3.0.1", "cub.bench.transform.babelstream3", (("T", "F32"),), "nstream"),
)


def test_what_is_left_out_elsewhere_is_called_here() -> None:
    here = {case.benchmark.removeprefix("cub.bench.") for case in CASES if case.version == "3.6.0"}
    assert here >= CALLED


@pytest.mark.slow
@pytest.mark.parametrize("case", sampled(CASES, QUICK), ids=str)
def test_a_call_has_its_storage_launches_and_writes_nothing_beside_its_buffers(case: Case) -> None:
    called = Called(case)
    before = called.runtime.allocated
    assert not called.skips
    called.fill(exact=True)
    assert not called.runtime.harm

    arena = Arena(None, 0, 0, 0)
    code = called.call(arena)
    assert code == (OUT_OF_MEMORY if arena.needed else 0)
    if arena.needed:
        assert not called.runtime.launches
        arena.base, arena.capacity = called.runtime.allocate(arena.needed), arena.needed
        assert not called.call(arena)
        assert arena.needed == arena.capacity
    launches = called.runtime.launches
    assert launches
    assert all(32 <= one.block[0] <= 1024 for one in launches)
    assert not called.runtime.harm

    if arena.base:
        called.runtime.release(int(arena.base))
    called.close()
    assert called.runtime.allocated == before


@pytest.mark.slow
def test_transforms_need_no_storage() -> None:
    called = Called(QUICK)
    called.fill(exact=False)
    arena = Arena(None, 0, 0, 0)
    assert not called.call(arena)
    assert arena.needed == 0
    called.close()


@pytest.mark.slow
def test_more_selected_than_there_is_are_skipped() -> None:
    case = Case("3.6.0", "cub.bench.topk.keys", (("KeyT", "F32"),))
    skipped = {
        point.values["SelectedElements[pow2]"]: bool(Called(case, point).skips)
        for point in case.run.points
        if point.values["Elements{io}[pow2]"] == "16" and point.values["Entropy"] == "1.000"
    }
    assert skipped == {"3": False, "7": False, "11": False, "15": False, "19": True, "23": True}


@pytest.mark.slow
def test_there_is_room_for_as_many_segments_and_buffers_as_can_be() -> None:
    sort = Case("3.6.0", "cub.bench.segmented_sort.keys", (("T", "I8"),), "small")
    called = Called(sort, sort.run.points[0])
    # Segments of one or two elements: at most as many as elements, and one offset more.
    assert called.sizes["num_segments"] == 1 << 22
    assert called.bytes["offsets"] == 4 * ((1 << 22) + 1)
    copy = Case("3.6.0", "cub.bench.copy.memcpy", (("T", "U8"), ("OffsetT", "I64")), "uniform")
    for point in copy.run.points:
        called = Called(copy, point)
        mean = (called.sizes["least"] + int(point.values["MaxBufferSize"])) / 2
        elements = called.bytes["in"]
        assert called.bytes["from"] == called.bytes["into"] == called.bytes["bytes"]
        assert called.bytes["from"] / 8 >= 1.9 * elements / mean


@pytest.mark.slow
def test_what_is_aligned_is_said_by_a_number() -> None:
    run = compiled.runs("3.6.0", QUICK.benchmark)[0]
    aligned = {point.values["Aligned"]: Called(QUICK, point).sizes["shift"] for point in run.points}
    assert aligned == {"yes": 0, "no": 1}
