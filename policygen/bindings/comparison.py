"""Compares benchmark sources with the bindings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policygen.bindings.load import Bound, axis_values, is_tested, types
from policygen.bindings.words import words
from policygen.model.audits import BenchCheck, BenchDifference, Kind, NotCompared
from policygen.model.benchmarks import Axis, Benchmark, ParameterRange, SubBenchmark
from policygen.model.bindings import BenchmarkBinding
from policygen.model.trees import numbers

ALL = "parameters"
AXES = "axes"
MARK = "{ct}"
"""What follows the name of a compile-time axis; bindings leave it out."""


def nearest(cub: str | None, known: Iterable[str]) -> str:
    """The version to compare with: the benchmarks' own if it is tested, else the next that is.

    The newest of the known versions stands for one that is not told, or too new.
    """
    if cub is not None and is_tested(cub):
        return cub
    since = types().tested.since
    if cub is not None and since is not None and numbers(cub) < numbers(since):
        return ".".join(map(str, (*numbers(since), 0, 0)[:3]))
    return max(filter(is_tested, known), key=numbers)


def check(
    bound: Iterable[Bound], benchmarks: Sequence[Benchmark], cub: str | None, version: str
) -> BenchCheck:
    """All differences; `version` is the one whose bindings `bound` is."""
    of = {one.name: one for algorithm in bound for one in algorithm.benchmarks}
    ours = [one for one in benchmarks if one.name.startswith(words().benchmarks.prefix)]
    compared = [one for one in ours if one.parameters or one.name in of]
    compared.sort(key=lambda one: (one.name, one.source))
    differences = [compare(one, of.get(one.name), version) for one in compared]
    return BenchCheck(
        cub=cub,
        tested=cub is not None and is_tested(cub),
        version=version,
        compared=len(compared),
        differing=sum(map(bool, differences)),
        unbound=sum(one.name not in of for one in compared),
        untuned=len(ours) - len(compared),
        others=len(benchmarks) - len(ours),
        differences=tuple(d for found in differences for d in found),
        not_compared=tuple(
            open_part for one in compared if one.name in of for open_part in not_compared(one)
        ),
    )


def compare(
    one: Benchmark, binding: BenchmarkBinding | None, version: str
) -> tuple[BenchDifference, ...]:
    """What one benchmark has otherwise than its binding; sub-benchmarks repeat their axes."""
    if binding is None:
        found = [f"{p.label}={_range(p)}" for p in one.parameters]
        return (_difference(one, "unbound benchmark", ALL, found=found),)
    values = {axis: axis_values(binding, axis, version) for axis in binding.axes}
    differences = [*_parameters(one, binding)]
    for sub in one.subbenches:
        differences += _axes(one, sub, binding, values)
    return tuple(dict.fromkeys(differences))


def not_compared(one: Benchmark) -> Iterator[NotCompared]:
    """The axes, or values of an axis, that the source alone does not tell."""
    if not one.subbenches:
        yield NotCompared(benchmark=one.name, source=one.source, what=AXES)
    axes = [axis for sub in one.subbenches for axis in sub.axes if axis.compile_time]
    for name in dict.fromkeys(_plain(axis) for axis in axes if not axis.complete):
        yield NotCompared(benchmark=one.name, source=one.source, what=name)


def _parameters(one: Benchmark, binding: BenchmarkBinding) -> Iterator[BenchDifference]:
    has = {p.label: _range(p) for p in one.parameters}
    knows = binding.parameters
    for label, span in has.items():
        if label not in knows:
            yield _difference(one, "unbound parameter", label, found=[span])
        elif knows[label] != span:
            yield _difference(one, "range", label, [knows[label]], [span])
    for label, span in knows.items():
        if label not in has:
            yield _difference(one, "missing parameter", label, [span])
    # The order of those that both have; what only one has is told above.
    ours, theirs = [p for p in knows if p in has], [p for p in has if p in knows]
    if ours != theirs:
        yield _difference(one, "order", ALL, ours, theirs)


def _axes(
    one: Benchmark,
    sub: SubBenchmark,
    binding: BenchmarkBinding,
    values: Mapping[str, tuple[str, ...]],
) -> Iterator[BenchDifference]:
    """Their order, and that of values, decides nothing; an incomplete axis counts by its name."""
    # Names that a benchmark leaves to NVBench have no mark.
    types = [axis for axis in sub.axes if axis.compile_time or axis.kind == "type"]
    has = {_plain(axis): axis for axis in types}
    for name, old in binding.renamed.items():
        if name not in has and old in has and old not in values:
            has[name] = has.pop(old)
    for name, axis in has.items():
        if name not in values:
            if name not in binding.ignored:
                yield _difference(one, "unbound axis", name, found=axis.values)
        elif axis.complete and set(axis.values) != set(values[name]):
            yield _difference(one, "axis values", name, values[name], axis.values)
    for name in values:
        if name not in has and name not in binding.ignored:
            yield _difference(one, "missing axis", name, values[name])


def _difference(
    one: Benchmark,
    kind: Kind,
    what: str,
    binding: Sequence[str] = (),
    found: Sequence[str] = (),
) -> BenchDifference:
    return BenchDifference(
        benchmark=one.name,
        source=one.source,
        kind=kind,
        what=what,
        binding=tuple(binding),
        found=tuple(found),
    )


def _range(parameter: ParameterRange) -> str:
    return f"{parameter.start}:{parameter.end}:{parameter.step}"


def _plain(axis: Axis) -> str:
    return axis.name.replace(MARK, "")
