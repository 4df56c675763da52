"""Asks what rocPRIM selects for types on architectures, of libclang."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.model.arch import UNKNOWN
from policygen.model.marks import Marked
from policygen.model.selection import FamilyKey, Selected
from policygen.model.tuning import Value
from policygen.process import threads
from policygen.proof.compile import PHASE, attempt
from policygen.proof.host_compiler import HostCompiler
from policygen.proof.host_unit import (
    NUMBER,
    PLAIN,
    SCOPES,
    Aggregates,
    host_unit,
    shape_of,
    shapes_of,
    spots_of,
)
from policygen.proof.probe import Asked, AskedTree, filled
from policygen.proof.selection import Selection
from policygen.proof.unit import Workload
from policygen.steps import Progress, follow
from policygen.tree.manifest import shipped

ROWS = 3000
"""In one unit: a question takes a tenth of a millisecond, the headers a second."""

Spot = tuple[Workload, str]


def ask_host(
    tree: AskedTree,
    asked: Sequence[Asked],
    compiler: HostCompiler,
    *,
    progress: Progress | None = None,
) -> Selection:
    """Asks for all workloads; what is refused together is asked again site by site."""
    _check_needs(tree.includes)
    known = [one for one in asked if not one.problem]
    rows: dict[Spot, Selected] = {}
    refused = {point: one.problem for one in asked if one.problem for point in one.points}
    lots = list(filled(known, lambda one: len(one.points) * len(one.archs), ROWS))
    while lots:
        with threads() as pool:
            futures = {
                pool.submit(attempt, partial(_told, lot, tree, compiler)): lot[0].site.name
                for lot in lots
            }
            follow(futures, PHASE, progress)
            results = [future.result() for future in futures]
        again: list[list[Asked]] = []
        for lot, result in zip(lots, results, strict=True):
            if not isinstance(result, PolicygenError):
                rows |= result
            elif len(lot) > 1:
                again += [[one] for one in lot]
            else:
                refused |= {point: result for one in lot for point in one.points}
        lots = again
    errors = {str(error): error for error in refused.values() if error}
    return Selection(rows, tuple(errors.values()), {p: e for p, e in refused.items() if e})


def _check_needs(includes: Sequence[str]) -> None:
    """Refuses to compile without the headers of others that all of rocPRIM's include."""
    needs = shipped().libraries["rocprim"].needs
    if needs and not any(Path(folder, needs).is_file() for folder in includes):
        raise MissingToolError(
            needs,
            "rocPRIM's headers include it. `policygen headers fetch rocprim@5.7.1` fetches a"
            " release with it; else name a ROCm that has it: ROCM_PATH.",
        )


def _told(lot: Sequence[Asked], tree: AskedTree, compiler: HostCompiler) -> dict[Spot, Selected]:
    text = host_unit(lot, tree.version)
    answer = compiler.told(text, SCOPES, tree.includes, tree.changed)
    _check_fields(lot, answer["fields"])
    numbers = _numbers(lot, tree, compiler)
    rows: dict[Spot, Selected] = {}
    same: dict[str, tuple[dict[str, Value], int | None]] = {}
    for at, one, workload, arch in spots_of(lot):
        config, place = answer["types"].get(f"type_{at}"), answer["rows"].get(f"row_{at}")
        if not isinstance(config, list) or (place is None and not one.site.targets):
            raise _silent(workload, arch)
        copy = tree.marked.get(one.site.header)
        # Thousands of rows say the same few things.
        key = f"{id(one)} {config} {place} {numbers.get(at)} {one.site.table and arch}"
        if key not in same:
            told = _picked(config, one) if one.site.targets else _values(config, one.aggregates, "")
            values = dict(told)
            number = numbers.get(at)
            if copy is not None and one.site.table and number is not None:
                number = _of_arch(number, arch, copy)
            elif copy is not None and place is not None:
                number = _entry(one, place, copy)
            same[key] = values, number
        rows[workload, arch] = _selected(workload, *same[key], copy)
    return rows


def _silent(workload: Workload, arch: str) -> InputError:
    return InputError(f"libclang tells nothing of {workload.name} on {arch}", "Please report this.")


def _numbers(lot: Sequence[Asked], tree: AskedTree, compiler: HostCompiler) -> dict[int, int]:
    """Which entry each picker or table takes: copies of their headers give its number."""
    copies = {
        _path(one, tree): tree.marked[one.site.header].data
        for one in lot
        if _is_numbered(one, tree)
    }
    if not copies:
        return {}
    unit = host_unit(lot, tree.version, numbered=True)
    answer = compiler.told(unit, SCOPES, tree.includes, {**tree.changed, **copies})
    numbers: dict[int, int] = {}
    for at, one, workload, arch in spots_of(lot):
        if _is_numbered(one, tree):
            told = answer["types"].get(f"type_{at}")
            if not isinstance(told, list) or told[0] != (PLAIN if one.site.table else NUMBER):
                raise _silent(workload, arch)
            numbers[at] = told[1]
    return numbers


def _is_numbered(one: Asked, tree: AskedTree) -> bool:
    return (bool(one.site.targets) or one.site.table) and one.site.header in tree.marked


def _of_arch(number: int, arch: str, copy: Marked) -> int | None:
    """An entry as that of an architecture: in a table several can have the same config."""
    if not number < len(copy.entries):
        return None  # what no copy of an entry gives
    span = copy.entries[number][1].span
    alike = {f.arch: n for n, (f, entry) in enumerate(copy.entries) if entry.span == span}
    return alike.get(arch, alike.get(UNKNOWN))


def _path(one: Asked, tree: AskedTree) -> str:
    """Where the header of a site is: its copy takes the place of it."""
    paths = (Path(folder, name) for folder in tree.includes for name in one.site.includes)
    return str(next(p for p in paths if p.name == one.site.header and p.is_file()))


def _check_fields(lot: Sequence[Asked], told: Mapping[str, Sequence[str]]) -> None:
    """Refuses structs of which libclang knows other fields than were read: none is left out."""
    for number, shape in enumerate(shapes_of(lot)):
        fields = tuple(told.get(f"fields_{number}", ()))
        if fields != shape.paths:
            raise InputError(
                f"{shape.name} was read as {', '.join(shape.paths)}, and libclang says that it has"
                f" {', '.join(fields)}",
                "Please report this.",
            )


def _picked(config: Sequence[Any], one: Asked) -> Iterator[tuple[str, Value]]:
    """The fields of what a picker returns, with their values."""
    return zip(shape_of(one).paths, config[1:], strict=True)


def _selected(
    workload: Workload, values: Mapping[str, Value], number: int | None, copy: Marked | None
) -> Selected:
    """What a workload gets; the types that it asks for are its own, also where others get it."""
    if copy is None or number is None:
        return Selected(values)
    found = copy.entries[number]
    keys = {found[0].name: FamilyKey(tuple(workload.values.values()), found, number)}
    return Selected(values, found, keys, number=number)


def _values(config: Any, aggregates: Aggregates, within: str) -> Iterator[tuple[str, Value]]:
    """The arguments of a config by the names of its parameters, those of configs in it, too."""
    name, *args = config
    known = aggregates.get(name, ())
    for position, arg in enumerate(args):
        called = known[position][0] if position < len(known) else str(position)
        if isinstance(arg, list):
            yield from _values(arg, aggregates, f"{within}{called}.")
        else:
            yield f"{within}{called}", arg


def _entry(one: Asked, place: Sequence[Any], copy: Marked) -> int | None:
    """Which entry stands where the compiler found the template that it takes."""
    file, offset, _ = place
    # Other headers may be called the same.
    if Path(file).name != one.site.header or file not in one.site.includes:
        return None
    spans = enumerate(entry.span for _, entry in copy.entries)
    return next((n for n, span in spans if span.start <= offset < span.end), None)
