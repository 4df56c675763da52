"""A user's workload or kernel: the files that `policygen tune` takes."""

import re
from collections.abc import Iterator
from itertools import pairwise
from math import prod
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from policygen.errors import InputError
from policygen.model.expression import ExpressionText
from policygen.model.records import Record

# A name, possibly with template arguments: no statement, call or literal.
_CPP = re.compile(r"(?:::)?[A-Za-z_]\w*(?:[\w:<>,* ]*[\w>*])?", re.ASCII)
ENTROPIES = ("1.000", "0.811", "0.544", "0.337", "0.201", "0.000")
"""The entropies of CCCL's benchmarks."""
NAMED = ("generator", "file", "entropy")
"""Kinds of input that the key of the same name specifies."""
PREFIX = "own."
"""Prefix of the names of user workloads' benchmarks."""
_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f-\U0010ffff]+')
"""Characters that need no escaping in a string literal."""


def _relative_path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError("it is not a path below the folder of the workload")
    return path


def _type_name(text: str) -> str:
    if not _CPP.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of a type")
    return text


CppType = Annotated[str, Field(max_length=400), AfterValidator(_type_name)]
"""The name of a type: `float`, `I32`, `sim::Particle`, `sim::Vec<float, 3>`."""
# A bound in the pattern, {1,200}, takes a quarter of a second to compile.
Beside = Annotated[
    str, Field(max_length=200, pattern=r"^[\w./+ -]+$"), AfterValidator(_relative_path)
]
"""A file, relative to the workload's."""


class WorkloadSize(Record):
    """A size that matters."""

    elements: int = Field(ge=1, le=1 << 40)
    weight: float = Field(default=1, gt=0, le=1e6, allow_inf_nan=False)
    """Its weight relative to other sizes."""


class WorkloadInput(Record):
    """What the elements look like."""

    how: Literal["random", "entropy", "sorted", "constant", "bytes", "file", "generator"] = "random"
    entropy: Literal["1.000", "0.811", "0.544", "0.337", "0.201", "0.000"] | None = None
    file: Beside | None = None
    """A file with the elements' bytes, repeated from the start if too short."""
    generator: CppType | None = None
    """A functor that makes an element from an index and 64 random bits."""
    least: float | None = Field(default=None, allow_inf_nan=False)
    """The minimum of random numbers, given together with `most`; default: all values."""
    most: float | None = Field(default=None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if (self.least is None) != (self.most is None):
            raise ValueError("least and most must be given together")
        if self.least is not None and self.most is not None:
            if self.how != "random":
                raise ValueError('least and most belong to how = "random"')
            if self.least >= self.most:
                raise ValueError("least must be less than most")
        for key in NAMED:
            is_given = getattr(self, key) is not None
            if is_given != (key == self.how):
                raise ValueError(f'{key} belongs to how = "{key}"')
        return self


def fill_of(source: WorkloadInput, path: Path, element: str) -> str | None:
    """Returns the call that fills a buffer as a file says; `None` for arbitrary random numbers."""
    if source.least is not None:
        return f"ranged(to, count, {source.least!r}, {source.most!r})"
    if source.how == "entropy":
        return f"uniform(to, count, {round(float(source.entropy or 1) * 1000)})"
    if source.file is not None:
        return f'bytes_of(to, count, "{_file_beside(path, source.file)}")'
    if source.generator is not None:
        return f"made(to, count, {qualified(source.generator)}{{}})"
    return {
        "sorted": "rising(to, count)",
        "constant": f"constant(to, count, {element}{{}})",
        "bytes": "random_bytes(to, count)",
    }.get(source.how)


def _file_beside(workload: Path, name: str) -> str:
    path = str((workload.parent / name).resolve())  # no compiler reads it, so a link is allowed
    if not Path(path).is_file():
        raise InputError(
            f"{workload}: input: there is no file {name}",
            "It must be in the folder of the workload.",
        )
    if not _TEXT.fullmatch(path):
        raise InputError(
            f"{workload}: input: the path of {name} has characters that a compiler or"
            " make treats specially",
            "Move it.",
        )
    return path


def qualified(name: str | None) -> str | None:
    """Qualifies a functor's name so that it resolves in any namespace."""
    return name if name is None or name.startswith("::") else f"::{name}"


class WorkloadResult(Record):
    """When a result is correct: it must match the result of CUB's own policy."""

    tolerance: float = Field(default=0, ge=0, le=1, allow_inf_nan=False)
    """Allowed relative difference of a number; none: the bytes must be equal."""
    same: CppType | None = None
    """A functor that compares two elements."""

    @model_validator(mode="after")
    def _check_comparison(self) -> Self:
        if self.tolerance and self.same:
            raise ValueError("tolerance and same exclude each other")
        return self


class OwnWorkload(Record):
    """A CUB algorithm with your own types, operator, sizes and inputs."""

    algorithm: str
    """`DeviceReduce::Reduce`."""
    name: str | None = Field(default=None, max_length=61, pattern=r"^[A-Za-z_]\w*$")
    """Its name in results; default: the name of the file."""
    header: Beside | None = None
    """The header that declares the types and functors."""
    types: dict[str, CppType] = Field(default_factory=dict)
    """Axis → type: `T`, `OffsetT`."""
    operator: CppType | None = None
    size: tuple[WorkloadSize, ...] = Field(min_length=1, max_length=64)
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Further axes of the inputs, for example `MaxSegSize`, with their values."""
    input: WorkloadInput = WorkloadInput()
    result: WorkloadResult = WorkloadResult()

    @model_validator(mode="after")
    def _check_distinct_sizes(self) -> Self:
        counts = [size.elements for size in self.size]
        if len({*counts}) < len(counts):
            raise ValueError("the same number of elements appears twice")
        return self


MOST = 1_000_000
"""Maximum number of variants of a kernel: constraints are evaluated for each."""
ELEMENTS = "elements"
"""The name of the size in expressions."""
STRATEGY = "strategy"
"""The parameter that selects a strategy."""
AT_LAUNCH = frozenset({"sms", "resident", "best_block"})
"""Properties of the GPU: its multiprocessors, the blocks that are resident on all of them at once,
and the number of threads per block that keeps most of them busy."""
RESERVED = frozenset(
    {ELEMENTS, STRATEGY, "arena", "block", "buffers", "facts", "grid", "shared", "sizes", "stream"}
)
"""Names that have another meaning in units."""
Memory = Literal["device", "managed", "pinned"]
# 32:1024:32, -2:2:1
_RANGE = re.compile(r"(-?[0-9]{1,10}):(-?[0-9]{1,10}):([1-9][0-9]{0,9})")
_POWERS = re.compile(r"powers ([0-9]{1,9}):([0-9]{1,9})")
# 2.5f, -1e-6, 16ull
_NUMBER = re.compile(
    r"-?[0-9]+(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU]|(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)[fFlL]?)"
)
# Keywords and alternative operators of C++20
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export
extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
xor xor_eq
"""


# A user's kernel


def _no_keyword(name: str) -> str:
    if name in _KEYWORDS.split():
        raise ValueError(f"{name} is a C++ keyword and cannot be a name")
    return name


Plain = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,60}$")]
Name = Annotated[Plain, AfterValidator(_no_keyword)]
"""A name that is valid in C++."""


def _constant(text: str) -> str:
    if not _NUMBER.fullmatch(text) and text not in {"true", "false"}:
        raise ValueError(f"{text!r} is not a number")
    return text


class KernelParameter(Record):
    """A tuning parameter: a macro of the kernel's file, or a template argument."""

    macro: Name | None = None
    """The name of the macro; the file is then compiled once per value."""
    values: str | tuple[int, ...] | tuple[CppType, ...]
    """`32:1024:32`, `powers 32:1024`, `warps`, numbers, or names in C++."""
    default: int | CppType | None = None
    """Its current value; default: the first value."""

    @property
    def words(self) -> tuple[str, ...]:
        """The values as C++ names, which results number from 0; empty if values are numbers."""
        if isinstance(self.values, str):
            return ()
        return tuple(value for value in self.values if isinstance(value, str))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The values as in labels."""
        if isinstance(self.values, str):
            return _range_values("32:1024:32" if self.values == "warps" else self.values)
        return tuple(range(len(self.words))) or tuple(
            value for value in self.values if isinstance(value, int)
        )

    @property
    def start(self) -> int:
        """The current value as in labels."""
        if self.default is None:
            return self.numbers[0]
        if isinstance(self.default, str):
            return self.words.index(self.default)
        return self.default

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if not self.numbers:
            raise ValueError("it has no value")
        if len({*self.numbers}) < len(self.numbers) or len({*self.words}) < len(self.words):
            raise ValueError("a value appears twice")
        if any(abs(number) >= 1 << 31 for number in self.numbers):
            raise ValueError("a value is not an int")
        if self.default is not None and self.default not in (self.words or self.numbers):
            raise ValueError(f"default: {self.default} is not one of its values")
        return self


def _range_values(text: str) -> tuple[int, ...]:
    if match := _RANGE.fullmatch(text):
        start, end, step = map(int, match.groups())
        if (end - start) // step >= MOST:
            raise ValueError("it has too many values")
        return tuple(range(start, end + 1, step))
    if match := _POWERS.fullmatch(text):
        minimum, maximum = map(int, match.groups())
        return tuple(1 << exponent for exponent in range(31) if minimum <= 1 << exponent <= maximum)
    raise ValueError(f"{text!r} does not have the form 32:1024:32, powers 32:1024, or warps")


class KernelBuffer(Record):
    """A memory buffer of the kernel."""

    type: CppType
    count: ExpressionText = ELEMENTS
    input: WorkloadInput | None = None
    """Its contents; none if the kernel only writes to it."""
    result: bool = False
    """Whether it is a result to compare."""
    tolerance: float = Field(default=0, ge=0, le=1, allow_inf_nan=False)
    """Allowed relative difference of a number from the correct result."""
    same: CppType | None = None
    """A functor that compares two elements."""
    modified: bool = False
    """Whether the kernel both reads and writes it."""

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        if (self.tolerance or self.same) and not self.result:
            raise ValueError("tolerance and same belong to a result")
        if self.tolerance and self.same:
            raise ValueError("tolerance and same exclude each other")
        if self.modified and self.input is None:
            raise ValueError("a modified buffer needs an input")
        if self.input is None and not self.result:
            raise ValueError("it is neither an input nor a result")
        return self


class KernelScalar(Record):
    """A scalar argument of the kernel."""

    type: CppType
    value: Annotated[str, Field(max_length=60), AfterValidator(_constant)]


class KernelSize(WorkloadSize):
    """A size that matters, and the size class that it represents."""

    of: Plain | None = Field(default=None, alias="class")


class KernelStrategy(Record):
    """One of several alternatives to compare."""

    name: Name
    function: CppType | None = None
    grid: ExpressionText | None = None
    block: ExpressionText | None = None
    shared: ExpressionText | None = None
    memory: Memory | None = None


class OwnKernel(Record):
    """Your own kernel: its launch, its data, and its tuning parameters."""

    kernel: Beside
    """The source file of the kernel."""
    name: Plain | None = None
    """Its name in results; default: the name of the file."""
    header: Beside | None = None
    """The header that declares your own types and functors."""
    function: CppType | None = None
    """The kernel to launch: `saxpy<tpb, ipt>`."""
    arguments: tuple[Name, ...] = Field(min_length=1)
    """Buffers, scalars and `elements`, in the kernel's order."""
    grid: ExpressionText = f"ceil_div({ELEMENTS}, block)"
    block: ExpressionText
    shared: ExpressionText = "0"
    """Bytes of dynamic shared memory."""
    memory: Memory = "device"
    """The kind of memory of the buffers."""
    traffic: ExpressionText | None = None
    """Bytes that a run reads and writes; default: the sizes of the buffers."""
    reference: CppType | None = None
    """A host function that computes the correct results: the same arguments and a stream."""
    constraints: tuple[ExpressionText, ...] = ()
    includes: tuple[Annotated[str, Field(max_length=120, pattern=r"^[\w./]+$")], ...] = ()
    """Headers that the policy header includes, because values name their declarations."""
    parameter: dict[Name, KernelParameter] = Field(default_factory=dict)
    buffer: dict[Name, KernelBuffer] = Field(min_length=1, max_length=32)
    scalar: dict[Name, KernelScalar] = Field(default_factory=dict)
    strategy: tuple[KernelStrategy, ...] = Field(default=(), max_length=16)
    size: tuple[KernelSize, ...] = Field(min_length=1, max_length=64)

    @property
    def classes(self) -> tuple[str, ...]:
        """The size classes from the smallest up; a single one if none is named."""
        ordered = sorted(self.size, key=lambda size: size.elements)
        return tuple(dict.fromkeys(size.of or "all" for size in ordered))

    @property
    def every_parameter(self) -> dict[str, KernelParameter]:
        """All parameters, including the strategy if there are several."""
        if len(self.strategy) < 2:
            return dict(self.parameter)
        names = tuple(strategy.name for strategy in self.strategy)
        return {STRATEGY: KernelParameter(values=names), **self.parameter}

    @property
    def ways(self) -> tuple[KernelStrategy, ...]:
        """The strategies with defaults filled in; the kernel itself if it has none."""
        keys = ("function", "grid", "block", "shared", "memory")
        defaults = {key: getattr(self, key) for key in keys}
        return tuple(
            strategy.model_copy(
                update={
                    key: value for key, value in defaults.items() if getattr(strategy, key) is None
                }
            )
            for strategy in self.strategy or (KernelStrategy(name="kernel"),)
        )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        if prod(len(parameter.numbers) for parameter in self.every_parameter.values()) > MOST:
            yield f"it has more than {MOST:,} variants"
        if any(strategy.function is None for strategy in self.ways):
            yield "function is missing"
        if not any(buffer.result for buffer in self.buffer.values()):
            yield "no buffer is a result, so nothing could be compared"
        names_in_use = [*self.parameter, *self.buffer, *self.scalar, *RESERVED, *AT_LAUNCH]
        names_in_use += [
            parameter.macro for parameter in self.parameter.values() if parameter.macro
        ]
        if ambiguous := {name for name in names_in_use if names_in_use.count(name) > 1}:
            yield f"{min(ambiguous)} has several meanings"
        argument_names = {*self.buffer, *self.scalar, ELEMENTS}
        if unknown := [name for name in self.arguments if name not in argument_names]:
            yield f"arguments: {unknown[0]} is neither a buffer nor a scalar, nor {ELEMENTS}"
        yield from self._size_problems()
        strategy_names = [strategy.name for strategy in self.strategy]
        if len({*strategy_names}) < len(strategy_names):
            yield "a strategy appears twice"

    def _size_problems(self) -> Iterator[str]:
        counts = [size.elements for size in self.size]
        if len({*counts}) < len(counts):
            yield "the same number of elements appears twice"
        ordered = [size.of or "all" for size in sorted(self.size, key=lambda size: size.elements)]
        changes = 1 + sum(left != right for left, right in pairwise(ordered))
        if changes != len({*ordered}):
            yield "size: the sizes of one class lie between those of another"
