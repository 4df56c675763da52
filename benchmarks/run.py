"""`make bench`: whole processes, measured in turns in one run, as ratios to the floor.

Single timings on shared machines say little; the least and the median of many, taken in turns, do.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from policygen import __version__, resources
from policygen.paths import cache_folder, write_atomically
from policygen.tree import fetch

HERE = Path(__file__).resolve().parent
VERSION = "3.6.0"
ROUNDS = 11


@dataclass(frozen=True)
class Figure:
    """One measured command, in seconds."""

    name: str
    least: float
    median: float
    limit: float | None
    ratio: float


def commands(root: Path, work: Path) -> dict[str, tuple[Callable[[], None], float | None]]:
    """What is measured, with the limit that was set for it."""
    policygen = [sys.executable, "-m", "policygen"]
    scan = [*policygen, "scan", "--json", "--cub", str(root)]
    tuning = root / "cub/device/dispatch/tuning"
    prelude = resources.folder("templates") / "scan/prelude.h"
    floor = [sys.executable, str(HERE / "floor.py"), str(tuning), str(prelude)]
    return {
        f"floor: libclang parses the headers of {VERSION}": (lambda: run(floor, work), None),
        f"policygen scan --json, {VERSION}, cold": (lambda: run(scan, fresh(work)), 1.0),
        f"policygen scan --json, {VERSION}, warm": (lambda: run(scan, work / "warm"), 0.4),
        "policygen scan --json, one header, cold": (lambda: run([*scan, "scan"], fresh(work)), 0.3),
        "policygen --help": (lambda: run([*policygen, "--help"], work), 0.25),
        "python -c pass": (lambda: run([sys.executable, "-c", "pass"], work), None),
    }


def fresh(work: Path) -> Path:
    """A cache folder that nothing was written to."""
    return Path(tempfile.mkdtemp(dir=work))


def run(command: list[str], cache: Path) -> None:
    """One process, from its start to its end."""
    environment = {**os.environ, "POLICYGEN_CACHE": str(cache)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)


def measure(root: Path) -> list[Figure]:
    """All commands in turns, so that a slow moment of the machine falls on each of them."""
    with tempfile.TemporaryDirectory() as folder:
        measured = commands(root, Path(folder))
        times: dict[str, list[float]] = {name: [] for name in measured}
        for turn in range(ROUNDS + 1):
            for name, (action, _) in measured.items():
                start = time.perf_counter()
                action()
                if turn:  # the first turn warms caches up
                    times[name].append(time.perf_counter() - start)
    floor = statistics.median(next(iter(times.values())))
    return [
        Figure(name, min(t), statistics.median(t), measured[name][1], statistics.median(t) / floor)
        for name, t in times.items()
    ]


def show(figures: list[Figure]) -> None:
    """The figures as a table."""
    print(f"{'whole process':<48} {'least':>8} {'median':>8} {'limit':>7} {'ratio':>6}")
    for figure in figures:
        limit = "" if figure.limit is None else f"{figure.limit:.2f} s"
        print(
            f"{figure.name:<48} {figure.least:>6.3f} s {figure.median:>6.3f} s {limit:>7}"
            f" {figure.ratio:>6.2f}"
        )
    print("\nratio: median to the floor's median in this run; a cold scan's is to be at most 4")


def main() -> None:
    """Measures, prints, and keeps the figures with what they were measured on."""
    root = Path(fetch(VERSION, cache_folder() / "test-trees", progress=print).root)
    figures = measure(root)
    show(figures)
    document = {
        "policygen": __version__,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rounds": ROUNDS,
        "figures": [asdict(figure) for figure in figures],
    }
    path = HERE / "results" / "scan.json"
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())
    print(f"written to {path.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
