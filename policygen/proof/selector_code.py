"""Evaluates the compiled code of policy selectors for all inputs at once, without running it.

The PTX of a selector is a small program on integers. It is interpreted here on boxes, which are
products of sets of values: a box is divided where a branch goes two ways for its values. So each
member of a selector keeps all of its values, and the cost follows the paths of the code, not the
size of the product. Where a branch depends on several members at once, as on the shared memory of a
tile, the box is kept whole, and a mask says for which of its values a path is taken.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Number = Any
"""An integer, or an array: a function of the axes along which its size is not 1."""
Indices = tuple[Array, ...]
"""A box: for each axis, the indices of its values."""
SLOT = 8
"""Bytes of each input and output of a program."""
_IN, _OUT = 1 << 40, 1 << 41
JOINT = 1 << 18
"""The largest table of a function of several axes; above it, a box is divided."""
FEW_PARTS = 2
"""Into more parts, a box is not divided for a predicate of several axes."""
MASK = "mask"
"""The register with the values of the box for which its path is taken."""
STEPS = 4_000_000
"""Instructions after which a comparison is given up; they take some ten seconds."""
# .visible .entry policygen_inputs_3(
_ENTRY = re.compile(r"\.entry (policygen_inputs_\d+)\(.*?\n\{\n(.*?)\n\}", re.DOTALL)
# @!%p3 bra $L__BB2_35; setp.ne.s64 %p1, %rd10, 0;
_INSTRUCTION = re.compile(r"\s*(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s*([^;]*);")
# .extern .shared .align 16 .b8 name[];
_SHARED = re.compile(r"\.shared (?:\.align \d+ )?\.\w+ ([\w$]+)")
# .global .align 4 .b8 table[12] = {…}; .func (.param .b32 func_retval0) name( … ) { … }
_DEFINITION = re.compile(
    r"^\.(?:visible |weak )*\.?(?:global|const) [^\n]*?([\w$]+)(?:\[\d*\])?(?: = [^;]*)?;"
    r"|^\.(?:visible |weak )*\.?func [^{;]*?([\w$]+)\([^{;]*\)\s*\{.*?\n\}",
    re.DOTALL | re.MULTILINE,
)
_SYMBOL = re.compile(r"(?<![\w$%.])[A-Za-z_$][\w$]*")
_LABEL = re.compile(r"(\$\w+):")
_OPERANDS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
_NAMES = re.compile(r"[^{},\s]+")
_ADDRESS = re.compile(r"\[([%\w$]+)(?:\+(-?\d+))?\]")
_TYPE = re.compile(r"([subp])(?:red|(\d+))$")


class UnsupportedCodeError(Exception):
    """Code that cannot be evaluated, with the reason."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; a guard is the predicate under which it has an effect."""

    name: str
    parts: tuple[str, ...]
    type: str
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """The code of a selector."""

    text: str
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]


def read_entries(ptx: str) -> dict[str, str]:
    """Returns the text of each selector's function in a unit's PTX, with all that it names.

    Shared memory begins at 0, as where a policy is a constant expression.
    """
    shared = set(_SHARED.findall(ptx))
    definitions = {match[1] or match[2]: match[0] for match in _DEFINITION.finditer(ptx)}
    texts = {}
    for match in _ENTRY.finditer(ptx):
        name, text = match.groups()
        waiting, named = {text}, dict[str, str]()
        while waiting:
            words = {word for row in waiting for word in _SYMBOL.findall(row)}
            waiting = {definitions[word] for word in words & definitions.keys() - named.keys()}
            named |= {word: definitions[word] for word in words & definitions.keys()}
        rows = (row for _, definition in sorted(named.items()) for row in definition.splitlines())
        code = _SYMBOL.sub(lambda symbol: "0" if symbol[0] in shared else symbol[0], text)
        texts[name] = "\n".join([code, *(f"// {row}" for row in rows)])
    return texts


@lru_cache(maxsize=64)
def parse(text: str) -> Program:
    """Reads a function; labels and declarations do not count as instructions."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        row = line.partition("//")[0].strip()
        if not row or row.startswith("."):
            continue
        if label := _LABEL.match(row):
            labels[label[1]] = len(instructions)
            continue
        match = _INSTRUCTION.fullmatch(row)
        if match is None:
            raise UnsupportedCodeError(f"{row} is not a known instruction")
        name, *parts = match[3].split(".")
        kinds = [part for part in parts if _TYPE.match(part)]
        operands = tuple(_OPERANDS.findall(match[4]))
        kind = kinds[-1] if kinds else "b64"
        instructions.append(
            Instruction(name, tuple(parts), kind, operands, match[2] or "", match[1] == "!")
        )
    return Program(text, tuple(instructions), labels)


# Which values of a member can matter: what the code compares with, and the neighbors of that.


def compared_constants(program: Program) -> tuple[dict[int, set[int]], set[int]]:
    """Returns the constants that each axis is compared with, and those of computed numbers."""
    axis_of: dict[str, int] = {}
    by_axis: dict[int, set[int]] = {}
    computed: set[int] = set()
    pointers: dict[str, int] = {}
    for step in program.instructions:
        first = step.operands[0] if step.operands else ""
        if step.name == "ld" and (axis := _axis_loaded(step, pointers)) is not None:
            for number, name in enumerate(_NAMES.findall(first), axis):
                axis_of[name] = number
                by_axis.setdefault(number, set())  # also if nothing is compared with it
        elif step.name in {"cvt", "mov", "cvta"} and step.operands[1] in axis_of:
            axis_of[first] = axis_of[step.operands[1]]
        elif step.name in {"cvt", "mov", "cvta"} and step.operands[1] in pointers:
            pointers[first] = pointers[step.operands[1]]
        elif step.name == "add" and step.operands[1] in pointers and _is_number(step.operands[2]):
            pointers[first] = pointers[step.operands[1]] + int(step.operands[2])
        elif step.name in {"setp", "min", "max"}:
            numbers = [int(text) for text in step.operands[1:] if _is_number(text)]
            axes = [axis_of[text] for text in step.operands[1:] if text in axis_of]
            target = by_axis.setdefault(axes[0], set()) if axes else computed
            target.update(numbers)
    return by_axis, computed


def _axis_loaded(step: Instruction, pointers: dict[str, int]) -> int | None:
    match = _ADDRESS.fullmatch(step.operands[1])
    if match is None:
        return None
    if "param" in step.parts:
        number = int(match[1].rpartition("_")[2])
        if number == 0:
            pointers[step.operands[0]] = 0
        return 0 if number == 1 else None
    base = pointers.get(match[1])
    return None if base is None else 1 + (base + int(match[2] or 0)) // SLOT


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


# Arithmetic of PTX on Python's integers and on arrays.


def _wrap(value: Any, kind: str) -> Number:
    """Reduces a number to a type's range; numbers of 64 bits are kept as they are."""
    if kind == "pred":
        return int(bool(value)) if isinstance(value, int) else value.astype(bool)
    bits, is_signed = int(kind[1:]), kind[0] == "s"
    if bits == 64:
        if not isinstance(value, int):
            return value
        return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)
    if is_signed and not isinstance(value, int):
        return value.astype(f"i{bits // 8}").astype(np.int64)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    return ((value + half) & mask) - half if is_signed else value & mask


def _divide(number: Number, operand: Number) -> Number:
    """Divides toward zero; by zero, the result is 0 on both sides of a comparison."""
    if isinstance(number, int) and isinstance(operand, int):
        sign = 1 if (number < 0) == (operand < 0) else -1
        return 0 if operand == 0 else abs(number) // abs(operand) * sign
    divisor = np.where(np.equal(operand, 0), 1, operand)
    quotient = np.abs(number) // np.abs(divisor)
    signed = np.where(np.less(number, 0) == np.less(divisor, 0), quotient, -quotient)
    return np.where(np.equal(operand, 0), 0, signed)


def _choose(first: Number, second: Number, condition: Number) -> Number:
    if isinstance(condition, int):
        return first if condition else second
    return np.where(condition, first, second)


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda number, operand: number + operand,
    "sub": lambda number, operand: number - operand,
    "mul": lambda number, operand: number * operand,
    "div": _divide,
    "rem": lambda number, operand: number - _divide(number, operand) * operand,
    "and": lambda number, operand: number & operand,
    "or": lambda number, operand: number | operand,
    "xor": lambda number, operand: number ^ operand,
    "shl": lambda number, operand: number << operand,
    "shr": lambda number, operand: number >> operand,
    "min": lambda number, operand: _choose(number, operand, number < operand),
    "max": lambda number, operand: _choose(number, operand, number > operand),
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": lambda number, operand: number == operand,
    "ne": lambda number, operand: number != operand,
    **dict.fromkeys(("lt", "lo"), lambda number, operand: number < operand),
    **dict.fromkeys(("le", "ls"), lambda number, operand: number <= operand),
    **dict.fromkeys(("gt", "hi"), lambda number, operand: number > operand),
    **dict.fromkeys(("ge", "hs"), lambda number, operand: number >= operand),
}


def _popcount(value: Number) -> Number:
    if isinstance(value, int):
        return value.bit_count()
    return np.vectorize(lambda item: int(item).bit_count(), otypes=[np.int64])(value)


_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "neg": lambda value: -value,
    "not": lambda value: ~value,
    "popc": _popcount,
}


def _result(step: Instruction, values: Sequence[Any]) -> Number:
    """Computes an instruction's result from its operands, which have its type already."""
    kind, first, result = step.type, values[0], None
    match step.name, step.parts[0]:
        case "setp", comparison if len(values) == 2:
            result = _COMPARISONS[comparison](*values)
            return int(result) if isinstance(result, bool) else result
        case "mov" | "cvta", _:
            result = first
        case "cvt", kind:
            result = first
        case "selp", _:
            result = _choose(first, values[1], values[2])
        case "mad", "lo":
            result = first * values[1] + values[2]
        case "mul", "wide":
            return first * values[1]
        case "mul", "hi":
            result = (first * values[1]) >> int(kind[1:])
        case "not", "pred":
            return 1 - first if isinstance(first, int) else ~first.astype(bool)
        case name, _ if name in _UNARY:
            result = _UNARY[name](first)
        case name, _ if name in _BINARY:
            result = _BINARY[name](*values)
    if result is None:
        raise UnsupportedCodeError(f"{step.name}.{'.'.join(step.parts)} is not evaluated")
    return _wrap(result, kind)


# Evaluates two programs on the same boxes.


@dataclass(slots=True)
class _BoxState:
    """A box, and how far a program has come on it."""

    box: Indices
    splits: tuple[tuple[int, Array], ...] = ()
    """Each division of the box so far: the axis, and the positions that were kept."""
    registers: dict[str, tuple[Number, int]] = field(default_factory=dict)
    """Value, and the number of divisions that it has seen."""
    program: int = 0
    at: int = 0

    def read(self, name: str) -> Number:
        """Returns a register's value on this box."""
        value, seen = self.registers[name]
        if not isinstance(value, int) and seen < len(self.splits):
            for axis, kept in self.splits[seen:]:
                if value.shape[axis] > 1:
                    value = value.take(kept, axis)
            self.registers[name] = value, _ = _one_number(value), len(self.splits)
        return value

    def write(self, name: str, value: Number) -> None:
        """Sets a register."""
        self.registers[name] = _one_number(value), len(self.splits)

    def where(self, guard: str, condition: Number, value: int) -> "_BoxState":
        """Returns the same where a predicate has a value."""
        mask = _one_number(np.logical_and(self.read(MASK), condition == value))
        registers = {**self.registers, guard: (value, 0), MASK: (mask, len(self.splits))}
        return _BoxState(self.box, self.splits, registers, self.program, self.at)

    def part(self, axis: int, kept: Array) -> "_BoxState":
        """Returns the same on a part of the box."""
        box = (*self.box[:axis], self.box[axis][kept], *self.box[axis + 1 :])
        splits = (*self.splits, (axis, kept))
        return _BoxState(box, splits, dict(self.registers), self.program, self.at)


def _one_number(value: Number) -> Number:
    """Returns a number for an array of equal values."""
    if isinstance(value, int):
        return value
    first = value.flat[0]
    return int(first) if (value == first).all() else value


class _DivideError(Exception):
    """Asks to go on with parts of a box, which are its arguments."""


Output = dict[int, Number]
"""The outputs of a program, by their number."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A box on which both programs take one path each, and what they return there."""

    box: Indices
    outputs: tuple[Output, Output]
    mask: Number
    """The values of the box for which these are the paths."""


def evaluate(programs: Sequence[Program], axes: Sequence[Sequence[int]]) -> Iterator[Leaf]:
    """Yields boxes that together are the product of the axes, with the outputs of two programs.

    The first axis is the architecture, the others are the inputs.
    """
    values = [np.array(axis, dtype=np.int64) for axis in axes]
    steps = 0
    start = tuple(np.arange(len(axis)) for axis in axes)
    stack = [_BoxState(start, registers={MASK: (1, 0)})]
    while stack:
        state = stack.pop()
        try:
            if not np.any(state.read(MASK)):
                continue
            while state.program < len(programs):
                steps += 1
                if steps > STEPS:
                    raise UnsupportedCodeError("its paths are too many")
                _advance(state, programs[state.program], values)
        except _DivideError as division:
            stack += division.args
            continue
        outputs: tuple[Output, Output] = ({}, {})
        for name in state.registers:
            if name.startswith("out"):
                number, _, slot = name.removeprefix("out").partition(":")
                outputs[int(number)][int(slot)] = state.read(name)
        yield Leaf(state.box, outputs, state.read(MASK))


def _advance(state: _BoxState, program: Program, axes: Sequence[Array]) -> None:
    """Executes one instruction."""
    step = program.instructions[state.at]
    if step.guard:
        holds = _uniform(state, step.guard)
        if holds == step.negated:
            state.at += 1
            return
    if step.name == "bra":
        state.at = program.labels[step.operands[0]]
        return
    if step.name == "ret":
        kept = {name: item for name, item in state.registers.items() if name[0] != "%"}
        state.registers, state.at, state.program = kept, 0, state.program + 1
        return
    if step.name in {"ld", "st"}:
        _access(state, step, axes)
    else:
        kind = step.type
        operands = [_value(state, text) for text in step.operands[1:]]
        kinds = [kind] * len(operands)
        if step.name == "selp":
            kinds[2] = "pred"
        elif step.name in {"shl", "shr"}:
            kinds[1] = "u32"
        numbers = [_wrap(value, each) for value, each in zip(operands, kinds, strict=True)]
        _check_size(state, numbers)
        state.write(step.operands[0], _result(step, numbers))
    state.at += 1


def _value(state: _BoxState, text: str) -> Number:
    if text.startswith("%"):
        return state.read(text)
    try:
        return int(text, 0)
    except ValueError:
        raise UnsupportedCodeError(f"{text} is not a number") from None


def _uniform(state: _BoxState, guard: str) -> bool:
    """Returns a predicate's value; goes on with parts of the box if it has several."""
    condition = state.read(guard)
    if isinstance(condition, int):
        return bool(condition)
    divisions = []
    table = condition
    for axis in by_size(condition):
        groups = equal_slices(table, axis)
        if len(groups) > 1:
            divisions.append((len(groups), axis, groups))
        else:
            table = table.take([0], axis)
    if not divisions:
        return bool(table.flat[0])
    count, axis, groups = min(divisions, key=lambda division: division[:2])
    if count > FEW_PARTS and len(divisions) > 1:
        _check_size(state, [state.read(MASK), table])
        raise _DivideError(*(state.where(guard, table, value) for value in (0, 1)))
    raise _DivideError(*(state.part(axis, group) for group in groups))


def by_size(table: Array) -> list[int]:
    """Returns the axes along which a table has several values, the shortest first."""
    axes = [axis for axis, size in enumerate(table.shape) if size > 1]
    return sorted(axes, key=lambda axis: table.shape[axis])


def equal_slices(table: Array, axis: int) -> list[Array]:
    """Groups the positions along an axis by what the table has there."""
    rows = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)
    groups: dict[bytes, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row.tobytes(), []).append(number)
    return [np.array(group) for group in groups.values()]


def _check_size(state: _BoxState, values: Sequence[Number]) -> None:
    """Divides the box if a function of several axes would become too large."""
    shapes = [value.shape for value in values if not isinstance(value, int)]
    if len(shapes) > 1 and prod(shape := np.broadcast_shapes(*shapes)) > JOINT:
        size, axis = max((size, number) for number, size in enumerate(shape))
        halves = np.array_split(np.arange(size), 2)
        raise _DivideError(*(state.part(axis, half) for half in halves))


def _access(state: _BoxState, step: Instruction, axes: Sequence[Array]) -> None:
    """Loads a parameter or inputs, or stores outputs."""
    address, registers = step.operands[1], step.operands[0]
    if step.name == "st":
        address, registers = registers, address
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise UnsupportedCodeError(f"{address} is not a known address")
    names = _NAMES.findall(registers)
    if "param" in step.parts:
        number = int(match[1].rpartition("_")[2])
        pointers = {0: _IN, 2: _OUT}
        state.write(names[0], pointers.get(number) or _input(state, 0, axes))
        return
    start = _value(state, match[1])
    if not isinstance(start, int):
        raise UnsupportedCodeError("it computes addresses from its inputs")
    start += int(match[2] or 0)
    base = _IN if step.name == "ld" else _OUT
    if (start - base) % SLOT or not 0 <= start - base < SLOT << 10:
        raise UnsupportedCodeError("it uses memory besides its inputs and outputs")
    for number, name in enumerate(names, (start - base) // SLOT):
        if step.name == "ld":
            state.write(name, _wrap(_input(state, number + 1, axes), step.type))
        else:
            value = _value(state, name)
            state.write(f"out{state.program}:{number}", _wrap(value, step.type))


def _input(state: _BoxState, axis: int, axes: Sequence[Array]) -> Number:
    """Returns the values of an axis in the box."""
    values = axes[axis][state.box[axis]]
    if len(values) == 1:
        return int(values[0])
    shape = [1] * len(axes)
    shape[axis] = len(values)
    return values.reshape(shape)


# Unites boxes.

Box = tuple[frozenset[int], ...]
"""A box with the indices of each axis."""


def boxes_where(mask: Number, box: Indices) -> Iterator[Indices]:
    """Yields the parts of a box on which a predicate holds."""
    if isinstance(mask, int) or mask.all():
        if np.all(mask):
            yield box
        return
    if not mask.any():
        return
    axis = by_size(mask)[0]
    for group in equal_slices(mask, axis):
        part = (*box[:axis], box[axis][group], *box[axis + 1 :])
        yield from boxes_where(mask.take(group[:1], axis), part)


def bounds_of(mask: Array, box: Indices) -> Indices:
    """Returns the smallest part of a box that contains all of a predicate."""
    bounds = []
    for axis, indices in enumerate(box):
        others = tuple(other for other in range(mask.ndim) if other != axis)
        bounds.append(indices[mask.any(others)] if mask.shape[axis] > 1 else indices)
    return tuple(bounds)


FEW = 64
"""Up to this number, boxes are grown over each other."""


def united(boxes: Iterable[Box]) -> list[Box]:
    """Returns boxes that cover the same, as few and as large as is cheap to find."""
    remaining = set(boxes)
    while remaining:
        before = len(remaining)
        for axis in reversed(range(len(next(iter(remaining))))):
            groups: dict[Box, frozenset[int]] = {}
            for box in remaining:
                others = (*box[:axis], *box[axis + 1 :])
                groups[others] = groups.get(others, frozenset()) | box[axis]
            remaining = {
                (*others[:axis], indices, *others[axis:]) for others, indices in groups.items()
            }
        if len(remaining) == before:
            break
    if len(remaining) <= FEW:
        grown = {_grown(box, remaining) for box in remaining}
        for box in sorted(grown, key=lambda box: prod(map(len, box))):
            if _is_covered(box, grown - {box}):
                grown.remove(box)
        remaining = grown
    return sorted(remaining, key=lambda box: [sorted(indices) for indices in box])


def _grown(box: Box, boxes: Collection[Box]) -> Box:
    """Extends a box along each axis as far as all of them together cover it."""
    for axis in range(len(box)):
        values = frozenset[int]().union(*(other[axis] for other in boxes))
        covered = {
            index
            for index in values - box[axis]
            if _is_covered((*box[:axis], frozenset({index}), *box[axis + 1 :]), boxes)
        }
        box = (*box[:axis], box[axis] | covered, *box[axis + 1 :])
    return box


def _is_covered(box: Box, boxes: Collection[Box]) -> bool:
    remaining = [box]
    for other in boxes:
        parts = []
        for part in remaining:
            if any(own.isdisjoint(its) for own, its in zip(part, other, strict=True)):
                parts.append(part)
                continue
            for axis, indices in enumerate(other):
                if outside := part[axis] - indices:
                    parts.append((*part[:axis], outside, *part[axis + 1 :]))
                part = (*part[:axis], part[axis] & indices, *part[axis + 1 :])  # noqa: PLW2901
        remaining = parts
    return not remaining
