import pytest

from policygen.model.bindings import MemberRule, Unit
from tests.proof.lint.toys import binding, entry, find

RULE = "items-not-divisible-by-vector"
PLAIN = binding({"items": MemberRule(parameter="ipt")})


def scaled(scaling, of="T"):
    rule = MemberRule(parameter="ipt", unit=Unit(scaling=scaling, of=of))
    names = {"items": rule, "nominal_4b_items": rule}
    return binding(names, args=("T", "sizeof(T)"))


@pytest.mark.parametrize(
    ("body", "bindings", "found"),
    [
        # NVIDIA/cccl#10752
        (
            entry(["items = 17", "vec_size = 2"]),
            [PLAIN],
            ("17", "17 items cannot be loaded as vectors of 2: vectorization is off"),
        ),
        (
            entry(["items_per_vec_load = 4", "items = 6"]),
            [PLAIN],
            ("6", "6 items cannot be loaded as vectors of 4: vectorization is off"),
        ),
        (
            entry(["items = 15", "vec_size = 2"], args="T, 8"),
            [scaled("mem_bound")],
            (
                "15",
                "15 items, which are 7 for large elements, cannot be loaded as vectors of 2:"
                " vectorization is off",
            ),
        ),
        (
            entry(["items = 15", "vec_size = 4"], args="T, 2"),
            [scaled("reg_bound")],
            ("15", "15 items cannot be loaded as vectors of 4: vectorization is off"),
        ),
        (
            entry(["nominal_4b_items = 6", "vec_size = 2"], args="T, 8"),
            [scaled("nominal_4b")],
            (
                "6",
                "6 items, which are 3 for large elements, cannot be loaded as vectors of 2:"
                " vectorization is off",
            ),
        ),
        # Several sites read one family in the same way.
        (
            entry(["items = 17", "vec_size = 2"]),
            [PLAIN, PLAIN],
            ("17", "17 items cannot be loaded as vectors of 2: vectorization is off"),
        ),
    ],
)
def test_finds_items_that_vectors_do_not_divide(body, bindings, found):
    assert find(RULE, body, *bindings) == [found]


@pytest.mark.parametrize(
    ("body", "bindings"),
    [
        (entry(["items = 16", "vec_size = 4"]), [PLAIN]),
        (entry(["items = 17", "vec_size = 1"]), [PLAIN]),
        (entry(["items = 3", "vec_size = 4"]), [PLAIN]),  # cut down to 3
        (entry(["items = 17"]), [PLAIN]),
        (entry(["vec_size = 2"]), [PLAIN]),
        (entry(["items = many()", "vec_size = 2"]), [PLAIN]),
        (entry(["items = 17", "vec_size = wide()"]), [PLAIN]),
        (entry(["items = 0", "vec_size = 2"]), [PLAIN]),
        # How the items are counted is not known.
        (entry(["items = 17", "vec_size = 2"]), []),
        (entry(["nominal_4b_items = 17", "vec_size = 2"]), [PLAIN]),
        (entry(["items = 17", "vec_size = 2"]), [scaled("mem_bound", of="AccumT")]),
        (entry(["items = 17", "vec_size = 2"]), [PLAIN, scaled("mem_bound", of="AccumT")]),
        # 15 items are 30 of two bytes.
        (entry(["items = 15", "vec_size = 2"], args="T, 2"), [scaled("mem_bound")]),
    ],
)
def test_leaves_items_alone_that_are_loaded_as_they_should(body, bindings):
    assert find(RULE, body, *bindings) == []


PIXELS = """template <int NumChannels> struct sm90_tuning;
template <{}> struct sm90_tuning<{}> {{
  static constexpr int items = 7; static constexpr int vec_size = 2; }};"""
HEAD = "CUB_NAMESPACE_BEGIN namespace detail { namespace demo { %s }} CUB_NAMESPACE_END"


@pytest.mark.parametrize(("channels", "count"), [("1", 1), ("4", 0)])
def test_samples_of_several_channels_are_loaded_by_pixels(channels, count):
    from policygen.headers.scan import read_header

    text = HEAD % PIXELS.format("", channels)
    families = read_header("tuning_demo.cuh", text.encode()).families
    assert len(find(RULE, "", PLAIN, families=families)) == count
