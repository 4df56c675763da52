"""Spaces that databases have: what each variant scored, and what few of its samples would say."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from random import Random

import numpy as np

from policygen.model.labels import BASE, parse_label
from policygen.results.case import Part
from policygen.results.confidence import SampleReader
from policygen.results.load import Floats
from policygen.results.samples import Samples
from policygen.results.score import Scores
from policygen.search.domain import Domain, Values
from policygen.search.starts import recorded_starts, starts_in


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
