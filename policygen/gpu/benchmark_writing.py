"""Source and binding of a user benchmark, in the layout of CUB's benchmark folder."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policygen.bindings.load import axis_type, is_constant
from policygen.bindings.own_workloads import OPERATOR, OwnBinding
from policygen.errors import InputError
from policygen.gpu.benchmark_policy import (
    ELEMENTS,
    ENTROPY,
    FilledVector,
    HubPart,
    SelectorPart,
    SourceNames,
    filled,
    in_style,
    source_names,
)
from policygen.gpu.units import WorkloadRun, plain_axis
from policygen.headers.search_space import knowledge
from policygen.headers.user.header import wrapped
from policygen.model.benchmarks import ParameterRange
from policygen.model.bindings import AxisType, RunBinding
from policygen.model.own_workload import ENTROPIES
from policygen.proof.units import axis_headers
from policygen.rendering import fill

HELPER = "<nvbench_helper.cuh>"
_MADE = "made_t<"
_NO_TYPE_LIST = set("<,")
"""Characters that a macro argument cannot contain."""


def value_named(type_: AxisType) -> str:
    """Return the axis value that names a type: a single word, also for user types."""
    types = knowledge().types
    if name := types.strings.get(types.same.get(type_.name, type_.name)):
        return name  # `unsigned long` is U64
    return re.sub(r"\W+", "_", type_.name.removeprefix("::")).strip("_")


@dataclass(frozen=True)
class NewSource:
    """Everything that a benchmark source is generated from."""

    own: OwnBinding
    run: WorkloadRun
    """Its runtime axes are named in NVBench's syntax."""
    policy: SelectorPart | HubPart
    ranges: Sequence[ParameterRange]
    header: str | None
    """Header of the workload itself, beside the source."""

    @property
    def text(self) -> str:
        """The source file."""
        binding = self.run.binding
        call, aliases = " ".join(self.policy.said(binding)), self._aliases
        values = {
            "includes": list(self._includes()),
            "about": (self.own.call.algorithm, self.own.like.name),
            "ranges": [parameter.model_dump() for parameter in self.ranges],
            "aliases": aliases,
            "declared": {
                name if name in aliases else type_.cpp: name
                for name, type_ in self._unlisted_types.items()
            },
            "constants": bool(self._constants),
            "operator": self.operator,
            # Functor templates that the call names and that no CCCL header declares.
            "declares": [word for word in self.policy.words if word in call],
            "made": any(_MADE in line for vector in self._vectors.values() for line in vector.then),
            "policy": self._parameters() | self.policy.values(self._names, self.ranges),
            "axes": [
                {"name": axis, "list": self._list_name(axis), "cpp": self._type_list_entry(type_)}
                for axis, type_ in self._types_by_axis.items()
                if axis != OPERATOR
            ],
            "roles": list(self._roles()),
            "runtime": dict(self._runtime()),
            "skip": self._names.spell(binding.skip or ""),
            "buffers": list(self._buffers()),
            "setup": [self._names.spell(binding.setup)] * bool(binding.setup),
            "env": None if binding.environment == "env" else binding.environment,
            "call": self._call(),
            "registered": list(self._axis_registrations()),
        }
        return fill(self.policy.template, values)

    @property
    def operator(self) -> str | None:
        """The functor, if the algorithm takes one."""
        type_ = self._types_by_axis.get(OPERATOR)
        return None if type_ is None else type_.cpp

    @cached_property
    def _types_by_axis(self) -> dict[str, AxisType]:
        version = self.run.cub.bindings
        return {
            axis: AxisType(name=name, cpp=name) if is_constant(name) else axis_type(name, version)
            for axis, name in self.run.workload.values.items()
        }

    @cached_property
    def _constants(self) -> dict[str, str]:
        types = self._types_by_axis.items()
        return {axis: type_.name for axis, type_ in types if is_constant(type_.name)}

    @cached_property
    def _names(self) -> SourceNames:
        binding = self.run.binding.model_copy(update={"axes": self.run.axes})
        benchmark, declared = self.own.benchmark, self.policy.words
        return source_names(benchmark, binding, self._constants, OPERATOR, declared)

    @cached_property
    def _vectors(self) -> dict[str, FilledVector]:
        buffers = self.run.binding.buffers
        return {name: filled(name, buffer, self._names) for name, buffer in buffers.items()}

    @property
    def _unlisted_types(self) -> dict[str, AxisType]:
        """Types for which NVBench has no string, by their axis value."""
        types = (type_ for axis, type_ in self._types_by_axis.items() if axis != OPERATOR)
        named = {value_named(type_): type_ for type_ in types if not is_constant(type_.name)}
        return {name: named[name] for name in named if name not in knowledge().written.types}

    @property
    def _aliases(self) -> dict[str, str]:
        types = self._unlisted_types.items()
        return {name: type_.cpp for name, type_ in types if _NO_TYPE_LIST & set(type_.cpp)}

    def _type_list_entry(self, type_: AxisType) -> str:
        """Return a type or constant as an entry of a type list."""
        if (cpp := knowledge().written.types.get(value_named(type_))) is not None:
            return cpp
        if is_constant(type_.name):
            return f"::cuda::std::integral_constant<int, {type_.name}>"
        name = value_named(type_)
        return name if name in self._aliases else type_.cpp

    @staticmethod
    def _list_name(axis: str) -> str:
        return f"{in_style(axis.removesuffix('T')) or 'value'}_axis"

    def _includes(self) -> Iterator[list[str]]:
        binding, benchmark = self.run.binding, self.run.benchmark
        headers = {*binding.includes, *axis_headers(self.run.workload, self.run.cub.bindings)}
        headers |= {*self.policy.includes}
        headers |= {header for vector in self._vectors.values() for header in vector.includes}
        yield [f"<{benchmark.call_header}>"] if benchmark.call_header else []
        other_headers = sorted(headers - {self.header, benchmark.call_header})
        cub_headers = [f"<{name}>" for name in other_headers]
        yield from filter(
            None, [cub_headers, [HELPER], [f'"{self.header}"'] if self.header else []]
        )

    def _parameters(self) -> dict[str, object]:
        """Return the template parameters and arguments of the policy."""
        return {
            "parameters": [
                f"{self._kind(role)} {role.removeprefix('axis::')}" for role in self.policy.roles
            ],
            "arguments": [self._names.spell(role) for role in self.policy.roles],
        }

    def _kind(self, role: str) -> str:
        constants = self.own.benchmark.constants
        if role not in constants:
            return "typename"
        text = constants[role]
        value = self._constants.get(text.removeprefix("axis::"), text)
        return "bool" if value in {"true", "false"} else "int"

    def _roles(self) -> Iterator[dict[str, object]]:
        binding = self.run.binding
        texts = [binding.skip or "", binding.setup, *binding.sizes.values()]
        texts += self.policy.said(binding)
        for buffer in binding.buffers.values():
            texts += [buffer.type, buffer.count, buffer.fill or ""]
        used = self._names.needed(texts)
        needed = used | self._names.needed(list(self.policy.roles))
        for role, text in self._names.roles.items():
            if role in needed:
                cpp = self._names.spell(text)
                yield {"name": in_style(role), "cpp": cpp, "unused": role not in used}

    def _runtime(self) -> Iterator[tuple[str, str]]:
        for axis in self.run.axes:
            plain = axis.partition("[")[0]
            name = self._names.known[plain_axis(axis)]
            entropy = name == in_style(ENTROPY)
            getter = f'state.get_string("{plain}")' if entropy else f'state.get_int64("{plain}")'
            yield name, f"str_to_entropy({getter})" if entropy else getter
        for size, text in self.run.binding.sizes.items():
            if text not in self._names.known:
                yield size, self._names.spell(text)

    def _buffers(self) -> Iterator[dict[str, object]]:
        for name, buffer in self.run.binding.buffers.items():
            yield {
                "name": name,
                "type": self._names.spell(buffer.type),
                "count": self._names.spell(buffer.count),
                "init": self._vectors[name].init,
                "then": self._vectors[name].then,
                "read": buffer.fill is not None,
                "written": buffer.result is not None,
                "modified": buffer.modified,
            }

    def _call(self) -> list[str]:
        binding = self.run.binding
        env = "env" if binding.environment == "env" else "call_env"
        call = f"{binding.function}({self._names.spell(binding.arguments)}, {env})"
        return wrapped("", f"NVBENCH_CUDA_CALL({call})", ";", 2)

    def _axis_registrations(self) -> Iterator[str]:
        for axis, values in self.run.axes.items():
            name = axis.partition("[")[0]
            if name == ENTROPY:
                kind, value_list = "string", ", ".join(f'"{value}"' for value in values)
            else:
                kind = "int64_power_of_two" if axis != name else "int64"
                value_list = ", ".join(values)
            yield f'.add_{kind}_axis("{name}", {{{value_list}}})'


def runtime_axes(own: OwnBinding) -> dict[str, tuple[str, ...]]:
    """Return the runtime axes in NVBench syntax; power-of-two sizes are exponents."""
    axes: dict[str, tuple[str, ...]] = {}
    for axis, values in own.run.axes.items():
        if axis == ELEMENTS:
            sizes = [int(value) for value in values]
            powers = all(size & (size - 1) == 0 for size in sizes)
            name = f"{ELEMENTS}{{io}}{'[pow2]' if powers else ''}"
            axes[name] = tuple(str(size.bit_length() - 1 if powers else size) for size in sizes)
            continue
        numbers = [value for value in values if re.fullmatch(r"\d+", value)]
        valid_values = ENTROPIES if axis == ENTROPY else numbers
        if invalid := [value for value in values if value not in valid_values]:
            raise InputError(
                f"axes: {axis} has no value {invalid[0]!r}",
                f"It is one of {', '.join(ENTROPIES)}." if axis == ENTROPY else "It is a number.",
            )
        axes[axis] = values
    return axes


_BARE = re.compile(r"[A-Za-z0-9_-]+")


# The binding file


def binding_text(name: str, source: NewSource) -> str:
    """Return the binding file of a benchmark, which adds to the bindings of its algorithm."""
    algorithm = source.policy.algorithm.algorithm
    lines = [
        f"# {name}: policygen uses it if its settings name this file or its folder:",
        '#   bindings = "…"',
        *_pairs({"algorithm": algorithm}),
        "",
        *_table("[[benchmark]]", "benchmark", _benchmark(name, source)),
        "",
        *_table("[[run]]", "run", _run(name, source)),
    ]
    for type_ in source.own.types:
        is_unknown = value_named(type_) not in knowledge().written.types
        if is_unknown and type_.name != source.own.benchmark.axes.get(OPERATOR, ("",))[0]:
            fields = {"name": value_named(type_), "cpp": type_.cpp}
            lines += ["", *_table("[[types]]", "types", fields)]
    return "\n".join([*lines, ""])


def _benchmark(name: str, source: NewSource) -> dict[str, Any]:
    binding, like = source.own.benchmark, source.own.like
    value_names = {type_.name: value_named(type_) for type_ in source.own.types}
    fields = binding.model_dump(exclude_defaults=True, by_alias=True)
    since, below = source.policy.range(like.since, like.below)
    leading = {"name": name, "like": like.name, "since": since, "below": below}
    fields |= {
        "axes": {
            axis: [value_names.get(value, value) for value in values]
            for axis, values in binding.axes.items()
            if axis != OPERATOR
        },
        "parameters": {
            parameter.label: f"{parameter.start}:{parameter.end}:{parameter.step}"
            for parameter in source.ranges
        },
        "includes": [source.header] if source.header else [],
    }
    fields = {**leading, **{key: value for key, value in fields.items() if key not in leading}}
    return {key: _with_operator(value, source) for key, value in fields.items()}


def _run(name: str, source: NewSource) -> dict[str, Any]:
    run: RunBinding = source.own.run
    fields = run.model_dump(exclude_defaults=True, by_alias=True)
    fields |= {
        "benchmarks": [name],
        "includes": [header for header in run.includes if header != source.header],
        "axes": dict(source.run.axes),
        "weights": {
            axis: list(run.weights[plain])
            for axis in source.run.axes
            for plain in run.weights
            if axis.startswith(plain) and {*run.weights[plain]} != {1}
        },
    }
    return {key: _with_operator(value, source) for key, value in fields.items()}


def _with_operator(values: Any, source: NewSource) -> Any:
    """Replace the workload axis of the operator with the functor's name."""
    if isinstance(values, dict):
        return {key: _with_operator(value, source) for key, value in values.items()}
    if isinstance(values, str):
        return re.sub(rf"\baxis::{OPERATOR}\b", lambda _: source.operator or "", values)
    return values


def _table(head: str, path: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a TOML table: plain values first, then nested tables."""
    yield head
    tables = {name: table for name, table in values.items() if isinstance(table, Mapping) and table}
    yield from _pairs({name: field for name, field in values.items() if name not in tables})
    for key, value in tables.items():
        nested = [
            field for field, inner in value.items() if isinstance(inner, Mapping) and len(inner) > 2
        ]
        if nested:
            for name in value:
                yield from _table(f"[{path}.{key}.{_key(name)}]", "", value[name])
        else:
            yield f"[{path}.{key}]"
            yield from _pairs(value)


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if value not in (None, [], {}, ()):
            yield f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        fields = ", ".join(
            f"{_key(name)} = {_value(field)}" for name, field in value.items() if field is not None
        )
        return f"{{ {fields} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # A JSON string is a valid TOML string.
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
