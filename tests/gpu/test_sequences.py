"""Contents of buffers, computed on the host: the kernels that make them are loops there."""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from policygen import rendering
from tests.real_trees import tree

HERE = Path(__file__).parent / "on_host"


@pytest.fixture(scope="module")
def contents(tmp_path_factory) -> dict[str, list[float]]:
    """What the generators make."""
    folder = tmp_path_factory.mktemp("contents")
    texts = map(_on_host, ("inputs.cuh", "sequences.cuh", "places.cuh", "terms.cuh", "topk.cuh"))
    (folder / "contents.h").write_text("".join(texts), encoding="utf-8")
    program = folder / "sequences"
    includes = [f"-I{HERE}", f"-I{folder}", f"-I{tree('3.6.0')}"]
    source = str(HERE / "sequences.cpp")
    command = ["g++", "-std=c++17", "-Wall", *includes, source, "-o", str(program)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(program)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:]
    return json.loads(done.stdout)


def _on_host(name: str) -> str:
    """A header whose one kernel is a loop."""
    text = (rendering.folder("templates") / "measure" / name).read_text(encoding="utf-8")
    if "<<<" not in text:
        return text
    kernel, launch = (
        text.index("template <class F>\n__global__"),
        text.index("    const long long blocks"),
    )
    after = text.index("template <class F>\ncudaError_t each")
    end = text.index("(count, write);", launch) + len("(count, write);")
    loop = "    for (long long at = 0; at < count; ++at)\n    {\n      write(at);\n    }"
    made = text[:kernel] + text[after:launch] + loop + text[end:]
    assert "<<<" not in made
    return made


def _sizes(offsets):
    return [after - before for before, after in itertools.pairwise(offsets)]


@pytest.mark.slow
def test_segments_are_as_large_as_asked_and_the_last_one_ends_where_all_end(contents):
    sizes = _sizes(contents["offsets"])
    assert contents["offsets"][0] == 0
    assert contents["offsets"][-1] == 100000
    assert all(64 <= size <= 128 for size in sizes[:-1])
    assert 0 < sizes[-1] <= 128
    assert {64, 128} <= set(sizes)


def test_room_for_too_few_segments_is_refused(contents):
    assert contents["too_few"] == [1]


def test_sizes_after_a_power_law_are_uneven_and_make_the_whole(contents):
    sizes = _sizes(contents["power"])
    assert contents["power"][-1] == 1 << 20
    assert min(sizes) >= 0
    mean, middle = sum(sizes) / len(sizes), sorted(sizes)[len(sizes) // 2]
    # Of a logarithmic normal distribution of deviation 1.2: exp(1.2² / 2).
    assert 1.7 < mean / middle < 2.5
    assert max(sizes) > 20 * mean


def test_steps_are_of_one_size_and_with_a_wobble_every_other_one_begins_later(contents):
    assert contents["fixed"] == [0, 51, 102, 153, 204, 250]
    assert contents["wobbly"] == [0, 52, 102, 154, 204, 250]


@pytest.mark.parametrize("name", ["even", "uneven"])
def test_halves_are_sorted_and_spread_over_the_type_together(contents, name):
    first, second = contents[f"{name}_first"], contents[f"{name}_second"]
    assert first == sorted(first)
    assert second == sorted(second)
    both = sorted(first + second)
    assert both[0] < -32700
    assert both[-1] > 32700
    # A value of each place, in its order.
    assert all(abs(value - (65535 * at / 10000 - 32768)) < 15 for at, value in enumerate(both))


def test_halves_alternate_with_much_entropy_and_the_first_is_the_lower_one_with_little(contents):
    assert contents["even_first"][-1] > 30000
    assert contents["uneven_first"][-1] < 3000


def test_buffers_lie_one_behind_the_other_in_their_order_or_in_any(contents):
    sizes, in_order, shuffled = contents["bytes"], contents["in_order"], contents["shuffled"]
    assert sum(sizes) == 4 * 20000
    assert max(sizes) <= 256
    assert min(sizes) == 0
    assert in_order == [sum(sizes[:at]) for at in range(len(sizes))]
    assert shuffled != in_order
    laid = sorted((begin, begin + size) for begin, size in zip(shuffled, sizes, strict=True))
    assert laid[0][0] == 0
    assert laid[-1][1] == 4 * 20000
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(laid))


def test_terms_are_small_whole_numbers_of_both_signs_and_all_of_a_type_of_integers(contents):
    assert set(contents["terms"]) == {-1, 0, 1}
    assert abs(sum(contents["terms"])) < 2**24
    assert max(contents["whole"]) > 2**30
    assert min(contents["whole"]) < -(2**30)
    assert contents["whole_too"] == contents["whole"]


def test_positive_terms_have_no_imaginary_part(contents):
    assert set(contents["positive"]) == {0, 1}


def test_values_of_equal_keys_are_equal(contents):
    first, second, third = contents["of_keys"]
    assert first == third != second


def test_patterns_of_keys_are_random_quantized_cut_below_tied_or_larger_at_the_end(contents):
    assert len(set(contents["random"])) > 120
    assert min(contents["random"]) < -1
    assert all(32 * key == round(32 * key) for key in contents["quantized"])
    assert min(contents["quantized"]) < 0
    assert min(contents["relu"]) == 0
    assert max(contents["relu"]) > 1
    assert contents["ties"][:64] == contents["ties"][64:] == [at / 64 for at in range(64)]
    # The last four of 40, and of 64, as a quarter of 16 is 4; behind a segment nothing is read.
    assert contents["pivot"][:40] == [1] * 36 + [2] * 4
    assert contents["pivot"][64:] == [1] * 60 + [2] * 4


def test_sets_are_compared_group_by_group_with_what_belongs_to_their_elements(contents):
    assert contents["groups"] == [-1, 200, -1]
    assert contents["pairs"] == [-1, 102]


def test_pairs_are_compared_by_their_parts_and_not_by_what_is_between(contents):
    assert contents["compared"] == [0, 1, 1, 1]
