"""The score of each variant: its speedup over base, weighted over all runtime workloads."""

from dataclasses import dataclass

import numpy as np

from policygen.results.case import Case
from policygen.results.declared import DeclaredAxes
from policygen.results.load import Floats, Integers
from policygen.results.noise import Noise, noise_of
from policygen.results.weights import weights


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the complete variants of a case, the best first."""

    case: Case
    index: Integers
    """Into the case's variants."""
    score: Floats
    minimum: Floats
    mean: Floats
    maximum: Floats
    ratios: tuple[Floats, ...]
    """By part: all variants of the case by runtime workload, over 1 is faster."""
    weights: tuple[Floats, ...]
    approximate: bool
    incomplete: int
    noise: Noise
    repeats: Integers
    """By variant of the case: in how many runs it was measured, where it was measured least."""

    @property
    def tried(self) -> int:
        """Variants that were measured whole, base not counted."""
        return max(0, len(self.index) - 1)

    @property
    def gains(self) -> Floats:
        """What each of those gains."""
        return np.asarray(self.score[self.index != 0] - 1)


def score_case(case: Case, declared: DeclaredAxes) -> Scores:
    """Only variants that were measured on all of base's runtime workloads count."""
    by_part, approximate = weights(case, declared)
    ratios = tuple(part.ratios for part in case.parts)
    complete = np.all([~np.isnan(part).any(axis=1) for part in ratios], axis=0)
    index = np.flatnonzero(complete)
    chosen = [part[index] for part in ratios]
    total = sum((part @ weight for part, weight in zip(chosen, by_part, strict=True)), np.zeros(1))
    score = np.broadcast_to(total, index.shape)
    order = sorted(range(len(index)), key=lambda i: (-score[i], case.variants[index[i]]))
    return Scores(
        case=case,
        index=index[order],
        score=score[order],
        minimum=np.min([part.min(axis=1) for part in chosen], axis=0)[order],
        mean=np.mean([part.mean(axis=1) for part in chosen], axis=0)[order],
        maximum=np.max([part.max(axis=1) for part in chosen], axis=0)[order],
        ratios=ratios,
        weights=by_part,
        approximate=approximate,
        incomplete=int((~complete).sum()),
        noise=noise_of(case, by_part),
        repeats=np.min([part.repeats.min(axis=1) for part in case.parts], axis=0),
    )
