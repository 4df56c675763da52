"""Spaces that databases have: what each variant scored, and what few of its samples would say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from policygen.model.labels import BASE, parse_label
from policygen.results.case import Case, Part
from policygen.results.load import Floats, Integers
from policygen.results.samples import Samples
from policygen.results.score import Scores
from policygen.search.domain import Domain, Values


@dataclass(frozen=True, slots=True)
class SampledRow:
    """The samples of a variant on a runtime workload."""

    part: int
    run: int
    variant: int
    """Of the case."""
    column: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """The variants of a workload that were measured whole, and have the same parameters."""

    scores: Scores
    domain: Domain
    """Variants that the database lacks cannot be."""
    place: Mapping[Values, int]
    """Of each variant in the scores."""
    others: int
    """Variants with other parameters, which are left out."""
    sampled: Sequence[SampledRow] = ()

    @property
    def label(self) -> Mapping[Values, str]:
        """What each variant is called."""
        variants, index = self.scores.case.variants, self.scores.index
        return {values: variants[int(index[place])] for values, place in self.place.items()}

    @property
    def score(self) -> Mapping[Values, float]:
        """What each variant is worth by all that was recorded."""
        found = self.scores.score
        return {values: float(found[place]) for values, place in self.place.items()}

    def told(self, samples: int, seed: int) -> Mapping[Values, float]:
        """What each is worth by the medians of a few samples, drawn by the seed.

        Rows without samples count with what was recorded.
        """
        if not samples or not self.sampled:
            return self.score
        rng = np.random.default_rng(Random(seed).getrandbits(64))  # noqa: S311  no secret
        drawn = _with_centers(self.scores.case, self.sampled, samples, rng)
        total = sum(
            (
                part.ratios @ weight
                for part, weight in zip(drawn, self.scores.weights, strict=True)
            ),
            np.zeros(1),
        )
        index = self.scores.index
        return {values: float(total[index[place]]) for values, place in self.place.items()}


def recorded_space(scores: Scores) -> RecordedSpace | None:
    """The space of a workload; none where no variant was measured whole.

    Variants whose parameters are not those of most are left out.
    """
    variants = scores.case.variants
    parsed = [
        (place, parse_label(variants[int(index)]) or {})
        for place, index in enumerate(scores.index)
        if variants[int(index)] != BASE
    ]
    counts: dict[tuple[str, ...], int] = {}
    for _, values in parsed:
        counts[names] = counts.get(names := tuple(values), 0) + 1
    if not counts:
        return None
    labels = max(counts, key=lambda names: (counts[names], names))
    place = {
        tuple(values[label] for label in labels): where
        for where, values in reversed(parsed)
        if tuple(values) == labels
    }
    ranges = {
        label: tuple(sorted({values[at] for values in place})) for at, label in enumerate(labels)
    }
    domain = Domain(ranges, lambda values: values if values in place else None)
    return RecordedSpace(scores, domain, place, len(parsed) - len(place))


def _with_centers(
    case: Case, rows: Sequence[SampledRow], count: int, rng: np.random.Generator
) -> list[Part]:
    """The parts of a case, with medians of some samples drawn with repetition."""
    sizes = np.array([len(row.samples) for row in rows])
    padded = np.zeros((len(rows), int(sizes.max())))
    for at, row in enumerate(rows):
        padded[at, : len(row.samples)] = row.samples
    which: Integers = (rng.random((len(rows), count)) * sizes[:, None]).astype(np.int64)
    medians: Floats = np.median(np.take_along_axis(padded, which, axis=1), axis=1)
    centers = [part.centers.copy() for part in case.parts]
    for row, median in zip(rows, medians, strict=True):
        centers[row.part][row.run, row.variant, row.column] = median
    return [replace(p, centers=own) for p, own in zip(case.parts, centers, strict=True)]
