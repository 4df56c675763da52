"""Several GPUs measure a rung: shares, a GPU that is lost, and who asks to stop."""

import pytest

from policygen.errors import InputError
from policygen.gpu.device import LostGpuError
from policygen.gpu.pool import ATTEMPTS, GpuPool, GpuSource, StopAskedError, divided
from tests.gpu.gpus import (
    ALL,
    LABELS,
    LOST,
    SIZES,
    cells,
    local_gpus,
    measured,
    never,
    plan_of,
    points,
)


@pytest.fixture
def notes():
    return []


@pytest.fixture
def pooled(tmp_path, notes):
    """Runs something on a pool of GPUs with plans."""

    def run(action, *plans):
        made = [plan_of(tmp_path, number, **plan) for number, plan in enumerate(plans)]
        with local_gpus(*made) as gpus:
            return action(GpuPool(gpus, note=notes.append))

    return run


def rung(pool, asked=never, **how):
    return list(pool.rung(points(), 1, asked, **how))


def test_variants_are_divided_each_beside_base(pooled):
    found = pooled(rung, {}, {})
    assert measured(found) == ALL
    parts = {
        part: {label for _, label, its in cells(found) if its == part and label != "base"}
        for part in (0, 1)
    }
    assert [len(labels) for labels in parts.values()] == [4, 3]
    assert not parts[0] & parts[1]
    bases = [(point, part) for point, label, part in cells(found) if label == "base"]
    assert bases == [(point, part) for point in range(len(SIZES)) for part in (0, 1)]


def test_finalists_are_measured_together(pooled):
    found = pooled(lambda pool: rung(pool, together=True), {}, {})
    assert measured(found) == ALL
    assert {one.part for one in found} == {0}
    assert [one.point for one in found] == [0, 1, 2]


def test_there_are_no_more_shares_than_variants():
    assert [[*one.points[0].functions] for one in divided(points(LABELS[:2]), 5)] == [
        [LABELS[0]],
        [LABELS[1]],
    ]
    (empty,) = divided(points(()), 5)
    assert empty.points[0].functions == {}
    assert divided([], 5)[0].points == []


def test_one_that_fails_is_not_on_the_next_runtime_workload(pooled):
    does = {LABELS[0]: "crash", LABELS[1]: "wrong"}
    found = pooled(rung, {"does": does}, {"does": does})
    failed = [(one.point, label, why.kind) for one in found for label, why in one.failed.items()]
    assert sorted(failed) == [(0, LABELS[0], "crash"), (0, LABELS[1], "wrong")]
    assert measured(found) == [(number, label) for number, label in ALL if label not in does]


def lost_at(sample):
    """A GPU that is lost when base runs for that time."""
    return {"bases": [""] * sample + LOST}


def test_what_a_lost_gpu_has_not_measured_the_other_one_does(pooled, notes):
    """On a runtime workload base runs once to be warm, once for nothing, and in two rounds."""
    found = pooled(rung, {}, lost_at(10))
    assert measured(found) == ALL
    assert {one.part for one in found} == {0, 1}
    (note,) = notes
    assert "base failed 3 times in a row" in note
    assert note.endswith("; 1 GPU left")


def test_a_gpu_that_is_lost_at_once_costs_nothing(pooled):
    def twice(pool):
        first = rung(pool)
        assert len(pool.gpus) == 1
        return first + rung(pool)

    assert measured(pooled(twice, lost_at(0), {})) == sorted(ALL + ALL)


def test_only_when_none_is_left_the_loss_comes_through(pooled, notes):
    taken = []

    def run(pool):
        taken.extend(pool.rung(points(), 1, never))

    with pytest.raises(LostGpuError, match="base failed"):
        pooled(run, lost_at(10), lost_at(0))
    assert 0 < len(taken) < 2 * len(SIZES)
    assert len(set(measured(taken))) == len(measured(taken))
    assert len(notes) == 1


def test_work_that_loses_each_gpu_is_given_up(pooled):
    """The last GPU is not tried: it would be lost, too."""

    def run(pool):
        with pytest.raises(LostGpuError, match=f"^{ATTEMPTS} GPUs in a row failed"):
            list(pool.rung(points(LABELS[:1]), 1, never))
        return len(pool.gpus)

    assert pooled(run, *[lost_at(0)] * (ATTEMPTS + 1)) == 1


def test_who_asks_to_stop_stops_all_and_keeps_what_was_measured(pooled):
    taken = []

    def run(pool):
        taken.extend(pool.rung(points(), 1, lambda: len(taken) >= 2))

    with pytest.raises(StopAskedError):
        pooled(run, {}, {})
    assert 2 <= len(taken) < 2 * len(SIZES)
    assert measured(taken) == sorted(set(measured(taken)))


class BrokenGpu:
    """Fails as nothing that is known does."""

    def point(self, point, seed, *, fresh):
        raise InputError("it is broken")

    def look(self, points, seed):
        raise LostGpuError("it is gone")


def test_another_failure_ends_the_rung(pooled):
    def run(pool):
        pool.gpus.append(BrokenGpu())
        return rung(pool)

    with pytest.raises(InputError, match="it is broken"):
        pooled(run, {})


def looked(pool):
    return pool.look(points(()), 1)


def test_what_one_gpu_cannot_open_is_skipped_on_all(pooled):
    first, second, third = pooled(looked, {}, {"skips": [18]})
    assert len(first.samples) == len(third.samples) == 12
    assert second.skipped == "the benchmark skips it"


def test_base_is_looked_at_without_a_gpu_that_is_lost(pooled, notes):
    def run(pool):
        pool.gpus.insert(0, BrokenGpu())
        return looked(pool)

    assert all(one.samples for one in pooled(run, {}))
    assert notes == ["it is gone; 1 GPU left"]


def test_base_cannot_be_looked_at_without_a_gpu():
    with pytest.raises(LostGpuError, match="it is gone"):
        looked(GpuPool([BrokenGpu()]))


@pytest.mark.parametrize("lost", [lost_at(0), lost_at(6)])
def test_another_gpu_comes_in_place_of_the_last(pooled, notes, lost):
    class Second(GpuSource):
        def __init__(self, gpus):
            self.gpus = gpus

        def more(self, asked, *, waiting):
            return [self.gpus.pop()] if waiting and self.gpus else []

    def run(pool):
        pool.source = Second([pool.gpus.pop()])
        return looked(pool) and rung(pool)

    assert measured(pooled(run, lost, {})) == ALL
    (note,) = notes
    assert note.endswith("; another GPU continues")


def test_gpus_that_never_last_are_given_up():
    class Endless(GpuSource):
        def more(self, asked, *, waiting):
            return [BrokenGpu()] if waiting else []

    with pytest.raises(LostGpuError, match="it is gone"):
        looked(GpuPool([BrokenGpu()], Endless()))


def test_a_new_gpu_takes_part_from_the_next_rung_on(pooled):
    class Later(GpuSource):
        def __init__(self, gpus):
            self.gpus = gpus

        def more(self, asked, *, waiting):
            return [self.gpus.pop()] if self.gpus else []

    def run(pool):
        pool.source = Later([pool.gpus.pop()])
        return rung(pool)

    assert {one.part for one in pooled(run, {}, {})} == {0, 1}


def test_processes_of_all_gpus_are_counted(pooled):
    """Each rung has a fresh process on each GPU."""

    def run(pool):
        return rung(pool) + rung(pool)

    found = pooled(run, {}, {})
    assert max(one.restarts for one in found) == 4
