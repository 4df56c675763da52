"""How often a search chooses what is not faster, and how often it finds what is: simulated.

    python -m benchmarks.choices [--searches 1000] [--seed 1] [--figure docs/images/choices.svg]
        [--noise repeats | --noise measured]

The noise is that of processes that ran the same code on an H200 (fixtures/measured/processes.csv),
of two searches there (repeats.csv), or of `policygen measure` (paired.csv: base over variant in a
process; a run is five of them, and the program takes its noise from the run). `schemas/noise.toml`
was fitted with the searches and with the first series of processes; simulated is the second one,
which was measured afterwards. Each run of a variant gets three of the measured rows, each with a
normal factor, so that runtime workloads stay as correlated as they were. The rules are those of the
program; only samples are left out.
"""

import argparse
import csv
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures import write_lines
from policygen.model.results import Choice, Rules, RunKey, ScoredVariant
from policygen.model.workload import BASE
from policygen.results.cases import Case, Part
from policygen.results.choice import choose, confirm, finalists, runs_needed, shrunken
from policygen.results.database import Database, Floats
from policygen.results.noise import FINALISTS, MOST
from policygen.results.own_tables import NoiseKey, workload_text
from policygen.results.score import Scores, deviation, luck, score_case
from policygen.results.tables import ResultTable

MEASURED = Path(__file__).parents[1] / "fixtures/measured"
NAMES = ("cub.bench.reduce.sum", "cub.bench.select.if", "cub.bench.radix_sort.keys")
SERIES = "second"
COUNTS = (1, 12, 100, 500)
GAIN = 0.03
AT_ONCE = 3
GPU = "H200 (6016, 132, eccon)"
RULES = Rules()
PROCESSES = 5
BASE_SECONDS = (7.2e-6, 8.96e-6, 27.9e-6, 247e-6)
"""What base of reduce.sum takes for F32, 2^16 to 2^28 elements, on that H200."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark with what runs of the same code had."""

    name: str
    points: tuple[tuple[str, ...], ...]
    base: Floats
    noise: Floats
    """Logarithms by run and runtime workload."""
    processes: int = 1
    """Of a run; with several of them the run tells its noise itself."""


def benchmarks(noise: str) -> tuple[Benchmark, ...]:
    """Those that were measured so."""
    if noise == "measured":
        return (_measured(NAMES[0]),)
    if noise == "repeats":
        return tuple(_repeated(name) for name in NAMES if _rows("repeats.csv", name))
    return tuple(_processes(name) for name in NAMES)


def _processes(name: str) -> Benchmark:
    """How far each process is from the mean of those that ran the same."""
    by_workload: dict[str, list[list[float]]] = {}
    sizes: list[str] = []
    for row in _rows("processes.csv", name):
        sizes = [column for column in row if column.isdecimal()]
        if row["series"] == SERIES:
            seconds = [float(row[size]) for size in sizes]
            by_workload.setdefault(row["workload"], []).append(seconds)
    found = [np.array(rows) for rows in by_workload.values()]
    noise = []
    for times in found:
        logs = np.log(times)
        noise.append((logs - logs.mean(axis=0)) * (len(logs) / (len(logs) - 1)) ** 0.5)
    points = tuple((size,) for size in sizes)
    return Benchmark(name, points, found[0].mean(axis=0), np.concatenate(noise))


def _rows(file: str, name: str) -> list[dict[str, str]]:
    with (MEASURED / file).open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["benchmark"] == name]


def _measured(name: str) -> Benchmark:
    """How far base over a variant is in a process from its mean over processes."""
    rows = _rows("paired.csv", name)
    sizes = [column for column in rows[0] if column.isdecimal()]
    noise = np.array([[float(row[size]) for size in sizes] for row in rows])
    points = tuple((size,) for size in sizes)
    return Benchmark(name, points, np.array(BASE_SECONDS), noise, PROCESSES)


def _repeated(name: str) -> Benchmark:
    """What two searches differ by: one run has 1/sqrt(2) of that."""
    rows = _rows("repeats.csv", name)
    points = list(dict.fromkeys(row["runtime"] for row in rows))
    base = {row["runtime"]: float(row["base_seconds"]) for row in rows}
    by_variant: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        own = by_variant.setdefault((row["workload"], row["variant"]), {})
        own[row["runtime"]] = float(row["difference"])
    differences = [[own[point] for point in points] for own in by_variant.values()]
    return Benchmark(
        name,
        tuple(tuple(point.split("/")) for point in points),
        np.array([base[point] for point in points]),
        np.array(differences) / 2**0.5,
    )


class Simulation:
    """Searches of one benchmark with so many variants, of which one gains something, or none."""

    def __init__(self, benchmark: Benchmark, variants: int, seed: int) -> None:
        self._benchmark = benchmark
        self._variants = variants
        self._random = np.random.default_rng([seed, variants])
        axes = ("Elements{io}[pow2]", "Entropy")[: len(benchmark.points[0])]
        algorithm = benchmark.name
        self._table = ResultTable(f"{algorithm}.base", algorithm, "base", "cccl", axes, axes)

    def run(self, gain: float, chosen: Sequence[int] | None = None, runs: int = 1) -> Case:
        """One database or more; with `chosen`, of these variants alone."""
        speeds = np.ones(self._variants + 1)
        speeds[1] += gain
        names = [BASE, *(f"ipt_{index}" for index in range(1, self._variants + 1))]
        if chosen is not None:
            speeds = speeds[[0, *chosen]]
            names = [BASE, *(names[index] for index in chosen)]
        processes = self._benchmark.processes
        noise = self._noise(runs * len(speeds) * processes)
        noise = noise.reshape(runs, len(speeds), processes, -1)
        files = tuple(
            self._database(index, names, one + np.log(speeds)[:, None, None])
            for index, one in enumerate(noise)
        )
        noise = -noise.mean(axis=2)
        centers = self._benchmark.base / speeds[:, None] * np.exp(noise)
        part = Part(self._table, self._benchmark.points, centers, np.zeros(centers.shape, np.int64))
        return Case(self._benchmark.name, KEY, {}, files, tuple(names), (part,))

    def _noise(self, rows: int) -> Floats:
        pool = self._benchmark.noise
        if self._benchmark.processes > 1:  # there are thousands of them
            return np.asarray(pool[self._random.integers(0, len(pool), rows)])
        picked = pool[self._random.integers(0, len(pool), (rows, AT_ONCE))]
        factors = self._random.normal(size=(rows, AT_ONCE, 1))
        return np.asarray((picked * factors).sum(axis=1) / AT_ONCE**0.5)

    def _database(self, index: int, names: Sequence[str], ratios: Floats) -> Database:
        """A run; where it is several processes, with what each of them found."""
        pairs: dict[NoiseKey, dict[tuple[int, str], list[float]]] = {}
        if ratios.shape[1] > 1:
            for number, point in enumerate(self._benchmark.points):
                workload = dict(zip(self._table.rt_axes, point, strict=True))
                run = (KEY.gpu, KEY.ctk, KEY.cccl)
                key = (*run, self._benchmark.name, "base", workload_text(workload))
                own = enumerate(names[1:], 1)
                pairs[key] = {(1, name): ratios[at, :, number].tolist() for at, name in own}
        return Database(Path(f"run{index}.db"), _NOWHERE, (), {}, (), pairs=pairs)


_NOWHERE = sqlite3.connect(":memory:")
KEY = RunKey(gpu=GPU, ctk="13.0", cccl="v3.0.3")


def variants_of(scores: Scores) -> list[ScoredVariant]:
    """The best ones, with the verdict that samples without noise of their own lead to."""
    found = []
    limit = luck(scores, RULES) * deviation(scores, RULES)
    for position in [p for p, i in enumerate(scores.index) if i != 0][:FINALISTS]:
        score = float(scores.score[position])
        found.append(
            ScoredVariant(
                variant=scores.case.variants[int(scores.index[position])],
                score=score,
                min=float(scores.minimum[position]),
                mean=float(scores.mean[position]),
                max=float(scores.maximum[position]),
                verdict="better" if score - limit > 1 else "too close to call",
                slower=0,
            )
        )
    return found


@dataclass(slots=True)
class Counts:
    """Of some searches, by the way to choose."""

    before: int = 0
    shrunken: int = 0
    after: int = 0
    confirmed: tuple[int, ...] = (0, 0, 0, 0)
    """With one to three later runs, and with as many as are asked for."""
    asked: int = 0
    told: float = 0.0
    """The sum of the scores that are told for what is chosen."""


def simulate(simulation: Simulation, gain: float, searches: int) -> Counts:
    """How often each way says "use"; with a gain, of the variant that has it."""
    counts = Counts()
    for _ in range(searches):
        case = simulation.run(gain)
        scores = score_case(case, {})
        ranked = variants_of(scores)
        best = ranked[0]
        right = not gain or best.variant == "ipt_1"
        # Until now: samples say that the score is above 1, and nothing else is asked.
        counts.before += right and best.score >= RULES.least_score and best.min >= 0.95
        counts.shrunken += right and shrunken(best.score, scores, RULES) >= RULES.least_score
        found = choose(ranked, scores, RULES, {})
        if _is_right(found, gain):
            counts.after += 1
            counts.told += found.score or 0
        best_ones = [int(v.variant.removeprefix("ipt_")) for v in ranked]
        counts.asked = runs_needed(scores.tried, deviation(scores, RULES), RULES) or MOST
        hits = []
        for runs in (1, 2, 3, counts.asked):
            again = simulation.run(gain, best_ones, runs)
            confirmed = confirm(scores, finalists(scores, again, RULES), again, RULES, {})
            hits.append(int(_is_right(choose(ranked, scores, RULES, {}, confirmed), gain)))
        counts.confirmed = tuple(a + b for a, b in zip(counts.confirmed, hits, strict=True))
    return counts


def _is_right(choice: Choice, gain: float) -> bool:
    return choice.decision == "use" and (not gain or choice.variant == "ipt_1")


Table = Mapping[tuple[str, int, float], Counts]


def table(searches: int, seed: int, noise: str) -> Table:
    """All benchmarks, numbers of variants, and gains of none and of 3 %."""
    return {
        (one.name, variants, gain): simulate(Simulation(one, variants, seed), gain, searches)
        for one in benchmarks(noise)
        for variants in COUNTS
        for gain in (0.0, GAIN)
    }


def in_words(found: Table, searches: int) -> str:
    """One line for each benchmark and number of variants."""
    lines = []
    for gain, title in ((0.0, 'wrong "use"'), (GAIN, f"right, with a gain of {GAIN:.0%}")):
        lines.append(f"{title}, of {searches:,} searches")
        head = ("before", "shrunken", "after", "1 run", "2 runs", "3 runs", "asked")
        lines.append(f"{'':26}{'variants':>9}" + "".join(f"{name:>9}" for name in head))
        for (name, variants, of), one in found.items():
            if of == gain:
                numbers = (one.before, one.shrunken, one.after, *one.confirmed)
                shares = "".join(f"{number / searches:>9.1%}" for number in numbers)
                lines.append(f"{name:26}{variants:>9}{shares} ({one.asked})")
    return "\n".join(lines)


def draw(found: Table, searches: int, path: Path) -> None:
    """False choices against the number of variants, before and after."""
    names = dict.fromkeys(name for name, _, _ in found)
    shares = {
        f"{name.removeprefix('cub.bench.')}, {attribute}": {
            count: 100 * getattr(found[name, count, 0.0], attribute) / searches for count in COUNTS
        }
        for attribute in ("before", "after")
        for name in names
    }
    axes = ("%", "variants that were tried, none of them faster than base")
    write_lines(path, 'Searches that say "use"', {"": shares}, COUNTS, axes, (5, 100))


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path)
    parser.add_argument(
        "--noise", choices=("processes", "repeats", "measured"), default="processes"
    )
    given = parser.parse_args(argv)
    found = table(given.searches, given.seed, given.noise)
    print(in_words(found, given.searches))
    if given.figure:
        draw(found, given.searches, given.figure)
    worst = max(max(one.after, *one.confirmed) for (*_, gain), one in found.items() if not gain)
    return int(worst > 0.05 * given.searches)


if __name__ == "__main__":
    sys.exit(main())
