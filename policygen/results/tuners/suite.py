"""Files of a library's benchmarks, together: many algorithms, each with many types.

A workload that has no base, or nothing but base, is left out with the reason.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policygen.errors import InputError, PolicygenError, together
from policygen.hints import listed
from policygen.model.labels import BASE
from policygen.results.tuners.numbered import NumberedSpace, number_space
from policygen.results.tuners.points import TunedKernel, TunedPoint, join_points
from policygen.results.tuners.rocprim_names import EMPTY, MOST_AXES
from policygen.results.tuners.suite_base import (
    UNSAID,
    AskedBase,
    Current,
    check_work,
    find_base,
    knows_nothing,
)
from policygen.results.tuners.tuned import TunedEntry, TunedFailure, TunedFile

MOST_WORKLOADS = 20_000
MOST_ALGORITHMS = 1_000
ABSENT = "none"
"""What an axis has where a benchmark has no such axis, and others of its algorithm do."""
TYPE = "_type"
"""How axes of types end."""
_Axes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LibraryParameters:
    """What a library's own benchmark calls parameters, and the words that are their values."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """What a file calls a parameter → what the benchmark does."""
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By parameter, in the order of their numbers."""


def nothing_known(benchmark: str) -> LibraryParameters:
    """No library's bindings are at hand."""
    del benchmark
    return LibraryParameters()


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """What holds for all files of a library."""

    gpu: str
    arch: str
    size: str = ""
    """Where a file says none."""
    base: str = ""
    current: Current = knows_nothing
    parameters: Callable[[str], LibraryParameters] = nothing_known
    """What is known of a benchmark's parameters."""
    types: Mapping[str, str] = field(default_factory=dict)
    """What some benchmarks call a type → what others do."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A workload that is in files, and not in the database."""

    algorithm: str
    workload: Mapping[str, str]
    size: str
    """Empty for all of them."""
    reason: str


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """What is no measurement, and where it stands."""

    label: str
    place: str
    failure: TunedFailure


@dataclass(frozen=True, slots=True)
class TunedSuite:
    """All that was measured of a library."""

    kernels: tuple[TunedKernel, ...]
    left_out: tuple[LeftOut, ...]
    refused: tuple[RefusedRun, ...]


def gather_suite(files: Sequence[TunedFile], facts: SuiteFacts) -> TunedSuite:
    """Joins files by algorithm and types; sizes are runtime workloads."""
    _check_times(files)
    files = [_with_types(one, facts.types) for one in files]
    kernels: list[TunedKernel] = []
    left_out: list[LeftOut] = []
    refused: list[RefusedRun] = []
    for algorithm, given in _by_algorithm(files).items():
        known = facts.parameters(f"{given[0].library}.{algorithm}")
        parts = [_renamed(one, known.renamed) for one in given]
        space = _space(algorithm, parts, known.words)
        for axes, same in _by_workload(parts).items():
            name = f"{same[0].library}.{algorithm}"
            refused += _refused(same, space)
            told = _Workload(name, dict(axes), same, space)
            try:
                kernel, without = _kernel(told, replace(facts, base=_named(facts.base, known)))
            except InputError as error:
                left_out.append(LeftOut(name, _columns(axes), "", error.message))
                continue
            kernels.append(kernel)
            left_out += without
    if not kernels:
        raise _nothing(files, left_out)
    return TunedSuite(tuple(kernels), tuple(left_out), tuple(refused))


@dataclass(frozen=True, slots=True)
class _Workload:
    """A workload with all that files say of it."""

    algorithm: str
    axes: Mapping[str, str]
    parts: Sequence[TunedFile]
    space: NumberedSpace


def _check_times(files: Sequence[TunedFile]) -> None:
    """Each file has a time of something."""
    entries: dict[object, list[TunedEntry]] = {}
    for one in files:
        entries.setdefault(one.path, []).extend(one.entries)
    errors: list[PolicygenError] = [
        InputError(
            f"{path}: no configuration has a time: "
            + listed(e.outcome.reason for e in found if isinstance(e.outcome, TunedFailure))
        )
        for path, found in entries.items()
        if all(isinstance(entry.outcome, TunedFailure) for entry in found)
    ]
    if errors:
        raise together(errors)


def _by_algorithm(files: Sequence[TunedFile]) -> dict[str, list[TunedFile]]:
    """In the order of their names, each measured in one way."""
    found: dict[str, list[TunedFile]] = {}
    for one in sorted(files, key=lambda one: one.kernel or ""):
        found.setdefault(one.kernel or "", []).append(one)
    workloads = {(one.kernel, *sorted(one.workload.items())) for one in files}
    for many, what, most in (
        (len(found), "algorithms", MOST_ALGORITHMS),
        (len(workloads), "workloads", MOST_WORKLOADS),
    ):
        if many > most:
            raise InputError(
                f"{files[0].path}: {many:,} {what}, and at most {most:,} are read",
                "Import some of them into a database of their own.",
            )
    for algorithm, parts in found.items():
        first = parts[0]
        for one in parts:
            if one.program != first.program:
                raise InputError(
                    f"{one.path}: {algorithm} was measured by {one.program}, and in {first.path} by"
                    f" {first.program}: neither their times nor their parameters are the same",
                    "Import them into a database each.",
                )
    return found


def _by_workload(parts: Sequence[TunedFile]) -> dict[_Axes, list[TunedFile]]:
    """All with the same axes, so that they can stand in one table."""
    names = sorted({axis for one in parts for axis in one.workload})
    if len(names) > MOST_AXES:
        raise InputError(
            f"{parts[0].path}: {parts[0].kernel} has {len(names):,} axes in all files, and at most"
            f" {MOST_AXES} are possible"
        )
    found: dict[_Axes, list[TunedFile]] = {}
    for one in parts:
        axes = tuple((name, one.workload.get(name, _absent(name))) for name in names)
        found.setdefault(axes, []).append(one)
    return dict(sorted(found.items()))


def _absent(axis: str) -> str:
    return EMPTY if axis.endswith(TYPE) else ABSENT


def _with_types(one: TunedFile, names: Mapping[str, str]) -> TunedFile:
    """A file whose types are called as in others; what is no type keeps its value."""
    workload = {
        axis: names.get(value, value) if axis.endswith(TYPE) else value
        for axis, value in one.workload.items()
    }
    return replace(one, workload=workload)


def _renamed(one: TunedFile, names: Mapping[str, str]) -> TunedFile:
    """A file with parameters as benchmarks call them, where that is clear."""
    found = {names.get(name, name) for name in one.parameters}
    if not names or len(found) < len(one.parameters):
        return one
    return replace(
        one,
        parameters={names.get(name, name): values for name, values in one.parameters.items()},
        entries=[
            replace(entry, values={names.get(name, name): v for name, v in entry.values.items()})
            for entry in one.entries
        ],
    )


def _named(base: str, known: LibraryParameters) -> str:
    """What `--base` says, with parameters as benchmarks call them."""
    for other, own in known.renamed.items():
        base = re.sub(rf"(?<![^,\s]){re.escape(other)}(?==)", own, base)
    return base


def _space(
    algorithm: str, parts: Sequence[TunedFile], words: Mapping[str, Sequence[str]]
) -> NumberedSpace:
    """The parameters of an algorithm, which are the same for all types."""
    tuned = [
        replace(one, entries=entries)
        for one in parts
        if (entries := [entry for entry in one.entries if not entry.is_default])
    ]
    try:
        return number_space(tuned, by_text=True, words=words) if tuned else NumberedSpace(())
    except InputError as error:
        raise InputError(f"{error.message}, for {algorithm}", error.remedy) from error


def _label(entry: TunedEntry, space: NumberedSpace) -> str:
    return BASE if entry.is_default else space.label(entry.values)


def _refused(parts: Sequence[TunedFile], space: NumberedSpace) -> Iterator[RefusedRun]:
    for one in parts:
        for entry in one.entries:
            if isinstance(entry.outcome, TunedFailure):
                types = (f" {axis}={value}" for axis, value in one.workload.items())
                place = f"{one.path}: {entry.place}, {one.kernel}{''.join(types)}"
                yield RefusedRun(_label(entry, space), place, entry.outcome)


def _kernel(told: _Workload, facts: SuiteFacts) -> tuple[TunedKernel, list[LeftOut]]:
    """A workload with its base, and the sizes that have none; an InputError where none has one."""
    sizes = [one.size or facts.size for one in told.parts]
    points, copies = join_points(
        zip(sizes, told.parts, strict=True), lambda entry: _label(entry, told.space), 0
    )
    if {one.label for one in points} == {BASE}:
        raise InputError("nothing but default_config ran")
    entry = facts.current(told.algorithm, told.axes, facts.arch)
    base = find_base(points, told.space, AskedBase(entry, facts.base))
    named = [
        replace(one, label=base.renamed(one.label))
        for one in points
        # A run of default_config that failed is no base.
        if base.origin == "default" or one.label != BASE
    ]
    without: dict[str, str] = {}
    for size in dict.fromkeys(sizes):
        try:
            _check_size([one for one in named if one.size == size])
        except InputError as error:
            without[size] = error.message
    kept = [place for place, size in enumerate(sizes) if size not in without]
    if not kept:
        raise InputError("; ".join(dict.fromkeys(without.values())))
    workload = _columns(told.axes.items())
    kernel = TunedKernel(
        algorithm=told.algorithm,
        workload=workload,
        gpu=facts.gpu,
        base=base.label,
        space=told.space,
        points=tuple(one for one in named if one.size not in without),
        files=tuple(told.parts[place] for place in kept),
        sizes={number: sizes[place] for number, place in enumerate(kept)},
        warmup=0,
        copies=copies,
        base_from=base.origin,
    )
    left_out = [LeftOut(told.algorithm, workload, size, reason) for size, reason in without.items()]
    return kernel, left_out


def _columns(axes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Axes of compile time as databases call them."""
    return {f"{axis}{{ct}}": value for axis, value in axes}


def _check_size(points: Sequence[TunedPoint]) -> None:
    """Base and another configuration have times, and of the same input."""
    fine = {one.label for one in points if one.failure is None}
    if BASE not in fine:
        raise InputError("base was not measured on this size")
    if fine == {BASE}:
        raise InputError("nothing but base has a time")
    check_work(points)


def _nothing(files: Sequence[TunedFile], left_out: Sequence[LeftOut]) -> InputError:
    """Why nothing is left, and what would help."""
    reasons = listed(one.reason for one in left_out)
    remedy = None
    if UNSAID in reasons:
        remedy = (
            "Give what the benchmarks write when they are not built to tune, beside it, or name"
            " base by its values: --base bs=256,ipt=16"
        )
    return InputError(
        f"{files[0].path}: no workload can be compared with a base: {reasons}", remedy
    )
