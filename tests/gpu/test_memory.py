from contextlib import nullcontext

import pytest

from policygen.errors import InputError
from policygen.gpu.space import Tile, check_fits, check_vectors, element_bytes, tiles
from policygen.model.trees import BoundVersion

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
        ("encode", {"T": "I8", "RunLengthT": "I32"}, 8),
        ("encode", {"T": "I32", "RunLengthT": "I64"}, 16),
        ("encode", {"T": "I128", "RunLengthT": "I32"}, 32),
        ("encode", {}, 0),
    ],
)
def test_an_element_has_the_bytes_of_its_type(site, values, size):
    assert element_bytes(site, values, BoundVersion("3.6.0")) == size


@pytest.mark.parametrize(
    ("element", "threads", "most"), [(8, 256, 23), (16, 128, 23), (16, 256, 11), (32, 128, 11)]
)
def test_a_tile_of_pairs_that_cub_launches_otherwise_is_refused(element, threads, most):
    (tile,) = tiles("encode", FIELDS, {}, element)
    assert tile.is_paired
    for items in range(1, most + 1):
        assert check_fits(tile, policy(threads, items, "BLOCK_LOAD_DIRECT"), "sm90") is None
    with pytest.raises(InputError, match="CUB launches another tile than it compiles"):
        check_fits(tile, policy(threads, most + 1, "BLOCK_LOAD_DIRECT"), "sm90")


def test_a_radix_sort_scatters_its_tile_through_shared_memory():
    fields = ("onesweep.threads_per_block", "onesweep.items_per_thread", "onesweep.store_algorithm")
    (tile,) = tiles("radix_sort", fields, {}, 4)
    scatters = "::cub::RADIX_SORT_STORE_DIRECT"
    fits = dict(zip(fields, ("512", "24", scatters), strict=True))
    assert check_fits(tile, fits, "sm90") is None
    with pytest.raises(InputError, match="which RADIX_SORT_STORE_DIRECT keeps in shared memory"):
        check_fits(tile, {**fits, fields[1]: "25"}, "sm90")


@pytest.mark.parametrize(
    ("items", "vector", "is_refused"),
    [(3, 4, True), (2, 4, True), (1, 4, False), (4, 4, False), (7, 4, False), (3, 2, False)],
)
def test_vectors_longer_than_the_items_of_a_thread_are_misaligned(items, vector, is_refused):
    policy = {"multi_tile.items_per_thread": str(items), "multi_tile.vec_size": str(vector)}
    assert check_vectors("scan", policy) is None
    with pytest.raises(InputError, match="misaligned") if is_refused else nullcontext():
        check_vectors("reduce", policy)
