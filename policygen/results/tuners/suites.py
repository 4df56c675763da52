"""Files of a library's benchmarks, together: many algorithms, each with many types.

A workload that has no base, or nothing but base, is left out with the reason.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from policygen.errors import InputError, PolicygenError, listed, together
from policygen.model.arch import arch_and_gpu
from policygen.model.workload import BASE, as_label
from policygen.results.tuners.documents import TunedEntry, TunedFailure, TunedFile, quoted
from policygen.results.tuners.kernels import check_size, gpu_name
from policygen.results.tuners.points import (
    BaseFrom,
    NumberedParameter,
    NumberedSpace,
    TunedKernel,
    TunedPoint,
    join_points,
    number_space,
    parse_base,
    spelled_alike,
)
from policygen.rocprim.result_names import EMPTY, MOST_AXES

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


Current = Callable[[str, Mapping[str, str], str], Mapping[str, str] | None]
"""The values by parameter of the entry that a benchmark's workload has now on an architecture."""


# Which configuration of a workload is base: what ran by default, what a tree has, or `--base`.


def knows_nothing(benchmark: str, workload: Mapping[str, str], arch: str) -> None:
    """No tree is at hand."""


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


NEAR = 0.05
"""As far as items that went through two configurations on the same input are apart, at most."""
UNSAID = "nothing says which configuration is in use now"


@dataclass(frozen=True, slots=True)
class FoundBase:
    """Base of a workload."""

    label: str
    """Of its values; `base` where they are not known."""
    origin: BaseFrom

    def renamed(self, label: str) -> str:
        """How a database calls what has a label."""
        return BASE if self.origin != "default" and label == self.label else label


@dataclass(frozen=True, slots=True)
class AskedBase:
    """What is known of base besides what files say."""

    entry: Mapping[str, str] | None
    """What the tree has."""
    option: str


def find_base(points: Sequence[TunedPoint], space: NumberedSpace, asked: AskedBase) -> FoundBase:
    """Base of a workload, or an InputError that says why there is none."""
    reasons: list[str] = []
    entry = _label_of(asked.entry, space) if asked.entry is not None else None
    measured = {one.label for one in points if one.failure is None}
    defaults = [one for one in points if one.label == BASE]
    if BASE in measured:
        return FoundBase(entry or BASE, "default")
    if defaults and (failure := defaults[0].failure):
        reasons.append(f"default_config has no time: {failure.reason}")
    if entry in measured and entry is not None:
        return FoundBase(entry, "tree")
    if asked.entry is not None:
        told = ", ".join(f"{name}={value}" for name, value in asked.entry.items())
        reasons.append(f"what is in use now was not measured: {told}")
    if asked.option:
        try:
            label = parse_base(asked.option, space)
        except InputError as error:
            reasons.append(error.message)
        else:
            if label in measured:
                return FoundBase(label, "option")
            reasons.append(f"--base {asked.option} was not measured")
    raise InputError("; ".join(reasons) or UNSAID)


def _label_of(entry: Mapping[str, str], space: NumberedSpace) -> str | None:
    """The configuration that an entry is; none where it is none of those that were tuned."""
    numbers: dict[str, int] = {}
    for one in space.parameters:
        if one.name in entry:
            number = _number(one, entry[one.name])
        else:
            number = next(iter(one.texts)) if len(one.texts) == 1 else None
        if number is None:
            return None
        numbers[one.name] = number
    return as_label(numbers) if numbers else None


def _number(one: NumberedParameter, text: str) -> int | None:
    """A word may stand there with fewer or more namespaces before it."""
    near = [number for known, number in one.numbers.items() if spelled_alike(known, text)]
    return near[0] if len(near) == 1 else None


def check_work(points: Sequence[TunedPoint]) -> None:
    """Refuses base that went through other input than its variants did, on one size."""
    base = next((one.work for one in points if one.label == BASE), None)
    works = [one.work for one in points if one.label != BASE and one.work is not None]
    if base is None or not works:
        return
    usual = median(works)
    if abs(base / usual - 1) > NEAR:
        raise InputError(
            f"base went through {base:,.0f} items in a time, and configurations through"
            f" {usual:,.0f}: not the same input"
        )


# Where files of a library were measured, together: one GPU, of one architecture.


def suite_arch(files: Sequence[TunedFile], given: str) -> str:
    """The architecture that files say, or that is said where they say none, or not which GPU."""
    known = [one for one in files if one.arch is not None]
    for one in known:
        if one.arch != known[0].arch:
            raise InputError(
                f"{one.path}: was measured on {one.arch}, and {known[0].path} on {known[0].arch}",
                "Import each architecture into a database of its own.",
            )
    if not known and not given:
        raise InputError(
            f"{files[0].path}: does not say of which architecture the GPU is",
            "Say it: --arch gfx942",
        )
    if known and given and known[0].arch not in {given, arch_and_gpu(given)[0]}:
        raise InputError(
            f"{known[0].path}: was measured on {known[0].arch}, and --arch says {given}",
            "Leave --arch out where files say it.",
        )
    return given or str(known[0].arch)


def suite_gpu(files: Sequence[TunedFile], given: str, arch: str) -> str:
    """The GPU as it is said, or as files name it; where none does, its architecture."""
    named = [one for one in files if one.device is not None]
    # What says more of itself comes first: `MI300X (8192, 304, eccon)` may be a `MI300X`.
    named.sort(key=lambda one: "(" not in (one.device or ""))
    for one in named:
        if one.device not in {named[0].device, _plain(named[0].device)}:
            raise InputError(
                f"{one.path}: was measured on {quoted(one.device or '')}, and {named[0].path} on"
                f" {quoted(named[0].device or '')}",
                "Import each GPU into a database of its own; `policygen db compare` compares them.",
            )
    if given:
        return gpu_name(given)
    for one in files if named else ():
        if one.device != named[0].device:
            what = (
                "does not say on which GPU it was measured"
                if one.device is None
                else f"was measured on {quoted(one.device)}"
            )
            raise InputError(
                f"{one.path}: {what}, and {named[0].path} names {quoted(named[0].device or '')}",
                f"If it was the same one, say so: --gpu '{named[0].device}'",
            )
    return (named[0].device or "").removeprefix("AMD ") if named else arch


def _plain(device: str | None) -> str:
    """A GPU without what is known of it: `AMD Instinct MI300X`."""
    return (device or "").partition(" (")[0]


def suite_sizes(files: Sequence[TunedFile], given: str) -> None:
    """Checks that all files have a size."""
    errors: list[PolicygenError] = []
    for path, one in {one.path: one for one in files if not one.size}.items():
        try:
            check_size(path, one.size, given)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
