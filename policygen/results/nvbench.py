"""Reads NVBench's own results, `--json` and `--jsonbin`, and converts them to databases."""

import errno
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import numpy as np
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from policygen.errors import InputError
from policygen.model.measured import SkippedPoint
from policygen.model.workload import BASE, parse_label, shortened
from policygen.opening import (
    DOCUMENT,
    NotOpenedError,
    first_fault,
    plain_file,
    read_document,
    read_inside,
    read_named,
)
from policygen.results.database import is_database
from policygen.results.merge import create_results, declare, insert, new_database
from policygen.results.samples import Samples, encode
from policygen.results.tables import DeclaredAxes, capability_arch, write_gpus

# cub.bench.reduce.sum.ipt_16.tpb_512.ipv_2
_LABEL = re.compile(r"(?:^|\.)(base|[A-Za-z]\w*?_-?\d+(?:\.[A-Za-z]\w*?_-?\d+)*)$")


@dataclass(frozen=True, slots=True)
class NvbenchState:
    """One measured point."""

    point: Mapping[str, str]
    center: float
    """The median of the samples, else the mean; NaN if there is neither."""
    bandwidth: float | None
    samples: Samples | None


@dataclass(frozen=True, slots=True)
class NvbenchBench:
    """A sub-benchmark with its axes as databases name them."""

    name: str
    axes: tuple[str, ...]
    states: tuple[NvbenchState, ...]
    """The measured ones."""
    skipped: tuple[SkippedPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class NvbenchRun:
    """One JSON file."""

    path: Path
    algorithm: str
    is_base: bool
    gpu: str
    arch: str | None
    benches: tuple[NvbenchBench, ...]
    declared: DeclaredAxes


def is_nvbench(data: bytes) -> bool:
    """Detects NVBench's JSON from a file's content, even if it is truncated."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"{") and b'"devices"' in text and b'"benchmarks"' in text


def read_nvbench(path: Path) -> NvbenchRun:
    """Reads a JSON file and the sample files that it references."""
    document = parse(path, read_document(path))
    total = sum(_count(path, state) for bench in document.benchmarks for state in bench.states)
    if total > MOST:  # more than fit into memory: none is read
        raise InputError(f"{path}: {total:,} samples: more than the limit of {MOST:,}")
    program = PurePosixPath(document.meta.argv[0].replace("\\", "/")).name.removesuffix(".exe")
    algorithm = program.removesuffix(".base").removesuffix(".variant")
    device = _device(path, document)
    return NvbenchRun(
        path=path,
        algorithm=algorithm,
        is_base=program.endswith(".base"),
        gpu=_gpu_name(device),
        arch=capability_arch(device.sm_version),
        benches=tuple(_bench(path, bench) for bench in document.benchmarks),
        declared={
            (algorithm, bench.name, axis.column): tuple(value.input_string for value in axis.values)
            for bench in document.benchmarks
            for axis in bench.axes
        },
    )


def guess_label(path: Path) -> str:
    """Returns the variant from the first line of `cmd.txt`, else from the folder's name."""
    try:
        text = read_inside(path.parent, path.with_name("cmd.txt")).decode(errors="replace")
    except (OSError, NotOpenedError):
        text = ""
    match = _LABEL.search(text.partition("\n")[0].strip())
    return match[1] if match else path.resolve().parent.name


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class BenchDevice(_Part):
    """A GPU."""

    id: int
    name: str
    global_memory_bus_width: int
    number_of_sms: int
    ecc_state: bool
    sm_version: int | None = None
    """Its compute capability: 900."""


# The part of NVBench's JSON that is read; everything else is ignored.


def _as_text(value: object) -> object:
    """Numbers are unquoted in an axis and quoted in a state."""
    return str(value) if isinstance(value, int | float) else value


class AxisValue(_Part):
    """An axis value: as it was typed, and as NVBench stores it."""

    input_string: str
    value: Annotated[str | None, BeforeValidator(_as_text)] = None


def _null_as_empty(value: object) -> object:
    """NVBench writes null where a list would be empty."""
    return [] if value is None else value


class NvbenchAxis(_Part):
    """An axis and all its values."""

    name: str
    flags: str | None = None
    values: Annotated[tuple[AxisValue, ...], BeforeValidator(_null_as_empty)] = ()

    @property
    def column(self) -> str:
        """The name that databases use: `Elements{io}[pow2]`."""
        return f"{self.name}[{self.flags}]" if self.flags else self.name


class Coordinate(_Part):
    """The value of a state on an axis."""

    name: str
    value: Annotated[str, BeforeValidator(_as_text)]


class Datum(_Part):
    """One named value of a summary."""

    name: str
    value: Any


class Summary(_Part):
    """One measured quantity, identified by its tag."""

    tag: str
    data: Annotated[tuple[Datum, ...], BeforeValidator(_null_as_empty)] = ()


class State(_Part):
    """One run of a kernel on one point."""

    name: str = ""
    device: int | None = None
    axis_values: Annotated[tuple[Coordinate, ...], BeforeValidator(_null_as_empty)] = ()
    summaries: Annotated[tuple[Summary, ...], BeforeValidator(_null_as_empty)] = ()
    is_skipped: bool = False
    skip_reason: str | None = None

    def datum(self, tag: str, name: str) -> Any:
        """Returns a value of a summary, or None."""
        data = next((summary.data for summary in self.summaries if summary.tag == tag), ())
        return next((datum.value for datum in data if datum.name == name), None)


class Bench(_Part):
    """A sub-benchmark."""

    name: str
    axes: Annotated[tuple[NvbenchAxis, ...], BeforeValidator(_null_as_empty)] = ()
    states: Annotated[tuple[State, ...], BeforeValidator(_null_as_empty)] = ()


VERSION = 1


class NvbenchMeta(_Part):
    """The command line of the program, and the format version."""

    argv: tuple[str, ...] = Field(min_length=1)
    version: int = Field(default=VERSION, validation_alias=AliasPath("version", "json", "major"))


class NvbenchFile(_Part):
    """The whole file."""

    meta: NvbenchMeta
    devices: tuple[BenchDevice, ...] = Field(min_length=1)
    benchmarks: tuple[Bench, ...]


def _device(path: Path, document: NvbenchFile) -> BenchDevice:
    used = {
        state.device
        for bench in document.benchmarks
        for state in bench.states
        if not state.is_skipped and state.device is not None
    }
    devices = [device for device in document.devices if not used or device.id in used]
    if len(devices) != 1:
        raise InputError(
            f"{path}: measured on {len(devices)} of the GPUs that it lists, instead of one",
            "Run the benchmark with -d 0.",
        )
    return devices[0]


def _gpu_name(device: BenchDevice) -> str:
    """Formats the name as CCCL's search does: `H200 (6144, 132, eccon)`."""
    ecc = "eccon" if device.ecc_state else "eccoff"
    width, processors = device.global_memory_bus_width, device.number_of_sms
    return f"{device.name} ({width}, {processors}, {ecc})".replace("NVIDIA ", "")


def _bench(path: Path, bench: Bench) -> NvbenchBench:
    axes = {axis.name: axis for axis in bench.axes}
    states = [_state(path, axes, state) for state in bench.states if not state.is_skipped]
    skipped = [
        SkippedPoint(
            point=_point(path, axes, state), reason=state.skip_reason or "NVBench skips it"
        )
        for state in bench.states
        if state.is_skipped
    ]
    columns = tuple(axis.column for axis in bench.axes)
    return NvbenchBench(bench.name, columns, tuple(states), tuple(skipped))


def _point(path: Path, axes: Mapping[str, NvbenchAxis], state: State) -> dict[str, str]:
    point = {}
    for coordinate in state.axis_values:
        if coordinate.name not in axes:
            raise InputError(f"{path}: state {state.name!r}: no axis {coordinate.name!r}")
        axis = axes[coordinate.name]
        point[axis.column] = _as_typed(path, axis, coordinate.value)
    if missing := [axis.column for axis in axes.values() if axis.column not in point]:
        raise InputError(f"{path}: state {state.name!r}: no value of {missing[0]!r}")
    return point


def _state(path: Path, axes: Mapping[str, NvbenchAxis], state: State) -> NvbenchState:
    point = _point(path, axes, state)
    samples = None
    if expected_count := _count(path, state):
        file, data = _sample_file(path, str(state.datum(SAMPLES, "filename")))
        if len(data) != 4 * expected_count:
            raise InputError(
                f"{file}: has {len(data):,} bytes, but {path} says {expected_count:,} samples"
                f" of 4 bytes",
                "They belong to different runs, or one is truncated.",
            )
        samples = np.sort(np.frombuffer(data, "<f4").astype(np.float64))
    center = number(path, state, "nv/cold/time/gpu/mean")
    if samples is not None:
        # Use float32, as stored: the mean of the middle two is then CCCL's center, bit by bit.
        with np.errstate(over="ignore"):  # the mean of two absurdly large times is infinite
            center = float(np.median(samples.astype(np.float32)))
    bandwidth = number(path, state, "nv/cold/bw/global/utilization")
    return NvbenchState(point, math.nan if center is None else center, bandwidth, samples)


def _as_typed(path: Path, axis: NvbenchAxis, value: str) -> str:
    """Returns the value as the user typed it: 65536 on a power-of-two axis is 16."""
    for axis_value in axis.values:
        if value == (axis_value.input_string if axis_value.value is None else axis_value.value):
            return axis_value.input_string
    for axis_value in axis.values:
        if axis_value.value is not None and _same_number(axis_value.value, value):
            return axis_value.input_string
    raise InputError(f"{path}: axis {axis.column!r} does not list the value {value!r}")


def _same_number(left: str, right: str) -> bool:
    try:
        return float(left) == float(right)
    except ValueError:
        return False


RowFiles = dict[tuple[str | None, int | None], str]
"""The table and the number of a row → the file that it comes from."""


def to_database(
    base: NvbenchRun, variants: Sequence[tuple[str, NvbenchRun]], out: Path
) -> RowFiles:
    """Writes runs as a database in the layout of CCCL's search; returns where each row is from.

    For runtime axes, NVBench lists the requested values, which are not the declared ones.
    """
    for label, run in variants:
        if label == BASE:
            raise InputError(f"{run.path}: the variant is called 'base'", "Give it another label.")
        if parse_label(label) is None:
            raise InputError(
                f"{run.path}: {shortened(label)} is not a variant label",
                "Name its folder by the label, such as ipt_19.tpb_512.",
            )
        _check_pair(base, run)
    rows: dict[tuple[str, ...], tuple[Path, tuple[Any, ...]]] = {}
    for label, run in (("base", base), *variants):
        for key, cells in _rows(label, run):
            first, _ = rows.setdefault(key, (run.path, cells))
            if rows[key][1] is not cells:
                raise InputError(f"{run.path}: {' '.join(key)}: measured in {first} already")
    declared: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for run in (base, *(run for _, run in variants)):
        for axis, values in run.declared.items():
            if "{ct}" not in axis[2]:
                continue
            declared[axis] = tuple(dict.fromkeys((*declared.get(axis, ()), *values)))
    files: RowFiles = {}
    with new_database(out) as connection:
        for bench in base.benches:
            table = create_results(connection, base.algorithm, bench.name, bench.axes)
            of_bench = [row for key, row in rows.items() if key[1] == bench.name]
            insert(connection, table, 8 + len(bench.axes), (cells for _, cells in of_bench))
            name = f"{base.algorithm}.{bench.name}"
            files |= {(name, number): str(path) for number, (path, _) in enumerate(of_bench, 1)}
        declare(connection, declared)
        write_gpus(connection, {base.gpu: base.arch} if base.arch else {})
    return files


def _check_pair(base: NvbenchRun, run: NvbenchRun) -> None:
    for attribute in ("algorithm", "gpu"):
        left, right = getattr(base, attribute), getattr(run, attribute)
        if left != right:
            raise InputError(f"{run.path}: {attribute} {right!r}, but {left!r} in {base.path}")
    axes = {bench.name: bench.axes for bench in base.benches}
    for bench in run.benches:
        if bench.name not in axes:
            raise InputError(f"{run.path}: sub-benchmark {bench.name!r} is not in {base.path}")
        if bench.axes != axes[bench.name]:
            raise InputError(
                f"{run.path}: sub-benchmark {bench.name!r} has the axes {', '.join(bench.axes)},"
                f" but {', '.join(axes[bench.name])} in {base.path}"
            )
    if {key for key, _ in _rows("", base)}.isdisjoint(key for key, _ in _rows("", run)):
        raise InputError(f"{run.path}: has no measurement in common with {base.path}")


def _rows(label: str, run: NvbenchRun) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Yields the key of each row, and its cells in column order."""
    for bench in run.benches:
        for state in bench.states:
            point = tuple(state.point[axis] for axis in bench.axes)
            blob = None if state.samples is None else encode(state.samples)
            # NVBench records neither the toolkit nor the version.
            cells = ("", "", run.gpu, label, None, state.center, state.bandwidth, blob)
            yield (label, bench.name, *point), (*cells, *point)


def parse(path: Path, data: bytes) -> NvbenchFile:
    """Parses the document; raises InputError with the place if it is invalid."""
    try:
        document = NvbenchFile.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        kind = "" if error.errors()[0]["type"] == "json_invalid" else "not NVBench's JSON: "
        raise InputError(f"{path}: {kind}{first_fault(error)}") from error
    if (major := document.meta.version) != VERSION:
        raise InputError(f"{path}: NVBench JSON of version {major}; policygen supports {VERSION}")
    return document


SAMPLES = "nv/json/bin:nv/cold/sample_times"
MOST = 64 << 20
"""Limit of samples per JSON file; CUB's benchmarks have some hundred thousand."""


# The summaries and the sample file of one state.


def number(path: Path, state: State, tag: str) -> float | None:
    """Returns the value of a summary, or None."""
    value = state.datum(tag, "value")
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: state {state.name!r}: {tag} is not a number: {_printable(value)}"
        ) from error


def _count(path: Path, state: State) -> int:
    name, size = state.datum(SAMPLES, "filename"), state.datum(SAMPLES, "size")
    try:
        return 0 if name is None else max(0, int(size))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: state {state.name!r}: not a size of {name}: {_printable(size)}"
        ) from error


def _printable(value: object) -> str:
    """Formats a value; Python refuses to print integers with thousands of digits."""
    return "an endless integer" if isinstance(value, int) else repr(value)


def _sample_file(path: Path, name: str) -> tuple[Path, bytes]:
    """Reads a file below the JSON's folder, named relative to it or to the program's directory.

    Messages reveal nothing about other files, as the name is untrusted.
    """
    relative = PurePosixPath(name.replace("\\", "/"))
    for candidate in (relative, PurePosixPath(relative.parent.name, relative.name)):
        if candidate.is_absolute() or ".." in candidate.parts:
            continue
        try:
            if file := plain_file(path.parent, str(candidate)):
                return file, read_inside(path.parent, file, DOCUMENT)
        except NotOpenedError as error:
            raise InputError(
                f"{path}: the sample file {name!r}: {error.reason}", error.remedy
            ) from error
        except ValueError:  # a NUL in the name
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise InputError(f"{path}: the sample file {name!r} cannot be read") from error
    raise InputError(
        f"{path}: the sample file {name!r} is missing",
        "Copy the folder of .bin files together with the JSON.",
    )


def is_results(path: Path) -> bool:
    """Returns whether a file named by a plan or store holds results. Other files are not read."""
    try:
        return path.is_file() and (is_database(path) or is_nvbench(read_named(path)))
    except (OSError, InputError):
        return False
