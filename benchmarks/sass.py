"""Machine code before and after: against nvcc alone on the same units, and a second time."""

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.apply import own_tree
from benchmarks.measure import Commands, Figure, run
from benchmarks.scan import fresh
from policygen.process import threads
from policygen.proof.kernel_build import Tools
from policygen.proof.kernel_calls import WorkloadFilters, calls
from policygen.proof.kernel_code import read_listing
from policygen.proof.kernel_comparison import demangled, diff, pairs, summary, verdict
from policygen.proof.toolchain import find_disassembler, find_toolchain
from policygen.trees import open_tree

ROUNDS = 3
VERSION = "3.0.1"
BENCHMARK = "cub.bench.scan.exclusive.sum$"
TYPES = frozenset({"I8", "I16", "I32", "I64", "F32", "F64"})
ARCH = "sm90"
LINES = 20_000


def commands(root: Path, work: Path) -> Commands:
    """Both sides of a few workloads, of which one is changed; the floor is nvcc on these units."""
    tree = changed(root, work / "sass-tree")
    jobs = [(text, options) for side in (root, tree) for text, options in units(side)]
    command = [sys.executable, "-m", "policygen", "verify-sass", "-q", "--json", "--arch", ARCH]
    command += ["--base", str(root), "--cub", str(tree), "-R", BENCHMARK]
    command += ["-a", f"T=[{','.join(sorted(TYPES))}]", "-a", "OffsetT=I32"]
    warm = work / "warm-sass"
    return {
        f"nvcc alone, {len(jobs)} units": (lambda: bare(jobs, fresh(work)), None),
        "policygen verify-sass, cold": (lambda: verify(command, fresh(work)), None),
        "policygen verify-sass, again": (lambda: verify(command, warm), None),
    }


def rates(figures: list[Figure]) -> str:
    """What a comparison costs, cold and again."""
    alone, cold, again = (figure.median for figure in figures)
    return (
        f"cold: {cold / alone:.2f} of nvcc alone (at most 1.15);"
        f" again: {again / cold:.1%} of cold (at most 5 %)"
    )


def listings(work: Path) -> str:
    """How long it takes to read and to compare a long listing."""
    toolchain = find_toolchain()
    source = Path(__file__).parent.parent / "fixtures" / "sass" / "kernels.cu"
    cubin = work / "kernels.cubin"
    nvcc = [str(toolchain.nvcc), "-cubin", "-std=c++17", "-arch=sm_90"]
    subprocess.run([*nvcc, "-o", str(cubin), str(source)], check=True)
    command = [str(find_disassembler(toolchain)), "-sass", "-res-usage", str(cubin)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # The same kernels many times, under other names: as long as a large benchmark's.
    copies = [text.replace("SumKernel", f"SumKernel{i:03}") for i in range(LINES)]
    copies = copies[: LINES // len(text.splitlines()) + 1]
    usage, code = zip(*(copy.split("\tcode for", 1) for copy in copies), strict=True)
    parts = "".join(f"\tcode for{part}" for part in code).replace("EmptyKernel", "NoKernel")
    listing = "".join(usage).replace("EmptyKernel", "NoKernel") + parts
    other = listing.replace("IADD3 R5", "IADD3 R6")
    times = []
    for _ in range(9):
        start = time.perf_counter()
        before, after = read_listing(listing, "before"), read_listing(other, "after")
        read = time.perf_counter() - start
        cpp = demangled(kernel.name for kernel in before)
        start = time.perf_counter()
        for pair in pairs(before, after, cpp):
            if pair.before and pair.after and verdict(pair.before, pair.after) != "equal":
                summary(pair.before, pair.after)
                diff(pair.before, pair.after)
        times.append((read / 2, time.perf_counter() - start))
    read, compared = (statistics.median(column) for column in zip(*times, strict=True))
    lines = len(listing.splitlines())
    return (
        f"{lines:,} lines: read in {read:.3f} s, compared in {compared:.3f} s"
        f" (together at most 0.1 s)\n"
    )


def changed(root: Path, made: Path) -> Path:
    """A tree in which one entry differs."""
    tree = own_tree(root, made)
    path = tree / "cub/device/dispatch/tuning/tuning_scan.cuh"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"float,  128, 24, 688", b"float,  128, 20, 688"))
    if path.read_bytes() == data:
        raise RuntimeError(f"{path} has no such entry")
    return tree


def units(root: Path) -> list[tuple[str, list[str]]]:
    """The translation units of a side, with the options that policygen compiles them with."""
    cub = open_tree(root)
    axes = {"T": TYPES, "OffsetT": frozenset({"I32"})}
    found, _ = calls(cub, cub.include_folders, WorkloadFilters(re.compile(BENCHMARK), axes))
    tools = Tools.of(find_toolchain())
    return [(called.text, tools.options(called.headers(ARCH))) for called in found.values()]


def bare(jobs: list[tuple[str, list[str]]], folder: Path) -> None:
    """Nvcc and nothing else, as many at once as there are cores."""
    nvcc = str(find_toolchain().nvcc)

    def one(job: tuple[int, tuple[str, list[str]]]) -> None:
        number, (text, options) = job
        source = folder / f"{number}.cu"
        source.write_text(text)
        made = source.with_suffix(".cubin")
        subprocess.run([nvcc, "-cubin", *options, "-o", str(made), str(source)], check=True)

    with threads() as pool:
        list(pool.map(one, enumerate(jobs)))


def verify(command: list[str], cache: Path) -> None:
    """A comparison that finds what was changed."""
    run(command, cache, status=1)
