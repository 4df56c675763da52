"""Compares benchmark sources with the bindings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from policygen.bindings.load import Bound, axis_values, is_tested, types
from policygen.bindings.words import words
from policygen.model.audits import BenchCheck, BenchDifference, Kind, NotCompared
from policygen.model.benchmarks import Benchmark, ParameterRange, SubBenchmark
from policygen.model.bindings import BenchmarkBinding
from policygen.model.trees import BoundVersion, numbers
from policygen.model.workload import axis_name

ALL = "parameters"
AXES = "axes"


def nearest(cub: str | None, versions: Iterable[str]) -> str:
    """Returns the benchmarks' own version if it is tested, else the next tested one.

    For an unknown or too new version, this is the newest tested version.
    """
    if cub is not None and is_tested(cub):
        return cub
    since = types().tested.since
    if cub is not None and since is not None and numbers(cub) < numbers(since):
        return ".".join(map(str, (*numbers(since), 0, 0)[:3]))
    return max(filter(is_tested, versions), key=numbers)


def check(
    bound: Iterable[Bound], benchmarks: Sequence[Benchmark], cub: str | None, version: str
) -> BenchCheck:
    """Lists all differences; `bound` holds the bindings of `version`."""
    binding_by_name = {
        binding.name: binding for algorithm in bound for binding in algorithm.benchmarks
    }
    cub_benchmarks = [
        benchmark
        for benchmark in benchmarks
        if benchmark.name.startswith(words().benchmarks.prefix)
    ]
    compared = [
        benchmark
        for benchmark in cub_benchmarks
        if benchmark.parameters or benchmark.name in binding_by_name
    ]
    compared.sort(key=lambda benchmark: (benchmark.name, benchmark.source))
    differences = [
        compare(benchmark, binding_by_name.get(benchmark.name), version) for benchmark in compared
    ]
    return BenchCheck(
        cub=cub,
        tested=cub is not None and is_tested(cub),
        version=version,
        compared=len(compared),
        differing=sum(map(bool, differences)),
        unbound=sum(benchmark.name not in binding_by_name for benchmark in compared),
        untuned=len(cub_benchmarks) - len(compared),
        others=len(benchmarks) - len(cub_benchmarks),
        differences=tuple(chain.from_iterable(differences)),
        not_compared=tuple(
            part
            for benchmark in compared
            if benchmark.name in binding_by_name
            for part in not_compared(benchmark)
        ),
    )


def compare(
    benchmark: Benchmark, binding: BenchmarkBinding | None, version: str
) -> tuple[BenchDifference, ...]:
    """Lists where a benchmark differs from its binding, without duplicates."""
    if binding is None:
        parameters = [
            f"{parameter.label}={_range(parameter)}" for parameter in benchmark.parameters
        ]
        return (_difference(benchmark, "unbound benchmark", ALL, found=parameters),)
    values = {axis: axis_values(binding, axis, BoundVersion(version)) for axis in binding.axes}
    differences = [*_parameters(benchmark, binding)]
    for sub in benchmark.subbenches:
        differences += _axes(benchmark, sub, binding, values)
    return tuple(dict.fromkeys(differences))


def not_compared(benchmark: Benchmark) -> Iterator[NotCompared]:
    """Yields the axes, or values of an axis, that cannot be read from the source alone."""
    if not benchmark.subbenches:
        yield NotCompared(benchmark=benchmark.name, source=benchmark.source, what=AXES)
    axes = [axis for sub in benchmark.subbenches for axis in sub.axes if axis.compile_time]
    for name in dict.fromkeys(axis_name(axis.name) for axis in axes if not axis.complete):
        yield NotCompared(benchmark=benchmark.name, source=benchmark.source, what=name)


def _parameters(benchmark: Benchmark, binding: BenchmarkBinding) -> Iterator[BenchDifference]:
    source_ranges = {parameter.label: _range(parameter) for parameter in benchmark.parameters}
    bound_ranges = binding.parameters
    for label, span in source_ranges.items():
        if label not in bound_ranges:
            yield _difference(benchmark, "unbound parameter", label, found=[span])
        elif bound_ranges[label] != span:
            yield _difference(benchmark, "range", label, [bound_ranges[label]], [span])
    for label, span in bound_ranges.items():
        if label not in source_ranges:
            yield _difference(benchmark, "missing parameter", label, [span])
    # Compare the order of the common parameters only; the others are reported above.
    bound_order = [label for label in bound_ranges if label in source_ranges]
    source_order = [label for label in source_ranges if label in bound_ranges]
    if bound_order != source_order:
        yield _difference(benchmark, "order", ALL, bound_order, source_order)


def _axes(
    benchmark: Benchmark,
    sub: SubBenchmark,
    binding: BenchmarkBinding,
    values: Mapping[str, tuple[str, ...]],
) -> Iterator[BenchDifference]:
    """The order of axes and values is ignored; an incomplete axis is compared by name only."""
    # Axes whose names NVBench generates have no mark.
    type_axes = [axis for axis in sub.axes if axis.compile_time or axis.kind == "type"]
    axis_by_name = {axis_name(axis.name): axis for axis in type_axes}
    for name, old in binding.renamed.items():
        if name not in axis_by_name and old in axis_by_name and old not in values:
            axis_by_name[name] = axis_by_name.pop(old)
    for name, axis in axis_by_name.items():
        if name not in values:
            if name not in binding.ignored:
                yield _difference(benchmark, "unbound axis", name, found=axis.values)
        elif axis.complete and set(axis.values) != set(values[name]):
            yield _difference(benchmark, "axis values", name, values[name], axis.values)
    for name in values:
        if name not in axis_by_name and name not in binding.ignored:
            yield _difference(benchmark, "missing axis", name, values[name])


def _difference(
    benchmark: Benchmark,
    kind: Kind,
    what: str,
    binding: Sequence[str] = (),
    found: Sequence[str] = (),
) -> BenchDifference:
    return BenchDifference(
        benchmark=benchmark.name,
        source=benchmark.source,
        kind=kind,
        what=what,
        binding=tuple(binding),
        found=tuple(found),
    )


def _range(parameter: ParameterRange) -> str:
    return f"{parameter.start}:{parameter.end}:{parameter.step}"
