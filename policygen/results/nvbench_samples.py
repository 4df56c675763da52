"""What NVBench measured in one state: its summaries and its file of samples."""

from pathlib import Path, PurePosixPath

import numpy as np

from policygen.errors import InputError
from policygen.results.files import read_regular
from policygen.results.nvbench_json import State
from policygen.results.samples import Samples

SAMPLES = "nv/json/bin:nv/cold/sample_times"


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
    name, size = state.datum(SAMPLES, "filename"), state.datum(SAMPLES, "size")
    if name is None or size in (0, "0"):
        return None
    file = _sample_file(path, str(name))
    try:
        expected, data = int(size), read_regular(file)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: state {state.name!r}: no size of {name}: {_told(size)}"
        ) from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    if len(data) != 4 * expected:
        raise InputError(
            f"{file}: has {len(data):,} bytes, but {path} says {expected:,} samples of 4 bytes",
            "The two belong to different runs, or one is cut off.",
        )
    return np.sort(np.frombuffer(data, "<f4").astype(np.float64))


def _told(value: object) -> str:
    """Python writes out no integer of thousands of digits."""
    return "an integer without end" if isinstance(value, int) else repr(value)


def _sample_file(path: Path, name: str) -> Path:
    """Named from where the program ran; that may have been another folder, or another machine."""
    plain = PurePosixPath(name.replace("\\", "/"))
    places = [path.parent / plain, path.parent / plain.parent.name / plain.name, Path(plain)]
    try:
        found = next((place for place in places if place.is_file()), None)
    except (OSError, ValueError):  # too long a name, or a NUL in it
        found = None
    if found is None:
        raise InputError(
            f"{path}: the sample file {name!r} is missing",
            "Copy the folder of .bin files along with the JSON.",
        )
    return found
