import pytest

from policygen.model.bindings import MemberRule, Unit
from tests.proof.lint.toys import binding, find

RULE = "shared-memory-over-limit"
ARGS = ("T", "classify_key_size<KeyT>()")


def bound(scaling=None, of="KeyT", args=ARGS):
    unit = Unit(scaling=scaling, of=of) if scaling else None
    return binding({"items": MemberRule(parameter="ipt", unit=unit)}, args=args)


def entry(threads, items, algorithm, size="key_size::_8", first="T", name="sm90_tuning"):
    head = "template <class T>" if first == "T" else "template <>"
    return (
        f"{head} struct {name}<{first}, {size}> {{ static constexpr int threads = {threads};\n"
        f"static constexpr int items = {items};\n"
        f"static constexpr BlockLoadAlgorithm load_algorithm = {algorithm}; }};\n"
    )


@pytest.mark.parametrize(
    ("body", "bindings", "tile"),
    [
        (entry(512, 13, "BLOCK_LOAD_WARP_TRANSPOSE"), [bound()], "512 threads x 13 items x 8"),
        (entry(512, 13, "cub::BLOCK_LOAD_TRANSPOSE"), [bound()], "512 threads x 13 items x 8"),
        (entry(512, 13, "BLOCK_STORE_TRANSPOSE"), [bound()], "512 threads x 13 items x 8"),
        # A named type has a size too, and the largest element counts.
        (
            entry(512, 13, "BLOCK_LOAD_TRANSPOSE", "key_size::_2", first="double"),
            [bound()],
            "512 threads x 13 items x 8",
        ),
        # 20 nominal items are 10 of eight bytes.
        (
            entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"),
            [bound("nominal_4b")],
            "1024 threads x 10 items x 8",
        ),
        # The threads are limited to whole warps, which rounds up: 576 x 11 x 8 > 48 KiB.
        (
            entry(1024, 23, "BLOCK_LOAD_TRANSPOSE"),
            [bound("mem_bound")],
            "576 threads x 11 items x 8",
        ),
        (
            entry(1024, 23, "BLOCK_LOAD_TRANSPOSE"),
            [bound("reg_bound"), bound()],
            "576 threads x 11 items x 8",
        ),
    ],
)
def test_finds_tiles_that_do_not_fit(body, bindings, tile):
    ((at, message),) = find(RULE, body, *bindings)
    assert at == body.split("threads = ")[1].split(";")[0]
    assert message.startswith(f"{tile} bytes = ")
    assert message.endswith("a block of sm90 has 49,152, or 232,448 when its launch asks for them")


@pytest.mark.parametrize(
    ("body", "bindings"),
    [
        (entry(512, 12, "BLOCK_LOAD_WARP_TRANSPOSE"), [bound()]),  # 48 KiB to the byte
        (entry(512, 13, "BLOCK_LOAD_DIRECT"), [bound()]),
        (entry(512, 13, "BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED"), [bound()]),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE", "key_size::unknown"), [bound()]),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"), []),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"), [bound("mem_bound", of="AccumT")]),
        (entry(1024, 23, "BLOCK_LOAD_TRANSPOSE"), [bound(), bound("mem_bound", of="AccumT")]),
        (entry("T::value", 20, "BLOCK_LOAD_TRANSPOSE"), [bound()]),
        (entry(1024, "T::value", "BLOCK_LOAD_TRANSPOSE"), [bound()]),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"), [binding({}, args=ARGS)]),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"), [bound(args=("T",))]),
        # Offsets are no part of a tile.
        (
            entry(1024, 20, "BLOCK_LOAD_TRANSPOSE"),
            [bound(args=("T", "classify_offset_size<OffsetT>()"))],
        ),
        # An architecture of which nothing is known.
        (
            "template <class T, int Size> struct sm40_tuning;\n"
            + entry(1024, 20, "BLOCK_LOAD_TRANSPOSE", name="sm40_tuning"),
            [bound()],
        ),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE").replace("threads", "warps"), [bound()]),
        (entry(1024, 20, "BLOCK_LOAD_TRANSPOSE").replace("int items", "int pixels"), [bound()]),
    ],
)
def test_leaves_tiles_alone_that_may_fit(body, bindings):
    assert find(RULE, body, *bindings) == []
