"""Makes bindings from a user's workload: a CUB benchmark with other types, sizes and inputs."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from policygen.bindings.load import (
    Bound,
    BoundFile,
    bindings,
    bound_by_files,
    is_constant,
    serving,
    types_in,
)
from policygen.errors import InputError
from policygen.model.bindings import (
    AxisType,
    BenchmarkBinding,
    BufferBinding,
    OwnCallBinding,
    RunBinding,
)
from policygen.model.own_workload import PREFIX, OwnWorkload, fill_of, qualified
from policygen.model.trees import BoundVersion, OwnFile

OPERATOR = "Op"
"""The axis whose value is the functor."""
ELEMENTS, ENTROPY = "Elements", "Entropy"
NUMBERS = {"random", "entropy", "sorted"}
"""Ways to fill a buffer that produce numbers."""
_BUILT_IN = re.compile(
    r"(?:const |unsigned |signed |long |short )*(?:bool|char|short|int|long|float|double|unsigned"
    r"|signed|__half|__nv_bfloat16|__u?int128_t)\b"
)
_AXIS = re.compile(r"\baxis::(\w+)")
_WORD = re.compile(r"(?<![\w:])[A-Za-z_]\w*(?!\w|::)")
"""An unqualified name."""


@dataclass(frozen=True, slots=True)
class OwnBinding:
    """The bindings that a user workload adds to an algorithm."""

    call: OwnCallBinding
    like: BenchmarkBinding
    benchmark: BenchmarkBinding
    run: RunBinding
    types: tuple[AxisType, ...]


def call_named(
    name: str,
    calls: Sequence[OwnCallBinding],
    later: Sequence[OwnCallBinding] = (),
    version: str = "",
) -> OwnCallBinding:
    """Finds the call for an algorithm: `DeviceReduce::Reduce`, with or without `cub::`.

    Raises for an unknown algorithm; the message says if one of the `later` versions of CUB has it.
    """
    algorithm = name.removeprefix("::").removeprefix("cub::")
    for call in calls:
        if call.algorithm == algorithm:
            return call
    for call in later:
        if call.algorithm == algorithm:
            raise InputError(
                f"CUB {version} does not accept a policy for {algorithm}",
                f"CUB {call.since} and later do: name such a tree with --cub.",
            )
    algorithms = sorted({call.algorithm for call in calls})
    suggestions = [
        f"Is {call} meant? " for call in difflib.get_close_matches(algorithm, algorithms, 1)
    ]
    raise InputError(
        f"a workload of your own cannot use {name}",
        "".join(suggestions) + f"Available: {', '.join(algorithms)}",
    )


@dataclass(frozen=True, eq=False)
class OwnMaker(BoundFile):
    """Makes bindings from a workload's file for one version of CUB."""

    given: OwnWorkload
    known: tuple[AxisType, ...]
    """The types of CUB's benchmarks."""
    spellings: Mapping[str, str]
    """How the compiler prints them."""

    @property
    def name(self) -> str:
        """The name in results."""
        return PREFIX + (self.given.name or re.sub(r"\W", "_", self.path.stem))

    def join(self, algorithms: tuple[Bound, ...], version: BoundVersion) -> tuple[Bound, ...]:
        """Returns a version's algorithms, the workload among its algorithm's benchmarks."""
        workload = own_binding(version)
        if workload is None:
            return algorithms
        return tuple(
            replace(
                algorithm,
                benchmarks=(*algorithm.benchmarks, workload.benchmark),
                selectors=serving(algorithm.selectors, [workload.benchmark]),
                runs=(*algorithm.runs, workload.run),
            )
            if workload.like in algorithm.benchmarks
            else algorithm
            for algorithm in algorithms
        )

    def added_types(self, version: BoundVersion) -> tuple[AxisType, ...]:
        """Returns the types of the workload's file."""
        workload = own_binding(version)
        return workload.types if workload else ()

    def make(
        self, call: OwnCallBinding, model: BenchmarkBinding, runs: Sequence[RunBinding]
    ) -> OwnBinding:
        """Returns the benchmark, its run and the types it adds."""
        values = self._values(call, model)
        type_by_axis = {axis: self._type(text) for axis, text in values.items()}
        for axis in call.numbers:
            if type_by_axis[axis] not in self.known:
                raise self._error(
                    f"types: {axis} of {call.algorithm} must be a numeric type, not"
                    f" {type_by_axis[axis].name}",
                    "For example F32, I64 or std::uint8_t.",
                )
        type_names = {axis: axis_type.name for axis, axis_type in type_by_axis.items()}
        roles = {**model.roles, **call.roles}
        if call.role is not None:
            roles[call.role] = f"axis::{OPERATOR}"
        benchmark = model.model_copy(
            update={
                "name": self.name,
                "like": model.name,
                "axes": {axis: (name,) for axis, name in type_names.items()},
                "roles": roles,
                "renamed": {},
                "ignored": (),
                "algorithm_call": None,
                "note": None,
            }
        )
        # Types of the user's own do not matter. If several runs are possible, their sub-benchmarks
        # differ in inputs only, which the file sets.
        constants = {axis: name for axis, name in type_names.items() if is_constant(name)}
        run = next(
            candidate
            for candidate in runs
            if all(value in candidate.workload.get(a, [value]) for a, value in constants.items())
        )
        own_types = tuple(
            axis_type for axis_type in type_by_axis.values() if axis_type not in self.known
        )
        return OwnBinding(
            call, model, benchmark, self._run(call, run, benchmark, type_by_axis), own_types
        )

    def _values(self, call: OwnCallBinding, model: BenchmarkBinding) -> dict[str, str]:
        """Returns the value of each axis, from the file or the binding's defaults."""
        workload = self.given
        types = {axis: text for axis, text in call.types.items() if axis in model.axes}
        if unknown := workload.types.keys() - types.keys():
            raise self._error(
                f"types: {call.algorithm} has no {', '.join(sorted(unknown))}",
                f"It has: {', '.join(types)}",
            )
        values = {**call.defaults, **workload.types}
        if missing := [axis for axis in types if axis not in values]:
            axis = missing[0]
            raise self._error(f"types: {axis} is missing: {types[axis]}", f'{axis} = "float"')
        values = {axis: values[axis] for axis in types}
        if call.operator is None and workload.operator is not None:
            raise self._error(f"{call.algorithm} takes no operator", "Omit it.")
        if call.operator is not None:
            functor = workload.operator or call.plain
            if functor is None:
                raise self._error(f"operator is missing: {call.operator}", "Name a functor.")
            values[OPERATOR] = functor
        return values

    def _type(self, text: str) -> AxisType:
        """Returns the type of CUB's benchmarks with this spelling, else a new type."""
        spelling = " ".join(text.split())
        for axis_type in self.known:
            if spelling.removeprefix("::") in self._names(axis_type):
                return axis_type
        if is_constant(spelling):
            return AxisType(name=spelling, cpp=spelling)
        cpp = (
            spelling if spelling.startswith("::") or _BUILT_IN.match(spelling) else f"::{spelling}"
        )
        return AxisType(name=spelling, cpp=cpp, header=self.given.header)

    def _names(self, axis_type: AxisType) -> set[str]:
        """Returns a known type's spellings: `I32`, `cuda::std::int32_t`, `int`."""
        cpp = axis_type.cpp.removeprefix("::")
        short = cpp.removeprefix("cuda::std::")
        names = {axis_type.name, cpp}
        if short in self.spellings or short.startswith("uint"):
            names |= {short, f"std::{short}", self.spellings.get(short, short)}
        return names

    def _run(
        self,
        call: OwnCallBinding,
        run: RunBinding,
        benchmark: BenchmarkBinding,
        type_by_axis: Mapping[str, AxisType],
    ) -> RunBinding:
        """Returns the run with the file's sizes and inputs."""
        workload = self.given
        if unknown := workload.axes.keys() - call.axes.keys():
            raise self._error(
                f"axes: {call.algorithm} has no {', '.join(sorted(unknown))}",
                f"It has: {', '.join(call.axes) or 'none'}",
            )
        axes = {ELEMENTS: tuple(str(size.elements) for size in workload.size)}
        axes |= {axis: workload.axes.get(axis, (value,)) for axis, value in call.axes.items()}
        if workload.input.entropy and ENTROPY in axes:
            axes[ENTROPY] = (workload.input.entropy,)
        buffers = {
            name: self._buffer(call, name, buffer, type_by_axis, _axis_of(buffer, benchmark))
            for name, buffer in run.buffers.items()
        }
        return run.of(run.every_subbench[0]).model_copy(
            update={
                "subbench": "base",
                "benchmarks": (self.name,),
                "workload": {},
                "axes": axes,
                "weights": {ELEMENTS: tuple(size.weight for size in workload.size)},
                "buffers": buffers,
                "includes": tuple(dict.fromkeys((*run.includes, *filter(None, [workload.header])))),
                "arguments": call.arguments or run.arguments,
                "sizes": run.sizes if call.sizes is None else call.sizes,
            }
        )

    def _buffer(
        self,
        call: OwnCallBinding,
        name: str,
        buffer: BufferBinding,
        type_by_axis: Mapping[str, AxisType],
        axis: str,
    ) -> BufferBinding:
        """Returns a buffer with the file's inputs, or with the checks that its element type needs.

        Counts are always compared exactly.
        """
        axis_type = type_by_axis.get(axis)
        workload, update = self.given, dict[str, object]()
        if name in call.fills:
            update = {"fill": call.fills[name], "exact": None}
        own_type = axis_type.name if axis_type is not None and axis_type not in self.known else None
        if own_type or workload.operator is not None:
            update["exact"] = None
        if name in call.inputs:
            kind = workload.input.how
            if own_type and kind in NUMBERS:
                raise self._error(
                    f'input: how = "{kind}" generates numbers, but an element is {own_type}',
                    'Use how = "generator" with a functor that makes an element from an index and'
                    ' 64 random bits, or how = "bytes", "constant" or "file".',
                )
            is_benchmarks = kind == "entropy" and ENTROPY in call.axes
            if not is_benchmarks and (fill := fill_of(workload.input, self.path, buffer.type)):
                update |= {"fill": fill, "exact": None}
        if buffer.result in {"equal", "close"} and axis in call.types and axis not in call.defaults:
            result = workload.result
            update |= {"result": "close" if result.tolerance else "equal"}
            update |= {"tolerance": result.tolerance, "same": qualified(result.same)}
        return buffer.model_copy(update=update)

    def _error(self, message: str, remedy: str) -> InputError:
        return InputError(f"{self.path}: {message}", remedy)


def header_of(own: OwnFile | None) -> str | None:
    """Returns the header that declares a workload's types, if it has one."""
    return own.given.header if isinstance(own, OwnMaker) else None


def _axis_of(buffer: BufferBinding, benchmark: BenchmarkBinding) -> str:
    """Returns the axis of a buffer's element type, or an empty string for counts."""
    text = buffer.type
    for _ in benchmark.roles:  # a role may refer to other roles
        text = _WORD.sub(lambda match: benchmark.roles.get(match[0], match[0]), text)
    axes = [name for name in _AXIS.findall(text) if name != OPERATOR]
    return axes[-1] if axes else ""


@cache
def own_binding(version: BoundVersion) -> OwnBinding | None:
    """Returns the user's workload as a benchmark of the version, if there is one."""
    maker = version.own
    if not isinstance(maker, OwnMaker) or version.library != "cub":
        return None
    algorithms = bound_by_files(version)
    all_calls = [call for binding in bindings() for call in binding.own]
    calls = [call for algorithm in algorithms for call in algorithm.own]
    call = call_named(maker.given.algorithm, calls, all_calls, version.plain)
    (algorithm,) = (algorithm for algorithm in algorithms if call in algorithm.own)
    model = next(benchmark for benchmark in algorithm.benchmarks if benchmark.name == call.like)
    runs = [run for run in algorithm.runs if model.name in run.benchmarks]
    return replace(maker, known=types_in(version)).make(call, model, runs)
