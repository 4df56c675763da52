"""Keeps reference dumps: kernels that were compiled once, to compare with later."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from policygen.errors import InputError
from policygen.model.sass import Dump, DumpIndex, Kernel, Units
from policygen.model.workload import Point, point_of
from policygen.opening import read_document
from policygen.outputs import write_output
from policygen.paths import file_name

INDEX = "policygen-sass.json"
Dumps = Mapping[tuple[Point, str], tuple[Kernel, ...]]
"""By workload and architecture."""


def is_dumps(folder: Path) -> bool:
    """Whether a folder holds dumps, and not a tree."""
    return (folder / INDEX).is_file()


def save(folder: Path, dumps: Dumps, units: Units, version: str, toolchain: str) -> DumpIndex:
    """Writes a file for each workload and architecture, and then what there is."""
    names = []
    try:
        for ((benchmark, workload), arch), kernels in dumps.items():
            dump = Dump(
                benchmark=benchmark,
                workload=dict(workload),
                arch=arch,
                toolchain=toolchain,
                kernels=kernels,
            )
            words = [benchmark, *(f"{axis}_{value}" for axis, value in workload), arch]
            name = f"{file_name(words)}.json"
            write_output(folder / name, dump.to_json().encode())
            names.append(name)
        index = DumpIndex(
            version=version, toolchain=toolchain, units=units, files=tuple(sorted(names))
        )
        write_output(folder / INDEX, index.to_json().encode())
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from error
    return index


def load(folder: Path) -> tuple[DumpIndex, Dumps]:
    """Reads the dumps of a folder; one that is damaged or lost is an error."""
    path = folder / INDEX
    found = {}
    try:
        index = DumpIndex.model_validate_json(read_document(path))
        for name in index.files:
            path = folder / name
            dump = Dump.model_validate_json(read_document(path))
            found[point_of(dump.benchmark, dump.workload), dump.arch] = dump.kernels
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{path} is no dump of this policygen: {first['msg']}") from error
    return index, found
