"""How soon strategies find the best of whole spaces that were measured on an H200.

    python -m benchmarks.strategies [--seeds 50] [--figure FILE.svg]

A strategy sees the median of ten samples of each runtime workload, drawn by the seed; what counts
is the score by all samples. What is "from the header" begins with what CUB 3.6.0 has there for
sm90.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf
from pathlib import Path

from benchmarks.figures import write_lines
from policygen.app.inputs import ResultFiles, open_inputs
from policygen.gpu.replay import (
    BATCH,
    SAMPLES,
    Curve,
    RecordedSpace,
    curve_of,
    reached,
    recorded_spaces,
    replay,
)
from policygen.gpu.strategies import Strategy, make_strategy
from policygen.results.ranking import Warnings

SPACES = Path(__file__).parents[1] / "fixtures/spaces"
CHOSEN_BY = ("reduce_sum_F32", "scan_exclusive_sum_I8")
REPORTED = "radix_sort_keys_I16"
SHARES = (0.99, 0.995, 0.999)
COUNTS = (25, 50, 100, 200)
MOST = 250
"""Evaluations of what is no baseline."""
DRAWN = ("random", "local", "local, from the header")


def best_after(curve: Curve, count: int) -> float | None:
    """The best score after so many evaluations; None if there were none."""
    return max((best for evaluations, best in curve if evaluations <= count), default=None)


@dataclass(frozen=True, slots=True)
class Trial:
    """A strategy on a space, for some seeds."""

    space: str
    strategy: str
    seeds: int
    batch: int = BATCH
    late: int = 0
    seeded: bool = False
    """Whether it begins with what the header has."""

    @property
    def name(self) -> str:
        """What a table calls it."""
        told = ["from the header"] if self.seeded else []
        told += [f"batches of {self.batch}"] if self.batch != BATCH else []
        told += ["told one batch late"] if self.late else []
        return ", ".join([self.strategy, *told])


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it."""

    trial: Trial
    best: float
    curves: tuple[Curve, ...]

    def soon(self, share: float) -> tuple[float, float, float]:
        """After how many evaluations a quarter, a half, three quarters of the runs are there."""
        found = sorted(reached(one, share * self.best) or inf for one in self.curves)
        low, middle, high = (found[ceil(part * len(found)) - 1] for part in (0.25, 0.5, 0.75))
        return low, middle, high

    def regret(self, count: int) -> float:
        """How far the best score is then, the mean of the runs, in percent."""
        lost = [1 - (best_after(one, count) or 0) / self.best for one in self.curves]
        return 100 * sum(lost) / len(lost)


@cache
def space_of(name: str) -> RecordedSpace:
    """A whole space with its samples."""
    given = ResultFiles([str(SPACES / f"{name}.db")])
    with open_inputs(given) as files:
        (found,) = recorded_spaces(
            files.databases, Warnings(), re.compile(""), {}, files.declared, sampled=True
        )
    return found


def run(trial: Trial) -> Tried:
    """All seeds, one after the other."""
    space = space_of(trial.space)
    score = space.score
    most = len(score) if trial.strategy == "random" else MOST
    make = made(trial, space)
    curves = []
    for seed in range(1, trial.seeds + 1):
        told = space.sampled_scores(SAMPLES, seed)
        found = replay(make(seed), told, most=most, batch=trial.batch, late=trial.late)
        curves.append(curve_of([score[values] for values in found.evaluated]))
    return Tried(trial, max(score.values()), tuple(curves))


def made(trial: Trial, space: RecordedSpace) -> Callable[[int], Strategy]:
    """How the strategy is made for a seed."""
    starts = space.starts if trial.seeded else ()
    return lambda seed: make_strategy(trial.strategy, space.domain, seed, starts)


def together(trials: Sequence[Trial], jobs: int) -> list[Tried]:
    """In processes, in the order in which they are asked for."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(run, trials))


def compared(seeds: int) -> Iterator[Trial]:
    """All strategies on all spaces; the default in other batches, and told late."""
    for space in (*CHOSEN_BY, REPORTED):
        for strategy in ("random", "local"):
            yield Trial(space, strategy, seeds)
            yield Trial(space, strategy, seeds, seeded=True)
        local = Trial(space, "local", seeds, seeded=True)
        yield replace(local, late=1)
        yield replace(local, batch=64)


def rows(found: Sequence[Tried]) -> Iterator[str]:
    """A table in Markdown."""
    shares = " | ".join(f"{share * 100:g} %" for share in SHARES)
    counts = " | ".join(f"after {count}" for count in COUNTS)
    yield f"| space | strategy | {shares} | {counts} |"
    yield "| --- | --- |" + " ---: |" * (len(SHARES) + len(COUNTS))
    for one in found:
        soon = [_soon(*one.soon(share)) for share in SHARES]
        lost = [f"{one.regret(count):.2f} %" for count in COUNTS]
        yield f"| {' | '.join([one.trial.space, one.trial.name, *soon, *lost])} |"


def _soon(low: float, middle: float, high: float) -> str:
    return f"{_count(middle)} ({_count(low)} to {_count(high)})"


def _count(value: float) -> str:
    return "more" if value == inf else f"{value:.0f}"


def draw(found: Sequence[Tried], path: Path) -> None:
    """How far the best is, against evaluations: the mean of all seeds."""
    counts = [*range(1, 30), *range(30, 100, 2), *range(100, MOST + 1, 5)]
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for one in found:
        trial = one.trial
        if trial.name in DRAWN:
            kept = "reported" if trial.space == REPORTED else "chosen by"
            panel = panels.setdefault(f"{trial.space.rsplit('_', 1)[0]} ({kept})", {})
            panel[trial.name] = {count: one.regret(count) for count in counts}
    axes = ("%", "evaluations")
    write_lines(path, "Below the best score", panels, (1, 10, 100), axes, (1, 6))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; draws it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args(argv)
    found = together(list(compared(given.seeds)), given.jobs)
    print("\n".join(rows(found)))
    if given.figure:
        draw(found, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
