"""A checkout with one benchmark of this project, and programs that write what NVBench wrote once.

`python -m tests.gpu.own_checkout PLAN ARGUMENTS…` is such a program: from results that were
measured it writes those of the runtime workloads that it is asked for. Its plan says what else it
does: crash, hang, fail, skip a size, run so many times as fast.
"""

import json
import os
import shlex
import shutil
import signal
import struct
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.results.measured import MEASURED

RESULTS = MEASURED / "A_reduce_sum/nvbench/cub.bench.reduce.sum-T=F32_OffsetT=I32-base"
NAME = "cub.bench.reduce.sum"
SOURCE = """
// %RANGE% TUNE_ITEMS ipt 7:24:1
// %RANGE% TUNE_THREADS tpb 128:1024:32
#include <cub/block/block_reduce.cuh>
#include <nvbench_helper.cuh>
#if TUNE_BASE
#  define TUNE_ITEMS 8
#  define TUNE_THREADS 256
#endif
template <class T>
__global__ void __launch_bounds__(TUNE_THREADS) total(const T* in, T* out)
{
  using Reduce = cub::BlockReduce<T, TUNE_THREADS>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ int kept[TUNE_ITEMS * TUNE_THREADS]; // 99 items of 128 threads are too many
  kept[threadIdx.x] = static_cast<int>(in[threadIdx.x]);
  T mine[TUNE_ITEMS];
  for (int i = 0; i < TUNE_ITEMS; ++i)
  {
    mine[i] = in[i];
  }
  *out = Reduce(storage).Sum(mine) + static_cast<T>(kept[0]);
}
template <class T, class OffsetT>
void sums(nvbench::state& state, nvbench::type_list<T, OffsetT>)
{
  T* data = allocated<T>(state.get_int64("Elements{io}"));
  state.exec([&](nvbench::launch& launch) {
    total<<<1, TUNE_THREADS, 0, launch.get_stream()>>>(data, data);
  });
}
NVBENCH_BENCH_TYPES(sums, NVBENCH_TYPE_AXES(numbers, nvbench::type_list<int32_t>))
  .set_name("base")
  .set_type_axes_names({"T{ct}", "OffsetT{ct}"})
  .add_int64_power_of_two_axis("Elements{io}", nvbench::range(16, 28, 4));
"""
HEADER = """
#pragma once
#include <nvbench/nvbench.cuh>
#ifdef TUNE_T
using numbers = nvbench::type_list<TUNE_T>;
#else
using numbers = nvbench::type_list<int8_t, float>;
#endif
void* some_bytes(size_t count);
template <class T>
T* allocated(size_t count)
{
  return static_cast<T*>(some_bytes(count * sizeof(T)));
}
"""
HELPER = """
#include <curand.h>
#include <nvbench_helper.cuh>
void* some_bytes(size_t count)
{
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  void* data = nullptr;
  cudaMalloc(&data, count);
  return data;
}
"""


def make_checkout(folder, source=SOURCE):
    """CUB 3.0.1 laid out as in a checkout, with this benchmark."""
    from tests.probing import root  # a program starts faster without it

    include = root("3.0.1")
    shutil.copytree(include / "cub", folder / "cub/cub")
    (folder / "libcudacxx/include").mkdir(parents=True)
    (folder / "thrust").mkdir()
    (folder / "thrust/thrust").symlink_to(include / "thrust")
    for name in ("cuda", "nv"):
        (folder / "libcudacxx/include" / name).symlink_to(include / name)
    places = {
        "cub/benchmarks/bench/reduce/sum.cu": source,
        "nvbench_helper/nvbench_helper/nvbench_helper.cuh": HEADER,
        "nvbench_helper/nvbench_helper/nvbench_helper.cu": HELPER,
    }
    for place, text in places.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    return folder


@dataclass
class ProgramPlan:
    """What a program does, beside writing results."""

    does: str = ""
    ratio: float = 1.0
    skips: tuple[str, ...] = ()
    why: str | None = None
    gpu: str = "NVIDIA H200"
    empty: bool = False

    def program(self, folder, kind):
        """An executable of such a plan; it notes that it ran, and how."""
        folder.mkdir()
        place = folder / f"{NAME}.{kind}"
        (folder / "plan.json").write_text(json.dumps(self.__dict__))
        words = shlex.join([sys.executable, "-P", str(Path(__file__)), str(folder)])
        home = shlex.quote(str(Path(__file__).parents[2]))
        place.write_text(f'#!/bin/sh\nPYTHONPATH={home} exec {words} "$0" "$@"\n')
        place.chmod(0o755)
        return place


def _asked(arguments):
    """Axis → values, of `-a`."""
    pairs = [two.split("=", 1) for one, two in pairwise(arguments) if one == "-a"]
    return {axis: values.strip("[]").split(",") for axis, values in pairs}


def main(folder, program, *arguments):
    """Does what the plan says."""
    plan = ProgramPlan(**json.loads((folder / "plan.json").read_text()))
    with (folder.parent / "runs").open("a") as file:
        file.write(json.dumps([folder.name, os.environ["CUDA_VISIBLE_DEVICES"], *arguments]) + "\n")
    match plan.does:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(3600)
        case "fail":
            sys.exit("NVBench encountered an error:\n\nno kernel image is available")
    document = json.loads((RESULTS / "result.json").read_text())
    document["meta"]["argv"] = [program, *arguments]
    document["devices"][0]["name"] = plan.gpu
    (bench,) = document["benchmarks"]
    asked = _asked(arguments)
    sizes = {str(1 << int(one)): one for one in asked["Elements{io}[pow2]"]}
    kept = [one for one in bench["states"] if one["axis_values"][2]["value"] in sizes]
    out = Path(arguments[arguments.index("--jsonbin") + 1])
    out.with_name(f"{out.name}-bin").mkdir()
    for number, state in enumerate(kept):
        assert asked["T{ct}"] == ["F32"]
        if sizes[state["axis_values"][2]["value"]] in plan.skips:
            state |= {"is_skipped": True, "skip_reason": plan.why, "summaries": None}
        elif plan.empty:
            state["summaries"] = []
        else:
            _write(state, out, number, plan.ratio)
    bench["states"] = kept
    out.write_text(json.dumps(document))


def _write(state, out, number, ratio):
    """The samples that were measured, so many times as fast."""
    (summary,) = [one for one in state["summaries"] if one["tag"].endswith("sample_times")]
    name = summary["data"][0]["value"]
    data = (RESULTS / name).read_bytes()
    samples = struct.unpack(f"<{len(data) // 4}f", data)
    place = out.with_name(f"{out.name}-bin") / f"{number}.bin"
    place.write_bytes(struct.pack(f"<{len(samples)}f", *(one / ratio for one in samples)))
    summary["data"][0]["value"] = f"{out.name}-bin/{number}.bin"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
