"""Configurations on sizes: all that was measured of each, joined."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from policygen.results.samples import Samples
from policygen.results.tuners.numbered import NumberedSpace
from policygen.results.tuners.tuned import (
    MOST_SAMPLES,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
)

BaseFrom = Literal["option", "default", "tree"]
"""`--base`, a run of what the library itself has, or the entry that is in a tree now."""


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """A configuration on a size: measured, or not."""

    label: str
    """`base` for what is in use now."""
    size: str
    center: float
    """Seconds; NaN where it was not measured."""
    samples: Samples | None
    failure: TunedFailure | None
    compiling: float
    running: float
    repeats: int
    """How many measurements are joined in it."""
    deviation: float | None = None
    """Seconds that samples which were not kept were apart, where a file says that."""
    work: float | None = None
    """How many items went through what was timed, where files say it."""


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """All that was measured of a kernel."""

    algorithm: str
    workload: Mapping[str, str]
    """Its axes of compile time, `T{ct}`."""
    gpu: str
    base: str
    """The label of base; `base` where nobody says which one it is."""
    space: NumberedSpace
    points: tuple[TunedPoint, ...]
    files: tuple[TunedFile, ...]
    sizes: Mapping[int, str]
    """By the place of a file."""
    warmup: int
    copies: int
    """Measurements that are copies of others, and left out."""
    base_from: BaseFrom = "option"
    """Who says which one base is."""


def join_points(
    sized: Iterable[tuple[str, TunedFile]], label: Callable[[TunedEntry], str], warmup: int
) -> tuple[tuple[TunedPoint, ...], int]:
    """What was measured again is joined; and how many copies were left out.

    A copy of a measurement is none: the same times at the same moment.
    """
    found: dict[tuple[str, str], list[TunedEntry]] = {}
    known: set[tuple[object, ...]] = set()
    copies = 0
    for size, one in sized:
        for entry in one.entries:
            key = size, label(entry)
            # Failures have no times, and are all alike.
            if (same := (*key, *entry.identity)) in known:
                copies += 1
                continue
            known.add(same)
            found.setdefault(key, []).append(entry)
    points = (_point(name, size, entries, warmup) for (size, name), entries in found.items())
    return tuple(points), copies


def _point(label: str, size: str, entries: Sequence[TunedEntry], warmup: int) -> TunedPoint:
    """All samples of a configuration; without any, what the last measurement says of itself.

    So does a measurement alone that tells how far what it has not kept is apart.
    """
    times = [one.outcome for one in entries if isinstance(one.outcome, TunedTimes)]
    joined = [sample for one in times for sample in _warm(one.samples, warmup)]
    failures = [one.outcome for one in entries if isinstance(one.outcome, TunedFailure)]
    works = [one.work for one in entries if one.work is not None]
    samples = None
    center, deviation = float("nan"), None
    if len(times) == 1 and times[0].mean is not None and times[0].deviation is not None:
        center, deviation = times[0].mean, times[0].deviation
    elif joined:
        samples = np.asarray(joined[:MOST_SAMPLES], np.float64)
        center = float(np.median(samples.astype(np.float32)))
    elif last := next((one for one in reversed(times) if one.mean is not None), None):
        center, deviation = last.mean or center, last.deviation
    return TunedPoint(
        label=label,
        size=size,
        center=center,
        samples=samples,
        failure=None if times else failures[-1],
        compiling=sum(one.compiling for one in entries),
        running=sum(one.running for one in entries),
        repeats=len(times),
        deviation=deviation,
        work=median(works) if works else None,
    )


def _warm(samples: Sequence[float], warmup: int) -> Sequence[float]:
    """Those after the first ones, where there are more.

    No tuner of these launches a kernel for nothing before it takes times, as NVBench does: the
    first launch loads the code and takes several times as long.
    """
    return samples[warmup:] if len(samples) > warmup else samples
