"""Reads `%RANGE%` lines, which declare a benchmark's search space, as CMake does."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from pydantic import Field

from policygen.errors import SourceError
from policygen.headers.text import Text, decode
from policygen.model.benchmarks import Benchmark, ParameterRange
from policygen.model.records import Record
from policygen.model.workload import IDENTIFIER, LIMIT, MOST
from policygen.rendering import folder

FORM = "the form is: // %RANGE% MACRO label start:end:step"
# // %RANGE% TUNE_ITEMS_PER_THREAD ipt 7:24:1
_LINE = re.compile(rb"//[ ]+%RANGE%[ ]+([^ \n]+)[ ]+([^ \n]+)[ ]+([^\n]*)")
# CMake ignores lines that the pattern above does not match; such a line is a mistake.
_STARTED = re.compile(rb"//[ ]+%RANGE%(?=[ \r\n]|\Z)[^\n]*")
_MACRO = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL = re.compile(IDENTIFIER)
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def read_ranges(text: Text) -> tuple[tuple[ParameterRange, ...], tuple[SourceError, ...]]:
    """Returns the parameters in line order, and the errors of invalid lines."""
    parameters: list[ParameterRange] = []
    errors: list[SourceError] = []
    for line in _STARTED.finditer(text.data):
        match = _LINE.match(text.data, line.start())
        try:
            if match is None:
                width = len(line.group().rstrip())
                raise text.error(line.start(), "incomplete %RANGE%", width=width, remedy=FORM)
            macro, label, bounds = (decode(part).strip() for part in match.groups())
            parameter = parse_range(text, match.start(3), macro, label, bounds)
            check_new(text, match.start(2), parameter, parameters)
            parameters.append(parameter)
        except SourceError as error:
            errors.append(error)
    return tuple(parameters), tuple(errors)


def parse_range(text: Text, offset: int, macro: str, label: str, bounds: str) -> ParameterRange:
    """Parses `start:end:step`, which stands at `offset`."""
    width = max(1, len(bounds))
    if not _MACRO.fullmatch(macro):
        raise text.error(offset, f"{macro!r} is not a macro name", width=width, remedy=FORM)
    if not _LABEL.fullmatch(label):
        raise text.error(offset, f"{label!r} is not a label", width=width, remedy=FORM)
    parts = [part.strip() for part in bounds.split(":")]
    if len(parts) != 3:
        message = f"{bounds!r} is not three numbers"
        raise text.error(offset, message, width=width, remedy=FORM)
    for part in parts:
        if not _NUMBER.fullmatch(part) or abs(int(part)) >= LIMIT:
            message = f"{part!r} is not an integer that fits a macro"
            raise text.error(offset, message, width=width, remedy=FORM)
    start, end, step = (int(part) for part in parts)
    if step <= 0:
        raise text.error(offset, f"the step {step} is not positive", width=width)
    if end < start:
        raise text.error(offset, f"the end {end} is before the start {start}", width=width)
    return ParameterRange(macro=macro, label=label, start=start, end=end, step=step)


def check_new(
    text: Text, offset: int, parameter: ParameterRange, earlier: list[ParameterRange]
) -> None:
    """Checks that the label and the macro are not used by another parameter."""
    width = len(parameter.label)
    if len(earlier) == MOST:
        raise text.error(offset, f"more than {MOST} parameters", width=width)
    if any(parameter.label == earlier_parameter.label for earlier_parameter in earlier):
        raise text.error(offset, f"the label {parameter.label!r} is used twice", width=width)
    if any(parameter.macro == earlier_parameter.macro for earlier_parameter in earlier):
        raise text.error(offset, f"the macro {parameter.macro} is used twice", width=width)


# ctk_version,13.0.88
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:ctk_version|cccl_revision),")
# cub.bench.reduce.sum,TUNE_ITEMS_PER_THREAD|ipt=8:24:8
_ROW = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\w-]+(?:\.[\w-]+)+(?:,\w+\|[^\n]*)?\s*?(?:\n|\Z)")
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_PARAMETER = re.compile(r"([^|=,]*)\|([^|=,]*)=([^|=,]*)")
META_FORM = "the form is: NAME,MACRO|label=start:end:step,..."


@dataclass(frozen=True, slots=True)
class Meta:
    """A search space file; `errors` holds its invalid lines."""

    ctk: str | None
    cccl: str | None
    benchmarks: tuple[Benchmark, ...]
    errors: tuple[SourceError, ...]


# `cccl_meta_bench.csv`: the search space as CMake wrote it for a tuning build


def is_meta(data: bytes) -> bool:
    """Tells whether a file is a search space, by its first line."""
    return bool(_HEAD.match(data) or _ROW.match(data))


def read_meta(text: Text) -> Meta:
    """Reads all valid lines."""
    heads: dict[str, str] = {}
    benchmarks: dict[str, Benchmark] = {}
    errors: list[SourceError] = []
    offset = 0
    for line in text.data.split(b"\n"):
        row = decode(line).strip().lstrip("\ufeff")
        key, _, value = row.partition(",")
        try:
            if key in {"ctk_version", "cccl_revision"}:
                heads[key] = value.strip()
            elif row:
                benchmark = _benchmark(text, offset, key, line)
                if benchmark.name in benchmarks:
                    raise text.error(offset, f"{key} appears twice", width=len(key))
                benchmarks[benchmark.name] = benchmark
        except SourceError as error:
            errors.append(error)
        offset += len(line) + 1
    ctk, cccl = heads.get("ctk_version"), heads.get("cccl_revision")
    return Meta(ctk, cccl, tuple(benchmarks.values()), tuple(errors))


def _benchmark(text: Text, line_start: int, name: str, line: bytes) -> Benchmark:
    if not _NAME.fullmatch(name):
        message = f"{name!r} is not a benchmark name"
        raise text.error(line_start, message, width=max(1, len(name)), remedy=META_FORM)
    parameters: list[ParameterRange] = []
    _, comma, rest = line.partition(b",")
    offset = line_start + len(line) - len(rest)
    for part in rest.split(b",") if comma and rest.strip() else ():
        match = _PARAMETER.fullmatch(decode(part).strip())
        if match is None:
            message = f"{decode(part).strip()!r} is not a parameter"
            raise text.error(offset, message, width=max(1, len(part.strip())), remedy=META_FORM)
        parameter = parse_range(text, offset + part.index(b"=") + 1, *match.groups())
        check_new(text, offset + part.index(b"|") + 1, parameter, parameters)
        parameters.append(parameter)
        offset += len(part) + 1
    return Benchmark(name=name, source=text.path, parameters=tuple(parameters))


class Files(Record):
    """Paths in a checkout."""

    folders: tuple[str, ...]
    version: str
    helper: str
    helpers: tuple[str, ...]


class Build(Record):
    """The macros that the build defines, and those that it leaves undefined."""

    defined: dict[str, int]
    undefined: frozenset[str]
    undefined_prefixes: tuple[str, ...]


class Lists(Record):
    """The templates that make type lists, by operation."""

    plain: frozenset[str]
    values: frozenset[str]
    joins: frozenset[str]
    choices: frozenset[str]


class TypeStrings(Record):
    """NVBench's input strings of the built-in types."""

    namespaces: tuple[str, ...]
    constants: frozenset[str]
    same: dict[str, str]
    strings: dict[str, str]


class Helper(Record):
    """The predefined lists of CUB versions before `below` (0: all later versions)."""

    below: int
    source: str


class WrittenFill(Record):
    """How generated sources fill a vector."""

    call: str
    """The generator as bindings call it: `uniform({0})`."""
    init: str
    then: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    entropy: int | None = None
    """The index of the entropy argument."""


class WrittenNames(Record):
    """Names in generated sources."""

    types: dict[str, str]
    words: dict[str, str]
    fills: tuple[WrittenFill, ...]


class Knowledge(Record):
    """The whole file."""

    files: Files
    build: Build
    platform: dict[str, int]
    lists: Lists
    types: TypeStrings
    helpers: tuple[Helper, ...] = Field(alias="helper")
    written: WrittenNames

    def helper(self, version: int | None) -> Helper:
        """Returns the predefined lists of a CUB version, or of the newest if unknown."""
        for helper in self.helpers:
            if version is not None and version < helper.below:
                return helper
        return self.helpers[-1]


# `schemas/benchmarks.toml`: facts about CCCL, NVBench and the build


@cache
def knowledge() -> Knowledge:
    """Loads the file once."""
    path = folder("schemas") / "benchmarks.toml"
    return Knowledge.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
