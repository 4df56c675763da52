"""Asks what rocPRIM selects for types on architectures, of libclang."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from policygen.bindings.load import axis_type, is_constant
from policygen.errors import InputError, MissingToolError, PolicygenError
from policygen.model.marks import Marked
from policygen.model.selection import FamilyKey, Selected
from policygen.model.tuning import Value
from policygen.process import threads
from policygen.proof.compile import PHASE, attempt
from policygen.proof.host_compiler import HostCompiler
from policygen.proof.probe import Asked, AskedTree, filled
from policygen.proof.selection import Selection
from policygen.proof.unit import Workload, axis_headers
from policygen.rendering import fill
from policygen.steps import Progress, follow
from policygen.tree.manifest import shipped

TEMPLATE = "probe/host.hip.j2"
SCOPES = ("rocprim", "detail", "policygen_asked")
ARCH = "static_cast<unsigned int>(target_arch::{})"
ROWS = 3000
"""In one unit: a question takes a tenth of a millisecond, the headers a second."""
_WORD = re.compile(r"(?<!::)\b[A-Za-z_]\w*\b")

Spot = tuple[Workload, str]
Aggregates = Mapping[str, tuple[tuple[str, str], ...]]


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
    spots = [(one, *spot) for one in lot for spot in one.spots]
    text = fill(TEMPLATE, _unit(lot, tree.version))
    answer = compiler.told(text, SCOPES, tree.includes, tree.changed)
    rows: dict[Spot, Selected] = {}
    same: dict[str, tuple[dict[str, Value], int | None]] = {}
    for number, (one, workload, arch) in enumerate(spots):
        name = f"{number}"
        config, place = answer["types"].get(f"type_{name}"), answer["rows"].get(f"row_{name}")
        if not isinstance(config, list) or place is None:
            raise InputError(
                f"libclang tells nothing of {workload.name} on {arch}", "Please report this."
            )
        copy = tree.marked.get(one.site.header)
        # Thousands of rows say the same few things.
        key = f"{id(one)} {config} {place}"
        if key not in same:
            values = dict(_values(config, one.aggregates, ""))
            same[key] = values, None if copy is None else _entry(one, place, copy)
        rows[workload, arch] = _selected(workload, *same[key], copy)
    return rows


def _unit(lot: Sequence[Asked], version: str) -> dict[str, object]:
    included = (name for one in lot for name in one.site.includes)
    typed = {name for one in lot for point in one.points for name in axis_headers(point, version)}
    return {
        "headers": dict.fromkeys([*sorted(typed), *included]),
        "scopes": SCOPES,
        "configs": dict.fromkeys(config for one in lot for config in _declared(one)),
        "rows": [row for one in lot for row in _rows(one, version)],
    }


def _rows(one: Asked, version: str) -> Iterator[str]:
    """The template that each spot takes, in their order."""
    for workload in one.points:
        given = _given(workload, version)
        for arch in one.archs:
            yield _filled(one.site.hub, {"Arch": ARCH.format(arch), **given})


def _declared(one: Asked) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """The templates that a config may be, with what their parameters are, and are called."""
    declared = {name: one.aggregates.get(name) for name in one.site.configs}
    found = tuple((name, parts) for name, parts in declared.items() if parts)
    if not found:
        raise InputError(
            f"{one.site.header}: nothing declares {' or '.join(one.site.configs)}",
            "Is the tree whole? The bindings name another config than it has.",
        )
    return found


def _given(workload: Workload, version: str) -> dict[str, str]:
    """What a workload has for the parameters of a template, in C++."""
    given: dict[str, str] = {}
    for role, text in {**workload.call.roles, **workload.call.constants}.items():
        axis = text.removeprefix("axis::")
        value = workload.values.get(axis, text)
        typed = axis in workload.values and not is_constant(value)
        given[role] = axis_type(value, version).cpp if typed else value
    return given


def _filled(hub: str, given: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: given.get(match[0], match[0]), hub)


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
