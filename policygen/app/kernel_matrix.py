"""`policygen db matrix`: strategies of a kernel against sizes, of what was measured of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev

from policygen.app.filters import EVERYTHING, Filter
from policygen.bindings.own_kernels import RUNTIME
from policygen.errors import InputError
from policygen.gpu.statistics import student
from policygen.model.measured import (
    KernelMatrix,
    KernelUse,
    MatrixCell,
    MatrixVerdict,
    StrategyMatrix,
)
from policygen.model.own_workload import STRATEGY
from policygen.model.results import Interval
from policygen.model.workload import BASE, parse_label
from policygen.results.database import Database, expand, open_database
from policygen.results.imported import KernelFacts, KernelLaunch, kernel_facts
from policygen.results.own_tables import ROWS, SESSIONS

Times = dict[int, list[float]]
"""By session the medians of its processes, in their order."""


def strategy_matrix(
    files: Sequence[str], where: Filter = EVERYTHING, by: str | None = None
) -> StrategyMatrix:
    """Compares the values of a parameter as sets: at each size the best variant of each value."""
    paths = expand(files)
    kernels: list[KernelMatrix] = []
    for path in paths:
        with open_database(path) as database:
            kernels += _of_database(database, where, by)
    if not kernels:
        raise InputError(
            f"nothing was measured of a kernel of one's own in {', '.join(map(str, paths))}",
            "policygen measure --workload kernel.toml --all --db FILE measures all its variants.",
        )
    return StrategyMatrix(databases=tuple(map(str, paths)), kernels=tuple(kernels))


def _of_database(database: Database, where: Filter, by: str | None) -> Iterator[KernelMatrix]:
    facts = kernel_facts(database)
    if not facts.starts:
        return
    for (kernel, gpu), measured in _measured(database, facts).items():
        if where.pattern.match(kernel):
            yield _Kernel(kernel, gpu, measured, facts).matrix(by)


Spot = tuple[str, str]
"""A class of sizes, and a runtime workload as tables have it."""
Measured = dict[tuple[Spot, str], Times]
"""By runtime workload and variant."""


def _measured(database: Database, facts: KernelFacts) -> dict[tuple[str, str], Measured]:
    """By kernel and GPU the times of all processes."""
    found: dict[tuple[str, str], Measured] = {}
    rows = database.connection.execute(
        f"SELECT r.algorithm, s.gpu, r.workload, r.variant, r.session, r.center FROM {ROWS} AS r"  # noqa: S608
        f" JOIN {SESSIONS} AS s ON s.id = r.session ORDER BY r.rowid"
    )
    for algorithm, gpu, workload, variant, session, center in rows:
        texts = all(isinstance(one, str) for one in (gpu, workload, variant))
        numbers = isinstance(center, float) and isinstance(session, int)
        if algorithm in facts.starts and texts and numbers and isfinite(center) and center > 0:
            lot = found.setdefault((facts.starts[algorithm][0], gpu), {})
            times = lot.setdefault(((algorithm, workload), variant), {})
            times.setdefault(session, []).append(center)
    return found


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What was measured of a kernel on a GPU."""

    name: str
    gpu: str
    measured: Measured
    facts: KernelFacts

    @property
    def start(self) -> str:
        """The variant that base is: the same for all classes of sizes."""
        ((algorithm, _), _) = next(iter(self.measured))
        return self.facts.starts[algorithm][1]

    def words(self, parameter: str) -> Mapping[int, str]:
        """What the numbers of a parameter stand for."""
        ((algorithm, _), _) = next(iter(self.measured))
        return self.facts.words.get((algorithm, parameter), {})

    def matrix(self, by: str | None) -> KernelMatrix:
        """The best of each strategy at each size."""
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
        """The strategies, else a parameter whose values are names, else the first one."""
        known = list(parse_label(self.start) or {})
        named = [name for name in known if self.words(name)]
        return STRATEGY if STRATEGY in known else (named or known or [BASE])[0]

    def _value(self, label: str, parameter: str) -> int:
        found = parse_label(self.start if label == BASE else label) or {}
        if parameter not in found:
            raise InputError(
                f"{self.name} has no parameter {parameter}",
                f"It has: {', '.join(parse_label(self.start) or {})}",
            )
        return found[parameter]

    def _cells(self, size: Spot, parameter: str, names: Mapping[int, str]) -> Iterator[MatrixCell]:
        lots: dict[int, dict[str, Times]] = {}
        for (spot, label), times in self.measured.items():
            if spot == size:
                lots.setdefault(self._value(label, parameter), {})[label] = times
        best = {value: min(lot, key=lambda one: _mean(lot[one])) for value, lot in lots.items()}
        first = min(best, key=lambda value: _mean(lots[value][best[value]]))
        winner = lots[first][best[first]]
        for value, name in names.items():
            if value in best:
                label = best[value]
                yield self._cell(size, name, label, lots[value], winner, is_best=value == first)

    def _cell(
        self,
        size: Spot,
        name: str,
        label: str,
        lot: Mapping[str, Times],
        winner: Times,
        *,
        is_best: bool,
    ) -> MatrixCell:
        times = lot[label]
        seconds = _mean(times)
        ratios = list(_beside(winner, times))
        spread = _interval(ratios)
        verdict: MatrixVerdict = "best"
        if not is_best:
            verdict = "not known" if spread is None else "slower" if spread.high < 1 else "close"
        launch = self.facts.launches.get((self.gpu, *size, label))
        bandwidth = launch.traffic / seconds if launch and launch.traffic else None
        peak = self.facts.peaks.get(self.gpu)
        return MatrixCell(
            strategy=name,
            size=_size(size),
            variant=self.start if label == BASE else label,
            tried=len(lot),
            seconds=seconds,
            interval=_interval([one for all_of in times.values() for one in all_of]),
            ratio=fmean(ratios) if ratios else _mean(winner) / seconds,
            ratio_interval=spread,
            verdict=verdict,
            bandwidth=bandwidth,
            share=bandwidth / peak if bandwidth and peak else None,
            use=launch and _use(launch),
        )


def _axes(workload: str) -> dict[str, str]:
    """The runtime axes of a workload as tables have it; those of compile time are classes."""
    try:
        found = json.loads(workload)
    except (ValueError, RecursionError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {str(axis): str(value) for axis, value in known if not str(axis).endswith("{ct}")}


def _elements(spot: Spot) -> tuple[float, Spot]:
    text = _axes(spot[1]).get(RUNTIME, "")
    return (float(text) if text.isdigit() else 0.0, spot)


def _size(spot: Spot) -> str:
    """`10,000,000`, or the axes in words where there are several."""
    found = _axes(spot[1])
    text = found.get(RUNTIME, "")
    if len(found) == 1 and text.isdigit():
        return f"{int(text):,}"
    return " ".join(f"{axis}={value}" for axis, value in found.items())


def _use(launch: KernelLaunch) -> KernelUse:
    return KernelUse(
        registers=launch.registers,
        spilled=launch.spilled,
        shared=launch.shared,
        block=launch.block,
        grid=launch.grid,
        occupancy=launch.occupancy,
        achieved=launch.achieved,
    )


def _mean(times: Times) -> float:
    return fmean(one for lot in times.values() for one in lot)


def _beside(winner: Times, other: Times) -> Iterator[float]:
    """The winner's time over another's, in the same processes."""
    for session, lot in other.items():
        yield from (mine / own for mine, own in zip(winner.get(session, ()), lot, strict=False))


def _interval(values: Sequence[float]) -> Interval | None:
    if len(values) < 2:
        return None
    middle, half = fmean(values), student(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Interval(low=middle - half, high=middle + half)
