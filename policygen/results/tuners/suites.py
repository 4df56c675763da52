"""Combines the result files of a library's benchmarks: many algorithms, each with many types.

A workload without a base, or with nothing but a base, is left out with the reason.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Self

from policygen.errors import InputError, listed, reported_together
from policygen.model.arch import arch_and_gpu
from policygen.model.records import grouped
from policygen.model.workload import BASE, as_label
from policygen.results.tuners.formats import (
    MOST_AXES,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
    quoted,
)
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

MOST_WORKLOADS = 20_000
MOST_ALGORITHMS = 1_000
ABSENT = "none"
"""The value of an axis that this benchmark lacks and others of its algorithm have."""
TYPE = "_type"
"""The suffix of type axes."""
_Axes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LibraryParameters:
    """The parameter names of a library's own benchmark, and the words that are their values."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    """Parameter name in a file → parameter name in the benchmark."""
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values by parameter, in the order of their numbers."""


Current = Callable[[str, Mapping[str, str], str], Mapping[str, str] | None]
"""Looks up the entry that an architecture uses now for a benchmark's workload: values by
parameter."""


# Selecting the base: the default that ran, the entry of a tree, or `--base`.


def knows_nothing(benchmark: str, workload: Mapping[str, str], arch: str) -> None:
    """Fallback when no source tree is available."""


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """Facts that hold for all files of a library."""

    gpu: str
    arch: str
    size: str = ""
    """Used where a file states no size."""
    base: str = ""
    current: Current = knows_nothing
    parameters: Callable[[str], LibraryParameters] = lambda _: LibraryParameters()
    """Looks up the parameters of a benchmark."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Type name in some benchmarks → type name in the others."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A workload that is in the files but not in the database."""

    algorithm: str
    workload: Mapping[str, str]
    size: str
    """Empty if all sizes are left out."""
    reason: str


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """A failed run, and where it is recorded."""

    label: str
    place: str
    failure: TunedFailure


@dataclass(frozen=True, slots=True)
class TunedSuite:
    """All measurements of a library."""

    kernels: tuple[TunedKernel, ...]
    left_out: tuple[LeftOut, ...]
    refused: tuple[RefusedRun, ...]

    @classmethod
    def of(cls, kernel: TunedKernel) -> Self:
        """Returns the suite of a user's kernel, whose failures are those of its points."""
        failed = [(point.label, point.failure) for point in kernel.points if point.failure]
        return cls(
            (kernel,), (), tuple(RefusedRun(label, "", failure) for label, failure in failed)
        )


def gather_suite(files: Sequence[TunedFile], facts: SuiteFacts) -> TunedSuite:
    """Groups files by algorithm and types; sizes become runtime workloads."""
    _check_times(files)
    files = [_with_types(file, facts.types) for file in files]
    kernels: list[TunedKernel] = []
    left_out: list[LeftOut] = []
    refused: list[RefusedRun] = []
    for algorithm, files_of_algorithm in _by_algorithm(files).items():
        library = facts.parameters(f"{files_of_algorithm[0].library}.{algorithm}")
        parts = [_renamed(file, library.renamed) for file in files_of_algorithm]
        space = _space(algorithm, parts, library.words)
        for axes, workload_parts in _by_workload(parts).items():
            name = f"{workload_parts[0].library}.{algorithm}"
            refused += _refused(workload_parts, space)
            try:
                kernel, sizes_left_out = _kernel(
                    name,
                    dict(axes),
                    workload_parts,
                    space,
                    replace(facts, base=_named(facts.base, library)),
                )
            except InputError as error:
                left_out.append(LeftOut(name, _columns(axes), "", error.message))
                continue
            kernels.append(kernel)
            left_out += sizes_left_out
    if not kernels:
        raise _nothing(files, left_out)
    return TunedSuite(tuple(kernels), tuple(left_out), tuple(refused))


def _check_times(files: Sequence[TunedFile]) -> None:
    outcomes: dict[Path, list[TunedTimes | TunedFailure]] = {}
    for file in files:
        outcomes.setdefault(file.path, []).extend(entry.outcome for entry in file.entries)
    with reported_together() as part:
        for path, of_path in outcomes.items():
            failures = [item.reason for item in of_path if isinstance(item, TunedFailure)]
            with part():
                if len(failures) == len(of_path):
                    reasons = listed(failures)
                    raise InputError(f"{path}: no configuration has a time: {reasons}")


def _by_algorithm(files: Sequence[TunedFile]) -> dict[str, list[TunedFile]]:
    """Groups files by algorithm, sorted by name; each algorithm must come from one program."""
    files_by_algorithm = dict(sorted(grouped(files, lambda file: file.kernel or "").items()))
    workloads = {(file.kernel, *sorted(file.workload.items())) for file in files}
    for count, noun, limit in (
        (len(files_by_algorithm), "algorithms", MOST_ALGORITHMS),
        (len(workloads), "workloads", MOST_WORKLOADS),
    ):
        if count > limit:
            raise InputError(
                f"{files[0].path}: {count:,} {noun}, but at most {limit:,} are read",
                "Import some of them into a database of their own.",
            )
    for algorithm, parts in files_by_algorithm.items():
        first = parts[0]
        for file in parts:
            if file.program != first.program:
                raise InputError(
                    f"{file.path}: {algorithm} was measured by {file.program}, but in {first.path}"
                    f" by {first.program}: their times and parameters are not comparable",
                    "Import each into its own database.",
                )
    return files_by_algorithm


def _by_workload(parts: Sequence[TunedFile]) -> dict[_Axes, list[TunedFile]]:
    """Groups files by workload, all with the same axes, so that they fit into one table."""
    names = sorted({axis for file in parts for axis in file.workload})
    if len(names) > MOST_AXES:
        raise InputError(
            f"{parts[0].path}: {parts[0].kernel} has {len(names):,} axes in all files, but at most"
            f" {MOST_AXES} are possible"
        )

    def axes_of(file: TunedFile) -> _Axes:
        absent = {name: file.absent_type if name.endswith(TYPE) else ABSENT for name in names}
        return tuple({**absent, **file.workload}.items())

    return dict(sorted(grouped(parts, axes_of).items()))


def _with_types(file: TunedFile, names: Mapping[str, str]) -> TunedFile:
    """Returns a file whose type values use the common names; other values are kept."""
    workload = {
        axis: names.get(value, value) if axis.endswith(TYPE) else value
        for axis, value in file.workload.items()
    }
    return replace(file, workload=workload)


def _renamed(file: TunedFile, names: Mapping[str, str]) -> TunedFile:
    """Returns a file with the benchmark's parameter names, unless two names would collide."""
    new_names = {names.get(name, name) for name in file.parameters}
    if not names or len(new_names) < len(file.parameters):
        return file
    return replace(
        file,
        parameters={names.get(name, name): values for name, values in file.parameters.items()},
        entries=[
            replace(entry, values={names.get(name, name): v for name, v in entry.values.items()})
            for entry in file.entries
        ],
    )


def _named(base: str, library: LibraryParameters) -> str:
    """Replaces parameter names in `--base` by the benchmark's names."""
    for file_name, name in library.renamed.items():
        base = re.sub(rf"(?<![^,\s]){re.escape(file_name)}(?==)", name, base)
    return base


def _space(
    algorithm: str, parts: Sequence[TunedFile], words: Mapping[str, Sequence[str]]
) -> NumberedSpace:
    """Numbers the parameters of an algorithm, which are the same for all types."""
    tuned = [
        replace(file, entries=entries)
        for file in parts
        if (entries := [entry for entry in file.entries if not entry.is_default])
    ]
    try:
        return number_space(tuned, by_text=True, words=words) if tuned else NumberedSpace(())
    except InputError as error:
        raise InputError(f"{error.message}, for {algorithm}", error.remedy) from error


def _label(entry: TunedEntry, space: NumberedSpace) -> str:
    return BASE if entry.is_default else space.label(entry.values)


def _refused(parts: Sequence[TunedFile], space: NumberedSpace) -> Iterator[RefusedRun]:
    for file in parts:
        for entry in file.entries:
            if isinstance(entry.outcome, TunedFailure):
                types = (f" {axis}={value}" for axis, value in file.workload.items())
                place = f"{file.path}: {entry.place}, {file.kernel}{''.join(types)}"
                yield RefusedRun(_label(entry, space), place, entry.outcome)


def _kernel(
    algorithm: str,
    axes: Mapping[str, str],
    files: Sequence[TunedFile],
    space: NumberedSpace,
    facts: SuiteFacts,
) -> tuple[TunedKernel, list[LeftOut]]:
    """Returns a workload with its base, and the sizes without base.

    Raises InputError if no size has one.
    """
    sizes = [file.size or facts.size for file in files]
    points, copies = join_points(
        zip(sizes, files, strict=True), lambda entry: _label(entry, space), 0
    )
    if {point.label for point in points} == {BASE}:
        raise InputError("only default_config ran")
    base, origin = find_base(points, space, facts.current(algorithm, axes, facts.arch), facts.base)
    if origin != "default":
        # A failed run of default_config cannot be base.
        points = tuple(
            replace(point, label=BASE) if point.label == base else point
            for point in points
            if point.label != BASE
        )
    reasons_by_size: dict[str, str] = {}
    for size in dict.fromkeys(sizes):
        try:
            _check_size([point for point in points if point.size == size])
        except InputError as error:
            reasons_by_size[size] = error.message
    kept_places = [place for place, size in enumerate(sizes) if size not in reasons_by_size]
    if not kept_places:
        raise InputError("; ".join(dict.fromkeys(reasons_by_size.values())))
    columns = _columns(axes.items())
    kernel = TunedKernel(
        algorithm=algorithm,
        workload=columns,
        gpu=facts.gpu,
        base=base,
        space=space,
        points=tuple(point for point in points if point.size not in reasons_by_size),
        files=tuple(files[place] for place in kept_places),
        sizes={number: sizes[place] for number, place in enumerate(kept_places)},
        warmup=0,
        copies=copies,
        base_from=origin,
    )
    left_out = [
        LeftOut(algorithm, columns, size, reason) for size, reason in reasons_by_size.items()
    ]
    return kernel, left_out


def _columns(axes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns compile-time axes as databases name them."""
    return {f"{axis}{{ct}}": value for axis, value in axes}


def _check_size(points: Sequence[TunedPoint]) -> None:
    """Checks that base and another configuration have times for the same input."""
    measured = {point.label for point in points if point.failure is None}
    if BASE not in measured:
        raise InputError("base was not measured on this size")
    if measured == {BASE}:
        raise InputError("only base has a time")
    base = next((point.work for point in points if point.label == BASE), None)
    works = [point.work for point in points if point.label != BASE and point.work is not None]
    if base is not None and works and abs(base / (usual := median(works)) - 1) > NEAR:
        raise InputError(
            f"base processed {base:,.0f} items per run, but configurations {usual:,.0f}: their"
            " inputs differ"
        )


def _nothing(files: Sequence[TunedFile], left_out: Sequence[LeftOut]) -> InputError:
    reasons = listed(omission.reason for omission in left_out)
    remedy = None
    if UNSAID in reasons:
        remedy = (
            "Also give the results of the benchmarks' normal builds, or name base by its values:"
            " --base bs=256,ipt=16"
        )
    return InputError(
        f"{files[0].path}: no workload can be compared with a base: {reasons}", remedy
    )


NEAR = 0.05
"""Maximum relative difference between the item counts of two configurations on the same input."""
UNSAID = "the current configuration is unknown"


def find_base(
    points: Sequence[TunedPoint], space: NumberedSpace, entry: Mapping[str, str] | None, option: str
) -> tuple[str, BaseFrom]:
    """Finds the base of a workload: the default that ran, the tree's entry, or `--base`.

    Returns the label of its values, which is `base` if they are unknown; raises InputError with the
    reasons if there is none.
    """
    reasons: list[str] = []
    # The entry may not be among the tuned configurations.
    numbers = {} if entry is None else space.numbers(entry, _number)
    entry_label = as_label(numbers) if 0 < len(numbers) == len(space.parameters) else None
    measured = {point.label for point in points if point.failure is None}
    defaults = [point for point in points if point.label == BASE]
    if BASE in measured:
        return entry_label or BASE, "default"
    if defaults and (failure := defaults[0].failure):
        reasons.append(f"default_config has no time: {failure.reason}")
    if entry_label is not None and entry_label in measured:
        return entry_label, "tree"
    if entry is not None:
        values = ", ".join(f"{name}={value}" for name, value in entry.items())
        reasons.append(f"the current configuration was not measured: {values}")
    if option:
        try:
            label = parse_base(option, space)
        except InputError as error:
            reasons.append(error.message)
        else:
            if label in measured:
                return label, "option"
            reasons.append(f"--base {option} was not measured")
    raise InputError("; ".join(reasons) or UNSAID)


def _number(parameter: NumberedParameter, text: str) -> int | None:
    """Returns the number of a value; its namespace qualifiers may differ."""
    matches = [number for value, number in parameter.numbers.items() if spelled_alike(value, text)]
    return matches[0] if len(matches) == 1 else None


# The GPU and architecture of a library's files.


def suite_arch(files: Sequence[TunedFile], arch_option: str) -> str:
    """Returns the files' architecture, or the given one if they state none or no GPU."""
    with_arch = [file for file in files if file.arch is not None]
    if not with_arch:
        if arch_option:
            return arch_option
        raise InputError(
            f"{files[0].path}: does not state the GPU's architecture", "Name it: --arch gfx942"
        )
    first = with_arch[0]
    for file in with_arch:
        if file.arch != first.arch:
            raise InputError(
                f"{file.path}: was measured on {file.arch}, but {first.path} on {first.arch}",
                "Import each architecture into a database of its own.",
            )
    if arch_option and first.arch not in {arch_option, arch_and_gpu(arch_option)[0]}:
        raise InputError(
            f"{first.path}: was measured on {first.arch}, but --arch is {arch_option}",
            "Omit --arch if the files state it.",
        )
    return arch_option or str(first.arch)


def suite_gpu(files: Sequence[TunedFile], gpu_option: str, arch: str) -> str:
    """Returns the given GPU name, else the files' name, else the architecture."""
    named = {file.path: file.device for file in files if file.device is not None}
    # The most detailed name comes first: `MI300X (8192, 304, eccon)` may be a `MI300X`.
    devices = sorted(named.items(), key=lambda item: "(" not in item[1])
    path, name = devices[0] if devices else (None, "")
    for other_path, device in devices:
        if device not in {name, name.partition(" (")[0]}:
            raise InputError(
                f"{other_path}: was measured on {quoted(device)}, but {path} on {quoted(name)}",
                "Import each GPU into a database of its own; `policygen db compare` compares them.",
            )
    if gpu_option:
        return gpu_name(gpu_option)
    if path is None:
        return arch
    for file in files:
        if file.device != name:
            complaint = (
                "does not state the GPU"
                if file.device is None
                else f"was measured on {quoted(file.device)}"
            )
            raise InputError(
                f"{file.path}: {complaint}, but {path} names {quoted(name)}",
                f"If it was the same GPU, add --gpu '{name}'",
            )
    return name.removeprefix("AMD ")


def suite_sizes(files: Sequence[TunedFile], size_option: str) -> None:
    """Checks that all files have a size."""
    with reported_together() as part:
        for path, file in {file.path: file for file in files if not file.size}.items():
            with part():
                check_size(path, file.size, size_option)
