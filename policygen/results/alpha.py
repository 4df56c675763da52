"""CCCL's `--alpha`: only runtime workloads where samples differ from base's count."""

from dataclasses import replace

import numpy as np

from policygen.results.case import Case, Part
from policygen.results.confidence import SampleReader
from policygen.results.load import Floats, Integers
from policygen.results.mannwhitney import p_value

Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


def distinct(case: Case, reader: SampleReader, alpha: float) -> Case | None:
    """A variant stays when it differs from base wherever any variant does; none when none does."""
    complete = np.all([(part.repeats > 0).all(axis=1) for part in case.parts], axis=0)
    differs = [_differences(part, reader, alpha, np.flatnonzero(complete)) for part in case.parts]
    parts = tuple(
        _only(part, flags) for part, flags in zip(case.parts, differs, strict=True) if flags.any()
    )
    if not parts:
        return None
    return replace(case, parts=parts)


def _differences(part: Part, reader: SampleReader, alpha: float, variants: Integers) -> Flags:
    found: Flags = np.zeros((part.centers.shape[1], len(part.points)), np.bool_)
    for run in range(len(part.centers)):
        base = reader.base(part, run)
        for variant in variants[variants > 0]:
            for column, samples in enumerate(reader.read(part, variant, run)):
                reference = base[column]
                if samples is not None and reference is not None:
                    found[variant, column] |= p_value(reference, samples) < alpha
    return found


def _only(part: Part, differs: Flags) -> Part:
    kept = np.flatnonzero(differs.any(axis=0))
    centers: Floats = part.centers.copy()
    centers[:, 1:][:, ~differs[1:]] = np.nan
    points = tuple(part.points[column] for column in kept)
    return replace(part, points=points, centers=centers[:, :, kept], rowids=part.rowids[:, :, kept])
