"""Unpacks the include folder of a wheel: all of it or nothing."""

import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from policygen.errors import InputError
from policygen.tree.files import failure
from policygen.tree.layout import is_root
from policygen.tree.version import read_version


def unpack(archive: Path, include: str, target: Path, version: str) -> None:
    """Writes what stands below `include` to `target`, which appears whole.

    Where another process was faster, its tree stays.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The name is one that .gitignore covers and that is no version.
        part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.part-"))
        try:
            _extract(archive, include, part / "tree")
            _check(part / "tree", archive, version)
            _move(part / "tree", target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise failure("unpack to", target, error) from error


def _extract(archive: Path, include: str, folder: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as file:
            names = [info.filename for info in file.infolist() if not info.is_dir()]
            _refuse_escapes(archive, names)
            for name in names:
                if name.startswith(f"{include}/"):
                    path = folder / name.removeprefix(f"{include}/")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(file.read(name))
    except zipfile.BadZipFile as error:
        raise InputError(f"{archive} is no wheel: {error}") from error


def _refuse_escapes(archive: Path, names: list[str]) -> None:
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise InputError(f"{archive} has a member that leaves its folder: {name!r}")


def _check(folder: Path, archive: Path, version: str) -> None:
    actual = f"CUB {read_version(folder)}" if is_root(folder) else "no CUB"
    if actual != f"CUB {version}":
        raise InputError(f"{archive} holds {actual}, not CUB {version}")


def _move(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not is_root(target):
            raise
