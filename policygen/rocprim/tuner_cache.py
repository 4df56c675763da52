"""Caches of rocPRIM's tuner: caches of Kernel Tuner that say the algorithm, its types, the GPU.

Each is of one algorithm with one combination of types. Times are milliseconds for a GiB, one for
each configuration: what is timed warms up, and is repeated, within it. How segments lie is no
parameter, though it stands among them.
"""

from dataclasses import replace
from pathlib import Path

from policygen.errors import InputError
from policygen.results.tuners import kernel_tuner
from policygen.results.tuners.documents import TunedEntry, TunedFile, quoted, text_at
from policygen.rocprim.result_names import LIBRARY, algorithm_name, arch_at, checked_workload

name = "a cache of rocPRIM's tuner"
MARKS = ("algo_name", "arch_name")
TYPES = ("key_type", "value_type", "data_type", "flag_type", "input_type", "output_type")
LAYOUT = ("segment_count", "segment_length")


def is_it(data: bytes) -> bool:
    """Whether a file is such a cache."""
    head = data[: 1 << 22]
    return kernel_tuner.is_it(data) and all(f'"{key}"'.encode() in head for key in MARKS)


def read(path: Path, data: bytes) -> tuple[TunedFile, ...]:
    """What it says of its algorithm, for each layout of segments."""
    document, told = kernel_tuner.open_cache(path, data)
    found = kernel_tuner.read_cache(path, document, told)
    if not all(key in document for key in MARKS):
        return (found,)  # parameters of one's own kernel are called so
    arch = arch_at(path, "arch_name", document["arch_name"])
    gpu = text_at(path, "gpu", document.get("gpu"))
    algorithm = text_at(path, "algo_name", document["algo_name"])
    types = {key: text_at(path, key, document.get(key)) for key in TYPES}
    try:
        known = replace(
            found,
            # Kernel Tuner names the processor, as the compiler that it calls is for C.
            device=gpu or None,
            kernel=algorithm_name(algorithm or ""),
            library=LIBRARY,
            workload=checked_workload({key: text for key, text in types.items() if text}),
            arch=arch,
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}", "Its tuner writes such as device_merge.") from error
    return tuple(_by_layout(path, known))


def _by_layout(path: Path, found: TunedFile) -> list[TunedFile]:
    """One for each layout of segments, which is a size; others are as they are."""
    layout = [key for key in LAYOUT if key in found.parameters]
    if not layout:
        return [found]
    parameters = {key: values for key, values in found.parameters.items() if key not in layout}
    if not parameters:
        raise InputError(f"{path}: it has no parameter besides {' and '.join(layout)}")
    sizes: dict[str, list[TunedEntry]] = {}
    for entry in found.entries:
        size = "x".join(_length(path, entry, key) for key in layout)
        values = {key: value for key, value in entry.values.items() if key not in layout}
        sizes.setdefault(size, []).append(replace(entry, values=values))
    return [
        replace(found, size=size, parameters=parameters, entries=tuple(entries))
        for size, entries in sizes.items()
    ]


def _length(path: Path, entry: TunedEntry, key: str) -> str:
    value = entry.values[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 63:
        raise InputError(f"{path}: {entry.place}: {key}, {quoted(str(value))}, is no number of it")
    return str(value)
