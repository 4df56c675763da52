"""All tuning headers of a folder, in parallel, each read once for its content."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policygen.dialects import cache
from policygen.dialects.configs.declaring import declaring
from policygen.dialects.specializations.read import holds_tunings
from policygen.dialects.workers import Request, read_all
from policygen.errors import SourceError
from policygen.model.tuning import TuningHeader
from policygen.source.clang import Neighbours
from policygen.source.files import FOLDER, read_bytes
from policygen.source.included import Included


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
    neighbours, included = _neighbours(paths), Included(frozenset(paths))
    known = [_known(path, neighbours, included, cached=cached) for path in paths]
    asked = read_all([one for one in known if isinstance(one, Request)])
    results: list[TuningHeader | SourceError] = []
    for index, (path, one) in enumerate(zip(paths, known, strict=True)):
        result = next(asked) if isinstance(one, Request) else one
        if cached and isinstance(one, Request) and isinstance(result, TuningHeader):
            cache.store(_key(one), result)
        results.append(result)
        if progress:
            progress(index + 1, len(paths), path.name)
    return Scanned(
        tuple(r for r in results if isinstance(r, TuningHeader)),
        tuple(r for r in results if isinstance(r, SourceError)),
    )


def _known(
    path: Path, neighbours: Neighbours, included: Included, *, cached: bool
) -> TuningHeader | SourceError | Request:
    """A header as it was read before; else what has to be asked for."""
    try:
        data = read_bytes(path)
        included.check(path, data)
        request = _request(path, data, neighbours)
    except SourceError as error:
        return error
    return (cache.load(_key(request)) if cached else None) or request


def _request(path: Path, data: bytes, neighbours: Neighbours) -> Request:
    beside = {**neighbours.reachable(data), **declaring(path)}
    return Request(path.name, str(path), data, beside)


def _key(request: Request) -> str:
    return cache.key(request.name, request.data, *request.neighbours.values())


def read_changed(path: Path, data: bytes) -> TuningHeader:
    """A header of a tree with other content than the file has."""
    (found,) = read_all([_request(path, data, _neighbours([path]))])
    if isinstance(found, SourceError):
        raise found
    return found


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
