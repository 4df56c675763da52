"""Compares what policy selectors return before and after a change, for all of their inputs.

A selector is a function of its members and of a compute capability. Its compiled code is compared;
where that differs, it is evaluated for every value that the code can tell from others.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from policygen import rendering
from policygen.bindings.words import known_arch, words
from policygen.cache import written_by
from policygen.errors import SourceError
from policygen.headers.selectors.functions import (
    HeaderCode,
    find_aggregates,
    leaves,
    read_aggregate,
)
from policygen.headers.text import Text, reachable
from policygen.model.arch import arch_number
from policygen.model.selection import InputChange
from policygen.model.tuning import ENTRY, Marked, Value, leaf_paths, spell
from policygen.opening import read_bytes
from policygen.proof import answers, selector_code
from policygen.proof.compile import RefusedError, TranslationUnit, compile_divided
from policygen.proof.selector_code import (
    Array,
    Box,
    Indices,
    Leaf,
    Number,
    Program,
    UnsupportedCodeError,
    bounds_of,
    boxes_where,
    compared_constants,
    evaluate,
    parse,
    united,
)
from policygen.proof.toolchain import Toolchain
from policygen.proof.units import identity
from policygen.steps import Progress
from policygen.trees.manifest import shipped

TEMPLATE = "probe/inputs.cu.j2"
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
"""Values that every number has, besides those that the code compares it with."""
MOST = 1024
"""Larger constants are counts or bytes of shared memory, and no sizes of types."""
_PLAIN = frozenset({"int", "bool", "unsigned int", "unsigned", "long", "size_t"})
_ENUMERATORS = 32
MOST_PARTS = 16
"""Into more parts, what differs in a box is not divided: its bounds are described."""
SOME = "some combinations of these values"
# template <int InputCount>
_COUNTED = re.compile(rb"\btemplate\s*<\s*(?:int|unsigned|size_t)\s+\w+\s*>\s*\Z")
# What is compiled here is not a constant expression; the policies of kernels are.
_DISTINGUISHES = re.compile(
    rb"\b(?:\w*is_constant_evaluated|consteval|__builtin_constant_p|NV_\w+|__CUDA_ARCH\w*)\b"
)
_TEMPLATE = re.compile(rb"\btemplate\s*<[^;{}]*>\s*\Z")


@dataclass(frozen=True, slots=True)
class Selector:
    """A policy selector of a header."""

    header: str
    namespace: str
    """For example `cub::detail::reduce`."""
    name: str
    """A template with its arguments."""
    members: tuple[tuple[str, str], ...]
    """The paths and types of its members."""
    aggregates: Mapping[str, tuple[tuple[str, str], ...]] = field(compare=False, repr=False)

    @property
    def label(self) -> str:
        """For example `reduce::policy_selector`."""
        return f"{self.namespace.rpartition('::')[2]}::{self.name}"


@dataclass(frozen=True, slots=True)
class CompiledSelector:
    """A selector's code, and the names of what it reads and returns."""

    selector: Selector
    text: str
    """Its PTX."""
    fields: tuple[str, ...]
    """The paths of the policy's fields."""
    enumerators: Mapping[str, tuple[str, ...]]
    """By member."""


@dataclass(frozen=True, slots=True)
class Side:
    """The tuning headers of a tree, with the include folders for a compiler."""

    contents: Mapping[str, bytes]
    includes: tuple[str, ...]
    marked: bool = False
    """Whether the returns of its selectors are marked."""

    @classmethod
    def of(cls, includes: tuple[str, ...], *, marked: bool = False) -> "Side":
        """Reads the headers that a compiler finds: those of the first folder that has them."""
        contents: dict[str, bytes] = {}
        for folder in includes:
            for path in sorted((Path(folder) / shipped().tree.tunings).glob("*.cuh")):
                contents.setdefault(path.name, read_bytes(path))
        return cls(contents, includes, marked)


@dataclass(frozen=True, slots=True)
class InputDelta:
    """What a change does to the selectors of a tree."""

    changes: tuple[InputChange, ...] = ()
    compared: int = 0
    """Inputs times architectures."""
    unknown: tuple[tuple[str, str], ...] = ()
    """Header and reason."""
    headers: frozenset[str] = frozenset()
    """The headers whose selectors were compared for all inputs."""


def find_selectors(name: str, contents: Mapping[str, bytes]) -> list[Selector]:
    """Finds the policy selectors of a header."""
    code = Text(name, contents[name]).code
    declared = HeaderCode(code)
    struct = declared.structs.get(words().selectors.name)
    if struct is None:
        return []
    folder = f"{shipped().tree.tunings}/"
    neighbors = {f"{folder}{other}": data for other, data in contents.items()}
    included = reachable(contents[name], neighbors)
    structs = find_aggregates({**included, name: contents[name]})
    namespace = declared.namespace_at(struct.span.start)
    aggregates = {key: value.typed_fields for key, value in structs.items()}
    before = code[: struct.span.start]
    if _COUNTED.search(before):
        spelled = [f"{struct.name}<{count}>" for count in (1, 2)]
        return [Selector(name, namespace, text, (), aggregates) for text in spelled]
    if _TEMPLATE.search(before):
        return []
    fields = read_aggregate(structs, struct.name) if struct.fields else ()
    return [Selector(name, namespace, struct.name, tuple(leaves(fields)), aggregates)]


def compile_selectors(
    names: Iterable[str], side: Side, toolchain: Toolchain, progress: Progress | None = None
) -> dict[tuple[str, str], CompiledSelector | str]:
    """Compiles the selectors of headers, by header and name; or why they are not known."""
    compiled: dict[tuple[str, str], CompiledSelector | str] = {}
    selectors: list[Selector] = []
    for name in names:
        try:
            own = find_selectors(name, side.contents)
        except SourceError as error:
            compiled[name, words().selectors.name] = f"it cannot be read: {error.message}"
            continue
        if word := _DISTINGUISHES.search(Text(name, side.contents[name]).code):
            reason = f"{word[0].decode()} tells a constant expression from other code"
            compiled |= {(row.header, row.name): reason for row in own}
        else:
            selectors += own
    results = compile_divided(
        [selectors] if selectors else [],
        lambda batch: _unit(batch, side, toolchain),
        lambda batch: [[selector] for selector in batch] if len(batch) > 1 else [],
        toolchain,
        lambda ptx: json.dumps([answers.pack(ptx), selector_code.read_entries(ptx)]),
        writer=written_by(selector_code, answers),
        progress=progress,
    )
    for batch, result in results:
        if isinstance(result, str):
            compiled |= _read(batch, result)
        else:
            reason = result.in_line if isinstance(result, RefusedError) else str(result)
            compiled |= {(row.header, row.name): reason for row in batch}
    return compiled


def _unit(selectors: Sequence[Selector], side: Side, toolchain: Toolchain) -> TranslationUnit:
    headers = sorted({selector.header for selector in selectors})
    rendered_from = {
        "headers": headers,
        "returns": side.marked,
        "counts": words().selectors.counts,
        "all_selectors": list(_described(selectors)),
    }
    return TranslationUnit(
        name=f"{', '.join(headers)} (all inputs)",
        identity=identity(rendered_from, TEMPLATE),
        text=partial(rendering.fill, TEMPLATE, rendered_from, trim=False),
        includes=side.includes,
        arch=toolchain.newest,
    )


def _described(selectors: Sequence[Selector]) -> Iterator[dict[str, object]]:
    row = 0
    for number, selector in enumerate(selectors):
        members = []
        for place, (_, kind) in enumerate(selector.members, start=row + 1):
            numbers = [] if kind in _PLAIN else list(range(_ENUMERATORS))
            members.append({"row": place, "type": kind, "numbers": numbers})
        yield {
            "number": number,
            "namespaces": selector.namespace.split("::")[1:],
            "name": selector.name,
            "policy": row,
            "members": members,
        }
        row += 1 + len(members)


def _read(
    selectors: Sequence[Selector], packed: str
) -> Iterator[tuple[tuple[str, str], CompiledSelector | str]]:
    packed_answers, texts = json.loads(packed)
    rows, row = answers.unpack(packed_answers), 0
    for number, selector in enumerate(selectors):
        policy = answers.type_name(rows[row][0])
        enumerators = {}
        for place, (path, _) in enumerate(selector.members, start=row + 1):
            names = [str(answers.value(text)) for text in rows.get(place, ())]
            enumerators[path] = tuple(name for name in names if not name.startswith("("))
        row += 1 + len(selector.members)
        text = texts.get(f"policygen_inputs_{number}", "")
        fields = tuple(leaf_paths(selector.aggregates, policy))
        compiled = CompiledSelector(selector, text, fields, enumerators)
        key = selector.header, selector.name
        yield key, compiled if text else "its code is missing from the PTX"


# Compares the selectors of two sides.

Compiled = Mapping[tuple[str, str], CompiledSelector | str]
Examples = Mapping[str, Mapping[str, Value]]
"""Benchmarks' workloads by name, with what a selector's members are for them."""
FindExamples = Callable[[Sequence[Selector]], Mapping[tuple[str, str], Examples]]
"""Finds the examples of selectors, by header and namespace."""


def compare_inputs(
    before: Compiled, after: Compiled, archs: Sequence[str], find_examples: FindExamples
) -> InputDelta:
    """Compares all selectors that both sides have."""
    changes: list[InputChange] = []
    unknown: list[tuple[str, str]] = []
    pairs: list[tuple[CompiledSelector, CompiledSelector]] = []
    compared = 0
    for key in sorted(before.keys() & after.keys()):
        old, new = before[key], after[key]
        if isinstance(old, CompiledSelector) and isinstance(new, CompiledSelector):
            pairs.append((old, new))
        else:
            unknown += [(key[0], side) for side in (old, new) if isinstance(side, str)]
    differing = [new.selector for old, new in pairs if old.text != new.text]
    examples = find_examples(differing) if differing else {}
    for old, new in pairs:
        selector = new.selector
        own = examples.get((selector.header, selector.namespace), {})
        try:
            count, rows = _compared(old, new, archs, own)
        except UnsupportedCodeError as error:
            unknown.append((selector.header, f"{selector.label}: {error}"))
            continue
        compared += count
        changes += rows
    headers = {old.selector.header for old, _ in pairs} - {header for header, _ in unknown}
    return InputDelta(tuple(changes), compared, tuple(unknown), frozenset(headers))


@dataclass(frozen=True, slots=True)
class InputAxis:
    """A member of a selector, or the architecture, with its values."""

    name: str
    values: tuple[int, ...]
    spelled: tuple[str, ...] = ()
    """The names of the values, if they are enumerators."""


Place = Mapping[int, int]
"""The positions of a benchmark's workload on the axes that it has."""
Pairs = Mapping[str, Collection[tuple[Value, Value]]]
"""Field → values before and after."""


class ChangedBox(NamedTuple):
    """Inputs that get other values."""

    box: Box
    pairs: Pairs
    is_whole: bool = True
    """Whether all inputs of the box do, instead of some combinations of its values."""
    examples: frozenset[str] = frozenset()
    """The benchmarks' workloads among them."""


@dataclass(frozen=True, slots=True)
class ChangedInputs:
    """What changes, and its axes: the architectures come first."""

    header: str
    selector: str
    axes: Sequence[InputAxis]
    places: Mapping[str, Place] = field(default_factory=dict)


def _compared(
    old: CompiledSelector, new: CompiledSelector, archs: Sequence[str], examples: Examples
) -> tuple[int, list[InputChange]]:
    kept = new.selector.members[: len(old.selector.members)]  # conditions name those behind them
    names = {path: new.enumerators.get(path) for path in old.enumerators}
    if old.selector.members != kept or old.enumerators != names:
        raise UnsupportedCodeError("its members differ: calls give it other inputs")
    programs = [parse(side.text) for side in (old, new)]
    axes = _axes(new, programs, archs, examples)
    count = prod(len(axis.values) for axis in axes)
    if old.text == new.text and old.fields == new.fields:
        return count, []
    places = {name: _place(axes, members) for name, members in examples.items()}
    regions: list[ChangedBox] = []
    for leaf in evaluate(programs, [axis.values for axis in axes]):
        regions += _differing(leaf, (old.fields, new.fields), places)
    change = ChangedInputs(new.selector.header, new.selector.label, axes, places)
    return count, list(described(change, regions))


def _place(axes: Sequence[InputAxis], members: Mapping[str, Value]) -> Place:
    """Returns the positions of an example on the axes of the members."""
    places = {}
    for number, axis in enumerate(axes):
        value = members.get(axis.name)
        if isinstance(value, int) and not isinstance(value, bool):
            places[number] = axis.values.index(value)
        elif value is not None:
            places[number] = axis.spelled.index(spell(value))
    return places


def policies_of(
    compiled: CompiledSelector, members: Mapping[str, Value], archs: Sequence[str]
) -> dict[str, dict[str, Value]]:
    """Evaluates a selector for one input on architectures."""
    axes = [[arch_number(arch) for arch in archs]]
    for path, _ in compiled.selector.members:
        value = members[path]
        names = compiled.enumerators.get(path, ())
        axes.append([names.index(value) if isinstance(value, str) else int(value)])
    policies: dict[str, dict[str, Value]] = {arch: {} for arch in archs}
    for leaf in evaluate([parse(compiled.text)], axes):
        for slot, value in leaf.outputs[0].items():
            values = np.broadcast_to(np.ravel(value), len(leaf.box[0]))
            for index, number in zip(leaf.box[0], values, strict=True):
                policies[archs[index]][_field(compiled.fields, slot)] = int(number)
    return policies


def _axes(
    side: CompiledSelector, programs: Sequence[Program], archs: Sequence[str], examples: Examples
) -> list[InputAxis]:
    """Makes the axes: architectures, and for each member all values that can matter."""
    by_axis: dict[int, set[int]] = {}
    computed: set[int] = set()
    for own, numbers in map(compared_constants, programs):
        computed |= {number for number in numbers if 0 <= number <= MOST}
        for axis, bounds in own.items():
            by_axis[axis] = by_axis.get(axis, set()) | bounds
    axes = [InputAxis("arch", tuple(arch_number(arch) for arch in archs), tuple(archs))]
    count = max([len(side.selector.members), *by_axis])
    members = [*side.selector.members]
    members += [(f"member {number + 1}", "int") for number in range(len(members), count)]
    for number, (path, kind) in enumerate(members, start=1):
        if names := side.enumerators.get(path, ()):
            axes.append(InputAxis(path, tuple(range(len(names))), names))
        elif kind == "bool":
            axes.append(InputAxis(path, (0, 1), ("false", "true")))
        else:
            bounds = by_axis.get(number, set()) | computed
            near = {bound + step for bound in bounds for step in (-1, 0, 1) if bound + step >= 0}
            values = (members.get(path) for members in examples.values())
            sizes = {*SIZES, *near, *(value for value in values if isinstance(value, int))}
            if path.endswith("alignment"):
                sizes = {size for size in sizes if size.bit_count() == 1}  # as of any type
            axes.append(InputAxis(path, tuple(sorted(sizes))))
    return axes


def _differing(
    leaf: Leaf, names: tuple[Sequence[str], Sequence[str]], places: Mapping[str, Place]
) -> Iterator[ChangedBox]:
    """Yields the parts of a box in which a field differs, with the values before and after."""
    before, after = (
        {_field(paths, slot): value for slot, value in output.items()}
        for paths, output in zip(names, leaf.outputs, strict=True)
    )
    common = [name for name in before if name in after]
    differ: Number = 0
    for name in common:
        unequal = np.not_equal(before[name], after[name])
        differ = differ | (unequal if unequal.ndim else int(unequal))
    if not isinstance(leaf.mask, int) and np.any(differ):
        differ = np.logical_and(differ, leaf.mask)
    parts = list(islice(boxes_where(differ, leaf.box), MOST_PARTS + 1))
    is_whole = len(parts) <= MOST_PARTS
    if not parts:
        return
    pairs = {name: _pairs(before[name], after[name], leaf.mask) for name in common}
    changes = {name: sides for name, sides in pairs.items() if sides}
    for part in parts if is_whole else [bounds_of(differ, leaf.box)]:
        box = _as_box(part)
        inside = frozenset(
            name
            for name, place in places.items()
            if _is_in(box, place) and (is_whole or _at(differ, leaf.box, place).any())
        )
        yield ChangedBox(box, changes, is_whole, inside)


def _as_box(part: Indices) -> Box:
    return tuple(frozenset(indices.tolist()) for indices in part)


def _is_in(box: Box, place: Place) -> bool:
    return all(index in box[axis] for axis, index in place.items())


def _at(table: Array, box: Indices, place: Place) -> Array:
    """Returns the part of a table on a box at a place."""
    for axis, index in place.items():
        if table.shape[axis] > 1:
            table = table.take(np.flatnonzero(box[axis] == index), axis)
    return table


def _field(paths: Sequence[str], slot: int) -> str:
    return paths[slot] if slot < len(paths) else f"value {slot + 1}"


def _pairs(before: Number, after: Number, mask: Number) -> set[tuple[Value, Value]]:
    *sides, holds = np.broadcast_arrays(*map(np.asarray, (before, after, mask)))
    pairs = np.unique(np.stack([side[holds.astype(bool)] for side in sides]), axis=1)
    return {(int(old), int(new)) for old, new in pairs.T if old != new}


def described(change: ChangedInputs, regions: Sequence[ChangedBox]) -> Iterator[InputChange]:
    """Describes regions by the conditions that their inputs have in common."""
    for box in united(region.box for region in regions):
        values: dict[str, set[tuple[Value, Value]]] = {}
        is_whole, examples = True, dict[str, None]()
        for region in regions:
            if all(inner & outer for inner, outer in zip(region.box, box, strict=True)):
                is_whole = is_whole and region.is_whole
                examples |= dict.fromkeys(sorted(region.examples))
                for name, sides in region.pairs.items():
                    values.setdefault(name, set()).update(sides)
        archs, *members = zip(change.axes, box, strict=True)
        conditions = [_condition(axis, indices) for axis, indices in members]
        conditions.append("" if is_whole else SOME)
        yield InputChange(
            header=change.header,
            selector=change.selector,
            archs=tuple(_known(archs[0].spelled[index] for index in sorted(archs[1]))),
            conditions=tuple(filter(None, conditions)),
            values={name: _span(sides) for name, sides in values.items()},
            examples=tuple(name for name in examples if _is_in(box, change.places[name])),
        )


def _known(archs: Iterable[str]) -> Iterator[str]:
    """Leaves out unknown architectures that are like the known one before them."""
    names = list(archs)
    return (arch for arch in names if known_arch(arch) == arch or known_arch(arch) not in names)


def _condition(axis: InputAxis, indices: frozenset[int]) -> str:
    """Describes some values of a member; empty if these are all."""
    if len(indices) == len(axis.values):
        return ""
    ordered = sorted(indices)
    if axis.spelled:
        rest = [n for n in range(len(axis.values)) if n not in indices]
        is_other = len(rest) < len(ordered)
        names = " or ".join(axis.spelled[n] for n in (rest if is_other else ordered))
        return f"{axis.name} {'is not' if is_other else 'is'} {names}"
    values = [axis.values[n] for n in ordered]
    is_run = ordered == list(range(ordered[0], ordered[-1] + 1))
    if is_run and len(values) > 1:
        if ordered[-1] == len(axis.values) - 1:
            return f"{axis.name} >= {values[0]}"
        if not ordered[0]:
            return f"{axis.name} <= {values[-1]}"
        return f"{axis.name} is {values[0]} to {values[-1]}"
    return f"{axis.name} is {' or '.join(map(str, values))}"


def _span(pairs: Collection[tuple[Value, Value]]) -> str:
    """Describes the values of a field before and after."""
    sides = [sorted({pair[side] for pair in pairs}, key=_order) for side in (0, 1)]
    ends = [dict.fromkeys((spell(side[0]), spell(side[-1]))) for side in sides]
    return " → ".join(map(" … ".join, ends))


def _order(value: Value) -> tuple[bool, float, str]:
    return not isinstance(value, int), value if isinstance(value, int) else 0, str(value)


# Finds the inputs that get the values of a return.


def inputs_reaching(
    marks: Mapping[str, Marked],
    side: Side,
    archs: Sequence[str],
    toolchain: Toolchain,
    progress: Progress | None = None,
) -> dict[str, dict[int, str] | None]:
    """Returns for each marked header the entries that any input gets, with such inputs in words.

    None if the code of a header's selectors cannot be evaluated.
    """
    reached: dict[str, dict[int, str] | None] = {}
    for (header, _), compiled in compile_selectors(marks, side, toolchain, progress).items():
        own = reached.setdefault(header, {})
        with suppress(UnsupportedCodeError):
            if own is not None and isinstance(compiled, CompiledSelector):
                own |= _inputs_by_entry(compiled, marks[header], archs)
                continue
        reached[header] = None
    return reached


def _inputs_by_entry(
    compiled: CompiledSelector, marked: Marked, archs: Sequence[str]
) -> dict[int, str]:
    """Returns the entries whose marks a selector returns, each with inputs for which it does."""
    programs = [parse(compiled.text)]
    axes = _axes(compiled, programs, archs, {})
    members = {ENTRY, words().selectors.counts}
    boxes: dict[int, set[Box]] = {}
    for leaf in evaluate(programs, [axis.values for axis in axes]):
        for slot, value in leaf.outputs[0].items():
            if _field(compiled.fields, slot).rpartition(".")[2] not in members:
                continue
            for number in np.unique(value):
                if (entry := marked.entry(int(number))) is not None:
                    here = np.logical_and(np.equal(value, number), leaf.mask)
                    parts = islice(boxes_where(here, leaf.box), MOST_PARTS)
                    boxes.setdefault(entry, set()).update(map(_as_box, parts))
    return {
        entry: " and ".join(filter(None, map(_condition, axes, united(of_entry)[0])))
        for entry, of_entry in boxes.items()
    }
