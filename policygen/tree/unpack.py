"""Unpacks what was downloaded to a folder of a tree: all of it or nothing."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

from policygen.errors import InputError
from policygen.model.cub import CALLED, Library
from policygen.paths import write_atomically
from policygen.tree.archive import read_files
from policygen.tree.deb import read_package
from policygen.tree.files import failure
from policygen.tree.layout import is_root
from policygen.tree.manifest import Wheel, shipped
from policygen.tree.packages import Release
from policygen.tree.version import read_version
from policygen.tree.whole import digest_of, listing, listing_file


def unpack(archive: Path, wheel: Wheel, target: Path, *, again: bool = False) -> None:
    """Writes what stands in a wheel's include folder to `target`, which appears whole.

    Where another process was faster, its tree stays; what is to be there again is replaced.
    """

    def check(folder: Path, files: str) -> None:
        _check(folder, str(archive), "cub", wheel.cub)
        if digest_of(files) != wheel.files:
            raise InputError(f"{archive} holds other files than CUB {wheel.cub} has")

    _write(read_files(archive, wheel.include), target, "cub", check, again=again)


def unpack_packages(
    archives: Sequence[Path], release: Release, target: Path, *, again: bool = False
) -> None:
    """Writes the headers of packages to an include folder in `target`, as a wheel's are."""
    library = release.library
    include = shipped().libraries[library].fetched.include
    names = ", ".join(map(str, archives))

    def check(folder: Path, files: str) -> None:
        _check(folder / include, names, library, release.version)
        if digest_of(files) != release.files:
            raise InputError(
                f"{names} hold other files than {CALLED[library]} {release.version} has"
            )

    contents = (
        (f"{include}/{PurePosixPath(part.folder).name}/{name}", data)
        for archive, part in zip(archives, release.parts, strict=True)
        for name, data in read_package(archive, part.folder)
    )
    _write(contents, target, library, check, again=again)


def _write(
    contents: Iterable[tuple[str, bytes]],
    target: Path,
    library: Library,
    check: Callable[[Path, str], None],
    *,
    again: bool,
) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is one that .gitignore covers and that is no version.
        part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.part-"))
        try:
            files = _extract(contents, part / "tree")
            check(part / "tree", files)
            if again and target.exists():
                target.rename(part / "old")
            _move(part / "tree", target, library)
            write_atomically(listing_file(target), files.encode())
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise failure("unpack to", target, error) from error


def _extract(contents: Iterable[tuple[str, bytes]], folder: Path) -> str:
    """Writes the files; their listing."""
    digests = {}
    for name, data in contents:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        digests[name] = sha256(data).hexdigest()
    return listing(digests)


def _check(root: Path, archive: str, library: Library, version: str) -> None:
    called = CALLED[library]
    actual = f"{called} {read_version(root, library)}" if is_root(root, library) else f"no {called}"
    if actual != f"{called} {version}":
        raise InputError(f"{archive} holds {actual}, not {called} {version}")


def _move(folder: Path, target: Path, library: Library) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not is_root(target / shipped().libraries[library].fetched.include, library):
            raise
