"""The binding of a benchmark of one's own: a file that joins the bindings of its algorithm."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from policygen.app.benchmark_source import NewSource, value_named
from policygen.bindings.own import OPERATOR
from policygen.model.bench import ParameterRange
from policygen.model.run_binding import RunBinding
from policygen.source.benchmarks.knowledge import knowledge

_BARE = re.compile(r"[A-Za-z0-9_-]+")


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
