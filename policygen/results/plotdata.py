"""The numbers behind plots: samples by runtime workload, scores over two parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policygen.errors import InputError
from policygen.model.labels import BASE, parse_label
from policygen.results.case import Case, Part
from policygen.results.confidence import SampleReader
from policygen.results.load import Point
from policygen.results.samples import Samples
from policygen.results.score import Scores


@dataclass(frozen=True, slots=True)
class PointSamples:
    """The samples of one runtime workload; `row` and `column` say which in words."""

    row: str
    column: str
    base: Samples
    variants: Mapping[str, Samples]


def point_samples(
    case: Case, variants: Sequence[str], reader: SampleReader
) -> tuple[PointSamples, ...]:
    """Samples of base and some variants, for every runtime workload that has them."""
    unknown = [name for name in variants if name not in case.variants]
    if unknown:
        raise InputError(
            f"variant {unknown[0]!r} was not measured for {case.algorithm}",
            f"Measured were, among {len(case.variants)}: {', '.join(case.variants[1:6])}.",
        )
    index = {name: case.variants.index(name) for name in variants}
    return tuple(found for part in case.parts for found in _part(case, part, index, reader))


def _part(
    case: Case, part: Part, index: Mapping[str, int], reader: SampleReader
) -> tuple[PointSamples, ...]:
    base = reader.base(part, 0)
    samples = {name: reader.read(part, variant, 0) for name, variant in index.items()}
    prefix = f"{part.table.subbench}: " if len(case.parts) > 1 else ""
    found: list[PointSamples] = []
    for column, point in enumerate(part.points):
        reference = base[column]
        mine = {n: s for n, by_point in samples.items() if (s := by_point[column]) is not None}
        if reference is not None and mine:
            row, rest = _labels(part, point)
            found.append(PointSamples(prefix + row, rest, reference, mine))
    return tuple(found)


def _labels(part: Part, point: Point) -> tuple[str, str]:
    """The size of the input down the page, all else across."""
    axes = part.table.rt_axes
    first = next((i for i, axis in enumerate(axes) if "{io}" in axis), 0)
    named = [f"{axis}={value}" for axis, value in zip(axes, point, strict=True)]
    rest = [text for i, text in enumerate(named) if i != first]
    return (named[first] if named else part.table.subbench), ", ".join(rest)


def score_cells(scores: Scores, x: str, y: str) -> Mapping[tuple[int, int], float]:
    """The best score for each pair of values of two parameters, over all others."""
    cells: dict[tuple[int, int], float] = {}
    names: set[str] = set()
    for index, score in zip(scores.index, scores.score, strict=True):
        label = scores.case.variants[index]
        values = None if label == BASE else parse_label(label)
        if values is None:
            continue
        names |= set(values)
        if x in values and y in values:
            cell = (values[x], values[y])
            cells[cell] = max(float(score), cells.get(cell, 0.0))
    if not cells:
        raise InputError(
            f"no variant has the parameters {x!r} and {y!r}",
            f"There are: {', '.join(sorted(names)) or 'none'}.",
        )
    return cells
