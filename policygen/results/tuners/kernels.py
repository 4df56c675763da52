"""Files of one kernel on one GPU, together: what each configuration took on each size."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import policygen
from policygen.errors import InputError, PolicygenError, listed, together
from policygen.model.workload import BASE, parse_label
from policygen.results.merge import create_log, create_results, new_database
from policygen.results.own_tables import (
    DEVIATION_TABLE,
    DEVIATIONS,
    FAILURES,
    IMPORT_TABLES,
    IMPORTED,
    IMPORTS,
    OWN,
    SESSIONS,
    VALUES,
    create_own,
    workload_text,
)
from policygen.results.samples import encode
from policygen.results.tables import write_gpus
from policygen.results.tuners.documents import (
    LETTERS,
    TunedFailure,
    TunedFailureKind,
    TunedFile,
    TunedTimes,
    quoted,
)
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


def gather(files: Sequence[TunedFile], facts: TunedFacts) -> TunedKernel:
    """Joins files: sizes are runtime workloads, and what was measured again is joined."""
    space = number_space(files)
    errors: list[PolicygenError] = []
    algorithm = _kept(errors, _algorithm, files, facts)
    gpu = _kept(errors, _gpu, files, facts)
    sizes = {place: _kept(errors, _size, one, facts) for place, one in enumerate(files)}
    base = _kept(errors, _base, files, facts, space)
    if errors:
        raise together(errors)
    points, copies = join_points(
        ((sizes[place], one) for place, one in enumerate(files)),
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
        return gpu_name(facts.gpu)
    if first.device is None:
        raise InputError(
            f"{first.path}: does not say on which GPU it was measured",
            "Name it as other databases do: --gpu 'H200 (6144, 132, eccon)', or: --gpu H200",
        )
    return first.device.replace("NVIDIA ", "")


def gpu_name(text: str) -> str:
    """What `--gpu` says, if it is a name."""
    if len(text) > LETTERS or not all(map(is_visible, text)):
        raise InputError(f"--gpu {quoted(text)} is no name of a GPU")
    return text


def _size(one: TunedFile, facts: TunedFacts) -> str:
    return check_size(one.path, one.size, facts.size)


def check_size(path: Path, said: str | None, given: str) -> str:
    """The size that a file says, or that is said for it: `--size`."""
    if given and not _SIZE.fullmatch(given):
        raise InputError(f"--size {quoted(given)} is no size", "Such as 1000000, or 4096x4096")
    if size := said or given:
        return size
    raise InputError(
        f"{path}: does not say how large the problem was",
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


SUBBENCH, ELEMENTS = "base", "Elements"
"""As workloads of one's own have them."""
STARTS = f"{OWN}starts"
CODES: Mapping[TunedFailureKind, str] = {
    "wrong": "1",
    "memory": "2",
    "error": "3",
    "crash": "4",
    "compile": "5",
    "hang": "42",
    "untimed": "6",
}
"""Of what failed, as `policygen measure` has them; what is not valid was never built."""


# Kernels of another tuner as a database that CCCL's search might have written.


def write_kernels(
    kernels: Sequence[TunedKernel],
    out: Path,
    *,
    arch: str,
    ctk: str = "",
    cccl: str = "",
    force: bool = False,
) -> None:
    """Writes all of it, or nothing. Of the toolkit and of CCCL, files say nothing."""
    gpu = kernels[0].gpu
    key = (ctk, cccl, gpu)
    with new_database(out, force=force) as connection:
        for kernel in kernels:
            _write_rows(connection, kernel, key)
        for log in ("builds", "runs"):
            create_log(connection, log)
            connection.executemany(
                f"INSERT INTO {log} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
                ((*key[:2], *cells) for kernel in kernels for cells in _logged(kernel, log)),
            )
        write_gpus(connection, {gpu: arch})
        create_own(connection)
        session = _write_session(connection, kernels[0], key, arch)
        for kernel in kernels:
            _write_provenance(connection, kernel, session)


def _write_rows(
    connection: sqlite3.Connection, kernel: TunedKernel, key: tuple[str, str, str]
) -> None:
    axes = [*kernel.workload, ELEMENTS]
    table = create_results(connection, kernel.algorithm, SUBBENCH, axes)
    connection.executemany(
        f"INSERT INTO {table} VALUES ({', '.join('?' * (8 + len(axes)))})",  # noqa: S608
        (
            (*key, one.label, one.running or None, one.center, None, _blob(one), *place)
            for one in kernel.points
            if one.failure is None
            for place in [(*kernel.workload.values(), one.size)]
        ),
    )


def _blob(one: TunedPoint) -> bytes | None:
    return None if one.samples is None else encode(one.samples)


def _logged(kernel: TunedKernel, log: str) -> Iterator[tuple[str, str, float | None]]:
    """The rows of `builds` or `runs`: what was not built did not run."""
    for one in kernel.points:
        kind = one.failure.kind if one.failure else None
        if kind == "invalid" or (kind == "compile" and log == "runs"):
            continue
        code = "0" if kind is None or (log == "builds" and kind != "compile") else CODES[kind]
        elapsed = one.compiling if log == "builds" else one.running
        yield f"{kernel.algorithm}.{one.label}", code, elapsed or None


def _write_session(
    connection: sqlite3.Connection, kernel: TunedKernel, key: tuple[str, str, str], arch: str
) -> int:
    """The tables of an import, and the session that all of it is of."""
    for statement in IMPORT_TABLES:
        connection.execute(statement)
    connection.execute(
        f"CREATE TABLE {STARTS} (algorithm TEXT NOT NULL, workload TEXT NOT NULL,"
        " variant TEXT NOT NULL)"
    )
    now = stamp(datetime.now(UTC))
    ctk, cccl, gpu = key
    processor, memory = kernel.files[0].clocks
    cells = {
        "started": now,
        "ended": now,
        "policygen": policygen.__version__,
        "ctk": ctk,
        "cccl": cccl,
        "gpu": gpu,
        "arch": arch,
        "method": IMPORTED,
        **dict.fromkeys(("card", "driver", "nvcc"), ""),
        "seed": 0,
        "sm_clock": processor,
        "memory_clock": memory,
    }
    return _insert(connection, SESSIONS, cells)


def _write_provenance(connection: sqlite3.Connection, kernel: TunedKernel, session: int) -> None:
    """Where it comes from, what failed and why, and what the numbers of labels stand for."""
    for place, file in enumerate(kernel.files):
        _insert(
            connection,
            IMPORTS,
            {
                "session": session,
                "algorithm": kernel.algorithm,
                "workload": workload_text(kernel.workload),
                "base": kernel.base,
                "file": file.path.name.encode("utf-8", "backslashreplace").decode(),
                "sha256": file.sha256,
                "program": file.program,
                "kernel": file.kernel,
                "device": file.device,
                "size": kernel.sizes[place],
                "warmup": kernel.warmup,
                "entries": len(file.entries),
            },
        )
    connection.executemany(
        f"INSERT OR IGNORE INTO {VALUES} VALUES (?, ?, ?, ?)",  # noqa: S608
        [
            (kernel.algorithm, one.name, number, text)
            for one in kernel.space.parameters
            if not one.plain
            for text, number in one.numbers.items()
        ],
    )
    now = stamp(datetime.now(UTC))
    connection.executemany(
        f"INSERT INTO {FAILURES} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [
            (
                *(
                    session,
                    kernel.algorithm,
                    SUBBENCH,
                    workload_text({**kernel.workload, ELEMENTS: one.size}),
                ),
                *(one.label, one.failure.kind, one.failure.reason, now),
            )
            for one in kernel.points
            if one.failure is not None
        ],
    )
    deviations = [
        (workload_text({**kernel.workload, ELEMENTS: one.size}), one.label, one.deviation)
        for one in kernel.points
        if one.deviation is not None
    ]
    if deviations:
        connection.execute(DEVIATION_TABLE)
        connection.executemany(
            f"INSERT INTO {DEVIATIONS} VALUES (?, ?, ?, ?, ?)",  # noqa: S608
            [(kernel.algorithm, SUBBENCH, *cells) for cells in deviations],
        )
    _insert(
        connection,
        STARTS,
        {
            "algorithm": kernel.algorithm,
            "workload": workload_text(kernel.workload),
            "variant": kernel.base,
        },
    )


def _insert(connection: sqlite3.Connection, table: str, cells: Mapping[str, Any]) -> int:
    found = connection.execute(
        f"INSERT INTO {table} ({', '.join(cells)})"  # noqa: S608
        f" VALUES ({', '.join('?' * len(cells))})",
        tuple(cells.values()),
    )
    return found.lastrowid or 0
