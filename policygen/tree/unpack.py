"""Unpacks the include folder of a wheel: all of it or nothing."""

import shutil
import tempfile
from hashlib import sha256
from pathlib import Path

from policygen.errors import InputError
from policygen.paths import write_atomically
from policygen.tree.archive import read_files
from policygen.tree.files import failure
from policygen.tree.layout import is_root
from policygen.tree.manifest import Wheel
from policygen.tree.version import read_version
from policygen.tree.whole import digest_of, listing, listing_file


def unpack(archive: Path, wheel: Wheel, target: Path, *, again: bool = False) -> None:
    """Writes what stands in a wheel's include folder to `target`, which appears whole.

    Where another process was faster, its tree stays; what is to be there again is replaced.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is one that .gitignore covers and that is no version.
        part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.part-"))
        try:
            files = _extract(archive, wheel.include, part / "tree")
            _check(part / "tree", archive, wheel, files)
            if again and target.exists():
                target.rename(part / "old")
            _move(part / "tree", target)
            write_atomically(listing_file(target), files.encode())
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise failure("unpack to", target, error) from error


def _extract(archive: Path, include: str, folder: Path) -> str:
    """Writes the files; their listing."""
    digests = {}
    for name, data in read_files(archive, include):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digests[name] = sha256(data).hexdigest()
    return listing(digests)


def _check(folder: Path, archive: Path, wheel: Wheel, files: str) -> None:
    actual = f"CUB {read_version(folder)}" if is_root(folder) else "no CUB"
    if actual != f"CUB {wheel.cub}":
        raise InputError(f"{archive} holds {actual}, not CUB {wheel.cub}")
    if digest_of(files) != wheel.files:
        raise InputError(f"{archive} holds other files than CUB {wheel.cub} has")


def _move(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not is_root(target):
            raise
