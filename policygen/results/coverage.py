"""How much of the search space was measured, workload by workload."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np

from policygen.model.bench import ParameterRange
from policygen.model.labels import BASE
from policygen.model.results import CoveredWorkload, DataWarning, DbCoverage
from policygen.results.case import Case
from policygen.results.labels import fits
from policygen.results.top import ANY, Warnings, open_cases

Spaces = Mapping[str, Sequence[ParameterRange]]


def cover(
    paths: Sequence[Path],
    spaces: Spaces,
    pattern: re.Pattern[str] = ANY,
    axes: Mapping[str, frozenset[str]] | None = None,
) -> DbCoverage:
    """Complete variants against the size of the search space; base is no variant."""
    warnings = Warnings()
    with open_cases(paths, warnings, pattern, axes) as cases:
        found = tuple(_workload(case, spaces.get(case.algorithm), warnings) for case in cases)
    return DbCoverage(workloads=found, warnings=warnings.all)


def _workload(
    case: Case, space: Sequence[ParameterRange] | None, warnings: Warnings
) -> CoveredWorkload:
    complete = np.all([(part.repeats > 0).all(axis=1) for part in case.parts], axis=0)
    measured = [v for v, done in zip(case.variants, complete, strict=True) if done and v != BASE]
    inside = measured if space is None else [v for v in measured if fits(v, space)]
    if len(inside) < len(measured):
        stranger = next(v for v in measured if v not in set(inside))
        warnings.add(
            DataWarning(
                database=" + ".join(case.files),
                table=case.algorithm,
                message=f"variants such as {stranger} do not fit the search space",
                count=len(measured) - len(inside),
            )
        )
    total = None if space is None else prod(len(p.values) for p in space)
    return CoveredWorkload(
        **case.measured,
        covered=len(inside),
        variants=total,
        share=len(inside) / total if total else None,
    )
