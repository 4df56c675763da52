"""What NVBench measured in one state: its summaries and its file of samples."""

import errno
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import numpy as np

from policygen.errors import InputError
from policygen.opening import DOCUMENT, NotOpenedError, plain_file, read_inside
from policygen.results.nvbench_json import State
from policygen.results.samples import Samples

SAMPLES = "nv/json/bin:nv/cold/sample_times"
MOST = 64 << 20
"""Samples of a JSON file; a benchmark of CUB's has some hundred thousand."""


def number(path: Path, state: State, tag: str) -> float | None:
    """The value of a summary; none where it is not there."""
    value = state.datum(tag, "value")
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: state {state.name!r}: {tag} is no number: {_told(value)}"
        ) from error


def samples_of(path: Path, state: State) -> Samples | None:
    """The samples of a state, sorted; none where only summaries were kept."""
    name, expected = state.datum(SAMPLES, "filename"), _count(path, state)
    if not expected:
        return None
    file, data = _sample_file(path, str(name))
    if len(data) != 4 * expected:
        raise InputError(
            f"{file}: has {len(data):,} bytes, but {path} says {expected:,} samples of 4 bytes",
            "The two belong to different runs, or one is cut off.",
        )
    return np.sort(np.frombuffer(data, "<f4").astype(np.float64))


def check_total(path: Path, states: Iterable[State]) -> None:
    """Refuses more samples than fit into memory, before any is read."""
    total = sum(_count(path, state) for state in states)
    if total > MOST:
        raise InputError(f"{path}: {total:,} samples: more than the limit of {MOST:,}")


def _count(path: Path, state: State) -> int:
    """How many samples a state says that it has."""
    name, size = state.datum(SAMPLES, "filename"), state.datum(SAMPLES, "size")
    try:
        return 0 if name is None else max(0, int(size))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: state {state.name!r}: no size of {name}: {_told(size)}"
        ) from error


def _told(value: object) -> str:
    """Python writes out no integer of thousands of digits."""
    return "an integer without end" if isinstance(value, int) else repr(value)


def _sample_file(path: Path, name: str) -> tuple[Path, bytes]:
    """A file below the folder of the JSON, named from there or from where the program ran.

    Nothing is told of any other file: the name may be a stranger's.
    """
    plain = PurePosixPath(name.replace("\\", "/"))
    for place in (plain, PurePosixPath(plain.parent.name, plain.name)):
        if place.is_absolute() or ".." in place.parts:
            continue
        try:
            if file := plain_file(path.parent, str(place)):
                return file, read_inside(path.parent, file, DOCUMENT)
        except NotOpenedError as error:
            raise InputError(
                f"{path}: the sample file {name!r}: {error.reason}", error.remedy
            ) from error
        except ValueError:  # a NUL in it
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise InputError(f"{path}: the sample file {name!r} cannot be read") from error
    raise InputError(
        f"{path}: the sample file {name!r} is missing",
        "Copy the folder of .bin files along with the JSON.",
    )
