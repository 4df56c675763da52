"""Units of sorts, merges, reductions, segments, copies, top-k and transforms compile."""

from pathlib import Path

import pytest

from policygen.bindings.load import bound
from policygen.errors import InputError
from policygen.gpu.units import WorkloadRun, inputs_text, runs_of, variants_text
from policygen.model.bindings import BenchmarkBinding
from policygen.model.trees import Cub
from policygen.model.workload import in_words
from policygen.proof.probe import workloads
from policygen.proof.units import Workload
from policygen.trees.lookup import open_tree
from tests.real_trees import tree
from tests.tiers import earlier, sampled
from tests.toolchain import compile_to_ptx

ALGORITHMS = {
    "copy",
    "merge",
    "merge_sort",
    "radix_sort",
    "reduce",
    "segmented_reduce",
    "segmented_scan",
    "segmented_sort",
    "segmented_topk",
    "topk",
    "transform",
}
FAST = ("3.6.0", "merge.pairs", "KeyT=F32 ValueT=I8", "base")
CASES = [
    FAST,
    ("3.6.0", "merge.keys", "KeyT=I128", "base"),
    ("3.6.0", "merge_sort.keys", "T=C32 OffsetT=I64", "base"),
    ("3.6.0", "merge_sort.pairs", "KeyT=I8 ValueT=I64", "base"),
    ("3.6.0", "radix_sort.keys", "T=F64 OffsetT=I64", "base"),
    ("3.6.0", "radix_sort.pairs", "KeyT=I8 ValueT=I128", "base"),
    ("3.6.0", "reduce.sum", "T=BF16", "base"),
    ("3.6.0", "reduce.min", "T=F16", "base"),
    ("3.6.0", "transform_reduce.sum", "T=C32", "base"),
    ("3.6.0", "reduce.deterministic", "T=F64 OffsetT=I64", "base"),
    ("3.6.0", "reduce.deferred_deterministic", "T=F32", "base"),
    ("3.6.0", "reduce.nondeterministic", "T=I64", "base"),
    ("3.6.0", "reduce.deferred_nondeterministic", "T=F32", "base"),
    ("3.6.0", "reduce.deferred_sum", "T=I8", "base"),
    ("3.6.0", "reduce.arg_extrema", "T=I8 Operation=arg_max", "base"),
    ("3.6.0", "reduce.arg_minmax", "T=I128", "base"),
    ("3.6.0", "segmented_reduce.sum", "T=C32", "small"),
    ("3.6.0", "segmented_reduce.argmin", "T=I8", "large"),
    ("3.6.0", "segmented_scan.sum", "T=C32 OffsetT=I64", "varying_size_segments"),
    ("3.6.0", "segmented_sort.keys", "T=I8", "power"),
    ("3.6.0", "segmented_sort.keys", "T=I128", "large"),
    ("3.6.0", "topk.keys", "KeyT=F32 OffsetT=I64", "base"),
    ("3.6.0", "topk.pairs", "KeyT=I16 ValueT=I8", "base"),
    ("3.6.0", "segmented_topk.fixed.keys", "MaxSegmentSize=64 MaxNumSelected=8", "small"),
    (
        "3.6.0",
        "segmented_topk.variable.indexed.cluster",
        "MaxSegmentSize=8192 K=2048",
        "decode_style_variable_topk_indexed",
    ),
    ("3.6.0", "copy.memcpy", "T=U32 OffsetT=I64", "uniform"),
    ("3.6.0", "transform.babelstream", "T=I128", "nstream"),
    ("3.6.0", "transform.complex_cmp", "", "compare_complex"),
    ("3.6.0", "transform.fib", "", "fibonacci"),
    ("3.6.0", "transform.fill", "T=I8", "fill"),
    ("3.6.0", "transform.grayscale", "T=F64", "grayscale"),
    ("3.6.0", "transform.heavy", "Heaviness=64", "heavy"),
    ("3.6.0", "transform.pytorch", "T=BF16", "gelu"),
    ("3.6.0", "transform.pytorch", "T=F16", "fmin"),
    ("3.0.1", "radix_sort.keys", "T=I16", "base"),
    ("3.0.1", "radix_sort.pairs", "KeyT=I16 ValueT=I128", "base"),
    ("3.0.1", "reduce.sum", "T=C64", "base"),
    ("3.0.1", "reduce.min", "T=I8", "base"),
    ("3.0.1", "transform_reduce.sum", "T=I128", "base"),
    ("3.0.1", "reduce.custom", "T=C64", "base"),
    ("3.0.1", "reduce.arg_extrema", "T=I8 Operation=ArgMin", "base"),
    ("3.0.1", "merge_sort.keys", "T=C64", "base"),
    ("3.0.1", "merge_sort.pairs", "KeyT=C64 ValueT=I64", "base"),
    ("3.0.1", "merge.keys", "KeyT=I8", "base"),
    ("3.0.1", "merge.pairs", "KeyT=F64 ValueT=I8", "base"),
    ("3.0.1", "segmented_sort.keys", "T=I128", "small"),
    ("3.0.1", "copy.memcpy", "T=U8 OffsetT=I64", "large"),
    ("3.0.1", "transform.babelstream1", "T=I8", "mul"),
    ("3.0.1", "transform.babelstream2", "T=I128", "triad"),
    ("3.0.1", "transform.babelstream3", "T=F32", "nstream"),
    ("3.0.1", "transform.complex_cmp", "", "compare_complex"),
    ("3.0.1", "transform.fib", "", "fibonacci"),
    ("3.0.1", "transform.heavy", "Heaviness=256", "heavy"),
    ("2.8.2", "radix_sort.keys", "T=F32", "base"),
    ("2.8.2", "reduce.min", "T=I16", "base"),
    ("2.8.2", "reduce.max", "T=C64", "base"),
    ("2.8.2", "reduce.arg_extrema", "T=I8 Operation=ArgMax", "base"),
    ("3.1.4", "reduce.deterministic", "T=F32", "base"),
    ("3.1.4", "segmented_reduce.sum", "T=C64", "medium"),
    ("3.2.0", "reduce.deterministic", "T=F64", "base"),
    ("3.2.0", "reduce.nondeterministic", "T=F32", "base"),
    ("3.2.0", "segmented_reduce.argmin", "T=I64", "small"),
    ("3.2.0", "topk.pairs", "KeyT=I8 ValueT=I64", "base"),
]


def _run(version: str, name: str, values: str, subbench: str) -> WorkloadRun:
    cub = open_tree(tree(version))
    name = f"cub.bench.{name}"
    benchmark = next(b for a in bound(cub.bindings) for b in a.benchmarks if b.name == name)
    wanted = dict(value.split("=") for value in values.split())
    workload = next(
        one
        for one in workloads(benchmark, cub.bindings)
        if wanted.items() <= dict(one.values).items()
    )
    return next(one for one in runs_of(cub, workload) if one.binding.subbench == subbench)


# Their benchmarks are compiled whole, and called, in test_sorting_on_the_host.py.
CALLED = {
    *("merge.pairs", "merge_sort.keys", "radix_sort.pairs", "reduce.sum", "reduce.deterministic"),
    *("reduce.arg_minmax", "segmented_reduce.argmin", "segmented_scan.sum", "topk.pairs"),
    *("transform.babelstream", "transform.fill", "transform.pytorch"),
}
LEFT = [
    *earlier((case[0], case) for case in CASES),
    *(case for case in CASES if case[0] == "3.6.0" and case[1] in CALLED and case != FAST),
]


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name", "values", "subbench"), sampled(CASES, FAST, left=LEFT))
def test_a_workload_has_inputs_and_a_base_that_compile(version, name, values, subbench, tmp_path):
    run = _run(version, name, values, subbench)
    assert run.points
    for what, text in (("inputs", inputs_text(run)), ("base", variants_text(run, [None]))):
        source = tmp_path / f"{what}.cu"
        source.write_text(text, encoding="utf-8")
        done = compile_to_ptx(source, Path(run.cub.root))
        words = in_words(name, dict(run.workload.values))
        assert done.returncode == 0, f"{words}, {what}: {done.stderr}"


@pytest.mark.parametrize("version", ["2.8.2", "3.0.1", "3.1.4", "3.2.0", "3.5.0", "3.6.0"])
def test_every_workload_that_can_be_tuned_has_runtime_workloads_or_a_reason(version):
    cub = open_tree(tree(version))
    for algorithm in bound(cub.bindings):
        for benchmark in algorithm.benchmarks:
            if algorithm.algorithm in ALGORITHMS and benchmark.parameters:
                for workload in workloads(benchmark, cub.bindings):
                    _has_points_or_a_reason(cub, workload)


def _has_points_or_a_reason(cub: Cub, workload: Workload) -> None:
    try:
        runs = runs_of(cub, workload)
    except InputError:
        assert isinstance(workload.call, BenchmarkBinding)
        assert workload.call.unmeasured, in_words(workload.call.name, dict(workload.values))
    else:
        assert all(run.points for run in runs)
