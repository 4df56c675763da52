"""A strategy on a space that was measured before: what it finds, and how soon, without a GPU."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from random import Random

import numpy as np

from policygen.errors import InputError
from policygen.gpu.local_search import nearest
from policygen.gpu.strategy import AskedVariant, Domain, Strategy, Values
from policygen.model.workload import BASE, parse_label, shortened
from policygen.results.cases import Case, Part
from policygen.results.database import Floats
from policygen.results.own_tables import OWN, workload_of, workload_text
from policygen.results.samples import Samples
from policygen.results.score import SampleReader, Scores
from policygen.results.tables import quote

Curve = tuple[tuple[int, float], ...]
"""Evaluations, and the best score until then."""


@dataclass(frozen=True, slots=True)
class ReplayedOrder:
    """What a strategy asked for."""

    evaluated: tuple[Values, ...]
    """In its order."""
    invalid: int
    """Variants that it asked for and that were not recorded."""


def replay(
    strategy: Strategy,
    told: Mapping[Values, float],
    *,
    most: int,
    batch: int,
    late: int = 0,
) -> ReplayedOrder:
    """Asks and tells until there is no more to ask for, or `most` variants are evaluated.

    What became of a batch is told when `late` later ones have been asked for.
    """
    evaluated: list[Values] = []
    invalid = 0
    waiting: list[list[Values]] = []
    while True:
        asked = strategy.ask(min(batch, most - len(evaluated))) if len(evaluated) < most else []
        known = [values for values in asked if values in told]
        evaluated += known
        invalid += len(asked) - len(known)
        if asked:
            waiting.append(asked)
        elif not waiting:
            return ReplayedOrder(tuple(evaluated), invalid)
        if len(waiting) > late or not asked:
            done = waiting.pop(0)
            strategy.tell([AskedVariant(values, told.get(values)) for values in done])


def curve_of(scores: Sequence[float]) -> Curve:
    """Where the best score rises, and where it ends."""
    found: list[tuple[int, float]] = []
    for count, score in enumerate(scores, 1):
        if not found or score > found[-1][1]:
            found.append((count, score))
    if found and found[-1][0] < len(scores):
        found.append((len(scores), found[-1][1]))
    return tuple(found)


def reached(curve: Curve, score: float) -> int | None:
    """After how many evaluations the best score is as good; none where it never is."""
    return next((count for count, best in curve if best >= score), None)


def best_after(curve: Curve, count: int) -> float | None:
    """The best score after so many evaluations; none where there were none."""
    return max((best for at, best in curve if at <= count), default=None)


@dataclass(frozen=True, slots=True)
class SampledCell:
    """The samples of a variant on a runtime workload in a run: where its center stands."""

    part: int
    run: int
    variant: int
    column: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """The variants of a workload that were measured whole and have the same parameters."""

    scores: Scores
    domain: Domain
    """Variants that the database lacks cannot be."""
    place: Mapping[Values, int]
    """Where each variant stands in the scores, the best first."""
    others: int
    """Variants with other parameters, which are left out."""
    cells: tuple[SampledCell, ...] = ()
    starts: tuple[Values, ...] = ()
    """What a search would begin with; none of them need be recorded."""

    def label(self, values: Values) -> str:
        """What a recorded variant is called."""
        return self.scores.case.variants[int(self.scores.index[self.place[values]])]

    @property
    def score(self) -> dict[Values, float]:
        """What each variant is worth by all that was recorded."""
        return {values: float(self.scores.score[at]) for values, at in self.place.items()}

    def told(self, samples: int, seed: int) -> dict[Values, float]:
        """What each is worth by the medians of a few samples, drawn with repetition by the seed.

        Where there are no samples, what was recorded counts.
        """
        if not samples or not self.cells:
            return self.score
        rng = np.random.default_rng(Random(seed).getrandbits(64))  # noqa: S311  no secret
        parts = self._parts(_medians(self.cells, samples, rng))
        weighted = zip(parts, self.scores.weights, strict=True)
        total = reduce(add, (part.ratios @ weight for part, weight in weighted))
        index = self.scores.index
        return {values: float(total[index[at]]) for values, at in self.place.items()}

    def _parts(self, medians: Floats) -> list[Part]:
        """The parts of the case with other centers."""
        centers = [part.centers.copy() for part in self.scores.case.parts]
        for cell, median in zip(self.cells, medians, strict=True):
            centers[cell.part][cell.run, cell.variant, cell.column] = median
        parts = zip(self.scores.case.parts, centers, strict=True)
        return [replace(part, centers=own) for part, own in parts]


# Spaces that databases have: what each variant scored, and what few of its samples would say.


def recorded_space(
    scores: Scores, reader: SampleReader | None = None, starts: Sequence[str] | None = None
) -> RecordedSpace | None:
    """The space of a workload, with samples; none where no variant was measured whole.

    Variants whose parameters are not those of most are left out. It begins with `starts`, or with
    what the databases say.
    """
    names = [scores.case.variants[int(index)] for index in scores.index]
    parsed = [(at, parse_label(name) or {}) for at, name in enumerate(names) if name != BASE]
    if not parsed:
        return None
    counts = Counter(frozenset(values) for _, values in parsed)
    most = max(counts, key=lambda one: (counts[one], sorted(one)))
    kept = [(at, values) for at, values in parsed if values.keys() == most]
    labels = tuple(kept[0][1])
    # A label that says the same in another order is the same variant.
    place = {tuple(values[label] for label in labels): at for at, values in reversed(kept)}
    ranges = {
        label: tuple(sorted({values[at] for values in place})) for at, label in enumerate(labels)
    }
    domain = Domain(ranges, lambda values: values if values in place else None)
    cells = () if reader is None else tuple(_cells(scores, reader))
    if starts is None:
        known = recorded_starts(scores.case)
        starts = [label for label in known if (parse_label(label) or {}).keys() == most]
    begin = starts_in(domain, starts)
    return RecordedSpace(scores, domain, place, len(parsed) - len(kept), cells, begin)


def _cells(scores: Scores, reader: SampleReader) -> list[SampledCell]:
    """The samples of all variants that count, as far as there are any."""
    return [
        SampledCell(number, run, int(variant), column, samples)
        for number, part in enumerate(scores.case.parts)
        for run in range(len(part.centers))
        for variant in scores.index
        for column, samples in enumerate(reader.read(part, int(variant), run))
        if samples is not None
    ]


def _medians(cells: Sequence[SampledCell], count: int, rng: np.random.Generator) -> Floats:
    """Of each as many samples, drawn with repetition."""
    sizes = np.array([len(cell.samples) for cell in cells])
    padded = np.zeros((len(cells), int(sizes.max())))
    for row, cell in zip(padded, cells, strict=True):
        row[: len(cell.samples)] = cell.samples
    which = (rng.random((len(cells), count)) * sizes[:, None]).astype(np.int64)
    return np.asarray(np.median(np.take_along_axis(padded, which, axis=1), axis=1), np.float64)


STARTS = f"{OWN}starts"
"""Our own table of them: algorithm, workload and variant."""


# What a search of a recorded space begins with: what the header had when it was measured.


def recorded_starts(case: Case) -> tuple[str, ...]:
    """The labels that databases name for a workload; what is none counts for nothing."""
    wanted = case.algorithm, workload_text(case.workload)
    found = (
        variant
        for database in case.databases
        for algorithm, workload, variant in _rows(database.connection)
        if (algorithm, workload) == wanted and parse_label(variant)
    )
    return tuple(dict.fromkeys(found))


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """What stands in the table, where there is one with these columns."""
    info = connection.execute(f"PRAGMA table_info({quote(STARTS)})").fetchall()
    names = ("algorithm", "workload", "variant")
    if not {*names} <= {row[1] for row in info}:
        return
    query = f"SELECT {', '.join(names)} FROM {STARTS} ORDER BY rowid"  # noqa: S608
    for algorithm, workload, variant in connection.execute(query):
        axes = workload_of(workload)
        if isinstance(algorithm, str) and isinstance(variant, str) and axes is not None:
            yield algorithm, workload_text(axes), variant


def starts_in(domain: Domain, labels: Sequence[str]) -> tuple[Values, ...]:
    """Variants of a space, each value the one that is nearest to what a label says.

    A header's values need not be such as are searched.
    """
    return tuple(dict.fromkeys(_start_in(domain, label) for label in labels))


def _start_in(domain: Domain, label: str) -> Values:
    said = parse_label(label)
    if said is None:
        raise InputError(f"{shortened(label)} is no variant label", "Such as: ipt_19.tpb_512")
    if said.keys() != domain.ranges.keys():
        raise InputError(
            f"{label} has other parameters than the space",
            f"It has: {', '.join(domain.ranges)}",
        )
    return tuple(values[nearest(values, said[name])] for name, values in domain.ranges.items())
