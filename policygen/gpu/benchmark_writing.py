"""The source of a benchmark of one's own, as CUB's folder of benchmarks has them."""

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
from policygen.gpu.units import WorkloadRun
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
"""What a macro's argument cannot have."""


def value_named(one: AxisType) -> str:
    """What a type is called as the value of an axis: a word, also where it is one of one's own."""
    known = knowledge().types
    if found := known.strings.get(known.same.get(one.name, one.name)):
        return found  # `unsigned long` is U64
    return re.sub(r"\W+", "_", one.name.removeprefix("::")).strip("_")


@dataclass(frozen=True)
class NewSource:
    """What a source is made of."""

    own: OwnBinding
    run: WorkloadRun
    policy: SelectorPart | HubPart
    ranges: Sequence[ParameterRange]
    header: str | None
    """Of the workload's own, beside the source."""
    axes: Mapping[str, tuple[str, ...]]
    """Runtime axis as NVBench calls it → its values."""

    @property
    def text(self) -> str:
        """The whole file."""
        vectors = self._vectors
        values = {
            "includes": list(self._includes(vectors)),
            "about": (self.own.call.algorithm, self.own.like.name),
            "ranges": [one.model_dump() for one in self.ranges],
            "aliases": self._aliases,
            "declared": self._declared,
            "constants": bool(self._constants),
            "operator": self.operator,
            "declares": self._declares(),
            "made": any(_MADE in line for one in vectors.values() for line in one.then),
            "policy": self._parameters() | self.policy.values(self._names, self.ranges),
            "axes": [
                {"name": axis, "list": self._list_name(axis), "cpp": self._listed(one)}
                for axis, one in self._typed.items()
                if axis != OPERATOR
            ],
            "roles": list(self._roles()),
            "runtime": dict(self._runtime()),
            "skip": self._names.spell(self.run.binding.skip or ""),
            "buffers": list(self._buffers(vectors)),
            "setup": [self._names.spell(self.run.binding.setup)] * bool(self.run.binding.setup),
            "env": None if self._env == "env" else self._env,
            "call": self._call(),
            "registered": list(self._registered()),
        }
        return fill(self.policy.template, values)

    @property
    def operator(self) -> str | None:
        """The functor, where there is a place for one."""
        one = self._typed.get(OPERATOR)
        return None if one is None else one.cpp

    @cached_property
    def _typed(self) -> dict[str, AxisType]:
        version = self.run.cub.bindings
        return {
            axis: AxisType(name=name, cpp=name) if is_constant(name) else axis_type(name, version)
            for axis, name in self.run.workload.values.items()
        }

    @cached_property
    def _constants(self) -> dict[str, str]:
        return {axis: one.name for axis, one in self._typed.items() if is_constant(one.name)}

    @cached_property
    def _names(self) -> SourceNames:
        binding = self.run.binding.model_copy(update={"axes": self.axes})
        return source_names(
            self.own.benchmark, binding, self._constants, OPERATOR, self.policy.words
        )

    @cached_property
    def _vectors(self) -> dict[str, FilledVector]:
        buffers = self.run.binding.buffers
        return {name: filled(name, one, self._names) for name, one in buffers.items()}

    @property
    def _strange(self) -> dict[str, AxisType]:
        """The types that NVBench has no string for, by what they are called."""
        known = knowledge().written.types
        return {
            value_named(one): one
            for axis, one in self._typed.items()
            if axis != OPERATOR and value_named(one) not in known and not is_constant(one.name)
        }

    @property
    def _aliases(self) -> dict[str, str]:
        return {name: a.cpp for name, a in self._strange.items() if _NO_TYPE_LIST & set(a.cpp)}

    @property
    def _declared(self) -> dict[str, str]:
        aliases = self._aliases
        return {name if name in aliases else a.cpp: name for name, a in self._strange.items()}

    def _listed(self, one: AxisType) -> str:
        """A type, or a constant, in a list of types."""
        if (known := knowledge().written.types.get(value_named(one))) is not None:
            return known
        if is_constant(one.name):
            return f"::cuda::std::integral_constant<int, {one.name}>"
        name = value_named(one)
        return name if name in self._aliases else one.cpp

    @staticmethod
    def _list_name(axis: str) -> str:
        return f"{in_style(axis.removesuffix('T')) or 'value'}_axis"

    def _includes(self, vectors: Mapping[str, FilledVector]) -> Iterator[list[str]]:
        binding, benchmark = self.run.binding, self.run.benchmark
        headers = {*binding.includes, *axis_headers(self.run.workload, self.run.cub.bindings)}
        headers |= {*self.policy.includes}
        others = sorted({*headers, *(n for one in vectors.values() for n in one.includes)})
        yield [f"<{benchmark.call_header}>"] if benchmark.call_header else []
        kept = [f"<{name}>" for name in others if name not in (self.header, benchmark.call_header)]
        yield from filter(None, [kept, [HELPER], [f'"{self.header}"'] if self.header else []])

    def _declares(self) -> list[str]:
        """The templates of functors that the call names, and that no header of CCCL's has."""
        said = " ".join(self.policy.said(self.run.binding))
        return [word for word in self.policy.words if word in said]

    def _parameters(self) -> dict[str, object]:
        """Of what makes the policy, and what it is given."""
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
        said = [binding.skip or "", binding.setup, *binding.sizes.values()]
        said += self.policy.said(binding)
        for one in binding.buffers.values():
            said += [one.type, one.count, one.fill or ""]
        used = self._names.needed(said)
        wanted = used | self._names.needed(list(self.policy.roles))
        for role, text in self._names.roles.items():
            if role in wanted:
                cpp = self._names.spell(text)
                yield {"name": in_style(role), "cpp": cpp, "unused": role not in used}

    def _runtime(self) -> Iterator[tuple[str, str]]:
        for axis in self.axes:
            plain = re.sub(r"\[[^\]]*\]", "", axis)
            name = self._names.known[re.sub(r"\{[^}]*\}", "", plain)]
            entropy = name == in_style(ENTROPY)
            got = f'state.get_string("{plain}")' if entropy else f'state.get_int64("{plain}")'
            yield name, f"str_to_entropy({got})" if entropy else got
        for size, text in self.run.binding.sizes.items():
            if text not in self._names.known:
                yield size, self._names.spell(text)

    def _buffers(self, vectors: Mapping[str, FilledVector]) -> Iterator[dict[str, object]]:
        for name, one in self.run.binding.buffers.items():
            yield {
                "name": name,
                "type": self._names.spell(one.type),
                "count": self._names.spell(one.count),
                "init": vectors[name].init,
                "then": vectors[name].then,
                "read": one.fill is not None,
                "written": one.result is not None,
                "modified": one.modified,
            }

    @property
    def _env(self) -> str:
        return self.run.binding.environment

    def _call(self) -> list[str]:
        binding = self.run.binding
        env = "env" if self._env == "env" else "call_env"
        call = f"{binding.function}({self._names.spell(binding.arguments)}, {env})"
        return wrapped("", f"NVBENCH_CUDA_CALL({call})", ";", 2)

    def _registered(self) -> Iterator[str]:
        for axis, values in self.axes.items():
            plain = re.sub(r"\[[^\]]*\]", "", axis)
            if plain == ENTROPY:
                kind, listed = "string", ", ".join(f'"{value}"' for value in values)
            else:
                kind = "int64_power_of_two" if axis != plain else "int64"
                listed = ", ".join(values)
            yield f'.add_{kind}_axis("{plain}", {{{listed}}})'


def runtime_axes(own: OwnBinding) -> dict[str, tuple[str, ...]]:
    """The runtime axes as NVBench calls them; sizes that are powers of two are exponents."""
    found: dict[str, tuple[str, ...]] = {}
    for axis, values in own.run.axes.items():
        if axis == ELEMENTS:
            sizes = [int(value) for value in values]
            powers = all(size & (size - 1) == 0 for size in sizes)
            name = f"{ELEMENTS}{{io}}{'[pow2]' if powers else ''}"
            found[name] = tuple(str(n.bit_length() - 1 if powers else n) for n in sizes)
            continue
        right = ENTROPIES if axis == ENTROPY else [v for v in values if re.fullmatch(r"\d+", v)]
        if wrong := [value for value in values if value not in right]:
            raise InputError(
                f"axes: {axis} has no value {wrong[0]!r}",
                f"It is one of {', '.join(ENTROPIES)}." if axis == ENTROPY else "It is a number.",
            )
        found[axis] = values
    return found


_BARE = re.compile(r"[A-Za-z0-9_-]+")


# The binding of a benchmark of one's own: a file that joins the bindings of its algorithm.


def binding_text(name: str, source: NewSource) -> str:
    """The file, for a benchmark of this name."""
    algorithm = source.policy.algorithm.algorithm
    lines = [
        f"# {name}: policygen knows it where its settings name this file, or its folder:",
        '#   bindings = "…"',
        *_pairs({"algorithm": algorithm}),
        "",
        *_table("[[benchmark]]", "benchmark", _benchmark(name, source)),
        "",
        *_table("[[run]]", "run", _run(name, source)),
    ]
    for one in source.own.types:
        strange = value_named(one) not in knowledge().written.types
        if strange and one.name != source.own.benchmark.axes.get(OPERATOR, ("",))[0]:
            kept = {"name": value_named(one), "cpp": one.cpp}
            lines += ["", *_table("[[types]]", "types", kept)]
    return "\n".join([*lines, ""])


def _benchmark(name: str, source: NewSource) -> dict[str, Any]:
    own, like = source.own.benchmark, source.own.like
    named = {one.name: value_named(one) for one in source.own.types}
    found = own.model_dump(exclude_defaults=True, by_alias=True)
    since, below = source.policy.range(like.since, like.below)
    first = {"name": name, "like": like.name, "since": since, "below": below}
    found |= {
        "axes": {
            axis: [named.get(value, value) for value in values]
            for axis, values in own.axes.items()
            if axis != OPERATOR
        },
        "parameters": {one.label: _range(one) for one in source.ranges},
        "includes": [source.header] if source.header else [],
    }
    found = {**first, **{key: value for key, value in found.items() if key not in first}}
    return {key: _with_operator(value, source) for key, value in found.items()}


def _run(name: str, source: NewSource) -> dict[str, Any]:
    run: RunBinding = source.own.run
    found = run.model_dump(exclude_defaults=True, by_alias=True)
    found |= {
        "benchmarks": [name],
        "includes": [one for one in run.includes if one != source.header],
        "axes": dict(source.axes),
        "weights": {
            axis: list(run.weights[plain])
            for axis in source.axes
            for plain in run.weights
            if axis.startswith(plain) and {*run.weights[plain]} != {1}
        },
    }
    return {key: _with_operator(value, source) for key, value in found.items()}


def _with_operator(values: Any, source: NewSource) -> Any:
    """With the functor's name wherever the workload's axis stands for it."""
    if isinstance(values, dict):
        return {key: _with_operator(value, source) for key, value in values.items()}
    if isinstance(values, str):
        return re.sub(rf"\baxis::{OPERATOR}\b", lambda _: source.operator or "", values)
    return values


def _range(one: ParameterRange) -> str:
    return f"{one.start}:{one.end}:{one.step}"


def _table(head: str, path: str, values: Mapping[str, Any]) -> Iterator[str]:
    """A table: what is plain first, then the tables in it."""
    yield head
    within = {k: v for k, v in values.items() if isinstance(v, Mapping) and v}
    yield from _pairs({k: v for k, v in values.items() if k not in within})
    for key, value in within.items():
        deeper = [k for k, v in value.items() if isinstance(v, Mapping) and len(v) > 2]
        if deeper:
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
        kept = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {kept} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # A string of JSON is one of TOML.
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
