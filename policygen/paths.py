"""Where policygen keeps what it can make again: the user's cache folder."""

import os
import stat
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
    """Writes a whole file or nothing; the file keeps its mode, and a link stays a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The mode of the file that is there, else what any new file gets."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
