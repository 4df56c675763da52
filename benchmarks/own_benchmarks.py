"""Measures written benchmarks beside CUB's: `python -m benchmarks.own_benchmarks CHECKOUT [RUNS]`.

`policygen bench new` writes a benchmark for an algorithm that CUB has one for, with the same types
and sizes. Programs of both, of base and of a variant, run in turn on the GPU, each as often as RUNS
says, in fresh processes. No runtime workload may be faster or slower in one of them, as
`verify-performance` judges. What is written into the checkout is deleted afterwards.
"""

import math
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from policygen import PolicygenError, new_benchmark
from policygen.gpu.checkout import (
    BenchmarkCheckout,
    ProgramCompiler,
    build_programs,
    find_library,
    open_checkout,
)
from policygen.gpu.checkout_rounds import run_arguments, run_program
from policygen.gpu.machine import find_gpu, gpu_lock
from policygen.gpu.statistics import Judge, SeparateTimes
from policygen.model.workload import BASE, axis_name
from policygen.proof.toolchain import find_toolchain

FOLDER = "policygen_check"
"""Of the benchmarks of the checkout; it is made, and deleted."""
SIZES = ("16", "20", "24", "28")
CASES = (
    (
        "cub.bench.scan.exclusive.sum",
        "DeviceScan::ExclusiveScan",
        {"T": "I32", "OffsetT": "I32"},
        "ipt_15.tpb_128.ns_592.dcid_4.l2w_835.trp_1.ld_0",
    ),
    (
        "cub.bench.reduce.sum",
        "DeviceReduce::Reduce",
        {"T": "F32", "OffsetT": "I32"},
        "ipt_16.tpb_256.ipv_1",
    ),
    (
        "cub.bench.radix_sort.keys",
        "DeviceRadixSort::SortKeys",
        {"T": "I32", "OffsetT": "I32"},
        "ipt_19.tpb_384",
    ),
)
"""CUB's benchmark, what a workload's file calls its algorithm, types, and a variant."""
RUNS = 6
Times = Mapping[str, Mapping[str, Sequence[float]]]
"""Program, `base` or a variant → size → seconds, one for each process."""


def workload_text(algorithm: str, types: Mapping[str, str]) -> str:
    """The file that a benchmark is written from, with the sizes of CUB's."""
    lines = [f'algorithm = "{algorithm}"', "[types]"]
    lines += [f'{axis} = "{name}"' for axis, name in types.items()]
    for size in SIZES:
        lines += ["[[size]]", f"elements = {1 << int(size)}"]
    return "\n".join([*lines, ""])


def apart(name: str, cub: Times, own: Times) -> Iterator[str]:
    """What a written benchmark measures otherwise than CUB's; prints all ratios."""
    judge = Judge(sum(len(points) for points in cub.values()) * len(CASES))
    for label, points in cub.items():
        for size, before in points.items():
            found = judge.judge(SeparateTimes(before, own[label][size]))
            if found is None:
                yield f"{name} {label} 2^{size}: too few processes tell no noise"
                continue
            words = f"{found.ratio:.4f}, {found.low:.4f} to {found.high:.4f}, {found.verdict}"
            print(f"  {label} 2^{size}: {words}")
            if found.verdict != "equal":
                yield f"{name} {label} 2^{size}: {words}"


def measured(
    names: Sequence[str], opened: BenchmarkCheckout, types: Mapping[str, str], label: str, runs: int
) -> list[Times]:
    """Builds programs of benchmarks, and runs them in turn, each second time backwards."""
    gpu, toolchain = find_gpu(), find_toolchain()
    found: list[dict[str, dict[str, list[float]]]] = [{} for _ in names]
    with TemporaryDirectory() as folder:
        compiler = ProgramCompiler(
            toolchain, find_library(toolchain), opened, gpu.arch, Path(folder)
        )
        programs = []
        for at, name in enumerate(names):
            one = opened.benchmarks[name]
            axes = one.benchmark.ct_axes.items()
            workload = {axis: types.get(axis_name(axis), values[0]) for axis, values in axes}
            built = build_programs(compiler, one, workload, [label])
            if built.failed:
                raise SystemExit(f"{name} does not compile: {built.failed}")
            chosen = {"Elements": SIZES, "Entropy": ("1.000",)}
            arguments = run_arguments(one.benchmark, workload, chosen)
            programs += [(at, kind, built.programs[kind], arguments) for kind in (BASE, label)]
        with gpu_lock(gpu.uuid, patience=600.0):
            for number in range(runs):
                for at, kind, program, arguments in programs[:: -1 if number % 2 else 1]:
                    results = run_program(program, arguments, gpu.uuid)
                    for state in (one for bench in results.benches for one in bench.states):
                        if not math.isnan(state.center):
                            size = state.point["Elements{io}[pow2]"]
                            found[at].setdefault(kind, {}).setdefault(size, []).append(state.center)
    return list(found)


def main(checkout: str, runs: str = str(RUNS)) -> int:
    """Prints what both measured; 1 when something is not the same."""
    root = Path(checkout)
    folder = root / "cub/benchmarks/bench" / FOLDER
    found: list[str] = []
    try:
        for number, (like, algorithm, types, label) in enumerate(CASES):
            folder.mkdir(exist_ok=True)
            workload = folder / "workload.toml"
            workload.write_text(workload_text(algorithm, types))
            new_benchmark(workload, folder / f"case_{number}.cu", force=True)
            names = [like, f"cub.bench.{FOLDER}.case_{number}"]
            opened = open_checkout(root, re.compile("|".join(f"{re.escape(n)}$" for n in names)))
            print(f"{like} {' '.join(f'{a}={t}' for a, t in types.items())}: CUB's over the other")
            cub, own = measured(names, opened, types, label, int(runs))
            found += apart(like, cub, own)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for one in found:
        print(f"DIFFERS: {one}")
    print(f"{len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except PolicygenError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
