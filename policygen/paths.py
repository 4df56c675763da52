"""Where policygen keeps what it can make again: the user's cache folder."""

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from policygen.errors import InputError


def cache_folder() -> Path:
    """`$POLICYGEN_CACHE`, else the platform's cache folder."""
    if chosen := chosen_folder("POLICYGEN_CACHE", Path.cwd()):
        return chosen
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData/Local") / "policygen"
    if sys.platform == "darwin":
        return _home() / "Library/Caches/policygen"
    # A relative one is to be ignored, says the specification: it would be another in each folder.
    chosen = Path(os.environ.get("XDG_CACHE_HOME") or ".")
    return (chosen if chosen.is_absolute() else _home() / ".cache") / "policygen"


def chosen_folder(variable: str, base: Path) -> Path | None:
    """The folder that a variable of ours names, if it names one; without `..`."""
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
    except RuntimeError:  # of a user without a name
        home = Path()
    if not home.is_absolute():
        raise InputError(
            "there is no home folder to keep a cache in",
            "Set POLICYGEN_CACHE to a folder that can be written.",
        )
    return home


def cache_failure(error: OSError) -> InputError:
    """What to tell of a cache that is needed and cannot be used."""
    return InputError(
        f"cannot write {error.filename or cache_folder()}: {error.strerror or error}",
        "Set POLICYGEN_CACHE to a folder that can be written.",
    )


def file_name(words: Iterable[str]) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w.-]+", "-", ".".join(words))


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a whole file or nothing; the file keeps its mode, and a link stays a link."""
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


def nearby(path: Path) -> str:
    """A path as it is from here, when it is below the current folder."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
