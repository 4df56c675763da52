"""All tuning headers of a folder, in parallel, each read once for its content."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import SourceError
from policygen.model.tuning import TuningHeader
from policygen.source import cache
from policygen.source.clang import Neighbours
from policygen.source.files import FOLDER, read_bytes
from policygen.source.header import holds_tunings, read_header


@dataclass(frozen=True, slots=True)
class Scanned:
    """What could be read, and what could not."""

    headers: tuple[TuningHeader, ...]
    errors: tuple[SourceError, ...]


def scan_headers(
    paths: Sequence[Path],
    *,
    cached: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Scanned:
    """Reads headers; one that is broken does not keep the others from being read."""
    neighbours = _neighbours(paths)
    results: list[TuningHeader | SourceError] = []

    def read(path: Path) -> TuningHeader | SourceError:
        try:
            return _read(path, neighbours, cached=cached)
        except SourceError as error:
            return error

    # clang parses outside of the lock of the interpreter: a thread more than cores keeps both busy.
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1) + 1) as pool:
        for index, (path, result) in enumerate(zip(paths, pool.map(read, paths), strict=True)):
            results.append(result)
            if progress:
                progress(index + 1, len(paths), path.name)
    return Scanned(
        tuple(r for r in results if isinstance(r, TuningHeader)),
        tuple(r for r in results if isinstance(r, SourceError)),
    )


def _read(path: Path, neighbours: Neighbours, *, cached: bool) -> TuningHeader:
    data = read_bytes(path)
    if not cached:
        return read_header(path.name, data, neighbours, str(path))
    key = cache.key(path.name, data, *neighbours.reachable(data).values())
    header = cache.load(key)
    if header is None:
        header = read_header(path.name, data, neighbours, str(path))
        cache.store(key, header)
    return header


def read_changed(path: Path, data: bytes) -> TuningHeader:
    """A header of a tree with other content than the file has."""
    return read_header(path.name, data, _neighbours([path]), str(path))


def _neighbours(paths: Sequence[Path]) -> Neighbours:
    """What the headers share: those beside them that hold no tunings of their own."""
    folders = sorted({path.parent for path in paths})
    headers: dict[str, bytes] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.cuh")):
            try:
                data = read_bytes(path)
            except SourceError:
                continue  # told when it is read for itself; others can be read without it
            if not holds_tunings(data):
                headers[f"{FOLDER}/{path.name}"] = data
    return Neighbours(headers)
