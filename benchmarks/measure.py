"""Whole processes, measured in turns in one run.

Single timings on shared machines say little; the least and the median of many, taken in turns, do.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 9


@dataclass(frozen=True)
class Figure:
    """One measured command, in seconds; `ratio` is to the first command of its group."""

    name: str
    least: float
    median: float
    limit: float | None
    ratio: float


Commands = Mapping[str, tuple[Callable[[], None], float | None]]
"""What is measured, with the limit that was set for it; the first is the floor."""


def run(command: list[str], cache: Path, status: int = 0, **more: str) -> None:
    """One process, from its start to its end."""
    environment = {**os.environ, "POLICYGEN_CACHE": str(cache), **more}
    # Installed packages are compiled once; a machine that forbids it would compile at each start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment)
    if done.returncode != status:
        raise subprocess.CalledProcessError(done.returncode, command)


def measure(commands: Commands, rounds: int = ROUNDS, warming: int = 1) -> list[Figure]:
    """All commands in turns, so that a slow moment of the machine falls on each of them."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + warming):
        for name, (action, _) in commands.items():
            start = time.perf_counter()
            action()
            if turn >= warming:  # the first turn warms caches up
                times[name].append(time.perf_counter() - start)
    floor = statistics.median(next(iter(times.values())))
    return [
        Figure(name, min(t), statistics.median(t), commands[name][1], statistics.median(t) / floor)
        for name, t in times.items()
    ]


def show(title: str, figures: list[Figure]) -> None:
    """The figures as a table."""
    print(f"{title:<52} {'least':>8} {'median':>8} {'limit':>7} {'ratio':>6}")
    for figure in figures:
        limit = "" if figure.limit is None else f"{figure.limit:.2f} s"
        print(
            f"{figure.name:<52} {figure.least:>6.3f} s {figure.median:>6.3f} s {limit:>7}"
            f" {figure.ratio:>6.2f}"
        )
