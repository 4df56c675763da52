"""Include folders as bytes: regular files with their names, and nothing else."""

import io
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from policygen.errors import InputError
from policygen.untrusted import visible

LARGEST = 512 << 20
"""Bytes of the files of a folder; CUB's headers have 27 MB."""
LARGEST_PACKED = 64 << 20
"""Bytes that travel."""
_LEVEL = 6


def packed(folder: Path) -> bytes:
    """The files of a folder, in the order of their names; the same for the same content.

    A link counts as what it points to, which must lie in the folder: what is elsewhere on this
    machine stays there.
    """
    root, total = folder.resolve(), 0
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(_files(root, root, "")):
            total += path.stat().st_size
            if total > LARGEST:
                raise _too_large(folder, LARGEST)
            data = path.read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    found = zlib.compress(stream.getvalue(), _LEVEL)
    if len(found) > LARGEST_PACKED:
        raise _too_large(folder, LARGEST_PACKED)
    return found


def _files(root: Path, folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            within = f"{name}{entry.name}"
            if entry.is_symlink():
                path = _target(root, path, folder)
            if path.is_dir():
                yield from _files(root, path, f"{within}/")
            elif path.is_file():
                yield within, path


def _target(root: Path, path: Path, folder: Path) -> Path:
    """What a link points to, below the root; no folder that it lies in itself."""
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError):  # it points to nothing, or to itself
        return path
    if not found.is_relative_to(root) or folder.resolve().is_relative_to(found):
        raise InputError(
            f"{visible(str(path))} is a link to {visible(str(found))}, which is no file of its"
            " tree: it is not sent to other machines",
            "Replace the link by what it points to.",
        )
    return found


def _too_large(folder: Path, most: int) -> InputError:
    return InputError(
        f"{visible(str(folder))} has more than {most >> 20} MiB, and is not sent to other machines",
        "Name a tree that has CUB's headers alone with --cub: policygen headers fetch VERSION.",
    )


def unpack(data: bytes, place: Path) -> None:
    """Writes the files into a new folder; whatever else an archive holds is refused."""
    reader = zlib.decompressobj()
    plain = reader.decompress(data, 2 * LARGEST)
    if reader.unconsumed_tail or not reader.eof:
        raise InputError("an archive of headers is cut, or too large")
    place.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        left = len(plain)
        for member in archive:
            path = place.joinpath(*_parts(member))
            if (left := left - member.size) < 0:  # two members may share their bytes
                raise InputError("an archive of headers says more than it holds")
            path.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with path.open("xb") as file:  # a name comes once
                file.write(content.read())


def _parts(member: tarfile.TarInfo) -> tuple[str, ...]:
    parts = PurePosixPath(member.name).parts
    inside = parts and ".." not in parts and not member.name.startswith("/")
    whole = member.isreg() and not member.issparse()
    if not (whole and inside and "\0" not in member.name):
        raise InputError(f"an archive of headers holds {visible(member.name)}, which is no file")
    return parts
