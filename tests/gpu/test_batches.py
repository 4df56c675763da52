import pytest

from policygen.gpu.compiling import MOST, batches, unit_size


@pytest.mark.parametrize(
    ("variants", "slots", "size"),
    [(1, 16, 1), (16, 16, 1), (17, 16, 2), (128, 16, 8), (1024, 16, 64), (1025, 16, 33), (7, 2, 4)],
)
def test_all_cores_have_as_many_units(variants, slots, size):
    assert unit_size(variants, slots) == size


@pytest.mark.parametrize("variants", [1, 5, 16, 100, 1044, 4176])
@pytest.mark.parametrize("slots", [1, 2, 16, 128])
def test_units_are_as_large_as_each_other_and_not_too_large(variants, slots):
    lot = list(range(variants))
    found = batches(lot, unit_size(variants, slots))
    assert [one for batch in found for one in batch] == lot
    sizes = {len(batch) for batch in found}
    assert max(sizes) <= MOST
    assert max(sizes) - min(sizes) <= 1


def test_no_lot_is_no_batch():
    assert batches([], 4) == []
