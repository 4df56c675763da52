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
    if chosen := os.environ.get("POLICYGEN_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "policygen"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/policygen"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policygen"


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
