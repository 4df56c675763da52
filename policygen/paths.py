"""Where policygen keeps what it can make again: the user's cache folder."""

import os
import sys
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """`$POLICYGEN_CACHE`, else the platform's cache folder."""
    if chosen := os.environ.get("POLICYGEN_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "policygen"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/policygen"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "policygen"


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a whole file or nothing: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
