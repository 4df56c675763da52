"""Parses the names of rocPRIM's benchmarks: the algorithm, its types, its configuration.

Format:
`{lvl:device,algo:reduce,key_type:int,cfg:{bs:256,ipt:16,method:using_warp_reduce}}/manual_time`, or
the same as JSON; `cfg:default_config` is the library's default. Names without keys, as in the
format `human`, carry too little. primbench has the same as the object `meta`, where `algo` is
`device_reduce` and `cfg` is `default`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.model.arch import is_amd, parse_arch
from policygen.model.workload import BASE, IDENTIFIER, LIMIT, parse_label
from policygen.results.tuners.formats import (
    LETTERS,
    MOST_AXES,
    MOST_ENTRIES,
    MOST_PARAMETERS,
    DoubledNames,
    TunedEntry,
    TunedFile,
    TunedValue,
    listed_at,
    members,
    quoted,
    text_at,
)

LIBRARY = "rocprim"
DEFAULTS = ("default_config", "default")
EMPTY = "rocprim::empty_type"
"""The placeholder for an absent type; benchmarks omit its namespace."""
LONGEST_NAME = 4_000
DEEPEST = 4
# device_radix_sort_onesweep; SQLite takes upper and lower case for the same
_ALGORITHM = re.compile(r"[a-z][a-z0-9_]{0,99}", re.ASCII)
_AXIS = re.compile(r"[a-z][a-z0-9_]{0,60}", re.ASCII)
# custom_type<int,int>, rocprim::half, 0.5
_VALUE = re.compile(rf"[\w.:<>,()&*+ -]{{1,{LETTERS}}}", re.ASCII)
_PARAMETER = re.compile(IDENTIFIER)
# /iterations:10/manual_time, /manual_time_mean
_REST = re.compile(r"(?:/[A-Za-z_][\w:.]*?)*(?:_(mean|median|stddev|cv))?", re.ASCII)
_KEY = re.compile(r"\s*(\w+)\s*:(?!:)\s*", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_TRUTH = {"true": True, "false": False}
_OPEN, _CLOSE = "<(", ">)"
_Nested = list[tuple[str, "_NestedValue"]]
_NestedValue = str | int | float | bool | _Nested


Kernel = tuple[str, tuple[tuple[str, str], ...]]
"""An algorithm, and its types."""


@dataclass(frozen=True, slots=True)
class RocprimName:
    """The parts of a name."""

    algorithm: str
    """`device_reduce`."""
    workload: Mapping[str, str]
    """`key_type` is `int`: everything except the algorithm and its configuration."""
    config: Mapping[str, TunedValue] | None
    """By parameter; None for the library's default."""
    aggregate: str
    """`mean` for an aggregate over all repetitions."""

    @property
    def kernel(self) -> Kernel:
        """The algorithm, and its types."""
        return self.algorithm, tuple(sorted(self.workload.items()))


def parse_name(text: str) -> RocprimName:
    """Parses a name; raises ValueError with the reason if it is invalid."""
    if len(text) > LONGEST_NAME:
        raise ValueError(f"it has more than {LONGEST_NAME:,} characters")
    end = text.rfind("}") + 1
    rest = _REST.fullmatch(text[end:])
    if not text.startswith("{") or end == 0 or rest is None:
        raise ValueError("it does not name what ran")
    if '"' in text[:end]:
        pairs = _parse_json(text[:end])
    else:
        pairs, end_of_pairs = _parse_braces(text[:end], 0, 1)
        if end_of_pairs != end:
            raise ValueError("it ends before its last brace")
    return _name_from_pairs(pairs, rest[1] or "")


def parse_meta(meta: Mapping[str, Any]) -> RocprimName:
    """Parses a name that is already an object."""
    return _name_from_pairs(_check_nested(meta.items(), dict, 1), "")


def _name_from_pairs(pairs: "_Nested", aggregate: str) -> RocprimName:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("it names something twice")
    if "cfg" not in values:
        raise ValueError("it has no cfg")
    level, algorithm = _single_word(values.pop("lvl", None)), _single_word(values.pop("algo", None))
    if not algorithm.startswith(f"{level}_"):
        algorithm = f"{level}_{algorithm}"
    part = _single_word(values.pop("subalgo", ""))
    return RocprimName(
        algorithm=algorithm_name(f"{algorithm}_{part}" if part else algorithm),
        config=_config(values.pop("cfg")),
        workload=checked_workload({name: _single_word(value) for name, value in values.items()}),
        aggregate=aggregate,
    )


def algorithm_name(text: str) -> str:
    """Validates an algorithm name: it must precede a label without ambiguity."""
    if not _ALGORITHM.fullmatch(text) or text == BASE or parse_label(text):
        raise ValueError(f"{quoted(text)} is not the name of an algorithm")
    return text


def checked_workload(axes: Mapping[str, str]) -> dict[str, str]:
    """Validates compile-time axes and values for use in a database."""
    if len(axes) > MOST_AXES:
        raise ValueError(f"it has more than {MOST_AXES} axes")
    workload = {}
    for axis, value in axes.items():
        if not _AXIS.fullmatch(axis):
            raise ValueError(f"{quoted(axis)} is not the name of an axis")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"{axis}, {quoted(value)}, is not a type or number")
        workload[axis] = EMPTY if value == EMPTY.rpartition(":")[2] else value
    return workload


def _single_word(value: "_NestedValue | None") -> str:
    if isinstance(value, list):
        raise ValueError("it has several values where one should be")  # noqa: TRY004
    if value is None:
        raise ValueError("it does not name its lvl and its algo")
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _config(cfg: _NestedValue) -> dict[str, TunedValue] | None:
    if not isinstance(cfg, list):
        if _single_word(cfg) not in DEFAULTS:
            raise ValueError(f"its cfg, {quoted(_single_word(cfg))}, is not a configuration")
        return None
    values: dict[str, TunedValue] = {}
    for name, plain in _flatten(cfg, ()):
        if not _PARAMETER.fullmatch(name):
            raise ValueError(f"{quoted(name)} is not the name of a parameter")
        if name in values:
            raise ValueError(f"it names {name} twice")
        values[name] = plain
    if not 0 < len(values) <= MOST_PARAMETERS:
        raise ValueError(f"{len(values)} parameters, but only 1 to {MOST_PARAMETERS} are possible")
    return values


def _flatten(pairs: _Nested, outer_names: tuple[str, ...]) -> Iterator[tuple[str, TunedValue]]:
    """Flattens nested parameters into names joined over all levels: `sort_bs`."""
    for name, value in pairs:
        if isinstance(value, list):
            yield from _flatten(value, (*outer_names, name))
        else:
            yield "_".join((*outer_names, name)), plain_value(value)


def plain_value(value: TunedValue) -> TunedValue:
    """Converts text to a number or a truth value if possible, so that all name formats agree."""
    if isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else f"{value}"
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) > LETTERS:
        raise ValueError(f"a value of more than {LETTERS} characters")
    if _INTEGER.fullmatch(text) and -LIMIT <= int(text) < LIMIT:
        return int(text)
    return text


def _parse_json(text: str) -> _Nested:
    try:
        return _check_nested(json.loads(text, object_pairs_hook=list), list, 1)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError("it is not JSON") from error


def _check_nested(
    pairs: Iterable[Any], kind: type[list[Any] | dict[str, Any]], depth: int
) -> _Nested:
    """Validates nested objects of words and numbers, which are lists of pairs or dictionaries."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    nested: _Nested = []
    for pair in pairs:
        # An empty list and an empty object look the same if an object is a list of pairs.
        if not isinstance(pair, tuple):
            raise ValueError("it has a list")  # noqa: TRY004
        name, value = pair
        if isinstance(value, DoubledNames):
            raise ValueError(f"{quoted(name)} names something twice")  # noqa: TRY004
        if isinstance(value, kind):
            inner = value.items() if isinstance(value, dict) else value
            nested.append((name, _check_nested(inner, kind, depth + 1)))
        elif isinstance(value, str | int | float):
            nested.append((name, value))
        else:
            raise ValueError(f"{quoted(name)} has no value")  # noqa: TRY004
    return nested


def _parse_braces(text: str, position: int, depth: int) -> tuple[_Nested, int]:
    """Parses the content of a pair of braces; returns it with the end position."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    nested: _Nested = []
    while not text.startswith("}", position):
        key = _KEY.match(text, position + 1)
        if key is None:
            raise ValueError("it has a value without a name")
        value: _NestedValue
        if text.startswith("{", key.end()):
            value, position = _parse_braces(text, key.end(), depth + 1)
            if not text.startswith((",", "}"), position):
                raise ValueError("it is not terminated")
        else:
            end = _value_end(text, key.end())
            value, position = text[key.end() : end].strip(), end
        nested.append((key[1], value))
    return nested, position + 1


def _value_end(text: str, position: int) -> int:
    """Returns the end of a value; types may contain commas, and the text ends with a brace."""
    depth = 0
    while not (text[position] == "}" or (text[position] == "," and depth <= 0)):
        depth += (text[position] in _OPEN) - (text[position] in _CLOSE)
        position += 1
    return position


# The runs of a file, in either file format.


def rows_at(path: Path, place: str, value: object) -> list[Any]:
    """Returns the runs of a file, which has to have some: of `benchmarks`, of `specializations`."""
    rows = listed_at(path, place, value)
    if not rows:
        raise InputError(f"{path}: there is no {place[:-1]}", "Nothing was measured yet.")
    if len(rows) > MOST_ENTRIES:
        raise InputError(f"{path}: more than {MOST_ENTRIES:,} {place}")
    return rows


def runs_of(path: Path, place: str, rows: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each run with its place: `benchmarks[3]`."""
    for number, row in enumerate(rows):
        yield f"{place}[{number}]", members(path, f"{place}[{number}]", row)


def split_file(
    file: TunedFile, entries_by_kernel: Mapping[Kernel, Sequence[TunedEntry]]
) -> tuple[TunedFile, ...]:
    """Returns a file for each algorithm with one combination of types."""
    return tuple(
        replace(
            file,
            library=LIBRARY,
            absent_type=EMPTY,
            kernel=algorithm,
            workload=dict(workload),
            parameters=dict.fromkeys(next((e.values for e in entries if e.values), ()), ()),
            entries=tuple(entries),
        )
        for (algorithm, workload), entries in entries_by_kernel.items()
    )


# gfx942:sramecc+:xnack-
_TARGET = re.compile(r"(gfx[0-9a-f]{3,4})(?::[\w+-]+)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_MHZ = 1000
"""HIP reports clock rates in kHz."""
MOST_MHZ = 1_000_000
ARCH_KEYS = ("hdp_gcn_arch_name", "gcnArchName", "hdp_gcnArchName")


# The GPU and architecture of rocPRIM's results, in either file format.


def arch_at(path: Path, place: str, value: object) -> str | None:
    """Returns the architecture of a target: `gfx942:sramecc+:xnack-` is gfx942."""
    text = text_at(path, place, value)
    if text is None:
        return None
    match = _TARGET.fullmatch(text.lower())
    if match is None or not is_amd(arch := parse_arch(match[1])):
        raise InputError(
            f"{path}: {place}, {quoted(text)}, is not an AMD architecture",
            "For example gfx942, or gfx942:sramecc+:xnack-.",
        )
    return arch


def context_arch(path: Path, context: Mapping[str, Any]) -> str | None:
    """Returns the architecture in a benchmark's context."""
    key = next((key for key in ARCH_KEYS if key in context), ARCH_KEYS[0])
    return arch_at(path, f"context {key}", context.get(key))


def context_device(path: Path, context: Mapping[str, Any], arch: str | None) -> str | None:
    """Formats the GPU as CCCL's search does: bus width, processors, and ECC state."""
    name = text_at(path, "context hdp_name", context.get("hdp_name")) or arch
    bus = number_of(context.get("hdp_memory_bus_width"))
    count = number_of(context.get("hdp_multi_processor_count"))
    if name is None or not bus or not count or "(" in name:
        return name
    ecc = number_of(context.get("hdp_ecc_enabled"))
    ecc_text = "" if ecc is None else f", ecc{'on' if ecc else 'off'}"
    return f"{name} ({bus}, {count}{ecc_text})"


def context_clocks(context: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the clock rates of the processor and of its memory in MHz; 0 if unknown."""
    keys = ("hdp_clock_rate", "hdp_memory_clock_rate")
    rates = [(number_of(context.get(key)) or 0) // _MHZ for key in keys]
    processor, memory = (rate if rate <= MOST_MHZ else 0 for rate in rates)
    return processor, memory


def number_of(value: object) -> int | None:
    """Parses a count, which may be written as text, as in contexts."""
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if _NUMBER.fullmatch(text) else None
