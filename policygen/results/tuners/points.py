"""Values of any kind as the ints that labels hold: those that are ints stay, others are numbered.

A parameter with a value that is no int of C++ has numbers for all its values, in the order of their
declaration. What each number stands for is kept, so that nothing is lost.
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
from policygen.results.samples import Samples
from policygen.results.tuners.documents import (
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
    """A parameter, with its values as JSON writes them, each with the number that it has."""

    name: str
    numbers: Mapping[str, int]
    plain: bool
    """Whether each value is its own number."""

    def number(self, value: TunedValue) -> int:
        """The number of a value."""
        return self.numbers[json_value(value)]

    @property
    def texts(self) -> Mapping[int, str]:
        """What each number stands for."""
        return {number: text for text, number in self.numbers.items()}


@dataclass(frozen=True, slots=True)
class NumberedSpace:
    """All parameters, in the order in which labels have them."""

    parameters: tuple[NumberedParameter, ...]

    def label(self, values: Mapping[str, TunedValue]) -> str:
        """`block_size_x_128.tile_2`."""
        return as_label({one.name: one.number(values[one.name]) for one in self.parameters})

    def spelled(self, label: str) -> dict[str, str]:
        """The values of a label, as JSON writes them."""
        numbers = parse_label(label) or {}
        return {one.name: one.texts[numbers[one.name]] for one in self.parameters}

    def asked(self, label: str) -> str:
        """The same as a person would type them: `block_size_x=128,tile=2`."""
        return ",".join(f"{name}={_typed(text)}" for name, text in self.spelled(label).items())


def json_value(value: TunedValue) -> str:
    """A value as JSON writes it: `2.0` and `2` are the same number, `true` and `1` are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)


def number_space(
    files: Sequence[TunedFile],
    *,
    by_text: bool = False,
    words: Mapping[str, Sequence[str]] | None = None,
) -> NumberedSpace:
    """The parameters of files, which are the same in all of them.

    With `by_text`, numbers do not depend on which file comes first. `words` has the values of
    parameters whose numbers are known, in their order.
    """
    known = words or {}
    first = files[0]
    for one in files:
        for values in (one.parameters, *(entry.values for entry in one.entries)):
            if values.keys() != first.parameters.keys():
                raise InputError(
                    f"{one.path}: has the parameters {listed(map(quoted, values))}, and not"
                    f" {listed(map(quoted, first.parameters))}",
                    "Import what has other parameters into a database of its own.",
                )
    numbered = (
        _numbered(name, files, known.get(name, ()), by_text=by_text) for name in first.parameters
    )
    return NumberedSpace(tuple(numbered))


def _numbered(
    name: str, files: Sequence[TunedFile], words: Sequence[str], *, by_text: bool
) -> NumberedParameter:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{files[0].path}: {quoted(name)} is no name that a parameter can have in a label",
            "Rename it in the file and in the kernel: letters, digits, underscores, at most 63.",
        )
    values: dict[str, TunedValue] = {}
    for one in files:
        _add(values, one.parameters[name])
    for one in files:
        _add(values, (entry.values[name] for entry in one.entries))
    if all(map(_is_int, values.values())):
        return NumberedParameter(name, {text: int(v) for text, v in values.items()}, plain=True)
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
    """The number of a word that is known; others come after them, by text."""
    found: dict[str, int] = {}
    others: list[str] = []
    for text in sorted(values):
        places = [place for place, word in enumerate(words) if spelled_alike(text, word)]
        if len(places) == 1 and places[0] not in found.values():
            found[text] = places[0]
        else:
            others.append(text)
    found |= {text: len(words) + place for place, text in enumerate(others)}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _add(known: dict[str, TunedValue], values: Iterable[TunedValue]) -> None:
    for value in values:
        known.setdefault(json_value(value), value)


def _is_int(value: TunedValue) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and -LIMIT <= value < LIMIT  # type: ignore[operator]


def _typed(text: str) -> str:
    """A value of JSON without its quotation marks."""
    found = json.loads(text)
    return found if isinstance(found, str) else text


def parse_base(text: str, space: NumberedSpace) -> str:
    """The label of a configuration: as a label, or `block_size_x=128,tile=2`.

    A parameter that has one value needs none to be said.
    """
    names = [one.name for one in space.parameters]
    if (numbers := parse_label(text)) is not None and numbers.keys() == {*names}:
        given = {one.name: _by_number(one, numbers[one.name]) for one in space.parameters}
        return as_label(given)
    said = _said(text, names)
    found: dict[str, int] = {}
    missing: list[str] = []
    for one in space.parameters:
        if one.name in said:
            found[one.name] = _by_text(one, said[one.name])
        elif len(one.numbers) == 1:
            found[one.name] = next(iter(one.numbers.values()))
        else:
            missing.append(f"{one.name}={'|'.join(map(_typed, list(one.numbers)[:8]))}")
    if missing:
        raise InputError(
            f"--base {quoted(text)} does not say {', '.join(one.split('=')[0] for one in missing)}",
            f"What there is: {', '.join(missing)}",
        )
    return as_label(found)


def _said(text: str, names: Sequence[str]) -> dict[str, str]:
    """What is said of each parameter; a value may hold commas."""
    starts = list(re.finditer(rf"(?:^|,)\s*({'|'.join(map(re.escape, names))})=", text))
    if not starts or starts[0].start() != 0:
        raise InputError(
            f"--base {quoted(text)} names no configuration",
            f"Name values by parameter, as in {names[0]}=VALUE; there are: {listed(names)}",
        )
    ends = [match.start() for match in starts[1:]] + [len(text)]
    found: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        if match[1] in found:
            raise InputError(f"--base says {match[1]} twice", "Say it once.")
        found[match[1]] = text[match.end() : end].strip()
    return found


def _by_number(one: NumberedParameter, number: int) -> int:
    if number not in one.texts:
        raise _no_value(one, str(number))
    return number


def _by_text(one: NumberedParameter, text: str) -> int:
    """As JSON writes it, as Python does, or as the text that it is."""
    if text in one.numbers:
        return one.numbers[text]
    near = [number for known, number in one.numbers.items() if text in _spellings(known)]
    if len(near) != 1:
        raise _no_value(one, text)
    return near[0]


def _spellings(known: str) -> set[str]:
    value = json.loads(known)
    if isinstance(value, bool):
        return {str(value), str(int(value))}
    # Written as a float, too, where it is no larger than one can be.
    is_int = isinstance(value, int) and abs(value) < LIMIT
    return {str(value), f"{value}.0"} if is_int else {str(value)}


def _no_value(one: NumberedParameter, text: str) -> InputError:
    known = listed(_typed(text) for text in one.numbers)
    return InputError(
        f"--base: {one.name} has no value {quoted(text)} in what was tuned",
        f"It has: {known}. Base is measured as all others are: tune with its values, too.",
    )


def spelled_alike(known: str, text: str) -> bool:
    """Whether a value as JSON writes it is what a source says, with more or fewer namespaces.

    `"::rocprim::block_scan_algorithm::using_warp_scan"` is `using_warp_scan`.
    """
    one, other = _typed(known).removeprefix("::"), text.strip().removeprefix("::")
    return (
        other in _spellings(known)
        or f"::{one}".endswith(f"::{other}")
        or (f"::{other}".endswith(f"::{one}"))
    )


BaseFrom = Literal["option", "default", "tree"]
"""`--base`, a run of what the library itself has, or the entry that is in a tree now."""


@dataclass(frozen=True, slots=True)
class TunedPoint:
    """A configuration on a size: measured, or not."""

    label: str
    """`base` for what is in use now."""
    size: str
    center: float
    """Seconds; NaN where it was not measured."""
    samples: Samples | None
    failure: TunedFailure | None
    compiling: float
    running: float
    repeats: int
    """How many measurements are joined in it."""
    deviation: float | None = None
    """Seconds that samples which were not kept were apart, where a file says that."""
    work: float | None = None
    """How many items went through what was timed, where files say it."""


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """All that was measured of a kernel."""

    algorithm: str
    workload: Mapping[str, str]
    """Its axes of compile time, `T{ct}`."""
    gpu: str
    base: str
    """The label of base; `base` where nobody says which one it is."""
    space: NumberedSpace
    points: tuple[TunedPoint, ...]
    files: tuple[TunedFile, ...]
    sizes: Mapping[int, str]
    """By the place of a file."""
    warmup: int
    copies: int
    """Measurements that are copies of others, and left out."""
    base_from: BaseFrom = "option"
    """Who says which one base is."""


# Configurations on sizes: all that was measured of each, joined.


def join_points(
    sized: Iterable[tuple[str, TunedFile]], label: Callable[[TunedEntry], str], warmup: int
) -> tuple[tuple[TunedPoint, ...], int]:
    """What was measured again is joined; and how many copies were left out.

    A copy of a measurement is none: the same times at the same moment.
    """
    found: dict[tuple[str, str], list[TunedEntry]] = {}
    known: set[tuple[object, ...]] = set()
    copies = 0
    for size, one in sized:
        for entry in one.entries:
            key = size, label(entry)
            # Failures have no times, and are all alike.
            if (same := (*key, *entry.identity)) in known:
                copies += 1
                continue
            known.add(same)
            found.setdefault(key, []).append(entry)
    points = (_point(name, size, entries, warmup) for (size, name), entries in found.items())
    return tuple(points), copies


def _point(label: str, size: str, entries: Sequence[TunedEntry], warmup: int) -> TunedPoint:
    """All samples of a configuration; without any, what the last measurement says of itself.

    So does a measurement alone that tells how far what it has not kept is apart.
    """
    times = [one.outcome for one in entries if isinstance(one.outcome, TunedTimes)]
    joined = [sample for one in times for sample in _warm(one.samples, warmup)]
    failures = [one.outcome for one in entries if isinstance(one.outcome, TunedFailure)]
    works = [one.work for one in entries if one.work is not None]
    samples = None
    center, deviation = float("nan"), None
    if len(times) == 1 and times[0].mean is not None and times[0].deviation is not None:
        center, deviation = times[0].mean, times[0].deviation
    elif joined:
        samples = np.asarray(joined[:MOST_SAMPLES], np.float64)
        center = float(np.median(samples.astype(np.float32)))
    elif last := next((one for one in reversed(times) if one.mean is not None), None):
        center, deviation = last.mean or center, last.deviation
    return TunedPoint(
        label=label,
        size=size,
        center=center,
        samples=samples,
        failure=None if times else failures[-1],
        compiling=sum(one.compiling for one in entries),
        running=sum(one.running for one in entries),
        repeats=len(times),
        deviation=deviation,
        work=median(works) if works else None,
    )


def _warm(samples: Sequence[float], warmup: int) -> Sequence[float]:
    """Those after the first ones, where there are more.

    No tuner of these launches a kernel for nothing before it takes times, as NVBench does: the
    first launch loads the code and takes several times as long.
    """
    return samples[warmup:] if len(samples) > warmup else samples
