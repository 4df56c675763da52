"""Combines the files of one kernel on one GPU: the time of each configuration on each size."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import policygen
from policygen.errors import InputError, listed, reported_together
from policygen.model.workload import BASE, parse_label
from policygen.results.merge import Cells, create_log, create_results, insert, new_database
from policygen.results.own_tables import (
    CREATES,
    DEVIATIONS,
    FAILURE_CODES,
    FAILURES,
    IMPORTED,
    IMPORTS,
    SESSIONS,
    STARTS,
    VALUES,
    create_own,
    workload_text,
)
from policygen.results.samples import encode
from policygen.results.tables import write_gpus
from policygen.results.tuners.formats import LETTERS, TunedFailure, TunedFile, TunedTimes, quoted
from policygen.results.tuners.points import (
    NumberedSpace,
    TunedKernel,
    TunedPoint,
    join_points,
    number_space,
    parse_base,
)
from policygen.store_schema import stamp
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
class ImportedAs:
    """Values that the files do not state, or that override what they state; empty if not given."""

    name: str = ""
    """The kernel's name in results: `own.NAME`. A name with dots is a name from the bindings."""
    base: str = ""
    """The current configuration: `block_size_x=128,tile=2`, or a label."""
    gpu: str = ""
    """The GPU's name as used in databases."""
    archs: tuple[str, ...] = ()
    """The GPU's architecture; at most one."""
    ctk: str = ""
    """The version of the CUDA toolkit."""
    cccl: str = ""
    """The version of CCCL, or of the tree that contains the kernel's header."""
    types: tuple[str, ...] = ()
    """Compile-time axes with their values: `T=F32`."""
    size: str = ""
    """The problem size."""
    cub: str = ""
    """The tree whose entries are the baseline, for a library that policygen knows."""
    warmup: int = 1
    """The number of first launches of each configuration that are discarded as warm-up."""


def gather(files: Sequence[TunedFile], facts: ImportedAs) -> TunedKernel:
    """Joins files: sizes become runtime workloads, and repeated measurements are joined."""
    space = number_space(files)
    sizes: dict[int, str] = {}
    with reported_together() as part:
        with part():
            algorithm = _algorithm(files, facts)
        with part():
            gpu = _gpu(files, facts)
        for place, file in enumerate(files):
            with part():
                sizes[place] = check_size(file.path, file.size, facts.size)
        with part():
            base = _base(files, facts, space)
    points, copies = join_points(
        ((sizes[place], file) for place, file in enumerate(files)),
        lambda entry: BASE if (label := space.label(entry.values)) == base else label,
        facts.warmup,
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


def _algorithm(files: Sequence[TunedFile], facts: ImportedAs) -> str:
    first = files[0]
    for file in files:
        if file.kernel != first.kernel:
            raise InputError(
                f"{file.path}: is of the kernel {_quoted_or_none(file.kernel)}, but {first.path}"
                f" of {_quoted_or_none(first.kernel)}",
                "Import each kernel into a database of its own.",
            )
    name = facts.name or first.kernel or ""
    if _is_name(name) and (facts.name or "." not in name):
        return name if "." in name else PREFIX + name
    if facts.name:
        raise InputError(
            f"--name {quoted(name)} is not a valid name for results",
            "Use letters, digits and underscores, but neither a variant label (copy_2) nor a name"
            " of CUB's: my_kernel, or mine.blend as in bindings.",
        )
    complaint = (
        f"{quoted(first.kernel)} is not a valid name for results"
        if first.kernel
        else "the kernel has no name"
    )
    raise InputError(
        f"{first.path}: {complaint}",
        "Name it with letters, digits and underscores: --name my_kernel",
    )


def _is_name(text: str) -> bool:
    """Returns whether a name can precede a label without ambiguity."""
    parts = text.split(".")
    is_valid = _NAME.fullmatch(text) is not None and not text.startswith(_CUB)
    return is_valid and not any(part == BASE or parse_label(part) for part in parts)


def _workload(facts: ImportedAs) -> dict[str, str]:
    """Returns the compile-time axes as databases name them: `T{ct}`."""
    axes: dict[str, str] = {}
    for text in facts.types:
        match = _TYPE.fullmatch(text)
        if match is None or f"{match[1]}{{ct}}" in axes:
            raise InputError(
                f"--type {quoted(text)} does not set each axis once", "For example: --type T=F32"
            )
        axes[f"{match[1]}{{ct}}"] = match[2]
    return axes


def _quoted_or_none(text: str | None) -> str:
    return "no name" if text is None else quoted(text)


def _gpu(files: Sequence[TunedFile], facts: ImportedAs) -> str:
    """Returns the GPU's name as CCCL's search spells it, as far as a file states it."""
    first = files[0]
    for file in files:
        if file.device != first.device:
            raise InputError(
                f"{file.path}: was measured on {_quoted_or_none(file.device)}, but {first.path} on"
                f" {_quoted_or_none(first.device)}",
                "Import each GPU into a database of its own; `policygen db compare` compares them.",
            )
    if facts.gpu:
        return gpu_name(facts.gpu)
    if first.device is None:
        raise InputError(
            f"{first.path}: does not state the GPU",
            "Name it as other databases do: --gpu 'H200 (6144, 132, eccon)', or: --gpu H200",
        )
    return first.device.replace("NVIDIA ", "")


def gpu_name(text: str) -> str:
    """Validates the GPU name given by `--gpu`."""
    if len(text) > LETTERS or not all(map(is_visible, text)):
        raise InputError(f"--gpu {quoted(text)} is not a GPU's name")
    return text


def check_size(path: Path, file_size: str | None, option: str) -> str:
    """Returns the size stated by the file, or the one given by `--size`."""
    if option and not _SIZE.fullmatch(option):
        raise InputError(
            f"--size {quoted(option)} is not a size", "For example 1000000, or 4096x4096"
        )
    if size := file_size or option:
        return size
    raise InputError(
        f"{path}: does not state the problem size", "Name it: --size 1000000, or --size 4096x4096"
    )


def _base(files: Sequence[TunedFile], facts: ImportedAs, space: NumberedSpace) -> str:
    entries = [entry for file in files for entry in file.entries]
    if not (measured := [entry for entry in entries if isinstance(entry.outcome, TunedTimes)]):
        reasons = (
            entry.outcome.reason for entry in entries if isinstance(entry.outcome, TunedFailure)
        )
        raise InputError(f"{files[0].path}: no configuration has a time: {listed(reasons)}")
    if facts.base:
        return parse_base(facts.base, space)
    raise InputError(
        f"{files[0].path}: does not state the baseline configuration",
        f"Name it: --base '{space.asked(space.label(measured[0].values))}'",
    )


def _check_base(points: Sequence[TunedPoint], space: NumberedSpace, base: str) -> None:
    for size in dict.fromkeys(point.size for point in points):
        of_size = {point.label: point.failure for point in points if point.size == size}
        if BASE in of_size and of_size[BASE] is None:
            continue
        failure = of_size.get(BASE)
        measured = [label for label, failure in of_size.items() if failure is None]
        examples = " and ".join(map(space.asked, measured[:SHOWN]))
        raise InputError(
            f"base, {space.asked(base)}, was not measured on the size {size}"
            + (f": {failure.reason}" if failure else ""),
            "Include its values in the tuning run, or name another base: --base."
            + (f" Measured were, for example, {examples}." if measured else ""),
        )


SUBBENCH, ELEMENTS = "base", "Elements"
"""The names that workloads of user kernels have."""


# Writing another tuner's kernels in the layout of CCCL's search.


def write_kernels(
    kernels: Sequence[TunedKernel],
    out: Path,
    *,
    arch: str,
    ctk: str = "",
    cccl: str = "",
    force: bool = False,
) -> None:
    """Writes the whole database or nothing. Files do not state the toolkit and CCCL version."""
    gpu = kernels[0].gpu
    now = stamp(datetime.now(UTC))
    with new_database(out, force=force) as connection:
        for kernel in kernels:
            axes = [*kernel.workload, ELEMENTS]
            table = create_results(connection, kernel.algorithm, SUBBENCH, axes)
            rows = _result_rows(kernel, (ctk, cccl, gpu))
            insert(connection, table, 8 + len(axes), rows)
        for log in ("builds", "runs"):
            create_log(connection, log)
            rows = ((ctk, cccl, *cells) for kernel in kernels for cells in _log_rows(kernel, log))
            insert(connection, log, 5, rows)
        write_gpus(connection, {gpu: arch})
        create_own(connection)
        for table in (IMPORTS, VALUES, STARTS):
            connection.execute(CREATES[table])
        processor, memory = kernels[0].files[0].clocks
        session = {
            "started": now,
            "ended": now,
            "policygen": policygen.__version__,
            "ctk": ctk,
            "cccl": cccl,
            "gpu": gpu,
            "arch": arch,
            "method": IMPORTED,
            "seed": 0,
            "sm_clock": processor,
            "memory_clock": memory,
            **dict.fromkeys(("card", "driver", "nvcc"), ""),
        }
        number = connection.execute(
            f"INSERT INTO {SESSIONS} ({', '.join(session)})"  # noqa: S608
            f" VALUES (:{', :'.join(session)})",
            session,
        ).lastrowid
        for kernel in kernels:
            _write_provenance(connection, kernel, number, now)


def _result_rows(kernel: TunedKernel, key: tuple[str, str, str]) -> Iterator[Cells]:
    for point in kernel.points:
        if point.failure is None:
            blob = None if point.samples is None else encode(point.samples)
            cells = (*key, point.label, point.running or None, point.center, None, blob)
            yield (*cells, *kernel.workload.values(), point.size)


def _log_rows(kernel: TunedKernel, log: str) -> Iterator[tuple[str, str, float | None]]:
    """Yields the rows of `builds` or `runs`: what was not built did not run.

    An invalid configuration was never built.
    """
    for point in kernel.points:
        kind = point.failure.kind if point.failure else None
        if kind == "invalid" or (kind == "compile" and log == "runs"):
            continue
        code = (
            "0" if kind is None or (log == "builds" and kind != "compile") else FAILURE_CODES[kind]
        )
        elapsed = point.compiling if log == "builds" else point.running
        yield f"{kernel.algorithm}.{point.label}", code, elapsed or None


def _write_provenance(
    connection: sqlite3.Connection, kernel: TunedKernel, session: int | None, now: str
) -> None:
    """Writes the origin of rows, the failures, and the meaning of numbers in labels."""
    name, workload = kernel.algorithm, workload_text(kernel.workload)
    for place, file in enumerate(kernel.files):
        file_name = file.path.name.encode("utf-8", "backslashreplace").decode()
        origin = (file_name, file.sha256, file.program, file.kernel, file.device)
        counts = (kernel.sizes[place], kernel.warmup, len(file.entries))
        cells = (session, name, workload, kernel.base, *origin, *counts)
        insert(connection, IMPORTS, len(cells), [cells])
    meanings = (
        (name, parameter.name, number, text)
        for parameter in kernel.space.parameters
        if not parameter.plain
        for text, number in parameter.numbers.items()
    )
    # Several kernels may be of one algorithm.
    insert(connection, VALUES, 4, meanings, verb="INSERT OR IGNORE")
    failures: list[Cells] = []
    deviations: list[Cells] = []
    for point in kernel.points:
        if point.failure is None and point.deviation is None:
            continue
        axes = workload_text({**kernel.workload, ELEMENTS: point.size})
        where = (name, SUBBENCH, axes, point.label)
        if point.failure is not None:
            failures.append((session, *where, point.failure.kind, point.failure.reason, now))
        if point.deviation is not None:
            deviations.append((*where, point.deviation))
    insert(connection, FAILURES, 8, failures)
    if deviations:
        connection.execute(CREATES[DEVIATIONS])
        insert(connection, DEVIATIONS, 5, deviations)
    insert(connection, STARTS, 3, [(name, workload, kernel.base)])
