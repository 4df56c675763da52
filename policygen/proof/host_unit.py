"""Writes the units that ask libclang what rocPRIM selects: of templates, and of pickers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policygen.bindings.archs import table_number
from policygen.bindings.load import axis_type, is_constant
from policygen.errors import InputError
from policygen.model.arch import arch_and_gpu
from policygen.proof.probe import Asked
from policygen.proof.unit import Workload, axis_headers
from policygen.rendering import fill

TEMPLATE = "probe/host.hip.j2"
SCOPES = ("rocprim", "detail", "policygen_asked")
ARCH = "static_cast<unsigned int>(target_arch::{})"
NUMBER = "number"
"""The template whose argument is the number of an entry."""
PLAIN = "kernel_config"
"""The config whose first argument is that, where a table by hand gives configs."""
_WORD = re.compile(r"(?<!::)\b[A-Za-z_]\w*\b")

Parts = tuple[tuple[str, str], ...]
Aggregates = Mapping[str, Parts]


@dataclass(frozen=True, slots=True)
class Shape:
    """The struct that a picker returns, and the paths of its values."""

    name: str
    paths: tuple[str, ...]


def spots_of(lot: Sequence[Asked]) -> Iterator[tuple[int, Asked, Workload, str]]:
    """What a unit asks, with the number of its answer."""
    every = ((one, *spot) for one in lot for spot in one.spots)
    for number, (one, workload, arch) in enumerate(every):
        yield number, one, workload, arch


def shapes_of(lot: Sequence[Asked]) -> list[Shape]:
    """The structs that the pickers of a unit return, in the order of its questions of them."""
    return list(dict.fromkeys(shape_of(one) for one in lot if one.site.targets))


def shape_of(one: Asked) -> Shape:
    """What the picker of a site returns."""
    ((name, _),) = _declared(one)
    return Shape(name, tuple(_paths(name, one.aggregates, "")))


def host_unit(lot: Sequence[Asked], version: str, *, numbered: bool = False) -> str:
    """A unit; where they are `numbered`, what pickers and tables give is the number of an entry."""
    included = (name for one in lot for name in one.site.includes)
    typed = {name for one in lot for point in one.points for name in axis_headers(point, version)}
    places = _targets(lot)
    shapes = [] if numbered else shapes_of(lot)
    shape = {id(one): shape_of(one) for one in lot if shapes and one.site.targets}
    rows, picked = [], []
    for number, one, workload, arch in spots_of(lot):
        given = _given(workload, version)
        if one.site.targets:
            given["Target"] = f"target_{places[one.site.targets, arch]}::type"
            told = NUMBER if numbered else f"shape_{shapes.index(shape[id(one)])}"
            paths = ("",) if numbered else (f".{path}" for path in shape[id(one)].paths)
            values = ", ".join(f"value_{number}::found{path}" for path in paths)
            picked.append((number, _filled(one.site.hub, given), f"{told}<{values}>"))
        elif one.site.table or not numbered:
            given["Arch"] = _arch_of(one, arch)
            rows.append((number, _filled(one.site.hub, given)))
    context = {
        "headers": dict.fromkeys([*sorted(typed), *included]),
        "scopes": SCOPES,
        "configs": dict.fromkeys(_configs(lot, numbered=numbered)),
        "number": NUMBER,
        "targets": [(targets, _device(arch)) for targets, arch in places],
        "shapes": [(each.name, each.paths) for each in shapes],
        "rows": rows,
        "picked": picked,
    }
    return fill(TEMPLATE, context)


def _arch_of(one: Asked, arch: str) -> str:
    """An architecture as a template of configs is asked for it."""
    return f"{table_number(arch)}u" if one.site.table else ARCH.format(arch_and_gpu(arch)[0])


def _configs(lot: Sequence[Asked], *, numbered: bool) -> Iterator[tuple[str, Parts]]:
    """The templates that the configs of a unit may be."""
    for one in lot:
        if numbered and one.site.table:
            yield PLAIN, one.aggregates.get(PLAIN, ())
        elif not numbered and not one.site.targets:
            yield from _declared(one)


def _targets(lot: Sequence[Asked]) -> dict[tuple[str, str], int]:
    """Which target of a list each device gets, by their numbers in a unit."""
    pairs = ((one.site.targets, arch) for one in lot if one.site.targets for arch in one.archs)
    return {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}


def _device(arch: str) -> str:
    """`gfx942:mi300x` as rocPRIM makes a target of a device."""
    plain, gpu = arch_and_gpu(arch)
    return f"target_arch::{plain}, gpu::{gpu}" if gpu else f"target_arch::{plain}"


def _paths(name: str, aggregates: Aggregates, within: str) -> Iterator[str]:
    """The values of a struct, those of structs in it, too: `kernel_config.block_size`."""
    for field, kind in aggregates.get(name, ()):
        inner = kind.rpartition("::")[2]
        if inner in aggregates:
            yield from _paths(inner, aggregates, f"{within}{field}.")
        else:
            yield f"{within}{field}"


def _declared(one: Asked) -> tuple[tuple[str, Parts], ...]:
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
