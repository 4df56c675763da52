"""`policygen review` of changes that no workload of the benchmarks shows, or that others read."""

import json
from types import SimpleNamespace

import pytest

from policygen import trees
from policygen.app import change as change_module
from policygen.app.change import all_compared, find_change
from policygen.app.session import Session
from policygen.proof.all_inputs import InputDelta
from tests.cli.tuned import run
from tests.probing import changed_tree, header, replaced, root

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

COMMON, MERGE, REDUCE = "common.cuh", "tuning_merge.cuh", "tuning_reduce.cuh"
DOUBLE = ("classify_type<double> = type_t::float64", "classify_type<double> = type_t::int64")
IN_TREE = f"cub/device/dispatch/tuning/{COMMON}"
FUNCTION = """_CCCL_HOST_DEVICE_API constexpr auto
get_sm120_tuning(type_t accum_t, op_kind_t operation_t, int offset_size, int accum_size)
  -> ::cuda::std::optional<sm100_tuning_values>
{
  if (operation_t != op_kind_t::plus)
  {
    return {};
  }

  if (accum_t == type_t::float32 && offset_size == 4 && accum_size == 4)
  {
    return sm100_tuning_values{18, 256, 2};
  }

  return {};
}

"""
BLOCK = """auto sm120_tuning = get_sm120_tuning(accum_t, operation_t, offset_size, accum_size);
    if (cc >= ::cuda::compute_capability{12, 0} && sm120_tuning)
    {
      ReducePassPolicy rp{};
      auto [scaled_items, scaled_threads] = scale_mem_bound(sm120_tuning->threads, \
sm120_tuning->items, accum_size);
      rp                                  = ReducePassPolicy{
        scaled_threads, scaled_items, sm120_tuning->items_per_vec_load, \
BLOCK_REDUCE_WARP_REDUCTIONS, LOAD_LDG};
      return {rp, rp};
    }

    """


def review(capsys, tree, *more, version="3.6.0"):
    """The exit status, and the review as a document and as Markdown."""
    given = ("review", "-q", "--cub", tree, "--base", root(version), *more)
    status, out, err = run(capsys, *given, "--format", "json")
    assert status in {0, 1}, err
    return status, json.loads(out), run(capsys, *given)[1]


def test_other_headers_that_differ_are_found_by_their_code(tmp_path):
    text = header("3.6.0", COMMON)
    versions = {"code": replaced(text, DOUBLE), "comment": text + b"// a comment\n"}
    beside = {}
    for name, data in versions.items():
        tree = changed_tree(tmp_path / name, "3.6.0", {COMMON: data})
        (tree / "cub/agent/notes.md").write_text("no header")
        found = find_change(Session(trees.open_tree(tree)), str(root("3.6.0")))
        beside[name] = {path: row.line for path, row in found.beside.items()}
        assert found.contents == {}
    line = text[: text.index(DOUBLE[0].encode())].count(b"\n") + 1
    assert beside == {"code": {IN_TREE: line}, "comment": {}}


def test_a_header_is_compared_whole_if_its_selector_alone_changed():
    text = header("3.6.0", MERGE)
    inside = replaced(text, ("MergePolicy{512, ipt_800_plus", "MergePolicy{256, ipt_800_plus"))
    contents = {
        "inside.cuh": (text, inside),
        "beside.cuh": (text, b"inline constexpr int limit = 3;\n" + text),
        "unread.cuh": (text, inside),
    }
    inputs = InputDelta(headers=frozenset({"inside.cuh", "beside.cuh", "unchanged.cuh"}))
    assert all_compared(SimpleNamespace(contents=contents), inputs) == {"inside.cuh"}


@pytest.mark.slow
def test_a_header_that_tunings_read_is_compared_and_not_judged(capsys, tmp_path, monkeypatch):
    # Of all tuning headers one, for time.
    monkeypatch.setattr(change_module, "bound_headers", lambda _: frozenset({REDUCE}))
    tree = changed_tree(tmp_path, "3.6.0", {COMMON: replaced(header("3.6.0", COMMON), DOUBLE)})
    status, found, page = review(capsys, tree)
    assert status == 1
    assert found["entries"] == []
    sums = [
        (row["before"]["threads"], row["after"]["threads"])
        for row in found["others"]
        if (row["arch"], row["benchmark"]) == ("sm100", "cub.bench.reduce.sum")
        and row["workload"] == {"T": "F64", "OffsetT": "I32"}
    ]
    assert sums == [(640, 512)]
    (place,) = found["uncovered"]
    assert (place["header"], place["by_machine_code"]) == (IN_TREE, True)
    assert [row["path"].endswith(IN_TREE) for row in found["diffs"]] == [True]
    assert "compiler: nvcc" in page
    assert "# 0 tuning entries in 1 header\n" in page
    assert f"not proven: {IN_TREE}:" in page
    assert "threads 640 → 512" in page
    assert "no tuning header differs" not in page
    assert "no workload" not in page


@pytest.mark.slow
def test_what_the_types_of_no_benchmark_show_is_not_judged(capsys, tmp_path):
    change = ("      int{sizeof(key_t)},\n", "      int{alignof(key_t)},\n")
    tree = changed_tree(tmp_path, "3.6.0", {MERGE: replaced(header("3.6.0", MERGE), change)})
    status, found, page = review(capsys, tree)
    assert status == 1
    (place,) = found["uncovered"]
    assert place["line"] == header("3.6.0", MERGE).partition(change[0].encode())[0].count(b"\n") + 1
    assert "1 place not judged" in page
    assert "no compiled workload changes" in page


@pytest.mark.slow
def test_a_function_as_apply_writes_it_is_no_change_that_nobody_sees(capsys, tmp_path):
    at, call = (
        "_CCCL_HOST_DEVICE_API constexpr auto\nget_sm100_tuning(type_t",
        "auto sm100_tuning =",
    )
    data = replaced(header("3.6.0", REDUCE), (at, FUNCTION + at), (call, BLOCK + call))
    later = ("--reaches", "sm103,sm107,sm110,sm120,sm121")
    status, found, _ = review(capsys, changed_tree(tmp_path, "3.6.0", {REDUCE: data}), *later)
    assert (status, found["uncovered"]) == (0, [])
    archs = {row["arch"] for entry in found["entries"] for row in entry["reached"]}
    assert archs >= {"sm120", "sm121"}
