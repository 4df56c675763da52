"""Locates policygen's cache folder, which only holds what can be computed again."""

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from policygen.errors import InputError


def cache_folder() -> Path:
    """Returns `$POLICYGEN_CACHE`, else the platform's cache folder."""
    if chosen := chosen_folder("POLICYGEN_CACHE", Path.cwd()):
        return chosen
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData/Local") / "policygen"
    if sys.platform == "darwin":
        return _home() / "Library/Caches/policygen"
    # The XDG specification says to ignore relative paths, which depend on the current folder.
    chosen = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    return (chosen if chosen.is_absolute() else _home() / ".cache") / "policygen"


def chosen_folder(variable: str, base: Path) -> Path | None:
    """Returns the absolute folder, without `..`, that an environment variable names."""
    if not (text := os.environ.get(variable)):
        return None
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:  # ~nobody/cache
        raise InputError(
            f"{variable}={text!r}: there is no such user", f"Set {variable} to a folder."
        ) from error
    return Path(os.path.abspath(base / path))  # noqa: PTH100  keeps symbolic links


def _home() -> Path:
    try:
        home = Path.home()
    except RuntimeError:  # for a user without an account entry
        home = Path()
    if not home.is_absolute():
        raise InputError(
            "there is no home folder for the cache",
            "Set POLICYGEN_CACHE to a folder that can be written.",
        )
    return home


def cache_failure(error: OSError) -> InputError:
    """Returns the error for a cache that is needed but cannot be used."""
    return InputError(
        f"cannot write {error.filename or cache_folder()}: {error.strerror or error}",
        "Set POLICYGEN_CACHE to a folder that can be written.",
    )


@contextmanager
def cache_failures() -> Iterator[None]:
    """Raises this error if the block cannot write to the cache."""
    try:
        yield
    except OSError as error:
        raise cache_failure(error) from error


def file_name(words: Iterable[str]) -> str:
    """Joins words to a file name that every file system accepts."""
    return re.sub(r"[^\w.-]+", "-", ".".join(words))


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file atomically; keeps its mode, and follows a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
        if path.exists():
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
