"""Units run against a CUDA runtime that is no GPU's: sizes, storage and launches are right.

Kernels do not run on it, so that nothing is said here of what they compute.
"""

import ctypes
from dataclasses import dataclass
from math import ceil

import pytest

from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.gpu.units import RuntimePoint, WorkloadRun
from tests.gpu import compiled
from tests.gpu.stub import OUT_OF_MEMORY, Arena, Launch, stub
from tests.gpu.test_sorting_units import ALGORITHMS
from tests.tiers import earlier, sampled

SMS, GUARD = 132, 256


@dataclass(frozen=True, slots=True)
class Case:
    """A benchmark of a version, with a workload of it, and what it comes to for 2^16 elements."""

    version: str
    benchmark: str
    axes: tuple[tuple[str, str], ...] = ()
    subbench: str = "base"

    def __str__(self) -> str:
        """Names a test."""
        values = ",".join(f"{axis}={value}" for axis, value in self.axes)
        return f"{self.version}-{self.benchmark}-{values}-{self.subbench}"

    @property
    def run(self) -> WorkloadRun:
        """How it runs."""
        found = compiled.runs(self.version, self.benchmark, **dict(self.axes))
        named = (one for one in found if one.binding.subbench == self.subbench)
        return next(named, found[0])


SEEN: dict[str, tuple[dict[str, str], ...]] = {
    "cub.bench.adjacent_difference.subtract_left": ({"OffsetT": "I64"},),
    "cub.bench.find_if.base": ({"T": "I128", "U": "I64"},),
    "cub.bench.histogram.even": ({"SampleT": "F64"}, {"SampleT": "I8"}),
    "cub.bench.histogram.multi.even": ({"SampleT": "I64"},),
    "cub.bench.histogram.multi.range": ({"SampleT": "F32"},),
    "cub.bench.histogram.range": ({"SampleT": "I8"},),
    "cub.bench.partition.flagged": (
        {"T": "I128", "OffsetT": "I64", "DistinctPartitions": "true"},
        {"T": "I8", "OffsetT": "I32", "DistinctPartitions": "false"},
    ),
    "cub.bench.partition.if": (
        {"T": "I128", "OffsetT": "I64", "DistinctPartitions": "true"},
        {"T": "F32", "OffsetT": "I32", "DistinctPartitions": "false"},
    ),
    "cub.bench.partition.three_way": ({"T": "I128", "OffsetT": "I64"},),
    "cub.bench.reduce.by_key": ({"KeyT": "I128", "ValueT": "F32"},),
    "cub.bench.run_length_encode.encode": ({"T": "F64"},),
    "cub.bench.run_length_encode.encode.lookahead": ({"T": "I128", "RunLengthT": "I64"},),
    "cub.bench.run_length_encode.non_trivial_runs": ({"T": "I128"},),
    "cub.bench.scan.applications.P1.non-commutative-bicyclic-monoid": ({"T": "U128"},),
    "cub.bench.scan.applications.P1.running-min-max": ({"T": "U32"},),
    "cub.bench.scan.applications.P1.scan-over-unitriangular-group": ({"T": "U64"},),
    "cub.bench.scan.exclusive.custom": ({"T": "F64"},),
    "cub.bench.scan.exclusive.by_key": ({"KeyT": "F64", "ValueT": "I128"},),
    "cub.bench.scan.exclusive.sum": ({"T": "I128", "OffsetT": "I64"},),
    "cub.bench.scan.exclusive.sum.lookahead": ({"T": "BF16"},),
    "cub.bench.select.flagged": (
        {"T": "I128", "InPlace": "true"},
        {"T": "I8", "InPlace": "false"},
    ),
    "cub.bench.select.if": ({"T": "I128", "InPlace": "true"}, {"T": "F64", "InPlace": "false"}),
    "cub.bench.select.unique": (
        {"T": "F64", "InPlace": "true"},
        {"T": "I128", "InPlace": "false"},
    ),
    "cub.bench.select.unique_by_key": ({"KeyT": "I128", "ValueT": "F64"},),
}
"""Workloads with the most peculiar types, by benchmark."""
DISTINCT = {"T": "I128", "OffsetT": "I64", "DistinctPartitions": "true"}
LONG_RUNS = {"OffsetT": "I64", "RunLengthT": "I64"}
OTHER_CALLS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("2.8.2", "cub.bench.histogram.multi.even", {"SampleT": "I64"}),
    ("2.8.2", "cub.bench.histogram.multi.range", {"SampleT": "F32"}),
    ("2.8.2", "cub.bench.partition.if", DISTINCT),
    ("2.8.2", "cub.bench.partition.three_way", {"T": "I128", "OffsetT": "I64"}),
    ("2.8.2", "cub.bench.run_length_encode.non_trivial_runs", {"T": "I128"}),
    ("2.8.2", "cub.bench.scan.exclusive.max", {"T": "I128"}),
    ("2.8.2", "cub.bench.select.flagged", {"T": "I128", "InPlace": "true"}),
    ("2.8.2", "cub.bench.select.unique", {"T": "F64", "InPlace": "true"}),
    ("2.8.2", "cub.bench.select.unique_by_key", {"KeyT": "I128", "ValueT": "F64"}),
    ("3.1.4", "cub.bench.run_length_encode.encode", {"T": "C64", **LONG_RUNS}),
    ("3.1.4", "cub.bench.run_length_encode.non_trivial_runs", {"T": "I128"}),
    ("3.2.0", "cub.bench.run_length_encode.encode", {"T": "C32", **LONG_RUNS}),
    ("3.2.0", "cub.bench.run_length_encode.non_trivial_runs", {"T": "I128", **LONG_RUNS}),
    ("3.2.0", "cub.bench.scan.exclusive.by_key", {"KeyT": "C32", "ValueT": "I128"}),
    ("3.2.0", "cub.bench.select.unique", {"T": "F64", "InPlace": "true"}),
    ("3.5.0", "cub.bench.find_if.base", {"T": "I128", "U": "I64"}),
    ("3.5.0", "cub.bench.histogram.multi.even", {"SampleT": "I64"}),
    ("3.5.0", "cub.bench.partition.flagged", DISTINCT),
    ("3.5.0", "cub.bench.run_length_encode.encode", {"T": "F64"}),
    ("3.5.0", "cub.bench.select.unique", {"T": "F64", "InPlace": "true"}),
    ("3.6.0", "cub.bench.reduce.by_key", {"KeyT": "I16", "ValueT": "C32"}),
    ("3.6.0", "cub.bench.select.unique_by_key", {"KeyT": "I8", "ValueT": "C32"}),
)
"""Versions in which calls differ, and complex numbers."""
QUICK = Case("3.6.0", "cub.bench.adjacent_difference.subtract_left", (("OffsetT", "I64"),))


def _cases() -> list[Case]:
    others = [Case(version, name, tuple(axes.items())) for version, name, axes in OTHER_CALLS]
    return [
        *others,
        *(
            Case(version, benchmark, tuple(axes.items()))
            for version in ("3.6.0", "3.0.1")
            for benchmark, lot in SEEN.items()
            if benchmark in compiled.benchmarks(version)
            for axes in lot
            if axes.keys() <= compiled.benchmarks(version)[benchmark].axes.keys()
        ),
    ]


def _left(cases: list[Case]) -> list[Case]:
    """Second workloads of a benchmark, and what earlier versions have."""
    second = [case for case in cases if dict(case.axes) in SEEN.get(case.benchmark, ())[1:]]
    first = [case for case in cases if case not in second]
    return [*second, *earlier((case.version, case) for case in first)]


CASES = sampled(dict.fromkeys([QUICK, *_cases()]), QUICK, left=_left(_cases()))


class Called:
    """A runtime workload's buffers in the stub's memory, with guards of their own."""

    def __init__(self, case: Case, point: RuntimePoint | None = None) -> None:
        """Loads the units and asks for the sizes."""
        self.runtime = stub()
        run = case.run
        units = compiled.units(run)
        self.inputs, self.base = ctypes.CDLL(str(units.inputs)), ctypes.CDLL(str(units.base))
        count = len(run.binding.buffers)
        chosen = point or run.points[0]
        self.axes = (ctypes.c_longlong * len(chosen.numbers))(*chosen.numbers)
        self._sizes = (ctypes.c_longlong * len(run.binding.sizes))()
        self._bytes = (ctypes.c_longlong * count)()
        self.skips = self.inputs.policygen_shape(self.axes, self._sizes, self._bytes)
        self.buffers = (ctypes.c_void_p * count)()
        self._names = list(run.binding.sizes)
        self._buffer_names = list(run.binding.buffers)
        self.runtime.forget()

    @property
    def sizes(self) -> dict[str, int]:
        """By name."""
        return dict(zip(self._names, self._sizes, strict=True))

    @property
    def bytes(self) -> dict[str, int]:
        """By buffer."""
        return dict(zip(self._buffer_names, self._bytes, strict=True))

    def fill(self, *, exact: bool) -> list[Launch]:
        """Makes contents; the kernels that would have."""
        for at, size in enumerate(self._bytes):
            self.buffers[at] = self.buffers[at] or self.runtime.allocate(size)
        self.runtime.forget()
        assert not self.inputs.policygen_fill(self.buffers, self.axes, self._sizes, int(exact))
        return self.runtime.launches

    def call(self, arena: Arena) -> int:
        """Calls the algorithm with some storage."""
        self.runtime.forget()
        code = self.base.policygen_run_0(self.buffers, self._sizes, ctypes.byref(arena), None)
        return int(code)

    def close(self) -> None:
        """Gives memory back."""
        for place in self.buffers:
            if place:
                self.runtime.release(place)


def _has_a_run(version: str, benchmark: str) -> bool:
    try:
        return bool(compiled.runs(version, benchmark))
    except InputError:
        return False


@pytest.mark.parametrize("version", ["3.6.0", "3.0.1"])
def test_all_that_has_a_run_is_tried(version: str) -> None:
    known = {
        benchmark.name
        for found in bound(compiled.cub(version).bindings)
        if found.algorithm not in ALGORITHMS  # those have modules of their own
        for benchmark in found.benchmarks
        if benchmark.writable
    }
    tried = {name for name in known if _has_a_run(version, name)}
    assert len(tried) > 15
    assert tried <= SEEN.keys()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_storage_is_asked_for_and_then_enough_and_nothing_is_written_beside_it(case: Case) -> None:
    called = Called(case)
    before = called.runtime.allocated
    assert not called.skips
    filled = called.fill(exact=True)
    assert len(filled) >= sum(one.fill is not None for one in case.run.binding.buffers.values())

    arena = Arena(None, 0, 0, 0)
    assert called.call(arena) == OUT_OF_MEMORY
    assert not called.runtime.launches
    assert arena.needed > 0
    arena.base, arena.capacity = called.runtime.allocate(arena.needed), arena.needed
    assert not called.call(arena)
    assert arena.needed == arena.capacity
    launches = called.runtime.launches
    assert launches
    assert not called.runtime.harm

    called.runtime.release(int(arena.base))
    called.close()
    assert called.runtime.allocated == before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_buffers_grow_with_elements_and_have_room_for_all_of_them(case: Case) -> None:
    small, large = (Called(case, one) for one in (case.run.points[0], case.run.points[-1]))
    assert small.sizes["num_items"] == 1 << 16
    assert large.sizes["num_items"] == 1 << 28 or large.sizes["num_items"] == 1 << 32
    growing = [name for name, size in small.bytes.items() if size >= 1 << 16]
    assert growing
    ratio = large.sizes["num_items"] // small.sizes["num_items"]
    counted = {name for name in growing if "levels" not in name}
    assert all(large.bytes[name] == ratio * small.bytes[name] for name in counted)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(one, marks=pytest.mark.slow, id=str(one))
        for one in (
            Case("3.6.0", "cub.bench.select.if", (("T", "F64"), ("InPlace", "false"))),
            Case("3.0.1", "cub.bench.reduce.by_key", (("KeyT", "I128"), ("ValueT", "F32"))),
            Case("3.0.1", "cub.bench.scan.exclusive.by_key", (("KeyT", "F64"), ("ValueT", "I128"))),
            Case("3.6.0", "cub.bench.partition.three_way", (("T", "I128"), ("OffsetT", "I64"))),
        )
    ],
)
def test_a_tile_is_a_block(case: Case) -> None:
    called = Called(case)
    called.fill(exact=False)
    arena = Arena(None, 0, 0, 0)
    called.call(arena)
    arena.base, arena.capacity = called.runtime.allocate(arena.needed), arena.needed
    assert not called.call(arena)
    main = max(called.runtime.launches, key=lambda one: one.blocks)
    items = compiled.values(case.run)["items"]
    assert main.block[0] == compiled.values(case.run)["threads"]
    assert main.blocks == ceil((1 << 16) / (main.block[0] * items))
    called.runtime.release(int(arena.base))
    called.close()


@pytest.mark.slow
def test_bins_that_a_type_cannot_count_are_skipped() -> None:
    case = Case("3.6.0", "cub.bench.histogram.even", (("SampleT", "I8"),))
    skipped = {
        point.values["Bins"]: bool(Called(case, point).skips)
        for point in case.run.points
        if point.values["Elements{io}[pow2]"] == "16" and point.values["Entropy"] == "1.000"
    }
    assert skipped == {"32": False, "128": True, "2048": True, "2097152": True}


def test_what_is_written_beside_memory_is_seen() -> None:
    runtime = stub()
    runtime.forget()
    place = runtime.allocate(GUARD)
    assert not runtime.set(place, GUARD)
    assert not runtime.harm
    assert runtime.set(place, GUARD + 1)
    assert runtime.harm
    runtime.release(place)
    runtime.forget()
    assert not runtime.harm
