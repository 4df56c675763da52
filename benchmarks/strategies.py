"""How soon strategies find the best of whole spaces that were measured on an H200.

    python -m benchmarks.strategies [--seeds 50] [--figure docs/images/strategies.svg]
    python -m benchmarks.strategies --settings

Settings of the default strategy are chosen on two spaces (`--settings` shows what was tried); the
third one is for the report alone. A strategy is told the median of ten samples of each runtime
workload, drawn by the seed; what counts is the score by all samples.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf
from pathlib import Path

from policygen.app.inputs import ResultFiles, open_inputs
from policygen.app.search_replay import BATCH, SAMPLES, recorded_spaces
from policygen.results.top import Warnings
from policygen.search.domain import Domain
from policygen.search.recorded import RecordedSpace
from policygen.search.replay import Curve, best_after, curve_of, reached, replay
from policygen.search.strategies.known import make_strategy
from policygen.search.strategies.local import LocalSearch, LocalSettings
from policygen.search.strategy import Strategy

SPACES = Path(__file__).parents[1] / "fixtures/spaces"
CHOSEN_BY = ("reduce_sum_F32", "radix_sort_keys_I16")
REPORTED = "scan_exclusive_sum_I8"
SHARES = (0.99, 0.995, 0.999)
COUNTS = (25, 50, 100, 200)
MOST = 400
"""Evaluations of what is no baseline."""
COLOURS = {"random": "#d55e00", "optuna": "#009e73", "local": "#0072b2"}


@dataclass(frozen=True, slots=True)
class Trial:
    """A strategy on a space, for some seeds."""

    space: str
    strategy: str
    seeds: int
    batch: int = BATCH
    late: int = 0
    settings: LocalSettings | None = None

    @property
    def name(self) -> str:
        """What a table calls it."""
        told = [f"batches of {self.batch}"] if self.batch != BATCH else []
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
        (found,) = recorded_spaces(given, files, Warnings(), sampled=True)
    return found


def run(trial: Trial) -> Tried:
    """All seeds, one after the other."""
    space = space_of(trial.space)
    score = space.score
    most = len(score) if trial.strategy == "random" else MOST
    make = made(trial)
    curves = []
    for seed in range(1, trial.seeds + 1):
        told = space.told(SAMPLES, seed)
        found = replay(
            make(space.domain, seed), told, most=most, batch=trial.batch, late=trial.late
        )
        curves.append(curve_of([score[values] for values in found.evaluated]))
    return Tried(trial, max(score.values()), tuple(curves))


def made(trial: Trial) -> Callable[[Domain, int], Strategy]:
    """How the strategy is made for a seed."""
    if trial.settings is not None:
        return lambda domain, seed: LocalSearch(domain, seed, (), trial.settings)
    return lambda domain, seed: make_strategy(trial.strategy, domain, seed)


def together(trials: Sequence[Trial], jobs: int) -> list[Tried]:
    """In processes, in the order in which they are asked for."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(run, trials))


def compared(seeds: int) -> Iterator[Trial]:
    """All strategies on all spaces; the default in other batches, and told late."""
    for space in (*CHOSEN_BY, REPORTED):
        for strategy in ("random", "optuna", "local"):
            yield Trial(space, strategy, seeds)
        local = Trial(space, "local", seeds)
        yield replace(local, late=1)
        for batch in (4, 64, 128):
            yield replace(local, batch=batch)


def varied(seeds: int) -> Iterator[Trial]:
    """The settings that the default was chosen among, on the two spaces that choose."""
    plain = LocalSettings()
    others = {
        "first": (8, 24),
        "powers": (0, 1, 2, 4),
        "explore": (0.0, 0.05, 0.2),
        "good": (4, 16),
        "courage": (0.3, 0.5, 2.0, 4.0),
        "tries": (4, 16),
        "trees": (20, 80),
        "leaf": (1, 3),
        "floor": (0.0, 0.25, 0.5, 0.7),
    }
    for space in CHOSEN_BY:
        yield Trial(space, "default", seeds, settings=plain)
        for name, values in others.items():
            for value in values:
                chosen = replace(plain, **{name: value})
                yield Trial(space, f"{name} {value:g}", seeds, settings=chosen)


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
    texts = ["more" if value == inf else f"{value:.0f}" for value in (low, middle, high)]
    return f"{texts[1]} ({texts[0]} to {texts[2]})"


def draw(found: Sequence[Tried], path: Path) -> None:
    """How far the best is, against evaluations: the mean of all seeds."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "policygen"
    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    names = (*CHOSEN_BY, REPORTED)
    panels = figure.subplots(1, len(names), sharex=True)
    counts = [*range(1, 30), *range(30, 100, 2), *range(100, MOST + 1, 5)]
    for axes, name in zip(panels, names, strict=True):
        for one in found:
            trial = one.trial
            if trial.space == name and trial.name in COLOURS:
                lost = [one.regret(count) for count in counts]
                axes.plot(counts, lost, color=COLOURS[trial.name], label=trial.name)
        axes.axhline(1, color="#808080", linewidth=0.8, linestyle="dotted")
        axes.set_xscale("log")
        axes.set_xticks([1, 10, 100], ["1", "10", "100"])
        axes.set_ylim(0, 6)
        kept = "reported" if name == REPORTED else "chosen by"
        axes.set_title(f"{name.rsplit('_', 1)[0]} ({kept})", fontsize=9)
        axes.set_xlabel("evaluations")
    panels[0].set_ylabel("below the best score (%)")
    panels[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table; draws it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--settings", action="store_true")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args(argv)
    trials = list((varied if given.settings else compared)(given.seeds))
    found = together(trials, given.jobs)
    print("\n".join(rows(found)))
    if given.figure:
        draw(found, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
