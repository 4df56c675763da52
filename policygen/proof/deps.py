"""Which files a compile read, and whether they are still the same."""

import hashlib
import json
import re
from pathlib import Path

from policygen.paths import write_atomically

# out.ptx : unit.cu \
#     /folder/with\ space/cub/config.cuh \
_PATH = re.compile(r"(?:\\ |[^\s\\])+")


def record(manifest: Path, listed: Path) -> None:
    """Keeps what a compiler's dependency file lists: size, time and content of each file."""
    # The compiler's own output may have a colon in its name, but no blank before it.
    text = listed.read_text().partition(" : ")[2].replace("\\\n", " ")
    paths = sorted({match.replace("\\ ", " ") for match in _PATH.findall(text)})
    files = {}
    for name in paths:
        path = Path(name)
        if manifest.parent not in path.parents:  # the unit itself is part of the key
            stat = path.stat()
            files[name] = [stat.st_size, stat.st_mtime_ns, _digest(path)]
    write_atomically(manifest, json.dumps(files).encode())
    listed.unlink()


def unchanged(manifest: Path) -> bool:
    """Whether every file is as it was; one that was only touched is."""
    try:
        files = json.loads(manifest.read_bytes())
        # A list of nothing was not understood, and vouches for nothing.
        return bool(files) and all(_same(Path(name), *known) for name, known in files.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _same(path: Path, size: int, mtime: int, digest: str) -> bool:
    stat = path.stat()
    if stat.st_size != size:
        return False
    return stat.st_mtime_ns == mtime or _digest(path) == digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
