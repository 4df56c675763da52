"""Names of rocPRIM's benchmarks, which say what ran: the algorithm, its types, its configuration.

`{lvl:device,algo:reduce,key_type:int,cfg:{bs:256,ipt:16,method:using_warp_reduce}}/manual_time`, or
the same as JSON; `cfg:default_config` is what the library itself has. What has no keys, as the
format `human` has none, says too little. primbench has the same as the object `meta`, where `algo`
is `device_reduce` and `cfg` is `default`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policygen.errors import InputError
from policygen.model.arch import is_amd, parse_arch
from policygen.model.workload import BASE, IDENTIFIER, LIMIT, parse_label
from policygen.results.tuners.documents import (
    LETTERS,
    MOST_PARAMETERS,
    DoubledNames,
    TunedValue,
    quoted,
    text_at,
)

LIBRARY = "rocprim"
DEFAULTS = ("default_config", "default")
EMPTY = "rocprim::empty_type"
"""What stands for a type that is not there; benchmarks leave out its namespace."""
LONGEST_NAME = 4_000
DEEPEST = 4
MOST_AXES = 16
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
_Nested = list[tuple[str, "_Found"]]
_Found = str | int | float | bool | _Nested


@dataclass(frozen=True, slots=True)
class RocprimName:
    """What a name says."""

    algorithm: str
    """`device_reduce`."""
    workload: Mapping[str, str]
    """`key_type` is `int`: all that is neither the algorithm nor its configuration."""
    config: Mapping[str, TunedValue] | None
    """By parameter; none for what the library itself has."""
    aggregate: str
    """`mean` where it is what all repetitions say together."""


def parse_name(text: str) -> RocprimName:
    """What a name says; a ValueError tells what is wrong with it."""
    if len(text) > LONGEST_NAME:
        raise ValueError(f"it has more than {LONGEST_NAME:,} letters")
    end = text.rfind("}") + 1
    rest = _REST.fullmatch(text[end:])
    if not text.startswith("{") or end == 0 or rest is None:
        raise ValueError("it does not say what ran")
    return _named(
        _of_json(text[:end]) if '"' in text[:end] else _of_text(text[:end]), rest[1] or ""
    )


def parse_meta(found: Mapping[str, Any]) -> RocprimName:
    """The same of an object that was read already."""
    return _named(_of_members(found.items(), 1), "")


def _named(pairs: "_Nested", aggregate: str) -> RocprimName:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it says something twice")
    if "cfg" not in found:
        raise ValueError("it has no cfg")
    level, algorithm = _word(found.pop("lvl", None)), _word(found.pop("algo", None))
    if not algorithm.startswith(f"{level}_"):
        algorithm = f"{level}_{algorithm}"
    part = _word(found.pop("subalgo", ""))
    return RocprimName(
        algorithm=algorithm_name(f"{algorithm}_{part}" if part else algorithm),
        config=_config(found.pop("cfg")),
        workload=checked_workload({name: _word(value) for name, value in found.items()}),
        aggregate=aggregate,
    )


def algorithm_name(text: str) -> str:
    """A name that can stand before a label, so that both can be told apart."""
    if not _ALGORITHM.fullmatch(text) or text == BASE or parse_label(text):
        raise ValueError(f"{quoted(text)} is no name of an algorithm")
    return text


def checked_workload(axes: Mapping[str, str]) -> dict[str, str]:
    """Axes of compile time, with values that can stand in a database."""
    if len(axes) > MOST_AXES:
        raise ValueError(f"it has more than {MOST_AXES} types and the like")
    found = {}
    for axis, value in axes.items():
        if not _AXIS.fullmatch(axis):
            raise ValueError(f"{quoted(axis)} is no name of an axis")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"{axis}, {quoted(value)}, is no type or number")
        found[axis] = EMPTY if value == EMPTY.rpartition(":")[2] else value
    return found


def _word(found: "_Found | None") -> str:
    """A value that is one word."""
    if isinstance(found, list):
        raise ValueError("it has several values where one should be")  # noqa: TRY004
    if found is None:
        raise ValueError("it does not name its lvl and its algo")
    return str(found).lower() if isinstance(found, bool) else str(found).strip()


def _config(found: _Found) -> dict[str, TunedValue] | None:
    if not isinstance(found, list):
        if _word(found) not in DEFAULTS:
            raise ValueError(f"its cfg, {quoted(_word(found))}, is no configuration")
        return None
    values: dict[str, TunedValue] = {}
    for name, value in _flat(found, ()):
        if not _PARAMETER.fullmatch(name):
            raise ValueError(f"{quoted(name)} is no name of a parameter")
        if name in values:
            raise ValueError(f"it says {name} twice")
        values[name] = value
    if not 0 < len(values) <= MOST_PARAMETERS:
        raise ValueError(f"{len(values)} parameters, and 1 to {MOST_PARAMETERS} are possible")
    return values


def _flat(found: _Nested, above: tuple[str, ...]) -> Iterator[tuple[str, TunedValue]]:
    """What is nested has the names of all levels: `sort_bs`."""
    for name, value in found:
        if isinstance(value, list):
            yield from _flat(value, (*above, name))
        else:
            yield "_".join((*above, name)), plain_value(value)


def plain_value(found: TunedValue) -> TunedValue:
    """A number or a truth value where a text is one; all spellings of a name say the same."""
    if isinstance(found, bool):
        return found
    text = found.strip() if isinstance(found, str) else f"{found}"
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) > LETTERS:
        raise ValueError(f"a value of more than {LETTERS} letters")
    if _INTEGER.fullmatch(text) and -LIMIT <= int(text) < LIMIT:
        return int(text)
    return text


def _of_json(text: str) -> _Nested:
    try:
        return _checked(json.loads(text, object_pairs_hook=list), 1)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg}") from error


def _checked(pairs: object, depth: int) -> _Nested:
    """What JSON says, if it is objects of words and numbers."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    found: _Nested = []
    # An empty list and an empty object look the same.
    for pair in pairs if isinstance(pairs, list) else ():
        if not isinstance(pair, tuple):
            raise ValueError("it has a list")  # noqa: TRY004
        name, value = pair
        if isinstance(value, list):
            value = _checked(value, depth + 1)
        elif value is None:
            raise ValueError(f"{quoted(name)} has no value")
        found.append((name, value))
    return found


def _of_members(pairs: Iterable[tuple[str, Any]], depth: int) -> _Nested:
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    found: _Nested = []
    for name, value in pairs:
        if isinstance(value, dict):
            found.append((name, _of_members(value.items(), depth + 1)))
        elif isinstance(value, DoubledNames):
            raise ValueError(f"{quoted(name)} says something twice")  # noqa: TRY004
        elif isinstance(value, str | int | float):
            found.append((name, value))
        else:
            raise ValueError(f"{quoted(name)} has no value")  # noqa: TRY004
    return found


def _of_text(text: str) -> _Nested:
    found, at = _braces(text, 0, 1)
    if at != len(text):
        raise ValueError("it ends before its last brace")
    return found


def _braces(text: str, at: int, depth: int) -> tuple[_Nested, int]:
    """What stands in a pair of braces, and where it ends."""
    if depth > DEEPEST:
        raise ValueError("it is nested too deeply")
    found: _Nested = []
    while not text.startswith("}", at):
        key = _KEY.match(text, at + 1)
        if key is None:
            raise ValueError("it has a value without a name")
        value: _Found
        if text.startswith("{", key.end()):
            value, at = _braces(text, key.end(), depth + 1)
            if not text.startswith((",", "}"), at):
                raise ValueError("it has no end")
        else:
            end = _end(text, key.end())
            value, at = text[key.end() : end].strip(), end
        found.append((key[1], value))
    return found, at + 1


def _end(text: str, at: int) -> int:
    """Where a value ends: a type may hold commas. The text itself ends with a brace."""
    depth = 0
    while not (text[at] == "}" or (text[at] == "," and depth <= 0)):
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        at += 1
    return at


# gfx942:sramecc+:xnack-
_TARGET = re.compile(r"(gfx[0-9a-f]{3,4})(?::[\w+-]+)*", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_MHZ = 1000
"""HIP counts clocks in kHz."""
MOST_MHZ = 1_000_000
ARCH_KEYS = ("hdp_gcn_arch_name", "gcnArchName", "hdp_gcnArchName")


# Where rocPRIM's results were measured, as files of either kind say it.


def arch_at(path: Path, place: str, found: object) -> str | None:
    """The architecture of a target: `gfx942:sramecc+:xnack-` is one of gfx942."""
    text = text_at(path, place, found)
    if text is None:
        return None
    match = _TARGET.fullmatch(text.lower())
    if match is None or not is_amd(arch := parse_arch(match[1])):
        raise InputError(
            f"{path}: {place}, {quoted(text)}, is no architecture of AMD's",
            "Such as gfx942, or gfx942:sramecc+:xnack-.",
        )
    return arch


def context_arch(path: Path, context: Mapping[str, Any]) -> str | None:
    """The architecture that a benchmark's context names."""
    key = next((key for key in ARCH_KEYS if key in context), ARCH_KEYS[0])
    return arch_at(path, f"context {key}", context.get(key))


def context_device(path: Path, context: Mapping[str, Any], arch: str | None) -> str | None:
    """The GPU as CCCL's search names one: its bus, its processors, and whether it has ECC."""
    name = text_at(path, "context hdp_name", context.get("hdp_name")) or arch
    bus = number_of(context.get("hdp_memory_bus_width"))
    count = number_of(context.get("hdp_multi_processor_count"))
    if name is None or not bus or not count or "(" in name:
        return name
    ecc = number_of(context.get("hdp_ecc_enabled"))
    told = "" if ecc is None else f", ecc{'on' if ecc else 'off'}"
    return f"{name} ({bus}, {count}{told})"


def context_clocks(context: Mapping[str, Any]) -> tuple[int, int]:
    """MHz of the processor and of its memory, 0 where they are not said."""
    keys = ("hdp_clock_rate", "hdp_memory_clock_rate")
    rates = [(number_of(context.get(key)) or 0) // _MHZ for key in keys]
    processor, memory = (rate if rate <= MOST_MHZ else 0 for rate in rates)
    return processor, memory


def number_of(found: object) -> int | None:
    """A count, also where it is written as a text, as contexts have all of theirs."""
    text = str(found) if isinstance(found, int | str) else ""
    return int(text) if _NUMBER.fullmatch(text) else None
