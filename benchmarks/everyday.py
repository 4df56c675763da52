"""Tunes everyday workloads on a GPU, as a user would, and writes one table.

    python -m benchmarks.everyday OUT [--cub 3.6.0] [--budget 2m] [--only REGEX] [--verify 90s]
    python -m benchmarks.everyday OUT --table

Each workload runs in a process of its own: `policygen tune --json`. What it prints, its events,
its database and its header stay in OUT. With `--verify TIME`, `policygen verify-performance` then
measures each header in other processes for at most that time. With several GPUs run one process
for each, with CUDA_VISIBLE_DEVICES and with `--only` a part of the workloads; both may have the
same OUT. `--table` makes the table again of what OUT has.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

WORKLOADS = {
    "reduce_sum_F64": ("reduce.sum", "T=F64", "OffsetT=I32"),
    "select_if_I32": ("select.if", "T=I32"),
    "radix_sort_pairs_I32": ("radix_sort.pairs", "KeyT=I32", "ValueT=I32", "OffsetT=I32"),
    "histogram_even_I32": ("histogram.even", "SampleT=I32"),
    "merge_sort_keys_I32": ("merge_sort.keys", "T=I32", "OffsetT=I32"),
    "unique_by_key_I32": ("select.unique_by_key", "KeyT=I32", "ValueT=I32"),
    "reduce_by_key_I32": ("reduce.by_key", "KeyT=I32", "ValueT=I32"),
    "run_length_encode_I32": ("run_length_encode.encode", "T=I32", "OffsetT=I32"),
    "three_way_I32": ("partition.three_way", "T=I32", "OffsetT=I32"),
    "scan_I32": ("scan.exclusive.sum", "T=I32", "OffsetT=I32"),
    "scan_I64": ("scan.exclusive.sum", "T=I64", "OffsetT=I32"),
    "segmented_sort_keys_I32": ("segmented_sort.keys", "T=I32"),
}
"""Benchmark and axes by name; two of them are several workloads."""
HEAD = (
    "workload", "tried", "failed", "per hour", "first result after", "took", "base", "best",
    "confirmed", "worst runtime workload", "header or reason", "again",
)  # fmt: skip


def tune(name: str, out: Path, cub: str, budget: str, verify: str) -> None:
    """Runs the commands of a workload, and keeps what they print, with the time of the first."""
    benchmark, *axes = WORKLOADS[name]
    header, again = out / f"{name}.cuh", out / f"{name}.again.json"
    policygen = [sys.executable, "-m", "policygen"]
    workload = ["-R", f"cub.bench.{re.escape(benchmark)}$", *(w for a in axes for w in ("-a", a))]
    given = ["--json", "--cub", cub, *workload]
    command = [*policygen, "tune", *given, "--budget", budget, "-o", str(header), "--force"]
    started = time.monotonic()
    with (out / f"{name}.log").open("wb") as log:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=log)
    took = time.monotonic() - started
    (out / f"{name}.jsonl").write_bytes(done.stdout)
    (out / f"{name}.time").write_text(json.dumps({"took": took, "status": done.returncode}))
    again.unlink(missing_ok=True)
    if verify and header.exists():
        command = [*policygen, "verify-performance", *given, "--header", str(header)]
        command += ["--budget", verify, "-o", str(again)]
        with (out / f"{name}.again.log").open("wb") as log:
            subprocess.run(command, check=False, stdout=log, stderr=log)


def rows(name: str, out: Path) -> Iterator[tuple[str, ...]]:
    """A row of cells for each workload of a command."""
    lines = [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]
    run = json.loads((out / f"{name}.time").read_text())
    documents = [line for line in lines if line["format"] == "policygen/tune/1"]
    if not documents:
        log = (out / f"{name}.log").read_text().strip().splitlines()
        last = log[-1] if log else "nothing was printed"
        yield (name, *[""] * (len(HEAD) - 2), f"status {run['status']}: {last}")
        return
    (document,) = documents
    events = [line for line in lines if line["format"] == "policygen/search-event/1"]
    workloads = document["searched"]["workloads"]
    tried = sum(workload["counts"]["tried"] for workload in workloads if workload["counts"])
    hour = f"{3600 * tried / run['took']:,.0f}"
    path = out / f"{name}.again.json"
    again = json.loads(path.read_text())["workloads"] if path.exists() else ()
    for workload, outcome in zip(workloads, document["outcomes"], strict=True):
        cells = _cells(name, workload, outcome, events, hour, run["took"], len(workloads))
        own = (w for w in again if w["workload"] == workload["workload"])
        ratios = [f"{w['ratio']:.3f}, {w['verdict']}" for w in own if w["ratio"]]
        yield (*cells, ", ".join(ratios))


def _cells(
    name: str,
    workload: dict[str, Any],
    outcome: dict[str, Any],
    events: list[dict[str, Any]],
    hour: str,
    took: float,
    count: int,
) -> Iterator[str]:
    axes = " ".join(f"{axis}={value}" for axis, value in workload["workload"].items())
    yield f"{name} {axes}" if count > 1 else name
    counts = workload["counts"] or {"tried": 0, "distinct": 0, "failed": 0}
    yield f"{counts['tried']:,} of {counts['distinct']:,}"
    yield str(counts["failed"])
    yield hour + (f" (all {count})" if count > 1 else "")
    first = [
        e["at"] for e in events if e["event"] == "batch" and e["workload"] == workload["workload"]
    ]
    yield f"{min(first):.0f} s" if first else "never"
    yield f"{took:.0f} s" + (f" (all {count})" if count > 1 else "")
    yield workload["base"] or "not in the space"
    finalists = {finalist["variant"]: finalist for finalist in workload["finalists"]}
    best = finalists.get(outcome["best"])
    yield f"{outcome['best']}" if best else "none"
    interval = best and best["interval"]
    confirmed = f"{best['score']:.3f}" if best else ""
    yield confirmed + (f" ({interval['low']:.3f} to {interval['high']:.3f})" if interval else "")
    yield f"{outcome['least']:.3f}" if outcome["least"] is not None else ""
    chosen = outcome["variant"] and f"header: {outcome['variant']}"
    yield chosen or outcome["reason"]


def table(names: Sequence[str], out: Path) -> Iterator[str]:
    """The table in Markdown."""
    yield f"| {' | '.join(HEAD)} |"
    yield f"|{' --- |' * len(HEAD)}"
    for name in names:
        if (out / f"{name}.time").exists():
            for cells in rows(name, out):
                yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the commands one after the other, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--cub", default="3.6.0")
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--only", default="")
    parser.add_argument("--verify", default="")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    names = [name for name in WORKLOADS if re.search(given.only, name)]
    for name in () if given.table else names:
        tune(name, given.out, given.cub, given.budget, given.verify)
        print(f"{name}: {(given.out / f'{name}.time').read_text()}", file=sys.stderr, flush=True)
    text = "\n".join(table(names, given.out)) + "\n"
    (given.out / "table.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
