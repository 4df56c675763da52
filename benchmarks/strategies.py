"""How soon policygen's strategies and Kernel Tuner's find the best of recorded spaces.

    python -m benchmarks.strategies [--hub FOLDER] [--only REGEX] [--seeds 20] [--figure FILE.svg]

Spaces are CUB's in fixtures/spaces and, with `--hub`, the Kernel Tuner caches below a folder of
the Benchmark Hub (AutoTuningAssociation/benchmark_hub). Both sides see the same variants and the
same goals, and neither sees variants that failed: policygen's strategies as in `policygen search
--replay`, Kernel Tuner's in its simulation mode. The goal of CUB's is what a search maximizes: the
score, or the lowest ratio of a variant that the rule does not allow; from medians of ten samples of
each runtime workload, drawn by the seed. What counts is the goal by all samples. "From the header"
begins with what CUB 3.6.0 has there for sm90; the hub's spaces have no base, so nothing begins with
one, and the first configuration that has a time is left out: scores are ratios to it. Their times
are medians of the samples without the first, as `policygen db import` has them, not the means that
Kernel Tuner reports. A row with `1 at once` learns each outcome before it proposes the next
variant, as Kernel Tuner's do; a search compiles and measures batches.
"""

import argparse
import contextlib
import gzip
import io
import json
import random
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path
from statistics import median_high
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.figures import write_lines
from policygen.app.db_import import ImportedAs, import_results, read_tuned
from policygen.app.inputs import ResultFiles, open_inputs
from policygen.errors import InputError
from policygen.gpu.replay import BATCH, SAMPLES, Curve, curve_of, recorded_spaces, replay
from policygen.gpu.strategies import Domain, Values, make_strategy
from policygen.results.ranking import Warnings
from policygen.results.tuners.formats import TunedTimes, is_cache
from policygen.results.tuners.points import number_space

SPACES = Path(__file__).parents[1] / "fixtures/spaces"
SHARE = 0.99
MOST = 500
"""Evaluations after which a run ends."""
KERNEL_TUNER = (
    "random_sample", "genetic_algorithm", "diff_evo", "greedy_ils", "greedy_mls", "mls",
    "simulated_annealing", "dual_annealing", "basinhopping", "pso", "firefly_algorithm",
    "adaptive_tabu_greywolf",
)  # fmt: skip
"""Its strategies with its own settings. Minutes for each run take `bayes_opt` and `hybrid_vndx`."""
DRAWN = ("local, from the header", "local", "random")
COUNTS = [*range(1, 30), *range(30, 100, 2), *range(100, 251, 5)]


@dataclass(frozen=True, slots=True)
class Space:
    """A recorded space that processes can share."""

    name: str
    ranges: Mapping[str, Sequence[int]]
    goal: Mapping[Values, float]
    seen: Sequence[Mapping[Values, float]]
    """The goals that strategies see, by seed."""
    starts: Sequence[Values]

    @property
    def best(self) -> float:
        """The goal to come near to."""
        return max(self.goal.values())

    @property
    def near(self) -> int:
        """How many variants are that near."""
        return sum(goal >= SHARE * self.best for goal in self.goal.values())


@dataclass(frozen=True, slots=True)
class Row:
    """A strategy of either side."""

    strategy: str
    is_ours: bool = True
    is_seeded: bool = False
    batch: int = BATCH

    @property
    def name(self) -> str:
        """What a table calls it."""
        start = ", from the header" if self.is_seeded else ""
        batch = f", {self.batch} at once" if self.batch != BATCH else ""
        return self.strategy + start + batch if self.is_ours else f"Kernel Tuner: {self.strategy}"

    def evaluated(self, space: Space, seed: int) -> Sequence[Values]:
        """The variants that it evaluates, each once."""
        seen = space.seen[seed % len(space.seen)]
        if not self.is_ours:
            return simulate(self.strategy, space.ranges, seen, seed)
        domain = Domain(space.ranges, lambda values: values if values in space.goal else None)
        starts = space.starts if self.is_seeded else ()
        strategy = make_strategy(self.strategy, domain, seed, starts)
        return replay(strategy, seen, most=MOST, batch=self.batch)[0]


OURS = (
    Row("local", is_seeded=True),
    Row("local"),
    Row("local", batch=1),
    Row("random"),
)


def simulate(
    strategy: str, ranges: Mapping[str, Sequence[int]], seen: Mapping[Values, float], seed: int
) -> list[Values]:
    """What Kernel Tuner's simulation mode evaluates; the time of a variant is 1 over its score."""
    import kernel_tuner

    names = [*ranges]

    def fits(*values: int, **named: int) -> bool:
        return (values or tuple(named.values())) in seen

    head = {"device_name": "", "kernel_name": "kernel", "problem_size": [1, 1, 1]}
    cache: dict[str, Any] = {
        ",".join(map(str, values)): {**dict(zip(names, values, strict=True)), "time": 1 / score}
        for values, score in seen.items()
    }
    space = {"tune_params_keys": names, "tune_params": ranges, "objective": "time", "cache": cache}
    random.seed(seed)
    np.random.seed(seed)
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "cache.json"
        path.write_text(json.dumps(head | space), "utf-8")
        warnings.simplefilter("ignore")
        results, _ = kernel_tuner.tune_kernel(
            "kernel",
            "",
            (1, 1, 1),
            [],
            {name: [*values] for name, values in ranges.items()},
            restrictions=fits,
            strategy=strategy,
            strategy_options={"max_fevals": MOST},
            cache=str(path),
            simulation_mode=True,
            lang="C",
            quiet=True,
            seed=seed,
        )
    evaluated = dict.fromkeys(tuple(result[name] for name in names) for result in results)
    return [values for values in evaluated if values in seen]


# Spaces


def spaces_of(hub: Path | None, seeds: int, pattern: re.Pattern[str]) -> Iterator[Space]:
    """CUB's spaces and the hub's, one file at a time."""
    for path in sorted(SPACES.glob("*.db")):
        if pattern.search(path.stem):
            yield _space(path.stem, path, seeds)
    for path in sorted(hub.rglob("*.json*")) if hub else ():
        name = f"{path.parent.name} {path.name.partition('.')[0]}"
        if pattern.search(name):
            try:
                space = hub_space(name, path)
            except InputError as error:
                print(error, file=sys.stderr)
            else:
                yield from (space,) if space else ()


def hub_space(name: str, path: Path) -> Space | None:
    """Imports a cache as `policygen db import` does; None if it is something else, such as T4."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    if not is_cache(data):
        return None
    with TemporaryDirectory() as folder:
        cache, database = Path(folder) / "cache.json", Path(folder) / "space.db"
        cache.write_bytes(data)
        (tuned,) = read_tuned([cache])
        # Scores are ratios to any configuration that has a time.
        measured = (entry for entry in tuned.entries if isinstance(entry.outcome, TunedTimes))
        base = number_space([tuned]).label(next(measured).values)
        facts = ImportedAs("kernel", base, "GPU", ("sm90",), size=tuned.size or "1")
        import_results([str(cache)], database, facts)
        return _space(name, database, 0)


def _space(name: str, path: Path, seeds: int) -> Space:
    """Reads a database; without seeds, strategies see the recorded scores and no start."""
    with open_inputs(ResultFiles([str(path)])) as files:
        (space,) = recorded_spaces(
            files.databases,
            Warnings(),
            re.compile(""),
            {},
            files.declared,
            sampled=seeds > 0,
            starts=None if seeds else (),
        )
    seen = [space.sampled_goals(SAMPLES, seed) for seed in range(seeds)] or [space.goal]
    return Space(name, dict(space.domain.ranges), space.goal, seen, space.starts)


# Results


@dataclass(frozen=True, slots=True)
class Tried:
    """A row on a space: the curve of each seed."""

    space: Space
    row: Row
    curves: Sequence[Curve]

    @property
    def soon(self) -> float:
        """The median of the evaluations after which a run is near the best."""
        best = SHARE * self.space.best
        return median_high([reached(curve, best) or inf for curve in self.curves])

    def regret(self, count: int) -> float:
        """How far the best score is then, the mean of the runs, in percent."""
        best = self.space.best
        lost = [1 - (best_after(curve, count) or 0) / best for curve in self.curves]
        return 100 * sum(lost) / len(lost)


def reached(curve: Curve, score: float) -> int | None:
    """The evaluations until the best score reaches a score; None if it never does."""
    return next((count for count, best in curve if best >= score), None)


def best_after(curve: Curve, count: int) -> float | None:
    """The best score after so many evaluations; None if there were none."""
    return max((best for evaluations, best in curve if evaluations <= count), default=None)


def curve(space: Space, row: Row, seed: int) -> Curve:
    """One run, by the goals that count."""
    return curve_of([space.goal[values] for values in row.evaluated(space, seed)])


def tried(space: Space, rows: Sequence[Row], seeds: int, jobs: int) -> list[Tried]:
    """All rows on a space, in processes; rows from the header only where there is one."""
    rows = [row for row in rows if space.starts or not row.is_seeded]
    runs = [*product(rows, range(1, seeds + 1))]
    with ProcessPoolExecutor(jobs, initializer=_share, initargs=(space,)) as pool:
        curves = [*pool.map(_shared_curve, *zip(*runs, strict=True))]
    return [Tried(space, row, curves[at * seeds : (at + 1) * seeds]) for at, row in enumerate(rows)]


_SHARED: list[Space] = []


def _share(space: Space) -> None:
    """Sends a space to a process once."""
    _SHARED[:] = [space]


def _shared_curve(row: Row, seed: int) -> Curve:
    return curve(_SHARED[0], row, seed)


def table(found: Sequence[Tried]) -> Iterator[str]:
    """A table in Markdown, with the soonest of each space in bold; all have the same rows."""
    soon = {(one.space.name, one.row): one.soon for one in found}
    spaces = list({one.space.name: one.space for one in found}.values())
    yield f"| | {' | '.join(space.name for space in spaces)} |"
    yield "| --- |" + " ---: |" * len(spaces)
    yield f"| variants | {' | '.join(f'{len(space.goal):,}' for space in spaces)} |"
    yield f"| of them within 1 % | {' | '.join(str(space.near) for space in spaces)} |"
    for row in dict.fromkeys(one.row for one in found):
        cells = []
        for space in spaces:
            count = soon[space.name, row]
            least = min(value for (name, _), value in soon.items() if name == space.name)
            text = "more" if count == inf else str(count)
            cells.append(f"**{text}**" if count == least < inf else text)
        yield f"| {row.name} | {' | '.join(cells)} |"


def draw(found: Sequence[Tried], path: Path) -> None:
    """How far the best is, against evaluations: the mean of all seeds."""
    panels: dict[str, dict[str, dict[int, float]]] = {}
    for one in found:
        if one.space.starts and one.row.name in DRAWN:
            panel = panels.setdefault(one.space.name, {})
            panel[one.row.name] = {count: one.regret(count) for count in COUNTS}
    axes = ("%", "evaluations")
    write_lines(path, "Below the best score", panels, (1, 10, 100), axes, (1, 6))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table of CUB's spaces and one of the hub's; draws CUB's where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hub", type=Path)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rivals", nargs="*", default=KERNEL_TUNER, metavar="STRATEGY")
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args(argv)
    rows = [*OURS, *(Row(strategy, is_ours=False) for strategy in given.rivals)]
    found: list[Tried] = []
    for space in spaces_of(given.hub, given.seeds, given.only):
        print(f"{space.name}: {len(space.goal):,} variants", file=sys.stderr)
        found += tried(space, rows, given.seeds, given.jobs)
    for is_cub in (True, False):
        if part := [one for one in found if bool(one.space.starts) == is_cub]:
            print(*table(part), sep="\n", end="\n\n")
    if given.figure:
        draw(found, given.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
