"""What a library's bindings and its tree say of results that its own tools wrote."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from policygen.app.filters import EVERYTHING
from policygen.app.resolve import resolve_workloads
from policygen.app.session import open_session
from policygen.bindings.load import bindings, library_types
from policygen.model.bindings import BenchmarkBinding, FamilyBinding
from policygen.model.cub import Cub
from policygen.model.tuning import spell
from policygen.model.workload import Point, point_of
from policygen.results.tuners.suite import LibraryParameters
from policygen.results.tuners.suite_base import Current


def library_parameters(benchmark: str) -> LibraryParameters:
    """How parameters of a benchmark are called, and the numbers of their words."""
    found = _bound(benchmark)
    if found is None:
        return LibraryParameters()
    one, (family, *_) = found
    rules = family.members.values()
    words = {r.parameter: r.choices for r in rules if r.parameter and r.choices}
    return LibraryParameters({other: name for name, other in one.called.items()}, words)


def library_type_names(library: str) -> dict[str, str]:
    """What some results of a library call a type → the value of axes that it is."""
    return {other: one.name for one in library_types(library).types for other in one.also}


def tree_entries(cub: str) -> tuple[Cub, Current]:
    """A tree, and the values by parameter that it has for workloads."""
    session = open_session(cub)

    @cache
    def known(arch: str) -> Mapping[Point, Mapping[str, str]]:
        document, _ = resolve_workloads(session, replace(EVERYTHING, archs=(arch,)))
        return {
            row.point: {name: spell(value) for name, value in row.values.items()}
            for row in document.rows
        }

    def current(benchmark: str, workload: Mapping[str, str], arch: str) -> Mapping[str, str] | None:
        found = _bound(benchmark)
        if found is None:
            return None
        one, families = found
        # Which value of an axis that no key depends on is asked for does not matter.
        given = {**{axis: one.axes[axis][0] for axis in one.ignored}, **workload}
        # In the order of the benchmark: files have them in that of the alphabet.
        axes = {axis: given[axis] for axis in one.axes if axis in given}
        entry = known(arch).get(point_of(benchmark, axes))
        if entry is None:
            return None
        rules = max((f.members for f in families), key=lambda one: _fits(entry, one))
        return {r.parameter: entry[m] for m, r in rules.items() if r.parameter and m in entry}

    return session.cub, current


def _fits(entry: Mapping[str, str], members: Mapping[str, object]) -> tuple[bool, int]:
    """How well an entry is of the form that members are of: forms have some names in common."""
    return members.keys() <= entry.keys(), len(members.keys() & entry.keys())


def _bound(benchmark: str) -> tuple[BenchmarkBinding, list[FamilyBinding]] | None:
    """The newest that is bound, and what its parameters mean in each form of its configs."""
    for binding in bindings():
        for one in reversed(binding.benchmarks):
            if one.name == benchmark:
                families = [f for f in reversed(binding.families) if f.site == one.site]
                return (one, families) if families else None
    return None
