"""Compares strategies of a user's kernel across sizes."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

from policygen.bindings.own_kernels import RUNTIME
from policygen.errors import InputError
from policygen.gpu.statistics import interval_of
from policygen.model.measured import KernelMatrix, MatrixCell, MatrixVerdict
from policygen.model.own_workload import STRATEGY
from policygen.model.workload import BASE, parse_label
from policygen.results.database import Database
from policygen.results.imported import KernelFacts, kernel_facts
from policygen.results.own_tables import ROWS, SESSIONS

Times = dict[int, list[float]]
"""By session: the medians of its processes, in their order."""


def kernel_matrices(
    database: Database, pattern: re.Pattern[str], by: str | None
) -> Iterator[KernelMatrix]:
    """Yields a matrix for each kernel and GPU, with the best variant of each strategy."""
    facts = kernel_facts(database)
    if not facts.starts:
        return
    for (kernel, gpu), measured in _read_times(database, facts).items():
        if pattern.match(kernel):
            yield _Kernel(kernel, gpu, measured, facts).matrix(by)


Spot = tuple[str, str]
"""A size class, and a runtime workload as stored in tables."""
Measured = dict[tuple[Spot, str], Times]
"""Times by runtime workload and variant."""


def _read_times(database: Database, facts: KernelFacts) -> dict[tuple[str, str], Measured]:
    """Reads the times of all processes, by kernel and GPU."""
    times_by_kernel: dict[tuple[str, str], Measured] = {}
    rows = database.connection.execute(
        f"SELECT r.algorithm, s.gpu, r.workload, r.variant, r.session, r.center FROM {ROWS} AS r"  # noqa: S608
        f" JOIN {SESSIONS} AS s ON s.id = r.session ORDER BY r.rowid"
    )
    for algorithm, gpu, workload, variant, session, center in rows:
        texts = all(isinstance(cell, str) for cell in (gpu, workload, variant))
        numbers = isinstance(center, float) and isinstance(session, int)
        if algorithm in facts.starts and texts and numbers and isfinite(center) and center > 0:
            measured = times_by_kernel.setdefault((facts.starts[algorithm][0], gpu), {})
            times = measured.setdefault(((algorithm, workload), variant), {})
            times.setdefault(session, []).append(center)
    return times_by_kernel


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The measurements of a kernel on a GPU."""

    name: str
    gpu: str
    measured: Measured
    facts: KernelFacts

    @property
    def start(self) -> str:
        """The variant that is base, which is the same for all size classes."""
        ((algorithm, _), _) = next(iter(self.measured))
        return self.facts.starts[algorithm][1]

    def words(self, parameter: str) -> Mapping[int, str]:
        """Returns what the numbers of a parameter stand for."""
        ((algorithm, _), _) = next(iter(self.measured))
        return self.facts.words.get((algorithm, parameter), {})

    def matrix(self, by: str | None) -> KernelMatrix:
        """Builds the matrix with the best variant of each strategy at each size."""
        parameter = by or self._usual()
        sizes = sorted({spot for spot, _ in self.measured}, key=_elements)
        values = sorted({self._value(label, parameter) for _, label in self.measured})
        words = self.words(parameter)
        names = {value: words.get(value, str(value)) for value in values}
        cells = [cell for size in sizes for cell in self._cells(size, parameter, names)]
        return KernelMatrix(
            kernel=self.name,
            gpu=self.gpu,
            by=parameter,
            strategies=tuple(names.values()),
            sizes=tuple(map(_size, sizes)),
            cells=tuple(cells),
            peak=self.facts.peaks.get(self.gpu),
        )

    def _usual(self) -> str:
        """Returns the strategy parameter, or one whose values are names, or the first one."""
        parameters = list(parse_label(self.start) or {})
        worded = [name for name in parameters if self.words(name)]
        return STRATEGY if STRATEGY in parameters else (worded or parameters or [BASE])[0]

    def _value(self, label: str, parameter: str) -> int:
        values = parse_label(self.start if label == BASE else label) or {}
        if parameter not in values:
            raise InputError(
                f"{self.name} has no parameter {parameter}",
                f"It has: {', '.join(parse_label(self.start) or {})}",
            )
        return values[parameter]

    def _cells(self, size: Spot, parameter: str, names: Mapping[int, str]) -> Iterator[MatrixCell]:
        times_by_value: dict[int, dict[str, Times]] = {}
        for (spot, label), times in self.measured.items():
            if spot == size:
                times_by_value.setdefault(self._value(label, parameter), {})[label] = times
        best = {
            value: min(times_by_label, key=lambda candidate: _mean(times_by_label[candidate]))
            for value, times_by_label in times_by_value.items()
        }
        winning = min(best, key=lambda value: _mean(times_by_value[value][best[value]]))
        winner = times_by_value[winning][best[winning]]
        for value in (value for value in names if value in best):
            label, tried = best[value], times_by_value[value]
            yield self._cell(size, names[value], label, tried, winner)

    def _cell(
        self, size: Spot, name: str, label: str, tried: Mapping[str, Times], winner: Times
    ) -> MatrixCell:
        times = tried[label]
        seconds = _mean(times)
        ratios = list(_ratios(winner, times))
        spread = interval_of(ratios)
        verdict: MatrixVerdict = "best"
        if times is not winner:
            verdict = "not known" if spread is None else "slower" if spread.high < 1 else "close"
        use, traffic = self.facts.launches.get((self.gpu, *size, label), (None, 0))
        bandwidth = traffic / seconds if traffic else None
        peak = self.facts.peaks.get(self.gpu)
        return MatrixCell(
            strategy=name,
            size=_size(size),
            variant=self.start if label == BASE else label,
            tried=len(tried),
            seconds=seconds,
            interval=interval_of([sample for samples in times.values() for sample in samples]),
            ratio=fmean(ratios) if ratios else _mean(winner) / seconds,
            ratio_interval=spread,
            verdict=verdict,
            bandwidth=bandwidth,
            share=bandwidth / peak if bandwidth and peak else None,
            use=use,
        )


def _axes(workload: str) -> dict[str, str]:
    """Returns the runtime axes of a workload as stored in tables; the others are size classes."""
    try:
        axes = json.loads(workload)
    except (ValueError, RecursionError):
        return {}
    items = axes.items() if isinstance(axes, dict) else ()
    return {axis: str(value) for axis, value in items if not axis.endswith("{ct}")}


def _elements(spot: Spot) -> tuple[float, Spot]:
    text = _axes(spot[1]).get(RUNTIME, "")
    return (float(text) if text.isdigit() else 0.0, spot)


def _size(spot: Spot) -> str:
    """Formats a size as `10,000,000`, or lists the axes if there are several."""
    axes = _axes(spot[1])
    text = axes.get(RUNTIME, "")
    if len(axes) == 1 and text.isdigit():
        return f"{int(text):,}"
    return " ".join(f"{axis}={value}" for axis, value in axes.items())


def _mean(times: Times) -> float:
    return fmean(seconds for samples in times.values() for seconds in samples)


def _ratios(winner: Times, other: Times) -> Iterator[float]:
    """Yields the winner's time over another variant's, from the same processes."""
    for session, samples in other.items():
        yield from (
            winner_seconds / seconds
            for winner_seconds, seconds in zip(winner.get(session, ()), samples, strict=False)
        )
