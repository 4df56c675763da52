"""Files of one kernel on one GPU, together: what each configuration took on each size."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from policygen.errors import InputError, PolicygenError, together
from policygen.hints import listed
from policygen.model.labels import BASE, parse_label
from policygen.results.samples import Samples
from policygen.results.tuners.numbered import NumberedSpace, number_space, parse_base
from policygen.results.tuners.tuned import (
    LETTERS,
    MOST_SAMPLES,
    TunedEntry,
    TunedFailure,
    TunedFile,
    TunedTimes,
)
from policygen.results.tuners.tuner_json import quoted
from policygen.untrusted import is_visible

PREFIX = "own."
# transpose, mine.blend
_NAME = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,5}", re.ASCII)
_CUB = "cub."
# T=F32, OffsetT=I64
_TYPE = re.compile(r"([A-Za-z_]\w{0,60})=([A-Za-z_][\w:<>, ]{0,199})", re.ASCII)
_SIZE = re.compile(r"[1-9][0-9]{0,18}(?:x[1-9][0-9]{0,18}){0,2}", re.ASCII)
SHOWN = 3


@dataclass(frozen=True, slots=True)
class TunedFacts:
    """What files may not say, and the user does; empty where nothing is said."""

    name: str = ""
    base: str = ""
    gpu: str = ""
    size: str = ""
    types: tuple[str, ...] = ()
    """Axes of compile time with their values: `T=F32`."""
    warmup: int = 1
    """As many first launches of a configuration warm up, and do not count."""


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


@dataclass(frozen=True, slots=True)
class TunedKernel:
    """All that was measured of a kernel."""

    algorithm: str
    workload: Mapping[str, str]
    """Its axes of compile time, `T{ct}`."""
    gpu: str
    base: str
    """The label of base."""
    space: NumberedSpace
    points: tuple[TunedPoint, ...]
    files: tuple[TunedFile, ...]
    sizes: Mapping[int, str]
    """By the place of a file."""
    warmup: int
    copies: int
    """Measurements that are copies of others, and left out."""


def gather(files: Sequence[TunedFile], facts: TunedFacts) -> TunedKernel:
    """Joins files: sizes are runtime workloads, what was measured again is joined to what there is.

    A copy of a measurement is none: the same times at the same moment.
    """
    space = number_space(files)
    errors: list[PolicygenError] = []
    algorithm = _kept(errors, _algorithm, files, facts)
    gpu = _kept(errors, _gpu, files, facts)
    sizes = {place: _kept(errors, _size, one, facts) for place, one in enumerate(files)}
    base = _kept(errors, _base, files, facts, space)
    if errors:
        raise together(errors)
    found: dict[tuple[str, str], list[TunedEntry]] = {}
    known: set[tuple[object, ...]] = set()
    copies = 0
    for place, one in enumerate(files):
        for entry in one.entries:
            key = sizes[place], space.label(entry.values)
            # Failures have no times, and are all alike.
            if (same := (*key, *entry.identity)) in known:
                copies += 1
                continue
            known.add(same)
            found.setdefault(key, []).append(entry)
    points = tuple(
        _point(BASE if label == base else label, size, entries, facts.warmup)
        for (size, label), entries in found.items()
    )
    _check_base(points, space, base)
    return TunedKernel(
        algorithm=algorithm,
        workload=_workload(facts),
        gpu=gpu,
        base=base,
        space=space,
        points=points,
        files=tuple(files),
        sizes=sizes,
        warmup=facts.warmup,
        copies=copies,
    )


def _kept(errors: list[PolicygenError], find: Callable[..., str], *given: object) -> str:
    """What is found; what is wrong is told together with all else."""
    try:
        return find(*given)
    except InputError as error:
        errors.append(error)
        return ""


def _algorithm(files: Sequence[TunedFile], facts: TunedFacts) -> str:
    first = files[0]
    for one in files:
        if one.kernel != first.kernel:
            raise InputError(
                f"{one.path}: is of the kernel {_told(one.kernel)}, and {first.path} of"
                f" {_told(first.kernel)}",
                "Import each kernel into a database of its own.",
            )
    name = facts.name or first.kernel or ""
    if _is_name(name) and (facts.name or "." not in name):
        return name if "." in name else PREFIX + name
    if facts.name:
        raise InputError(
            f"--name {quoted(name)} is no name for results",
            "Letters, digits and underscores, none that reads as a variant (copy_2) and none of"
            " CUB's: my_kernel, or mine.blend as bindings have it.",
        )
    what = (
        f"{quoted(first.kernel)} is no name for results" if first.kernel else "no kernel is named"
    )
    raise InputError(
        f"{first.path}: {what}", "Name it, of letters, digits and underscores: --name my_kernel"
    )


def _is_name(text: str) -> bool:
    """Whether a name can stand before a label, so that both can be told apart."""
    parts = text.split(".")
    fine = _NAME.fullmatch(text) is not None and not text.startswith(_CUB)
    return fine and not any(part == BASE or parse_label(part) for part in parts)


def _workload(facts: TunedFacts) -> dict[str, str]:
    """The axes of compile time as databases call them: `T{ct}`."""
    found: dict[str, str] = {}
    for text in facts.types:
        match = _TYPE.fullmatch(text)
        if match is None or f"{match[1]}{{ct}}" in found:
            raise InputError(f"--type {quoted(text)} says no axis once", "Such as: --type T=F32")
        found[f"{match[1]}{{ct}}"] = match[2]
    return found


def _told(text: str | None) -> str:
    return "no name" if text is None else quoted(text)


def _gpu(files: Sequence[TunedFile], facts: TunedFacts) -> str:
    """As CCCL's search names it, as far as a file tells."""
    first = files[0]
    for one in files:
        if one.device != first.device:
            raise InputError(
                f"{one.path}: was measured on {_told(one.device)}, and {first.path} on"
                f" {_told(first.device)}",
                "Import each GPU into a database of its own; `policygen db compare` compares them.",
            )
    if facts.gpu:
        if len(facts.gpu) > LETTERS or not all(map(is_visible, facts.gpu)):
            raise InputError(f"--gpu {quoted(facts.gpu)} is no name of a GPU")
        return facts.gpu
    if first.device is None:
        raise InputError(
            f"{first.path}: does not say on which GPU it was measured",
            "Name it as other databases do: --gpu 'H200 (6144, 132, eccon)', or: --gpu H200",
        )
    return first.device.replace("NVIDIA ", "")


def _size(one: TunedFile, facts: TunedFacts) -> str:
    if facts.size and not _SIZE.fullmatch(facts.size):
        raise InputError(f"--size {quoted(facts.size)} is no size", "Such as 1000000, or 4096x4096")
    if size := one.size or facts.size:
        return size
    raise InputError(
        f"{one.path}: does not say how large the problem was",
        "Say it: --size 1000000, or --size 4096x4096",
    )


def _base(files: Sequence[TunedFile], facts: TunedFacts, space: NumberedSpace) -> str:
    entries = [entry for one in files for entry in one.entries]
    if not (measured := [one for one in entries if isinstance(one.outcome, TunedTimes)]):
        reasons = (e.outcome.reason for e in entries if isinstance(e.outcome, TunedFailure))
        raise InputError(f"{files[0].path}: no configuration has a time: {listed(reasons)}")
    if facts.base:
        return parse_base(facts.base, space)
    raise InputError(
        f"{files[0].path}: does not say which configuration is in use now, with which all others"
        " are compared",
        f"Say it, for example: --base '{space.asked(space.label(measured[0].values))}'",
    )


def _times(entries: Sequence[TunedEntry]) -> list[TunedTimes]:
    return [one.outcome for one in entries if isinstance(one.outcome, TunedTimes)]


def _point(label: str, size: str, entries: Sequence[TunedEntry], warmup: int) -> TunedPoint:
    """All samples of a configuration; without any, what the last measurement says of itself."""
    times = _times(entries)
    joined = [sample for one in times for sample in _warm(one.samples, warmup)]
    failures = [one.outcome for one in entries if isinstance(one.outcome, TunedFailure)]
    samples = None
    center = float("nan")
    if joined:
        samples = np.asarray(joined[:MOST_SAMPLES], np.float64)
        center = float(np.median(samples.astype(np.float32)))
    elif times:
        center = next((one.mean for one in reversed(times) if one.mean is not None), center)
    return TunedPoint(
        label=label,
        size=size,
        center=center,
        samples=samples,
        failure=None if times else failures[-1],
        compiling=sum(one.compiling for one in entries),
        running=sum(one.running for one in entries),
        repeats=len(times),
    )


def _warm(samples: Sequence[float], warmup: int) -> Sequence[float]:
    """Those after the first ones, where there are more.

    No tuner of these launches a kernel for nothing before it takes times, as NVBench does: the
    first launch loads the code and takes several times as long.
    """
    return samples[warmup:] if len(samples) > warmup else samples


def _check_base(points: Sequence[TunedPoint], space: NumberedSpace, base: str) -> None:
    """Base is measured on every size, or nothing can be compared there."""
    there = {one.size: one for one in points if one.label == BASE}
    for size in dict.fromkeys(one.size for one in points):
        one = there.get(size)
        if one is None or one.failure is not None:
            why = f": {one.failure.reason}" if one and one.failure else ""
            fine = [p.label for p in points if p.size == size and p.failure is None]
            more = f" Measured are, for example, {' and '.join(map(space.asked, fine[:SHOWN]))}."
            raise InputError(
                f"base, {space.asked(base)}, was not measured on the size {size}{why}",
                f"Tune with its values, too, or name another one: --base.{more if fine else ''}",
            )
