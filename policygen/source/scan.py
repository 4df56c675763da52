"""All tuning headers of a folder, in parallel, each read once for its content."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError, PolicygenError
from policygen.model.tuning import TuningHeader
from policygen.source import cache
from policygen.source.clang import Neighbours
from policygen.source.header import read_header
from policygen.source.text import MAX_BYTES

FOLDER = "cub/device/dispatch/tuning"
"""Where headers include each other from."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What could be read, and what could not."""

    headers: tuple[TuningHeader, ...]
    errors: tuple[PolicygenError, ...]


def scan_headers(
    paths: Sequence[Path],
    *,
    cached: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Scanned:
    """Reads headers; one that is broken does not keep the others from being read."""
    neighbours = _neighbours(paths)
    results: list[TuningHeader | PolicygenError] = []

    def read(path: Path) -> TuningHeader | PolicygenError:
        try:
            return _read(path, neighbours, cached=cached)
        except PolicygenError as error:
            return error

    # clang parses outside the interpreter's lock: two threads read a tree faster than one.
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for index, (path, result) in enumerate(zip(paths, pool.map(read, paths), strict=True)):
            results.append(result)
            if progress:
                progress(index + 1, len(paths), path.name)
    return Scanned(
        tuple(r for r in results if isinstance(r, TuningHeader)),
        tuple(r for r in results if isinstance(r, PolicygenError)),
    )


def _read(path: Path, neighbours: Neighbours, *, cached: bool) -> TuningHeader:
    data = read_file(path)
    if not cached:
        return read_header(path.name, data, neighbours, str(path))
    key = cache.key(path.name, data, *neighbours.reachable(data).values())
    header = cache.load(key)
    if header is None:
        header = read_header(path.name, data, neighbours, str(path))
        cache.store(key, header)
    return header


def _neighbours(paths: Sequence[Path]) -> Neighbours:
    """The headers beside those that are read."""
    folders = sorted({path.parent for path in paths})
    headers: dict[str, bytes] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.cuh")):
            try:
                headers[f"{FOLDER}/{path.name}"] = read_file(path)
            except PolicygenError:
                continue  # told when it is read for itself; others can be read without it
    return Neighbours(headers)


def read_file(path: Path) -> bytes:
    """The bytes of a source file, or an error that says what to do."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path}: larger than {MAX_BYTES >> 20} MiB, so no source file of CUB",
                "Name the header itself, or the tree that it belongs to.",
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
