"""Keeps what was downloaded in the cache, by its hash; lets nothing but the known bytes through."""

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from policygen.errors import InputError
from policygen.paths import cache_folder
from policygen.tree.files import failure, is_file


@dataclass(frozen=True, slots=True)
class Download:
    """A file that is known before it is there."""

    kind: str
    """The folder of the cache."""
    file: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return cache_folder() / self.kind / self.sha256 / self.file


def is_kept(wanted: Download, progress: Callable[[str], None]) -> bool:
    """Whether a file is in the cache as it should be; a damaged one goes."""
    if not is_file(wanted.path):
        return False
    if sha256_of(wanted.path) == wanted.sha256:
        return True
    progress(f"{wanted.file}: the cached file is damaged")
    try:
        wanted.path.unlink(missing_ok=True)
    except OSError as error:
        raise failure("write", wanted.path.parent, error) from error
    return False


def keep(wanted: Download, bring: Callable[[Path], Path]) -> Path:
    """Keeps what is brought to a folder, and is no longer there then."""
    parent = wanted.path.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            bring(Path(folder)).replace(wanted.path)
    except OSError as error:
        raise failure("write", parent, error) from error
    return wanted.path


def checked(wanted: Download, folder: Path, brought_by: str, remedy: str) -> Path:
    """The file that a program was to bring to a folder, if it is the one."""
    file = folder / wanted.file
    if not file.is_file():
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise InputError(f"{brought_by} was asked for {wanted.file} and brought {names}")
    if (actual := sha256_of(file)) != wanted.sha256:
        raise InputError(
            f"{wanted.file} is not the file that it should be"
            f"\n    sha256 expected: {wanted.sha256}\n    sha256 actual:   {actual}",
            f"nothing was unpacked; {remedy}",
        )
    return file


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise failure("read", path, error) from error
