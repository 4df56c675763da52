"""How a workload runs: its binding, its runtime workloads, and what they are as numbers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

from policygen.bindings.load import Bound, bound
from policygen.errors import InputError
from policygen.model.bindings import BenchmarkBinding, Site
from policygen.model.cub import Cub
from policygen.model.run_binding import RunBinding
from policygen.model.workload import in_words
from policygen.proof.sites import sites_of
from policygen.proof.unit import Workload
from policygen.results.known_axes import axes_of

POWER = "[pow2]"
"""Behind an axis whose values are exponents: `Elements{io}[pow2]`."""
THOUSANDTHS = 1000
_DECORATION = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\W")


@dataclass(frozen=True, slots=True)
class RuntimePoint:
    """A runtime workload: as databases name it, and as a unit takes it."""

    values: Mapping[str, str]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """A workload of a benchmark, and how it runs in one tree."""

    cub: Cub
    site: Site
    workload: Workload
    binding: RunBinding
    axes: Mapping[str, tuple[str, ...]]
    """Runtime axis → its declared values."""

    @property
    def benchmark(self) -> BenchmarkBinding:
        """The benchmark."""
        assert isinstance(self.workload.call, BenchmarkBinding)
        return self.workload.call

    @property
    def numbers(self) -> tuple[str, ...]:
        """What units call the runtime axes."""
        return tuple(_DECORATION.sub("", axis) for axis in self.axes)

    @property
    def points(self) -> tuple[RuntimePoint, ...]:
        """All runtime workloads."""
        return tuple(
            RuntimePoint(
                dict(zip(self.axes, values, strict=True)),
                tuple(map(self._number, self.axes, values)),
            )
            for values in product(*self.axes.values())
        )

    def _number(self, axis: str, value: str) -> int:
        words = self.binding.words.get(axis)
        if words is None:
            return _number(axis, value)
        if value not in words:
            raise InputError(f"the value {value!r} of {axis} is none of {', '.join(words)}")
        return words.index(value)


def runs_of(cub: Cub, workload: Workload) -> tuple[WorkloadRun, ...]:
    """How a workload runs, by sub-benchmark; refused where no binding says it."""
    benchmark = workload.call
    assert isinstance(benchmark, BenchmarkBinding)
    declared = axes_of(cub.version)
    found = tuple(
        WorkloadRun(
            cub, site, workload, run.of(one), run.axes or _declared(declared, workload, one)
        )
        for site, run in _bound(cub, benchmark)
        if _holds(run, workload)
        for one in run.every_subbench
    )
    if not found:
        name = in_words(benchmark.name, dict(workload.values))
        raise InputError(
            f"{name} cannot be measured: {benchmark.unmeasured or 'no binding says how it runs'}",
            "A [[run]] table of schemas/bindings does: docs/bindings.md has its keys.",
        )
    return found


def _bound(cub: Cub, benchmark: BenchmarkBinding) -> Iterator[tuple[Site, RunBinding]]:
    for algorithm in bound(cub.bindings):
        if benchmark in algorithm.benchmarks:
            site = _site(algorithm, cub, benchmark)
            yield from ((site, run) for run in algorithm.runs if benchmark.name in run.benchmarks)


def _site(algorithm: Bound, cub: Cub, benchmark: BenchmarkBinding) -> Site:
    return next(one for one in sites_of(algorithm, cub.dialect) if one.name == benchmark.site)


def _holds(run: RunBinding, workload: Workload) -> bool:
    return all(workload.values.get(axis) in values for axis, values in run.workload.items())


def _declared(
    declared: Mapping[tuple[str, str, str], tuple[str, ...]], workload: Workload, subbench: str
) -> dict[str, tuple[str, ...]]:
    assert isinstance(workload.call, BenchmarkBinding)
    benchmark = workload.call.name
    # Types that the benchmark gives no names look like runtime axes: `T` of cub.bench.find_if.
    found = {
        axis: values
        for (name, bench, axis), values in declared.items()
        if (name, bench) == (benchmark, subbench) and axis not in workload.values
    }
    if not found:
        raise InputError(
            f"{benchmark} cannot be measured: its runtime workloads are not known",
            "schemas/axes.toml has the declared values of runtime axes.",
        )
    return found


def _number(axis: str, value: str) -> int:
    """A value as units take it: 2^16, a share in thousandths, or as it stands."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise InputError(f"the value {value!r} of {axis} is no number") from None
    if axis.endswith(POWER):
        return 1 << int(number)
    return int(number * THOUSANDTHS) if "." in value else int(number)
