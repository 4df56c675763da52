"""Which files a compile read, and whether they are still the same."""

import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from policygen.paths import write_atomically

# # 1 "/folder/cub/config.cuh" 1 3
_MARKER = re.compile(rb'\n# \d+ "((?:[^"\\\n]+|\\.)*)"')
# \\ and \" stand for themselves, \303 for a byte.
_LARGEST = 256 << 20
"""Bytes; no source that a compiler has read comes near."""
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")


def record(manifest: Path, preprocessed: Path) -> None:
    """Keeps which files a preprocessed unit came from: size, time and content of each.

    nvcc's `-MD` would list them too, by preprocessing all a second time.
    """
    names = set(_MARKER.findall(b"\n" + preprocessed.read_bytes()))
    own = f"{manifest.parent}{os.sep}"
    files = {}
    for name in sorted(os.fsdecode(_ESCAPE.sub(_unescaped, name)) for name in names):
        # The unit itself is part of the key; "<built-in>" is no file.
        if name.startswith("/") and not name.startswith(own):
            with suppress(FileNotFoundError):  # a source may say `#line 1 "/no/file"`
                status = os.stat(name)  # noqa: PTH116  a thousand paths a unit
                # `#line 1 "/dev/zero"` names what no compiler has read and what never ends.
                if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
                    size, time = status.st_size, status.st_mtime_ns
                    files[name] = [size, time, _digest(name, size, time)]
    write_atomically(manifest, json.dumps(files).encode())


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match[1]
    return bytes([int(text, 8)]) if len(text) == 3 else text


def unchanged(manifest: Path) -> bool:
    """Whether every file is as it was; one that was only touched is."""
    try:
        files = json.loads(manifest.read_bytes())
        # A list of nothing was not understood, and vouches for nothing.
        return bool(files) and all(_same(name, *known) for name, known in files.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return False


def _same(name: str, size: int, mtime: int, digest: str) -> bool:
    status = os.stat(name)  # noqa: PTH116
    if status.st_size != size or not stat.S_ISREG(status.st_mode):
        return False
    return status.st_mtime_ns == mtime or _digest(name, size, status.st_mtime_ns) == digest


@cache
def _digest(name: str, _size: int, _mtime: int) -> str:
    """Most units read the same headers."""
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()
