"""The formats of other tuners, one row for each; what a file is, its content tells."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from policygen.errors import InputError, PolicygenError, together
from policygen.hints import listed
from policygen.opening import read_document
from policygen.results.tuners import (
    kernel_tuner,
    rocprim_benchmarks,
    rocprim_cache,
    rocprim_primbench,
    t4,
)
from policygen.results.tuners.tuned import TunedFile, TunerFormat

FORMATS: tuple[TunerFormat, ...] = (
    *(rocprim_cache, kernel_tuner, t4),
    *(rocprim_primbench, rocprim_benchmarks),
)
"""rocPRIM's caches are Kernel Tuner's with more in them."""
LARGEST = 128 << 20
"""Bytes of a file; a tuner that repeats its runs writes a kilobyte for each configuration."""
_T1 = (b'"ConfigurationSpace"', b'"KernelSpecification"')


def read_tuned(paths: Sequence[Path]) -> tuple[TunedFile, ...]:
    """What all files say, kernel by kernel; what is wrong with any of them is told of all."""
    found: list[TunedFile] = []
    errors: list[PolicygenError] = []
    for path in paths:
        try:
            found += _read(path)
        except InputError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return tuple(found)


def _read(path: Path) -> list[TunedFile]:
    try:
        data = read_document(path, LARGEST)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    for form in FORMATS:
        if form.is_it(data):
            sha256 = hashlib.sha256(data).hexdigest()
            return [replace(one, sha256=sha256) for one in form.read(path, data)]
    if all(key in data for key in _T1):
        raise InputError(
            f"{path}: describes a kernel (T1), and holds no results", "Import what its run wrote."
        )
    raise InputError(
        f"{path}: no results of a tuner that policygen can import",
        f"It imports {listed(form.name for form in FORMATS)}; what a file is, its content"
        " tells. Databases and results of NVBench need no import.",
    )
