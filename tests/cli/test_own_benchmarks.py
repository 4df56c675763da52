"""`verify-sass --benchmarks`, with NVBench's headers as the extra installs them."""

import json
import shutil
from importlib import metadata

import pytest

from policygen.installation import add
from tests.cli.tuned import run
from tests.probing import replaced, root
from tests.tiers import slow

pytestmark = [pytest.mark.trees, pytest.mark.nvcc, pytest.mark.usefixtures("workplace")]

SUM = "cub.bench.scan.exclusive.sum"
SCAN = "cub/cub/device/dispatch/tuning/tuning_scan.cuh"
ENTRY = ("float,  128, 24, 688, 1140", "float,  128, 20, 688, 1140")
BENCH = """
#include <cub/device/device_scan.cuh>
#include <nvbench_helper.cuh>
#if !TUNE_BASE
#  error "this is a variant"
#endif
template <class T>
__global__ void fill(T* data)
{
  data[threadIdx.x] = T{};
}
template <class T, class OffsetT>
void sums(nvbench::state& state, nvbench::type_list<T, OffsetT>)
{
  size_t bytes = 0;
  T* data = nullptr;
  OffsetT count = static_cast<OffsetT>(state.get_int64("Elements{io}"));
  fill<<<1, 1>>>(data);
  state.exec([&](nvbench::launch& launch) {
    cub::DeviceScan::ExclusiveSum(nullptr, bytes, data, data, count, launch.get_stream());
  });
}
NVBENCH_BENCH_TYPES(sums, NVBENCH_TYPE_AXES(numbers, nvbench::type_list<int32_t>))
  .set_name("base")
  .set_type_axes_names({"T{ct}", "OffsetT{ct}"})
  .add_int64_power_of_two_axis("Elements{io}", nvbench::range(16, 20, 4));
"""
HELPER = """
#pragma once
#include <nvbench/nvbench.cuh>
#ifdef TUNE_T
using numbers = nvbench::type_list<TUNE_T>;
#else
using numbers = nvbench::type_list<int8_t, float>;
#endif
"""


@pytest.fixture
def checkout(tmp_path):
    """CUB 3.0.1 laid out as in a checkout, with a benchmark of this project."""
    include, folder = root("3.0.1"), tmp_path / "cccl"
    shutil.copytree(include / "cub", folder / "cub/cub")
    (folder / "libcudacxx/include").mkdir(parents=True)
    (folder / "thrust").mkdir()
    (folder / "thrust/thrust").symlink_to(include / "thrust")
    for name in ("cuda", "nv"):
        (folder / "libcudacxx/include" / name).symlink_to(include / name)
    place = folder / "cub/benchmarks/bench/scan/exclusive/sum.cu"
    place.parent.mkdir(parents=True)
    place.write_text(BENCH)
    helper = folder / "nvbench_helper/nvbench_helper/nvbench_helper.cuh"
    helper.parent.mkdir(parents=True)
    helper.write_text(HELPER)
    return folder


def edit(checkout, *changes):
    place = checkout / SCAN
    place.write_bytes(replaced(place.read_bytes(), *changes))


def verify(capsys, checkout, *arguments):
    return run(capsys, "verify-sass", "--benchmarks", "--cub", checkout, *arguments)


@slow
def test_benchmarks_show_what_calls_show(capsys, checkout):
    edit(checkout, ENTRY)
    given = ("--base", root("3.0.1"), "-R", f"{SUM}$", "--arch", "sm80", "--arch", "sm90")
    status, out, err = verify(capsys, checkout, *given, "-a", "T=[I8,F32]", "--json", "-q")
    assert status == 1, err
    found = json.loads(out)
    assert found["units"] == "benchmarks"
    # Of its three kernels two are of the algorithm; it has one type of offset for all workloads.
    assert (found["workloads"], found["kernels"], found["equal"]) == (4, 8, 7)
    (one,) = found["different"]
    assert (one["arch"], one["workload"]) == ("sm90", {"T": "F32"})
    assert one["kernel"].startswith("DeviceScanKernel<")
    status, out, _ = verify(capsys, checkout, *given, "-a", "T=F32")
    assert status == 1
    assert "compiled: the benchmarks' own sources" in out
    assert f"{SUM} T=F32 on sm90\n  different DeviceScanKernel" in out


@pytest.mark.slow
def test_dumps_of_benchmarks_are_not_compared_with_those_of_calls(capsys, checkout, tmp_path):
    given = ("-R", f"{SUM}$", "-a", "T=F32", "--arch", "sm90")
    status, _, err = verify(capsys, checkout, *given, "--save", tmp_path / "kept", "-q")
    assert status == 0, err
    (path,) = (tmp_path / "kept").glob("cub*.json")
    names = [one["name"] for one in json.loads(path.read_text())["kernels"]]
    assert len(names) == 2
    assert verify(capsys, checkout, "--base", tmp_path / "kept", "-q")[0] == 0
    arguments = ("verify-sass", "--cub", checkout, "--base", tmp_path / "kept")
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert "the dumps are of the benchmarks' own sources" in err
    assert "Compare them with --benchmarks." in err


@pytest.mark.slow
def test_what_is_absent_is_told(capsys, checkout, monkeypatch, tmp_path):
    edit(checkout, ENTRY)
    given = ("--base", root("3.0.1"), "--arch", "sm90")
    status, out, _ = verify(capsys, checkout, *given, "-a", "T=I8")
    assert status == 0
    assert "cub.bench.scan.exclusive.custom is not in" in " ".join(out.split())
    place = checkout / "cub/benchmarks/bench/scan/exclusive/sum.cu"
    place.write_text(BENCH.replace("cub::DeviceScan::ExclusiveSum", "(void)&cub::DeviceScan::none"))
    status, out, err = verify(capsys, checkout, *given, "-R", f"{SUM}$", "-a", "T=I8")
    assert status == 2
    assert 'has no member "none"' in " ".join(out.split())
    status, _, err = run(
        capsys, "verify-sass", "--benchmarks", "--cub", root("3.0.1"), "--base", root("3.0.1")
    )
    assert status == 2
    assert "name a CCCL checkout" in err
    status, _, err = run(capsys, "verify-sass", "--nvbench", tmp_path, "--cub", checkout)
    assert status == 2
    assert "--nvbench is for --benchmarks" in err
    monkeypatch.setattr(metadata, "files", lambda _: None)
    status, _, err = verify(capsys, checkout, *given)
    assert status == 3
    assert f"Install it: {add('benchmarks')}; " in err


@pytest.mark.slow
def test_a_benchmark_without_kernels_of_its_algorithm_is_refused(capsys, checkout):
    place = checkout / "cub/benchmarks/bench/scan/exclusive/sum.cu"
    place.write_text(BENCH.replace("cub::DeviceScan::ExclusiveSum(nullptr", "(void)(0"))
    given = ("-R", f"{SUM}$", "-a", "T=F32", "--arch", "sm90", "--save", "kept", "-q")
    status, _, err = verify(capsys, checkout, *given)
    assert status == 2
    words = f"{SUM} T=F32 on sm90: none of 3 kernels mentions detail::scan"
    assert words in err
