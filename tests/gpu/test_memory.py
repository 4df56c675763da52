import pytest

from policygen.errors import InputError
from policygen.gpu.space import Tile, check_fits, element_bytes, tiles

FIELDS = ("lookback.threads_per_block", "lookback.items_per_thread", "lookback.load_algorithm")
TILE = Tile(FIELDS[2], FIELDS[0], FIELDS[1], 4)


def policy(threads, items, how="::cub::BLOCK_LOAD_WARP_TRANSPOSE"):
    return dict(zip(FIELDS, (str(threads), str(items), how), strict=True))


def test_a_tile_is_what_stands_beside_how_it_is_loaded():
    others = ("other.load_algorithm", "other.items_per_thread", "algorithm")
    assert list(tiles("scan", (*FIELDS, *others), {FIELDS[1]: 4}, 0)) == [TILE]
    assert list(tiles("scan", FIELDS, {}, 8)) == [Tile(*TILE.fields, 8)]
    assert list(tiles("scan", FIELDS, {}, 0)) == []
    assert list(tiles("merge_sort", FIELDS, {FIELDS[1]: 4}, 0)) == []


def test_flat_names_are_beside_each_other_too():
    (found,) = tiles("scan", ("threads", "items", "load_algorithm"), {}, 2)
    assert found.fields == ("load_algorithm", "threads", "items")


@pytest.mark.parametrize(
    ("arch", "told"),
    [
        ("sm90", policy(512, 24)),
        ("sm90", policy(1024, 24, "::cub::BLOCK_LOAD_DIRECT")),
        ("sm90", policy(1024, 24, "BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED")),
        ("sm199", policy(1024, 24)),
    ],
)
def test_what_may_fit_is_not_refused(arch, told):
    assert check_fits(TILE, told, arch) is None


def test_what_cannot_fit_is_refused():
    with pytest.raises(InputError) as refused:
        check_fits(TILE, policy(1024, 24), "sm90")
    assert refused.value.in_line == (
        "1024 threads x 24 items x 4 bytes = 98,304 bytes, which BLOCK_LOAD_WARP_TRANSPOSE keeps"
        " in shared memory. A block of sm90 has 49,152 bytes of shared memory."
    )


@pytest.mark.parametrize(
    ("site", "values", "size"),
    [
        ("scan", {"T": "I64", "OffsetT": "I32"}, 8),
        ("scan_by_key", {"KeyT": "I8", "ValueT": "I128"}, 16),
        ("scan", {"OffsetT": "I32"}, 0),
        ("merge_sort", {"T": "I64"}, 0),
    ],
)
def test_an_element_has_the_bytes_of_its_type(site, values, size):
    assert element_bytes(site, values, "3.6.0") == size
