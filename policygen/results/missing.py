"""What a benchmark has, and base was not measured on: a reason against every variant."""

from collections.abc import Iterator
from math import prod

from policygen.results.case import Case, Part
from policygen.results.declared import DeclaredAxes
from policygen.results.known_axes import axes_of
from policygen.results.weights import known_axes

LISTED = 3


def missing_of_base(case: Case, declared: DeclaredAxes) -> tuple[str, ...]:
    """Sub-benchmarks and runtime workloads in words, each once."""
    return tuple(dict.fromkeys((*_subbenches(case, declared), *_points(case))))


def in_words(missing: tuple[str, ...]) -> str:
    """Why nothing is chosen."""
    more = f" and {len(missing) - LISTED:,} more" if len(missing) > LISTED else ""
    return f"base was not measured in {'; '.join(missing[:LISTED])}{more}"


def declared_points(case: Case, declared: DeclaredAxes) -> int | None:
    """How many runtime workloads the declared axes make; none where they are not known."""
    known = {**axes_of(case.key.cccl), **known_axes(case, declared)}
    counts = [_declared(case, part, known) for part in case.parts]
    return sum(c for c in counts if c is not None) if all(counts) else None


def _declared(case: Case, part: Part, known: DeclaredAxes) -> int | None:
    axes = [(case.algorithm, part.table.subbench, axis) for axis in part.table.rt_axes]
    return prod(len(known[axis]) for axis in axes) if all(known.get(a) for a in axes) else None


def _subbenches(case: Case, declared: DeclaredAxes) -> Iterator[str]:
    """Those that have rows without base, those that are registered, and those of the source."""
    have = {part.table.subbench for part in case.parts}
    yield from case.without_base
    for database in case.databases:
        for table in database.tables:
            same = table.algorithm == case.algorithm and set(table.ct_axes) == set(case.workload)
            if same and table.subbench not in have:
                yield table.name
        for algorithm, subbench in database.unmeasured:
            if algorithm == case.algorithm and subbench not in have:
                yield f"{algorithm}.{subbench}"
    benchmark = {subbench for name, subbench, _ in axes_of(case.key.cccl) if name == case.algorithm}
    named = {subbench for name, subbench, _ in declared if name == case.algorithm}
    # Sub-benchmarks of other names are those of another version.
    for subbench in sorted((named | benchmark if have <= benchmark else named) - have):
        yield f"{case.algorithm}.{subbench}"


def _points(case: Case) -> Iterator[str]:
    """Runtime workloads that variants were measured on."""
    for part in case.parts:
        prefix = f"{part.table.subbench}: " if len(case.parts) > 1 else ""
        for point in part.without_base:
            named = zip(part.table.rt_axes, point, strict=True)
            yield prefix + ", ".join(f"{axis}={value}" for axis, value in named)
