"""Ten workloads of three headers: planned and written, with and without the proof."""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from benchmarks.measure import Commands, Figure, run
from benchmarks.scan import fresh
from fixtures.databases.every import GPUS, benchmark_database
from policygen.proof.toolchain import find_toolchain
from policygen.trees import open_tree, tuning_headers

ROUNDS = 3
VERSION = "3.0.1"
DELAY = "ns_500.dcid_1.l2w_700.trp_1.ld_0"
WON: dict[str, dict[tuple[str, ...] | None, str | tuple[str, ...] | None]] = {
    "cub.bench.radix_sort.keys": {
        ("I8", "I32"): "ipt_18.tpb_384",
        ("I8", "I64"): "ipt_18.tpb_384",
        ("I16", "I32"): "ipt_18.tpb_384",
        ("I16", "I64"): "ipt_18.tpb_384",
    },
    "cub.bench.scan.exclusive.sum": {
        ("F32", "I32"): f"ipt_20.tpb_256.{DELAY}",
        ("F32", "I64"): f"ipt_20.tpb_256.{DELAY}",
        ("I64", "I32"): f"ipt_18.tpb_256.{DELAY}",
        ("I64", "I64"): f"ipt_18.tpb_256.{DELAY}",
    },
    "cub.bench.partition.three_way": {
        ("I8", "I32"): "trp_1.ipt_14.tpb_256.ns_500.dcid_1.l2w_700",
        ("I8", "I64"): "trp_1.ipt_14.tpb_256.ns_500.dcid_1.l2w_700",
    },
}
LOG = "POLICYGEN_BENCH_LOG"
# Notes when a compile begins and ends, and its processor time; is the compiler otherwise.
WRAPPER = """#!/bin/sh
start=$(date +%s.%N)
{nvcc} "$@"
status=$?
{{ echo "$start $(date +%s.%N)"; times; }} > "${log}.$$"
exit $status
"""


def commands(root: Path, work: Path) -> Commands:
    """The plan's compiles are cached or not; each apply is to a tree as it was."""
    tree = own_tree(root, work / "tree")
    databases = [write(name, work) for name in WON]
    apply = [sys.executable, "-m", "policygen", "apply", "-q", "--arch", "sm90"]
    apply += ["--cub", str(tree), "--store", str(work / "apply.db")]
    for path in databases:
        apply += ["--db", str(path)]
    warm = work / "warm-apply"

    def once(command: list[str], cache: Path) -> None:
        restore(root, tree)
        run(command, cache)

    return {
        "policygen apply --no-prove, cached": (lambda: once([*apply, "--no-prove"], warm), 1.5),
        "policygen apply --no-prove, cold": (
            lambda: once([*apply, "--no-prove"], fresh(work)),
            None,
        ),
        "policygen apply with proof, cold": (lambda: once(apply, fresh(work)), 15.0),
    }


def share(root: Path, work: Path) -> str:
    """How much of an apply with its proof is nvcc's: of the time, and of the processors' time."""
    tree = own_tree(root, work / "shared-tree")
    home, log = work / "cuda", work / "nvcc.log"
    (home / "bin").mkdir(parents=True)
    wrapper = home / "bin" / "nvcc"
    nvcc = shlex.quote(str(find_toolchain().nvcc))
    wrapper.write_text(WRAPPER.format(nvcc=nvcc, log=LOG))
    wrapper.chmod(0o755)
    command = [sys.executable, "-m", "policygen", "apply", "-q", "--arch", "sm90"]
    command += ["--cub", str(tree), "--store", str(work / "share.db")]
    for name in WON:
        command += ["--db", str(write(name, work))]
    start, used = time.perf_counter(), processor_time()
    run(command, fresh(work), status=0, CUDA_HOME=str(home), **{LOG: str(log)})
    whole, used = time.perf_counter() - start, processor_time() - used
    rows = [path.read_text().split() for path in work.glob(f"{log.name}.*")]
    spans = [(float(start), float(end)) for start, end, *_ in rows]
    compiled = sum(seconds(user) + seconds(system) for *_, user, system in rows)
    return (
        f"nvcc ran in {covered(spans) / whole:.0%} of {whole:.1f} s, {len(spans)} calls, and took"
        f" {compiled / used:.0%} of {used:.1f} s of processor time\n"
    )


def processor_time() -> float:
    """Seconds that processes took which have ended."""
    times = os.times()
    return times.children_user + times.children_system


def seconds(text: str) -> float:
    """`0m1.520s`, as a shell's `times` has it."""
    minutes, _, rest = text.removesuffix("s").partition("m")
    return 60 * int(minutes) + float(rest)


def covered(spans: list[tuple[float, float]]) -> float:
    """Seconds in which at least one of them ran."""
    total, end = 0.0, 0.0
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def write(name: str, work: Path) -> Path:
    """The database of one benchmark."""
    path = work / f"{name}.db"
    benchmark_database(path, name, VERSION, GPUS["sm90"], WON[name])
    return path


def own_tree(root: Path, made: Path) -> Path:
    """A copy that can be written to."""
    shutil.copytree(root, made)
    return made


def restore(root: Path, tree: Path) -> None:
    """The headers as they were."""
    for path in tuning_headers(open_tree(root)):
        shutil.copyfile(path, tree / path.relative_to(root))


def rates(figures: list[Figure]) -> str:
    """What the proof adds."""
    return f"the proof takes {figures[2].median - figures[1].median:.1f} s more"
