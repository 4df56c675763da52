"""What buffers hold: the generators of inputs, compiled for the host, where a kernel is a loop."""

import ctypes
import re
from collections import Counter
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from policygen import rendering
from policygen.cache import digest
from policygen.paths import cache_folder
from policygen.process import run
from policygen.proof.toolchain import find_toolchain
from tests.gpu.stub import stub
from tests.real_trees import tree

COUNT = 1 << 16
# each_kernel<<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), threads>>>(count, write);
_LAUNCH = re.compile(r"(\w+)<<<.*?>>>\((.*?)\);", re.S)
_BEFORE = """
#include <cuda_runtime.h>
#include <cstring>
#include <cmath>
struct place { unsigned x; };
static place blockIdx{0}, threadIdx{0}, gridDim{1};
template <class T> void atomicAdd(T* to, T value) { *to += value; }
template <class T> void atomicMin(T* to, T value) { *to = value < *to ? value : *to; }
using std::floor; using std::fabs; using std::fmax; using std::isnan;
"""
_AFTER = """
using namespace policygen_inputs;
extern "C" {
int keys_i32(int* to, long long count, long long least, long long most)
{ seed = 42; return key_segments(to, count, least, most); }
int keys_i8(signed char* to, long long count, long long least, long long most)
{ seed = 42; return key_segments(to, count, least, most); }
int uniform_i32(int* to, long long count, long long entropy)
{ seed = 42; return uniform(to, count, entropy); }
int steps_f32(float* to, long long count) { seed = 42; return steps(to, count); }
int steps_i8(signed char* to, long long count) { seed = 42; return steps(to, count); }
int ramp_f32(float* to, long long count, float step) { return ramp(to, count, step); }
int flags_set(bool* to, long long count, long long share, long long* set)
{ seed = 42; return flagged(to, count, share, *set); }
int below_i32(int* to, long long count, int bound, long long* below)
{ seed = 42; return uniform_below(to, count, bound, *below); }
int split_i32(int* to, long long count, long long first) { return split(to, count, first); }
int rising_i32(int* to, long long count) { return rising(to, count); }
int rising_f32(float* to, long long count) { return rising(to, count); }
int bytes_u8(unsigned char* to, long long count) { seed = 42; return random_bytes(to, count); }
struct halves
{
  long long operator()(long long index, unsigned long long random) const
  { return (random & ~0xFFFFull) | static_cast<unsigned long long>(index); }
};
int made_i64(long long* to, long long count) { seed = 42; return made(to, count, halves{}); }
struct near
{
  bool operator()(int left, int right) const { return left / 10 == right / 10; }
};
int near_i32(int* left, int* right, long long count, long long* differ, long long* first)
{ *differ = compare_by(left, right, count, near{}, first); return 0; }
int file_i16(short* to, long long count, const char* path) { return bytes_of(to, count, path); }
int difference_i32(int* left, int* right, long long count, long long* differ, long long* first)
{ *differ = compare(left, right, count, 0.0, first); return 0; }
}
"""


@cache
def generators() -> ctypes.CDLL:
    """The generators, as a library of the host's."""
    stub()  # memory comes from it
    folder = rendering.folder("templates") / "measure"
    names = ("inputs.cuh", "segments.cuh", "selections.cuh")
    text = "\n".join((folder / name).read_text() for name in names)
    loop = r"for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) { \1(\2); }"
    unit = _BEFORE + _LAUNCH.sub(loop, text) + _AFTER
    toolchain = find_toolchain()
    includes = [f"-I{tree('3.6.0')}", f"-I{toolchain.roots[0]}/include"]
    key = digest(unit, toolchain.identity)[:32]
    source = cache_folder() / "test-units" / f"{key}.cpp"
    made = source.with_suffix(".so")
    if not made.exists():
        source.write_text(unit)
        flags = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared"]
        run(["g++", *flags, *includes, "-o", str(made), str(source)], install="g++")
    return ctypes.CDLL(str(made))


def _called(name: str, kind: type, *arguments: object, count: int = COUNT) -> list[float]:
    made = (kind * count)()
    whole = [ctypes.c_longlong(one) if isinstance(one, int) else one for one in arguments]
    assert not getattr(generators(), name)(made, ctypes.c_longlong(count), *whole)
    return list(made)


@pytest.mark.slow
@pytest.mark.parametrize(("least", "most"), [(1, 2), (1, 16), (1, 256), (0, 5200)])
def test_keys_stand_in_runs_whose_lengths_are_uniform(least: int, most: int) -> None:
    keys = _called("keys_i32", ctypes.c_int32, least, most)
    assert keys == sorted(keys)
    lengths = [len(list(run)) for _, run in groupby(keys)]
    inner = lengths[:-1]
    assert all(max(1, least) <= one <= most for one in inner)
    assert abs(sum(inner) / len(inner) - (least + most) / 2) < (0.03 if most < 512 else 0.5) * most
    if most <= 16:
        assert {one for one, count in Counter(inner).items() if count > 1} == set(
            range(1, most + 1)
        )


@pytest.mark.slow
def test_runs_go_on_where_a_part_ends_and_small_keys_come_again() -> None:
    keys = _called("keys_i32", ctypes.c_int32, 1, 2)
    assert {later - earlier for earlier, later in pairwise(keys)} == {0, 1}
    small = _called("keys_i8", ctypes.c_int8, 1, 2)
    assert all((large - little) % 256 == 0 for large, little in zip(keys, small, strict=True))


@pytest.mark.parametrize(
    ("entropy", "bits"), [(1000, 0.5), (544, 0.125), (201, 0.03125)], ids=["1", "0.544", "0.201"]
)
def test_entropy_is_how_many_draws_are_joined(entropy: int, bits: float) -> None:
    values = _called("uniform_i32", ctypes.c_int32, entropy)
    assert abs(sum(int(one) & 1 for one in values) / COUNT - bits) < 0.01


def test_without_entropy_all_values_are_one() -> None:
    assert len(set(_called("uniform_i32", ctypes.c_int32, 0))) == 1


@pytest.mark.parametrize(
    ("name", "kind"), [("steps_f32", ctypes.c_float), ("steps_i8", ctypes.c_int8)]
)
def test_prefixes_of_steps_are_small_and_differ(name: str, kind: type) -> None:
    prefix, seen = 0.0, set()
    for one in _called(name, kind):
        prefix += one
        seen.add(prefix)
    assert max(seen) - min(seen) == 60
    assert max(map(abs, seen)) <= 60


def test_a_ramp_is_even() -> None:
    ramp = _called("ramp_f32", ctypes.c_float, ctypes.c_float(0.25), count=9)
    assert ramp == [0.25 * at for at in range(9)]


@pytest.mark.parametrize("share", [0, 544, 1000])
def test_flags_are_set_with_a_probability_and_counted(share: int) -> None:
    count = ctypes.c_longlong(-1)
    made = _called("flags_set", ctypes.c_bool, share, ctypes.byref(count))
    assert sum(made) == count.value
    assert abs(count.value / COUNT - share / 1000) < 0.01


def test_what_is_below_a_bound_is_counted() -> None:
    count = ctypes.c_longlong(-1)
    made = _called("below_i32", ctypes.c_int32, ctypes.c_int32(1000), ctypes.byref(count))
    assert sum(one < 1000 for one in made) == count.value
    assert abs(count.value / COUNT - 0.5) < 0.01


def test_a_split_has_ones_from_a_place_on() -> None:
    assert _called("split_i32", ctypes.c_int32, 5, count=8) == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "kind"), [("rising_i32", ctypes.c_int32), ("rising_f32", ctypes.c_float)]
)
def test_rising_values_never_fall_and_span_the_type(name: str, kind: type) -> None:
    values = _called(name, kind)
    assert values == sorted(values)
    assert len(set(values)) > COUNT / 2
    assert values[-1] > 0.9 * max(abs(values[0]), 1)


def test_random_bytes_are_all_bytes() -> None:
    counts = Counter(_called("bytes_u8", ctypes.c_uint8))
    assert len(counts) == 256
    assert max(counts.values()) < 2 * min(counts.values())


def test_a_functor_makes_elements_of_an_index_and_random_bits() -> None:
    values = [int(one) for one in _called("made_i64", ctypes.c_int64)]
    assert [one & 0xFFFF for one in values] == [*range(COUNT)]
    assert len({one >> 16 for one in values}) > COUNT - 10


def test_the_bytes_of_a_file_come_again_where_they_are_too_few(tmp_path: Path) -> None:
    path, runtime = tmp_path / "elements", stub()

    def filled(count: int) -> list[int] | None:
        place = runtime.allocate(2 * count)  # of the GPU, as far as the stub knows
        given = ctypes.c_char_p(str(path).encode())
        where = ctypes.cast(place, ctypes.POINTER(ctypes.c_int16))
        failed = generators().file_i16(where, ctypes.c_longlong(count), given)
        found = None if failed else where[:count]
        runtime.release(place)
        return found

    assert filled(2) is None
    for content in (b"", b"\1"):
        path.write_bytes(content)
        assert filled(2) is None
    path.write_bytes(b"\1\0\2\0\3\0\7")  # the last byte is no element
    assert filled(7) == [1, 2, 3, 1, 2, 3, 1]
    assert filled(2) == [1, 2]


def test_a_functor_says_what_is_the_same() -> None:
    left, right = ((ctypes.c_int32 * COUNT)() for _ in range(2))
    right[7], right[9] = 3, 30
    differ, first = ctypes.c_longlong(), ctypes.c_longlong()
    generators().near_i32(
        left, right, ctypes.c_longlong(COUNT), ctypes.byref(differ), ctypes.byref(first)
    )
    assert (differ.value, first.value) == (1, 9)


def test_the_first_of_all_differences_is_told() -> None:
    left, right = ((ctypes.c_int32 * COUNT)() for _ in range(2))
    right[7] = right[4711] = 1
    differ, first = ctypes.c_longlong(), ctypes.c_longlong()
    generators().difference_i32(
        left, right, ctypes.c_longlong(COUNT), ctypes.byref(differ), ctypes.byref(first)
    )
    assert (differ.value, first.value) == (2, 7)
    generators().difference_i32(
        left, left, ctypes.c_longlong(COUNT), ctypes.byref(differ), ctypes.byref(first)
    )
    assert (differ.value, first.value) == (0, -1)
