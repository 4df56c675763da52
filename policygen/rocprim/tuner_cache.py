"""Reads caches of rocPRIM's tuner: Kernel Tuner caches with the algorithm, its types, and the GPU.

Each is of one algorithm with one combination of types. Times are milliseconds per GiB, one for each
configuration: the timed code warms up and repeats internally. The layout of segments is listed as a
parameter, but is treated as a size.
"""

from dataclasses import replace
from pathlib import Path

from policygen.errors import InputError
from policygen.results.tuners import formats
from policygen.results.tuners.formats import (
    TunedEntry,
    TunedFile,
    TunerFormat,
    mentions,
    quoted,
    text_at,
)
from policygen.rocprim.result_names import (
    EMPTY,
    LIBRARY,
    algorithm_name,
    arch_at,
    checked_workload,
)

MARKS = ("algo_name", "arch_name")
TYPES = ("key_type", "value_type", "data_type", "flag_type", "input_type", "output_type")
LAYOUT = ("segment_count", "segment_length")


def is_it(data: bytes) -> bool:
    """Detects caches of rocPRIM's tuner."""
    return formats.is_cache(data) and mentions(data, *MARKS)


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """Reads the results of the algorithm, for each layout of segments."""
    document, note = formats.open_cache(path, data)
    cache = formats.read_cache(path, document, note)
    if not all(key in document for key in MARKS):
        return (cache,)  # a user kernel may have parameters of these names
    arch = arch_at(path, "arch_name", document["arch_name"])
    gpu = text_at(path, "gpu", document.get("gpu"))
    algorithm = text_at(path, "algo_name", document["algo_name"])
    types = {key: text_at(path, key, document.get(key)) for key in TYPES}
    try:
        rocprim_cache = replace(
            cache,
            # Kernel Tuner names the CPU here, as the compiler that it calls is for C.
            device=gpu or None,
            kernel=algorithm_name(algorithm or ""),
            library=LIBRARY,
            absent_type=EMPTY,
            workload=checked_workload({key: text for key, text in types.items() if text}),
            arch=arch,
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}", "Its tuner writes names like device_merge.") from error
    return tuple(_by_layout(path, rocprim_cache))


def _by_layout(path: Path, cache: TunedFile) -> list[TunedFile]:
    """Returns one file for each layout of segments, which is a size; other files are unchanged."""
    layout_keys = [key for key in LAYOUT if key in cache.parameters]
    if not layout_keys:
        return [cache]
    parameters = {key: values for key, values in cache.parameters.items() if key not in layout_keys}
    if not parameters:
        raise InputError(f"{path}: it has no parameter besides {' and '.join(layout_keys)}")
    sizes: dict[str, list[TunedEntry]] = {}
    for entry in cache.entries:
        size = "x".join(_length(path, entry, key) for key in layout_keys)
        values = {key: value for key, value in entry.values.items() if key not in layout_keys}
        sizes.setdefault(size, []).append(replace(entry, values=values))
    return [
        replace(cache, size=size, parameters=parameters, entries=tuple(entries))
        for size, entries in sizes.items()
    ]


def _length(path: Path, entry: TunedEntry, key: str) -> str:
    value = entry.values[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise InputError(
            f"{path}: {entry.place}: {key}, {quoted(str(value))}, is not a valid number for it"
        )
    return str(value)


FORMAT = TunerFormat("a cache of rocPRIM's tuner", is_it, read, extends=True)
