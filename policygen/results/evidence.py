"""What databases say of what was written: scores, and a ratio for each runtime workload."""

from collections.abc import Sequence
from pathlib import Path

from policygen.model.labels import BASE, parse_label
from policygen.model.results import Measured, PointRatio, Rules, ScoredVariant
from policygen.results.confidence import SampleReader
from policygen.results.declared import DeclaredAxes
from policygen.results.decoder import Decoder
from policygen.results.score import Scores, score_case
from policygen.results.together import find_case, only, places
from policygen.results.top import Warnings, open_cases, scored_variant

Proof = tuple[ScoredVariant, tuple[PointRatio, ...]]


def evidence(
    paths: Sequence[Path],
    wanted: Sequence[tuple[Measured, str]],
    rules: Rules,
    declared: DeclaredAxes | None = None,
) -> list[Proof | None]:
    """For each measured workload and label the scores; none where it was not measured whole."""
    if not wanted:
        return []
    warnings = Warnings()  # the ranking told them
    found: list[Proof | None] = []
    with (
        Decoder() as decoder,
        open_cases(paths, warnings, only([one for one, _ in wanted])) as cases,
    ):
        decoder.start()
        for measured, label in wanted:
            scores = score_case(find_case(cases, measured), declared or {})
            parameters = parse_label(label)
            position = places(scores).get(frozenset((parameters or {}).items()))
            if position is None:
                found.append(None)
                continue
            reader = SampleReader(scores.case, decoder, warnings.add)
            scored = scored_variant(scores, position, rules, reader)
            found.append((scored, _runtime(scores, int(scores.index[position]))))
    return found


def variants_of(paths: Sequence[Path], wanted: Sequence[Measured]) -> list[tuple[str, ...]]:
    """The labels of all variants that were measured for some workloads."""
    with open_cases(paths, Warnings(), only(wanted)) as cases:
        found = [find_case(cases, one).variants for one in wanted]
    return [tuple(label for label in labels if label != BASE) for labels in found]


def _runtime(scores: Scores, variant: int) -> tuple[PointRatio, ...]:
    return tuple(
        PointRatio(
            subbench=part.table.subbench,
            point=dict(zip(part.table.rt_axes, point, strict=True)),
            weight=float(scores.weights[index][column]),
            ratio=float(scores.ratios[index][variant, column]),
        )
        for index, part in enumerate(scores.case.parts)
        for column, point in enumerate(part.points)
    )
