"""Whole programs with and without tuned headers: runs both in turn, and compares their times.

    python -m benchmarks.programs PROGRAMS.toml [--pairs 10] [--out TIMES.json]

A `[[program]]` has a `name`, the folders `without` and `with` that hold its two binaries, the
`command` that is run in each, and `times`: what the program prints for a time, as a regular
expression with a group for the number, by the words that name it; `rates` are what is better the
higher it is. Each pair of processes runs in the other order than the one before; a first pair,
which wakes the GPU, does not count. The ratio is the median of all pairs, with the interval of 95 %
that their order gives: what a program does on the host has outliers.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

SIDES = ("without", "with")
Times = Mapping[str, Mapping[str, Sequence[float]]]
"""By what is timed and side, one number for each process."""


def run_pairs(program: Mapping[str, Any], pairs: int) -> Times:
    """Runs both binaries in turn."""
    binary, *arguments = shlex.split(program["command"])
    rates = program.get("rates", {})
    patterns = {**program.get("times", {}), **rates}
    times: dict[str, dict[str, list[float]]] = {
        words: {side: [] for side in SIDES} for words in patterns
    }
    for pair in range(-1, pairs):
        for side in SIDES if pair % 2 == 0 else reversed(SIDES):
            folder = Path(program[side]).resolve()
            command = [str(folder / binary), *arguments]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
            for words, pattern in patterns.items() if pair >= 0 else ():
                match = re.search(pattern, done.stdout)
                if match is None:
                    raise SystemExit(f"{program['name']}: {pattern!r} is not in what it prints")
                number = float(match[1])
                times[words][side].append(1 / number if words in rates else number)
    return times


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Where the true median lies with 95 %; with fewer than six pairs, all that was seen."""
    ordered, count = sorted(ratios), len(ratios)
    below = accumulate(comb(count, number) / 2**count for number in range(count))
    skipped = max(1, sum(chance <= 0.025 for chance in below))
    return ordered[skipped - 1], ordered[-skipped]


def rows(name: str, times: Times) -> Iterator[str]:
    """A row for each time of a program."""
    for words, by_side in times.items():
        without, tuned = (by_side[side] for side in SIDES)
        ratios = [before / after for before, after in zip(without, tuned, strict=True)]
        low, high = interval(ratios)
        ratio = f"{median(ratios):.3f} ({low:.3f} to {high:.3f})"
        yield f"| {name} | {words} | {median(without):,.5g} | {median(tuned):,.5g} | {ratio} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all programs, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    print("| program | time | without | with | ratio |\n| --- | --- | ---: | ---: | --- |")
    all_times = {}
    for program in tomllib.loads(options.programs.read_text("utf-8"))["program"]:
        name = program["name"]
        all_times[name] = run_pairs(program, options.pairs)
        print("\n".join(rows(name, all_times[name])), flush=True)
    if options.out:
        options.out.write_text(json.dumps(all_times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
