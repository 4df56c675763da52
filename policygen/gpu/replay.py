"""Replays a strategy on a measured space, without a GPU, to see what it finds and how soon."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from operator import add
from pathlib import Path
from random import Random

import numpy as np

from policygen.errors import InputError
from policygen.gpu.strategies import (
    AskedVariant,
    Domain,
    Strategy,
    StrategyName,
    Values,
    goal_of,
    make_strategy,
    nearest,
)
from policygen.model.searches import BestVariant, ReplayedSpace, ReplayedWorkload, ReplayRun
from policygen.model.workload import BASE, as_label, axis_name, parse_label, shortened
from policygen.results.cases import Case, Part
from policygen.results.database import Floats
from policygen.results.imported import rows_of
from policygen.results.own_tables import STARTS, workload_of
from policygen.results.ranking import Warnings, open_cases
from policygen.results.samples import Decoder, Samples
from policygen.results.score import SampleReader, Scores, score_case
from policygen.results.tables import DeclaredAxes
from policygen.steps import Progress, counted, whole

Curve = tuple[tuple[int, float], ...]
"""Pairs of evaluations and the best score so far."""


def replay(
    strategy: Strategy, score_by_values: Mapping[Values, float], *, most: int, batch: int
) -> tuple[list[Values], int]:
    """Run a strategy until it is exhausted or `most` variants are evaluated.

    Returns the recorded variants in request order, and how many others it requested.
    """
    evaluated: list[Values] = []
    invalid = 0
    while len(evaluated) < most and (variants := strategy.ask(min(batch, most - len(evaluated)))):
        recorded = [values for values in variants if values in score_by_values]
        evaluated += recorded
        invalid += len(variants) - len(recorded)
        strategy.tell([AskedVariant(values, score_by_values.get(values)) for values in variants])
    return evaluated, invalid


def curve_of(scores: Sequence[float]) -> Curve:
    """Return the points where the best score rises, and the end."""
    curve: list[tuple[int, float]] = []
    for count, score in enumerate(scores, 1):
        if not curve or score > curve[-1][1]:
            curve.append((count, score))
    if curve and curve[-1][0] < len(scores):
        curve.append((len(scores), curve[-1][1]))
    return tuple(curve)


@dataclass(frozen=True, slots=True)
class SampledCell:
    """Samples of a variant on a runtime workload in one run, with the position of its center."""

    part: int
    run: int
    variant: int
    column: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """Completely measured variants of a workload that have the same parameters."""

    scores: Scores
    domain: Domain
    """Variants missing in the database are invalid."""
    place: Mapping[Values, int]
    """Position of each variant in the scores, best first."""
    others: int
    """Number of excluded variants with other parameters."""
    cells: tuple[SampledCell, ...] = ()
    starts: tuple[Values, ...] = ()
    """Starts of a search, recorded or not."""

    def label(self, values: Values) -> str:
        """Return the label of a recorded variant."""
        return self.scores.case.variants[int(self.scores.index[self.place[values]])]

    @property
    def goal(self) -> dict[Values, float]:
        """What a search maximizes, by variant, from all recorded samples."""
        return self.sampled_goals(0, 0)

    def sampled_goals(self, samples: int, seed: int) -> dict[Values, float]:
        """Return goals from medians of a few samples, drawn with replacement by the seed.

        Without samples, return the recorded ones.
        """
        score, least = self.scores.score, self.scores.minimum
        if samples and self.cells:
            rng = np.random.default_rng(Random(seed).getrandbits(64))  # noqa: S311  no secret
            parts = self._parts(_medians(self.cells, samples, rng))
            weighted = zip(parts, self.scores.weights, strict=True)
            score = reduce(add, (part.ratios @ weight for part, weight in weighted))
            least = np.min([part.ratios.min(axis=1) for part in parts], axis=0)
            score, least = score[self.scores.index], least[self.scores.index]
        return {
            values: goal_of(float(score[position]), float(least[position]))
            for values, position in self.place.items()
        }

    def _parts(self, medians: Floats) -> list[Part]:
        """Return the parts of the case with other centers."""
        centers = [part.centers.copy() for part in self.scores.case.parts]
        for cell, median in zip(self.cells, medians, strict=True):
            centers[cell.part][cell.run, cell.variant, cell.column] = median
        parts = zip(self.scores.case.parts, centers, strict=True)
        return [replace(part, centers=part_centers) for part, part_centers in parts]


# Recorded spaces


def recorded_space(
    scores: Scores, reader: SampleReader | None = None, starts: Sequence[str] | None = None
) -> RecordedSpace | None:
    """Return the space of a workload, with samples; None if no variant was measured completely.

    Variants whose parameters differ from those of most are excluded. The starts are `starts`, or
    else those in the databases.
    """
    names = [scores.case.variants[int(index)] for index in scores.index]
    parsed = [
        (position, parse_label(name) or {}) for position, name in enumerate(names) if name != BASE
    ]
    if not parsed:
        return None
    counts = Counter(frozenset(values) for _, values in parsed)
    most_common = max(counts, key=lambda names: (counts[names], sorted(names)))
    matching = [(position, values) for position, values in parsed if values.keys() == most_common]
    labels = tuple(matching[0][1])
    # Labels with the same values in another order are the same variant.
    positions = {
        tuple(values[label] for label in labels): position
        for position, values in reversed(matching)
    }
    ranges = {
        label: tuple(sorted({values[position] for values in positions}))
        for position, label in enumerate(labels)
    }
    domain = Domain(ranges, lambda values: values if values in positions else None)
    cells = () if reader is None else tuple(_cells(scores, reader))
    if starts is None:
        recorded_labels = recorded_starts(scores.case)
        starts = [
            label for label in recorded_labels if (parse_label(label) or {}).keys() == most_common
        ]
    others = len(parsed) - len(matching)
    return RecordedSpace(scores, domain, positions, others, cells, starts_in(domain, starts))


def _cells(scores: Scores, reader: SampleReader) -> list[SampledCell]:
    """Return the available samples of all scored variants."""
    return [
        SampledCell(part_index, run, int(variant), column, samples)
        for part_index, part in enumerate(scores.case.parts)
        for run in range(len(part.centers))
        for variant in scores.index
        for column, samples in enumerate(reader.read(part, int(variant), run))
        if samples is not None
    ]


def _medians(cells: Sequence[SampledCell], count: int, rng: np.random.Generator) -> Floats:
    """Return medians of `count` samples per cell, drawn with replacement."""
    sizes = np.array([len(cell.samples) for cell in cells])
    padded = np.zeros((len(cells), int(sizes.max())))
    for row, cell in zip(padded, cells, strict=True):
        row[: len(cell.samples)] = cell.samples
    indexes = (rng.random((len(cells), count)) * sizes[:, None]).astype(np.int64)
    return np.asarray(np.median(np.take_along_axis(padded, indexes, axis=1), axis=1), np.float64)


# Starts of a recorded space


def recorded_starts(case: Case) -> tuple[str, ...]:
    """Return the valid start labels that databases have for a workload."""
    columns = ("algorithm", "workload", "variant")
    rows = (row for database in case.databases for row in rows_of(database, STARTS, *columns))
    variants = (
        variant
        for algorithm, workload, variant in rows
        if algorithm == case.algorithm and workload_of(workload) == case.workload
        if isinstance(variant, str) and parse_label(variant)
    )
    return tuple(dict.fromkeys(variants))


def starts_in(domain: Domain, labels: Sequence[str]) -> tuple[Values, ...]:
    """Return variants of a space, with each value the nearest to that of a label.

    A header's values may be outside the searched ranges.
    """
    starts: dict[Values, None] = {}
    ranges = domain.ranges
    for label in labels:
        parsed = parse_label(label)
        if parsed is None:
            raise InputError(
                f"{shortened(label)} is not a variant label", "For example: ipt_19.tpb_512"
            )
        if parsed.keys() != ranges.keys():
            raise InputError(
                f"{label} has different parameters than the space", f"It has: {', '.join(ranges)}"
            )
        start = (values[nearest(values, parsed[name])] for name, values in ranges.items())
        starts.setdefault(tuple(start))
    return tuple(starts)


# Replaying a strategy on each workload of databases

DEFAULT: StrategyName = "local"
BATCH = 16
"""Typical number of variants compiled at once in the recorded searches."""
SAMPLES = 10
"""Minimum number of samples for the first measurement of a variant."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """How to replay a strategy."""

    strategy: StrategyName = DEFAULT
    seed: int = 1
    seeds: int = 1
    """Number of seeds, starting at `seed`."""
    variants: int | None = None
    """Maximum number of evaluations; None means all variants."""
    batch: int = BATCH
    samples: int = SAMPLES
    """Samples per runtime workload that determine the strategy's scores; 0 uses the recorded
    scores.
    """
    starts: tuple[str, ...] | None = None
    """Labels to start from; None: those named by databases, or nothing for `random`."""

    @property
    def begins(self) -> tuple[str, ...] | None:
        """The start labels; empty by default for the `random` baseline."""
        return () if self.starts is None and self.strategy == "random" else self.starts


def recorded_spaces(
    databases: Sequence[Path],
    warnings: Warnings,
    pattern: re.Pattern[str],
    values: Mapping[str, frozenset[str]],
    declared: DeclaredAxes,
    *,
    sampled: bool,
    starts: Sequence[str] | None = None,
) -> list[RecordedSpace]:
    """Returns the recorded spaces of selected workloads, one per GPU and version."""
    spaces = []
    with Decoder() as decoder, open_cases(databases, warnings, pattern, values) as cases:
        for case in cases:
            reader = SampleReader(case, decoder, warnings.add) if sampled else None
            space = recorded_space(score_case(case, declared), reader, starts)
            if space is not None:
                spaces.append(space)
    return spaces


def describe_space(space: RecordedSpace) -> ReplayedSpace:
    """Describes a recorded space."""
    scores = space.scores
    case = scores.case
    goal = space.goal
    best = max(goal, key=goal.__getitem__)
    return ReplayedSpace(
        **dict(case.key),
        benchmark=case.algorithm,
        workload={axis_name(axis): value for axis, value in case.workload.items()},
        databases=case.files,
        recorded=len(space.place),
        product=space.domain.count,
        others=space.others,
        incomplete=scores.incomplete,
        sampled=bool(space.cells),
        approximate=scores.approximate,
        starts=tuple(as_label(space.domain.named(values)) for values in space.starts),
        best=BestVariant(variant=space.label(best), score=goal[best]),
    )


def replay_runs(
    spaces: Sequence[RecordedSpace],
    descriptions: Sequence[ReplayedSpace],
    settings: Replaying,
    progress: Progress | None,
) -> Iterator[ReplayRun]:
    """Replays a strategy on each space, with each seed."""
    seeds = range(settings.seed, settings.seed + settings.seeds)
    runs = [*product(zip(spaces, descriptions, strict=True), seeds)]
    for (space, about), seed in counted(runs, "replaying", whole(progress)):
        yield _run(space, about, settings, seed)


def _run(space: RecordedSpace, about: ReplayedSpace, settings: Replaying, seed: int) -> ReplayRun:
    strategy = make_strategy(settings.strategy, space.domain, seed, space.starts)
    limit = len(space.place) if settings.variants is None else settings.variants
    known_goals = space.sampled_goals(settings.samples, seed)
    evaluated, invalid = replay(strategy, known_goals, most=limit, batch=settings.batch)
    goal = space.goal
    best = max(evaluated, key=goal.__getitem__, default=None)
    return ReplayRun(
        **about.model_dump(include={*ReplayedWorkload.model_fields}),
        strategy=settings.strategy,
        seed=seed,
        evaluations=len(evaluated),
        invalid=invalid,
        best=None if best is None else BestVariant(variant=space.label(best), score=goal[best]),
        curve=curve_of([goal[values] for values in evaluated]),
    )
