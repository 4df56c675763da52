"""Maps values of any kind to the ints that labels hold: ints stay, other values are numbered.

If any value of a parameter is not a C++ int, all its values are numbered in declaration order. The
meaning of each number is kept, so nothing is lost.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from policygen.errors import InputError, listed
from policygen.model.workload import IDENTIFIER, LIMIT, as_label, parse_label
from policygen.results.imported import unquoted
from policygen.results.samples import Samples
from policygen.results.tuners.formats import (
    MOST_SAMPLES,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
    TunedValue,
    quoted,
)

_NAME = re.compile(IDENTIFIER)


@dataclass(frozen=True, slots=True)
class NumberedParameter:
    """A parameter, with the number of each value; values are JSON text."""

    name: str
    numbers: Mapping[str, int]
    plain: bool
    """Whether each value is its own number."""

    def number(self, value: TunedValue) -> int:
        """Returns the number of a value."""
        return self.numbers[json_value(value)]

    @property
    def texts(self) -> Mapping[int, str]:
        """Maps each number to its value."""
        return {number: text for text, number in self.numbers.items()}


@dataclass(frozen=True, slots=True)
class NumberedSpace:
    """All parameters, in label order."""

    parameters: tuple[NumberedParameter, ...]

    def label(self, values: Mapping[str, TunedValue]) -> str:
        """Returns the label of values: `block_size_x_128.tile_2`."""
        numbers = {item.name: item.number(values[item.name]) for item in self.parameters}
        return as_label(numbers)

    def numbers(
        self, texts: Mapping[str, str], number_of: Callable[[NumberedParameter, str], int | None]
    ) -> dict[str, int]:
        """Returns the numbers of given values, and of parameters that have a single value."""
        numbers = {
            parameter.name: number_of(parameter, texts[parameter.name])
            if parameter.name in texts
            else min(parameter.texts)
            for parameter in self.parameters
            if parameter.name in texts or len(parameter.texts) == 1
        }
        return {name: number for name, number in numbers.items() if number is not None}

    def spelled(self, label: str) -> dict[str, str]:
        """Returns the values of a label as JSON text."""
        numbers = parse_label(label) or {}
        return {item.name: item.texts[numbers[item.name]] for item in self.parameters}

    def asked(self, label: str) -> str:
        """Returns a label as a user would type it: `block_size_x=128,tile=2`."""
        return ",".join(f"{name}={unquoted(text)}" for name, text in self.spelled(label).items())


def json_value(value: TunedValue) -> str:
    """Returns a value as JSON text: `2.0` and `2` are the same number, `true` and `1` are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def number_space(
    files: Sequence[TunedFile],
    *,
    by_text: bool = False,
    words: Mapping[str, Sequence[str]] | None = None,
) -> NumberedSpace:
    """Numbers the parameters of files, which must be the same in all of them.

    With `by_text`, numbers do not depend on the order of the files. `words` lists the values of
    parameters whose numbers are known, in order.
    """
    words_by_parameter = words or {}
    first = files[0]
    for file in files:
        for values in (file.parameters, *(entry.values for entry in file.entries)):
            if values.keys() != first.parameters.keys():
                raise InputError(
                    f"{file.path}: has the parameters {listed(map(quoted, values))}, not"
                    f" {listed(map(quoted, first.parameters))}",
                    "Import files with different parameters into a database of their own.",
                )
    numbered = (
        _numbered(name, files, words_by_parameter.get(name, ()), by_text=by_text)
        for name in first.parameters
    )
    return NumberedSpace(tuple(numbered))


def _numbered(
    name: str, files: Sequence[TunedFile], words: Sequence[str], *, by_text: bool
) -> NumberedParameter:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{files[0].path}: {quoted(name)} cannot be a parameter's name in a label",
            "Rename it in the file and in the kernel: letters, digits, underscores, at most 63.",
        )
    declared = [value for file in files for value in file.parameters[name]]
    tried = (entry.values[name] for file in files for entry in file.entries)
    values: dict[str, TunedValue] = {}
    for value in (*declared, *tried):
        values.setdefault(json_value(value), value)
    if all(map(_is_int, values.values())):
        return NumberedParameter(
            name, {text: int(value) for text, value in values.items()}, plain=True
        )
    if words:
        return NumberedParameter(name, _by_words(values, words), plain=False)
    if all(isinstance(value, bool) for value in values.values()):
        numbers = {text: int(value) for text, value in sorted(values.items())}
    else:
        numbers = {
            text: number for number, text in enumerate(sorted(values) if by_text else values)
        }
    return NumberedParameter(name, numbers, plain=False)


def _by_words(values: Iterable[str], words: Sequence[str]) -> dict[str, int]:
    """Numbers known words by their position; unknown ones follow, sorted by text."""
    numbers: dict[str, int] = {}
    unknown: list[str] = []
    for text in sorted(values):
        matches = [place for place, word in enumerate(words) if spelled_alike(text, word)]
        if len(matches) == 1 and matches[0] not in numbers.values():
            numbers[text] = matches[0]
        else:
            unknown.append(text)
    numbers |= {text: len(words) + place for place, text in enumerate(unknown)}
    return dict(sorted(numbers.items(), key=lambda pair: pair[1]))


def _is_int(value: TunedValue) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and -LIMIT <= value < LIMIT  # type: ignore[operator]


def parse_base(text: str, space: NumberedSpace) -> str:
    """Parses a configuration, given as a label or as `block_size_x=128,tile=2`, into a label.

    Parameters with a single value may be omitted.
    """
    names = [parameter.name for parameter in space.parameters]
    if (numbers := parse_label(text)) is not None and numbers.keys() == {*names}:
        for parameter in space.parameters:
            if numbers[parameter.name] not in parameter.texts:
                raise _no_value(parameter, str(numbers[parameter.name]))
        return as_label({name: numbers[name] for name in names})
    numbers = space.numbers(_texts_by_parameter(text, names), _by_text)
    missing = [parameter for parameter in space.parameters if parameter.name not in numbers]
    if missing:
        hints = (
            f"{parameter.name}={'|'.join(map(unquoted, list(parameter.numbers)[:8]))}"
            for parameter in missing
        )
        raise InputError(
            f"--base {quoted(text)} does not set {', '.join(item.name for item in missing)}",
            f"Available: {', '.join(hints)}",
        )
    return as_label(numbers)


def _texts_by_parameter(text: str, names: Sequence[str]) -> dict[str, str]:
    """Splits `NAME=VALUE,…` into values by parameter; a value may hold commas."""
    starts = list(re.finditer(rf"(?:^|,)\s*({'|'.join(map(re.escape, names))})=", text))
    if not starts or starts[0].start() != 0:
        raise InputError(
            f"--base {quoted(text)} does not name a configuration",
            f"Name values by parameter, for example {names[0]}=VALUE; the parameters are:"
            f" {listed(names)}",
        )
    ends = [match.start() for match in starts[1:]] + [len(text)]
    texts: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        if match[1] in texts:
            raise InputError(f"--base gives {match[1]} twice", "Give it once.")
        texts[match[1]] = text[match.end() : end].strip()
    return texts


def _by_text(parameter: NumberedParameter, text: str) -> int:
    """Returns the number of a value in JSON or Python spelling, or as unquoted text."""
    if text in parameter.numbers:
        return parameter.numbers[text]
    matches = [number for value, number in parameter.numbers.items() if text in _spellings(value)]
    if len(matches) != 1:
        raise _no_value(parameter, text)
    return matches[0]


def _spellings(json_text: str) -> set[str]:
    value = json.loads(json_text)
    if isinstance(value, bool):
        return {str(value), str(int(value))}
    # Integers may also be written as floats, within the range that a float holds.
    is_int = isinstance(value, int) and abs(value) < LIMIT
    return {str(value), f"{value}.0"} if is_int else {str(value)}


def _no_value(parameter: NumberedParameter, text: str) -> InputError:
    values = listed(unquoted(text) for text in parameter.numbers)
    return InputError(
        f"--base: {parameter.name} has no value {quoted(text)} in what was tuned",
        f"It has: {values}. Include the baseline's values in the tuning run.",
    )


def spelled_alike(json_text: str, text: str) -> bool:
    """Returns whether a JSON value equals a word of a source, ignoring leading namespaces.

    `"::rocprim::block_scan_algorithm::using_warp_scan"` matches `using_warp_scan`.
    """
    value, name = unquoted(json_text).removeprefix("::"), text.strip().removeprefix("::")
    return (
        name in _spellings(json_text)
        or f"::{value}".endswith(f"::{name}")
        or (f"::{name}".endswith(f"::{value}"))
    )


BaseFrom = Literal["option", "default", "tree"]
"""`--base`, a run of the library's default, or the current entry of a tree."""


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """A configuration on a size, measured or not."""

    label: str
    """`base` for the configuration in use."""
    size: str
    center: float
    """Seconds; NaN if it was not measured."""
    samples: Samples | None
    failure: TunedFailure | None
    compiling: float
    running: float
    repeats: int
    """The number of measurements joined in it."""
    deviation: float | None = None
    """Standard deviation, in seconds, of samples that were not kept, if a file states it."""
    work: float | None = None
    """The number of items processed in the timed region, if files state it."""


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """All measurements of a kernel."""

    algorithm: str
    workload: Mapping[str, str]
    """Its compile-time axes, `T{ct}`."""
    gpu: str
    base: str
    """The label of base; `base` if unknown."""
    space: NumberedSpace
    points: tuple[TunedPoint, ...]
    files: tuple[TunedFile, ...]
    sizes: Mapping[int, str]
    """By file position."""
    warmup: int
    copies: int
    """The number of duplicate measurements that were left out."""
    base_from: BaseFrom = "option"
    """Where the choice of base comes from."""


# Joining all measurements of each configuration and size.


def join_points(
    sized: Iterable[tuple[str, TunedFile]], label: Callable[[TunedEntry], str], warmup: int
) -> tuple[tuple[TunedPoint, ...], int]:
    """Joins repeated measurements; also returns how many duplicates were left out.

    Entries with the same times at the same moment are duplicates.
    """
    entries_by_point: dict[tuple[str, str], list[TunedEntry]] = {}
    seen: set[tuple[object, ...]] = set()
    copies = 0
    for size, file in sized:
        for entry in file.entries:
            key = size, label(entry)
            # Failures have no times, so they are all identical.
            if (identity := (*key, *entry.identity)) in seen:
                copies += 1
                continue
            seen.add(identity)
            entries_by_point.setdefault(key, []).append(entry)
    points = (
        _point(name, size, entries, warmup) for (size, name), entries in entries_by_point.items()
    )
    return tuple(points), copies


def _point(label: str, size: str, entries: Sequence[TunedEntry], warmup: int) -> TunedPoint:
    """Combines all samples of a configuration; without samples, the last measurement's own summary.

    A single measurement that states its deviation also keeps its own summary.
    """
    times = [entry.outcome for entry in entries if isinstance(entry.outcome, TunedTimes)]
    # Unlike NVBench, these tuners launch no warm-up kernel before timing: the first launch loads
    # the code and takes several times as long. It counts only if there is no other.
    starts = (warmup if len(entry.samples) > warmup else 0 for entry in times)
    joined = [
        sample
        for entry, start in zip(times, starts, strict=True)
        for sample in entry.samples[start:]
    ]
    failures = [entry.outcome for entry in entries if isinstance(entry.outcome, TunedFailure)]
    works = [entry.work for entry in entries if entry.work is not None]
    samples = None
    center, deviation = float("nan"), None
    if len(times) == 1 and times[0].mean is not None and times[0].deviation is not None:
        center, deviation = times[0].mean, times[0].deviation
    elif joined:
        samples = np.asarray(joined[:MOST_SAMPLES], np.float64)
        center = float(np.median(samples.astype(np.float32)))
    elif last_summary := next((entry for entry in reversed(times) if entry.mean is not None), None):
        center, deviation = last_summary.mean or center, last_summary.deviation
    return TunedPoint(
        label=label,
        size=size,
        center=center,
        samples=samples,
        failure=None if times else failures[-1],
        compiling=sum(entry.compiling for entry in entries),
        running=sum(entry.running for entry in entries),
        repeats=len(times),
        deviation=deviation,
        work=median(works) if works else None,
    )
